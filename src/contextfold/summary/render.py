"""Messages as the text that a summarizer reads.

What belongs here: headings, how each kind of part reads, and making quoted content unable to pass for our own marks.
What does not: how much of it goes into one request (``chunks``). Nothing is shortened here, with three
exceptions that no reader could use: hidden reasoning, encoded binary data, which is named with its length, and the
codes of a terminal's colors.

    [user]                      what a person said
    [assistant]                 what the assistant said
    [call NAME]                 a tool call, its arguments below
    [result of NAME]            what the tool answered, or [error from NAME]
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping, Sequence

from contextfold import quoting
from contextfold.harness import parted
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

HEADING = re.compile(r"^\[(?:user|assistant|tool|call|result of|error from)\b[^\n]*\]$", re.MULTILINE)
"""A heading in rendered text. Content cannot match: ``quoting.broken`` put a space behind its bracket."""

_DATA_URL = re.compile(
    r"data:(?P<type>[\w.+\-]+/[\w.+\-]+)?(?:;[\w.=\-]+)*;base64,(?P<data>[A-Za-z0-9+/_\-]{64,}={0,2})"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{512,}={0,2}")
_WRAPPED_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{60,76}(?:(?:\r?\n|\\n)[A-Za-z0-9+/]{60,76}){6,}"
    r"(?:(?:\r?\n|\\n)[A-Za-z0-9+/]{20,76}={0,2}(?![A-Za-z0-9+/]))?={0,2}"
)

_FEWEST_KINDS = 40
"""Of 64 base64 digits, random bytes show nearly all within 1,000; words, paths and hex do not."""


def render_group(messages: Sequence[Message]) -> str:
    """What belongs together as one text, empty if it is nothing but instructions (they stay in every view)."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return "\n\n".join(text for text in (render_message(message, names) for message in messages) if text)


def render_message(message: Message, names: Mapping[str, str] | None = None) -> str:
    """One message as text. ``names`` maps the ids of calls to tool names, for results that do not name their tool."""
    if message.is_instruction:
        return ""
    answered, spoken = parted(message)
    of_tool = _rendered(answered, "[result of a tool]", {}) if answered else ""
    of_speaker = _rendered(spoken, _heading(spoken), names or {}) if spoken else ""
    return "\n\n".join(filter(None, (of_tool, of_speaker)))


def _rendered(message: Message, heading: str, names: Mapping[str, str]) -> str:
    said: list[str] = []
    blocks: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCall | ToolResult):
            blocks += _spoken(heading, said)
            said = []
            blocks.append(_call(part) if isinstance(part, ToolCall) else _result(part, names))
        elif isinstance(part, Opaque) and part.is_output:
            blocks += _spoken(heading, said)
            said = []
            blocks.append(_result(ToolResult("", (part,), name=part.label), {}))
        else:
            said += _content(part)
    blocks += _spoken(heading, said)
    return "\n\n".join(blocks) or f"{heading}\n(no text)"


def without_blobs(text: str) -> str:
    """The text with base64 data replaced by a reference that says what it was and how long."""
    text = _DATA_URL.sub(_data_reference, text)
    for pattern in (_WRAPPED_BASE64, _BASE64):
        text = pattern.sub(_blob_reference, text)
    return text


def _heading(message: Message) -> str:
    return f"[{message.role}: {quoting.word(message.name)}]" if message.name else f"[{message.role}]"


def _spoken(heading: str, said: Sequence[str]) -> Iterator[str]:
    text = "\n".join(line for line in said if line)
    if text.strip():
        yield f"{heading}\n{text}"


def _call(call: ToolCall) -> str:
    return f"[call {quoting.word(call.name)}]\n{_quoted(call.arguments)}".rstrip()


def _result(result: ToolResult, names: Mapping[str, str]) -> str:
    name = quoting.word(result.name or names.get(result.call_id) or "a tool")
    content = "\n".join(line for part in result.content for line in _content(part))
    return f"[{'error from' if result.is_error else 'result of'} {name}]\n{content or '(empty)'}"


def _content(part: Text | Media | Opaque | Reasoning) -> Iterator[str]:
    if isinstance(part, Text):
        yield _quoted(part.text)
    elif isinstance(part, Media):
        yield _reference(part)
    elif isinstance(part, Opaque):
        yield _quoted(part.text) if part.text else f"[{quoting.word(part.label)}]"


def _quoted(text: str) -> str:
    return quoting.broken(without_blobs(quoting.readable(text)))


def _reference(media: Media) -> str:
    """``[image image/png 1024x768]``: kind, type, pixels where the data tells, its name, a URL that is not the data."""
    size = _pixels(media.data) if media.kind == "image" and media.data else None
    url = None if media.url is None or media.url.startswith("data:") else quoting.word(media.url)
    pixels = size and f"{size[0]}x{size[1]}"
    words = (media.kind, *(word and quoting.word(word) for word in (media.media_type, pixels, media.name)), url)
    return f"[{' '.join(word for word in words if word)}]"


def _pixels(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG or GIF, whose first bytes say it (PNG specification 11.2.2, GIF89a section 18)."""
    try:
        head = base64.b64decode(data[:32], validate=True)
    except ValueError:
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return width, height
    if head[:6] in (b"GIF87a", b"GIF89a"):
        width, height = struct.unpack("<HH", head[6:10])
        return width, height
    return None


def _data_reference(found: re.Match[str]) -> str:
    return f"[data {found['type'] or 'of no named type'}, base64, {len(found['data']):,} characters]"


def _blob_reference(found: re.Match[str]) -> str:
    blob = found[0]
    sample = set(blob[:1024].replace("\\n", ""))
    mixed = any(c.isdigit() for c in sample) and any(c.islower() for c in sample) and any(c.isupper() for c in sample)
    if not mixed or len(sample) < _FEWEST_KINDS:
        return blob
    return f"[base64 data, {len(blob):,} characters]"
