"""What a refusal means: ``verdicts`` decides, ``text`` reads errors, ``figures`` the numbers
in them, ``next_size`` says what to aim at."""

from contextfold.overflow.next_size import next_size
from contextfold.overflow.verdicts import Kind, Overflow, classify

__all__ = ["Kind", "Overflow", "classify", "next_size"]
