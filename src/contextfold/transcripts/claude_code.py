"""Claude Code session files: JSON Lines, one row for each content block, in the order in which things happened.

Rows of one answer share ``message.id`` and become one assistant message; the results of its calls become one user
message behind it. Left out: sub-agents' rows (``isSidechain``), summaries that replaced nothing in the file
(``isCompactSummary``: the raw rows go on), errors shown to the person and never sent (``<synthetic>``), rows that
were only displayed, and everything that is not a message. ``toolUseResult`` repeats the result and is ignored.
A summary that a file begins with is all there is of what came before, and stays.
"""

from __future__ import annotations

from typing import Any

from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile
from contextfold.transcripts.turns import Turns, one_user_message

KIND = "claude-code"
NOT_SENT = ("isSidechain", "isApiErrorMessage")
ROW_MARKS = ("sessionId", "parentUuid", "isSidechain")


def recognizes(document: TranscriptFile) -> bool:
    return any(_is_message(row) and any(mark in row for mark in ROW_MARKS) for row in document.objects)


def read(document: TranscriptFile) -> list[Conversation]:
    turns = Turns()
    seen: set[str] = set()
    begun = False
    for row in document.objects:
        uuid = str(row["uuid"]) if "uuid" in row else None
        if not _is_sent(row) or uuid in seen:  # a resumed session repeats rows
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
        else:
            _add_user(turns, row["message"].get("content"))
    return [Conversation(document.name, "anthropic", turns.messages(one_user_message), KIND)]


def _is_message(row: dict[str, Any]) -> bool:
    return row.get("type") in ("user", "assistant") and isinstance(row.get("message"), dict)


def _is_sent(row: dict[str, Any]) -> bool:
    if not _is_message(row) or any(row.get(mark) for mark in NOT_SENT):
        return False
    return bool(row["message"].get("content")) and row["message"].get("model") != "<synthetic>"


def _add_answer(turns: Turns, message: dict[str, Any]) -> None:
    content = message["content"]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [block for block in blocks if not (_is_block(block, "tool_use") and turns.knows(str(block.get("id"))))]
    calls = [str(block.get("id")) for block in blocks if _is_block(block, "tool_use")]
    answer = message.get("id") if isinstance(message.get("id"), str) else None
    begun = turns.find(answer)
    if begun is not None and answer is not None:
        begun["content"].extend(blocks)
        turns.calls(answer, calls)
    elif blocks:
        turns.add({"role": "assistant", "content": blocks}, calls=calls, answer=answer)


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
