"""Is a failure worth another try, and after how long?

What belongs here: reading statuses, codes and headers of errors, and the arithmetic of waiting. What does not: waiting
(``ports``), and sending a request again (``asking``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from contextfold.errors import TimedOut, text_of
from contextfold.overflow import classify
from contextfold.overflow.text import ErrorText

FIRST_WAIT = 0.5
"""Seconds before the first retry; each further one waits twice as long, up to ``LONGEST_WAIT``. As the SDKs do."""

LONGEST_WAIT = 30.0

SPREAD = 0.1
"""Share of a wait that a provider named that chance adds, so that requests side by side do not come back as one."""

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 529})
_LASTING_STATUSES = frozenset({501, 505})
_PASSING_CODES = frozenset(
    {"overloaded_error", "api_error", "rate_limit_error", "rate_limit_exceeded", "timeout_error", "server_error"}
    | {"internal_error", "internal_server_error", "service_unavailable", "overloaded", "too_many_requests"}
)
_LASTING_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_STATUS_IN_TEXT = re.compile(r"^(?:error code: |http(?: error)? |status(?: code)?:? )?([45]\d\d)\b", re.IGNORECASE)
_DELAY_IN_TEXT = re.compile(r"(?:retryDelay\W+|(?:retry|try again) in )(\d+(?:\.\d+)?)s\b", re.IGNORECASE)
"""Google says in the error's body alone how long to wait; other providers repeat there what a header says."""
_CONNECTION_CLASSES = frozenset(
    {"APIConnectionError", "TransportError", "ClientConnectionError", "ConnectionError", "Timeout"}
    | {"ServiceUnavailable", "EndpointConnectionError", "ReadTimeoutError", "ConnectionClosedError"}
)
"""Of openai and anthropic, httpx, aiohttp, requests, google and botocore; by name, since they are not imported."""


def may_pass(error: BaseException) -> bool:
    """Whether the same request may well succeed a little later: rate limits, servers, connections, silence."""
    if isinstance(error, TimedOut):
        return not error.total
    # Servers of OpenAI and Anthropic say it themselves; they know more than a status tells.
    advice = _header(error, "x-should-retry")
    if advice in ("true", "false"):
        return advice == "true"
    said = _said(error)
    if _LASTING_CODES.intersection(said.codes) or classify(error) is not None:
        return False  # no money, or too large for the tokens per minute that are allowed
    retryable = getattr(error, "is_retryable", None)  # of LangChain's model errors
    if isinstance(retryable, bool):
        return retryable
    failures = [status for status in said.statuses if status >= 400]
    if failures:
        return all(s in _PASSING_STATUSES or (s >= 500 and s not in _LASTING_STATUSES) for s in failures)
    if _PASSING_CODES.intersection(said.codes):
        return True
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, ConnectionError | TimeoutError) or names & _CONNECTION_CLASSES:
        return True
    cause = error.__cause__  # an integration's own error around the provider's, which says more
    return cause is not None and not (said.statuses or said.codes) and may_pass(cause)


def wait_seconds(error: BaseException, attempt: int, *, wall: float, chance: float) -> float:
    """How long to wait before retry number ``attempt``, from 1: as the provider says, else longer each time.

    ``wall`` is the time in seconds since 1970; ``chance``, from 0 to 1, spreads the waits.
    """
    told = retry_after(error, wall=wall)
    if told is not None:
        return told * (1 + SPREAD * chance)
    longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
    # half of it by chance: clients that failed together must not come back together
    return longest * (0.5 + 0.5 * chance)


def retry_after(error: BaseException, *, wall: float) -> float | None:
    """Seconds that the provider asks to wait: from ``retry-after-ms``, ``Retry-After`` (seconds or an HTTP date), or
    its text.
    """
    milliseconds = _number(_header(error, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = _header(error, "retry-after")
    seconds = _number(told)
    if seconds is None and told is None and (found := _DELAY_IN_TEXT.search(text_of(error))):
        return float(found[1])
    if seconds is not None or told is None:
        return seconds
    until = _date(told)
    now = _date(_header(error, "date") or "")  # the provider's own clock, where it shows it
    return None if until is None else max(0.0, until - (wall if now is None else now))


def _said(error: BaseException) -> ErrorText:
    """Status and codes of one error, without what caused it."""
    said = ErrorText()
    response = getattr(error, "response", None)
    for source in (error, response):
        for name in ("status_code", "status", "code"):
            said.add_code(getattr(source, name, None))
    if isinstance(response, Mapping):  # botocore
        said.add_status((response.get("ResponseMetadata") or {}).get("HTTPStatusCode"))
    said.read(getattr(error, "body", None))
    if not said.statuses and (found := _STATUS_IN_TEXT.match(text_of(error))):
        said.add_status(int(found[1]))
    return said


def _header(error: BaseException, name: str) -> str | None:
    for headers in _headers(error):
        for key, value in headers.items():
            if str(key).lower() == name:
                return str(value).strip().lower() if name == "x-should-retry" else str(value).strip()
    return None


def _headers(error: BaseException) -> Iterator[Mapping[Any, Any]]:
    for source in (getattr(error, "response", None), error):
        headers = getattr(source, "headers", None)
        if headers is not None and hasattr(headers, "items"):
            yield headers


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
