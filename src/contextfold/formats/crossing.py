"""From messages to the wire, for every format alike: what is handed back, what is rebuilt, what is built new.

A message that came from the target format is its own source object, or, if edited, is rebuilt from it. Neighboring
messages that came from elsewhere (another format, or contextfold itself) form a run, and a run is built as a
whole, because formats differ in how many wire objects one turn takes.

What belongs here: the loop over both cases, and what every crossing has in common: the hidden reasoning of another
provider is dropped, blocks that only the other format knows become their readable text, entries of one assistant
turn come together. What does not: the shape of any wire object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from contextfold.errors import FormatError, border
from contextfold.formats import values
from contextfold.formats.base import Format
from contextfold.formats.values import is_touched
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

Common: TypeAlias = Text | Media | ToolCall | ToolResult
"""The parts that every format can express."""

Rebuild: TypeAlias = Callable[[Message], Any]
Build: TypeAlias = Callable[[Sequence[Message], Sequence[Any]], list[Any]]
"""``build(run, before)``: wire objects for a run of foreign messages, to stand after the objects ``before``."""


def encode(messages: Sequence[Message], name: str, rebuild: Rebuild, build: Build) -> list[Any]:
    """Messages as wire objects of the format ``name``. An edited message that has no parts left is left out.

    Raises ``FormatError`` for one that cannot be made: the classes of an SDK refuse fields that it put up with when
    they were set one by one.
    """
    with border(f"a message cannot be written as {name}", FormatError):
        return _encoded(messages, name, rebuild, build)


def joined(format: Format, first: Any, second: Any) -> Any | None:
    """Two neighboring wire objects of one role as one, or None where they cannot be joined.

    Raises ``FormatError`` where the class of an SDK refuses what they hold.
    """
    with border(f"a message cannot be written as {format.name}", FormatError):
        return format.join(first, second)


def _encoded(messages: Sequence[Message], name: str, rebuild: Rebuild, build: Build) -> list[Any]:
    wire: list[Any] = []
    run: list[Message] = []
    for message in messages:
        if message.source is None or message.source_format != name:
            run.append(message)
            continue
        if run:
            wire.extend(build(one_turn_each(run), wire))
            run = []
        if is_untouched(message):
            wire.append(message.source)
        elif message.parts:
            wire.append(rebuild(message))
    if run:
        wire.extend(build(one_turn_each(run), wire))
    return wire


def turns(
    run: Sequence[Message],
    leading: bool,
    build: Callable[[Message, bool], dict[str, Any]],
    join: Callable[[Any, Any], Any],
) -> list[Any]:
    """A run for formats whose neighbors of one role are one object. ``leading``: only instructions stand before it."""
    built: list[list[Any]] = []
    for message in run:
        leading = leading and message.is_instruction
        entry = build(message, leading)
        if built and built[-1][0]["role"] == entry["role"] != "system":
            built[-1].append(entry)
        else:
            built.append([entry])
    return [_as_one(alike, join) for alike in built]


def _as_one(entries: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Neighbors as one object. Pairs are joined, and then these: results of thousands of calls in a row would be copied
    once for each of them, if one was joined to all before it.
    """
    while len(entries) > 1:
        pairs = zip(entries[::2], entries[1::2], strict=False)
        entries = [*(join(first, second) for first, second in pairs), *(entries[-1:] if len(entries) % 2 else ())]
    return entries[0]


def instruction(message: Message, name: str, *, leading: bool) -> Message:
    """An instruction as the format ``name`` takes it, where instructions stand first only: behind other messages it is
    words of the user, or itself where nothing in it can be said in words.
    """
    if leading or message.source_format != name:
        return message
    if message.is_empty:
        return message.with_parts(())
    said = in_words(common_parts(message.parts))
    return replace(message.with_parts((Text(in_tags(said)),)), role="user") if said else message


def in_tags(instruction: str) -> str:
    """What the user says where an instruction cannot stand."""
    return f"<system>\n{instruction}\n</system>"


def is_untouched(message: Message) -> bool:
    """Whether the message still is what its source says."""
    return not message.edited and not any(is_touched(part) for part in message.parts)


def one_turn_each(run: Sequence[Message]) -> list[Message]:
    """Foreign messages reduced to the parts all formats know, split assistant turns put together, empty ones gone."""
    turns: list[Message] = []
    for message in run:
        crossed = replace(message, parts=tuple(common_parts(message.parts)))
        last = turns[-1] if turns else None
        if last is not None and last.split and message.split and last.role == message.role:
            turns[-1] = replace(last, parts=last.parts + crossed.parts)
        else:
            turns.append(crossed)
    return [turn for turn in turns if turn.parts]


def _told(part: Opaque) -> str:
    """What another format is told of a block: its words. What a tool gave is marked as that, and pictures in it are
    named by their size: in words they would fill the window.
    """
    text = part.text.strip()
    if not part.is_output or not text:
        return text and part.text
    from contextfold import quoting  # compiles patterns that most conversations never need
    from contextfold.summary.render import without_blobs  # summaries are not made on the way from format to format

    return f"[result of {part.label}]\n{quoting.broken(without_blobs(text))}\n[end of the result]"


def crosses(message: Message, name: str) -> bool:
    """Whether anything of a message is in a list of the format ``name``."""
    return message.source_format == name or bool(common_parts(message.parts))


def common_parts(parts: Sequence[Part]) -> list[Common]:
    """The parts that can leave their format, without the source that they had there."""
    found: list[Common] = []
    for part in parts:
        if isinstance(part, ToolResult):
            inner = tuple(p for p in common_parts(part.content) if isinstance(p, Text | Media))
            found.append(replace(part, content=inner, source=None))
        elif isinstance(part, Opaque):
            if text := _told(part):
                found.append(Text(text))
        elif isinstance(part, Text):
            if part.text.strip():
                found.append(replace(part, source=None))
        elif not isinstance(part, Reasoning):
            found.append(replace(part, source=None))
    return found


def results_and_rest(message: Message) -> tuple[list[ToolResult], list[Text | Media]]:
    """The tool results of a turn, and what was said beside them."""
    rest = [part for part in message.parts if isinstance(part, Text | Media)]
    return list(message.tool_results), rest


def results_first(message: Message) -> list[Part]:
    """The parts of a turn, for formats whose models want results before what was said beside them."""
    return [*message.tool_results, *(part for part in message.parts if not isinstance(part, ToolResult))]


def telling_failure(result: ToolResult) -> tuple[Part, ...]:
    """What a result says, for formats that have no field for its failure: with ``Error: `` before it, or the model
    would read that the call did what it was asked to. What begins with an error says so itself.
    """
    said = next((part for part in result.content if isinstance(part, Text)), Text(""))
    if not result.is_error or said.text.lstrip().lower().startswith("error"):
        return result.content
    told = replace(said, text=f"Error: {said.text}" if said.text.strip() else "Error", source=None)
    return (told, *(part for part in result.content if part is not said))


def in_words(parts: Sequence[Part]) -> str:
    """What an instruction says, with a note in the place of what is no text: the roles for it take nothing else."""
    return joined_text([values.media_note(part) if isinstance(part, Media) else part for part in parts])


def built_content(parts: Sequence[Part], build_block: Callable[[Part], Any]) -> Any:
    """The content of a message: a text where all of it is text, else blocks."""
    return joined_text(parts) if all(isinstance(part, Text) for part in parts) else [build_block(p) for p in parts]


def joined_text(parts: Sequence[Part]) -> str:
    """All texts as one, a line each."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
