"""Whether a session is to be summarized now, soon, or not yet; and the figures behind it. Pure.

What belongs here: the thresholds and increments of ``SessionOptions`` against the size of a view, and how the window is
shared, in the words that logs have. What does not: what becomes of each message (``passes.decide``).
"""

from __future__ import annotations

from dataclasses import dataclass

from contextfold.limits import Limits
from contextfold.observe import Observer
from contextfold.passes.question import triggered
from contextfold.policy import Policy
from contextfold.store.options import SessionOptions


@dataclass(frozen=True, slots=True)
class SessionSize:
    """A session as it would be sent. Sizes are tokens.

    ``tokens`` is the whole view with ``overhead``: system prompt and tools that are no messages of the session. ``new``
    is what came after the messages that the summary in force covers.
    """

    tokens: int
    overhead: int
    messages: int
    """In the view."""
    total_messages: int
    """In the session."""
    summary_tokens: int
    new_messages: int
    new_tokens: int
    system_tokens: int
    """Instructions among the messages, and ``overhead``."""

    @property
    def message_tokens(self) -> int:
        return self.tokens - self.overhead


@dataclass(frozen=True, slots=True)
class Due:
    """Why a summary has to be in force before the next request. ``by_policy``: the policy's own trigger says so; else
    a pass has to be told, because the policy alone would not make it."""

    reason: str
    by_policy: bool = False


@dataclass(frozen=True, slots=True)
class SessionRules:
    """All that a decision depends on besides the size."""

    options: SessionOptions
    policy: Policy
    limits: Limits

    def due(self, size: SessionSize) -> Due | None:
        """Why a summary has to be in force before the next request; None when none has."""
        if not self.options.enable_context_optimization:
            return None
        if trigger := triggered(self.policy, self.limits, size.tokens, size.messages):
            return Due(trigger.reason, by_policy=True)
        upper = self.options.upper_threshold
        if upper is not None and size.message_tokens > upper and self.worthwhile(size):
            return Due(f"tokens:{upper}")
        return None

    def soon(self, size: SessionSize) -> bool:
        """Whether to prepare one in the background."""
        if not self.options.enable_context_optimization or not self.options.background:
            return False
        levels = [level for level in (self._upper(size), self.limits.trigger) if level is not None]
        return bool(levels) and size.tokens > self.options.soft_ratio * min(levels) and self.worthwhile(size)

    def worthwhile(self, size: SessionSize) -> bool:
        """Whether there is enough for a first summary, or enough that is new for another one."""
        if not size.summary_tokens:
            return size.total_messages >= self.options.min_messages
        if size.new_messages < self.options.min_new_messages:
            return False
        return size.new_tokens > self.options.trigger_ratio * size.summary_tokens

    def _upper(self, size: SessionSize) -> int | None:
        upper = self.options.upper_threshold
        return None if upper is None else upper + size.overhead


def report_budget(rules: SessionRules, size: SessionSize, observer: Observer) -> None:
    """How the window is shared: the figures that the decision rests on."""
    budgets, window = rules.policy.budgets, rules.limits.window
    ratio = budgets.usage_of(window)
    usable = int(window * ratio)
    available = max(0, usable - size.system_tokens)
    summary, recent = int(available * budgets.summary), int(available * budgets.recent)
    observer.emit(
        "context_budget",
        f"context window: {window}, target usage: {ratio:.1%}, usable: {usable}, system: {size.system_tokens}, "
        f"available: {available}; messages: {size.messages}, {size.message_tokens} tokens; "
        f"summary budget: {summary}, recent budget: {recent}",
        window=window,
        target_usage=ratio,
        usable=usable,
        system=size.system_tokens,
        available=available,
        messages=size.messages,
        tokens=size.message_tokens,
        summary_budget=summary,
        recent_budget=recent,
    )


def report_built(size: SessionSize, before: int, observer: Observer) -> None:
    """What the view is made of, and how much less it is than the ``before`` tokens that were there."""
    recent = size.tokens - size.system_tokens - size.summary_tokens
    shown = size.messages - bool(size.summary_tokens)
    reduction = 1 - size.tokens / before if before else 0.0
    observer.emit(
        "context_built",
        f"System={size.system_tokens}t, Summary={size.summary_tokens}t, Recent={recent}t "
        f"({shown}/{size.total_messages} messages), Total={size.tokens}t; reduction: {reduction:.1%}",
        system=size.system_tokens,
        summary=size.summary_tokens,
        recent=recent,
        messages=shown,
        total_messages=size.total_messages,
        total=size.tokens,
        reduction=round(reduction, 4),
    )
