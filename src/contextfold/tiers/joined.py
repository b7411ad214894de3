"""The tier for what an earlier view joined to a message: it is removed, and read into the new summary.

Where roles alternate, a summary and the words of users beside it are one message. A caller who keeps views as the
history hands that back, and without this tier the first user message would hold one summary more after each pass.

What belongs here: only the removal. Which parts these are is for ``passes.joined`` to say.
"""

from __future__ import annotations

from typing import ClassVar

from contextfold.messages import Media, Part, Text


class JoinedRemoved:
    """Removes text and media. ``limit`` has no meaning here."""

    name: ClassVar[str] = "joined"

    def reduce(self, part: Part, limit: int) -> Part | None:
        return None if isinstance(part, Text | Media) else part
