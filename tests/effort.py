"""How hard the tests try: quickly by default, in full where ``CONTEXTFOLD_TESTS=full``, as ``.ci/run`` has it.

A run looks at the same examples each time, so that an unrelated change never fails by chance; full runs look at more
of them.
"""

from __future__ import annotations

import os

FULL = os.environ.get("CONTEXTFOLD_TESTS") == "full"
SHARE = 5
"""A full run looks at so many times the examples of a quick one."""


def examples(number: int) -> int:
    """For ``settings(max_examples=examples(200))``: the number in a full run, a share of it in a quick one."""
    return number if FULL else max(5, number // SHARE)
