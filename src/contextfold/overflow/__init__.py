"""What a refusal means: ``verdicts`` is the table of words that tell, ``classifying`` asks it, ``text`` reads errors,
``figures`` the numbers in them, ``next_size`` says what to aim at."""

from contextfold.overflow.classifying import classify
from contextfold.overflow.next_size import next_size
from contextfold.overflow.verdicts import VERDICTS, Kind, Overflow, Rule

__all__ = ["VERDICTS", "Kind", "Overflow", "Rule", "classify", "next_size"]
