"""Tool outputs that are JSON: shorter JSON that says what was in them.

What belongs here: choosing which fields, items and characters to keep. What does not: reading and writing JSON
(``json_text``) and limits in tokens (``fitting``).

A shape says how much of every container and string is kept: the first and last items of a list, the fields that tell
an outcome before the others, the head and tail of a string. The largest shape that fits is searched for: first as many
items as possible with strings of moderate length, then longer strings with what is left. Where nothing fits, levels of
nesting are given up. Objects stay objects and lists stay lists at every level, and each says how much it lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from contextfold.tiers import json_text
from contextfold.tiers.json_text import Number, Object, Value
from contextfold.tiers.markers import MARKER, counts_in, cut, is_shortened, marker
from contextfold.tiers.pieces import Pieces
from contextfold.tiers.tool_outputs_text import of_text

OMITTED = "…"
"""The name of the field that says how many fields were cut."""

OUTCOME_FIELDS = frozenset(
    {"success", "ok", "error", "errors", "status", "state", "code", "exit_code", "exitcode", "returncode", "message"}
    | {"return_code", "reason", "warning", "warnings", "count", "total", "total_count", "num_results", "length", "size"}
    | {"page", "pages", "has_more", "truncated", "id", "name", "path", "file", "url", "title"}
)
"""Names, in lower case, of fields that are kept before all others when not all can be."""

_MODERATE = 80
"""Characters of a string while items are counted; what is left over then goes to longer strings."""
_SHORTEST = 32
"""Characters. Strings are not cut shorter: a marker alone takes 31."""
_LONGEST_NAME = 160
"""Characters. Longer words are data (base64, tokens), not names."""
_BY_LINES = 240
"""Characters. A string of several lines that gets this much room is shortened line by line, as a text of its own."""
_TAIL_SHARE = 0.25
_FIELDS_PER_ITEM = 4
"""Names are worth more than items: a shape that keeps n items of a list keeps four times as many fields."""
_ALWAYS_LONGER = 12
"""From 12 items on, a marker is always shorter than the items."""
_LEAST_PER_ITEM = 2
"""Characters that even the smallest item takes with its comma: more items than this allows need not be tried."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """How much is kept: ``items`` of each list, ``width`` characters of each string, ``depth`` levels of nesting."""

    items: int
    width: int
    depth: int = json_text.DEEPEST + 1

    @property
    def fields(self) -> int:
        return self.items * _FIELDS_PER_ITEM + 1

    @property
    def inside(self) -> _Shape:
        """The shape of what stands in a container of this shape."""
        return _Shape(self.items, self.width, self.depth - 1)


_LAST_RESORTS = (_Shape(1, _SHORTEST, 4), _Shape(1, _SHORTEST, 2), _Shape(0, _SHORTEST, 2), _Shape(0, _SHORTEST, 1))
SMALLEST = _Shape(0, 0, 0)


@dataclass(frozen=True)
class JsonOutput:
    """One JSON document, or the documents of JSON lines, ready to be written in any room."""

    documents: list[Value]
    lines: bool = False
    _pieces: dict[str, Pieces] = field(default_factory=dict, repr=False)
    _ranks: dict[int, list[int]] = field(default_factory=dict, repr=False)

    def render(self, room: int) -> str:
        """Valid JSON in ``room`` characters: the largest shape that fits, or else the smallest there is."""
        # Blanks between tokens may be all that is too much.
        whole = self._within(_Shape(room, room), room)
        if whole is not None:
            return whole
        most = room // _LEAST_PER_ITEM
        items = _largest(1, most, lambda items: self._within(_Shape(items, _MODERATE), room) is not None)
        shape = _Shape(max(items, 1), _MODERATE)
        low, high = (_MODERATE, room) if items else (_SHORTEST, _MODERATE)
        width = _largest(low, high, lambda width: self._within(replace(shape, width=width), room) is not None)
        for candidate in (replace(shape, width=width), *_LAST_RESORTS) if width else _LAST_RESORTS:
            text = self._within(candidate, room)
            if text is not None:
                return text
        return self.smallest()

    def smallest(self) -> str:
        """The kind of container and how much was in it."""
        return "".join(self._written(SMALLEST))

    def _within(self, shape: _Shape, room: int) -> str | None:
        """The document in this shape, or None as soon as it takes more than ``room`` characters."""
        parts = []
        for part in self._written(shape):
            room -= len(part)
            if room < 0:
                return None
            parts.append(part)
        return "".join(parts)

    def _written(self, shape: _Shape) -> Iterator[str]:
        if self.lines:
            return self._items(self.documents, replace(shape, depth=shape.depth + 1), "\n")
        return self._value(self.documents[0], shape)

    def _value(self, value: Value, shape: _Shape) -> Iterator[str]:
        if isinstance(value, Object):
            yield "{"
            yield from self._fields(value, shape)
            yield "}"
        elif isinstance(value, list):
            yield "["
            yield from self._items(value, shape, ",")
            yield "]"
        elif isinstance(value, str) and not isinstance(value, Number):
            yield json_text.write_string(self._string(value, shape.width))
        else:
            yield json_text.write_scalar(value)

    def _fields(self, value: Object, shape: _Shape) -> Iterator[str]:
        ranks = self._ranks.get(id(value))
        if ranks is None:
            ranks = self._ranks[id(value)] = _ranked(value)
        inside = shape.inside
        chosen = ranks[: shape.fields if shape.depth > 0 else 0]
        omitted = _omitted(value)
        omitted["fields"] += len(ranks) - len(chosen)
        comma = ""
        for index in sorted(chosen):
            name, inner = value.fields[index]
            yield f"{comma}{json_text.write_string(name)}:"
            yield from self._value(inner, inside)
            comma = ","
        if omitted.total():
            yield f"{comma}{json_text.write_string(OMITTED)}:{json_text.write_string(marker(omitted))}"

    def _items(self, values: list[Value], shape: _Shape, comma: str) -> Iterator[str]:
        most = shape.items if shape.depth > 0 else 0
        inside = shape.inside
        for number, value in enumerate(ends(values, most - most // 2, most // 2)):
            if number:
                yield comma
            yield from self._value(value, inside)

    def _string(self, text: str, width: int) -> str:
        if len(text) <= width or _is_marker(text) or (width >= _MODERATE and _is_name(text)):
            return text
        if width < _BY_LINES or "\n" not in text:
            return cut(text, width, _TAIL_SHARE)
        pieces = self._pieces.get(text)
        if pieces is None:
            pieces = self._pieces[text] = of_text(text)
        return pieces.render(width)


def read(text: str) -> JsonOutput | None:
    """The text as JSON, or as JSON lines (two objects or arrays at least); None if it is neither."""
    value = json_text.parse(text)
    if value is not None:
        return JsonOutput([value])
    begun = text.lstrip()
    if not _may_be_document(begun[: begun.find("\n")]):
        return None  # most outputs: megabytes need no list of their lines for it
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not all(map(_may_be_document, lines)):
        return None
    documents: list[Value] = []
    for line in lines:
        document = json_text.parse(line)
        if document is None:
            return None
        documents.append(document)
    return JsonOutput(documents, lines=True)


def _may_be_document(line: str) -> bool:
    stripped = line.strip()
    return stripped[:1] + stripped[-1:] in ("{}", "[]") or MARKER.fullmatch(stripped[1:-1]) is not None


def _ranked(value: Object) -> list[int]:
    """Indexes of the fields: outcomes first, then plain values, then containers; without the count of omitted ones."""
    counted = len(value.fields) - _ends_in_omission(value)
    return sorted(range(counted), key=lambda index: (_field_class(*value.fields[index]), index))


def _omitted(value: Object) -> Counter[str]:
    """What fields of an object say was cut from it before."""
    return counts_in(str(value.fields[-1][1])) if _ends_in_omission(value) else Counter()


def _ends_in_omission(value: Object) -> bool:
    return bool(value.fields) and value.fields[-1][0] == OMITTED and _is_marker(value.fields[-1][1])


def _field_class(name: str, value: Value) -> int:
    if name.lower() in OUTCOME_FIELDS:
        return 0
    return 2 if isinstance(value, Object | list) else 1


def ends(values: list[Value], first: int, last: int) -> list[Value]:
    """The ``first`` and ``last`` items of a list, and a marker between them for the others.

    A marker that is there already counts what it says, and the gap stays around it: nothing before it moves behind it.
    The same object where nothing is left out, or where a marker would take more characters than what it stands for.
    """
    gap = next((index for index, value in enumerate(values) if _is_marker(value)), None)
    before, after = first, last
    if gap is not None:
        before, after = min(first, gap), min(last, len(values) - gap - 1)
    hidden = values[before : len(values) - after]
    if len(values) <= first + last or _is_shorter_than_marker(hidden):
        return values
    omitted = Counter[str]() if gap is None else counts_in(str(values[gap]))
    omitted["items"] += len(hidden) - (gap is not None)
    return [*values[:before], marker(omitted), *values[len(values) - after :]]


def _is_shorter_than_marker(values: Sequence[Value]) -> bool:
    if len(values) > _ALWAYS_LONGER or any(isinstance(value, Object | list) or _is_marker(value) for value in values):
        return False
    written = ",".join(map(json_text.write_scalar, values))
    return len(written) <= len(json_text.write_string(marker({"items": len(values)})))


def _is_name(text: str) -> bool:
    """A path, a URL, an id: one word, and worth nothing when cut."""
    return len(text) <= _LONGEST_NAME and not any(map(str.isspace, text))


def _is_marker(value: Value) -> bool:
    return isinstance(value, str) and is_shortened(value) and MARKER.fullmatch(value) is not None


def _largest(low: int, high: int, is_possible: Callable[[int], bool]) -> int:
    """The largest number from ``low`` to ``high`` that is found possible, or 0 if not even ``low`` is."""
    if low > high or not is_possible(low):
        return 0
    # Doubled until one fails, then bisected: answers near ``low`` are the usual ones, and the cheapest to try.
    step = 1
    while low < high and is_possible(min(low + step, high)):
        low = min(low + step, high)
        step *= 2
    high = min(low + step - 1, high)
    while low < high:
        middle = (low + high + 1) // 2
        if is_possible(middle):
            low = middle
        else:
            high = middle - 1
    return low
