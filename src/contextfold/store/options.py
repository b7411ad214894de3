"""How a session decides when to summarize, and how a user's own settings override that.

What belongs here: the options, their defaults and validation, and what they make of a policy and its limits. What does
not: deciding about a conversation (``decision``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from contextfold.errors import PolicyError, shown
from contextfold.limits import Limits
from contextfold.policy import Policy
from contextfold.ports import Ports
from contextfold.tokens import tiktoken_counter

if TYPE_CHECKING:
    from contextfold.passes.means import Archiver

Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]
LONGEST_LEASE = 365 * 24 * 3600
"""Seconds. Clocks and timers end somewhere; and an infinite lease would be one that no one can ever take over."""

UserConfig = Callable[[Any], Any] | Mapping[Any, Mapping[str, Any]]


class SessionFields(TypedDict, total=False):
    """``SessionOptions`` as a mapping."""

    upper_threshold: int | None
    lower_threshold: int | None
    min_messages: int
    min_new_messages: int
    trigger_ratio: float
    background: bool
    soft_ratio: float
    lease_seconds: float
    enable_context_optimization: bool
    token_calculation_method: Literal["estimate", "tiktoken"]
    target_usage_ratio: float | None
    summary_token_ratio: float | None
    recent_token_ratio: float | None
    compress_tool_output: bool | None
    tool_output_max_tokens: int | None


class FormatlessKeywords(TypedDict, total=False):
    """What a session takes besides its thread, its store and the format of its messages."""

    namespace: str
    options: SessionOptions | SessionFields | None
    user: Any
    get_optimization_config: UserConfig | None
    archive: str | os.PathLike[str] | Archiver | None


class SessionKeywords(FormatlessKeywords, total=False):
    """What a session takes besides its thread and store."""

    format: str | None


class SessionOptions(BaseModel):
    """When a session is summarized. Immutable. Sizes are tokens, of the messages alone.

    From ``upper_threshold`` on there is a summary, and messages and summary are below ``lower_threshold`` then: the
    first one as soon as there are ``min_messages``, the next ones when at least ``min_new_messages`` have come since,
    of more than ``trigger_ratio`` times the size of the summary. Where the compactor's own trigger fires, none of
    that is asked: the window is about to be full.

    A number that is given is the number that is used: where the policy says itself when to compact, or where to end,
    thresholds that were not given step back (``under``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    upper_threshold: Count | None = 50_000
    """None: only the compactor's trigger."""
    lower_threshold: Count | None = 30_000
    """None: the compactor's target."""
    min_messages: Annotated[int, Field(ge=0)] = 20
    min_new_messages: Annotated[int, Field(ge=0)] = 10
    trigger_ratio: Annotated[float, Field(ge=0)] = 0.5
    background: bool = False
    """Prepare summaries while the conversation goes on, so that no view waits for one."""
    soft_ratio: Share = 0.8
    """Where preparing begins, as a share of where a summary is needed."""
    lease_seconds: Annotated[float, Field(gt=0, le=LONGEST_LEASE)] = 60.0
    """How long a worker that died keeps others from summarizing. A living one renews its lease three times as often."""

    enable_context_optimization: bool = True
    """False: nothing is ever summarized by itself."""
    token_calculation_method: Literal["estimate", "tiktoken"] = "estimate"
    target_usage_ratio: Share | None = None
    """The share of the window that a pass may fill. This and the next ones: None is what the policy says."""
    summary_token_ratio: Share | None = None
    recent_token_ratio: Share | None = None
    compress_tool_output: bool | None = None
    tool_output_max_tokens: Annotated[int, Field(ge=50)] | None = None

    def __init__(self, **fields: Unpack[SessionFields]) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise PolicyError(_explained(error)) from None

    @model_validator(mode="after")
    def _ordered(self) -> SessionOptions:
        upper, lower = self.upper_threshold, self.lower_threshold
        if upper is not None and lower is not None and lower >= upper:
            raise ValueError(f"lower_threshold {lower:,} is not below upper_threshold {upper:,}")
        return self

    def with_overrides(self, config: Mapping[str, Any]) -> SessionOptions:
        """The same options with some replaced. Raises ``PolicyError`` for a name or value that is not allowed."""
        return SessionOptions(**{**self.model_dump(exclude_unset=True), **config})

    def under(self, policy: Policy) -> SessionOptions:
        """The same options beside a policy: without defaults that would overrule it, and off where it is off."""
        if not policy.enabled:
            return self.model_copy(update={"enable_context_optimization": False})
        given = self.model_fields_set
        steps_back: dict[str, Any] = {}
        if policy.soft_share is not None:
            steps_back |= {key: value for key, value in self._beside(policy.soft_share).items() if key not in given}
        if policy.has_own_trigger and "upper_threshold" not in given:
            steps_back["upper_threshold"] = None
        # Without its upper one a lower threshold has no pass to end: it would only lower the target of the caller's
        # trigger.
        if (policy.target is not None or "upper_threshold" in steps_back) and "lower_threshold" not in given:
            steps_back["lower_threshold"] = None
        return self.model_copy(update=steps_back)

    @staticmethod
    def _beside(share: float) -> dict[str, Any]:
        return {"background": True, "soft_ratio": share}

    def policy(self, policy: Policy) -> Policy:
        """The policy of the compactor, with what these options say otherwise."""
        shares = {
            "usage": self.target_usage_ratio,
            "summary": self.summary_token_ratio,
            "recent": self.recent_token_ratio,
        }
        given = {name: share for name, share in shares.items() if share is not None}
        if given.keys() & {"summary", "recent"}:
            merged = {**policy.budgets.model_dump(), **given}
            given["shortened"] = max(0.0, min(policy.budgets.shortened, 1 - merged["summary"] - merged["recent"]))
        outputs: dict[str, Any] = {"enabled": self.compress_tool_output, "limit": self.tool_output_max_tokens}
        outputs = {name: value for name, value in outputs.items() if value is not None}
        if not given and not outputs:
            return policy
        # Only what was given: a default that is named would count as the caller's own (``has_own_trigger``).
        fields = {name: getattr(policy, name) for name in policy.model_fields_set}
        if given:
            fields["budgets"] = {**policy.budgets.model_dump(), **given}
        if outputs:
            fields["tool_outputs"] = {**policy.tool_outputs.model_dump(), **outputs}
        return Policy(**fields)

    def limits(self, limits: Limits, overhead: int) -> Limits:
        """The limits of a policy with the lower threshold in place, given what is sent besides the messages.

        Only the default target is lowered; it still gives way to what must stay.
        """
        if self.lower_threshold is None:
            return limits
        # below the threshold, not at it; a threshold is about messages, a limit about all that is sent
        lower = max(1, self.lower_threshold - 1 + overhead)
        lowered = {name: min(getattr(limits, name), lower) for name in ("target", "comfortable", "most")}
        return replace(limits, **lowered)

    def count_text(self, given: Callable[[str], int] | None) -> Callable[[str], int] | None:
        """Tokens of a text: the compactor's counter, or tiktoken where a user asks for it."""
        if self.token_calculation_method == "estimate" or given is not None:
            return given
        return tiktoken_counter("o200k_base")


def options_for(given: SessionOptions | SessionFields | None) -> SessionOptions:
    """The options that the application gave. Raises ``PolicyError`` for a name or value that is not allowed."""
    if isinstance(given, SessionOptions):
        return given
    if not isinstance(given, Mapping | None):
        raise PolicyError(f"options are a SessionOptions or a mapping of its names to values, not {shown(given)}")
    _check_names(given or {})
    fields: dict[str, Any] = {**(given or {})}
    return SessionOptions(**fields)


def _check_names(given: Mapping[Any, Any]) -> None:
    if wrong := [name for name in given if not isinstance(name, str)]:
        names = ", ".join(SessionOptions.model_fields)
        raise PolicyError(f"{shown(wrong[0])} is no name of an option; there are: {names}")


class UserOptions:
    """What is configured for the user of a session, read again for each call.

    ``configured`` is a function from user to settings (or None), sync or async, or a mapping from user to settings.
    A function is not called before a call needs it: it may ask a database, which code that creates sessions on an
    event loop must not do. Raises ``PolicyError`` for anything else.
    """

    def __init__(self, user: Any, configured: UserConfig | None) -> None:
        if configured is not None and not callable(configured) and not isinstance(configured, Mapping):
            kind = type(configured).__name__
            raise PolicyError(f"get_optimization_config must be a function or a mapping, not {kind}")
        self.user = user
        self.configured = configured

    def known(self, given: SessionOptions) -> SessionOptions:
        """The options as far as they can be known without asking anything."""
        return _overridden(given, self.configured.get(self.user)) if isinstance(self.configured, Mapping) else given

    async def now(self, given: SessionOptions, ports: Ports) -> SessionOptions:
        """The options as they are now. Raises ``PolicyError``, and whatever the application's function raises."""
        if self.configured is None or isinstance(self.configured, Mapping):
            return self.known(given)
        return _overridden(given, await ports.call(self.configured, self.user))


def _overridden(given: SessionOptions, own: Mapping[str, Any] | None) -> SessionOptions:
    if own is not None and not isinstance(own, Mapping):
        raise PolicyError(f"get_optimization_config gave {shown(own)} for the user: it must be a mapping, or None")
    _check_names(own or {})
    return given.with_overrides(own) if own else given


def _explained(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        where = ".".join(map(str, problem["loc"]))
        text = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            text = f"there is no such option; there are: {', '.join(SessionOptions.model_fields)}"
        elif problem["type"] != "value_error":
            text = f"{text} (got {shown(problem['input'])})"
        lines.append(f"{where}: {text}" if where else text)
    return "; ".join(lines)
