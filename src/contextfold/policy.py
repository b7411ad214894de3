"""Policy: when to compact, how far, what must stay, and how. One validated value with the defaults.

What belongs here: every knob, its default and why, its validation, and ``Limits``: the knobs in tokens of a window.
What does not: deciding anything about a conversation (``plan``), how a summary is asked for (``summary.options``).

Sizes are written ``("tokens", 4000)``, ``("messages", 20)`` or ``("fraction", 0.8)`` (of the window). A trigger is
one size, a mapping such as ``{"tokens": 4000, "messages": 50}`` (all must hold), a list of these (any may hold),
or None (never).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from contextfold.errors import PolicyError
from contextfold.messages import Message
from contextfold.summary.options import SummaryOptions

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Unit = Literal["tokens", "messages", "fraction"]
UNITS = ("tokens", "messages", "fraction")


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of conversation, in tokens, in messages, or as a fraction of the window."""

    unit: Unit
    value: float

    def tokens(self, window: int) -> int | None:
        """The size in tokens; None for a size in messages."""
        if self.unit == "messages":
            return None
        return math.floor(self.value * window) if self.unit == "fraction" else int(self.value)

    def __str__(self) -> str:
        return f"{self.unit}:{self.value:g}"


@dataclass(frozen=True, slots=True)
class Clause:
    """Sizes that must all be reached for this clause to fire."""

    sizes: tuple[Size, ...]

    def reached(self, *, tokens: int, messages: int, window: int) -> bool:
        return all(_amount(size, tokens, messages) >= _threshold(size, window) for size in self.sizes)

    def __str__(self) -> str:
        return " and ".join(str(size) for size in self.sizes)


def parse_size(value: Any) -> Size:
    """A ``Size`` from a pair, a one-entry mapping, ``{"type", "value"}`` or text such as ``fraction:0.8``.

    Raises ``ValueError`` that says what is allowed.
    """
    if isinstance(value, Size):
        return value
    unit, amount = _unit_and_amount(value)
    if unit not in UNITS:
        raise ValueError(f"unknown unit {unit!r} in {value!r}: use one of {', '.join(UNITS)}")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount):
        raise ValueError(f"{amount!r} in {value!r} is not a number")
    if unit == "fraction" and not 0 < amount <= 1:
        raise ValueError(f"a fraction of the window must be above 0 and at most 1, not {amount:g}")
    if unit != "fraction" and (amount < 1 or amount != int(amount)):
        raise ValueError(f"a size in {unit} must be a whole number of at least 1, not {amount:g}")
    return Size(unit, amount)


def parse_trigger(value: Any) -> tuple[Clause, ...]:
    """Clauses (any may fire) from a size, a mapping (all of it), a list of these, or None (never)."""
    if value is None:
        return ()
    if isinstance(value, Clause):
        return (value,)
    if isinstance(value, Mapping) and not {"type", "value"} <= value.keys():
        if not value:
            raise ValueError("an empty mapping triggers always; use None for never")
        return (Clause(tuple(parse_size((unit, amount)) for unit, amount in value.items())),)
    if isinstance(value, list) or (isinstance(value, tuple) and not _is_pair(value)):
        return tuple(clause for entry in value for clause in parse_trigger(entry))
    return (Clause((parse_size(value),)),)


def _is_pair(value: Sequence[Any]) -> bool:
    return len(value) == 2 and isinstance(value[0], str) and not isinstance(value[1], tuple | list | Mapping)


def _unit_and_amount(value: Any) -> tuple[Any, Any]:
    if isinstance(value, str) and ":" in value:
        unit, _, amount = value.partition(":")
        try:
            return unit.strip(), float(amount)
        except ValueError:
            raise ValueError(f"{amount.strip()!r} in {value!r} is not a number") from None
    if isinstance(value, Mapping) and {"type", "value"} == value.keys():
        return value["type"], value["value"]
    if isinstance(value, Mapping) and len(value) == 1:
        return next(iter(value.items()))
    if isinstance(value, tuple | list) and len(value) == 2:
        return value[0], value[1]
    raise ValueError(f"{value!r} is not a size: write ('tokens', 4000), ('messages', 20) or ('fraction', 0.8)")


def _amount(size: Size, tokens: int, messages: int) -> int:
    return messages if size.unit == "messages" else tokens


def _threshold(size: Size, window: int) -> float:
    tokens = size.tokens(window)
    return size.value if tokens is None else tokens


SizeField: TypeAlias = Annotated[Size, BeforeValidator(parse_size)]
TriggerField: TypeAlias = Annotated[tuple[Clause, ...], BeforeValidator(parse_trigger)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Budgets(_Settings):
    """How the room after the system prompt and the tools is shared, where ``target`` and ``keep`` do not say it.

    ``usage`` is the share of the window that a pass fills. What is left of it after the floor is shared between the
    summary with its evidence, the newest messages word for word (``recent``), and the ones before these in a shortened
    form; the rest is slack. ``Budgets(usage=0.6, summary=0.26, recent=0.65)`` is a division that other systems use;
    replays of real conversations favour much more evidence and a shorter tail, hence these defaults: what is recent
    soon becomes old, while one line of evidence may save a whole file from being read again.
    """

    usage: Share | None = None
    """None: ``usage_of`` the window."""
    summary: Share = 0.8
    """The summary message: prose and evidence."""
    recent: Share = 0.13
    """The newest messages, word for word, and at least the newest group."""
    shortened: Share = 0.06
    """The messages before these, with old arguments, outputs, media and reasoning reduced."""
    prose: Share = 0.1
    """Of the summary's share, what prose may take; evidence takes the rest."""

    def usage_of(self, window: int) -> float:
        """The share of a window of so many tokens that a pass fills.

        Half of a small window; of larger ones less, by a power of their size. What a model needs again from long ago
        falls off with its age, so what is worth carrying grows more slowly than the window, and every token carried is
        paid for at each call. Exponent and base are from replays of real conversations at 16,000 to 64,000 tokens.
        """
        if self.usage is not None:
            return self.usage
        share: float = 0.48 * (16_000 / window) ** 0.2
        return min(0.5, max(0.25, share))

    @model_validator(mode="after")
    def _whole(self) -> Budgets:
        if self.summary + self.recent + self.shortened > 1:
            shares = f"summary {self.summary:g}, recent {self.recent:g} and shortened {self.shortened:g}"
            raise ValueError(f"{shares} are shares of one whole: at most 1 together")
        return self


class Pins(_Settings):
    """Messages that stay word for word in every view. A pinned message keeps its whole group."""

    ids: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Names of tools whose calls and results stay."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """Pinned if every key is in the message's metadata with this value."""
    predicate: Callable[[Message], bool] | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.ids or self.tools or self.metadata or self.predicate)


class ToolArguments(_Settings):
    """Old tool-call arguments: strings longer than ``limit`` characters keep their head and a marker with the count."""

    enabled: bool = True
    limit: Annotated[int, Field(ge=20)] = 200
    tools: frozenset[str] | None = None
    """Only these tools; None: all."""


class ToolOutputs(_Settings):
    """Old tool outputs are compressed by kind to about ``limit`` tokens."""

    enabled: bool = True
    limit: Annotated[int, Field(ge=50)] = 200
    exclude: frozenset[str] = frozenset()
    """Names of tools whose outputs stay as they are."""


class Toggle(_Settings):
    """A tier without settings of its own."""

    enabled: bool = True


class Oversized(_Settings):
    """Items inside the kept tail are clipped to no less than ``minimum`` tokens, when nothing else makes it fit."""

    enabled: bool = True
    minimum: Annotated[int, Field(ge=50)] = 200


class Policy(_Settings):
    """Every knob of a compaction. Immutable; a wrong value raises ``PolicyError`` naming field, value and remedy."""

    trigger: TriggerField = (Clause((Size("fraction", 0.8),)),)
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Compaction starts at this many tokens, whatever ``trigger`` says."""
    target: SizeField | None = None
    """Where a pass must end. None: ``budgets.usage`` of the window, below the trigger, and above the floor."""
    keep: SizeField | None = None
    """The verbatim tail. None: ``budgets.recent``."""
    answer_reserve: Annotated[int, Field(ge=0)] = 0
    """Tokens of the window that belong to the model's answer."""
    budgets: Budgets = Budgets()
    first_user: bool = True
    """Keep the first message that a person wrote, word for word."""
    recent_users: Share = 0.03
    """User messages older than the tail stay word for word, newest first, up to this share of the window."""
    pins: Pins = Pins()
    tool_arguments: ToolArguments = ToolArguments()
    tool_outputs: ToolOutputs = ToolOutputs()
    media: Toggle = Toggle()
    reasoning: Toggle = Toggle()
    oversized: Oversized = Oversized()
    minimum_gain: Share = 0.05
    """A pass that would free less than this share of the window is not worth its rewrite, while the view fits."""
    evidence: bool = True
    summary: SummaryOptions = SummaryOptions()
    summary_role: Literal["user", "system", "developer", "assistant"] = "user"
    summary_place: Literal["after_first_user", "after_system"] = "after_first_user"
    on_failure: Literal["keep", "raise"] = "keep"
    """When the summary fails: go on with the old view as long as it fits the window, or raise what was raised."""
    fallback: Literal["extractive"] | None = "extractive"
    """With ``on_failure="keep"``, when the old view does not fit: the built-in summariser, or ``SummaryFailed``."""
    alternate: bool | None = None
    """Join neighbours of one role that compaction brought together. None: where the format wants it."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise _policy_error(error) from None

    @field_validator("keep", "target")
    @classmethod
    def _target_in_tokens(cls, value: Size | None, info: Any) -> Size | None:
        if value is not None and info.field_name == "target" and value.unit == "messages":
            raise ValueError("a target is a size in tokens or a fraction of the window, not a number of messages")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Policy:
        """What can be compared without knowing the window is compared at once."""
        for clause in self.trigger:
            for size in clause.sizes:
                for name, other in (("target", self.target), ("keep", self.keep)):
                    if other is not None and other.unit == size.unit and other.value >= size.value:
                        raise ValueError(
                            f"{name} {other} is not below the trigger {size}: a pass must end below where it starts"
                        )
        return self


COMFORTABLE = 0.5
"""Share of the window. See ``Limits.comfortable``."""


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

    @classmethod
    def of(cls, policy: Policy, window: int) -> Limits:
        """Raises ``PolicyError`` when the policy does not fit this window."""
        usable = window - policy.answer_reserve
        if usable < 1:
            raise PolicyError(
                f"answer_reserve {policy.answer_reserve:,} leaves nothing of the window of {window:,} tokens"
            )
        trigger = _lowest_trigger(policy, usable)
        if trigger is not None and trigger > usable:
            raise PolicyError(f"the trigger of {trigger:,} tokens is above the usable window of {usable:,} tokens")
        target = _target(policy, usable, trigger)
        kept = policy.keep.tokens(usable) if policy.keep else None
        if kept is not None and kept >= usable:
            raise PolicyError(f"keep {policy.keep} is {kept:,} tokens, and the usable window is {usable:,}: keep less")
        return cls(
            window=usable,
            trigger=trigger,
            target=target,
            comfortable=target if policy.target is not None else max(target, _scaled(COMFORTABLE, usable, trigger)),
            keep=policy.keep,
            recent_users=int(policy.recent_users * usable),
            minimum_gain=int(policy.minimum_gain * usable),
        )

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
            minimum_gain=0,
        )


def _lowest_trigger(policy: Policy, window: int) -> int | None:
    sizes = [size.tokens(window) for clause in policy.trigger for size in clause.sizes]
    known = [size for size in [*sizes, policy.max_tokens] if size is not None]
    return min(known, default=None)


def _target(policy: Policy, window: int, trigger: int | None) -> int:
    """An explicit target as it is; else the budget's share of the window, scaled down with a low trigger.

    0.5 of the window goes with a trigger at 0.8 of it; a trigger in tokens keeps that proportion.
    """
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
    return _scaled(policy.budgets.usage_of(window), window, trigger)


def _scaled(usage: float, window: int, trigger: int | None) -> int:
    """A share of the window in tokens; under a trigger lower than 0.8 of the window, the same share of the trigger."""
    share = int(usage * window)
    return share if trigger is None else max(1, min(share, int(trigger * min(usage / 0.8, 0.9))))


def _policy_error(error: ValidationError) -> PolicyError:
    """A pydantic error as one line a person can act on: each field, its value and what is allowed."""
    problems = [(tuple(problem["loc"]), _explained(problem)) for problem in error.errors()]
    lines = [f"{'.'.join(map(str, key))}: {text}" if key else text for key, text in problems]
    return PolicyError("; ".join(lines), problems)


def _explained(problem: ErrorDetails) -> str:
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"there is no such setting; there are: {', '.join(Policy.model_fields)}"
    return text if problem["type"] == "value_error" else f"{text} (got {problem['input']!r})"
