"""contextfold keeps a long agent conversation inside a model's context window and accounts for every message.

>>> from contextfold import Compactor
>>> compactor = Compactor(window=200_000)
>>> out = compactor.compact([{"role": "user", "content": "Hello"}])
>>> out.changed, len(out.messages)
(False, 1)
"""

import logging

from contextfold.compactor import CompactionResult, Compactor
from contextfold.conversation.ledger import Ledger
from contextfold.errors import (
    ArchiveError,
    Cancelled,
    CannotFit,
    ContextfoldError,
    ContextOverflow,
    FormatError,
    InputError,
    PolicyError,
    StillTooLong,
    StoreError,
    SummaryFailed,
    TimedOut,
)
from contextfold.observe import Event
from contextfold.passes.perform import Made
from contextfold.passes.question import Proposal
from contextfold.policy import Budgets, Pins, Policy
from contextfold.record.compaction import Compaction
from contextfold.summary.models import SummaryModel
from contextfold.summary.options import SummaryOptions
from contextfold.tokens import Calibration, count_tokens

logging.getLogger(__name__).addHandler(logging.NullHandler())  # a library prints nothing of its own accord

__version__ = "0.1.0"

__all__ = [
    "ArchiveError",
    "Budgets",
    "Calibration",
    "Cancelled",
    "CannotFit",
    "Compaction",
    "CompactionResult",
    "Compactor",
    "ContextOverflow",
    "ContextfoldError",
    "Event",
    "FormatError",
    "InputError",
    "Ledger",
    "Made",
    "Pins",
    "Policy",
    "PolicyError",
    "Proposal",
    "StillTooLong",
    "StoreError",
    "SummaryFailed",
    "SummaryModel",
    "SummaryOptions",
    "TimedOut",
    "__version__",
    "count_tokens",
]
