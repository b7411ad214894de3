"""Files that people give and that hold no conversation as a model had it: what they are, and where one is.

What belongs here: what tells such a file, and one line for each. What does not: files that are read (their modules).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from contextfold.transcripts.document import TranscriptFile


class _Kind(NamedTuple):
    """``marks``: keys that the first object has, all of them. ``tells``: what else it must be like."""

    marks: frozenset[str]
    what: str
    remedy: str
    tells: Callable[[dict[str, Any]], bool] = lambda _: True


_SHOWN = "it holds what was shown, not what was sent: give the log of its chat debug view (.chatreplay.json)"
_KINDS = (
    _Kind(
        frozenset({"custom_id", "response"}),
        "results of OpenAI's batch API",
        "they hold answers without what was asked: give the file of requests",
    ),
    _Kind(
        frozenset({"custom_id", "result"}),
        "results of Anthropic's batch API",
        "they hold answers without what was asked: give the file of requests",
    ),
    _Kind(
        frozenset({"prompt", "completion"}),
        "pairs of a prompt and its completion",
        "they are texts, not messages: give each pair as a list of messages",
    ),
    _Kind(frozenset({"requesterUsername", "requests"}), "a chat exported from Copilot in VS Code", _SHOWN),
    _Kind(
        frozenset({"mapping", "current_node"}),
        "a data export of ChatGPT",
        "its messages are a tree: give those of one branch as a list with role and content",
    ),
    _Kind(
        frozenset({"uuid", "chat_messages"}),
        "a data export of Claude's apps",
        "give chat_messages as a list of messages, with sender as the role (human is user)",
    ),
    _Kind(
        frozenset({"source"}),
        "events of OpenHands",
        "with log_completions it writes the requests to the model: give one of those",
        lambda row: "action" in row or "observation" in row or row.get("kind") in ("MessageEvent", "SystemPromptEvent"),
    ),
    _Kind(
        frozenset({"parts"}),
        "messages of a user interface (AI SDK, opencode)",
        "give what convertToModelMessages makes of them",
        lambda row: row.get("role", row.get("info")) is not None,
    ),
    _Kind(
        frozenset({"type", "sessionID", "part"}),
        "what opencode prints while it runs",
        "give what opencode export writes",
    ),
    _Kind(
        frozenset({"type", "thread_id"}),
        "what codex exec --json prints",
        "give the session's file, a rollout-*.jsonl among those of Codex",
    ),
    _Kind(
        frozenset({"type", "session_id", "model", "timestamp"}),
        "what Gemini CLI prints as stream-json",
        "give the session's file, a session-*.json among its chats",
        lambda row: row["type"] == "init",
    ),
    _Kind(
        frozenset({"sessionId", "messageId", "message"}),
        "Gemini CLI's log of prompts",
        "give the session's file, a session-*.json in the folder chats beside it",
    ),
    _Kind(
        frozenset({"ts", "type"}),
        "what Cline shows (ui_messages.json)",
        "give api_conversation_history.json, which stands beside it",
        lambda row: row["type"] in ("say", "ask"),
    ),
    _Kind(
        frozenset({"schema_version", "steps"}),
        "a trajectory in Harbor's format (ATIF)",
        "give its steps as a list of messages",
        lambda row: str(row["schema_version"]).startswith("ATIF"),
    ),
    _Kind(
        frozenset({"source", "content", "type"}),
        "messages of AutoGen's agents",
        "give what the model client was sent (model_context of its state)",
        lambda row: str(row["type"]).endswith("Message"),
    ),
)
HARMONY = ("<|start|>", "<|message|>")


def told(document: TranscriptFile) -> tuple[str, str] | None:
    """What a file is that is not read, and what to do; None for one that is not known."""
    if all(mark in document.text[:2_000] for mark in HARMONY) and document.value is None:
        return "a text of Harmony's", "give the messages that openai-harmony parses from it"
    first = document.objects[:1]
    inner = first[0].get("messages") if first else None
    first += [one for one in inner[:1] if isinstance(one, dict)] if isinstance(inner, list) else []
    kind = next((kind for kind in _KINDS for row in first if kind.marks <= row.keys() and kind.tells(row)), None)
    return None if kind is None else (kind.what, kind.remedy)
