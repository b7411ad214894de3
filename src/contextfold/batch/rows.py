"""The conversation that one row holds, however the row has it.

    messages    a list of messages in any format, that list as JSON, or a session file's text or bytes
    format      its format, if it is not to be detected
    tools       declarations that are sent beside the messages: a list, or JSON
    system      a system prompt that is sent beside them

What belongs here: from the values of a row to messages. What does not: files (``transcripts``), tables (``tables``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold import json_values
from contextfold.batch.tables import plain
from contextfold.errors import InputError
from contextfold.transcripts import read
from contextfold.transcripts.frameworks import are_turns, of_turns

COLUMNS = ("messages", "conversation", "conversations", "text", "bytes")
"""Where a conversation is looked for, unless a column is named: the first of these that there is."""

OF_BATCHES = ("body", "params")
"""The same in a line of a provider's batch API, which has a ``custom_id`` beside the request: OpenAI's, Anthropic's."""

BESIDE = ("format", "tools", "system")
"""What else of a row is read."""


@dataclass(frozen=True, slots=True)
class Given:
    """A conversation, and what is sent beside it."""

    messages: Sequence[Any]
    format: str | None = None
    tools: Sequence[Any] | None = None
    system: str | None = None
    name: str = ""
    """Which one it is of those that its row holds; empty where the row holds no other."""
    left_out: Sequence[str] = ()
    """What of a session's file is in none of its conversations, in words."""


def column_of(names: Sequence[str], named: str | None) -> str:
    """The column that holds conversations. Raises ``InputError`` that says which columns there are."""
    wanted_first = (*COLUMNS, *OF_BATCHES) if "custom_id" in names else COLUMNS
    found = named if named in names else next((name for name in wanted_first if name in names), None)
    if found is None or (named is not None and named not in names):
        wanted = f"no column {named}" if named else f"none of the columns {', '.join(COLUMNS)}"
        raise InputError(f"{wanted}: there are {', '.join(names) or 'none'}; name the one with the messages (column=)")
    return found


def read_row(row: Mapping[str, Any], column: str, format: str | None = None) -> list[Given]:
    """The conversations in a row: one, or those of a session file that holds several.

    ``format``: that of all rows, if the row names none itself. Raises ``InputError`` for what is no conversation.
    """
    value = plain(row.get(column))
    # Anthropic's alone has this field. Messages without a block look like those of any chat.
    is_anthropic = column == "params" and "custom_id" in row
    named = _text_or_none(row, "format") or format or ("anthropic" if is_anthropic else None)
    tools, system = _list_or_none(row, "tools"), _text_or_none(row, "system")
    if isinstance(value, Mapping):
        value = json_values.write(value)
    if isinstance(value, str | bytes):
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return [
            Given(
                found.messages,
                found.format,
                tools or found.tools or None,
                system,
                found.name.removeprefix(column),
                found.left_out,
            )
            for found in read(data, name=column, format=named)
        ]
    if not isinstance(value, list):
        raise InputError(f"{column} holds {'nothing' if value is None else type(value).__name__}, not a conversation")
    messages = of_turns(value) if are_turns(value) else _without_filling(value)
    return [Given(messages, named, tools, system)]


def _text_or_none(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) and value else None


def _list_or_none(row: Mapping[str, Any], name: str) -> list[Any] | None:
    value = plain(row.get(name))
    if isinstance(value, str) and value.strip():
        try:
            value = json_values.read(value)
        except ValueError as error:
            raise InputError(f"{name} is no JSON: {error}") from None
    if isinstance(value, list) and value:
        return list(_without_filling(value))
    return None


# ---- what columns of structs add ----


def _without_filling(values: list[Any]) -> list[Any]:
    """The messages without the empty fields that a column of structs gave them."""
    # In Arrow (and so in Parquet, Ray Data and polars) all structs of a column have all fields of any of them: a user
    # message comes back with ``tool_calls: None``, and the arguments of every call with those of every tool. A list
    # whose objects differ in their keys never was in such a column, and stays as it is.
    if not values or not all(isinstance(value, dict) for value in values) or not _are_structs(values):
        return values
    return [_filled(value, top=True) for value in values]


def _are_structs(values: list[Any]) -> bool:
    """Whether all objects at one place have the same keys, here and further inside."""
    objects = [value for value in values if isinstance(value, dict)]
    keys = list(objects[0]) if objects else []
    if any(list(one) != keys for one in objects):
        return False
    below: list[list[Any]] = [[one[key] for one in objects] for key in keys]
    inside = [inner for value in values if isinstance(value, list) for inner in value]
    return all(_are_structs(some) for some in (*below, inside) if any(isinstance(v, dict | list) for v in some))


def _filled(value: Any, *, top: bool = False) -> Any:
    if isinstance(value, list):
        return [_filled(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    found = {key: _filled(inner) for key, inner in value.items() if inner is not None}
    if top and "content" in value and "content" not in found and (found.get("tool_calls") or "function_call" in found):
        found["content"] = None  # beside calls, this is how OpenAI says that there is no text
    return found
