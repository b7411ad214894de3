"""What a tier is: one kind of reduction of one part, as a pure function of the part and a limit.

A compaction stores which part was reduced by which tier with which limit, not the result, so that a record
stays small. Hence a tier must be deterministic, and its output may only change together with ``version``.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from contextfold.messages import Part


class Tier(Protocol):
    """A reduction of one part. Stateless."""

    name: ClassVar[str]
    """Stored in records: never reuse a name for another behavior."""

    def reduce(self, part: Part, limit: int) -> Part | None:
        """The part within about ``limit`` (the tier says in which unit), the same object if there is nothing to do,
        or None when the part is to go altogether.
        """
        ...
