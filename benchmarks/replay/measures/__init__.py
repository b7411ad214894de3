"""What is measured of every replay. Adding a measure is a class in a module here, and a line below.

Order matters only for the tables: columns stand in it.
"""

from __future__ import annotations

from benchmarks.replay.measure import Column, Measure
from benchmarks.replay.measures.conduct import Conduct
from benchmarks.replay.measures.cost import Cost
from benchmarks.replay.measures.coverage import Coverage
from benchmarks.replay.measures.money import Money
from benchmarks.replay.measures.pace import Pace
from benchmarks.replay.measures.recall import Recall
from benchmarks.replay.measures.summaries import Summaries
from benchmarks.replay.measures.user_words import UserWords

MEASURES: tuple[type[Measure], ...] = (Recall, UserWords, Cost, Money, Conduct, Summaries, Coverage, Pace)


def columns() -> list[Column]:
    """The columns of all measures."""
    return [column for measure in MEASURES for column in measure.columns]
