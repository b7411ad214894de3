"""How far a summary has come, for those who want to watch.

What belongs here: the count and the estimate. What does not: how it is shown (``cli``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contextfold.observe import Observer, SummaryProgress
from contextfold.ports import Ports


@dataclass(slots=True)
class Progress:
    """Counts chunks as they are read. ``tokens`` is the size of all that is to be read, ``started`` the clock's time.

    Branches call ``done``, the trunk sets ``chunks`` and ``depth``.
    """

    ports: Ports
    observer: Observer
    tokens: int
    started: float
    chunks: int = 1
    depth: int = 0
    _read: list[int] = field(default_factory=list)

    async def done(self, tokens: int) -> None:
        """One more chunk is read."""
        self._read.append(tokens)
        await self.tell()

    async def tell(self) -> None:
        """Tell how it stands now. Time left is taken from the pace so far; merging comes on top."""
        if self.observer.hooks.on_progress is None:
            return
        done, seconds = sum(self._read), self.ports.clock.now() - self.started
        left = seconds / done * max(0, self.tokens - done) if done else None
        chunks = max(self.chunks, len(self._read))
        told = SummaryProgress(len(self._read), chunks, self.depth, min(done, self.tokens), self.tokens, seconds, left)
        await self.observer.tell(self.ports, told)
