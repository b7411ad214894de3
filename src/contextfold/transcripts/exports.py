"""What people are given when they export their data from ChatGPT and from Claude's apps: many conversations in a file.

ChatGPT's are trees of messages, of which one leaf is the newest; a call is a message to a tool, and its result one of
that tool. Claude's have calls and results among the blocks of one message. Both are written as chat messages. Pictures
and files are not in such an export: their names stand where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from contextfold.errors import InputError
from contextfold.formats.values import json_text
from contextfold.transcripts import parts
from contextfold.transcripts.branches import LEFT_OUT, way_to_newest
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, json_in, objects_in

CHATGPT, CLAUDE = frozenset({"mapping", "current_node"}), frozenset({"uuid", "chat_messages"})
SHOWN = ("reasoning_recap",)
"""What ChatGPT showed the person alone."""
TOLD = ("user_profile", "user_instructions", "title", "model_set_context")
SAID = ("text", "result", "output_str")
"""Keys of contents that have no parts: all of the first ones tell something, and one of the others."""
STEP = {"type": "step-start"}
"""Between a result and the next call, which was made in an answer of its own."""
_Rows = tuple[list[dict[str, Any]], int]
"""Messages made of parts, and how many of the file are left out."""


def recognizes(document: TranscriptFile) -> bool:
    return any(row.keys() >= CHATGPT or row.keys() >= CLAUDE for row in document.objects[:1])


def read(document: TranscriptFile) -> list[Conversation]:
    kind = "chatgpt" if document.objects[0].keys() >= CHATGPT else "claude-apps"
    each = [_chatgpt(row) if kind == "chatgpt" else _claude(row) for row in document.objects]
    ids = [_first_text(row, "conversation_id", "uuid", "id") for row in document.objects]
    said = [(id, found, gone) for id, (rows, gone) in zip(ids, each, strict=True) if (found := parts.as_messages(rows))]
    if not said:
        raise InputError(
            f"{document.name}: nothing was said in any conversation of this export: give one with messages"
        )
    found = []
    for name, (id, messages, gone) in zip(document.names(len(said)), said, strict=True):
        told = f"messages {LEFT_OUT}: {gone:,}"
        found.append(Conversation(name, "openai-chat", messages, kind, left_out=(told,) if gone else (), id=id))
    return found


def _gathered(each: Iterable[tuple[str, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Messages of parts: all that a model said and called until somebody else spoke is one of them."""
    rows: list[dict[str, Any]] = []
    for role, pieces in each:
        if rows and role == "assistant" == rows[-1]["role"]:
            rows[-1]["parts"] += pieces
        elif pieces:
            rows.append({"role": role, "parts": list(pieces)})
    return rows


def _text(text: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if isinstance(text, str) and text.strip() else []


def _call(id: str, name: Any, given: Any) -> dict[str, Any]:
    return {"type": "dynamic-tool", "toolCallId": id, "toolName": name, "input": given}


# ---- ChatGPT ---------------------------------------------------------------------------------------------------------


def _chatgpt(row: dict[str, Any]) -> _Rows:
    nodes = row["mapping"] if isinstance(row.get("mapping"), dict) else {}
    at = row.get("current_node")
    way = list(_way(nodes, at if isinstance(at, str) and at in nodes else _newest(nodes)))
    messages = [message for node in reversed(way) if isinstance(message := nodes[node].get("message"), dict)]
    is_passed = {id(message) for message in messages}
    others = (node.get("message") for node in nodes.values() if isinstance(node, dict))
    gone = sum(isinstance(one, dict) and id(one) not in is_passed and bool(_content(one)) for one in others)
    return _gathered(_spoken(messages)), gone


def _way(nodes: dict[str, Any], at: Any) -> Iterator[str]:
    """The nodes from the newest to the first."""
    seen: set[str] = set()
    while isinstance(at, str) and isinstance(nodes.get(at), dict) and at not in seen:
        seen.add(at)
        yield at
        at = nodes[at].get("parent")


def _newest(nodes: dict[str, Any]) -> str | None:
    """Where an export does not say which leaf is the newest: the one that was made last, or stands last."""
    parents = {node.get("parent") for node in nodes.values() if isinstance(node, dict) and _is_id(node.get("parent"))}
    leaves = [id for id, node in nodes.items() if id not in parents and isinstance(node, dict)]

    def made(place: int) -> tuple[float, int]:
        message = nodes[leaves[place]].get("message")
        time = message.get("create_time") if isinstance(message, dict) else None
        return (time if isinstance(time, int | float) else 0.0, place)

    return leaves[max(range(len(leaves)), key=made)] if leaves else None


def _is_id(value: Any) -> bool:
    return isinstance(value, str)


def _spoken(messages: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    waiting: dict[str, Any] | None = None  # the call whose result is awaited; a tool may answer in several messages
    answered: list[tuple[dict[str, Any], list[str]]] = []  # joined once, as there may be thousands of them
    for number, message in enumerate(messages):
        author, text = message.get("author"), _content(message)
        role, tool = (author.get("role"), author.get("name")) if isinstance(author, dict) else (None, None)
        asked = message.get("recipient")
        if role == "tool":
            called = [] if waiting is not None else [_call(f"call_{number}", tool or "tool", {})]  # it spoke by itself
            waiting = waiting if waiting is not None else called[0]
            if not answered or answered[-1][0] is not waiting:
                answered.append((waiting, []))
            answered[-1][1].append(text)
            yield "assistant", called
            continue
        if _kind(message) == "thoughts":
            yield "assistant", [{"type": "reasoning", "text": text}] if text else []
        elif role == "assistant" and isinstance(asked, str) and asked != "all":
            begins = [STEP] if waiting is not None else []
            given = json_in(text)
            waiting = _call(f"call_{number}", asked, given if isinstance(given, dict) else {"input": text})
            yield "assistant", [*begins, waiting]
            continue
        elif role in ("system", "user", "assistant"):
            yield role, _text(text)
        waiting = None if text else waiting
    for call, texts in answered:
        call["output"] = "\n".join(filter(None, texts))


def _kind(message: dict[str, Any]) -> Any:
    content = message.get("content")
    return content.get("content_type") if isinstance(content, dict) else None


def _content(message: dict[str, Any]) -> str:
    """What a message says, whatever kind of content it has. Empty where it says nothing."""
    content = message.get("content")
    if not isinstance(content, dict) or content.get("content_type") in SHOWN:
        return ""
    if isinstance(content.get("parts"), list):
        return "\n".join(filter(None, map(_piece, content["parts"])))
    if isinstance(content.get("thoughts"), list):
        return "\n".join(_first_text(one, "content", "summary") for one in objects_in(content["thoughts"]))
    if content.keys().isdisjoint((*TOLD, *SAID)):  # of a kind that came later
        rest = {key: held for key, held in content.items() if key not in ("content_type", "parts", "thoughts") and held}
        return json_text(rest) if rest else ""
    told = [content.get(key) for key in (*TOLD, "url")]
    return "\n".join(one for one in [*told, _first_text(content, *SAID)] if isinstance(one, str) and one)


def _piece(piece: Any) -> str:
    if isinstance(piece, dict):
        named = piece.get("asset_pointer")
        known = f"[{piece.get('content_type')}: {named}]" if isinstance(named, str) else _first_text(piece, "text")
        return known or json_text(piece)
    return piece if isinstance(piece, str) else ""


def _first_text(held: dict[str, Any], *keys: str) -> str:
    return next((held[key] for key in keys if isinstance(held.get(key), str) and held[key]), "")


# ---- Claude's apps ---------------------------------------------------------------------------------------------------


def _claude(row: dict[str, Any]) -> _Rows:
    rows = objects_in(row.get("chat_messages"))
    parents = {one["uuid"]: one.get("parent_message_uuid") for one in rows if isinstance(one.get("uuid"), str)}
    # The first names a message that is in no export; files from before there were branches name none at all.
    named = [
        {"uuid": own, "before": parent if isinstance(parent, str) and parent in parents else None}
        for own, parent in parents.items()
    ]
    is_tree = any(one["before"] for one in named) and len(named) == len(rows)
    way = way_to_newest(named, "uuid", "before") if is_tree else None
    kept = [one for one in rows if way is None or one["uuid"] in way]
    return _gathered(_turns(kept)), len(rows) - len(kept)


def _turns(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for place, row in enumerate(rows):
        blocks = objects_in(row.get("content"))
        pieces = list(_blocks(blocks, place)) or _text(row.get("text"))
        for held in objects_in(row.get("attachments")):
            pieces += _text(f"[file: {held.get('file_name')}]\n{_first_text(held, 'extracted_content')}".rstrip())
        for held in objects_in(row.get("files")):
            pieces += _text(f"[file: {held.get('file_name')}]")
        yield "assistant" if row.get("sender") == "assistant" else "user", pieces


def _blocks(blocks: list[dict[str, Any]], place: int) -> Iterator[dict[str, Any]]:
    calls: dict[str, dict[str, Any]] = {}  # those without a result yet; old exports have no ids, and results in turn
    before = None
    for number, block in enumerate(blocks):
        kind, id = block.get("type"), block.get("id")
        if kind == "tool_use" and before == "tool_result":
            yield STEP
        before = kind
        if kind not in ("thinking", "tool_use", "tool_result"):  # also what the person spoke (voice_note)
            yield from _text(block.get("text"))
        elif kind == "thinking" and _first_text(block, "thinking"):
            yield {"type": "reasoning", "text": block["thinking"]}
        elif kind == "tool_use":
            id = id if isinstance(id, str) else f"call_{place}_{number}"
            calls[id] = _call(id, block.get("name"), block.get("input"))
            yield calls[id]
        elif kind == "tool_result":
            asked = block.get("tool_use_id")
            found = asked if isinstance(asked, str) and asked in calls else next(iter(calls), "")
            call = calls.pop(found, None)
            if call is None:
                call = _call(f"call_{place}_{number}", block.get("name"), {})
                yield call
            call["output"] = _result(block.get("content"))


def _result(content: Any) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else json_text(content)
    texts = ((_page(one) if isinstance(one, dict) else one) or json_text(one) for one in content)
    return "\n".join(text if isinstance(text, str) else json_text(text) for text in texts)


def _page(block: dict[str, Any]) -> str:
    """What a block says, below the title and the address of the page that it is from. Empty where it has no text."""
    text = _first_text(block, "text")
    return "\n".join(filter(None, (_first_text(block, "title"), _first_text(block, "url"), text))) if text else ""
