"""What of a request the model reads: segments of text and media, in the order of the prompt.

What belongs here: picking the readable strings out of any block of any wire format, and what counts beside them.
What does not: which fields a wire format has (``wires``), and how texts are counted (``tokenizer``).

This is on purpose not the reader of the engine: the bench must be able to disagree with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from contextfold.messages import Media
from contextfold.tokens.media import Rule, media_tokens

FRAME_TOKENS = 4
"""Tokens around each message; OpenAI cookbook, "How to count tokens with tiktoken"."""

PRIMING_TOKENS = 3
"""Tokens that open the answer, from the same source."""

_CIPHER_CHARACTERS_PER_TOKEN = 16 / 3
"""Base64 holds three bytes in four characters, and a token is about four bytes."""

_SILENT = frozenset(
    {"type", "id", "call_id", "tool_call_id", "tool_use_id", "role", "status", "cache_control", "signature", "index"}
    | {"annotations", "logprobs", "is_error", "detail", "phase"}
)
_TEXT_FILES = ("document", "file", "input_file")
_MEDIA: Mapping[str, Literal["image", "document", "audio"]] = {
    **dict.fromkeys(("image", "image_url", "input_image", "computer_screenshot"), "image"),
    **dict.fromkeys(_TEXT_FILES, "document"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
}
_CIPHERTEXTS = frozenset({"encrypted_content", "data"})

Kind = Literal["tools", "system", "message"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One message, the instructions, or the tool declarations.

    ``other_tokens`` are those of media and ciphertext, and of the frame. ``cache_mark``: the provider is asked to
    cache the prompt up to the end of this segment (Anthropic's ``cache_control``).
    """

    kind: Kind
    text: str
    other_tokens: int = FRAME_TOKENS
    cache_mark: bool = False

    def tokens(self, count: Callable[[str], int]) -> int:
        """Tokens of the segment, with ``count`` for its text."""
        return count(self.text) + self.other_tokens


@dataclass(frozen=True, slots=True)
class Prompt:
    """A sized prompt: ``sizes`` are the tokens of ``segments``, and ``tokens`` is what is billed."""

    segments: tuple[Segment, ...]
    sizes: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt."""
        return sum(self.sizes) + PRIMING_TOKENS

    def tokens_of(self, kind: Kind) -> int:
        """Tokens of all segments of one kind."""
        return sum(size for segment, size in zip(self.segments, self.sizes, strict=True) if segment.kind == kind)

    def text(self, *kinds: Kind) -> str:
        """What is readable in the segments of these kinds, or of all."""
        return "\n".join(segment.text for segment in self.segments if not kinds or segment.kind in kinds)

    def truncated(self, limit: int) -> Prompt:
        """What is left where a server drops the oldest messages until ``limit`` tokens remain, and says nothing.

        Tools and instructions stay. Of a newest message that is too large itself, the end remains, by its share of
        characters.
        """
        excess, last = self.tokens - limit, len(self.segments) - 1
        kept = []
        for place, (segment, size) in enumerate(zip(self.segments, self.sizes, strict=True)):
            if excess > 0 and segment.kind == "message" and place < last:
                excess -= size
            else:
                kept.append((segment, size))
        if excess > 0 and kept:
            segment, size = kept[-1]
            rest = max(1, size - excess)
            kept[-1] = replace(segment, text=segment.text[-max(1, len(segment.text) * rest // size) :]), rest
        return Prompt(tuple(segment for segment, _ in kept), tuple(size for _, size in kept))


def sized(segments: Sequence[Segment], count: Callable[[str], int]) -> Prompt:
    """The prompt that these segments make."""
    return Prompt(tuple(segments), tuple(segment.tokens(count) for segment in segments))


def segment_of(kind: Kind, value: Any, rule: Rule) -> Segment:
    """One segment out of a message, a list of blocks or a text; images are priced by ``rule``."""
    found = list(_read(value, rule))
    texts = [item for item in found if isinstance(item, str)]
    numbers = sum(item for item in found if isinstance(item, int))
    return Segment(kind, "\n".join(texts), FRAME_TOKENS + numbers, _is_marked(value))


def tools_segment(tools: Any) -> list[Segment]:
    """The segment of the tool declarations, as their compact JSON; none without tools.

    Before they are searched, OpenAI shows names and descriptions of tools with ``defer_loading``, Anthropic nothing.
    """
    if not tools:
        return []
    shown = [_shown(tool) for tool in tools if not _is_hidden(tool)] if isinstance(tools, list) else tools
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    marked = isinstance(tools, list) and any(_is_marked(tool) for tool in tools)
    return [Segment("tools", text, cache_mark=marked)]


def _is_hidden(tool: Any) -> bool:
    return isinstance(tool, Mapping) and tool.get("defer_loading") is True and "input_schema" in tool


def _shown(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    if tool.get("type") == "namespace":
        return {**tool, "tools": [one for one in tool.get("tools", ()) if not one.get("defer_loading")]}
    return {**tool, "parameters": None} if tool.get("defer_loading") is True else tool


def _read(value: Any, rule: Rule) -> Iterator[str | int]:
    """Readable strings, and tokens of what is not readable."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _read(item, rule)
    elif isinstance(value, Mapping):
        media = _media(value)
        if media is not None:
            yield media_tokens(media, rule)
        else:
            yield from _read_fields(value, rule)


def _read_fields(value: Mapping[str, Any], rule: Rule) -> Iterator[str | int]:
    for key, inner in value.items():
        if key in _SILENT or inner is None:
            continue
        if key in _CIPHERTEXTS and isinstance(inner, str) and value.get("type") != "text":
            yield int(len(inner) / _CIPHER_CHARACTERS_PER_TOKEN)
        elif key == "tools" or (key in ("input", "arguments") and isinstance(inner, Mapping)):
            yield json.dumps(inner, ensure_ascii=False)
        elif isinstance(inner, bool | int | float):
            yield f"{key}: {inner}"
        else:
            yield from _read(inner, rule)


def _media(block: Mapping[str, Any]) -> Media | None:
    """The medium that a block is, in whichever wire format, or None."""
    kind = block.get("type")
    inner = next((block[key] for key in ("source", "image_url", "file", "input_audio") if key in block), None)
    held = inner if isinstance(inner, Mapping) else {"url": inner}
    if not isinstance(kind, str) or kind not in _MEDIA:
        return None
    if kind in _TEXT_FILES and held.get("type") in ("text", "content"):
        return None  # a document that is plain text
    data = held.get("data")
    url = held.get("url") or held.get("file_data") or block.get("file_data")
    detail = held.get("detail") or block.get("detail")
    return Media(kind=_MEDIA[kind], data=data, url=url, media_type=held.get("media_type"), detail=detail)


def _is_marked(value: Any) -> bool:
    """Whether a message, a block or one of its blocks carries ``cache_control``."""
    if isinstance(value, list):
        return any(_is_marked(item) for item in value)
    if not isinstance(value, Mapping):
        return False
    return bool(value.get("cache_control")) or _is_marked(value.get("content"))
