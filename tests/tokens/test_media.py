"""Media by the provider's rule, from file headers and never from the length of base64."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.messages import Media
from contextfold.tokens import media as prices
from contextfold.tokens.media import image_size, image_tokens, media_tokens


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int, filler: int = 0) -> bytes:
    return (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
        + struct.pack(">II", width, height)
        + b"\x08\x06\x00\x00\x00"
        + bytes(filler)
    )


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    frame = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + bytes(10)
    return b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + before + b"\xff\xff\x01" + frame


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + rest + bytes(16)


SIDES = st.integers(1, 16_000)


@given(SIDES, SIDES)
def test_each_kind_of_image_says_its_size_in_its_header(width: int, height: int) -> None:
    lossless = b"\x00\x00\x00\x00\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    extended = bytes(8) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    lossy = bytes(4) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
    images = (
        png(width, height),
        gif(width, height),
        jpeg(width, height),
        webp(b"VP8L", lossless),
        webp(b"VP8X", extended),
        webp(b"VP8 ", lossy),
    )
    assert [image_size(encoded(image)) for image in images] == [(width, height)] * 6


def test_a_camera_preview_before_the_size_does_not_hide_it() -> None:
    segments = (b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)) * 4
    assert image_size(encoded(jpeg(4_000, 3_000, before=segments))) == (4_000, 3_000)


@pytest.mark.parametrize(
    "data",
    [
        None,
        "",
        "!!! not base64 !!!",
        "A",
        encoded(b"\x89PNG\r\n\x1a\n"),
        encoded(b"GIF89a"),
        encoded(b"RIFF1234WEBP"),
        encoded(webp(b"ANIM", bytes(20))),
        encoded(b"\xff\xd8\xff"),
        encoded(b"\xff\xd8" + bytes(40)),
        encoded(b"\xff\xd8\xff\xd0" + b"\xff\xe0\x00\x02" * 4),
        encoded(png(0, 10)),
        "\u00e9\u00e9\u00e9\u00e9",
    ],
)
def test_a_broken_header_is_an_unknown_size(data: str | None) -> None:
    assert image_size(data) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_a_size_fail(data: bytes) -> None:
    for head in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"RIFF0000WEBPVP8X"):
        size = image_size(encoded(head + data))
        assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((512, 512), 255), ((1024, 1024), 765), ((2048, 4096), 1105), ((1, 1), 255), ((10_000, 10), 765)],
)
def test_openai_counts_tiles_of_512_pixels_after_scaling(size: tuple[int, int], tokens: int) -> None:
    """765 and 1,105 are the two examples of OpenAI's own page."""
    assert image_tokens(size, "openai") == tokens


def test_openai_low_detail_has_one_price() -> None:
    assert image_tokens((4_000, 3_000), "openai", "low") == 85 == image_tokens(None, "openai", "low")


@pytest.mark.parametrize(
    ("size", "tokens"), [((200, 200), 54), ((1000, 1000), 1334), ((4_000, 100), 82), ((8_000, 8_000), 1600)]
)
def test_anthropic_counts_pixels_by_750_after_scaling(size: tuple[int, int], tokens: int) -> None:
    """54 and 1,334 are the examples of Anthropic's own page."""
    assert image_tokens(size, "anthropic") == tokens


@pytest.mark.parametrize(
    ("size", "tokens"), [((384, 384), 258), ((960, 540), 1_548), ((600, 1), 1_120), ((40, 9_000), 36 * 258)]
)
def test_google_counts_tiles_and_of_a_thin_image_no_more_than_of_a_wide_one(size: tuple[int, int], tokens: int) -> None:
    """960 x 540 in six tiles is the example of Google's own page; a rule of 600 x 1 pixels was 154,800 tokens."""
    assert image_tokens(size, "google") == tokens


def test_an_unknown_size_has_the_stated_default() -> None:
    assert media_tokens(Media("image", url="https://example.org/a.png")) == prices.OPENAI_UNKNOWN_IMAGE
    assert media_tokens(Media("image"), "anthropic") == prices.ANTHROPIC_LARGEST_IMAGE


@given(st.integers(0, 50_000))
def test_an_image_is_never_priced_by_its_length(filler: int) -> None:
    assert media_tokens(Media("image", data=encoded(png(600, 600, filler)))) == media_tokens(
        Media("image", data=encoded(png(600, 600)))
    )


def test_a_data_url_is_read_like_data() -> None:
    data = encoded(png(200, 200))
    assert media_tokens(Media("image", url=f"data:image/png;base64,{data}"), "anthropic") == 54


def test_line_breaks_and_url_safe_letters_are_base64_too() -> None:
    image = png(0x3E, 0xFB, 60)
    assert (
        image_size(base64.encodebytes(image).decode())
        == image_size(base64.urlsafe_b64encode(image).decode())
        == (62, 251)
    )


def test_pages_of_a_pdf_are_counted() -> None:
    pages = b"%PDF-1.7\n<< /Type /Pages /Count 3 >>" + b"<< /Type /Page /Parent 1 0 R >>\n" * 3
    assert media_tokens(Media("document", "application/pdf", encoded(pages))) == 3 * prices.PAGE_TOKENS


def test_the_page_tree_counts_where_page_objects_are_compressed() -> None:
    assert media_tokens(Media("document", data=encoded(b"%PDF-1.7\n<< /Count 12 >>"))) == 12 * prices.PAGE_TOKENS


def test_other_documents_are_priced_by_size() -> None:
    assert media_tokens(Media("document", data=encoded(bytes(120_000)))) == 3 * prices.PAGE_TOKENS
    assert media_tokens(Media("document", "text/plain", encoded(b"word " * 100))) == pytest.approx(125, abs=2)
    assert media_tokens(Media("document", url="file-1")) == prices.UNKNOWN_DOCUMENT_PAGES * prices.PAGE_TOKENS


def test_sound_and_film_are_priced_by_their_length_in_seconds() -> None:
    wav = (
        b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"
        + struct.pack("<II", 8_000, 16_000)
        + bytes(32_000)
    )
    assert media_tokens(Media("audio", data=encoded(wav))) == pytest.approx(20, abs=1)
    assert media_tokens(Media("audio", data=encoded(bytes(160_000)))) == pytest.approx(100, abs=1)
    assert media_tokens(Media("audio", url="https://example.org/a.mp3")) == 600
    assert media_tokens(Media("video", data=encoded(bytes(1_250_000)))) == pytest.approx(2_630, abs=2)
