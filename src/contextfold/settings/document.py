"""A YAML file that remembers on which line each of its settings stands.

What belongs here: reading, places, and the errors of a file as such. What does not: what the settings mean.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from contextfold import yaml_values
from contextfold.errors import InputError, PolicyError, shown

if TYPE_CHECKING:
    import yaml

Key: TypeAlias = tuple[str | int, ...]
"""The way to a setting: names of mappings and positions in lists."""


@dataclass(frozen=True)
class Document:
    """The values of a file, and the line of each."""

    name: str
    values: Mapping[str, Any]
    lines: Mapping[Key, int]
    """Key -> line, counted from 1; that of its name where it has one."""

    def place(self, key: Key) -> str:
        """``"config.yaml, line 7"`` for a setting, or for the nearest one around it."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.name}, line {self.lines.get(key, 1)}"

    def refuse(self, key: Key, problem: str) -> PolicyError:
        """The error about a setting: file, line, key and problem."""
        return PolicyError(f"{self.place(key)}: {'.'.join(str(step) for step in key)}: {problem}")

    def refuse_unknown(self, key: Key, known: Iterable[str]) -> PolicyError:
        """The error about a setting that does not exist."""
        names = list(known)
        close = difflib.get_close_matches(str(key[-1]), names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
        dotted = ".".join(str(step) for step in key)
        return PolicyError(f"{self.place(key)}: there is no setting {dotted!r}; {hint}")


def read(file: str | Path) -> Document:
    """The settings of a YAML file. An empty file sets nothing.

    Raises ``InputError`` where the file cannot be read or is no YAML mapping.
    """
    import yaml  # only where a file is read

    if not isinstance(file, str | Path):
        raise InputError(f"settings are read from a file, and {shown(file)} is not the name of one")
    name = str(file)
    try:
        text = Path(file).read_text(encoding="utf-8")
        node, values = yaml_values.read(text)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text: byte {error.start:,} cannot be decoded; save it as UTF-8"
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"{name} is not YAML: {_problem(error)}") from error
    except ValueError as error:  # a date such as 2026-02-30
        raise InputError(f"{name} holds a value that cannot be read: {error}") from error
    if node is None or values is None:
        return Document(name, {}, {})
    if not isinstance(values, dict):
        raise InputError(f"{name} must be a mapping such as 'trigger: fraction:0.8', not {_kind(values)}")
    lines: dict[Key, int] = {}
    for key, line in _lines(node, (), frozenset()):
        if line is None:
            around = ".".join(str(step) for step in key)
            raise InputError(f"{name}: {around!r} contains itself, by an alias (*) inside of what it stands for")
        # YAML takes the second one without a word, and the reader of the file may have changed the first.
        if key in lines:
            twice = ".".join(str(step) for step in key)
            raise InputError(f"{name}, line {line}: {twice!r} is set twice, first in line {lines[key]}")
        lines[key] = line
    return Document(name, values, lines)


def _lines(node: yaml.Node, key: Key, around: frozenset[int]) -> Iterator[tuple[Key, int | None]]:
    """The line of each setting. Of one that is named twice, both; None for what contains itself."""
    import yaml

    # An alias may stand inside of what it names: a walk through that has no end.
    if id(node) in around:
        yield key, None
        return
    around |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            inner = (*key, str(name.value))
            yield inner, name.start_mark.line + 1
            yield from _lines(value, inner, around)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            inner = (*key, position)
            yield inner, value.start_mark.line + 1
            yield from _lines(value, inner, around)


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if "'\\t'" in problem:
        problem += "; indent with spaces"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else f"{problem}"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else f"the value {value!r}"
