"""The tier for old reasoning, and for a provider's own compaction that no one can read: it is removed whole.

What belongs here: only that. Reasoning is signed or encrypted by its provider, so half of it is worth nothing and an
edited block is refused: it is byte-identical or gone. Whether the provider allows it to go is the policy's to know.
"""

from __future__ import annotations

from typing import ClassVar

from contextfold.messages import Opaque, Part, Reasoning


class ReasoningRemoved:
    """Removes reasoning, or a provider's own compaction. ``limit`` has no meaning here."""

    name: ClassVar[str] = "reasoning"

    def reduce(self, part: Part, limit: int) -> Part | None:
        return None if isinstance(part, Reasoning) or (isinstance(part, Opaque) and part.is_compaction) else part
