"""The commands on stores, as a person types them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from typer.testing import CliRunner

from contextfold import Compactor, Policy
from contextfold.cli.app import app
from contextfold.cli.options import BAD_INPUT
from real_files import BENCHMARKS_ONLY, files


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("CONTEXTFOLD_STORE", raising=False)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    outcome = CliRunner().invoke(app, list(arguments))
    assert outcome.exit_code == code, outcome.output
    return outcome.output


def conversation(turns: int = 40) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for n in range(turns):
        found.append({"role": "user", "content": f"question {n} about ticket TCK-{n:04d} " + "word " * 80})
        found.append({"role": "assistant", "content": f"answer {n}"})
    return found


@pytest.fixture
def imported(folder: Path) -> list[dict[str, Any]]:
    messages = conversation()
    (folder / "talk.json").write_text(json.dumps(messages))
    assert "talk: 80 messages" in run("sessions", "import", "talk.json", "--thread", "talk")
    return messages


def test_a_summary_behind_which_something_came_back_is_shown_as_the_one_in_force() -> None:
    policy = Policy(evidence=False, recall=True)
    session = Compactor(window=4_000, policy=policy).session("talk", "sqlite:///contextfold.db")
    for n in range(60):
        answer = "The gateway listens on port 8443. " if n == 3 else ""
        session.append([{"role": "user", "content": f"Now part {n}, please."}])
        session.append([{"role": "assistant", "content": f"{answer}Part {n} is done. " + f"filler{n} " * 60}])
    session.view()
    session.append([{"role": "user", "content": "Which port does the gateway listen on?"}])
    assert "8443" in session.view()[-1]["content"]
    assert "in force" in run("sessions", "show", "talk")
    session.undo()
    assert "in force" not in run("sessions", "show", "talk")


def test_what_was_imported_comes_out_again_word_for_word(imported: list[dict[str, Any]], folder: Path) -> None:
    assert json.loads(run("sessions", "export", "talk")) == imported
    run("sessions", "export", "talk", "--output", "out.json")
    assert json.loads((folder / "out.json").read_text()) == imported


def test_a_command_that_waits_for_another_worker_says_so(imported: list[dict[str, Any]]) -> None:
    """For one that was killed it stood still for a minute, and nobody knew why."""
    session = Compactor().session("talk", "sqlite:///contextfold.db")
    assert session.store.acquire_lease(session.thread, "killed", 3.0)
    said = run("sessions", "compact", "talk", "--window", "4000")
    assert "tokens became" in said
    assert said.count("another worker is summarizing 'talk': it is waited for, if it died for up to 60 seconds") == 1


def test_a_thread_is_listed_compacted_shown_searched_and_undone(imported: list[dict[str, Any]]) -> None:
    assert "talk" in run("sessions", "list")
    assert "tokens became" in run("sessions", "compact", "talk", "--window", "4000")
    view = json.loads(run("sessions", "export", "talk", "--view", "--window", "4000"))
    assert len(view) < 40
    assert view[-1] == imported[-1]
    shown = run("sessions", "show", "talk")
    assert "summarized" in shown
    assert "in force" in shown
    found = run("recall", "talk", "TCK-0003")
    assert "summarized" in found
    assert "question 3 about" in found
    assert run("sessions", "recall", "talk", "TCK-0003") == found
    assert "is undone" in run("sessions", "undo", "talk")
    assert "undone" in run("sessions", "show", "talk")
    assert "nothing to undo" in run("sessions", "undo", "talk")
    assert json.loads(run("sessions", "export", "talk", "--view")) == imported


def test_a_view_that_does_not_fit_its_window_is_exported_with_a_word(imported: list[dict[str, Any]]) -> None:
    outcome = CliRunner().invoke(app, ["sessions", "export", "talk", "--view", "--window", "1000"])
    assert "more than the window of 1,000" in outcome.stderr
    assert json.loads(outcome.stdout) == imported


def test_tables_cut_nothing_off_in_a_narrow_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing: a thread's id is copied from the list, and the last column tells which summary is in force."""
    monkeypatch.setenv("COLUMNS", "80")
    thread = "projects/" + "-".join(f"part{n}" for n in range(20))
    (folder / "talk.json").write_text(json.dumps(conversation()))
    run("sessions", "import", "talk.json", "--thread", thread)
    run("sessions", "compact", thread, "--window", "4000")
    listed = ["thread", "messages", "tokens", "summary up to", "last written"]
    idle = ["thread", "messages", "last written"]
    for columns, command in ((listed, ["list"]), (idle, ["prune", "--idle-days", "0.0000001"])):
        heads, *rows = run("sessions", *command).splitlines()
        assert re.split(" {2,}", heads.strip()) == columns
        assert "".join(row.split(" ")[0] for row in rows).startswith(thread)
    heads, row, *_ = run("sessions", "show", thread).splitlines()[2:]
    assert heads.split() == ["summary", "made", "why", "by", "messages", "tokens", "calls", "state"]
    assert row.rstrip().endswith("in force")


def test_reports_are_json_on_request(imported: list[dict[str, Any]]) -> None:
    run("sessions", "compact", "talk", "--window", "4000")
    (row,) = json.loads(run("sessions", "list", "--report", "json"))
    assert (row["thread"], row["messages"], row["format"]) == ("talk", 80, "openai-chat")
    shown = json.loads(run("sessions", "show", "talk", "--report", "json"))
    assert sum(shown["fates"].values()) == 80
    assert shown["summaries"][0]["trigger"] == "manual"
    hits = json.loads(run("recall", "talk", "TCK-0003", "--report", "json", "--limit", "1"))
    assert [(hit["index"], hit["evicted"]) for hit in hits] == [(6, True)]


def test_originals_can_be_archived_first(imported: list[dict[str, Any]], folder: Path) -> None:
    run("sessions", "compact", "talk", "--window", "4000", "--archive", f"file://{folder}/kept")
    (file,) = (folder / "kept").rglob("*.md")
    assert "TCK-0003" in file.read_text()
    assert "The originals are kept in file://" in run("sessions", "export", "talk", "--view", "--window", "4000")


def test_a_file_of_several_conversations_becomes_several_threads(folder: Path) -> None:
    lines = [json.dumps({"messages": conversation(2)}), json.dumps({"messages": conversation(3)})]
    (folder / "two.jsonl").write_text("\n".join(lines))
    said = run("sessions", "import", "two.jsonl", "--thread", "x")
    assert "x-1: 4 messages" in said
    assert "x-2: 6 messages" in said
    assert "y: 6 messages" in run("sessions", "import", "two.jsonl", "--thread", "y", "--pick", "2")


@pytest.mark.parametrize("named", [(), ("--thread", "mine")])
def test_an_export_that_has_new_conversations_before_the_old_ones_is_imported_again(folder: Path, named: Any) -> None:
    """As ChatGPT's and Claude's have: threads were named by places in the file, so the second import was refused."""

    def exported(*ids: str) -> None:
        said = [{"uuid": "m", "sender": "human", "text": "Which port?", "content": []}]
        talks = [{"uuid": id, "chat_messages": [{**said[0], "text": f"{id}: which port?"}]} for id in ids]
        (folder / "conversations.json").write_text(json.dumps(talks))

    exported("old", "older")
    run("sessions", "import", "conversations.json", *named)
    exported("new", "old", "older")
    base = "mine-" if named else "conversations.json#"
    there = [f"{base}{id}: 1 messages, there already" for id in ("old", "older")]
    assert run("sessions", "import", "conversations.json", *named).splitlines() == [f"{base}new: 1 messages", *there]


def test_an_import_that_broke_off_is_repeated_and_goes_on(folder: Path) -> None:
    """Its second conversation cannot be stored; the first one is."""
    lines = [json.dumps({"messages": conversation(turns)}) for turns in (2, 3)]
    (folder / "two.jsonl").write_text("\n".join(lines))
    (folder / "other.json").write_text(json.dumps(conversation(1)[::-1]))
    run("sessions", "import", "other.json", "--thread", "x-2", "--namespace", "n")
    again = ("sessions", "import", "two.jsonl", "--thread", "x", "--namespace", "n")
    said = run(*again, code=BAD_INPUT)
    assert "x-1: 4 messages\n" in said
    assert "two.jsonl#1: differs from message 0 on from what is in thread 'x-2'" in said
    run("sessions", "prune", "--idle-days", "1e-9", "--delete", "--namespace", "n")
    run("sessions", "import", "two.jsonl", "--thread", "x-1", "--pick", "1", "--namespace", "n")
    assert run(*again).splitlines()[-2:] == ["x-1: 4 messages, there already", "x-2: 6 messages"]
    exported = run("sessions", "export", "x-1", "--namespace", "n")
    assert json.loads(exported) == conversation(2)


@pytest.mark.parametrize("already", [1, 2, 7, 8])
def test_a_conversation_that_has_grown_is_imported_again_as_far_as_it_is_new(folder: Path, already: int) -> None:
    """It was refused, and no other command puts messages behind those of a thread."""
    grown = conversation(4)
    for messages in (grown[:already], grown):
        (folder / "talk.json").write_text(json.dumps(messages))
        said = run("sessions", "import", "talk.json", "--thread", "x")
    new = len(grown) - already
    assert said == f"x: 8 messages, {f'{new} of them new' if new else 'there already'}\n"
    assert json.loads(run("sessions", "export", "x")) == grown


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (6, [], "has 6 of the 8 messages in thread 'x'"),
        (6, ["another way"], "differs from message 6 on from what is in thread 'x'"),
        (0, ["another"] * 9, "differs from message 0 on from what is in thread 'x'"),
    ],
)
def test_a_conversation_that_went_back_changes_no_thread_and_may_become_another(
    folder: Path, start: int, end: list[str], problem: str
) -> None:
    """That it went back was told as an append of another writer, without a way out."""
    held = conversation(4)
    went_back = [*held[:start], *({"role": "user", "content": text} for text in end)]
    for name, messages in (("held", held), ("back", went_back)):
        (folder / f"{name}.json").write_text(json.dumps(messages))
    run("sessions", "import", "held.json", "--thread", "x")
    said = run("sessions", "import", "back.json", "--thread", "x", code=BAD_INPUT)
    assert f"back.json: {problem}" in said
    assert "import it as another thread, with --thread ID" in said
    run("sessions", "import", "back.json", "--thread", "y")
    assert [json.loads(run("sessions", "export", name)) for name in "xy"] == [held, went_back]


def test_a_conversation_in_another_format_is_told_as_such(folder: Path) -> None:
    """It was told as one that went back."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    use = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    asked = {"role": "user", "content": "Look at it."}
    (folder / "one.json").write_text(json.dumps([asked, {"role": "assistant", "content": [use]}]))
    (folder / "other.json").write_text(json.dumps([asked, {"role": "assistant", "tool_calls": [call]}]))
    run("sessions", "import", "one.json", "--thread", "x")
    said = run("sessions", "import", "other.json", "--thread", "x", code=BAD_INPUT)
    assert "has openai-chat messages, and anthropic ones are in thread 'x': import it as another thread" in said


def test_a_conversation_without_messages_becomes_no_thread_and_says_so(folder: Path) -> None:
    """Nothing to do is no error, as in other commands; and it ends no import of the conversations behind it."""
    (folder / "none.json").write_text("[]")
    assert run("sessions", "import", "none.json", "--thread", "x") == "x: no messages to import\n"
    lines = [{"messages": []}, {"messages": conversation(2)}]
    (folder / "two.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = run("sessions", "import", "two.jsonl", "--thread", "y").splitlines()
    assert said == ["y-1: no messages to import", "y-2: 4 messages"]
    assert [one["thread"] for one in json.loads(run("sessions", "list", "--report", "json"))] == ["y-2"]
    run("sessions", "import", "none.json", "--thread", "", code=BAD_INPUT)


def test_what_cannot_be_stored_is_named_with_its_file_and_conversation(folder: Path) -> None:
    lines = [{"messages": conversation(1)}, {"messages": [{"role": "user", "content": "x", "score": float("nan")}]}]
    (folder / "two.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert "two.jsonl#1: message 0 cannot be stored" in run("sessions", "import", "two.jsonl", code=BAD_INPUT)


def test_a_thread_that_is_named_by_an_empty_text_is_refused(folder: Path) -> None:
    (folder / "two.jsonl").write_text("\n".join(json.dumps({"messages": conversation(1)}) for _ in range(2)))
    for options in ((), ("--pick", "1")):
        said = run("sessions", "import", "two.jsonl", "--thread", "", *options, code=BAD_INPUT)
        assert "the thread id must be a text that is not empty" in said


@pytest.mark.strict
def test_every_kind_of_transcript_can_be_imported(transcripts: Path) -> None:
    kinds: dict[str, Path] = {}
    for path in sorted(files(transcripts, "*/*"), key=lambda path: path.stat().st_size):
        if not path.name.startswith(("LICENSE", "README", "probing")) and path.parent.name not in BENCHMARKS_ONLY:
            kinds.setdefault(path.parent.name, path)
    assert kinds
    for kind, path in kinds.items():
        assert " messages" in run("sessions", "import", str(path), "--thread", kind)


def test_namespaces_and_stores_are_kept_apart(imported: list[dict[str, Any]], folder: Path) -> None:
    assert "no session in" in run("sessions", "list", "--namespace", "other")
    assert "there is no thread 'talk' in namespace 'other'" in run(
        "recall", "talk", "ticket", "--namespace", "other", code=BAD_INPUT
    )


@pytest.mark.parametrize(
    "command",
    [
        "sessions list --store URL",
        "sessions show t --store URL",
        "sessions export t --store URL",
        "sessions undo t --store URL",
        "sessions compact t --store URL",
        "sessions prune --idle-days 1 --store URL",
        "recall t word --store URL",
        "view t --out x.html --store URL",
        "batch check URL --output out.jsonl",
    ],
)
@pytest.mark.parametrize("url", ["sqlite:///{}/mistyped.db", "sqlite:///file:{}/mistyped.db?uri=true"])
def test_what_reads_a_store_makes_no_database(folder: Path, command: str, url: str) -> None:
    """A path that is mistyped would be an empty store, and a file that nobody asked for."""
    said = run(*command.replace("URL", url.format(folder)).split(), code=BAD_INPUT)
    assert "mistyped.db: there is no such file" in said.replace("?uri=true", "")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["sessions show nobody", "view nobody --out x.html", "recall nobody word"])
@pytest.mark.parametrize("namespace", ["", "theirs"])
def test_no_message_tells_the_password_of_a_store(folder: Path, command: str, namespace: str) -> None:
    (folder / "talk.json").write_text(json.dumps(conversation(1)))
    url = f"sqlite:///file:{folder}/a.db?uri=true&password=s3cret"
    run("sessions", "import", "talk.json", "--store", url)
    said = run(*command.split(), "--store", url, "--namespace", namespace, code=BAD_INPUT)
    assert "there is no thread 'nobody' in" in said
    assert "s3cret" not in said


def test_idle_threads_are_shown_and_deleted_only_on_request(imported: list[dict[str, Any]], folder: Path) -> None:
    """With their files in the archive; other namespaces stay."""
    place = f"file://{folder}/kept"
    run("sessions", "compact", "talk", "--window", "4000", "--archive", place)
    run("sessions", "import", "talk.json", "--thread", "theirs", "--namespace", "other")
    assert "no session is idle for 1 days" in run("sessions", "prune", "--idle-days", "1")
    soon = ("sessions", "prune", "--idle-days", "1e-9")
    said = run(*soon)
    assert "talk" in said
    assert "nothing is deleted yet: repeat it with --delete" in said
    (row,) = json.loads(run(*soon, "--report", "json"))
    assert (row["thread"], row["messages"], row["deleted"]) == ("talk", 80, False)
    assert "talk" in run("sessions", "list")
    assert list((folder / "kept").rglob("*.md"))
    # of a variable that is not set: the files would stay, and no other command finds them
    assert "an archive is named by an address or a path" in run(*soon, "--delete", "--archive", "", code=BAD_INPUT)
    assert "talk" in run("sessions", "list")
    assert "deleted" in run(*soon, "--delete", "--archive", place)
    assert "no session in" in run("sessions", "list")
    assert not list((folder / "kept").rglob("*.md"))
    assert "theirs" in run("sessions", "list", "--namespace", "other")


@pytest.mark.parametrize("days", ["0", "-1", "soon", "nan", "inf"])
def test_a_number_of_days_is_above_0(folder: Path, days: str) -> None:
    assert "is not a number of days above 0" in run("sessions", "prune", "--idle-days", days, code=BAD_INPUT)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["sessions", "show", "nobody"], "there is no thread 'nobody' in sqlite:///contextfold.db"),
        (["sessions", "undo", "nobody"], "see contextfold sessions list"),
        (["sessions", "list", "--store", "mysql://x"], "is of no kind that is known"),
        (
            ["sessions", "import", "less.json", "--thread", "talk"],
            "less.json: has 79 of the 80 messages in thread 'talk'",
        ),
        (["sessions", "import", "none.json"], "none.json cannot be read"),
        (["sessions", "export", "talk", "--output", "no/where.json"], "there is no folder"),
        (["recall", "talk", "?!"], "has no word to look for"),
        (["sessions", "compact", "talk", "--base-url", "http://x"], "the extractive summarizer calls no provider"),
    ],
)
def test_mistakes_are_one_line_with_the_way_out(
    imported: Any, folder: Path, arguments: list[str], problem: str
) -> None:
    (folder / "less.json").write_text(json.dumps(imported[:-1]))
    said = run(*arguments, code=BAD_INPUT)
    assert problem in said
    assert "Traceback" not in said


def test_nothing_found_is_said(imported: Any) -> None:
    assert "no message of talk has 'zebra'" in run("recall", "talk", "zebra")


def test_recall_finds_by_a_question_and_takes_options(imported: list[dict[str, Any]]) -> None:
    found = json.loads(run("recall", "talk", "Which question is about ticket TCK-0007?", "--report", "json"))
    assert found[0]["index"] == 14
    assert found[0]["score"] > 0
    newest = json.loads(run("recall", "talk", "question", "--order", "newest", "--limit", "2", "--report", "json"))
    assert [hit["index"] for hit in newest] == [78, 76]
    assert json.loads(run("recall", "talk", "TCK-0007", "--role", "tool", "--report", "json")) == []
    assert "no message of talk" in run("recall", "talk", "TCK-0007", "--since", "2199-01-01")
    assert "TCK-0007" in run("recall", "talk", "TCK-0007", "--until", "2199-01-01T10:00+02:00")
    (hit,) = json.loads(run("recall", "talk", "TCK-0007", "--neighbors", "1", "--limit", "1", "--report", "json"))
    assert [near["index"] for near in hit["neighbors"]] == [13, 15]
    assert "beside" in run("recall", "talk", "TCK-0007", "--neighbors", "1")
    assert "is not a date or time" in run("recall", "talk", "x", "--since", "soon", code=BAD_INPUT)


def test_recall_searches_a_file_too(folder: Path) -> None:
    talk = [{"role": "user", "content": "the port is 8443"}, {"role": "assistant", "content": "noted"}]
    (folder / "talk.json").write_text(json.dumps(talk))
    found = json.loads(run("recall", "talk.json", "Which ports are open?", "--report", "json"))
    assert [(hit["index"], hit["snippet"]) for hit in found] == [(0, "the port is 8443")]
    assert "--since and --until are for threads" in run(
        "recall", "talk.json", "x", "--since", "2031-01-01", code=BAD_INPUT
    )
    for name, namespace in (("talk.json", "x"), ("tlak.json", "")):
        said = run("recall", name, "port", "--namespace", namespace, code=BAD_INPUT)
        assert "sqlite:///contextfold.db: there is no such file" in said
        assert ("tlak.json is no file here, and " in said) is (name == "tlak.json")


def test_a_file_is_searched_also_where_the_environment_names_a_store(
    imported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTFOLD_STORE", "sqlite:///other.db")
    assert "TCK-0007" in run("recall", "talk.json", "TCK-0007")
    assert "no thread" in run("recall", "talk.json", "TCK-0007", "--store", "sqlite:///contextfold.db", code=BAD_INPUT)


@pytest.mark.parametrize(
    "arguments",
    [
        ("view", "talk.json", "--out", "talk.json"),
        ("view", "talk.json", "--out", "link.json"),
        ("view", "--store", "sqlite:///contextfold.db", "talk", "--out", "contextfold.db"),
        ("sessions", "export", "talk", "--output", "contextfold.db"),
    ],
)
def test_no_output_takes_the_place_of_what_it_is_made_from(
    arguments: tuple[str, ...], imported: list[dict[str, Any]], folder: Path
) -> None:
    (folder / "link.json").symlink_to("talk.json")
    assert "is read as well" in run(*arguments, code=BAD_INPUT)
    assert json.loads((folder / "talk.json").read_text()) == imported
    assert json.loads(run("sessions", "export", "talk")) == imported


def test_objects_and_bytes_are_exported_as_files_that_are_read_again() -> None:
    """LangChain's messages as LangChain writes them, media of Bedrock in base64."""
    picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    talks: dict[str, list[Any]] = {
        "langchain": [HumanMessage("Hello"), AIMessage("Hello to you")],
        "bedrock-converse": [{"role": "user", "content": [{"text": "Look."}, picture]}],
    }
    for format, messages in talks.items():
        Compactor(window=16_000).session(format, "sqlite:///contextfold.db").append(messages)
        run("sessions", "export", format, "--output", "out.json")
        assert json.loads(run("inspect", "out.json", "--report", "json"))["format"] == format
        assert f"copy: {len(messages)} messages" in run("sessions", "import", "out.json", "--thread", f"{format} copy")
        assert run("sessions", "export", f"{format} copy") == Path("out.json").read_text(encoding="utf-8")
        assert len(json.loads(run("sessions", "export", format, "--view"))) == len(messages)
    assert json.loads(run("sessions", "export", "bedrock-converse"))[0]["content"][1]["image"]["source"] == {
        "bytes": "iVBORw=="
    }
