"""Verbatim lines worth carrying: chosen by code from everything that has left the view.

What belongs here: cutting messages into lines and what each of them holds (``lines``), what that is worth and which
lines are chosen under a token budget (``choice``), and parts of lines for the names that none of them shows
(``clips``). What does not: recognizing identifiers (``identifiers``), prose (``summary``), and where the lines stand in
the view (the engine).
"""

from contextfold.evidence.choice import select
from contextfold.evidence.lines import WIDTH, Line, lines_of
from contextfold.evidence.section import PARTS, read

__all__ = ["PARTS", "WIDTH", "Line", "lines_of", "read", "select"]
