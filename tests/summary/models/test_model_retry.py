"""Which failures may pass, and how long is waited: statuses, codes and headers as the SDKs and servers give them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold.errors import TimedOut
from contextfold.summary.models.errors import AnswerFailed, StreamCut
from contextfold.summary.models.retry import FIRST_WAIT, LONGEST_WAIT, may_pass, retry_after, wait_seconds


class Refused(Exception):
    """Shaped like the errors of the official SDKs."""

    def __init__(self, status: int | None = None, text: str = "", body: Any = None, **headers: str) -> None:
        super().__init__(text)
        self.status_code = status
        self.body = body
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(status_code=status, headers=names)


class APIConnectionError(Exception):
    """Named as in the SDKs."""


class Botocore(Exception):
    response = {"ResponseMetadata": {"HTTPStatusCode": 503}}  # noqa: RUF012 - as theirs


class Retryable(Exception):
    def __init__(self, is_retryable: bool) -> None:
        super().__init__(is_retryable)
        self.is_retryable = is_retryable


class GoogleWrapped(Exception):
    """As older releases of langchain-google-genai have it."""

    def __init__(self) -> None:
        super().__init__("Error calling model 'gemini' (RESOURCE_EXHAUSTED)")
        self.__cause__ = GEMINI


QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22s"}],
    }
}


class GeminiError(Exception):
    """Shaped like the error of google-genai: the status is its ``code``, and no header says how long to wait."""

    def __init__(self, code: int, details: Any) -> None:
        super().__init__(f"{code} {details['error']['status']}. {details}")
        self.code, self.details, self.status = code, details, details["error"]["status"]
        self.response = None


GEMINI = GeminiError(429, QUOTA)

PASSING = [
    Refused(408),
    Refused(409),
    Refused(429, "Rate limit reached for requests"),
    Refused(500),
    Refused(502),
    Refused(503),
    Refused(529),
    Refused(200, body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    Refused(400, x_should_retry="true"),
    Botocore(),
    APIConnectionError(),
    ConnectionResetError(),
    TimeoutError(),
    StreamCut(),
    AnswerFailed("try later", code="server_error"),
    TimedOut("silent", seconds=3, total=False),
    RuntimeError("429 Too Many Requests"),
    RuntimeError("Error code: 503 - the model is overloaded"),
    Retryable(True),
    GEMINI,
    GoogleWrapped(),
]
LASTING = [
    Refused(400, "bad request"),
    Refused(401, "invalid x-api-key"),
    Refused(403),
    Refused(404),
    Refused(422),
    Refused(501),
    Refused(503, x_should_retry="false"),
    Refused(429, "You exceeded your current quota", {"error": {"code": "insufficient_quota"}}),
    Refused(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."),
    AnswerFailed("no", code="invalid_prompt"),
    TimedOut("over", seconds=3, total=True),
    ValueError("a bug"),
    ValueError("404 things were found"),
    Retryable(False),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert may_pass(error)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_will_not_pass_is_not(error: Exception) -> None:
    """A rate limit smaller than the prompt is one of these: waiting makes no prompt smaller."""
    assert not may_pass(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry_after": "Thu, 01 Jan 1970 00:01:40 -0000"}, 90.0),
        ({"retry_after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry_after": "Thu, 01 Jan 1970 00:01:40 GMT", "date": "Thu, 01 Jan 1970 00:01:35 GMT"}, 5.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({"retry_after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_milliseconds_and_as_a_date(headers: Any, seconds: float | None) -> None:
    assert retry_after(Refused(429, **headers), wall=10.0) == seconds


def test_a_delay_that_stands_in_the_text_alone_is_read() -> None:
    assert retry_after(GEMINI, wall=0) == 22.0
    assert retry_after(RuntimeError("429: Rate limit reached. Please try again in 1.5s."), wall=0) == 1.5
    assert retry_after(RuntimeError("try again in a while"), wall=0) is None


def test_headers_are_found_on_the_error_itself_too_and_in_any_case() -> None:
    class Bare(Exception):
        headers = {"Retry-After": "4"}  # noqa: RUF012 - as clients have it

    assert retry_after(Bare(), wall=0) == 4


def test_what_the_provider_asks_for_is_waited_at_least() -> None:
    """And spread a little, so that requests side by side do not all come back at once."""
    error = Refused(429, retry_after="10")
    assert wait_seconds(error, 1, wall=0, chance=0) == 10
    assert 10 < wait_seconds(error, 3, wall=0, chance=1) <= 11


@given(attempt=st.integers(1, 40), chance=st.floats(0, 1, exclude_max=True))
def test_waits_grow_within_bounds(attempt: int, chance: float) -> None:
    wait = wait_seconds(Refused(500), attempt, wall=0, chance=chance)
    assert FIRST_WAIT / 2 <= wait <= LONGEST_WAIT
    assert wait <= FIRST_WAIT * 2 ** (attempt - 1)
    assert wait <= wait_seconds(Refused(500), attempt + 1, wall=0, chance=chance)
