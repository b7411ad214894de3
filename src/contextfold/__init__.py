"""contextfold keeps a long agent conversation inside a model's context window and accounts for every message.

>>> from contextfold import Compactor
>>> compactor = Compactor(window=200_000)
>>> out = compactor.compact([{"role": "user", "content": "Hello"}])
>>> out.changed, len(out.messages)
(False, 1)
"""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from contextfold.passes.means import Made
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

_HOMES = {
    "ArchiveError": "errors",
    "Budgets": "policy",
    "Calibration": "tokens",
    "Cancelled": "errors",
    "CannotFit": "errors",
    "Compaction": "record.compaction",
    "CompactionResult": "compactor",
    "Compactor": "compactor",
    "ContextOverflow": "errors",
    "ContextfoldError": "errors",
    "Event": "observe",
    "FormatError": "errors",
    "InputError": "errors",
    "Ledger": "conversation.ledger",
    "Made": "passes.means",
    "Pins": "policy",
    "Policy": "policy",
    "PolicyError": "errors",
    "Proposal": "passes.question",
    "StillTooLong": "errors",
    "StoreError": "errors",
    "SummaryFailed": "errors",
    "SummaryModel": "summary.models",
    "SummaryOptions": "summary.options",
    "TimedOut": "errors",
    "count_tokens": "tokens",
}


def __getattr__(name: str) -> Any:
    """A name is loaded when it is first asked for: a program that counts tokens needs no policies, and one that catches
    our errors needs nothing else.
    """
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # from now on it is found without asking
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
