"""What Gemini refuses: roles, empty contents, and calls and results that do not pair, in the words of its API.

Neighbors of one role are accepted, and joined before they are looked at. The text for an empty text is Vertex AI's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body

_HUMP = re.compile(r"([A-Z])")

_KNOWN_PARTS = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
)


def field(value: Any, name: str) -> Any:
    """A field by its name in camel case, or as protocol buffers spell it; None where there is none."""
    if not isinstance(value, Mapping):
        return None
    found = value.get(name)
    return value.get(_HUMP.sub(lambda hump: "_" + hump[1].lower(), name)) if found is None else found


def gemini_problem(body: Body) -> Problem | None:
    """The first thing that is wrong, or None."""
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return Problem("* GenerateContentRequest.contents: contents is not specified\n")
    return next(_problems(contents), None)


def _problems(contents: list[Any]) -> Iterator[Problem]:
    for place, content in enumerate(contents):
        yield from _content_problems(content, place, len(contents))
    yield from _turn_problems(list(_turns(contents)))


def _content_problems(content: Any, place: int, number: int) -> Iterator[Problem]:
    where = f"* GenerateContentRequest.contents[{place}]"
    if not isinstance(content, Mapping):
        yield Problem(f"Invalid value at 'contents[{place}]' (type.googleapis.com/google.ai.Content), \"{content}\"")
        return
    role, parts = content.get("role"), content.get("parts")
    if role not in ("user", "model", "function") and not (role is None and number == 1):
        yield Problem("Please use a valid role: user, model.")
    if not isinstance(parts, list) or not parts:
        yield Problem(f"{where}.parts: contents.parts must not be empty.\n")
        return
    for at, part in enumerate(parts):
        if not isinstance(part, Mapping) or not any(field(part, name) is not None for name in _KNOWN_PARTS):
            if field(part, "thoughtSignature") is None:
                yield Problem(
                    f"{where}.parts[{at}].data: required oneof field 'data' must have one initialized field\n"
                )
        elif part.get("text") == "" and field(part, "thoughtSignature") is None:
            yield Problem(
                "Unable to submit request because it has an empty text parameter. Add a value to the parameter and "
                "try again."
            )
        else:
            yield from _function_problems(part, role, f"{where}.parts[{at}]")


def _function_problems(part: Mapping[str, Any], role: Any, where: str) -> Iterator[Problem]:
    for name, inside, speaker in (("functionCall", "args", "model"), ("functionResponse", "response", None)):
        held = field(part, name)
        if held is None:
            continue
        if not field(held, "name"):
            yield Problem(f"{where}.{name}.name: Name cannot be empty.\n")
        if not isinstance(field(held, inside) or {}, Mapping):
            yield Problem(f"Invalid value at '{where[2:]}.{name}.{inside}' (google.protobuf.Struct)")
        if (speaker == "model") != (role == "model"):
            yield Problem(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighboring contents of one speaker. ``calls`` and ``answers`` are (id or None, name)."""

    role: str
    calls: tuple[tuple[str | None, str], ...]
    answers: tuple[tuple[str | None, str], ...]
    speaks: bool
    """It says or shows something besides calls and answers."""


def _turns(contents: list[Any]) -> Iterator[Turn]:
    role, parts = "", list[Mapping[str, Any]]()
    for content in contents:
        speaker = "model" if content.get("role") == "model" else "user"
        if speaker != role and parts:
            yield _turn(role, parts)
            parts = []
        role = speaker
        parts += content["parts"]
    yield _turn(role, parts)


def _turn(role: str, parts: list[Mapping[str, Any]]) -> Turn:
    calls, answers = (
        tuple((field(held, "id"), str(field(held, "name"))) for part in parts if (held := field(part, name)))
        for name in ("functionCall", "functionResponse")
    )
    return Turn(role, calls, answers, len(parts) > len(calls) + len(answers))


def _turn_problems(turns: list[Turn]) -> Iterator[Problem]:
    if turns[0].calls:
        yield Problem(
            "Please ensure that function call turn comes immediately after a user turn or after a function response "
            "turn."
        )
    if turns[0].role == "model":
        yield Problem("Please ensure that multiturn requests start with a user turn.")
    for before, turn in zip([None, *turns], [*turns, None], strict=True):
        calls = before.calls if before is not None else ()
        answers = turn.answers if turn is not None else ()
        if answers and not calls:
            yield Problem("Please ensure that function response turn comes immediately after a function call turn.")
        elif len(answers) != len(calls):
            yield Problem(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        elif not _is_paired(calls, answers):
            yield Problem("Please ensure that function responses match the function calls of the function call turn.")


def _is_paired(calls: tuple[tuple[str | None, str], ...], answers: tuple[tuple[str | None, str], ...]) -> bool:
    """By ids where both sides have them, else by names in the order of the calls."""
    if all(call_id for call_id, _ in (*calls, *answers)):
        return sorted(map(str, calls)) == sorted(map(str, answers))
    return [name for _, name in calls] == [name for _, name in answers]
