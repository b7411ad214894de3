"""Sizes of parts, messages and tools, in tokens.

Belongs here: what of a message counts, and the overheads. Does not: the size of a text (``estimate``, or whatever
the user supplies) and of media (``media``).

Overheads are those of OpenAI's chat format (OpenAI cookbook, "How to count tokens with tiktoken"): about four tokens
frame a message, and about eight a tool call or the declaration of a tool. Other providers are close.
"""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from contextfold import json_values
from contextfold.errors import (
    FormatError,
    InputError,
    PolicyError,
    border,
    check_tools,
    held,
    plain_integer,
    reason,
    shown,
)
from contextfold.formats import gemini_shapes as gemini
from contextfold.messages import Media, MediaKind, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, texts
from contextfold.tokens.estimate import estimate, estimate_together
from contextfold.tokens.known import KnownSizes
from contextfold.tokens.media import Rule, image_size, media_tokens

_TOGETHER = 1_000
"""Messages whose texts are sized together, so that none is forgotten before it is asked for."""

MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 8
TOOL_OVERHEAD = 8

REFERENCED_TOOL = 300
"""Anthropic puts the declaration of a tool in the place of a ``tool_reference``; this is a usual one."""

_DECLARING = frozenset({"mcp_list_tools", "tool_search_output"})
"""Items of OpenAI's with declarations of tools, which the model reads as such: keys and numbers count, too."""

_CIPHERTEXTS = ("encrypted_content", "data", "redactedContent", "redacted_content", "signature")
_AROUND_CIPHERTEXTS = (
    *("reasoningContent", "reasoningText", "reasoning_content", "reasoning_text", "reasoning_contents"),
    *("extras", "extra", "value"),
)
"""Keys that blocks of reasoning have around it: Bedrock's, and those of LangChain and Haystack."""
_BYTES_PER_TOKEN = 4
_SHORTEST_DATA = 64
_DATA_URL = re.compile(r"data:((?:image|audio|video|text|application)/[\w.+-]+)(?:;[\w.=-]+){0,8};base64,")
_IMAGES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin in base64."""
_TYPES = ("media_type", "mimeType", "mime_type")
"""Where media beside their data have their type: Anthropic's, those of MCP and of Gemini."""
_DATA = re.compile(r"data:[^,]{0,200};base64,|[A-Za-z0-9+/=_\s-]{512,}\Z")


class TokenCounter:
    """Counts tokens. Pure: the same message always has the same size, so sizes may be kept.

    Args:
        count_text: tokens of a text; None for the built-in estimate. It has to be a pure function that returns an
            int of at least 0; what it returns or raises otherwise ends in a ``PolicyError`` that says so.
        media_rule: whose prices images have: "openai", "anthropic" or "google".
    """

    def __init__(self, count_text: Callable[[str], int] | None = None, *, media_rule: Rule = "openai") -> None:
        if count_text is not None and not callable(count_text):
            wanted = "a function of a text that returns its tokens"
            raise PolicyError(f"count_text must be {wanted}, not {shown(count_text)}")
        if media_rule not in get_args(Rule):
            raise PolicyError(f"media_rule is {media_rule!r}; allowed are {', '.join(map(repr, get_args(Rule)))}")
        self._count_text = count_text
        self._media_rule: Rule = media_rule
        self._known = KnownSizes()

    @property
    def is_estimate(self) -> bool:
        """Whether texts are sized by the built-in estimate."""
        return self._count_text is None

    def text(self, text: str) -> int:
        """Tokens of a text."""
        if self._count_text is None:
            return estimate(text)
        return self._known.size(text, partial(_checked, self._count_text))

    def part(self, part: Part) -> int:
        """Tokens of one part, without the frame of its message."""
        if isinstance(part, Text):
            return self.text(part.text)
        if isinstance(part, ToolCall):
            return CALL_OVERHEAD + self.text(part.name) + self.text(part.arguments)
        if isinstance(part, ToolResult):
            return sum(self.part(inner) for inner in part.content)
        if isinstance(part, Media):
            return media_tokens(part, self._media_rule)
        if isinstance(part, Reasoning):
            return self._reasoning(part)
        return self._opaque(part)

    def message(self, message: Message) -> int:
        """Tokens of a message: all its parts, its name, and its frame."""
        name = self.text(message.name) if message.name else 0
        return MESSAGE_OVERHEAD + name + sum(self.part(part) for part in message.parts)

    def messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each of several messages. Their texts are sized together where that is quicker."""
        if not self.is_estimate:
            return list(map(self.message, messages))
        sizes: list[int] = []
        for start in range(0, len(messages), _TOGETHER):
            some = messages[start : start + _TOGETHER]
            estimate_together(text for message in some for part in message.parts for text in texts(part))
            sizes += map(self.message, some)
        return sizes

    def tools(self, tools: Sequence[Any] | None) -> int:
        """Tokens of tool declarations, each as its compact JSON; of one that is loaded later (``defer_loading``), what
        the model reads before.

        A tool is a mapping in the shape of any provider, or an object with a name, a description and a schema of its
        arguments (``args_schema``, as a JSON schema or a pydantic model), or a function.
        """
        check_tools(tools)
        try:
            declared = [found for tool in tools or () if (found := _read_at_first(_declaration(tool))) is not None]
            return sum(TOOL_OVERHEAD + self.text(compact_json(found)) for found in declared)
        except Exception as error:  # an object of the caller's, whose own code runs when it is asked for its schema
            raise InputError(f"tools: a declaration cannot be read: {reason(error)}") from error

    def _reasoning(self, part: Reasoning) -> int:
        """Its text, or what the ciphertext stands for where that is more, or all there is."""
        # A signature beside a readable text repeats it, and counts nothing; nor does one beside words in another key.
        beside = held(part.source, "value")
        keys = _CIPHERTEXTS if beside is None and not part.text else _CIPHERTEXTS[:-1]
        hidden = sum(
            _ciphertext_tokens(block, keys) for block in _hidden_blocks(part.source if beside is None else beside)
        )
        drawn = (found for found in _held_in(_source_of(part)) if isinstance(found, Media))  # a picture in a thought
        return max(self.text(part.text), hidden) + sum(media_tokens(found, self._media_rule) for found in drawn)

    def _opaque(self, part: Opaque) -> int:
        """Its readable text and what else is in it: media by the provider's rule, and texts that only the provider can
        read. Where there is nothing of these, the compact JSON of its source without base64 in it.
        """
        source = _source_of(part)
        if part.text and isinstance(source, Mapping) and isinstance(source.get("encrypted_content"), str):
            return self.text(part.text)  # the same in clear
        words, tokens = "" if part.label in _DECLARING else part.text, 0
        for found in _held_in(source):
            if isinstance(found, int):
                tokens += found
            elif isinstance(found, Media):
                tokens += media_tokens(found, self._media_rule)
                words = words.replace(found.url or found.data or "", "")
            else:
                tokens += len(found) * 3 // 4 // _BYTES_PER_TOKEN
        if words.strip():
            return tokens + self.text(words)
        return tokens or (self.text(compact_json(_without_data(part.source))) if part.source is not None else 0)


def compact_json(value: Any) -> str:
    """JSON without white space, in the order of the value. What JSON cannot say is the name of its type."""
    return json_values.write(value, compact=True, skipkeys=True, default=lambda thing: type(thing).__name__)


def _checked(count_text: Callable[[str], int], text: str) -> int:
    try:
        tokens = count_text(text)
    except Exception as error:  # user code: whatever it raises is a mistake in a setting
        raise PolicyError(
            f"count_text raised {type(error).__name__} for a text of {len(text):,} characters: {error}; "
            "it must return the tokens of any text"
        ) from error
    number = plain_integer(tokens)
    if number is None or not 0 <= number < 10**12:
        raise PolicyError(
            f"count_text returned {shown(tokens)} for a text of {len(text):,} characters; it must return an int >= 0"
        )
    return number


def _source_of(part: Reasoning | Opaque) -> Any:
    """What a part was read from, as JSON has it where that is an object of Google's SDK."""
    if (value := held(part.source, "value")) is not None:
        return value  # a key of the message itself
    if not gemini.is_object(part.source):
        return part.source
    with border("the size of a part cannot be told", FormatError):  # it may hold a mapping of anyone's
        return gemini.plain(part.source)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _hidden_blocks(source: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings in which the ciphertext of a part of reasoning may stand."""
    waiting = [source]
    for found in _taken(waiting):
        if isinstance(found, Mapping):
            yield found
            waiting.extend(found[key] for key in _AROUND_CIPHERTEXTS if key in found)


def _taken(waiting: list[Any]) -> Iterator[Any]:
    """What waits, and what is put there meanwhile, items of lists one by one, up to as many values as are looked at."""
    for _ in range(json_values.MOST_VALUES):
        if not waiting:
            return
        found = waiting.pop()
        if isinstance(found, list | tuple):
            waiting.extend(found)
        else:
            yield found


def _ciphertext_tokens(source: Mapping[str, Any], keys: Iterable[str]) -> int:
    # The provider decrypts it and bills the text in it: base64 holds three bytes in four characters, and a token is
    # about four bytes. The few hundred bytes that a cipher adds are left in.
    held = (source.get(key) for key in keys)
    sizes = [
        len(value) if isinstance(value, bytes) else len(value) * 3 // 4
        for value in held
        if isinstance(value, str | bytes)
    ]
    return max(sizes, default=0) // _BYTES_PER_TOKEN


def _held_in(value: Any) -> Iterator[Media | str | int]:
    """The media inside of a block that we do not interpret (a picture that was drawn, a plot, a page that was fetched),
    and the ciphertexts: Anthropic's search results are hidden, and billed. Of tools that are named, their tokens.
    """
    waiting = [value]
    for found in _taken(waiting):
        if isinstance(found, Mapping):
            data, said = found.get("data"), next(filter(_is_text, map(found.get, _TYPES)), None)
            # one of the type "text" has its words there
            if isinstance(data, str) and (found.get("type") == "base64" or (said and found.get("type") != "text")):
                yield Media(_media_kind(said), media_type=said, data=data)
                continue
            if (medium := _medium_of_frameworks(found)) is not None:
                yield medium
                continue
            if isinstance(hidden := found.get("encrypted_content"), str):
                yield hidden
            if found.get("type") == "tool_reference":
                yield REFERENCED_TOOL
            waiting.extend(inner for key, inner in found.items() if key != "encrypted_content")
        elif isinstance(found, str) and len(found) >= _SHORTEST_DATA:
            if url := _DATA_URL.match(found):
                yield Media(_media_kind(url[1]), media_type=url[1], url=found)
            elif found.startswith(_IMAGES) and image_size(found):
                yield Media("image", data=found)


def _medium_of_frameworks(block: Mapping[str, Any]) -> Media | None:
    """The medium that a block of LangChain's or of Bedrock's Converse is, and nothing else."""
    data, said = block.get("base64"), block.get("mime_type")
    if isinstance(data, str | bytes) and isinstance(said, str):
        return Media(_media_kind(said), media_type=said, data=_base64(data))
    for kind in get_args(MediaKind):
        source = inner.get("source") if isinstance(inner := block.get(kind), Mapping) else None
        if isinstance(source, Mapping) and isinstance(data := source.get("bytes"), str | bytes):
            return Media(kind, data=_base64(data))
    return None


def _base64(data: str | bytes) -> str:
    return data if isinstance(data, str) else base64.b64encode(data).decode("ascii")


def _media_kind(media_type: str | None) -> MediaKind:
    kind = (media_type or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"  # type: ignore[return-value]


def _without_data(value: Any) -> Any:
    """A copy without base64 in it: that is bytes, and no provider reads it as text."""
    try:
        return _bare(value)
    except RecursionError:  # no text in it that anyone could read, and a thousand levels deep: any size will do
        return value


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _bare(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(inner) for inner in value]
    return "" if isinstance(value, str) and _DATA.match(value) else value


def _read_at_first(declared: Any) -> Any:
    """What the model reads of a declaration before it searched for tools; None for nothing.

    Anthropic leaves deferred tools out, OpenAI gives their names and descriptions, and those of a namespace alone.
    """
    if not isinstance(declared, Mapping):
        return declared
    if declared.get("type") == "namespace" and isinstance(inner := declared.get("tools"), list):
        return {**declared, "tools": [tool for tool in inner if not _is_deferred(tool)]}
    if not _is_deferred(declared):
        return declared
    if "input_schema" in declared:
        return None
    function = declared.get("function", declared)
    if declared.get("type") != "function" or not isinstance(function, Mapping):
        return declared
    return {key: function.get(key) for key in ("name", "description")}


def _is_deferred(tool: Any) -> bool:
    """Whether a tool is loaded when it is searched for; tools of LangChain say it in their ``extras``."""
    if not isinstance(tool, Mapping):
        return held(tool, "defer_loading") is True or _is_deferred(held(tool, "extras") or {})
    return tool.get("defer_loading") is True


def _declaration(tool: Any) -> Any:
    """What is sent of a tool, or something as long. Objects of frameworks say it under several names."""
    if isinstance(tool, Mapping | str):
        return tool
    if isinstance(spec := getattr(tool, "tool_spec", None), Mapping):  # Strands
        return spec
    schema = getattr(tool, "args", None)  # LangChain: without what its own run gets besides
    if not schema or not isinstance(schema, Mapping):
        schema = next((held for name in _SCHEMAS if (held := getattr(tool, name, None))), None)
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if schema is None and (isinstance(tool, type) or name is None) and hasattr(tool, "model_json_schema"):
        return _as_json(tool)
    described = {
        "name": name or type(tool).__name__,
        "description": getattr(tool, "description", None) or getattr(tool, "__doc__", None) or "",
    }
    if _is_deferred(tool):
        return described
    if schema is None:
        schema = _annotated(getattr(tool, "func", None) or tool)
    return {**described, "parameters": _as_json(schema)} if schema else described


_SCHEMAS = (
    "args_schema",
    "input_schema",
    "inputSchema",
    "parameters",
    "params_json_schema",
    "parameters_json_schema",
)
"""Where tools of frameworks have the schema of their arguments."""


def _annotated(tool: Any) -> dict[str, str]:
    """The arguments of a function with their types, of which frameworks make a schema."""
    try:
        found = inspect.signature(tool).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: str(one.annotation) for one in found if one.annotation is not one.empty}


def _as_json(schema: Any) -> Any:
    """A pydantic class as its JSON schema, an object of one (``google.genai.types.Tool``) as its JSON."""
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    dump = getattr(schema, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else schema
