"""Claude Code session files: JSON Lines, one row for each content block, in the order in which things happened.

Rows of one answer share ``message.id`` and become one assistant message; the results of its calls become one user
message behind it. Some servers give all answers one id: rows behind words of the person are of another answer, and so
are words behind results. What was said while the agent worked stands there as an attachment (``queued_command``), and
becomes a user message.
Left out: sub-agents' rows (``isSidechain``) beside those of the session, summaries that replaced nothing in the file
(``isCompactSummary``: the raw rows go on), errors shown to the person and never sent (``<synthetic>``), rows that were
only displayed, and everything that is not a message. ``toolUseResult`` repeats the result and is ignored.
Where the person went back and said something else, rows of both stand in the file, and ``parentUuid`` tells which of
them go on: the others are left out, and said. What hangs together by no such ids is read in the order of the file.
A summary that a file begins with is all there is of what came before, and stays. A file that holds nothing but
sub-agents' rows is a sub-agent's own.

What ``claude --output-format stream-json`` and the Agent SDK print are the same rows with other marks; there, rows of
sub-agents name the call that they work for. Cursor's agent prints such rows as well, but tells its calls in rows of
their own (``tool_call``), one when a call starts and one when it is completed.
"""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import json_text
from contextfold.transcripts.branches import gone_back_on, went_back
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile
from contextfold.transcripts.turns import Turns, one_user_message

KIND = "claude-code"
OF_SUB_AGENTS = ("isSidechain", "parent_tool_use_id")
ROW_MARKS = ("sessionId", "parentUuid", "isSidechain", "session_id", "parent_tool_use_id")
MOST_BLOCKS = 16
"""Of an answer that goes on behind results."""
ASIDES = ("<command-name>", "<local-command-", "<bash-")


def recognizes(document: TranscriptFile) -> bool:
    return any(_is_message(row) and any(mark in row for mark in ROW_MARKS) for row in document.objects)


def read(document: TranscriptFile) -> list[Conversation]:
    turns = Turns()
    seen: set[str] = set()
    begun = False
    sent = [row for row in document.objects if _is_sent(row)]
    own = [row for row in sent if not any(row.get(mark) for mark in OF_SUB_AGENTS)] or sent
    gone = _gone_back_on(document.objects, own)
    for row in own:
        uuid = str(row["uuid"]) if "uuid" in row else None
        if uuid in seen or uuid in gone:  # a resumed session repeats rows
            continue
        if row.get("isCompactSummary"):
            if begun:
                continue
        elif row.get("isVisibleInTranscriptOnly"):
            continue
        begun = True
        if uuid is not None:
            seen.add(uuid)
        if row["type"] == "assistant":
            _add_answer(turns, row["message"])
        elif row["type"] == "attachment":
            _add_user(turns, row["attachment"]["prompt"])
        elif row["type"] == "tool_call":
            _add_call(turns, row)
        else:
            if _is_of_person(row):
                turns.forget_answers()
            _add_user(turns, row["message"].get("content"))
    left_out = _said(document, own, gone)
    return [Conversation(document.name, "anthropic", turns.messages(one_user_message), KIND, left_out=left_out)]


def _gone_back_on(rows: list[dict[str, Any]], own: list[dict[str, Any]]) -> set[str]:
    """The ids of the rows that a person took back, with what followed them."""
    # The row after a compaction follows none, and names the one before it in a field of its own.
    parents = {
        row["uuid"]: _id(row.get("parentUuid")) or _id(row.get("logicalParentUuid"))
        for row in reversed(rows)  # the first of those that are repeated
        if _id(row.get("uuid"))
    }
    known = {row["uuid"]: row for row in own if _id(row.get("uuid"))}
    of_others = {_id(row.get("uuid")) for row in rows if any(row.get(mark) for mark in OF_SUB_AGENTS)}
    words = {uuid for uuid, row in known.items() if _is_of_person(row)}
    rest = [parents[uuid] for uuid, row in known.items() if uuid not in words and not row.get("isCompactSummary")]
    # Only where all rows name the one before them, and the file has it, do words that follow none mean that the person
    # began anew: where rows were taken out of a file, each turn would be one.
    is_whole = all(rest) and any(parents[uuid] for uuid in words)
    is_whole = is_whole and all(before in parents for before in parents.values() if before)

    def place(uuid: str) -> str | None:
        if uuid not in words:
            return None
        return str(known[uuid].get("sessionId")) if is_whole and not known[uuid].get("isSidechain") else uuid

    def is_passed(uuid: str) -> bool:
        return _is_aside(known[uuid]) if uuid in known else uuid not in of_others

    return gone_back_on(list(known), parents, is_passed, place)


def _is_aside(row: dict[str, Any]) -> bool:
    """Whether a row stands beside what is said: a note of the product, or a command that it ran itself."""
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return bool(row.get("isMeta")) or (isinstance(content, str) and content.startswith(ASIDES))


def _is_of_person(row: dict[str, Any]) -> bool:
    if row["type"] != "user" or row.get("isCompactSummary") or _is_aside(row):
        return False
    content = row["message"]["content"]
    return not isinstance(content, list) or not any(_is_block(block, "tool_result") for block in content)


def _said(document: TranscriptFile, own: list[dict[str, Any]], gone: set[str]) -> tuple[str, ...]:
    of_own = {id(row) for row in own}
    places = [n for n, row in enumerate(document.rows) if id(row) in of_own and _id(row.get("uuid")) in gone]
    return went_back(document, places)


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_message(row: dict[str, Any]) -> bool:
    # Others (Qwen Code) write such rows around messages of Gemini's, which have parts and no content.
    message = row.get("message")
    return row.get("type") in ("user", "assistant") and isinstance(message, dict) and "content" in message


def _is_queued(row: dict[str, Any]) -> bool:
    """Whether this row holds what was said while the agent worked, which reached it behind the next result."""
    attached = row.get("attachment")
    if row.get("type") != "attachment" or not isinstance(attached, dict) or attached.get("type") != "queued_command":
        return False
    return isinstance(attached.get("prompt"), str | list) and bool(attached["prompt"])


def _is_call(row: dict[str, Any]) -> bool:
    told = row.get("tool_call")
    return row.get("type") == "tool_call" and isinstance(row.get("call_id"), str) and isinstance(told, dict)


def _is_sent(row: dict[str, Any]) -> bool:
    if _is_queued(row) or _is_call(row):
        return True
    if not _is_message(row) or row.get("isApiErrorMessage"):
        return False
    return bool(row["message"].get("content")) and row["message"].get("model") != "<synthetic>"


def _add_answer(turns: Turns, message: dict[str, Any]) -> None:
    content = message["content"]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [block for block in blocks if not (_is_block(block, "tool_use") and turns.knows(str(block.get("id"))))]
    calls = [str(block.get("id")) for block in blocks if _is_block(block, "tool_use")]
    answer = message.get("id") if isinstance(message.get("id"), str) else None
    begun = turns.find(answer)
    if begun is not None and answer is not None and not (turns.is_answered(answer) and _is_another(begun, blocks)):
        begun["content"].extend(blocks)
        turns.calls(answer, calls)
    elif blocks:
        turns.add({"role": "assistant", "content": blocks}, calls=calls, answer=answer)


def _is_another(begun: dict[str, Any], blocks: list[Any]) -> bool:
    """Whether blocks behind results are of another answer than the one of the same id."""
    speaks = any(_is_block(block, "text") and str(block.get("text")).strip() for block in blocks)
    return speaks or len(begun["content"]) >= MOST_BLOCKS


def _add_call(turns: Turns, row: dict[str, Any]) -> None:
    """A call of Cursor's agent, under its kind (``readToolCall``), or its result."""
    kind, told = next(((key, held) for key, held in row["tool_call"].items() if isinstance(held, dict)), ("", {}))
    id = row["call_id"]
    if not turns.knows(id):
        name, given = told.get("name"), told.get("args", told.get("arguments"))
        name = (name if isinstance(name, str) else kind.removesuffix("ToolCall")) or "tool"
        given = given if isinstance(given, dict) else {} if given is None else {"arguments": given}
        call = {"type": "tool_use", "id": id, "name": name, "input": given}
        turns.add({"role": "assistant", "content": [call]}, calls=[id])
    result = told.get("result", row.get("result"))
    if result is not None:
        text = result if isinstance(result, str) else json_text(result)
        turns.result(id, {"type": "tool_result", "tool_use_id": id, "content": text})


def _add_user(turns: Turns, content: Any) -> None:
    if not isinstance(content, list):
        turns.add({"role": "user", "content": content})
        return
    rest = [block for block in content if not _is_block(block, "tool_result") or not _add_result(turns, block)]
    if rest:
        turns.add({"role": "user", "content": rest})


def _add_result(turns: Turns, block: dict[str, Any]) -> bool:
    return turns.result(str(block.get("tool_use_id")), block)


def _is_block(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind
