"""What models of pydantic-ai are, and what their settings and answers say.

What belongs here: reading these, and the copies of a model and of settings that a request for a summary needs. What
does not: requests on their way (``capability``).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from contextfold.calls.thinking import IS_CLAUDE
from contextfold.calls.usage import Usage
from contextfold.errors import held
from contextfold.summary.summarizer import Answer

OWN = "__pydantic_ai__"
"""In the ``metadata`` of a response: what the framework itself notes there."""

RAN_THERE = ("builtin-tool-call", "builtin-tool-return", "compaction")
"""Kinds of parts of what the provider does by itself, in the answer: it runs tools, and compacts."""

MADE_UP = ("function", "test")
"""Systems whose usage is no count of what was sent: the framework's own models for tests."""

_SHAPES = frozenset({"stop_sequences", "logit_bias", "openai_prediction"})
"""Settings that are no part of a prompt, and with which an answer would be no summary (``NOT_FOR_A_SUMMARY``)."""


# ---- models ----


def name_of(model: Model) -> str:
    """A model's own class may name it as anything, or not at all."""
    return name if isinstance(name := held(model, "model_id"), str) else ""


def is_claudes(model: Model) -> bool:
    """Whether what is asked of Claude is asked of this model: the settings of an agent may be meant for another one,
    and of several that stand in for each other any may answer.
    """
    if isinstance(several := held(model, "models"), list | tuple):
        return all(map(is_claudes, several))
    name = name_of(model)
    # Which model stands behind a profile of Bedrock's, its name does not say.
    return IS_CLAUDE.search(name) is not None or "arn:aws" in name


def is_kept_by_openai(model: Model, settings: Any, messages: Sequence[ModelMessage]) -> bool:
    """Whether these messages go behind others that OpenAI has, and this list may not.

    Any other model is sent the whole list, whatever such settings say, and of several any may answer. So is OpenAI's,
    where all answers are of other providers and conversations.
    """
    own: dict[str, Any] = {**(held(model, "settings") or {}), **(settings or {})}
    if isinstance(several := held(model, "models"), list | tuple):
        return bool(several) and all(is_kept_by_openai(one, own, messages) for one in several)
    if isinstance(model, WrapperModel):
        return is_kept_by_openai(held(model, "wrapped"), own, messages)
    # Its module needs OpenAI's SDK, and takes long to import.
    if not any(kind.__name__ == "OpenAIResponsesModel" for kind in type(model).__mro__):
        return False
    if named := own.get("openai_conversation_id"):
        # Until an answer in the list is of the conversation, the framework sends the whole list to it.
        here = messages[-1].conversation_id if messages and named == "auto" else None
        return any(
            isinstance(message, ModelResponse)
            and (of := (message.provider_details or {}).get("conversation_id"))
            and named in ("auto", of)
            and (here is None or message.conversation_id in (None, here))
            and model.accepts_server_state(message)
            for message in messages
        )
    # "auto" goes on from a response in this list as long as all before it is as it was: it sends a view whole.
    return own.get("openai_previous_response_id") not in (None, "", "auto")


def is_made_up(model: Model, response: ModelResponse | StreamedResponse) -> bool:
    """Whether the usage of a response is one that a model for tests makes up."""
    said, systems = response.provider_name, for_tests(model)
    # of the models for tests, not every one names itself in its responses
    return said in MADE_UP or (all(systems) if said else any(systems))


def for_tests(model: Model) -> list[bool]:
    """Whether a model is one for tests; of a chain ("fallback:openai,function"), each of its models."""
    return [name in MADE_UP for name in re.split("[:,]", str(model.system)) if name != "fallback"]


def makes_a_budget(model: Model) -> bool:
    """Whether a model is one of Claude's that think with a budget, whatever is asked for."""
    profile: Mapping[str, Any] = model.profile
    if profile.get("bedrock_thinking_variant") == "anthropic":
        return not profile.get("bedrock_supports_adaptive_thinking")
    return model.system == "anthropic" and not profile.get("anthropic_supports_adaptive_thinking")


# ---- answers ----


def usage_of(response: ModelResponse) -> Usage:
    """What a response says of its request. Where the provider ran its own tools, it counts what each round read, and
    where it compacted by itself, what was left."""
    said = response.usage
    if any(part.part_kind in RAN_THERE for part in response.parts):
        return Usage(None, said.output_tokens or None)
    # Of an answer that took several requests, the framework notes in its own metadata what the first one read.
    beside: Any = response.metadata
    own = beside.get(OWN) if isinstance(beside, dict) else None
    noted = own.get("context_input_tokens") if isinstance(own, dict) else None
    read = noted if isinstance(noted, int) else said.input_tokens
    return Usage(read or None, said.output_tokens or None)


def answer_of(model: Model, response: ModelResponse) -> Answer:
    usage = RequestUsage() if is_made_up(model, response) else response.usage
    read, written = usage.input_tokens or None, usage.output_tokens or None
    return Answer(response.text or "", response.finish_reason, bool(response.tool_calls), read, written)


def writing(model: Model) -> Callable[[str], Awaitable[Answer]]:
    """A model of pydantic-ai as a summarizer."""

    async def write(prompt: str) -> Answer:
        request = ModelRequest.user_text_prompt(prompt)
        return answer_of(model, await model.request([request], None, ModelRequestParameters()))

    return write


# ---- settings ----


def limited(settings: ModelSettings | None, max_tokens: int | None) -> ModelSettings | None:
    if max_tokens is None or (settings or {}).get("max_tokens") == max_tokens:
        return settings
    return {**(settings or {}), "max_tokens": max_tokens}


def without_shapes(settings: ModelSettings | None) -> ModelSettings | None:
    if settings is None or not _SHAPES & settings.keys():
        return settings
    return cast("ModelSettings", {name: one for name, one in settings.items() if name not in _SHAPES})


def for_a_summary(model: Model) -> Model:
    """The model, or a copy that has no such settings of its own: those of a request do not take them away."""
    changed: dict[str, Any] = {}
    if isinstance(model, WrapperModel) and (inner := for_a_summary(model.wrapped)) is not model.wrapped:
        changed["wrapped"] = inner
    if isinstance(chain := held(model, "models"), list):  # a ``FallbackModel``'s
        free_ones = [for_a_summary(one) for one in chain]
        if any(one is not given for one, given in zip(free_ones, chain, strict=True)):
            changed["models"] = free_ones
    own = held(model, "_settings")
    if isinstance(own, dict) and (free := without_shapes(cast("ModelSettings", own))) is not own:
        changed["_settings"] = free
    if not changed:
        return model
    copied = copy.copy(model)
    vars(copied).update(changed)
    return copied
