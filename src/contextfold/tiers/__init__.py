"""Reductions of single parts, cheapest first: what each does to a part, as a pure function.

What belongs here: the tiers by their names. What does not: which parts are reduced and when (``passes``).
A name and its behavior are stored in records: a tier may be added, but none renamed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from contextfold.errors import PolicyError
from contextfold.messages import Part
from contextfold.tiers.base import Tier

TIERS: Mapping[str, Tier]
"""Every tier by its name, cheapest first."""


@cache
def _tiers() -> Mapping[str, Tier]:
    from contextfold.tiers.joined import JoinedRemoved
    from contextfold.tiers.media import MediaReferences
    from contextfold.tiers.oversized import OversizedTier
    from contextfold.tiers.reasoning import ReasoningRemoved
    from contextfold.tiers.tool_arguments import ToolArgumentsTier
    from contextfold.tiers.tool_outputs import ToolOutputsTier

    found: tuple[Tier, ...] = (
        ToolArgumentsTier(),
        ToolOutputsTier(),
        MediaReferences(),
        ReasoningRemoved(),
        OversizedTier(),
        JoinedRemoved(),
    )
    return MappingProxyType({tier.name: tier for tier in found})


def __getattr__(name: str) -> Any:
    """Tiers are loaded with the first record that shortens something: many conversations never come to one."""
    if name != "TIERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _tiers()


def reduce(part: Part, tier_name: str, limit: int) -> Part | None:
    """The part as the named tier leaves it within ``limit`` (the tier says in which unit); None if it is to go.

    Raises ``PolicyError`` for a name that is no tier's.
    """
    tier = _tiers().get(tier_name)
    if tier is None:
        raise PolicyError(f"tier {tier_name!r} does not exist; the tiers are {', '.join(_tiers())}")
    return tier.reduce(part, limit)


__all__ = ["TIERS", "reduce"]
