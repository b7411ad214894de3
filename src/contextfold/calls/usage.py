"""What a provider's answer says about its request: input tokens, output tokens, why it ended.

What belongs here: reading responses of OpenAI Chat, OpenAI Responses, Anthropic, Gemini, Bedrock and LangChain, as
objects or parsed JSON, whole or one event of a stream. What does not: what follows from it (``recovery``).

Nothing here raises. Usage that is about other messages than the ones sent is not read: where the provider ran its
own tools, or asked another model once one had declined, it counts every round; where it edited or compacted the
context, it counts what was left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextfold.summary.summarizer import why_ended

_HOSTED = ("web_search", "file_search", "code_interpreter", "image_generation", "mcp", "server_tool")
"""How the types of what a provider's own tools did begin: items of Responses, blocks of Anthropic and LangChain."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them, cached ones included; None where it does not say, or not about this."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    finish: str | None = None

    def merged(self, later: Usage) -> Usage:
        """This and what a later event of the same stream adds: input is said first, the rest last."""
        return Usage(
            self.input_tokens or later.input_tokens,
            later.output_tokens or self.output_tokens,
            later.finish or self.finish,
        )


MOST_TOKENS = 1 << 40
"""A larger count is none: no request takes as many, and JSON can spell numbers that no division takes."""


def said_in(response: object) -> object:
    """What a raw response of an SDK says, if its body was read; any other response says it itself."""
    try:
        return get(response, "http_response").json()
    except Exception:  # noqa: BLE001 - no raw response, a body that is the caller's to read, or one that is no JSON
        return response


def read_usage(response: object) -> Usage:
    """What a response, or an event of a stream, says of its request; an object may say it itself."""
    try:
        return _read(response)
    except Exception:  # noqa: BLE001 - an answer that is paid for must not be lost over what stands beside it
        return Usage()


def _read(response: object) -> Usage:
    own = getattr(response, "contextfold_usage", None)
    if isinstance(own, Usage):
        return own
    usage = get(response, "usage") or get(response, "usage_metadata") or get(response, "usageMetadata")
    finish = _finish(response)
    if get(response, "candidates") is not None or _gemini_number(usage, "prompt_token_count") is not None:
        return _of_gemini(usage, finish)
    if _is_about_other_messages(response, usage):
        return Usage(finish=finish)
    read = _number(usage, "prompt_tokens")
    if read is None:
        read = _converse_input(usage)
    if read is None:
        read = _number(usage, "input_tokens")
        if read is not None and get(usage, "input_tokens_details") is None:  # Anthropic: what was cached stands beside
            cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
            read += sum(_number(usage, name) or 0 for name in cached)
    written = _number(usage, "completion_tokens")
    for name in ("output_tokens", "outputTokens"):
        written = _number(usage, name) if written is None else written
    return Usage(read or None, written, finish)


def _converse_input(usage: object) -> int | None:
    """Bedrock: what was cached stands beside, as with Anthropic."""
    read = _number(usage, "inputTokens")
    cached = ("cacheReadInputTokens", "cacheWriteInputTokens")
    return None if read is None else read + sum(_number(usage, name) or 0 for name in cached)


def _of_gemini(usage: object, finish: str | None) -> Usage:
    """What Gemini says; cached tokens are among those of the prompt, thoughts beside those of the answer."""
    if _gemini_number(usage, "tool_use_prompt_token_count"):
        return Usage(finish=finish)  # what its own tools found was read as well
    written = [_gemini_number(usage, name) for name in ("candidates_token_count", "thoughts_token_count")]
    said = None if written[0] is None else sum(number or 0 for number in written)
    # An answer that the SDK had continued in further requests counts the prompts of all of them.
    read = _number(usage, "initial_prompt_token_count") or _gemini_number(usage, "prompt_token_count")
    return Usage(read or None, said, finish)


def _gemini_number(usage: object, name: str) -> int | None:
    """A number under its name in the SDK, or in JSON."""
    found = _number(usage, name)
    head, *rest = name.split("_")
    return _number(usage, head + "".join(word.capitalize() for word in rest)) if found is None else found


def get(value: object, name: str) -> Any:
    """A field of an object or a mapping; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign object may raise anything; it says nothing then
        return None


def _finish(response: object) -> str | None:
    choices = get(response, "choices")
    first = choices[0] if isinstance(choices, list | tuple) and choices else None
    metadata = get(response, "response_metadata")
    candidates = get(response, "candidates")
    candidate = candidates[0] if isinstance(candidates, list | tuple) and candidates else None
    said = (
        get(candidate, "finishReason"),
        get(candidate, "finish_reason"),
        get(first, "finish_reason"),
        get(response, "stop_reason"),
        get(response, "stopReason"),
        get(get(response, "messageStop"), "stopReason"),
        get(get(response, "delta"), "stop_reason"),
        get(get(response, "incomplete_details"), "reason"),
        why_ended(metadata) if isinstance(metadata, Mapping) else None,
    )
    return next((str(getattr(reason, "value", reason)) for reason in said if isinstance(reason, str) and reason), None)


def _is_about_other_messages(response: object, usage: object) -> bool:
    if any(isinstance(count, int) and count for count in _values(get(usage, "server_tool_use"))):
        return True
    if get(get(response, "context_management"), "applied_edits"):
        return True
    iterations = get(usage, "iterations")
    if isinstance(iterations, list | tuple) and _are_rounds(iterations):
        return True
    output = get(response, "output")  # Bedrock: a message
    beside = get(get(response, "additional_kwargs"), "tool_outputs")
    lists = (output, get(response, "content"), get(get(output, "message"), "content"), beside)
    items = [item for several in lists if isinstance(several, list | tuple) for item in several]
    kinds = [get(item, "type") or get(get(item, "toolUse"), "type") for item in items]
    return any(_is_compaction(kind) or str(kind or "").startswith(_HOSTED) for kind in kinds)


def _are_rounds(iterations: Sequence[object]) -> bool:
    """Whether the counts are of more than one request, as of a model that declined and of the one that took its place,
    or of what the provider made of it."""
    return len(iterations) > 1 or any(get(one, "type") == "compaction" for one in iterations)


def _is_compaction(kind: object) -> bool:
    """Whether an item or block of this type is a provider's own compaction: it answers from what it made of the
    request, and counts that."""
    return "compaction" in str(kind or "")


def _values(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(vars(value).values()) if hasattr(value, "__dict__") else []


def _number(usage: object, name: str) -> int | None:
    value = get(usage, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None
