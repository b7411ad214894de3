"""Limits: a policy in tokens of one window.

What belongs here: the arithmetic from shares to tokens. What does not: the knobs and their defaults (``policy``), and
how large the window is (``window``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from contextfold.errors import PolicyError, shown
from contextfold.policy import LATEST, Policy, Size, start_of

COMFORTABLE = 0.5
"""Share of the window. See ``Limits.comfortable``."""

MOST = 0.68
"""Share of the window. See ``Limits.most``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A policy in tokens of one window."""

    window: int
    trigger: int | None
    """The lowest size in tokens at which a pass may start; None when only message counts trigger."""
    target: int
    comfortable: int
    """What a default target may be raised to where the newest messages leave too little for the summary."""
    keep: Size | None
    recent_users: int
    minimum_gain: int
    carried: int | None = None
    """The summary message, where the target follows from it; None where the policy says the target."""
    most: int = 0
    """What a target that follows from what stays and the summary message is at most."""
    overhead: int = 0
    """What no pass rewrites, for which a default trigger is later: see ``start_of``."""

    @classmethod
    def of(cls, policy: Policy, window: int) -> Limits:
        """Raises ``PolicyError`` when the policy does not fit this window."""
        usable = window - policy.answer_reserve
        if usable < 1:
            raise PolicyError(
                f"answer_reserve {shown(policy.answer_reserve)} leaves nothing of the window of {window:,} tokens"
            )
        trigger = _lowest_trigger(policy, usable)
        if trigger is not None and trigger > usable:
            raise PolicyError(f"the trigger of {trigger:,} tokens is above the usable window of {usable:,} tokens")
        # The shares below were tuned beside the default trigger. Only one that a caller lowered scales them down.
        own = trigger if policy.has_own_trigger else None
        target = _target(policy, usable, trigger)
        kept = policy.keep.tokens(usable) if policy.keep else None
        if kept is not None and kept >= usable:
            raise PolicyError(f"keep {policy.keep} is {kept:,} tokens, and the usable window is {usable:,}: keep less")
        return cls(
            window=usable,
            trigger=trigger,
            target=target,
            comfortable=target if policy.target is not None else max(target, _scaled(COMFORTABLE, usable, own)),
            keep=policy.keep,
            recent_users=_for_users(policy, usable, own),
            minimum_gain=int(policy.minimum_gain * usable),
            carried=_carried(policy, usable, own),
            # below the trigger by some turns: a view that ends close to it would soon be compacted again
            most=min(_scaled(MOST, usable, own), int(0.85 * (trigger or usable))),
        )

    def beside(self, policy: Policy, overhead: int) -> Limits:
        """The limits of a request that has so many tokens of system prompt and tools, leading instructions included.

        Only a default trigger is later for them, and what a pass leaves stays as small as it was.
        """
        if policy.has_own_trigger or self.trigger is None or overhead <= 0:
            return self
        later = int((start_of(self.window, overhead) - start_of(self.window)) * self.window)
        trigger = min(self.window, max(self.trigger, int(LATEST * self.window)), self.trigger + later)
        return replace(self, trigger=trigger, overhead=overhead)

    def shrunk(self, window: int) -> Limits:
        """The same limits for a window that turned out smaller: all that exceeds it comes down with it."""
        share = min(1.0, window / self.window)
        trigger = window if self.trigger is None else min(self.trigger, window)
        return replace(
            self,
            window=window,
            trigger=trigger,
            target=max(1, min(int(self.target * share), trigger - 1)),
            comfortable=max(1, min(int(self.comfortable * share), trigger - 1)),
            recent_users=int(self.recent_users * share),
            # a refusal is answered with less, however little less
            minimum_gain=0,
            carried=None if self.carried is None else int(self.carried * share),
            most=max(1, min(int(self.most * share), trigger - 1)),
        )


def _lowest_trigger(policy: Policy, window: int) -> int | None:
    sizes = [size.tokens(window) for clause in policy.clauses(window) for size in clause.sizes]
    return min((size for size in sizes if size is not None), default=None)


def _target(policy: Policy, window: int, trigger: int | None) -> int:
    """An explicit target as it is; else the budget's share of the window, scaled down with a low trigger."""
    if policy.target is not None:
        target = policy.target.tokens(window)
        assert target is not None  # sizes in messages are refused on construction
        if target > window:
            raise PolicyError(f"target {policy.target} is {target:,} tokens, above the usable window of {window:,}")
        if trigger is not None and target >= trigger:
            raise PolicyError(
                f"target {policy.target} is {target:,} tokens, not below the trigger of {trigger:,} tokens"
            )
        return target
    # 0.5 of the window goes with a trigger at 0.8 of it; a trigger in tokens keeps that proportion.
    return _scaled(policy.budgets.usage_of(window), window, trigger if policy.has_own_trigger else None)


def _carried(policy: Policy, window: int, trigger: int | None) -> int | None:
    if policy.target is not None or policy.keep is not None or policy.budgets.usage is not None:
        return None
    return _scaled(policy.budgets.carried_of(window), window, trigger)


def _for_users(policy: Policy, window: int, trigger: int | None) -> int:
    """A share that is given as it is; the default one scaled down with a low trigger, like the summary message."""
    if "recent_users" in policy.model_fields_set:
        return int(policy.recent_users * window)
    return _scaled(policy.recent_users, window, trigger)


def _scaled(usage: float, window: int, trigger: int | None) -> int:
    """A share of the window in tokens; under a trigger lower than 0.8 of the window, the same share of the trigger."""
    share = int(usage * window)
    return share if trigger is None else max(1, min(share, int(trigger * min(usage / 0.8, 0.9))))
