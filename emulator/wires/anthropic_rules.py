"""What Anthropic Messages refuses: roles, empty blocks, and tool blocks that do not pair, in Anthropic's words.

Consecutive messages of one role are accepted, and joined before they are looked at, as the API does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body, whole_number

_SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
_WITHOUT_SYSTEM_ROLE = re.compile(r"claude-(?:instant|[23])|(?:opus|sonnet|haiku)-4(?!-[89])")
"""Models from before Claude Opus 4.8 take no system role in the list."""
_DIRECTIVE = "; the directive-only form (content: [] with output_config) is accepted at any position"


@dataclass(frozen=True, slots=True)
class _Turn:
    """Consecutive messages of one role: ``blocks`` of all, and the place of the first."""

    role: str
    place: int
    blocks: tuple[dict[str, Any], ...]

    def ids(self, kind: str, key: str) -> list[str]:
        """The ids of its blocks of one type."""
        return [str(block.get(key)) for block in self.blocks if block.get("type") == kind]


def anthropic_problem(body: Body) -> Problem | None:
    """The first thing that is wrong, or None."""
    messages, thread = body.get("messages"), body.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        return Problem(
            f"thread: no conversation is held for the message {thread.get('previous_message_id')}",
            404,
            "not_found_error",
            code="thread_not_found",
        )
    if whole_number(body.get("max_tokens")) is None:
        return Problem("max_tokens: Field required")
    if body.get("max_tokens") == 0:
        return Problem("max_tokens: Input should be greater than or equal to 1")
    if not isinstance(messages, list):
        return Problem("messages: Field required")
    if not messages:
        return Problem("messages: at least one message is required")
    if _WITHOUT_SYSTEM_ROLE.search(str(body.get("model"))) and any(
        _role_of(message) == "system" for message in messages
    ):
        return Problem(_SYSTEM_ROLE)
    return next(_problems(messages, body.get("system"), body.get("thinking")), None)


def _role_of(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _is_directive(message: Any) -> bool:
    return _role_of(message) == "system" and message.get("content") == [] and "output_config" in message


def _ends_with_a_servers_result(message: dict[str, Any]) -> bool:
    blocks = blocks_of(message["content"])
    return bool(blocks) and str(blocks[-1].get("type")).endswith("_tool_result")


def _system_problems(messages: list[Any]) -> Iterator[Problem]:
    """Where a system role stands wrong: at the beginning, behind the assistant's words, or before the user's."""
    said = [(place, message) for place, message in enumerate(messages) if not _is_directive(message)]
    others = [(place, message) for place, message in said if _role_of(message) != "system"]
    for place, message in said:
        if _role_of(message) != "system":
            continue
        before = next((one for at, one in reversed(others) if at < place), None)
        behind = next((one for at, one in others if at > place), None)
        where = f"messages.{place}: "
        if before is None:
            yield Problem(f"{where}use the top-level 'system' parameter for the initial system prompt{_DIRECTIVE}")
        elif before["role"] != "user" and not _ends_with_a_servers_result(before):
            yield Problem(
                f"{where}role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool "
                f"result{_DIRECTIVE}"
            )
        elif behind is not None and behind["role"] != "assistant":
            yield Problem(f"{where}role 'system' must precede an 'assistant' message or end the array{_DIRECTIVE}")


def _problems(messages: list[Any], system: Any, thinking: Any) -> Iterator[Problem]:
    if any(_is_empty_text(block) for block in blocks_of(system) if not isinstance(system, str)):
        yield Problem("system: text content blocks must be non-empty")
    for place, message in enumerate(messages):
        problem = _message_problem(message, place, last=place == len(messages) - 1)
        if problem is not None:
            yield problem
            return
    yield from _system_problems(messages)
    turns = list(_turns(messages))
    opening = [block.get("type") for block in turns[0].blocks[:1]] if turns else []
    if not turns or (turns[0].role != "user" and opening != ["compaction"]):
        yield Problem('messages: first message must use the "user" role')
    for check in _CHECKS:
        yield from check(turns)
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        yield from _thinks_first(turns)


def _message_problem(message: Any, place: int, *, last: bool) -> Problem | None:
    if not isinstance(message, dict):
        return Problem(f"messages.{place}: Input should be an object")
    role, content = message.get("role"), message.get("content")
    if _is_directive(message):
        return None
    if role not in ("user", "assistant", "system"):
        return Problem(f"messages.{place}.role: Input should be 'user' or 'assistant'")
    if not isinstance(content, str | list):
        return Problem(f"messages.{place}.content: Field required")
    if not content and not (last and role == "assistant"):
        return Problem(
            f"messages.{place}: all messages must have non-empty content except for the optional final assistant "
            "message"
        )
    if isinstance(content, str):
        blank = bool(content) and not content.strip()
        return Problem("messages: text content blocks must contain non-whitespace text") if blank else None
    return next(_block_problems(content, place, role), None)


def _block_problems(content: list[Any], place: int, role: str) -> Iterator[Problem]:
    for number, block in enumerate(content):
        where = f"messages.{place}.content.{number}"
        if not isinstance(block, dict) or "type" not in block:
            yield Problem(f"{where}.type: Field required")
        elif _is_empty_text(block):
            yield Problem("messages: text content blocks must be non-empty")
        elif block["type"] == "text" and not block["text"].strip():
            yield Problem("messages: text content blocks must contain non-whitespace text")
        elif block["type"] == "tool_use" and role != "assistant":
            yield Problem(f"messages.{place}: `tool_use` blocks can only be in `assistant` messages")
        elif block["type"] == "tool_result" and role != "user":
            yield Problem(f"messages.{place}: `tool_result` blocks can only be in `user` messages")
        elif block["type"] == "thinking" and not block.get("signature"):
            yield Problem(f"{where}.thinking.signature: Field required")
        elif block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
            yield Problem(f"{where}.tool_use.input: Input should be a valid dictionary")


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The blocks of a content; a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _is_empty_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and not block.get("text")


def _turns(messages: list[dict[str, Any]]) -> Iterator[_Turn]:
    """Consecutive messages of one role are one turn."""
    spoken = [(place, message) for place, message in enumerate(messages) if message["role"] != "system"]
    if not spoken:
        return
    role, start, blocks = spoken[0][1]["role"], 0, list[dict[str, Any]]()
    for place, message in spoken:
        if message["role"] != role:
            yield _Turn(role, start, tuple(blocks))
            role, start, blocks = message["role"], place, []
        blocks += blocks_of(message["content"])
    yield _Turn(role, start, tuple(blocks))


# ---- rules about turns ----------------------------------------------------------------------------------------------


def _unique_calls(turns: list[_Turn]) -> Iterator[Problem]:
    seen: set[str] = set()
    for turn in turns:
        for number, block in enumerate(turn.blocks):
            if block.get("type") == "tool_use":
                if block.get("id") in seen:
                    yield Problem(f"messages.{turn.place}.content.{number}: `tool_use` ids must be unique")
                seen.add(str(block.get("id")))


def _answered_calls(turns: list[_Turn]) -> Iterator[Problem]:
    """The next turn opens with the results of all calls of this one."""
    for turn, answer in zip(turns, [*turns[1:], None], strict=True):
        opening = _opening_results(answer) if answer else []
        missing = [call for call in turn.ids("tool_use", "id") if call not in opening]
        if missing:
            yield Problem(
                f"messages.{turn.place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )


def _opening_results(turn: _Turn) -> list[str]:
    """The ids that are answered before the turn says anything else."""
    end = next((n for n, block in enumerate(turn.blocks) if block.get("type") != "tool_result"), len(turn.blocks))
    return [str(block.get("tool_use_id")) for block in turn.blocks[:end]]


def _called_results(turns: list[_Turn]) -> Iterator[Problem]:
    """Every result answers a call of the turn before, once."""
    for before, turn in zip([None, *turns], turns, strict=False):
        open_calls = set(before.ids("tool_use", "id")) if before else set()
        answered: set[str] = set()
        for number, block in enumerate(turn.blocks):
            if block.get("type") != "tool_result":
                continue
            call, where = str(block.get("tool_use_id")), f"messages.{turn.place}.content.{number}"
            if call not in open_calls:
                yield Problem(
                    f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` "
                    "block must have a corresponding `tool_use` block in the previous message."
                )
            elif call in answered:
                yield Problem(
                    f"{where}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {call}"
                )
            answered.add(call)


def _server_results(turns: list[_Turn]) -> Iterator[Problem]:
    """What the API runs itself: a result follows its call, and a call that a later turn left behind has its result."""
    begun: dict[str, tuple[int, str]] = {}
    known: set[str] = set()
    for turn in turns:
        for number, block in enumerate(turn.blocks):
            kind = str(block.get("type"))
            if kind == "server_tool_use":
                begun[str(block.get("id"))] = turn.place, str(block.get("name"))
                known.add(str(block.get("id")))
            elif turn.role == "assistant" and kind.endswith("_tool_result"):
                call = str(block.get("tool_use_id"))
                if call not in known and kind != "mcp_tool_result":
                    yield Problem(
                        f"messages.{turn.place}.content.{number}: unexpected `tool_use_id` found in `{kind}` blocks: "
                        f"{call}. Each `{kind}` block must have a corresponding `server_tool_use` block before it."
                    )
                begun.pop(call, None)
    for call, (place, name) in begun.items():
        if any(turn.place > place and any(_leaves_behind(block, call) for block in turn.blocks) for turn in turns):
            yield Problem(
                f"messages.{place}: `{name}` tool use with id `{call}` was found without a corresponding "
                f"`{name}_tool_result` block"
            )


def _leaves_behind(block: dict[str, Any], run: str) -> bool:
    """Whether it is said when the run is over: not a result, and no further call of the run itself."""
    caller = block.get("caller")
    return block.get("type") != "tool_result" and not (isinstance(caller, dict) and caller.get("tool_id") == run)


def _ending(turns: list[_Turn]) -> Iterator[Problem]:
    last = turns[-1].blocks[-1] if turns[-1].blocks else {}
    text = last.get("text", "") if last.get("type") == "text" else ""
    if turns[-1].role == "assistant" and text != text.rstrip():
        yield Problem("messages: final assistant content cannot end with trailing whitespace")


def _thinks_first(turns: list[_Turn]) -> Iterator[Problem]:
    """With thinking, the answer that a chain of tool calls belongs to has to open with its thinking."""
    if turns[-1].role != "user" or not turns[-1].ids("tool_result", "tool_use_id"):
        return
    chain = [turn for turn in turns if turn.role == "user" and not turn.ids("tool_result", "tool_use_id")]
    start = turns.index(chain[-1]) + 1 if chain else 1
    kind = turns[start].blocks[0].get("type")
    if kind not in ("thinking", "redacted_thinking"):
        yield Problem(
            f"messages.{turns[start].place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{kind}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block "
            "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable "
            "`thinking`."
        )


_CHECKS: tuple[Callable[[list[_Turn]], Iterator[Problem]], ...] = (
    _unique_calls,
    _answered_calls,
    _called_results,
    _server_results,
    _ending,
)
