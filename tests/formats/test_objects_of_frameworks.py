"""Messages of pydantic-ai: what did not change comes back as the object that it was; an edit touches its part only."""

# ruff: noqa: E402 - imports follow the question whether the framework is installed
from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

theirs = pytest.importorskip("pydantic_ai.messages")

from contextfold import Compactor, formats
from contextfold.formats.pydantic_ai import split
from contextfold.messages import Media, Message, Opaque, Text, ToolCall
from contextfold.tiers import reduce
from contextfold.tokens import TokenCounter

KNOWN = formats.get("pydantic-ai")
IMAGE = theirs.BinaryContent(b"\x89PNG" * 9, media_type="image/png")
ERRORS: list[Any] = [{"type": "missing", "loc": ("room",), "msg": "so it was said " * 900, "input": {}}]
MESSAGES: list[Any] = [
    theirs.ModelRequest(
        [
            theirs.SystemPromptPart("Be kind."),
            theirs.UserPromptPart(["look", theirs.ImageUrl("https://a.example/b.png"), theirs.CachePoint(), IMAGE]),
        ],
        instructions="Be brief.",
    ),
    theirs.ModelResponse(
        [
            theirs.ThinkingPart("hm", id="t", signature="s", provider_name="anthropic", provider_details={"a": 1}),
            theirs.TextPart("I look.", id="x", provider_details={"b": 2}),
            theirs.ToolCallPart("look", {"room": 1}, "c1"),
            theirs.ToolCallPart("look", '{"room": 2}', "c2"),
            theirs.NativeToolCallPart("web_search", {"q": "a"}, "n1"),
            theirs.NativeToolReturnPart("web_search", {"found": []}, "n1"),
            theirs.FilePart(IMAGE),
            theirs.TextPart("", provider_name="google", provider_details={"thought_signature": "c2ln"}),
        ],
        metadata={"own": 1},
    ),
    theirs.ModelRequest(
        [
            theirs.ToolReturnPart("look", {"dry": True}, "c1", metadata={"kept": 1}),
            theirs.ToolReturnPart("look", ["text", IMAGE], "c2"),
            theirs.UserPromptPart("and now?"),
        ]
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=["request", "response", "results"])
def test_what_did_not_change_is_the_very_object(message: Any) -> None:
    decoded = KNOWN.decode(message)
    assert KNOWN.encode([decoded])[0] is message
    rebuilt = KNOWN.encode([decoded.with_parts(decoded.parts)])[0]
    assert rebuilt == message
    assert all(one is other for one, other in zip(rebuilt.parts, message.parts, strict=True))


def test_what_a_tool_of_the_provider_gave_is_read_and_priced_as_what_it_is() -> None:
    hidden = base64.b64encode(bytes(4_000)).decode()
    found = [{"url": f"https://a.example/{n}", "encrypted_content": hidden} for n in range(3)]
    given = theirs.NativeToolReturnPart("web_search", [*found, IMAGE], "n1")
    message = KNOWN.decode(theirs.ModelResponse([given]))
    (part,) = message.parts
    assert isinstance(part, Opaque)
    assert "https://a.example/2" in part.text
    assert hidden not in part.text
    assert TokenCounter().message(message) == pytest.approx(3_000 + TokenCounter().part(Media("image")) + 40, abs=40)
    assert KNOWN.encode([message])[0] is message.source


def test_an_edit_touches_its_own_part_only() -> None:
    message = KNOWN.decode(MESSAGES[1])
    parts = tuple(
        replace(part, arguments='{"room": 9}', edited=True) if isinstance(part, ToolCall) and part.id == "c1" else part
        for part in message.parts
    )
    rebuilt = KNOWN.encode([message.with_parts(parts)])[0]
    changed = [n for n, part in enumerate(rebuilt.parts) if part is not MESSAGES[1].parts[n]]
    assert changed == [2]
    assert rebuilt.parts[2].args == {"room": 9}
    assert rebuilt.metadata == {"own": 1}


ROWS = [{"row": n, "said": "so it was said " * 20} for n in range(60)]
FOUND = {"discovered_tools": [{"name": f"look_{n}", "description": "It looks. " * 30} for n in range(60)]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*RetryPromptPart")
@pytest.mark.parametrize(
    "part",
    [
        lambda: theirs.ToolReturnPart("rows", ROWS, "c1"),
        lambda: theirs.ToolReturnPart("search_tools", FOUND, "c1", tool_kind="tool-search"),
        lambda: theirs.ToolReturnPart("look", ["so it was said " * 900, IMAGE], "c1"),
        lambda: theirs.ToolReturnPart("look", ERRORS, "c1", outcome="retried"),
        lambda: theirs.RetryPromptPart(ERRORS, tool_name="look", tool_call_id="c1"),
        lambda: theirs.RetryPromptPart("so it was said " * 900),
        lambda: theirs.RetryFeedbackPart(ERRORS, retry=theirs.RetryInfo("validation_error")),
        lambda: theirs.UserPromptPart(["so it was said " * 900, theirs.TextContent("and so on " * 900, metadata={})]),
    ],
    ids=["list", "typed", "with image", "retried", "retry of a call", "retry", "feedback", "prompt"],
)
def test_what_is_shortened_can_be_stored_and_loaded_and_is_of_the_same_kind(part: Callable[[], Any]) -> None:
    whole = part()
    message = KNOWN.decode(theirs.ModelRequest([whole]))
    shorter = message.with_parts(tuple(found for one in message.parts if (found := reduce(one, "oversized", 200))))
    wire = KNOWN.encode([shorter])
    assert TokenCounter().message(KNOWN.decode(wire[0])) < 500
    assert wire[0].parts[0].part_kind == whole.part_kind
    (stored,) = theirs.ModelMessagesTypeAdapter.validate_json(theirs.ModelMessagesTypeAdapter.dump_json(wire))
    assert KNOWN.decode(stored).parts == KNOWN.decode(wire[0]).parts
    if isinstance(whole.content, list) and IMAGE not in whole.content and whole.part_kind != "user-prompt":
        assert wire[0].parts[0].content.startswith("[{")  # as it is told a model, and not a text inside of a list


def test_a_file_that_was_uploaded_is_what_its_media_type_says() -> None:
    """An image was priced as ten pages of a document."""
    for media_type, kind in (("image/png", "image"), ("audio/mpeg", "audio"), ("application/pdf", "document")):
        file = theirs.UploadedFile("file-1", "openai", media_type=media_type)
        (part,) = KNOWN.decode(theirs.ModelRequest([theirs.UserPromptPart([file])])).parts
        assert part == Media(kind, url="file-1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "package"), [("langchain", "langchain_core"), ("haystack", "haystack"), ("pydantic-ai", "pydantic_ai")]
)
def test_how_closely_an_image_is_looked_at_is_kept_where_a_format_can_say_it(name: str, package: str) -> None:
    """At low detail an image takes a ninth of the tokens."""
    pytest.importorskip(package)
    format = formats.get(name)
    for media in (Media("image", url="https://a.example/b.png"), Media("image", "image/png", "iVBORw0KGgo=")):
        (wire,) = format.encode([Message("user", (Text("look"), replace(media, detail="low")))])
        told = [part.detail for part in format.decode(wire).parts if isinstance(part, Media)]
        assert told == ["low"] or (name == "haystack" and media.url)  # which takes no addresses


def test_time_to_read_a_prompt_of_many_items_does_not_grow_with_their_square() -> None:
    """Behind each item all others were copied: 40,000 took a second."""

    def seconds(count: int) -> float:
        items = [theirs.CachePoint() if n % 3 else f"{n}" for n in range(count)]
        began = time.process_time()
        (prompt, *_) = KNOWN.decode(theirs.ModelRequest([theirs.UserPromptPart(items)])).parts
        assert len(prompt.source.behind) == 2
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (1_000, 32_000))
    assert many < 80 * few


def test_a_request_is_split_into_messages_of_one_kind_without_losing_a_part() -> None:
    pieces = split(MESSAGES[2])
    assert [part for piece in pieces for part in piece.parts] == list(MESSAGES[2].parts)
    assert [KNOWN.decode(piece).is_user_turn for piece in pieces] == [False, True]
    assert [KNOWN.decode(piece).role for piece in split(MESSAGES[0])] == ["system", "user"]


def test_a_result_without_its_call_is_shown_as_a_prompt_beside_what_else_a_request_holds() -> None:
    """It became a part of an answer, which no request may have; behind another result it was lost."""
    ask = theirs.ModelRequest([theirs.UserPromptPart("look")])
    called = theirs.ModelResponse([theirs.ToolCallPart("look", {}, "c1")])
    known, stray = theirs.ToolReturnPart("look", "dry", "c1"), theirs.ToolReturnPart("look", "wet", "c9")
    for parts in ([known, stray], [stray, known], [known, stray, theirs.UserPromptPart("and now?")]):
        told = [ask, called, theirs.ModelRequest(parts)]
        *_, last = Compactor(window=8_000).compact(told, format="pydantic-ai").messages
        assert {part.part_kind for part in last.parts} == {"tool-return", "user-prompt"}
        assert last.parts[0] is known
        assert "wet" in str([part.content for part in last.parts[1:]])
    *_, last = (
        Compactor(window=8_000)
        .compact(
            [
                ask,
                theirs.ModelResponse([theirs.TextPart("ok")]),
                theirs.ModelRequest([stray, theirs.UserPromptPart("so?")]),
            ],
            format="pydantic-ai",
        )
        .messages
    )
    assert {part.part_kind for part in last.parts} == {"user-prompt"}
    assert "wet" in str(last)
