"""What a refusal means: ``verdicts`` decides, ``text`` reads errors, ``figures`` the numbers in them."""

from contextfold.overflow.verdicts import Kind, Overflow, classify

__all__ = ["Kind", "Overflow", "classify"]
