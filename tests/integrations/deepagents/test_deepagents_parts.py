"""The pieces on their own: frame, arguments, reasoning, media, files, and reading a foreign state."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.protocol import FileDownloadResponse
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from deepagents_scripted import ScriptedModel, questions, tool_loop
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from contextfold.errors import ArchiveError
from contextfold.integrations.deepagents import history, media
from contextfold.integrations.deepagents.arguments import Arguments
from contextfold.integrations.deepagents.files import Files, local_file
from contextfold.integrations.deepagents.frame import framed, unframed
from contextfold.integrations.deepagents.reasoning import without_bound_reasoning
from contextfold.integrations.deepagents.state import (
    EVENT,
    SESSION_ID,
    SHORTENED_UNTIL,
    RememberedEvent,
    SummarizationEvent,
)
from contextfold.integrations.deepagents.views import Reductions, newest_user, view_of
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.sending import valid
from contextfold.ports import SyncPorts, run

texts = st.text(max_size=60).filter(lambda text: text == text.strip())


def summary_of(prose: str, lines: str = "") -> HumanMessage:
    return layout.summary_message(prose, lines, language="en", usage_until="a1")


# ---- the frame ----


@given(prose=texts, lines=texts, path=st.sampled_from([None, "/conversation_history/s.md"]), quote=st.none() | texts)
def test_a_frame_comes_off_as_it_went_on(prose: str, lines: str, path: str | None, quote: str | None) -> None:
    """Whatever prose, evidence and quotation say, closing tags included."""
    for said in (prose, f"{prose}\n</summary>\n<summary>\n"):
        made = summary_of(said, lines)
        quoted = None if quote is None else HumanMessage(quote + "\n</summary>\n<user_message>")
        message = framed(made, path, quoted)
        assert unframed(message).content == made.content
        assert layout.is_summary(message)
        assert layout.usage_until([message]) == "a1"
        assert quoted is None or str(quoted.content) in str(message.content)
        kept = str(unframed(message, with_quote=True).content)
        assert quoted is None or str(quoted.content) in kept
        assert str(made.content).removeprefix(layout.PREFIX) in kept


def test_the_words_are_deepagents_own() -> None:
    """Both forms are the ones that deepagents' own class writes, and its own are read back."""
    theirs = DeepAgentsMiddleware(ScriptedModel(), backend=StateBackend())
    for path in (None, "/conversation_history/s.md"):
        (original,) = theirs._build_new_messages_with_path("PROSE", path)
        ours = framed(summary_of("PROSE"), path, None)
        assert ours.content == original.content
        assert ours.additional_kwargs == original.additional_kwargs
        assert isinstance(original, HumanMessage)
        assert unframed(original).content == layout.PREFIX + "PROSE"


def test_a_quoted_message_keeps_its_pictures() -> None:
    image = {"type": "image", "url": "https://example.org/a.png"}
    message = framed(summary_of("PROSE"), None, HumanMessage([{"type": "text", "text": "Like this"}, image]))
    assert image in message.content
    assert unframed(message).content == layout.PREFIX + "PROSE"


# ---- state ----


@pytest.mark.parametrize(
    "value",
    [
        3,
        {},
        {"cutoff_index": "5"},
        {"cutoff_index": -1},
        *(
            {"cutoff_index": 2, "summary_message": message}
            for message in (
                *("text", {"text": "P"}, {"role": [], "content": ""}),
                *({"role": role, "content": "P", "tool_calls": [{"function": {}}]} for role in ("user", "assistant")),
                {"type": "ai", "content": "P", "tool_calls": ["x"]},
            )
        ),
    ],
)
def test_an_event_that_is_none_is_left_aside(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"):
        assert SummarizationEvent.from_state(value) is None
    assert "_summarization_event" in caplog.text


@pytest.mark.parametrize("odd", [3, ["m2"], {"id": "m2"}])
def test_an_event_whose_texts_are_none_holds_by_its_index(odd: Any) -> None:
    """A client may state a thread: an id that was a list ended the run in a ``TypeError``."""
    given = {"cutoff_index": 2, "summary_message": summary_of("P")}
    state = {EVENT: {**given, **dict.fromkeys(("file_path", "covered_to", "kept_from"), odd)}}
    found = RememberedEvent.from_state({**state, **dict.fromkeys((SESSION_ID, SHORTENED_UNTIL), odd)})
    assert found == RememberedEvent.from_state({EVENT: given})
    assert found.aligned([HumanMessage(str(n), id=f"m{n}") for n in range(4)]) == found


def test_only_what_changed_is_saved() -> None:
    event = SummarizationEvent(3, summary_of("P"), "/p.md", 9, 3)
    before = RememberedEvent(event, "session_1", None)
    assert before.update_since(before) == {}
    assert before.update_since(RememberedEvent()).keys() == {"_summarization_event", "_summarization_session_id"}
    assert RememberedEvent.from_state(before.update_since(RememberedEvent())) == before
    assert RememberedEvent(event, "session_1", "m4").update_since(before) == {"_contextfold_shortened_until": "m4"}


def test_a_new_event_is_written_with_the_id_of_its_session() -> None:
    """deepagents' updates always hold both, and programs that read updates go by that."""
    before = RememberedEvent(SummarizationEvent(3, summary_of("P"), "/p.md", 9, 3), "session_1", None)
    after = RememberedEvent(SummarizationEvent(6, summary_of("Q"), "/p.md", 12, 6), "session_1", None)
    assert after.update_since(before).keys() == {"_summarization_event", "_summarization_session_id"}


def test_an_event_from_before_created_at_keeps_what_was_kept() -> None:
    """Events of older releases: reasoning of kept messages stays, originals count as saved up to the cutoff."""
    event = SummarizationEvent.from_state({"cutoff_index": 2, "summary_message": summary_of("P"), "file_path": None})
    assert event is not None
    assert (event.created_at, event.archived_until) == (2, 2)


# ---- views ----


def test_a_view_begins_with_instructions_and_survives_a_trimmed_state() -> None:
    reductions = Reductions(Arguments.of(None))
    messages: list[AnyMessage] = [SystemMessage("Be brief.", id="s"), *questions(3)]
    event = SummarizationEvent(5, summary_of("P"), None, 6, 5)
    view = view_of(messages, event, 0, reductions)
    assert [message.id for message in view.messages] == ["s", None, "h2", "a2"]
    assert view.origins == (0, None, 5, 6)
    trimmed = view_of(messages[5:], event, 0, reductions)
    assert [message.id for message in trimmed.messages] == [None, "h2", "a2"]
    assert newest_user([event.summary]) is None


def test_broken_histories_are_mended_in_the_view_only() -> None:
    """An orphan result, a result behind a person's message, a call without result, a repeated id."""
    call = {"name": "look", "args": {}, "id": "c1"}
    parallel = AIMessage("", tool_calls=[call, {**call, "id": "c2"}])
    result, other = ToolMessage("1", tool_call_id="c1"), ToolMessage("2", tool_call_id="c2")
    whole: list[AnyMessage] = [HumanMessage("Go"), parallel, result, other, AIMessage("Done")]
    assert valid(whole) is whole
    late = valid([HumanMessage("Go"), parallel, result, HumanMessage("Hurry"), other, AIMessage("Done")])
    assert [message.type for message in late] == ["human", "ai", "tool", "tool", "human", "ai"]
    assert all(message.type != "tool" for message in valid([result, HumanMessage("Go")]))
    dangling = valid([HumanMessage("Go"), parallel, result, AIMessage("Done"), HumanMessage("Well?")])
    assert [message.type for message in dangling[:4]] == ["human", "ai", "tool", "tool"]
    twice = AIMessage("", tool_calls=[call, call])
    assert valid([HumanMessage("Go"), twice, result, HumanMessage("Well?")])


# ---- arguments ----


def calling(content: str, tool: str = "write_file") -> AIMessage:
    """A call in all the places where messages may state it: listed, as Anthropic's block, raw as OpenAI's."""
    arguments = {"file_path": "/a.py", "content": content, "lines": [content]}
    raw = {"id": "c", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return AIMessage(
        [{"type": "text", "text": "I write."}, {"type": "tool_use", "id": "c", "name": tool, "input": arguments}],
        tool_calls=[{"name": tool, "args": arguments, "id": "c"}],
        additional_kwargs={"tool_calls": [raw]},
    )


def test_arguments_are_truncated_in_every_place_they_are_stated() -> None:
    arguments = Arguments.of({"trigger": ("messages", 1), "max_length": 100, "truncation_text": "[cut]"})
    message = calling("x" * 101)
    shorter = arguments.truncated(message)
    assert isinstance(shorter, AIMessage)
    expected = {"file_path": "/a.py", "content": "x" * 20 + "[cut]", "lines": ["x" * 101]}
    assert shorter.tool_calls[0]["args"] == expected
    assert shorter.content[1]["input"] == expected  # type: ignore[index]
    assert json.loads(shorter.additional_kwargs["tool_calls"][0]["function"]["arguments"]) == expected
    assert message == calling("x" * 101)
    for untouched in (calling("x" * 100), calling("x" * 101, tool="grep"), HumanMessage("x" * 101)):
        assert arguments.truncated(untouched) is untouched


def test_what_is_recent_is_said_in_messages_tokens_or_a_fraction() -> None:
    sizes = [10] * 10
    for keep, window, expected in (
        (("messages", 3), None, 7),
        (("messages", 30), None, 0),
        (("tokens", 35), None, 7),
        (("tokens", 0.35 * 101), None, 7),
        (("tokens", 1_000), None, 0),
        (("fraction", 0.5), 70, 7),
        (("fraction", 0.5), None, 0),
    ):
        assert (
            Arguments.of({"trigger": ("messages", 1), "keep": keep}).border(len(sizes), lambda: sizes, window)
            == expected
        )
    for trigger, window, expected_due in (
        (("messages", 10), None, True),
        (("messages", 11), None, False),
        (("tokens", 100), None, True),
        (("tokens", 101), None, False),
        (("tokens", 0.8 * 124.9), None, True),
        (("tokens", 0.8 * 125.1), None, False),
        (("fraction", 0.5), 200, True),
        (("fraction", 0.5), 202, False),
        (("fraction", 0.5), None, False),
        (None, 10, False),
    ):
        arguments = Arguments.of({"trigger": trigger})
        assert arguments.is_due(tokens=100, messages=10, window=window) is expected_due


# ---- reasoning ----


def test_only_what_claude_ties_is_dropped() -> None:
    thinking, summary = {"type": "thinking", "thinking": "hm"}, {"type": "reasoning", "summary": []}
    text = {"type": "text", "text": "Yes."}
    for provider, model, left in (
        ("anthropic", "", [text]),
        ("bedrock_converse", "anthropic.claude-5", [text]),
        ("bedrock", "openai.gpt", [thinking, summary, text]),
        ("openai", "gpt", [thinking, summary, text]),
        (None, "", [summary, text]),
    ):
        metadata = {"model_provider": provider, "model_name": model} if provider else {}
        message = AIMessage([thinking, summary, text], response_metadata=metadata)
        found = without_bound_reasoning(message)
        assert found is not None
        assert found.content == left
        assert found is message or left != message.content
    calls: Any = [{"name": "ls", "args": {}, "id": "c"}]
    with_call = without_bound_reasoning(AIMessage([thinking], tool_calls=calls))  # type: ignore[list-item]
    assert with_call is not None
    assert with_call.content == []


# ---- what the history file holds ----


def test_the_history_file_leaves_nothing_out(tmp_path: Path) -> None:
    """LangChain's writer cuts some blocks to 500 characters and skips others: they stand there as JSON."""
    long = "y" * 900
    messages: list[AnyMessage] = [
        SystemMessage("never saved"),
        HumanMessage([{"type": "text-plain", "text": f"{long} plain"}, {"type": "wonder", "value": "w-1"}, "bare"]),
        AIMessage([{"type": "server_tool_result", "tool_call_id": "s", "output": f"{long} result"}]),
        HumanMessage("half of a pair: \ud83d"),
        *tool_loop(2),
    ]
    saved = run(history.HistoryFiles("").save("session_1", messages, files(tmp_path)))
    assert saved.path == "/conversation_history/session_1.md"
    text = (tmp_path / "conversation_history" / "session_1.md").read_text()
    for part in (f"{long} plain", "w-1", "bare", f"{long} result", "half of a pair", "line-1-39", "/src/item_1.py"):
        assert part in text
    assert "never saved" not in text
    nothing = run(history.HistoryFiles("").save("session_2", messages[:1], files(tmp_path)))
    assert nothing.path is not None
    assert not (tmp_path / "conversation_history" / "session_2.md").exists()


def test_media_are_told_by_their_bytes() -> None:
    block = {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}
    message = ToolMessage([{"type": "text", "text": "t"}, block], tool_call_id="c")
    referred = media.with_references(message, "/m")
    assert referred.content[1]["type"] == "audio"  # type: ignore[index]
    assert referred.content[1]["url"].startswith("/m/")  # type: ignore[index]
    plain = HumanMessage("text")
    assert media.with_references(plain, "/m") is plain
    linked = HumanMessage([{"type": "image", "url": "https://example.org/a.png"}])
    assert media.with_references(linked, "/m") is linked


PIXELS = b"\x89PNG\r\n\x1a\n" + b"pixels" * 20
BASE64 = base64.b64encode(PIXELS).decode()
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
SVG64 = base64.b64encode(SVG).decode()


@pytest.mark.parametrize(
    ("block", "ending", "data"),
    [
        ({"type": "image", "url": f"data:image/png;base64,{BASE64}"}, "png", PIXELS),
        ({"type": "image", "url": f"data:image/svg+xml,{quote(SVG)}"}, "svg", SVG),
        (
            {"type": "image", "url": f"data:image/svg+xml;charset=utf-8;base64,{SVG64}"},
            "svg",
            SVG,
        ),
        ({"type": "image_url", "image_url": {"url": f"data:image/svg+xml,{quote(SVG)}"}}, "svg", SVG),
        ({"type": "image", "source_type": "url", "url": f"data:image/png;base64,{BASE64}"}, "png", PIXELS),
        ({"type": "image", "source": {"type": "url", "url": f"data:image/png;base64,{BASE64}"}}, "png", PIXELS),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}"}, "png", PIXELS),
        ({"type": "file", "url": f"data:application/pdf;base64,{BASE64}"}, "pdf", PIXELS),
        ({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{BASE64}"}}, "pdf", PIXELS),
        ({"type": "input_file", "file_data": f"data:application/pdf;base64,{BASE64}"}, "pdf", PIXELS),
        ({"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}}, "mp3", PIXELS),
        ({"type": "video", "url": f"data:video/mp4;base64,{BASE64}"}, "mp4", PIXELS),
        ({"type": "media", "data": BASE64, "mime_type": "image/png"}, "png", PIXELS),
        ({"type": "image", "base64": "\n".join((BASE64[:60], BASE64[60:])), "mime_type": "image/png"}, "png", PIXELS),
    ],
)
def test_every_shape_of_a_medium_is_in_the_history_folder(
    block: dict[str, Any], ending: str, data: bytes, tmp_path: Path
) -> None:
    """A ``data:`` URL anywhere is a medium that the message carries, encoded as base64 or not."""
    saved = run(history.HistoryFiles("").save("session_1", [HumanMessage([block], id="m")], files(tmp_path)))
    assert saved == history.Saved("/conversation_history/session_1.md")
    (stored,) = (tmp_path / "conversation_history" / "media").iterdir()
    assert (stored.suffix, stored.read_bytes()) == (f".{ending}", data)
    text = (tmp_path / "conversation_history" / "session_1.md").read_text()
    assert f"/conversation_history/media/{stored.name}" in text
    assert BASE64 not in text


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": "no base64 at all!", "mime_type": "image/png"},
        {"type": "image", "url": "data:image/png;base64,%%%"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}},
    ],
)
def test_a_medium_that_is_no_base64_is_never_stored_and_that_is_said(block: dict[str, Any], tmp_path: Path) -> None:
    message = HumanMessage([{"type": "text", "text": "Look:"}, block], id="m")
    with pytest.warns(UserWarning, match="1 media could not be offloaded: image/png that is not base64"):
        run(history.HistoryFiles("").save("session_1", [message], files(tmp_path)))
    text = (tmp_path / "conversation_history" / "session_1.md").read_text()
    assert "failed_to_offload" in text
    assert not (tmp_path / "conversation_history" / "media").exists()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "hologram", "where": "hologram-7"},
        {"type": "image_url", "image_url": "https://example.org/plain-text-url.png"},
    ],
)
def test_a_block_that_the_writer_leaves_out_is_in_the_history_as_it_is(block: dict[str, Any], tmp_path: Path) -> None:
    run(history.HistoryFiles("").save("session_1", [HumanMessage([block], id="m")], files(tmp_path)))
    text = (tmp_path / "conversation_history" / "session_1.md").read_text()
    assert any(word in text for word in ("hologram-7", "plain-text-url.png"))


def test_a_picture_that_is_bytes_is_stored_as_those_bytes(tmp_path: Path) -> None:
    block = {"type": "image", "image": {"source": {"bytes": b"raw"}, "format": "png"}}
    run(history.HistoryFiles("").save("session_1", [HumanMessage([block], id="m")], files(tmp_path)))
    (stored,) = (tmp_path / "conversation_history" / "media").iterdir()
    assert stored.read_bytes() == b"raw"
    assert stored.name in (tmp_path / "conversation_history" / "session_1.md").read_text()


# ---- files ----


def files(folder: Path, backend: Any = None) -> Files:
    return Files(backend or FilesystemBackend(root_dir=folder, virtual_mode=True), SyncPorts(), is_async=False)


def test_a_path_is_a_file_on_disk_only_where_it_can_be_appended_to(tmp_path: Path) -> None:
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    plain = FilesystemBackend(root_dir=tmp_path, virtual_mode=False)
    target = tmp_path / "a.md"
    target.write_text("here")
    assert local_file(backend, "/a.md") == target
    assert local_file(plain, str(target)) == target
    assert local_file(backend, "/missing.md") is None
    assert local_file(backend, "/../a.md") is None
    (tmp_path / "out").symlink_to("/etc")
    assert local_file(backend, "/out/hostname") is None
    assert local_file(StateBackend(), "/a.md") is None
    routed = CompositeBackend(default=StateBackend(), routes={"/k/": backend, "/k/deep": StateBackend()})
    assert local_file(routed, "/k/a.md") == target
    assert local_file(routed, "/k/deep/a.md") is None
    assert local_file(routed, "/a.md") is None

    class Sealed(FilesystemBackend):
        def write(self, file_path: str, content: str) -> Any:
            return super().write(file_path, content[::-1])

    assert local_file(Sealed(root_dir=tmp_path, virtual_mode=True), "/a.md") is None


def test_an_append_that_does_not_arrive_is_taken_back(tmp_path: Path) -> None:
    class Stale(FilesystemBackend):
        def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
            return [FileDownloadResponse(path=paths[0], content=b"old", error=None)]

    (tmp_path / "a.md").write_text("old")
    with pytest.raises(ArchiveError, match="does not hold what was appended"):
        run(files(tmp_path, Stale(root_dir=tmp_path, virtual_mode=True)).append("/a.md", "new"))
    assert (tmp_path / "a.md").read_text() == "old"


def test_a_disk_that_fills_up_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    (tmp_path / "a.md").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match="No space left"):
        run(files(tmp_path).append("/a.md", "new"))
    assert (tmp_path / "a.md").read_text() == "old"


@pytest.mark.parametrize("answer", [[], [FileDownloadResponse(path="/a", content=None, error="permission_denied")]])
def test_a_file_that_cannot_be_read_is_not_overwritten(tmp_path: Path, answer: Any) -> None:
    """deepagents takes any failure for a new file and writes over what is there."""

    class Unreadable(FilesystemBackend):
        def download_files(self, paths: list[str]) -> Any:
            return answer

        def write(self, file_path: str, content: str) -> Any:
            raise AssertionError("overwritten")

    with pytest.raises(ArchiveError, match="cannot be read"):
        run(files(tmp_path, Unreadable(root_dir=tmp_path, virtual_mode=True)).append("/a.md", "new"))


def test_a_history_file_that_is_not_utf_8_ends_no_turn_and_stays_as_it_is(tmp_path: Path) -> None:
    """A backend that takes whole files again, as all but a real folder do; someone else wrote to the file."""

    class Remote(FilesystemBackend):
        def write(self, file_path: str, content: str) -> Any:
            raise AssertionError("overwritten")

    backend = Remote(root_dir=tmp_path, virtual_mode=True)
    (tmp_path / "conversation_history").mkdir()
    (tmp_path / "conversation_history" / "one.md").write_bytes(b"caf\xe9")
    with pytest.warns(UserWarning, match="is not UTF-8"):
        saved = run(history.HistoryFiles("").save("one", [HumanMessage("Hello.", id="m")], files(tmp_path, backend)))
    assert saved.path is None
    assert (tmp_path / "conversation_history" / "one.md").read_bytes() == b"caf\xe9"


def test_a_backend_that_raises_for_a_missing_file_has_none(tmp_path: Path) -> None:
    class Raising(FilesystemBackend):
        def download_files(self, paths: list[str]) -> Any:
            if not (tmp_path / paths[0].lstrip("/")).exists():
                raise FileNotFoundError(paths[0])
            return super().download_files(paths)

    run(files(tmp_path, Raising(root_dir=tmp_path, virtual_mode=True)).append("/a.md", "new"))
    assert (tmp_path / "a.md").read_text() == "new"


# ---- sizes to aim at ----
