"""What images, documents, audio and video cost, by the provider's rule and never by the length of their base64.

Belongs here: the rules with their sources, and reading sizes out of file headers. Does not: text (``estimate``).

Nothing is decoded that is not needed: the header of an image is in its first bytes. What cannot be known (a URL, a
file id, an unknown kind of file) has a stated default, chosen at the upper end of what is usual, because an estimate
that is too low ends in a request that is refused.

Sources, read in 2025: OpenAI, "Images and vision, calculating costs"; OpenAI, "Managing costs" of the Realtime API
(audio); Anthropic, "Vision, calculate image costs" and "PDF support, estimate your costs"; Google, "Understand and
count tokens" and "Media resolution" of the Gemini API (images, pages, audio, video).
"""

from __future__ import annotations

import base64
import re
from math import ceil
from typing import Literal, TypeAlias

from contextfold.messages import Media

Rule: TypeAlias = Literal["openai", "anthropic", "google"]
Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""

OPENAI_LOW_DETAIL = 85
OPENAI_BASE, OPENAI_TILE = 85, 170
OPENAI_TILE_SIDE = 512
OPENAI_LONG_SIDE, OPENAI_SHORT_SIDE = 2048, 768
OPENAI_UNKNOWN_IMAGE = 765
"""1024 x 1024 pixels at high detail: four tiles."""

ANTHROPIC_PIXELS_PER_TOKEN = 750
ANTHROPIC_LONG_SIDE = 1568
ANTHROPIC_LARGEST_IMAGE = 1600
"""Larger images are scaled down to about this many tokens. Also the price where the size is unknown."""

GOOGLE_TILE = 258
"""Tokens of an image of at most 384 x 384 pixels, and of each tile of a larger one."""
GOOGLE_SMALL_SIDE = 384
GOOGLE_SMALLEST_TILE = 256
"""Pixels. A rule in a page is a pixel high, and is not cut into as many tiles as it is wide."""
GOOGLE_UNKNOWN_IMAGE = 1_120
"""Gemini 3 at its usual resolution, whatever the size; four tiles of earlier models take little less."""
GOOGLE_PAGE_TOKENS = 560
GOOGLE_AUDIO_TOKENS_PER_SECOND = 32
"""Google names both."""

PAGE_TOKENS = 2_250
"""One page of a document: the middle of the 1,500 to 3,000 tokens that Anthropic names."""
BYTES_PER_PAGE = 50_000
UNKNOWN_DOCUMENT_PAGES = 10

AUDIO_TOKENS_PER_SECOND = 10
AUDIO_BYTES_PER_SECOND = 16_000
"""MP3 at 128 kbit/s; the header of a WAV file says its own rate."""
VIDEO_TOKENS_PER_SECOND = 263
VIDEO_BYTES_PER_SECOND = 125_000
"""One megabit a second. The tokens are those that Google names."""
UNKNOWN_SECONDS = 60

BYTES_PER_TEXT_TOKEN = 4

_HEADER_CHARACTERS = 64 * 1024
_JPEG_HEADER_CHARACTERS = 2 * 1024 * 1024  # a camera puts a preview and a color profile before the size


def rule_of(format: str) -> Rule:
    """Whose prices media have in a conversation of this wire format."""
    rules: dict[str, Rule] = {"anthropic": "anthropic", "gemini": "google", "bedrock-converse": "anthropic"}
    return rules.get(format, "openai")


def media_tokens(media: Media, rule: Rule = "openai") -> int:
    """Tokens of one medium under the rule of a provider."""
    data = _base64_of(media)
    if media.kind == "image":
        return image_tokens(image_size(data), rule, media.detail)
    if media.kind == "document":
        page = GOOGLE_PAGE_TOKENS if rule == "google" else PAGE_TOKENS
        return _document_tokens(data, media.media_type, page)
    if media.kind == "audio":
        per_second = GOOGLE_AUDIO_TOKENS_PER_SECOND if rule == "google" else AUDIO_TOKENS_PER_SECOND
        return ceil(_seconds(data, _wav_rate(data) or AUDIO_BYTES_PER_SECOND) * per_second)
    return ceil(_seconds(data, VIDEO_BYTES_PER_SECOND) * VIDEO_TOKENS_PER_SECOND)


def image_tokens(size: Size | None, rule: Rule, detail: str | None = None) -> int:
    """Tokens of an image of ``size``, or of a usual one where the size is not known.

    OpenAI: scaled to fit a square of 2048, then its short side to 768; 85 tokens and 170 for each tile of 512; 85 at
    low detail. Anthropic: width x height / 750, scaled down so that the long side is at most 1568 and the price at
    most about 1,600. Google: 258 for a small one, else 258 for each tile, whose
    side is two thirds of the image's short one, and 256 pixels at least.
    """
    if rule == "google":
        return GOOGLE_UNKNOWN_IMAGE if size is None else _google_image(*size)
    if rule == "anthropic":
        return ANTHROPIC_LARGEST_IMAGE if size is None else _anthropic_image(*size)
    if detail == "low":
        return OPENAI_LOW_DETAIL
    return OPENAI_UNKNOWN_IMAGE if size is None else _openai_image(*size)


def _openai_image(width: int, height: int) -> int:
    scale = min(1.0, OPENAI_LONG_SIDE / max(width, height))
    scale = min(scale, OPENAI_SHORT_SIDE / min(width, height))
    tiles = ceil(round(width * scale) / OPENAI_TILE_SIDE) * ceil(round(height * scale) / OPENAI_TILE_SIDE)
    return OPENAI_BASE + OPENAI_TILE * max(1, tiles)


def _google_image(width: int, height: int) -> int:
    if max(width, height) <= GOOGLE_SMALL_SIDE:
        return GOOGLE_TILE
    side = max(GOOGLE_SMALLEST_TILE, int(min(width, height) / 1.5))
    return max(GOOGLE_UNKNOWN_IMAGE, GOOGLE_TILE * ceil(width / side) * ceil(height / side))


def _anthropic_image(width: int, height: int) -> int:
    scale = min(1.0, ANTHROPIC_LONG_SIDE / max(width, height))
    return min(ANTHROPIC_LARGEST_IMAGE, ceil(width * scale * height * scale / ANTHROPIC_PIXELS_PER_TOKEN))


# ---- image headers ------------------------------------------------------------------------------


def image_size(data: str | None) -> Size | None:
    """Width and height from the header of a base64 PNG, JPEG, GIF or WebP image, or None."""
    if not data:
        return None
    head = _decoded(data, _HEADER_CHARACTERS)
    if head.startswith(b"\xff\xd8"):
        size = _jpeg_size(head) or _jpeg_size(_decoded(data, _JPEG_HEADER_CHARACTERS))
    else:
        size = _png_size(head) or _gif_size(head) or _webp_size(head)
    return size if size and all(size) else None


def _png_size(head: bytes) -> Size | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or len(head) < 24:
        return None
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def _gif_size(head: bytes) -> Size | None:
    if head[:6] not in (b"GIF87a", b"GIF89a") or len(head) < 10:
        return None
    return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")


def _webp_size(head: bytes) -> Size | None:
    """Lossy, lossless and extended WebP (RFC 9649, sections 2.5 to 2.7)."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    kind = head[12:16]
    if kind == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return None


_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # those three are tables, not frames
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xDA)))


def _jpeg_size(head: bytes) -> Size | None:
    """Walks the segments up to the first frame header (ITU T.81, B.2.2)."""
    place = 2
    while place + 9 <= len(head):
        if head[place] != 0xFF:
            return None
        marker = head[place + 1]
        if marker == 0xFF:  # fill byte
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        elif marker in _FRAME_HEADERS:
            return int.from_bytes(head[place + 7 : place + 9], "big"), int.from_bytes(
                head[place + 5 : place + 7], "big"
            )
        else:
            place += 2 + max(2, int.from_bytes(head[place + 2 : place + 4], "big"))
    return None


# ---- documents, audio, video --------------------------------------------------------------------

_PDF_PAGE = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_PDF_COUNT = re.compile(rb"/Count\s{1,8}(\d{1,5})")


def _document_tokens(data: str | None, media_type: str | None, page: int) -> int:
    if not data:
        return UNKNOWN_DOCUMENT_PAGES * page
    if media_type and media_type.startswith("text/"):
        return ceil(_byte_count(data) / BYTES_PER_TEXT_TOKEN)
    return (_pdf_pages(data) or max(1, ceil(_byte_count(data) / BYTES_PER_PAGE))) * page


def _pdf_pages(data: str) -> int:
    """Pages named in a PDF, or 0: the page objects, or the count in the page tree where those are compressed."""
    if not _decoded(data, 64).lstrip().startswith(b"%PDF"):
        return 0
    content = _decoded(data, len(data))
    counts = [int(number) for number in _PDF_COUNT.findall(content)]
    return len(_PDF_PAGE.findall(content)) or max(counts, default=0)


def _wav_rate(data: str | None) -> int | None:
    """Bytes per second as a WAV header says (the field at byte 28 of the canonical header)."""
    head = _decoded(data, 64) if data else b""
    if head[:4] != b"RIFF" or head[8:16] != b"WAVEfmt " or len(head) < 32:
        return None
    return int.from_bytes(head[28:32], "little") or None


def _seconds(data: str | None, bytes_per_second: int) -> float:
    return _byte_count(data) / bytes_per_second if data else UNKNOWN_SECONDS


# ---- base64 -------------------------------------------------------------------------------------

_URL_SAFE = str.maketrans("-_", "+/", " \t\r\n=")


def _base64_of(media: Media) -> str | None:
    if media.data is not None:
        return media.data
    if media.url and media.url[:5].lower() == "data:":
        return media.url.partition(",")[2]
    return None


def _byte_count(data: str) -> int:
    return len(data) * 3 // 4


def _decoded(data: str, characters: int) -> bytes:
    """The first ``characters`` of base64 data as bytes; nothing where it is not base64."""
    part = data[:characters].translate(_URL_SAFE)
    try:
        return base64.b64decode(part[: len(part) // 4 * 4] + _padded(part))
    except ValueError:
        return b""


def _padded(part: str) -> str:
    """The last, incomplete group of four, made whole. A single character left over holds no byte."""
    rest = part[len(part) // 4 * 4 :]
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""
