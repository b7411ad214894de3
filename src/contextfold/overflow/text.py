"""What an error says, as plain text and codes: reading whatever a provider, a gateway or an SDK hands back.

What belongs here: exceptions, responses, bodies, JSON and printed Python inside strings, one level of the exception
chain at a time. What does not: what the words mean (``figures``, ``verdicts``).

Nothing here raises, and nothing takes long: an error may quote a whole prompt or an image back at us, and of such a
text only the beginning and the end are kept.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextfold.errors import text_of

LONGEST_TEXT = 8_000
"""Characters of an error's text that are kept, half from its beginning and half from its end."""

_DEEPEST = 24
"""Nesting of values, and of JSON inside their strings, that is followed; real errors have at most a dozen."""

_MOST_FAILURES = 20
"""Places of one text that look like JSON and are not, after which the rest of it is taken for words."""

_LONGEST_LITERAL = 50_000
"""Characters of a printed Python value that is still parsed: the parser is slow, and fails late on broken ones."""

_TEXT_KEYS = re.compile(
    r"^(?:(?:err(?:or)?|status|failure)_?)?(?:message|msg|error|errors|detail|details|description|title|raw|reason)$",
    re.IGNORECASE,
)
_CODE_KEYS = re.compile(r"^(?:code|type|status|error_?code|error_?type|__type)$", re.IGNORECASE)
_FIELD_KEYS = re.compile(r"^(?:param|parameter|loc|path)$")
_FINISH_KEYS = re.compile(r"^(?:finish_?reason|stop_?reason|done_?reason)$", re.IGNORECASE)
# Some servers, llama.cpp for one, give the sizes as fields beside the sentence and not in it.
_FIGURE_KEYS = re.compile(r"^(?:n_prompt_tokens|prompt_tokens|n_ctx|context_length|max_context_length|limit)$")
# What was sent or answered is not what is said about it.
_FOREIGN_KEYS = frozenset(
    {"messages", "input", "inputs", "prompt", "contents", "content", "output", "tools", "usage", "delta", "text"}
    | {"headers", "request", "arguments", "instructions", "system"}
)

_OPENING = re.compile(r"[{\[]\s*[\"'{]")
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CODE_BORDERS = re.compile(r"[\s.\-]+")
_BLOB = re.compile(r"[A-Za-z0-9+/=_\-]{200,}")
_QUOTES = re.compile(r"[`'\"‘’“”*\\]")
_BLANKS = re.compile(r"[ \t]+")
# 128 000, as it is written in French, Russian and by the standard (the blank may be a narrow or a lasting one), and
# 200_000, as code has it.
_IN_A_NUMBER = re.compile(
    r"(?<![^\W_])(?<![.,:\-])(?:[1-9]\d{0,2}(?:[ \u00a0\u2009\u202f]\d{3}){1,4}|(?<!_)[1-9]\d{0,2}(?:_\d{3}){1,4})"
    r"(?![^\W_]|[.,:]\d)"
)
# 128.000, as it is written in German, Spanish and Portuguese. It may be 128 and decimals unless the same text counts
# tokens or letters so, or has more than one dot in a number.
_WITH_DOTS = re.compile(r"(?<![^\W_])(?<![.,:\-])[1-9]\d{0,2}(?:\.\d{3}){1,2}(?![^\W_]|[.,:]\d)")
_DOTS_PART_THOUSANDS = re.compile(
    rf"\blimit:? {_WITH_DOTS.pattern}, requested|{_WITH_DOTS.pattern}(?:(?<=\.\d{{3}}\.\d{{3}})"
    r"| (?:tokens?|jetons|токен\w{0,3}|characters|chars|zeichen|caract\wres|bytes)\b(?! (?:per|pro|a)\b| ?/))"
)
_BETWEEN_THOUSANDS = re.compile(r"\D")
# What the clients of HTTP put behind a status: where it came from, and where statuses are explained.
_WHERE = re.compile(r"for url:? \S{1,2000}|, url=\S{1,2000}|for more information check: \S{1,200}")
_FIGURE_SIGNS = "0123456789,."


@dataclass(slots=True)
class ErrorText:
    """What one level of an error says. ``finishes`` are finish reasons of an answer that came as a success,
    ``fields`` the places in the request that the error names, ``truncated`` is a flag beside the answer.
    """

    texts: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    finishes: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    truncated: bool = False

    @property
    def text(self) -> str:
        """All sentences, lower case, without quotes and back-ticks, in the order of their first mention."""
        joined = "\n".join(dict.fromkeys(stripped for text in self.texts if (stripped := text.strip())))
        # Encoded data goes first, so that it takes none of the room that is kept for words.
        plain = _BLANKS.sub(" ", _QUOTES.sub("", _ends(_BLOB.sub("…", joined)).lower()))
        plain = _WHERE.sub("", plain)
        for numbers in (_IN_A_NUMBER, _WITH_DOTS) if _DOTS_PART_THOUSANDS.search(plain) else (_IN_A_NUMBER,):
            plain = numbers.sub(lambda number: _BETWEEN_THOUSANDS.sub("", number[0]), plain)
        return plain

    def add_status(self, value: object) -> None:
        """An HTTP status; anything else is passed over."""
        if isinstance(value, int) and 100 <= value < 600:
            self.statuses.append(value)

    def add_code(self, value: object) -> None:
        """A code or the name of a class, in snake case; a number is taken for a status."""
        if isinstance(value, str):
            self.codes.append(_CODE_BORDERS.sub("_", _WORD_BORDER.sub("_", value)).lower())
        else:
            self.add_status(value)

    def read(self, value: object, depth: int = 0) -> None:
        """Collect texts, codes, fields and finish reasons from any value."""
        if depth > _DEEPEST:
            return
        if isinstance(value, bytes | bytearray):
            value = bytes(value).decode("utf-8", errors="replace")
        if isinstance(value, str):
            self._read_text(value, depth)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                self._read_entry(str(key), inner, depth + 1)
        elif isinstance(value, list | tuple):
            for inner in value:
                self.read(inner, depth + 1)

    def _read_entry(self, key: str, value: object, depth: int) -> None:
        if _FINISH_KEYS.match(key) and isinstance(value, str):
            self.finishes.append(value.lower())
        elif key == "truncated" and value is True:
            self.truncated = True
        elif _CODE_KEYS.match(key) and isinstance(value, str | int):
            self.add_code(value)
        elif _FIELD_KEYS.match(key) and isinstance(value, str | list | tuple):
            self.fields.append(value if isinstance(value, str) else ".".join(map(str, value)))
        elif _FIGURE_KEYS.match(key) and isinstance(value, int) and not isinstance(value, bool):
            self.texts.append(f"{key.replace('_', ' ')}: {value}")
        elif key in _FOREIGN_KEYS:
            return
        elif not isinstance(value, str) or _TEXT_KEYS.match(key):
            self.read(value, depth)
        elif (held := _held(value)) is not None:  # a body within a body, under any name
            self.read(held, depth)

    def _read_text(self, text: str, depth: int) -> None:
        """Sentences; JSON or a printed Python value between them is read for what it is."""
        done = failures = 0
        if (held := _held(text)) is not None:
            self.read(held, depth + 1)
            return
        for place in _OPENING.finditer(text):
            if place.start() < done:
                continue
            value, end = _parsed(text, place.start())
            if value is not None:
                self.texts.append(text[done : place.start()])
                self.read(value, depth + 1)
                done = end
            elif (failures := failures + 1) == _MOST_FAILURES:
                break
        self.texts.append(text[done:])


def read_exception(error: BaseException, said: ErrorText | None = None) -> ErrorText:
    """What an exception itself says, without those that caused it; beside what is ``said`` of it already."""
    said = ErrorText() if said is None else said
    said.add_code(type(error).__name__)
    for name in ("status_code", "status", "code", "type"):
        said.add_code(_attribute(error, name))
    for name in ("message", "body", "detail"):
        said.read(_attribute(error, name))
    if isinstance(param := _attribute(error, "param"), str):
        said.fields.append(param)
    said.read([argument for argument in error.args if isinstance(argument, str | bytes | Mapping)])
    # an exception may say more when printed than it has in its arguments
    said.read(text_of(error))
    _read_response(_attribute(error, "response"), said)
    return said


def inner_exceptions(error: BaseException, *, is_answer: bool) -> Iterator[BaseException]:
    """The exceptions that this one may only be wrapping.

    ``is_answer``: it has a status, so it is a provider's own answer, and no wrapper of the error during whose handling
    it arose.
    """
    if error.__cause__ is not None:
        yield error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__ and not is_answer:
        yield error.__context__
    yield from (argument for argument in error.args if isinstance(argument, BaseException))
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions


def _read_response(response: object, said: ErrorText) -> None:
    """An HTTP response object, or the mapping that botocore puts in its place."""
    if response is None or isinstance(response, Mapping | str | bytes):
        said.read(response)
        return
    said.add_status(_attribute(response, "status_code"))
    said.read(_attribute(response, "text"))


def _attribute(value: object, name: str) -> Any:
    try:
        found = getattr(value, name, None)
    except Exception:  # noqa: BLE001 - reading a streamed response's text may raise anything; it says nothing then
        return None
    return None if callable(found) else found


def _held(text: str) -> dict[Any, Any] | list[Any] | str | None:
    """What a text holds that is nothing but JSON: an object, a list, or a string of JSON; None for any other text."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None


def _parsed(text: str, start: int) -> tuple[dict[Any, Any] | list[Any] | None, int]:
    """The JSON or Python container that begins at ``start`` and where it ends; None if there is none."""
    value: object
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        # OpenAI's SDK prints the body as a Python dictionary: "Error code: 400 - {'error': ...}".
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        value = _python_literal(text[start:end])
    return (value, end) if isinstance(value, dict | list) else (None, start)


def _python_literal(text: str) -> object:
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _ends(text: str) -> str:
    """The text, or its beginning and end where it is too long; no figure is cut in two."""
    if len(text) <= LONGEST_TEXT:
        return text
    head, tail = text[: LONGEST_TEXT // 2], text[-LONGEST_TEXT // 2 :]
    return f"{head.rstrip(_FIGURE_SIGNS)}\n…\n{tail.lstrip(_FIGURE_SIGNS)}"
