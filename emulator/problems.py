"""What the provider refuses, before it is written in any wire format or wording.

What belongs here: the value that validation, windows and faults share, and the finished error answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused. ``type``, ``code`` and ``param`` are what the provider puts beside the message."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error as it is sent. ``in_stream``: a streaming request gets it as an event, after HTTP 200.

    ``body`` is JSON, or a text that is sent as it is (an error page of a proxy).
    """

    problem: Problem
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    in_stream: bool = False
