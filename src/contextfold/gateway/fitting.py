"""Whether a request is surely below its trigger, so that it goes on without being taken apart.

Two things are known without counting: a token is at least one byte, and a conversation that was counted before has
grown by no more tokens than there are new bytes. So most turns of a conversation cost a comparison of its bytes, and
the engine looks again when the bytes that came since could have reached the trigger.

What belongs here: these two bounds. What does not: counting, and deciding (the engine's).
"""

from __future__ import annotations

import re

from contextfold.gateway.call import State
from contextfold.gateway.conversations import Beginning
from contextfold.policy import Policy

_WITHOUT_BYTES = re.compile(
    rb'"type"\s*:\s*"(?:image|image_url|input_image|computer_screenshot|document|file|input_file|container_upload'
    rb'|input_audio|audio|audio_url|video|video_url|item_reference)"|"file_?[Dd]ata"|\{\s*"id"\s*:\s*"[^"]*"\s*\}'
)
"""What costs tokens without bytes: media, and items that are named by their ids, which need no type."""


class Bounds:
    """The bounds under one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._least: dict[int, int] = {}

    def least(self, window: int) -> int:
        """Tokens at which the engine may do something at the earliest; 0 where that does not depend on tokens alone."""
        if window not in self._least:
            if len(self._least) > 1_024:  # windows follow from model names, which come from outside
                self._least.clear()
            self._least[window] = least_trigger(self._policy, window)
        return self._least[window]

    def is_short(self, raw: bytes, window: int) -> bool:
        """Whether the whole body is so short. Half of the trigger, because a provider's count is an estimate here."""
        return len(raw) < self.least(window) // 2 and not _WITHOUT_BYTES.search(raw)

    def has_room(self, state: State, found: Beginning, raw: bytes, window: int) -> bool:
        """Whether a known conversation, counted when it was remembered, has so few new bytes.

        A record in force is the engine's business each time.
        """
        known = found.known
        if known is None or state.sized is None or state.record is not None:
            return False
        body, tokens = state.sized
        if body is not known.body:
            return False
        # What stood before was counted; only these bytes can have added tokens, and what costs tokens without bytes.
        new = found.new_bytes(raw)
        return tokens + len(new) < self.least(window) and not _WITHOUT_BYTES.search(new)


def least_trigger(policy: Policy, window: int) -> int:
    """Tokens at which a pass may start, or be prepared, at the earliest; 0 where messages are counted as well."""
    usable = max(1, window - policy.answer_reserve)
    found = [size.tokens(usable) for clause in policy.clauses(usable) for size in clause.sizes]
    sizes = [tokens for tokens in found if tokens is not None]
    if len(sizes) < len(found):
        return 0
    return int(min(sizes, default=usable) * (policy.soft_share or 1))
