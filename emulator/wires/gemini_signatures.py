"""Thought signatures of Gemini 3: given with the first call of an answer, and wanted back with that very call.

Only the current turn is looked at: what stands behind the last thing that the user said. The first call of each step
there has to carry its signature; one that is given anywhere has to be one that was made here, in its place.

Reference: https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from emulator.problems import Problem
from emulator.wires.gemini_rules import field

SIGNING = "gemini-3"
_MARK = "thought"

BYPASSES = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""What the documentation gives for calls that another model made."""


def is_signing(model: str) -> bool:
    """Whether a model signs what it says, and wants it back."""
    return model.startswith(SIGNING)


def signature(number: int, name: str) -> str:
    """The signature of a call of the function ``name`` in the answer to request ``number``; no name: of a text."""
    return base64.b64encode(f"{_MARK}|{number}|{name}".encode()).decode()


def signature_problem(model: str, contents: list[Any]) -> Problem | None:
    """What a signing model would refuse; None if nothing."""
    return next(_problems(contents), None) if is_signing(model) else None


def _problems(contents: list[Any]) -> Iterator[Problem]:
    current = max((n for n, content in enumerate(contents) if _is_said(content)), default=-1)
    for place, content in enumerate(contents):
        calls = 0
        for part in field(content, "parts") or ():
            call = field(part, "functionCall")
            name = str(field(call, "name")) if call is not None else ""
            given = field(part, "thoughtSignature")
            if given is not None and not _is_own(str(given), name):
                yield Problem("Corrupted thought signature.")
            if call is not None and calls == 0 and place > current and given is None:
                yield Problem(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools "
                    "to work correctly, and missing thought_signature may lead to degraded model performance. "
                    f"Additional data, function call `default_api:{name}`, position {place + 1}. Please refer to "
                    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
                )
            calls += call is not None


def _is_said(content: Mapping[str, Any]) -> bool:
    """Something that the user says: not the model, and not results alone."""
    parts = field(content, "parts") or ()
    return content.get("role") != "model" and any(field(part, "functionResponse") is None for part in parts)


def _is_own(given: str, name: str) -> bool:
    if given in BYPASSES:
        return True
    try:
        held = base64.b64decode(given.replace("-", "+").replace("_", "/"), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    mark, _, rest = held.partition("|")
    return held in BYPASSES or (mark == _MARK and rest.partition("|")[2] == name)
