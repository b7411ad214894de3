"""What the provider was asked, and what became of it: one value per request, for assertions.

What belongs here: the record of a request. What does not: reading bodies (``wires``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.answers import Answer, Usage

if TYPE_CHECKING:
    from emulator.faults import Fault

HIDDEN = "[hidden]"
_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request. Predicates and scripts see it before it is answered: then the last five fields are still None.

    ``number`` counts requests for answers from 1, in the order of arrival. ``wire`` is the name of a wire format, such
    as ``openai-chat``. ``text`` is all that the model would read, without media; ``messages_text`` leaves out tool
    declarations and instructions. ``tokens`` is the size of the prompt, and ``answer_limit`` the tokens that the answer
    may have at most, if the request says so. The values of headers that carry keys are never kept.

    ``status`` is the HTTP status of the answer (200 for an error that came inside a stream), ``answer`` what was
    answered, ``error`` the body or the event of an error, ``fault`` the injected fault, ``usage`` the reported tokens.
    """

    number: int
    path: str
    wire: str
    model: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    text: str
    messages_text: str
    tokens: int
    answer_limit: int | None
    stream: bool
    status: int | None = None
    answer: Answer | None = None
    error: Any = None
    fault: Fault | None = None
    usage: Usage | None = None
    raw: bytes = b""
    """The body as it came."""


def without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, in lower case, with the values of those that carry keys replaced."""
    return {name.lower(): HIDDEN if name.lower() in _SECRET_HEADERS else value for name, value in headers.items()}
