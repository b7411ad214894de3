"""Values that no one expects, and the places of a structure to put them in."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar


class Raises:
    """An object that raises when it is asked for one thing."""

    ANSWERS: ClassVar[dict[str, Any]] = {
        "__repr__": "odd",
        "__str__": "odd",
        "__eq__": False,
        "__bool__": True,
        "__len__": 1,
    }

    def __init__(self, method: str) -> None:
        self.method = method

    def _asked(self, method: str) -> Any:
        if method == self.method:
            raise ZeroDivisionError(method)
        return self.ANSWERS[method]

    def __repr__(self) -> str:
        return str(self._asked("__repr__"))

    def __str__(self) -> str:
        return str(self._asked("__str__"))

    def __eq__(self, other: object) -> bool:
        return bool(self._asked("__eq__"))

    def __bool__(self) -> bool:
        return bool(self._asked("__bool__"))

    def __len__(self) -> int:
        return int(self._asked("__len__"))

    __hash__ = None  # type: ignore[assignment]


class RaisesForAnyName:
    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


class OddText(str):
    """Text that cannot be compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("__eq__")

    def __str__(self) -> str:
        raise ZeroDivisionError("__str__")

    __hash__ = str.__hash__


class OddMapping(dict):  # type: ignore[type-arg]
    """A mapping that cannot be read."""

    def keys(self) -> Any:
        raise ZeroDivisionError("keys")

    def items(self) -> Any:
        raise ZeroDivisionError("items")

    def get(self, key: Any, default: Any = None) -> Any:
        raise ZeroDivisionError("get")


def deep(levels: int) -> Any:
    value: Any = "bottom_value_7"
    for _ in range(levels):
        value = {"a": [value]}
    return value


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "odd"}
    value["inner"] = [value]
    return value


ODD: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a number": lambda: 1,
    "no number": lambda: float("nan"),
    "no end": lambda: float("inf"),
    "a number without a decimal text": lambda: 10**5_000,
    "bytes": lambda: b"\xff\x00",
    "half a character": lambda: "\ud83d",
    "NUL": lambda: "\x00",
    "no text": lambda: "",
    "a kind": lambda: dict,
    "a function": lambda: len,
    "a generator": lambda: (number for number in ()),
    "a set": lambda: {1, 2},
    "a list of lists": lambda: [[[]]],
    "keys without an order": lambda: {"1": 1, None: 2},
    "a key of bytes": lambda: {b"a": 1},
    "deep": lambda: deep(1_200),
    "very deep": lambda: deep(10_000),
    "endless": lambda: endless(),
    "raises when shown": lambda: Raises("__repr__"),
    "raises as text": lambda: Raises("__str__"),
    "raises when compared": lambda: Raises("__eq__"),
    "raises when asked": lambda: Raises("__bool__"),
    "raises when measured": lambda: Raises("__len__"),
    "raises in a list": lambda: [Raises("__bool__")],
    "raises in a mapping": lambda: {"x": Raises("__eq__")},
    "raises for any name": lambda: RaisesForAnyName(),
    "text that raises": lambda: OddText("user"),
    "a mapping that raises": lambda: OddMapping(a=1),
}
"""Each is made when it is used: some can be used once."""


def _names(value: Any) -> list[Any]:
    if isinstance(value, list):
        return list(range(len(value)))
    if isinstance(value, dict):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    return list(getattr(type(value), "model_fields", ()))


def _held(value: Any, name: Any) -> Any:
    return value[name] if isinstance(value, list | dict) else getattr(value, name, None)


def places(value: Any, way: tuple[Any, ...] = (), depth: int = 8) -> Iterator[tuple[Any, ...]]:
    """Every place inside lists, mappings, dataclasses and pydantic's objects."""
    if way:
        yield way
    for name in _names(value) if depth else ():
        yield from places(_held(value, name), (*way, name), depth - 1)


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else in one place. No class is asked whether it allows that, as a caller's code is not."""
    if not way:
        return new
    inner = changed(_held(value, way[0]), way[1:], new)
    copied = copy.copy(value)
    if isinstance(value, list | dict):
        copied[way[0]] = inner
    elif hasattr(type(value), "model_fields"):
        copied.__dict__[way[0]] = inner
    else:
        object.__setattr__(copied, way[0], inner)
    return copied


def spread(wire: Any, share: int) -> Iterator[tuple[str, Any]]:
    """One in ``share`` of the pairs of a place and an odd value, spread over both, and of odd things for the whole."""
    names = list(ODD)
    for number, way in enumerate([(), *places(wire)]):
        for place, name in enumerate(names):
            if (place + len(names) * number) % share == 0:
                odd = ODD[name]()
                yield f"{name} at {way}", changed(wire, way, odd) if way else [*wire, odd]
    for name in names[:: max(1, share // 10)]:
        yield f"{name} in place of all", ODD[name]()
