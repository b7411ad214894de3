"""How providers say that a prompt does not fit: texts, codes, statuses and the shapes of bodies.

What belongs here: one row per way of saying it, with the figures filled in. What does not: whether a prompt fits
(``provider``).

The texts are those that the providers and servers send; figures are in braces: ``window``, ``prompt``, ``answer``
(the answer limit of the request), ``total`` (prompt and answer), ``excess``, ``messages`` and ``tools`` (parts of the
prompt), all in tokens, and ``bytes`` and ``window_bytes`` (about four per token).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from emulator.problems import ErrorAnswer, Problem

Shape: TypeAlias = Callable[[Problem, "Figures"], Any]
"""The body of an error."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Tokens: the window, the prompt, the answer limit (0 where the request names none), and the tools' share."""

    window: int
    prompt: int
    answer: int = 0
    tools: int = 0

    def fill(self, text: str) -> str:
        """The text with its braces filled in."""
        return text.format(
            window=self.window,
            prompt=self.prompt,
            answer=self.answer,
            total=self.prompt + self.answer,
            excess=self.prompt - self.window,
            tools=self.tools,
            messages=self.prompt - self.tools,
            room=self.window - self.prompt,
            bytes=self.prompt * 4,
            window_bytes=self.window * 4,
        )


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to refuse a prompt.

    ``prompt`` is said where the prompt alone is too long, ``budget`` where prompt and answer limit together are; with
    None such a request is answered, with as much as the window has room for. ``with_tools`` takes the place of
    ``prompt`` where tools are declared. ``shape`` makes the body; None: as the API that was called does. With
    ``in_stream`` a streaming request gets HTTP 200, and the error as an event.
    """

    prompt: str
    budget: str | None = None
    with_tools: str | None = None
    status: int = 400
    type: str = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None
    shape: Shape | None = None
    in_stream: bool = False

    def problem(self, figures: Figures) -> Problem | None:
        """What is wrong with a prompt of that size, or None if it is answered."""
        if figures.prompt > figures.window:
            text = self.with_tools if self.with_tools and figures.tools else self.prompt
        elif self.budget is not None and figures.prompt + figures.answer > figures.window:
            text = self.budget
        else:
            return None
        return Problem(figures.fill(text), self.status, self.type, self.code, self.param)

    def answer(self, problem: Problem, figures: Figures, own_shape: Callable[[Problem], Any]) -> ErrorAnswer:
        """The error as it is sent; ``own_shape`` is that of the API that was called."""
        body = own_shape(problem) if self.shape is None else self.shape(problem, figures)
        return ErrorAnswer(problem, body, in_stream=self.in_stream)


# ---- shapes of bodies -----------------------------------------------------------------------------------------------


def _openai(problem: Problem, figures: Figures) -> Any:
    return {"error": {"message": problem.message, "type": problem.type, "param": problem.param, "code": problem.code}}


def _flat(problem: Problem, figures: Figures) -> Any:
    """vLLM before 0.11, and Mistral: no envelope."""
    return {
        "object": "error",
        "message": problem.message,
        "type": problem.type,
        "param": problem.param,
        "code": problem.code,
    }


def _llama_cpp(problem: Problem, figures: Figures) -> Any:
    inner = {"code": 400, "message": problem.message, "type": problem.type}
    return {"error": {**inner, "n_prompt_tokens": figures.prompt, "n_ctx": figures.window}}


def _text(problem: Problem, figures: Figures) -> Any:
    return {"error": problem.message}


def _aws(problem: Problem, figures: Figures) -> Any:
    return {"message": problem.message, "__type": "ValidationException"}


def _google(problem: Problem, figures: Figures) -> Any:
    return {"error": {"code": problem.status, "message": problem.message, "status": "INVALID_ARGUMENT"}}


def _tgi(problem: Problem, figures: Figures) -> Any:
    return {"error": problem.message, "error_type": "validation"}


def _message(problem: Problem, figures: Figures) -> Any:
    return {"message": problem.message}


def _detail(problem: Problem, figures: Figures) -> Any:
    return {"detail": [{"loc": ["body", "messages"], "msg": problem.message, "type": "value_error"}]}


def _openrouter(problem: Problem, figures: Figures) -> Any:
    metadata = {"provider_name": None}
    return {"error": {"message": problem.message, "code": problem.status, "metadata": metadata}, "user_id": "user_1"}


def _openrouter_wrapped(problem: Problem, figures: Figures) -> Any:
    """The upstream's body as a string in the metadata."""
    metadata = {"raw": json.dumps(_openai(problem, figures)), "provider_name": "Upstream"}
    return {"error": {"message": "Provider returned error", "code": problem.status, "metadata": metadata}}


def _litellm(problem: Problem, figures: Figures) -> Any:
    """The upstream's body as a string behind the names of two exceptions."""
    raw = json.dumps({"type": "error", "error": {"type": problem.type, "message": problem.message}})
    said = f"litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - {raw}"
    return {"error": {"message": said, "type": None, "param": None, "code": "400"}}


def _databricks(problem: Problem, figures: Figures) -> Any:
    """The upstream's body as a string in a string."""
    raw = json.dumps({"external_model_message": _openai(problem, figures)})
    return {"error_code": "BAD_REQUEST", "message": f"Bad request: {raw}"}


# ---- the rows -------------------------------------------------------------------------------------------------------

_REDUCE = "Please reduce the length of the messages"
_RESULTED = f"Your messages resulted in {{prompt}} tokens. {_REDUCE}."
_OPENAI = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. "
    f"{_REDUCE}."
)
_OPENAI_TOOLS = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens "
    f"({{messages}} in the messages, {{tools}} in the functions). {_REDUCE} or functions."
)
_REQUESTED = (
    "This model's maximum context length is {window} tokens. However, you requested {total} tokens "
    f"({{prompt}} in the messages, {{answer}} in the completion). {_REDUCE} or completion."
)
_ANTHROPIC_BUDGET = (
    "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, "
    "decrease input length or `max_tokens` and try again"
)
_OPENROUTER = (
    "This endpoint's maximum context length is {window} tokens. However, you requested about {total} tokens "
    "({prompt} of text input, {answer} in the output). Please reduce the length of either one, or use the "
    "context-compression plugin to compress your prompt automatically."
)
_LENGTH_CODE = "context_length_exceeded"

_CHAT = Wording(_OPENAI, _REQUESTED, _OPENAI_TOOLS, code=_LENGTH_CODE, param="messages")
_RESPONSES = Wording(
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    code=_LENGTH_CODE,
    param="input",
    in_stream=True,
)
_ANTHROPIC = Wording("prompt is too long: {prompt} tokens > {window} maximum", _ANTHROPIC_BUDGET)

_GEMINI = Wording(
    "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window}).", shape=_google
)
_BEDROCK = Wording("Input is too long for requested model.", shape=_aws)

NATIVE: Mapping[str, Wording] = {
    "openai-chat": _CHAT,
    "openai-responses": _RESPONSES,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "bedrock-converse": _BEDROCK,
}
"""By wire format: what its own provider says."""

WORDINGS: Mapping[str, Wording] = {
    **NATIVE,
    "openai-chat-stream": replace(_CHAT, in_stream=True),
    "openai-configured": Wording(
        f"Input tokens exceed the configured limit of {{window}} tokens. {_RESULTED}",
        code=_LENGTH_CODE,
        param="messages",
    ),
    "openai-rate": Wording(
        "Request too large for this model in organization org-1 on tokens per min (TPM): Limit {window}, Requested "
        "{prompt}. The input or output tokens must be reduced in order to run successfully.",
        status=429,
        type="tokens",
        code="rate_limit_exceeded",
    ),
    "azure": replace(_CHAT, shape=_openai),
    "anthropic-stream": replace(_ANTHROPIC, in_stream=True),
    "anthropic-bytes": Wording("Request exceeds the maximum size", status=413, type="request_too_large"),
    "bedrock": _BEDROCK,
    "bedrock-stream": replace(_BEDROCK, in_stream=True),
    "bedrock-claude": Wording(
        "The model returned the following errors: prompt is too long: {prompt} tokens > {window} maximum",
        "The model returned the following errors: " + _ANTHROPIC_BUDGET,
        shape=_aws,
    ),
    "bedrock-bytes": Wording(
        "The model returned the following errors: too many total text bytes: {bytes} > {window_bytes}", shape=_aws
    ),
    "bedrock-tokens": Wording(
        "Too many input tokens. Max input tokens: {window}, request input token count: {prompt}", shape=_aws
    ),
    "vllm": Wording(
        "This model's maximum context length is {window} tokens. However, your request has {prompt} input tokens. "
        "Please reduce the length of the input messages. (parameter=input_tokens, value={prompt})",
        "This model's maximum context length is {window} tokens. However, your request has {prompt} input tokens plus "
        "{answer} 'max_tokens'. Please reduce one or the other. "
        "(parameter=input_tokens, max_tokens, value=({prompt}, {answer}))",
        type="BadRequestError",
        code=400,
        shape=_openai,
    ),
    "vllm-old": Wording(_REQUESTED, _REQUESTED, type="BadRequestError", code=400, shape=_flat),
    "vllm-engine": Wording(
        "The decoder prompt (length {prompt}) is longer than the maximum model length of {window}. "
        "Make sure that `max_model_len` is no smaller than the number of text tokens.",
        type="BadRequestError",
        code=400,
        shape=_flat,
    ),
    "vllm-negative": Wording(
        "max_tokens must be at least 1, got {room}.", type="BadRequestError", code=400, shape=_flat
    ),
    "sglang": Wording(
        "The input ({prompt} tokens) is longer than the model's context length ({window} tokens).",
        "Requested token count exceeds the model's maximum context length of {window} tokens. You requested a total of "
        "{total} tokens: {prompt} tokens from the input messages and {answer} tokens for the completion. Please reduce "
        "the number of tokens in the input messages or the completion to fit within the limit.",
        type="BadRequestError",
        code=400,
        shape=_flat,
    ),
    "llama.cpp": Wording(
        "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it",
        type="exceed_context_size_error",
        shape=_llama_cpp,
    ),
    "lm-studio": Wording(
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input.",
        shape=_text,
    ),
    "ollama": Wording(
        "input length ({prompt} tokens) exceeds the model's maximum context length ({window} tokens)", shape=_openai
    ),
    "ollama-old": Wording("prompt too long; exceeded max context length by {excess} tokens", shape=_text),
    "groq": Wording(
        "Please reduce the length of the messages or completion.", code=_LENGTH_CODE, param="messages", shape=_openai
    ),
    "cerebras": Wording(
        "Please reduce the length of the messages or completion. Current length is {prompt} while limit is {window}",
        code=_LENGTH_CODE,
        shape=_flat,
    ),
    "mistral": Wording(
        "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {window} maximum context length",
        code="3051",
        shape=_flat,
    ),
    "deepseek": Wording(_REQUESTED, _REQUESTED, code="invalid_request_error", shape=_openai),
    "xai": Wording(
        "This model's maximum prompt length is {window} but the request contains {prompt} tokens.", shape=_text
    ),
    "together": Wording(
        "The input ({prompt} tokens) is longer than the model's context length ({window} tokens).", shape=_openai
    ),
    "fireworks": Wording("The prompt is too long: {prompt}, model maximum context length: {window}", shape=_openai),
    "cohere": Wording(
        "too many tokens: total number of tokens in the prompt cannot exceed {window} - received {prompt}. "
        "Try using a shorter prompt, or enabling prompt truncating.",
        shape=_message,
    ),
    "qwen": Wording(
        "InternalError.Algo.InvalidParameter: Range of input length should be [1, {window}]",
        code="invalid_parameter_error",
        shape=_openai,
    ),
    "zhipu": Wording("Prompt exceeds max length", code="1261", shape=_openai),
    "tgi": Wording(
        "Input validation error: `inputs` must have less than {window} tokens. Given: {prompt}",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. "
        "Given: {prompt} `inputs` tokens and {answer} `max_new_tokens`",
        status=422,
        shape=_tgi,
    ),
    "fastapi": Wording("Input too long: {prompt} input tokens, limit is {window}", status=422, shape=_detail),
    "openrouter": Wording(_OPENROUTER, _OPENROUTER, shape=_openrouter),
    "openrouter-wrapped": Wording(_OPENAI, _REQUESTED, code=_LENGTH_CODE, shape=_openrouter_wrapped),
    "openrouter-stream": Wording(_OPENROUTER, _OPENROUTER, shape=_openrouter, in_stream=True),
    "litellm": Wording("prompt is too long: {prompt} tokens > {window} maximum", _ANTHROPIC_BUDGET, shape=_litellm),
    "databricks": Wording(_OPENAI, _REQUESTED, code=_LENGTH_CODE, shape=_databricks),
}
"""By name. The first ones are those of the APIs themselves, and the default."""


def wording_named(name: str, wire: str) -> Wording:
    """A row, or, for ``native``, what the provider of that wire format says. Raises ``ValueError`` for other names."""
    if name == "native":
        return NATIVE[wire]
    if name not in WORDINGS:
        raise ValueError(f"no provider's wording is called {name!r}: use native or one of {', '.join(WORDINGS)}")
    return WORDINGS[name]
