"""JSON of strangers: of any depth, and values that no JSON can be.

What belongs here: reading and writing JSON without an error that is not ours. What does not: what the values mean.

Python's encoder and decoder recurse, and give up with ``RecursionError`` somewhere around a thousand levels, sooner the
deeper the caller already is. A tool call of two kilobytes can be nested deeper than that, and providers take it. So
what is too deep to be read is text to us, and what is too deep to be written by the encoder is written by a loop, which
gives the very same text: it depends on no one's stack whether a fingerprint changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from contextfold.messages import well_formed

MOST_VALUES, MOST_CHARACTERS = 1_000_000, 200_000_000
"""In one block of a message. More come from objects that share their parts, at a multiple of their size each time."""

DEEPEST = 300
"""Levels of JSON that are read. Fixed, so that it hangs on no one's stack whether a text has a value; and what reads
the value may recurse."""

_END = object()
_PLAIN = (str, float, bytes, type(None))
_CONTAINERS = frozenset({dict, list, tuple})


class TooDeep(ValueError):
    """A JSON text that may be right, and has more levels than are read."""


def read(text: str | bytes, *, strict: bool = True) -> Any:
    """The value of a JSON text. Raises ``ValueError``; ``TooDeep`` for one of more than ``DEEPEST`` levels.

    Escapes can spell half a surrogate pair in plain ASCII: strings come out well formed.
    """
    try:
        value = json.loads(text) if strict else json.loads(text, strict=False)  # an option makes a decoder each time
    except RecursionError:
        raise TooDeep("it is nested too deeply") from None
    if isinstance(value, dict | list):
        _measure(value)
    spelled = ("\\ud", "\\uD") if isinstance(text, str) else (b"\\ud", b"\\uD")
    return _well_formed(value) if any(escape in text for escape in spelled) else value  # type: ignore[operator]


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(key): _well_formed(inner) for key, inner in value.items()}
    return [_well_formed(inner) for inner in value] if isinstance(value, list) else value


def write(
    value: Any,
    *,
    compact: bool = False,
    sort_keys: bool = False,
    skipkeys: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """The value as JSON; characters outside ASCII stay readable. ``compact``: without blanks.

    Raises ``ValueError`` for one that contains itself, and ``TypeError`` for what JSON cannot say and ``default`` does
    not.
    """
    comma, colon = separators = (",", ":") if compact else (", ", ": ")
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=separators, sort_keys=sort_keys, skipkeys=skipkeys, default=default
        )
    except RecursionError:
        return "".join(_pieces(value, comma, colon, sort_keys, skipkeys, default))


def _but(found: dict[str, Any], skipped: frozenset[str]) -> dict[str, Any]:
    return {key: entry for key, entry in found.items() if key not in skipped}


def _numbers(found: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
    if isinstance(found, list):
        return [entry for entry in found if isinstance(entry, int | float)]
    return {key: entry for key, entry in found.items() if isinstance(entry, int | float)}


def strings(value: Any, skipped: Callable[[dict[str, Any]], frozenset[str]], *, numbers: bool = False) -> Iterator[str]:
    """Every string inside, in order, but those under the ``skipped`` keys of each object. A loop, because nothing
    limits the depth. ``numbers``: those of each object or list too, and what is true or false, behind its strings, as
    JSON with their names.

    Raises ``ValueError`` for a value that contains itself, or has more values than any message.
    """
    around: set[int] = set()
    waiting: list[tuple[Any, Any]] = [(None, value)]
    characters = 0
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        leaving, found = waiting.pop()
        if leaving is _END:
            around.discard(found)
        elif isinstance(found, str):
            if (characters := characters + len(found)) > MOST_CHARACTERS:
                break
            yield found
        elif isinstance(found, dict | list):
            _enter(found, around)
            # left behind its last value: an object that stands in two places does not contain itself
            waiting.append((_END, id(found)))
            inner = found if isinstance(found, list) else _but(found, skipped(found))
            if numbers and (told := _numbers(inner)):
                waiting.append((None, write(told, compact=True)))
            waiting.extend((None, entry) for entry in reversed(inner if isinstance(inner, list) else inner.values()))
    raise ValueError(f"it holds more than {MOST_VALUES:,} values or {MOST_CHARACTERS:,} characters")


def check(value: Any) -> None:
    """Raise ``ValueError`` or ``TypeError`` for what can never be written: a value that contains itself, a key that
    JSON has not, a number without a decimal text; and whatever an object raises that is asked for its own text.
    """
    around: set[int] = set()
    waiting: list[tuple[Any, Any]] = [(None, value)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        if len(waiting) > MOST_VALUES:
            break
        leaving, found = waiting.pop()
        if leaving is _END:
            around.discard(found)
        elif isinstance(found, dict | list | tuple):
            _enter(found, around)
            waiting.append((_END, id(found)))
            if isinstance(found, dict):
                _check_keys(found)
            if type(found) not in _CONTAINERS:  # a kind of its own may raise in any of the ways that it is read
                len(found), bool(found), list(found.items() if isinstance(found, dict) else found)
            waiting.extend((None, inner) for inner in (found.values() if isinstance(found, dict) else found))
        elif not isinstance(found, _PLAIN):  # a long int has no decimal text, an object of a stranger may have nothing
            str(found), bool(found), found == value
    raise ValueError(f"it holds more than {MOST_VALUES:,} values")


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal. Never raises: what cannot be compared is not the same.

    Python compares by recursion, and gives up on arguments of a tool that are a few hundred levels deep. Those are
    compared by a loop.
    """
    try:
        return bool(one == other)
    except RecursionError:
        return _same_inside(one, other)
    except Exception:  # noqa: BLE001 - whatever an object of a stranger raises
        return False


def _same_inside(one: Any, other: Any) -> bool:
    waiting = [(one, other)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return True
        left, right = waiting.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, dict):
            if left.keys() != right.keys():
                return False
            waiting.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, list | tuple):
            if len(left) != len(right):
                return False
            waiting.extend(zip(left, right, strict=True))
        elif (held := getattr(left, "__dict__", None)) and not isinstance(left, type):  # an object of an SDK
            waiting.append((dict(held), dict(vars(right))))
        elif left != right:
            return False
    return False


def _check_keys(fields: Mapping[Any, Any]) -> None:
    kinds = {type(key) for key in fields}
    if wrong := [kind.__name__ for kind in kinds if not issubclass(kind, str | int | float | bool | None)]:
        raise TypeError(f"a key of a JSON object is a string, not {', '.join(sorted(wrong))}")
    if len(kinds) > 1 and str in kinds:
        raise TypeError("the keys of a JSON object are strings")  # they have no order, which a hash of them needs


def _measure(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        if not level:
            return
        inside = (found.values() if isinstance(found, dict) else found for found in level if found)
        level = [inner for found in inside for inner in found if isinstance(inner, dict | list)]
    raise TooDeep(f"it is nested deeper than {DEEPEST} levels")


def _enter(container: Any, around: set[int]) -> None:
    if id(container) in around:
        raise ValueError("it contains itself")
    around.add(id(container))


def _pieces(
    value: Any,
    comma: str,
    colon: str,
    sort_keys: bool,
    skipkeys: bool,
    default: Callable[[Any], Any] | None,
) -> Iterator[str]:
    """What ``json.dumps`` would give, piece by piece."""
    around: set[int] = set()
    waiting: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    closing: list[tuple[str, int]] = []
    while waiting:
        before, found = next(waiting[-1], (None, None))
        if before is None:
            waiting.pop()
            if closing:
                bracket, entered = closing.pop()
                around.discard(entered)
                yield bracket
            continue
        yield before
        while not isinstance(found, str | int | float | dict | list | tuple | None) and default is not None:
            found = default(found)
        if isinstance(found, dict | list | tuple):
            _enter(found, around)
            is_object = isinstance(found, dict)
            yield "{" if is_object else "["
            closing.append(("}" if is_object else "]", id(found)))
            waiting.append(
                _fields(found, comma, colon, sort_keys, skipkeys) if isinstance(found, dict) else _items(found, comma)
            )
        else:
            yield json.dumps(found, ensure_ascii=False)


def _items(values: Any, comma: str) -> Iterator[tuple[str, Any]]:
    for number, inner in enumerate(values):
        yield (comma if number else ""), inner


def _fields(
    fields: Mapping[Any, Any], comma: str, colon: str, sort_keys: bool, skipkeys: bool
) -> Iterator[tuple[str, Any]]:
    entries = sorted(fields.items()) if sort_keys else fields.items()
    first = True
    for key, inner in entries:
        if not isinstance(key, str | int | float | bool | None):
            if skipkeys:
                continue
            raise TypeError(f"a key of a JSON object is a string, not {type(key).__name__}")
        name = key if isinstance(key, str) else json.dumps(key)
        yield f"{'' if first else comma}{json.dumps(name, ensure_ascii=False)}{colon}", inner
        first = False
