"""contextfold keeps a long agent conversation inside a model's context window and accounts for every message.

>>> from contextfold import Compactor
>>> compactor = Compactor(window=200_000)
>>> out = compactor.compact([{"role": "user", "content": "Hello"}])
>>> out.changed, len(out.messages)
(False, 1)
"""

from contextfold.compaction import Compaction
from contextfold.compactor import CompactionResult, Compactor
from contextfold.errors import (
    CannotFit,
    ContextfoldError,
    ContextOverflow,
    FormatError,
    InputError,
    PolicyError,
    SummaryFailed,
)
from contextfold.observe import Event
from contextfold.policy import Policy
from contextfold.tokens import count_tokens

__version__ = "0.1.0"

__all__ = [
    "CannotFit",
    "Compaction",
    "CompactionResult",
    "Compactor",
    "ContextOverflow",
    "ContextfoldError",
    "Event",
    "FormatError",
    "InputError",
    "Policy",
    "PolicyError",
    "SummaryFailed",
    "__version__",
    "count_tokens",
]
