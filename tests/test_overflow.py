"""What an error says about sizes: provider by provider, look-alikes, and every way an error can be wrapped.

The texts are what providers and servers really print (or printed), one for each structure. The reference file of the
measuring instrument is tested as well where it is at hand.
"""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Mapping
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.errors import ContextOverflow
from contextfold.overflow import Overflow, classify
from contextfold.overflow.classifying import BARE_FILL

PROMPT, OUTPUT, ITEM = "prompt_too_long", "output_budget", "item_too_long"
RATE, TRUNCATED, MALFORMED = "rate_limit_too_small", "truncated_silently", "malformed_history"

# text, limit, used
TOO_LONG: list[tuple[str, int | None, int | None]] = [
    ("BadRequestException: 9000 tokens exceed the limit of 8192 tokens", 8192, 9000),
    ("InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]", 202745, None),
    ("Payload too large: the request has 5242881 bytes, and the limit is 5242880 bytes", None, None),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131072,
        537812,
    ),
    (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        262144,
        291351,
    ),
    (
        "prompt token count of 209195 exceeds the limit of 200000",
        200000,
        209195,
    ),
    (
        "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
        202752,
        204703,
    ),
    (
        "Prompt contains 40960 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40960,
    ),
    (
        "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens",
        32768,
        41911,
    ),
    (
        "Input prompt (36893 tokens) is too long and exceeds limit of 1000",
        1000,
        36893,
    ),
    (
        "You passed 20000 input tokens and requested 1024 output tokens. However, the model's context "
        "length is only 16384 tokens, resulting in a maximum input length of 15360 tokens.",
        16384,
        20000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 10000. This model's maximum context length "
        "is 16384 tokens and your request has 112946 input tokens (10000 > 16384 - 112946).",
        16384,
        112946,
    ),
    (
        "Input length (265330) exceeds model's maximum context length (262144).",
        262144,
        265330,
    ),
    (
        "Input length 131073 exceeds the maximum allowed input length of 131072 tokens.",
        131072,
        131073,
    ),
    (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        4096,
        5000,
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 200 `max_new_tokens`",
        4096,
        5000,
    ),
    (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        None,
    ),
    (
        "Model context window is 128k tokens, you requested 256k tokens",
        128000,
        256000,
    ),
    (
        "Context window exceeded: requested 12000 tokens",
        None,
        12000,
    ),
    (
        "Prompt too large for this model",
        None,
        None,
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 6539 tokens (6283 in "
        "your prompt; 256 for the completion).",
        4097,
        6283,
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 4226 tokens",
        4097,
        4226,
    ),
    (
        "input length and max_tokens exceed context limit: 210402 + 8192 > 204648, decrease input length",
        204648,
        210402,
    ),
    (
        "max_tokens must be at least 1, got -4242.",
        None,
        None,
    ),
    (
        "max_completion_tokens must be at least 1, got -186.",
        None,
        None,
    ),
    (
        "Input is too long.",
        None,
        None,
    ),
    (
        "The model has reached its context window limit.",
        None,
        None,
    ),
    (
        "Context size has been exceeded.",
        None,
        None,
    ),
    (
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
        "with context length of only 4096 tokens",
        4096,
        5000,
    ),
    (
        "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested "
        "a total of 140000 tokens: 132000 tokens from the input messages and 8000 tokens for the "
        "completion.",
        131072,
        132000,
    ),
    (
        "Too many tokens in prompt",
        None,
        None,
    ),
    (
        "Prompt 超长",
        None,
        None,
    ),
    (
        "输入长度超过模型上限",
        None,
        None,
    ),
    (
        "入力が長すぎます。トークン数の上限を超えています",
        None,
        None,
    ),
    (
        "413 Request Entity Too Large",
        None,
        None,
    ),
    (
        "Unable to submit request because the input token count is 1196265 but model only supports up to 1048576.",
        1048576,
        1196265,
    ),
    (
        "Error: the conversation is too long for this model; 130000 tokens, maximum is 128000",
        128000,
        130000,
    ),
    (
        "ContextWindowExceededError: litellm.BadRequestError: prompt is too long: 213,462 tokens > 200,000 maximum",
        200000,
        213462,
    ),
    (
        "tokens in prompt (9,001) > n_ctx (8,192)",
        8192,
        9001,
    ),
    (
        "Requested tokens (4500) exceed context window of 4096",
        4096,
        4500,
    ),
    (
        "Your messages exceed the model's limit. Total: 140000 tokens. Limit: 128000 tokens.",
        128000,
        140000,
    ),
    (
        "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array "
        "with length 2075 instead.",
        None,
        None,
    ),
    (
        "Your input is 210,000 tokens but this model accepts only 200,000.",
        200000,
        210000,
    ),
    (
        "Prompt length of 9000 tokens is over the 8192 token limit",
        8192,
        9000,
    ),
    (
        "The request's total token count (150321) surpasses the model limit (131072)",
        131072,
        150321,
    ),
    (
        "Sequence length 40000 is longer than the maximum sequence length 32768 for this model",
        32768,
        40000,
    ),
    (
        "maximum context length of 8192 tokens exceeded: got 9500",
        8192,
        9500,
    ),
    (
        "This conversation has grown too long for the model to handle.",
        None,
        None,
    ),
    (
        "Conversation exceeds the context window; please start a new chat.",
        None,
        None,
    ),
    (
        "ValidationException: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please "
        "update the input to try again.",
        None,
        None,
    ),
    (
        "ValidationException: The model returned the following errors: Input is too long for requested model",
        None,
        None,
    ),
    (
        "input token count 1200000 exceeds the limit 1048576",
        1048576,
        1200000,
    ),
    (
        "Token count of prompt is 70000, which is greater than 65536",
        65536,
        70000,
    ),
    (
        "exceeded maximum number of input tokens: 65536 (got 70000)",
        65536,
        70000,
    ),
    (
        "the number of prompt tokens (70000) plus max_tokens (2000) exceeds the context size 65536",
        65536,
        70000,
    ),
    (
        "exceeded model context: 9000/8192 tokens",
        8192,
        9000,
    ),
    (
        "cannot fit the request: prompt needs 9000 tokens, window has 8192",
        8192,
        9000,
    ),
    (
        "n_tokens (9000) exceeds n_ctx_slot (8192)",
        8192,
        9000,
    ),
    (
        "上下文长度 140000 超过限制 131072",
        131072,
        140000,
    ),
]

OUTPUT_BUDGET: list[tuple[str, int | None, int | None]] = [
    (
        "You passed 15361 input tokens and requested 1024 output tokens. However, the model's context "
        "length is only 16384 tokens, resulting in a maximum input length of 15360 tokens. Please reduce "
        "the length of the input prompt. (parameter=input_tokens, value=15361)",
        16384,
        15361,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 2045. This model's maximum context length "
        "is 2048 tokens and your request has 8 input tokens (2045 > 2048 - 8).",
        2048,
        8,
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`",
        4096,
        4000,
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 4226 tokens (3970 in "
        "your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
        4097,
        3970,
    ),
    (
        "This model's maximum context length is 2049 tokens, however you requested 4022 tokens (34 in your "
        "prompt; 3988 for the completion).",
        2049,
        34,
    ),
    (
        "input length and max_tokens exceed context limit: 90402 + 116650 > 204648, decrease input length "
        "or max_tokens and try again",
        204648,
        90402,
    ),
    (
        "the number of prompt tokens (65000) plus max_tokens (2000) exceeds the context size 65536",
        65536,
        65000,
    ),
    (
        "prompt tokens (65000) + completion tokens (2000) = 67000 exceed model context length 65536",
        65536,
        65000,
    ),
    (
        "This model's maximum context length is 65536 tokens. You requested 66000 tokens in total: 60000 "
        "for the prompt and 6000 for the completion.",
        65536,
        60000,
    ),
    (
        "context limit is 32768; your prompt is 30000 tokens and max_new_tokens is 4096",
        32768,
        30000,
    ),
]

ITEM_TOO_LONG: list[tuple[str, int | None, int | None]] = [
    (
        "Invalid 'input[12].output': string too long. Expected a string with maximum length 10485760, but "
        "got a string with length 11000000 instead.",
        10485760,
        11000000,
    ),
    (
        "Invalid 'messages[1].tool_calls[0].function.arguments': string too long. Expected a string with "
        "maximum length 1048576, but got a string with length 2097152 instead.",
        1048576,
        2097152,
    ),
    (
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5750364 bytes > 5242880 bytes",
        5242880,
        5750364,
    ),
    (
        "Invalid 'messages[7].content[0].text': string too long. Expected a string with maximum length "
        "1048576, but got a string with length 1300000 instead.",
        1048576,
        1300000,
    ),
    (
        "Invalid 'input': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 20485760 instead.",
        10485760,
        20485760,
    ),
    (
        "messages.4.content.0.tool_result.content.0.image: image exceeds the maximum allowed size",
        None,
        None,
    ),
    (
        "invalid request: image too large",
        None,
        None,
    ),
]

RATE_TOO_SMALL: list[tuple[str, int | None, int | None]] = [
    (
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, "
        "Requested 342389. The input or output tokens must be reduced in order to run successfully.",
        30000,
        342389,
    ),
    (
        "Request too large for model `llama3-70b` in organization `org_1` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 6000, Requested 7123, please reduce your message size and try "
        "again.",
        6000,
        7123,
    ),
    (
        "TPM limit 10000 for model x: requested 25000",
        10000,
        25000,
    ),
]

TRUNCATED_SILENTLY: list[tuple[str, int | None, int | None]] = [
    (
        "truncating input prompt limit=2048 prompt=5000 keep=4 new=2048",
        2048,
        5000,
    ),
    (
        "the prompt was truncated to 4096 tokens",
        4096,
        None,
    ),
]

MALFORMED_HISTORY = [
    (
        "messages.89: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    ),
    (
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
    ),
    (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: call_1"
    ),
    ("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
    "No tool output found for function call call_abc.",
    "No tool call found for function call output with call_id call_abc.",
    ('messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row'),
    ("The number of toolResult blocks at messages.3.content exceeds the number of toolUse blocks of previous turn."),
    "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
    ("Please ensure that function call turn comes immediately after a user turn or after a function response turn."),
    (
        "Please ensure that the number of function response parts is equal to the number of function call "
        "parts of the function call turn."
    ),
    "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    "Unexpected role 'user' after role 'tool'",
    "Not the same number of function calls and responses",
    "Item 'rs_abc' of type 'reasoning' was provided without its required following item.",
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    "Missing `reasoning_content` field in the assistant message at message index 2.",
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "The content[].thinking in the thinking mode must be passed back to the API.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    'messages with role "tool" must have a preceding tool_calls message',
    "tool_call_ids did not have response messages: call_9",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "function response parts must equal function call parts of the preceding turn",
    "Tool result without matching tool call: call_7",
]

LOOK_ALIKES = [
    "Number of input tokens has exceeded your hourly limit",
    (
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length "
        "40, but got a string with length 64 instead."
    ),
    (
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 130 instead."
    ),
    (
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length "
        "1024, but got a string with length 1200 instead."
    ),
    (
        "Invalid 'metadata.note': string too long. Expected a string with maximum length 512, but got a "
        "string with length 600 instead."
    ),
    "Rate limit reached for gpt-4 on tokens per min. Limit: 10,000 / min. Please try again in 6ms.",
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "Too many tokens, please wait before trying again.",
    "Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000",
    (
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but "
        "can only afford 2456."
    ),
    ("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet"),
    ("max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000."),
    (
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less "
        "than the `context_window` for this model"
    ),
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "Range of max_tokens should be [1, 8192]",
    "max_tokens must be at least 1, got 0",
    "max_tokens must be at least 1, got -1.",
    "max_tokens exceeds the limit of 8192",
    (
        "Could not finish the message because max_tokens or model output limit was reached. Please try "
        "again with higher max_tokens."
    ),
    "context deadline exceeded",
    "Request timed out.",
    "Request timeout exceeded",
    "Model context window too small (minimum is 128k tokens)",
    "Request header fields too large",
    "The server had an error while processing your request.",
    "Overloaded",
    "Connection error.",
    "Missing required parameter: 'messages'.",
    "Unsupported value: 'temperature' does not support 0.2 with this model.",
    (
        "Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be "
        "an array including every key in properties. Missing 'x'."
    ),
    "The response was filtered due to the prompt triggering content management policy.",
    "The model `gpt-9` does not exist or you do not have access to it.",
    "tool call validation failed: attempted to call tool 'x' which was not in request.tools",
    "400 status code (no body)",
    "file name too long",
    "Too many images and document pages: 105 + 0 > 100",
    "This model does not support image input.",
    "Exceeded maximum number of retries for request",
    "[Errno 36] File name too long: 'x'",
    "Your API token has exceeded its lifetime",
    (
        "Invalid 'seed': integer above maximum value. Expected a value <= 9223372036854775807, but got "
        "9223372036854775808 instead."
    ),
    "Rate limit exceeded: 429 tokens per minute",
    "You have exceeded your monthly included tokens. Please upgrade.",
    "Number of requests has exceeded your per-minute limit",
    "stop sequences: at most 4 allowed, got 5",
    "Internal server error: context initialization failed",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "Model is currently loading; estimated_time: 20",
    "Output exceeded the maximum of 8192 tokens",
    "The maximum number of output tokens is 4096, but 10000 was requested",
    "messages: at least one message is required",
    "messages.0.content: text content blocks must be non-empty",
    "messages: text content blocks must contain non-whitespace text",
    "System prompt is not supported for this model",
    "Tool names must be unique.",
    "Unknown parameter: 'context_window'.",
    "thinking.budget_tokens: Input should be greater than or equal to 1024",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "Input should be a valid dictionary",
    "temperature: Input should be less than or equal to 1",
    "Invalid value: 'input_image'. Supported values are: 'input_text'",
    "Function call is missing a thought_signature in functionCall parts",
    "The provided context window of the batch job has expired",
    "top_logprobs must be less than or equal to 20 tokens",
    "Prompt blocked: prohibited content",
    "请求过于频繁，已触发限流",
    "max_tokens 超过限制 8192",
    "Vous avez dépassé le nombre de connexions",
    "Rate limit reached on tokens per min (TPM): Limit 30000, Requested 30000.",
    "Your request takes too long: see messages.3.tool_call_id.",
]

NAMED = [
    (kind, *row)
    for kind, rows in (
        (PROMPT, TOO_LONG),
        (OUTPUT, OUTPUT_BUDGET),
        (ITEM, ITEM_TOO_LONG),
        (RATE, RATE_TOO_SMALL),
        (TRUNCATED, TRUNCATED_SILENTLY),
    )
    for row in rows
]


@pytest.mark.parametrize(("kind", "text", "limit", "used"), NAMED)
def test_the_text_says_what_is_too_long_and_by_how_much(
    kind: Any, text: str, limit: int | None, used: int | None
) -> None:
    assert classify(message=text) == Overflow(kind, limit, used)


@pytest.mark.parametrize("text", MALFORMED_HISTORY)
def test_unpaired_calls_and_roles_are_a_malformed_history(text: str) -> None:
    assert classify(message=text) == Overflow(MALFORMED)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert classify(message=text, status=400) is None


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u2009", "\u202f", ",", "'", "’", "_", "."])
@pytest.mark.parametrize(
    ("text", "limit", "used"),
    [
        ("This model's maximum context length is {} tokens. Your messages resulted in {} tokens.", 32_000, 41_000),
        ("prompt is too long: {1} tokens > {0} maximum", 1_048_576, 1_213_462),
        ("The input token count ({1}) exceeds the maximum number of tokens allowed ({0}).", 400_000, 1_000_462),
        ("Requested {1} tokens: the limit of llama-3 is {0}", 8_192, 9_001),
    ],
)
def test_blanks_and_signs_between_thousands_do_not_matter(text: str, limit: int, used: int, blank: str) -> None:
    said = text.format(*(f"{size:,}".replace(",", blank) for size in (limit, used)))
    assert classify(said) == Overflow("prompt_too_long", limit, used), said


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("The prompt is too long for llama-3.100: at most 8192 tokens, and 3.125 for each letter", 8_192),
        ("The prompt is too long for 10.200.100.150: at most 8192 tokens, 1.250 tokens per letter", 8_192),
        ("prompt too long for model a_100_200: the limit is 8192 tokens", 8_192),
        ("Zu lang: 150.000 Token, erlaubt sind 128.000.", 128_000),
        ("Request too large on tokens per min (TPM): Limit 30.000, Requested 41.000.", 30_000),
        ("messages.3.content: text is too long, at most 400.000 characters", 400_000),
    ],
)
def test_decimals_addresses_and_names_are_no_thousands(text: str, limit: int) -> None:
    found = classify(text)
    assert found is not None
    assert found.limit == limit


def test_every_example_of_the_reference_file_gets_its_class() -> None:
    folder = Path(__file__).resolve().parents[2] / "shared" / "reference" / "overflow_errors.json"
    if not folder.is_file():
        pytest.skip("the reference file is not here")
    kinds = {"context_overflow": PROMPT, "output_budget": OUTPUT, "item_too_long": ITEM}
    for example in json.loads(folder.read_text(encoding="utf-8")):
        found = classify(status=example["status"], code=example["code"], message=example["message"])
        assert (found and found.kind) == kinds.get(example["class"]), example


class ProviderError(Exception):
    """Shaped like the exceptions of the well-known clients."""

    def __init__(self, text: str, *, status_code: int = 400, code: str | None = None, body: Any = None) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status_code
        self.code = code
        self.body = body


ANTHROPIC = "prompt is too long: 213462 tokens > 200000 maximum"
ANTHROPIC_BODY = {"type": "error", "error": {"type": "invalid_request_error", "message": ANTHROPIC}}
FOUND = Overflow("prompt_too_long", 200000, 213462)


def cause(inner: BaseException, outer: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def context(inner: BaseException, outer: BaseException) -> BaseException:
    outer.__context__ = inner
    return outer


class Response:
    """What an HTTP client attaches to its exceptions."""

    status_code = 400
    text = json.dumps(ANTHROPIC_BODY)


class Unreadable:
    status_code = 400

    @property
    def text(self) -> str:
        raise RuntimeError("the stream was not read")


class Printed(Exception):
    def __str__(self) -> str:
        return ANTHROPIC


class Unruly(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("not now")


class Broken(Exception):
    @property
    def body(self) -> Any:
        raise RuntimeError("the stream was not read")


def with_response(response: Any) -> Exception:
    error = RuntimeError("HTTP error")
    error.response = response  # type: ignore[attr-defined]
    return error


WRAPPED: Mapping[str, Any] = {
    "the text": ANTHROPIC,
    "a body": ANTHROPIC_BODY,
    "bytes": json.dumps(ANTHROPIC_BODY).encode(),
    "JSON inside a string inside JSON": {"error": {"code": 400, "message": json.dumps(ANTHROPIC_BODY)}},
    "three levels of strings": json.dumps({"error": {"message": json.dumps({"detail": json.dumps(ANTHROPIC_BODY)})}}),
    "a printed Python dict": f"Error code: 400 - {ANTHROPIC_BODY}",
    "a server-sent event": f"event: error\ndata: {json.dumps(ANTHROPIC_BODY)}\n\n",
    "a list": [ANTHROPIC_BODY],
    "an exception": ProviderError(ANTHROPIC),
    "an exception whose body alone says it": ProviderError("Bad Request", body=ANTHROPIC_BODY),
    "a cause": cause(ProviderError(ANTHROPIC), RuntimeError("the call failed")),
    "a context": context(ProviderError(ANTHROPIC), RuntimeError("the call failed")),
    "an argument": RuntimeError("failed", ProviderError(ANTHROPIC)),
    "an argument that prints as little": RuntimeError("failed", with_response(Response())),
    "an exception that says more when printed": Printed(),
    "an exception with a part that breaks": Broken(ANTHROPIC),
    "a bytearray": bytearray(json.dumps(ANTHROPIC_BODY).encode()),
    "a group": ExceptionGroup("several", [ValueError("x"), ProviderError(ANTHROPIC)]),
    "a response": with_response(Response()),
    "botocore's mapping": with_response({"Error": {"Code": "ValidationException"}, "message": ANTHROPIC}),
    "a failed response of a stream": {"type": "response.failed", "response": {"error": {"message": ANTHROPIC}}},
}


@pytest.mark.parametrize("name", WRAPPED)
def test_an_overflow_is_found_however_it_is_wrapped(name: str) -> None:
    assert classify(WRAPPED[name]) == FOUND


def test_our_own_exception_says_its_figures_itself() -> None:
    assert classify(ContextOverflow(limit=8, used=9)) == Overflow("prompt_too_long", 8, 9)
    assert classify(cause(ContextOverflow(), RuntimeError("wrapped"))) == Overflow("prompt_too_long")


def test_a_failure_while_handling_an_overflow_is_not_that_overflow() -> None:
    """A fallback model's own error has a status of its own; ``from None`` and a rate limit speak for themselves too."""
    refused = ProviderError("invalid x-api-key", status_code=401)
    assert classify(cause(ProviderError(ANTHROPIC), RuntimeError("the call failed")), status=429) is None
    assert classify(context(ProviderError(ANTHROPIC), refused)) is None
    assert classify(context(ProviderError(ANTHROPIC), ProviderError("Overloaded", status_code=529))) is None
    assert classify(cause(ProviderError(ANTHROPIC), RuntimeError("Rate limit reached"))) is None
    silenced = context(ProviderError(ANTHROPIC), RuntimeError("something else"))
    silenced.__suppress_context__ = True
    assert classify(silenced) is None


def test_an_answer_of_which_nothing_but_the_status_is_told_is_read_where_it_came_from() -> None:
    """LiteLLM's exceptions repeat the text of the SDK's, which may leave out what the body says."""

    class BadRequestError(Exception):
        status_code = 400
        body: object = None

    def told(text: str) -> BaseException:
        said = BadRequestError("Error code: 400")
        said.body = {"detail": "prompt is too long: 213462 tokens > 200000 maximum"}
        outer = BadRequestError(text)
        outer.__context__ = said
        return outer

    bare = "litellm.BadRequestError: OpenAIException - Error code: 400"
    assert classify(told(bare)) == Overflow("prompt_too_long", 200_000, 213_462)
    assert classify(told(f"{bare} - the model does not exist")) is None
    empty = BadRequestError("litellm.BadRequestError: AnthropicException - ")
    assert (classify(empty), classify(empty, fill=0.9)) == (None, Overflow("prompt_too_long"))


class Empty:
    status_code = 413
    text = ""


@pytest.mark.parametrize("given", [{"status": 400}, {"status": 413, "body": b""}, {"error": with_response(Empty())}])
def test_a_refusal_without_a_word_is_about_the_size_of_a_request_that_fills_the_window(given: dict[str, Any]) -> None:
    assert classify(**given, fill=BARE_FILL) == Overflow("prompt_too_long")
    assert classify(**given, fill=BARE_FILL - 0.01) is None
    assert classify(**given, code="content_filter", fill=1.0) is None


def of_a_client(client: str, status: int, text: str = "") -> Any:
    """What a client raises for an answer with this status, as it does it itself."""
    address, phrase = "https://gateway.test/v1/chat/completions", {400: "Bad Request", 413: "Request Entity Too Large"}
    if client == "urllib":
        return urllib.error.HTTPError(address, status, phrase[status], Message(), None)
    if client == "aiohttp":
        url = pytest.importorskip("yarl").URL(address)
        aiohttp = pytest.importorskip("aiohttp")
        request = aiohttp.RequestInfo(url, "POST", {}, url)
        return aiohttp.ClientResponseError(request, (), status=status, message=phrase[status])
    if client == "requests":
        answer = pytest.importorskip("requests").Response()
        answer.status_code, answer.reason, answer.url, answer._content = status, phrase[status], address, text.encode()
    else:
        httpx = pytest.importorskip("httpx")
        answer = httpx.Response(status, text=text, request=httpx.Request("POST", address))
    if client in ("OpenAI", "Anthropic"):
        sdk = getattr(pytest.importorskip(client.lower()), client)(api_key="none")
        return sdk._make_status_error_from_response(answer)
    with pytest.raises(Exception) as raised:
        answer.raise_for_status()
    return raised.value


CLIENTS = ["httpx", "requests", "aiohttp", "urllib", "OpenAI", "Anthropic"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [400, 413])
def test_what_a_client_says_of_an_answer_without_a_body_is_no_word_about_why(client: str, status: int) -> None:
    found = classify(of_a_client(client, status), fill=BARE_FILL)
    assert found is not None
    assert found.kind == "prompt_too_long"
    if status == 400:
        assert classify(of_a_client(client, status), fill=BARE_FILL - 0.01) is None


@pytest.mark.parametrize("client", [client for client in CLIENTS if client not in ("aiohttp", "urllib")])
def test_the_address_beside_a_status_hides_nothing(client: str) -> None:
    page = "<html><head><title>413 Request Entity Too Large</title></head></html>"
    found = classify(of_a_client(client, 413, page))
    assert found == Overflow("prompt_too_long")
    assert found.of_bytes
    assert classify(of_a_client(client, 400, "the value of response_format is wrong"), fill=1.0) is None


def test_a_ring_of_exceptions_ends() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first) is None


def test_neither_a_status_nor_a_vague_code_decides() -> None:
    for status in (400, 413, 422, 429, 500):
        assert classify(status=status) is None
        assert classify(status=status, code="invalid_request_error", message="Something went wrong.") is None
    assert classify(code="BadRequestError") is None


def test_a_code_that_says_it_all_is_believed_unless_the_text_says_otherwise() -> None:
    for code in ("context_length_exceeded", "model_context_window_exceeded", "exceed_context_size_error"):
        assert classify(code=code) == Overflow("prompt_too_long")
    assert classify(type("ContextWindowExceededError", (Exception,), {})("no more words")) == Overflow(
        "prompt_too_long"
    )
    budget = (
        "This model's maximum context length is 4097 tokens. However, you requested 4295 tokens "
        "(2245 in the messages, 2050 in the completion)."
    )
    assert classify(code="context_length_exceeded", message=budget) == Overflow("output_budget", 4097, 2245)
    assert classify(code="context_length_exceeded", message="Rate limit reached") is None


def test_figures_beside_the_text_are_read() -> None:
    figures = {"n_prompt_tokens": 9000, "n_ctx": 8192}
    error = {"code": 400, "message": "the request exceeds the available context size", **figures}
    assert classify({"error": error}) == Overflow("prompt_too_long", 8192, 9000)


def test_answers_that_succeeded_are_read_for_silent_truncation_only() -> None:
    """What a model wrote, or what was sent, is not what is said about it."""
    said = {"choices": [{"finish_reason": "stop", "message": {"content": ANTHROPIC}}], "usage": {"prompt_tokens": 9}}
    assert classify(said) is None
    cut = {"choices": [{"finish_reason": "model_context_window_exceeded", "message": {"content": "..."}}]}
    assert classify(cut) == Overflow("truncated_silently")
    assert classify({"stop_reason": "model_context_window_exceeded"}) == Overflow("truncated_silently")
    assert classify({"truncated": True, "content": "..."}) == Overflow("truncated_silently")
    assert classify({"finish_reason": "length"}) is None
    assert classify({"truncated": True, "prompt_tokens": 9000, "n_ctx": 4096}) == Overflow(TRUNCATED, 4096, 9000)  # type: ignore[arg-type]
    assert classify({"truncated": "no"}) is None


@pytest.mark.parametrize(
    ("text", "of_bytes"),
    [("request entity too large", True), ("Request too large: it exceeds the context window.", False)],
)
def test_a_request_that_is_too_large_as_it_was_sent_says_nothing_about_the_window(text: str, of_bytes: bool) -> None:
    """Else its window would be learned, or that of the other one never."""
    verdict = classify(text)
    assert verdict is not None
    assert verdict.of_bytes is of_bytes


def test_a_validation_error_that_names_its_field_by_place() -> None:
    long = {"loc": ["messages", 3, "content"], "msg": "String should have at most 1048576 characters"}
    assert classify({"detail": [long]}) == Overflow("item_too_long", 1_048_576)
    assert classify({"detail": [{**long, "loc": ["tools", 3, "description"]}]}) is None
    missing = {"loc": ["body", "model"], "msg": "Field required"}
    within = {**long, "loc": ["body", *long["loc"]]}
    assert classify({"detail": [missing, within]}) == Overflow("item_too_long", 1_048_576)
    error = {"param": "messages[3].content", "message": "string too long", "code": "string_above_max_length"}
    assert classify({"error": error}) == Overflow("item_too_long")
    assert classify({"error": {**error, "param": "user"}}) is None
    few = "Invalid 'messages[3].content': array too long. Expected an array with maximum length 20."
    assert classify(few) == Overflow("item_too_long", 20)
    assert classify(few.replace("[3].content", "")) == Overflow("prompt_too_long")


def test_things_that_break_when_read_say_nothing() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert classify(Mute()) is None
    assert classify(with_response(Unreadable())) is None
    assert classify(None) is None
    assert classify(b"\xff\xfe{[") is None
    assert classify(Unruly()) is None
    assert classify("[" * 5000 + "'") is None
    nested: Any = ANTHROPIC
    for _ in range(40):
        nested = [nested]
    assert classify(nested) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)


@given(json_values, st.text(max_size=200))
def test_nothing_makes_it_raise(body: Any, text: str) -> None:
    classify(body)
    classify(RuntimeError(text), body=body, message=text, code=text)


@given(prompt=st.integers(1, 10**7), answer=st.integers(1, 10**6), limit=st.integers(600, 10**7))
def test_arithmetic_decides_where_a_text_gives_all_three_figures(prompt: int, answer: int, limit: int) -> None:
    texts = (
        f"This model's maximum context length is {limit} tokens. However, you requested {prompt + answer} tokens "
        f"({prompt} in the messages, {answer} in the completion).",
        f"input length and `max_tokens` exceed context limit: {prompt} + {answer} > {limit}, decrease input length",
        f"`inputs` tokens + `max_new_tokens` must be <= {limit}. "
        f"Given: {prompt} `inputs` tokens and {answer} `max_new_tokens`",
    )
    for text in texts:
        found = classify(message=text, status=400)
        if prompt >= limit:
            assert found == Overflow("prompt_too_long", limit, prompt)
        elif prompt + answer > limit:
            assert found == Overflow("output_budget", limit, prompt)
        else:
            assert found is None
