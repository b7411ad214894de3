"""YAML of strangers: how large it becomes is known before it is made.

An alias (``*name``) stands for a whole part of a file again, so a few lines can stand for billions of values. Composing
is linear in the file; everything after it, merging (``<<``) included, is linear in what the file stands for. So that is
measured on the composed nodes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

MOST_COPIES = 20
"""How many times its own size a file may become by its aliases, where it becomes larger than ``ANY_SIZE``."""

DEEPEST = 100
"""Levels. Far more, and composing the file would end the process."""

ANY_SIZE = 10_000
"""Values that any file may become."""


def read(text: str, *, fast: bool = False) -> tuple[yaml.Node | None, Any]:
    """The root node of a YAML text, and its value. ``fast``: by the C parser, where there is one.

    Raises ``yaml.YAMLError`` where it is none, and ``ValueError`` for one that is nested too deeply or becomes too
    large by its aliases, and for values such as the date 2026-02-30. A value may contain itself.
    """
    import yaml  # only where a file is read

    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    _check_depth(yaml.parse(text, Loader=kind))
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _check(node)
        return node, loader.construct_document(node)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _check_depth(events: Iterable[Any]) -> None:
    """Composing recurses, in C as well, where too deep a file ends the process. Parsing does not."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind in ("MappingStartEvent", "SequenceStartEvent")
        depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
        if depth > DEEPEST:
            raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _check(root: yaml.Node) -> None:
    """The size of each node with all that its aliases stand for, from the leaves up. Each is looked at once."""
    sizes: dict[int, int] = {}
    around: set[int] = set()
    waiting: list[tuple[yaml.Node, bool]] = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            around.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes.get(id(inner), 1) for inner in _inside(node))
        elif id(node) not in sizes and id(node) not in around:
            around.add(id(node))
            waiting.append((node, True))
            waiting.extend((inner, False) for inner in _inside(node))
    size = sizes[id(root)]
    if size > ANY_SIZE and size > MOST_COPIES * len(sizes):
        raise ValueError(f"its aliases (*) make {_rounded(size)} values of the {len(sizes):,} that it has")


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node.value, str):
        return []
    return [inner for entry in node.value for inner in (entry if isinstance(entry, tuple) else (entry,))]


def _rounded(size: int) -> str:
    return f"{size:,}" if size < 10**12 else "more than 1,000,000,000,000"
