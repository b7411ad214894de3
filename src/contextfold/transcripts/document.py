"""A transcript file, from bytes to JSON values, and every way in which that can fail.

What belongs here: encodings, JSON, JSON Lines, and error texts that name the file and the place in it.
What does not: what the values mean, which the readers of each kind of file know.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contextfold import json_values
from contextfold.errors import InputError
from contextfold.formats.values import kind_of

PLACES = 6
"""How many places an error text names."""
_NAMES = (("entry", "entries"), ("line", "lines"))


@dataclass(frozen=True)
class TranscriptFile:
    """What a file holds.

    ``value`` is its JSON value, or a list of the values of its lines, or None where the file is no JSON (``text``
    is all there is then). ``lines`` are the line numbers of the rows of a JSON Lines file, empty for other files.
    """

    name: str
    text: str
    value: Any = None
    lines: tuple[int, ...] = ()

    @property
    def rows(self) -> list[Any]:
        """The rows of JSON Lines, the entries of a JSON list, or the one object there is."""
        if isinstance(self.value, list):
            return self.value
        return [] if self.value is None else [self.value]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The rows that are objects."""
        return objects_in(self.rows)

    def names(self, count: int) -> list[str]:
        """What its conversations are called, where it holds so many."""
        return [self.name] if count == 1 else [f"{self.name}#{number}" for number in range(count)]

    def place(self, index: int) -> str:
        """Where row ``index`` stands, for an error text."""
        return f"line {self.lines[index]}" if index < len(self.lines) else f"message {index}"

    def places(self, indices: Sequence[int]) -> str:
        """Where several rows stand, in ascending order: ``lines 3-7, 12``, the first of them where there are many."""
        numbers = [self.lines[index] if index < len(self.lines) else index for index in indices]
        spans: list[list[int]] = []
        for index, number in zip(indices, numbers, strict=True):
            if spans and index == spans[-1][2] + 1:
                spans[-1][1:] = [number, index]
            else:
                spans.append([number, number, index])
        shown = [f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last, _ in spans[:PLACES]]
        more = f" and {len(spans) - PLACES:,} more places" if len(spans) > PLACES else ""
        return f"{_NAMES[bool(self.lines)][len(numbers) > 1]} {', '.join(shown)}{more}"


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def first_object(value: Any) -> dict[str, Any]:
    """The first entry of a list, where it is an object; else an empty one."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def json_in(text: str) -> Any:
    """The value of a JSON text; None where it has none."""
    try:
        return json_values.read(text)
    except ValueError:
        return None


def parse(data: bytes, name: str) -> TranscriptFile:
    """The document in these bytes. Raises ``InputError`` in one line: file, place, what is wrong, what to do."""
    text = _decoded(data, name)
    if not text.strip():
        raise InputError(f"{name}: the file is empty: give a conversation as JSON or JSON Lines")
    try:
        value = json_values.read(text)
    except json_values.TooDeep:
        raise InputError(f"{name}: the JSON is nested too deeply to be a conversation") from None
    except ValueError as error:
        return _not_one_value(text, name, error)
    if not isinstance(value, dict | list):
        raise InputError(f"{name}: this JSON is {kind_of(value)}, not a conversation: give a list of messages")
    return TranscriptFile(name, text, value)


_PACKED = ((b"\x1f\x8b", "gzip"), (b"(\xb5/\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (b"PK\x03", "zip"))


_MARKED = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, the longest first: one begins like another. PowerShell's ``>`` writes UTF-16, and editors on
Windows put one before UTF-8; JSON takes none."""


def _decoded(data: bytes, name: str) -> str:
    if data.startswith(b"SQLite format 3\0"):
        raise InputError(
            f"{name}: it is a database of SQLite: export a conversation from it as JSON or JSON Lines first"
        )
    if data.startswith(b"PAR1"):
        raise InputError(f"{name}: it is a table of Parquet: contextfold batch reads those")
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), "utf-8-sig")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if packed := next((kind for mark, kind in _PACKED if data.startswith(mark)), None):
            if packed == "zip" and name.endswith(".eval"):
                raise InputError(f"{name}: it is a log of Inspect: inspect log dump writes it as JSON") from None
            raise InputError(f"{name}: it is packed ({packed}): unpack it first") from None
        place = f"byte {data[error.start]:#04x} at offset {error.start}"
        is_not = encoding.removesuffix("-sig").upper()
        raise InputError(f"{name}: {place} is not valid {is_not}: save the file as UTF-8") from None


def _not_one_value(text: str, name: str, error: ValueError) -> TranscriptFile:
    """Text that is not one JSON value: JSON Lines, broken JSON, or no JSON at all."""
    if text.lstrip()[0] not in "{[":
        return TranscriptFile(name, text)
    # Not ``splitlines``: strings of JSON may hold U+2028 and its like as they are.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(numbered) == 1 or json_in(numbered[0][1]) is None:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data" and text[error.pos] in "{[":
            place = f"line {error.lineno}, column {error.colno}"
            raise InputError(f"{name}: {place}: another JSON value begins: write each on one line, as jq -c does")
        raise InputError(f"{name}: {_json_problem(error)}: {_remedy(text, error)}")
    rows = [_row(name, number, line, is_last=number == numbered[-1][0]) for number, line in numbered]
    return TranscriptFile(name, text, rows, tuple(number for number, _ in numbered))


def _remedy(text: str, error: ValueError) -> str:
    if re.match(r"[\s\[{]*'", text):
        return "this is how Python shows a value, and not JSON; write it with json.dump"
    if "\0" in text[:4]:
        return "this looks like UTF-16; save the file as UTF-8"
    if not isinstance(error, json.JSONDecodeError):
        return "a number has more digits than can be read; write it as a text"
    return "the file is cut off or was edited by hand; write it again"


def _row(name: str, number: int, line: str, *, is_last: bool) -> Any:
    try:
        return json_values.read(line)
    except json_values.TooDeep:
        raise InputError(f"{name}: line {number}: the JSON is nested too deeply to be a message") from None
    except ValueError as error:
        column = getattr(error, "colno", 1)
        problem = getattr(error, "msg", str(error))
        if is_last:
            remedy = "the last line is cut off: if it is being written, try again; if its writer was stopped, delete it"
        else:
            remedy = "repair or delete that line"
        raise InputError(f"{name}: line {number}, column {column}: not valid JSON ({problem}): {remedy}") from None


def _json_problem(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
    return f"not valid JSON ({str(error).partition(';')[0]})"
