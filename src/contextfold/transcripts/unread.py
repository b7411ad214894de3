"""Files that people give and that hold no conversation as a model had it: what they are, and where one is.

What belongs here: what tells such a file, and one line for each. What does not: files that are read (their modules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from contextfold.transcripts.document import TranscriptFile, objects_in


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
    _Kind(
        frozenset({"chosen", "rejected"}),
        "pairs of answers of which one is preferred",
        "they are texts, not messages: give each with what was asked as a list of messages",
    ),
    _Kind(frozenset({"requesterUsername", "requests"}), "a chat exported from Copilot in VS Code", _SHOWN),
    _Kind(
        frozenset({"kind", "v"}),
        "a chat session of VS Code",
        _SHOWN,
        lambda row: isinstance(row["v"], dict) and isinstance(row["v"].get("requests"), list),
    ),
    _Kind(
        frozenset({"requests", "sessionId"}),
        "a chat session of VS Code",
        _SHOWN,
        lambda row: isinstance(row["requests"], list),
    ),
    _Kind(
        frozenset({"sessionId", "history"}),
        "a session of Continue",
        "give the message of each entry of its history as a list, with tool_calls and tool_call_id for its toolCalls",
        lambda row: "message" in _entry(row["history"]),
    ),
    _Kind(
        frozenset({"messages", "version"}),
        "a thread of Zed's agent",
        "its messages are under User and Agent: give them as a list with role and content",
        lambda row: not {"User", "Agent"}.isdisjoint(_entry(row["messages"])),
    ),
    _Kind(
        frozenset({"versions", "currentlySelected"}),
        "a conversation of LM Studio",
        "give the selected version of each message as a list with role and content",
    ),
    _Kind(
        frozenset({"role", "blocks"}),
        "messages of LlamaIndex",
        "give the text of the blocks of each as a list with role and content",
        lambda row: "block_type" in _entry(row["blocks"]),
    ),
    _Kind(
        frozenset({"messageId", "sender", "text"}),
        "a chat exported from LibreChat",
        "its messages may be a tree: give those of one branch as a list with role and content",
    ),
    _Kind(
        frozenset({"message_type", "id"}),
        "messages of Letta's API",
        "give what each says as a list with role and content, and its tool_call and tool_return as calls and results",
        lambda row: str(row["message_type"]).endswith("_message"),
    ),
    _Kind(
        frozenset({"chunkedPrompt"}),
        "a prompt saved by Google AI Studio",
        "give its chunks as a list of contents with role and parts",
    ),
    _Kind(
        frozenset({"request", "response", "startedDateTime"}),
        "a recording of a browser or proxy (HAR)",
        "give the bodies of its requests, which are JSON texts (postData.text), one on each line",
    ),
    _Kind(
        frozenset({"instruction", "output"}),
        "instructions and what answers them",
        "they are texts, not messages: give each pair as a list of messages",
    ),
    _Kind(
        frozenset({"kind", "source", "id"}),
        "one event of OpenHands",
        "give all of its conversation as a list, in their order (jq -s . events/*.json)",
        lambda row: str(row["kind"]).endswith("Event"),
    ),
    _Kind(
        frozenset({"role", "parts"}),
        "messages of Crush",
        "give what the data of each part says as a list with role and content",
        lambda row: isinstance(_entry(row["parts"]).get("data"), dict),
    ),
    _Kind(
        frozenset({"parts"}),
        "messages of a user interface (AI SDK, opencode)",
        "give what convertToModelMessages makes of them",
        lambda row: row.get("role", row.get("info")) is not None,
    ),
    _Kind(
        frozenset({"id", "sessionID", "messageID", "type"}),
        "a part of a message as opencode stores it",
        "give what opencode export writes",
    ),
    _Kind(
        frozenset({"id", "sessionID", "role", "time"}),
        "a message as opencode stores it, without its parts",
        "give what opencode export writes",
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
        frozenset({"display", "project"}),
        "Claude Code's log of prompts",
        "give the session's file, a .jsonl in the folder projects beside it",
    ),
    _Kind(
        frozenset({"type", "session_id", "result"}),
        "what claude -p --output-format json prints",
        "it holds the last answer alone: give the session's file, or what stream-json prints",
        lambda row: row["type"] == "result",
    ),
    _Kind(
        frozenset({"session_id", "ts", "text"}),
        "the log of prompts of Codex",
        "give the session's file, a rollout-*.jsonl in the folder sessions beside it",
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
        frozenset({"resourceSpans"}),
        "spans of OpenTelemetry without messages",
        "have them recorded where models are asked (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)",
    ),
    _Kind(
        frozenset({"content", "type"}),
        "messages of AutoGen's agents",
        "give what it logs of LLMCall events (autogen_core.events), or write them as chat messages",
        lambda row: str(row["type"]).endswith("Message"),
    ),
)
DEPTH, ROWS = 8, 100
"""How deep first objects are looked for, and how many."""
HARMONY = ("<|start|>", "<|message|>")


def told(document: TranscriptFile) -> tuple[str, str] | None:
    """What a file is that is not read, and what to do; None for one that is not known."""
    if all(mark in document.text[:2_000] for mark in HARMONY) and document.value is None:
        return "a text of Harmony's", "give the messages that openai-harmony parses from it"
    first = list(islice(_first(document.rows, DEPTH), ROWS))
    kind = next((kind for kind in _KINDS for row in first if kind.marks <= row.keys() and kind.tells(row)), None)
    return None if kind is None else (kind.what, kind.remedy)


def _entry(value: Any) -> dict[str, Any]:
    return next(iter(objects_in(value)), {})


def _first(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The first object of each list, outermost first: that of a run may stand somewhere in what tells of the run."""
    inner = value[:1] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    if isinstance(value, list):
        yield from objects_in(inner)
    if depth:
        for one in inner:
            yield from _first(one, depth - 1)
