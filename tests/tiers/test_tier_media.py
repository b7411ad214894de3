"""Old media: a reference in their place."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from contextfold.messages import Media, Opaque, Text, ToolResult
from contextfold.tiers.media import MediaReferences, reference

tier = MediaReferences()

kinds = st.sampled_from(("image", "document", "audio", "video"))
media = st.builds(
    Media,
    kinds,
    st.sampled_from((None, "image/png", "application/pdf")),
    st.none() | st.binary(max_size=3_000).map(lambda data: base64.b64encode(data).decode()),
    st.sampled_from((None, "https://example.com/a.png", "file-4711")),
)


def test_the_reference_names_kind_type_and_size() -> None:
    data = base64.b64encode(bytes(5_242_880)).decode()
    assert reference(Media("image", "image/png", data)) == "[image image/png, 5,120 KB removed to save context]"
    wide = base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x04\x00\x00\x00\x03\x00" + bytes(9)).decode()
    assert (
        reference(Media("image", "image/png", wide)) == "[image image/png 1024x768, 33 bytes removed to save context]"
    )
    assert reference(Media("image", url=f"data:image/png;base64,{wide}")).startswith("[image 1024x768, 33 bytes")
    assert reference(Media("audio", data="AAAA")) == "[audio, 3 bytes removed to save context]"


def test_a_url_or_file_id_stays_because_it_still_resolves() -> None:
    """Or replaced by a reference that resolves."""
    part = tier.reduce(Media("image", "image/png", url="https://example.com/a.png"), 0)
    assert part == Text("[image image/png, https://example.com/a.png removed to save context]")


def test_media_in_a_tool_result_are_replaced_where_they_stood() -> None:
    words, block = Text("a screenshot"), Opaque("citation", "[1]")
    result = ToolResult("call_1", (words, Media("image", "image/png", "AAAA"), block), name="look", source={"a": 1})
    once = tier.reduce(result, 0)
    assert isinstance(once, ToolResult)
    assert once.content[0] is words
    assert once.content[1] == Text("[image image/png, 3 bytes removed to save context]")
    assert once.content[2] is block
    assert (once.call_id, once.name, once.source, once.edited) == ("call_1", "look", {"a": 1}, True)


@given(st.lists(media | st.just(Text("words")), max_size=5))
def test_reducing_again_changes_nothing_and_no_media_are_left(content: list[Media | Text]) -> None:
    result = ToolResult("call_1", tuple(content))
    once = tier.reduce(result, 0)
    assert isinstance(once, ToolResult)
    assert tier.reduce(once, 0) is once
    assert not any(isinstance(part, Media) for part in once.content)
    assert (once is result) == (not any(isinstance(part, Media) for part in content))


def test_other_parts_come_back_as_they_are() -> None:
    for part in (Text("words"), Opaque("citation"), ToolResult("call_1", (Text("words"),))):
        assert tier.reduce(part, 0) is part
