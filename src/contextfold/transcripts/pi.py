"""pi session files: JSON Lines with rows of type ``message``, in pi's own blocks ``toolCall`` and role ``toolResult``.

They are written as Anthropic messages. Answers that were aborted before anything came are left out, commands that the
person ran (``bashExecution``) are user messages but where they were kept from the model, and rows of other types
(settings, summaries of the product's own compaction, whose originals are in the file) are left out.

Rows are a tree (``id``, ``parentId``): the newest one and those that lead to it are the conversation. What stands on
other branches is left out, and said; what the product wrote of one when the person came back from it stays. Factory's
Droid writes such rows, too, with a header of another type; many of its files do not name the row before each.
"""

from __future__ import annotations

from typing import Any

from contextfold.transcripts.branches import way_to_newest, went_back
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile
from contextfold.transcripts.turns import Turns, one_user_message

KIND = "pi"
HEADERS = ("session", "session_start")
SUMMARY_ROLES = ("compactionSummary", "branchSummary")
OF_BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}</summary>"
"""As the product sends it."""


def recognizes(document: TranscriptFile) -> bool:
    return any(_message_of(row) is not None for row in document.objects)


def read(document: TranscriptFile) -> list[Conversation]:
    turns = Turns()
    way = _way(document.objects)
    left_out = []
    for place, row in enumerate(document.rows):
        message = _message_of(row) if isinstance(row, dict) else None
        if message is None or message["role"] in SUMMARY_ROLES or message.get("excludeFromContext"):
            continue
        if way is None and row["type"] == "branch_summary":  # its originals are read
            continue
        if way is not None and row["id"] not in way:
            left_out.append(place)
            continue
        if message["role"] == "toolResult":
            _add_result(turns, message)
        elif message["role"] == "assistant":
            _add_answer(turns, message)
        else:
            _add_user(turns, message)
    messages = turns.messages(one_user_message)
    return [Conversation(document.name, "anthropic", messages, KIND, left_out=went_back(document, left_out))]


def _way(rows: list[dict[str, Any]]) -> set[str] | None:
    """The rows from the first to the newest; None where they do not name those before them, as in old files."""
    entries = [row for row in rows if row.get("type") not in HEADERS]
    # Null tells where a conversation began; a row without the key tells nothing.
    names_all = len({str(row.get("id")) for row in entries}) == len(entries)
    names_all = names_all and all("parentId" in row for row in entries[1:])
    return way_to_newest(entries, "id", "parentId") if names_all else None


def _message_of(row: dict[str, Any]) -> dict[str, Any] | None:
    if row.get("type") == "custom_message":  # put into the conversation by an extension
        return {"role": "user", "content": row.get("content")}
    if row.get("type") == "branch_summary" and isinstance(row.get("summary"), str):
        return {"role": "user", "content": OF_BRANCH.format(row["summary"])}
    message = row.get("message")
    if row.get("type") != "message" or not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return None
    return message


def _add_result(turns: Turns, message: dict[str, Any]) -> None:
    call_id = str(message.get("toolCallId"))
    result = {"type": "tool_result", "tool_use_id": call_id, "content": _content(message.get("content"))}
    if message.get("isError"):
        result["is_error"] = True
    if not turns.result(call_id, result):
        turns.add({"role": "user", "content": [result]})


def _add_answer(turns: Turns, message: dict[str, Any]) -> None:
    content = _content(message.get("content"))
    if content:
        blocks = content if isinstance(content, list) else []
        calls = [block.get("id") for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
        turns.add({"role": "assistant", "content": content}, calls=calls)


def _add_user(turns: Turns, message: dict[str, Any]) -> None:
    content = _content(message.get("content"))
    if message["role"] == "bashExecution":
        content = f"$ {message.get('command', '')}\n{message.get('output', '')}"
    if content:
        turns.add({"role": "user", "content": content})


def _content(content: Any) -> Any:
    return [_block(block) for block in content] if isinstance(content, list) else content


def _block(block: Any) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "toolCall":
        return {"type": "tool_use", "id": block.get("id"), "name": block.get("name"), "input": block.get("arguments")}
    if kind == "thinking":
        signature = block.get("thinkingSignature") or block.get("signature") or ""
        return {"type": "thinking", "thinking": block.get("thinking") or "", "signature": signature}
    if kind == "image" and "data" in block:
        source = {"type": "base64", "media_type": block.get("mimeType", "image/png"), "data": block["data"]}
        return {"type": "image", "source": source}
    if kind == "text":
        return {"type": "text", "text": block.get("text") or ""}
    return block
