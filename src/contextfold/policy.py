"""Policy: when to compact, how far, what must stay, and how. One validated value with the defaults.

What belongs here: every knob, its default and why, and its validation. What does not: the knobs in tokens of a window
(``limits``), deciding anything about a conversation (``passes``), how a summary is asked for (``summary.options``).

Sizes are written ``("tokens", 4000)``, ``("messages", 20)`` or ``("fraction", 0.8)`` (of the window). A trigger is
one size, a mapping such as ``{"tokens": 4000, "messages": 50}`` (all must hold), a list of these (any may hold),
or None (never).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict, Unpack

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from contextfold.errors import PLAIN, PolicyError, is_async_function, plain_number, reason, shown
from contextfold.messages import Message
from contextfold.summary.options import SummaryFields, SummaryOptions

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SOFT = 0.8
"""Share of the trigger where preparing begins, unless the policy names one: there are some turns to go."""

PATIENCE = 0.92
"""Share of the window up to which a view may grow while something better is about to come. The rest is for what an
estimate may be wrong."""

Unit = Literal["tokens", "messages", "fraction"]
SummaryRole = Literal["user", "system", "developer", "assistant"]
SummaryPlace = Literal["after_first_user", "after_system"]
OnFailure = Literal["keep", "raise"]
OnOverflow = Literal["raise", "drop_oldest"]

MOST_TOKENS = 10**30
"""More is a slip of the hand, and more than arithmetic with fractions takes."""

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
    unit, given = _unit_and_amount(value)
    amount = plain_number(given)
    if unit not in UNITS:
        raise ValueError(f"unknown unit {shown(unit)} in {shown(value)}: use one of {', '.join(UNITS)}")
    if amount is None or not abs(amount) < MOST_TOKENS:
        raise ValueError(f"{shown(given)} in {shown(value)} is not a number that can be used")
    if unit == "fraction" and not 0 < amount <= 1:
        raise ValueError(f"a fraction of the window must be above 0 and at most 1, not {amount:g}")
    if unit != "fraction" and (amount < 1 or amount != int(amount)):
        raise ValueError(f"a size in {unit} must be a whole number of at least 1, not {amount:g}")
    return Size(unit, amount if unit == "fraction" else int(amount))


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
        try:
            return tuple(clause for entry in value for clause in parse_trigger(entry))
        except RecursionError:
            raise ValueError("a trigger is a list of sizes, and this one is nested without end") from None
    return (Clause((parse_size(value),)),)


def _is_pair(value: Sequence[Any]) -> bool:
    # A tuple may hold several triggers as well: only a name with a plain value behind it is one size.
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
    if isinstance(value, str | bool):  # typed, or from a file, where ``off`` is False
        raise ValueError(f"{shown(value)} is not a size: write tokens:4000, messages:20 or fraction:0.8")
    raise ValueError(f"{shown(value)} is not a size: write ('tokens', 4000), ('messages', 20) or ('fraction', 0.8)")


def _amount(size: Size, tokens: int, messages: int) -> int:
    return messages if size.unit == "messages" else tokens


def _threshold(size: Size, window: int) -> float:
    tokens = size.tokens(window)
    return size.value if tokens is None else tokens


SizeField: TypeAlias = Annotated[Size, BeforeValidator(parse_size)]
SwitchField: TypeAlias = Annotated[
    Annotated[bool, Field(strict=True)] | Annotated[float, Field(strict=True, gt=0, lt=1)],
    BeforeValidator(lambda value: value if (number := plain_number(value)) is None else number),
]
TriggerField: TypeAlias = Annotated[tuple[Clause, ...], BeforeValidator(parse_trigger)]
Share = Annotated[float, Field(ge=0, le=1)]


class TypedSize(TypedDict):
    """A size as LangChain's configuration files write it."""

    type: Unit
    value: float


# To a type checker: what is taken, which is more than what an attribute holds. The classes that end in ``Fields`` are
# the keywords of a model and the mapping that may stand in its place; tests/test_types.py holds them to the models.
SizeInput: TypeAlias = "Size | str | tuple[Unit, float] | Mapping[Unit, float] | TypedSize"
TriggerInput: TypeAlias = "Clause | SizeInput | Sequence[TriggerInput] | None"
Names: TypeAlias = "AbstractSet[str] | list[str] | tuple[str, ...]"  # no ``Sequence``: a text is none of names


class _Settings(BaseModel):
    # No `defer_build`, which would spare an import 30 ms: pydantic's building with the first use is not safe in threads
    # (its issues 11849 and 13419), and the first policies of a server are made side by side.
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


# Measured for the built-in one: with a tenth instead of 3 %, 80.0 instead of 82.9 % of the hard needs are in the view.
PROSE, PROSE_BEHIND, BUILT_IN_PROSE = 0.1, 0.05, 0.03
"""Of the summary message, for a model's own words, for those of the request's own model behind its view, and for those
of the built-in summarizer: it quotes, which evidence does better."""

WORTH_ASKING, WORTH_ASKING_BEHIND, LARGEST_PROSE = 1_100, 350, 0.4
"""Tokens that a model may write in any case, as far as this share of the summary message holds them. Models seldom
write less, and a summary that has to be asked for again to be shorter costs its input and output twice. The second one
is for an answer behind the view: there a longer one is not asked for again, and nearly all that it costs is what is
written. At 16,000 tokens replays keep 87.8 instead of 86.9 % of the hard needs with these two, at .296 of the cost
instead of .312 with twice as much prose."""


class Budgets(_Settings):
    """How the room after the system prompt and the tools is shared, where ``target`` and ``keep`` do not say it.

    Either ``usage`` says what share of the window a pass fills, and ``summary``, ``recent`` and ``shortened`` divide
    what the floor leaves of that; the rest is slack. ``Budgets(usage=0.6, summary=0.26, recent=0.65)`` is a division
    that other systems use. Or, by default, the summary message has a size of its own (``carried``) and a pass ends
    where that and what stays word for word end: a turn with long results does not push out what is known.

    The defaults are from replays of real conversations, which favor much evidence and a short tail: what is recent
    soon becomes old, while one line of evidence may save a whole file from being read again.
    """

    usage: Share | None = None
    """None: computed from the window; ``carried`` then sizes the summary."""
    carried: Share | None = None
    """The summary message, prose and evidence, as a share of the window, if none of ``usage``, ``target`` and ``keep``
    is given: more of one thing leaves less of the others. None: ``carried_of`` the window."""
    summary: Share = 0.8
    """The summary message's share, if one of these is given."""
    recent: Share = 0.08
    """The newest messages, word for word, and at least the newest group."""
    shortened: Share = 0.0
    """The messages before these, with old arguments, outputs, media and reasoning reduced. None by default: in replays
    evidence made more of the same tokens."""
    prose: Share | None = None
    """Of the summary message, what prose may take; evidence takes the rest. None: ``PROSE``, ``PROSE_BEHIND`` or
    ``BUILT_IN_PROSE``."""

    def usage_of(self, window: int) -> float:
        """The share of ``window`` tokens that a pass fills, as far as what must stay allows.

        Half of a small window; of larger ones less, by a power of their size. What a model needs again from long ago
        falls off with its age, so what is worth carrying grows more slowly than the window, and every token carried is
        paid for at each call. Exponent and base are from replays of real conversations at 16,000 to 64,000 tokens.
        """
        if self.usage is not None:
            return self.usage
        share: float = 0.48 * (16_000 / window) ** 0.2
        return min(0.5, max(0.25, share))

    def carried_of(self, window: int) -> float:
        """The share of ``window`` tokens for the summary message, by the same rule as ``usage_of``.

        Beyond 32,000 tokens it falls off faster: there nearly all that is needed again is carried, and more of it
        costs without being asked for.
        """
        if self.carried is not None:
            return self.carried
        share: float = min(0.35 * (16_000 / window) ** 0.05, 0.34 * (32_000 / window) ** 0.25)
        return min(0.4, max(0.2, share))

    def prose_of(self, tokens: int, *, built_in: bool, behind_view: bool = False) -> int:
        """Prose budget, in tokens, of a summary message of ``tokens``. Evidence gets the rest. ``behind_view``: the
        model of the request writes it (``summarizer="same"``).
        """
        if self.prose is not None:
            return int(self.prose * tokens)
        if built_in:
            return int(BUILT_IN_PROSE * tokens)
        share, least = (PROSE_BEHIND, WORTH_ASKING_BEHIND) if behind_view else (PROSE, WORTH_ASKING)
        return max(int(share * tokens), min(least, int(LARGEST_PROSE * tokens)))

    @model_validator(mode="after")
    def _whole(self) -> Budgets:
        if self.summary + self.recent + self.shortened > 1:
            shares = f"summary {self.summary:g}, recent {self.recent:g} and shortened {self.shortened:g}"
            raise ValueError(f"{shares} are shares of one whole: at most 1 together")
        return self


class BudgetsFields(TypedDict, total=False):
    """``Budgets`` as a mapping."""

    usage: float | None
    carried: float | None
    summary: float
    recent: float
    shortened: float
    prose: float | None


class PinsFields(TypedDict, total=False):
    """``Pins`` as a mapping."""

    ids: Names
    tools: Names
    plans: Names
    metadata: Mapping[str, Any]
    predicate: Callable[[Message], bool] | None


class Pins(_Settings):
    """Messages that stay word for word in every view. A pinned message keeps its whole group."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[PinsFields]) -> None: ...

    ids: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Names of tools whose calls and results stay."""
    # Of LangChain, deepagents and Gemini CLI, Claude Code, Codex, Cursor, OpenCode, Kimi CLI, VS Code, Roo Code.
    plans: frozenset[str] = frozenset(
        {"write_todos", "TodoWrite", "update_plan", "todo_write", "todowrite", "SetTodoList", "manage_todo_list"}
        | {"update_todo_list"}
    )
    """Names of tools by which an agent writes down its todo list or plan: the newest call stays, earlier ones go."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """Pinned if every key is in the message's metadata with this value."""
    predicate: Callable[[Message], bool] | None = None

    @field_validator("predicate")
    @classmethod
    def _answers_at_once(cls, value: Any) -> Any:
        if value is not None and is_async_function(value):
            raise ValueError(f"this function is async, and its coroutine would pin every message: {PLAIN}")
        return value

    @property
    def is_empty(self) -> bool:
        return not (self.ids or self.tools or self.metadata or self.predicate)

    def joined(self, more: Pins) -> Pins:
        """These pins and those: a message is pinned if either pins it by id, tool or predicate; metadata are those of
        ``more`` where it has some.
        """
        predicates = [one for one in (self.predicate, more.predicate) if one is not None]
        return Pins(
            ids=self.ids | more.ids,
            tools=self.tools | more.tools,
            plans=more.plans if "plans" in more.model_fields_set else self.plans,
            metadata=more.metadata or self.metadata,
            predicate=(lambda message: any(one(message) for one in predicates)) if predicates else None,
        )


class ToolArgumentsFields(TypedDict, total=False):
    """``ToolArguments`` as a mapping."""

    enabled: bool
    limit: int
    tools: Names | None


class ToolArguments(_Settings):
    """Old tool-call arguments: strings longer than ``limit`` characters keep their head and a marker with the count."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ToolArgumentsFields]) -> None: ...

    enabled: bool = True
    limit: Annotated[int, Field(ge=20)] = 200
    tools: frozenset[str] | None = None
    """Only these tools; None: all."""


class ToolOutputsFields(TypedDict, total=False):
    """``ToolOutputs`` as a mapping."""

    enabled: bool
    limit: int
    exclude: Names


class ToolOutputs(_Settings):
    """Old tool outputs are compressed by kind to about ``limit`` tokens."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ToolOutputsFields]) -> None: ...

    enabled: bool = True
    limit: Annotated[int, Field(ge=50)] = 200
    exclude: frozenset[str] = frozenset()
    """Names of tools whose outputs stay as they are."""


class ToggleFields(TypedDict, total=False):
    """``Toggle`` as a mapping."""

    enabled: bool


class Toggle(_Settings):
    """A tier without settings of its own."""

    enabled: bool = True


class RecallFields(TypedDict, total=False):
    """``Recall`` as a mapping."""

    enabled: bool
    budget: float
    threshold: float
    tools: bool


class Recall(_Settings):
    """Recall by itself: when a turn begins and something has left the view, what the newest message asks about is
    looked up there and quoted behind it, word for word. Costs no model call.
    """

    # Off: in replays of agents it found half a point more of what was needed, within noise. It is for dialogues, where
    # the answers found rise from 20 to 74 %.
    enabled: bool = False
    budget: Share = 0.03
    """Share of the window that one block may take."""
    # In dialogues 0.4 and 0.3 find 75 and 77 % of the answers instead of 73, for 141 and 183 tokens instead of 107.
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of what was asked, weighed by how rare each word is, that a message must have to be quoted."""
    # Behind results of tools it found less (87.8 instead of 88.7 % of the needs), and took 320 ms for each call.
    tools: bool = False
    """Also behind results of tools, not only when a person has written."""

    @model_validator(mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value:
            return {"enabled": True, **value}  # who sets its budget wants it
        return {"enabled": value} if isinstance(value, bool) else {"enabled": False} if value is None else value


class OversizedFields(TypedDict, total=False):
    """``Oversized`` as a mapping."""

    enabled: bool
    minimum: int


class Oversized(_Settings):
    """Items inside the kept tail are clipped to no less than ``minimum`` tokens, when nothing else makes it fit."""

    enabled: bool = True
    minimum: Annotated[int, Field(ge=50)] = 200


class PolicyFields(TypedDict, total=False):
    """The keywords of ``Policy``, for functions that hand them on: ``**fields: Unpack[PolicyFields]``."""

    enabled: bool
    trigger: TriggerInput
    target: SizeInput | None
    keep: SizeInput | None
    background: bool | float
    answer_reserve: int
    budgets: Budgets | BudgetsFields
    first_user: bool
    recent_users: float
    pins: Pins | PinsFields
    tool_arguments: ToolArguments | ToolArgumentsFields
    tool_outputs: ToolOutputs | ToolOutputsFields
    media: Toggle | ToggleFields
    reasoning: Toggle | ToggleFields
    oversized: Oversized | OversizedFields
    recall: Recall | RecallFields | bool | None
    minimum_gain: float
    evidence: bool
    summary: SummaryOptions | SummaryFields
    bound_thinking: bool
    redact: bool
    summary_role: SummaryRole
    summary_place: SummaryPlace
    on_failure: OnFailure
    fallback: Literal["extractive"] | None
    resend_after_overflow: bool
    on_overflow: OnOverflow
    alternate: bool | None


class Policy(_Settings):
    """Every knob of a compaction. Immutable; a wrong value raises ``PolicyError`` naming field, value and remedy."""

    enabled: Annotated[bool, Field(strict=True)] = True
    """False: nothing is compacted by itself, on no face. Triggers and thresholds of sessions do not fire, and a request
    that is refused is not compacted and sent again. What is asked for by name (``force``, ``session.compact``) is done.
    """
    trigger: TriggerField = (Clause((Size("fraction", 0.8),)),)
    """Not given: ``start_of`` the window, 0.8 of small ones and down to 0.6 of large ones, later where system prompt
    and tools take much of it or a ``target`` lies just below that, 0.8 where it is not below, and a pass may wait a
    call for large results to be read. What is given is obeyed to the letter."""
    target: SizeField | None = None
    """Where a pass must end. None: ``budgets.usage`` of the window, below the trigger, and above the floor."""
    keep: SizeField | None = None
    """The verbatim tail. None: ``budgets.recent``."""
    background: SwitchField = False
    """Prepare a pass beside the conversation from this share of the trigger on (True: 0.8), so that no request waits
    for a summary. It comes into force when the trigger is reached, if what it covers is unchanged. Until it is ready
    the view may grow past the trigger, up to 0.92 of the window."""
    answer_reserve: Annotated[int, Field(ge=0)] = 0
    """Tokens of the window that belong to the model's answer."""
    budgets: Budgets = Budgets()
    first_user: bool = True
    """Keep the first message that a person wrote, word for word."""
    # On 22 public conversations at 16,000 tokens 55 % of users' messages stay instead of 51 with a fifth, at .250
    # instead of .247 of what no compaction costs; with 3 % it was 23 %, at .236.
    recent_users: Share = 0.25
    """User messages older than the tail stay word for word up to this share of the window: the newest, then what is
    worth most for its length, rules, corrections and answers first. A long paste stays with a visible cut. What agents
    are told seldom takes that much; in a dialogue it is a third of the view."""
    pins: Pins = Pins()
    tool_arguments: ToolArguments = ToolArguments()
    tool_outputs: ToolOutputs = ToolOutputs()
    media: Toggle = Toggle()
    reasoning: Toggle = Toggle()
    oversized: Oversized = Oversized()
    recall: Recall = Recall()
    """What was evicted and is asked about comes back by itself: ``True``, ``False``, or its settings."""
    minimum_gain: Share = 0.05
    """A pass that would free less than this share of the window is not worth its rewrite, while the view fits."""
    evidence: bool = True
    summary: SummaryOptions = SummaryOptions()
    bound_thinking: bool = True
    """Whether signed thinking is bound to what stands before it, as from Claude Fable 5.1 and the 5.5 models on. A pass
    then leaves out all that was made under an earlier view. False: for older models, which want the thinking of a turn
    back while its calls are answered."""
    redact: bool = False
    """Take secrets (``contextfold.redaction`` has their kinds) out of what a summarizer is sent, of the summary and its
    evidence, of what is recalled, and of what an archive gets. Messages that stay in the view are never changed."""
    summary_role: SummaryRole = "user"
    summary_place: SummaryPlace = "after_first_user"
    """Behind the first user message and, where roles need not alternate, behind what else users said that stays: what
    stands before the summary is read from the cache after a pass."""
    on_failure: OnFailure = "keep"
    """When the summary fails: go on with the old view as long as it fits the window, or raise what was raised."""
    fallback: Literal["extractive"] | None = "extractive"
    """With ``on_failure="keep"``, when the old view does not fit: the built-in summarizer, or ``SummaryFailed``."""
    resend_after_overflow: bool = True
    """Whether a request that the provider refuses is mended and sent again; else its error is raised as it is."""
    on_overflow: OnOverflow = "raise"
    """When a provider refuses even the compacted view for its size (``Compactor.call``): raise ``StillTooLong``, or
    drop the older half of what may leave the view, step by step, until it is taken."""
    alternate: bool | None = None
    """Join neighbors of one role that compaction brought together. None: where the format wants it."""

    def __init__(self, **fields: Unpack[PolicyFields]) -> None:
        given: dict[str, Any] = {**fields}
        if given.get("enabled") is False:  # off means off: no other setting can switch a part of it on again
            given |= {"trigger": None, "resend_after_overflow": False}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _policy_error(error) from None
        except Exception as error:
            # An object of the caller that raises when it is read: pydantic hands on what is no ValueError.
            raise PolicyError(f"a setting cannot be read: {reason(error)}") from error

    @field_validator("keep", "target")
    @classmethod
    def _target_in_tokens(cls, value: Size | None, info: Any) -> Size | None:
        if value is not None and info.field_name == "target" and value.unit == "messages":
            raise ValueError("a target is a size in tokens or a fraction of the window, not a number of messages")
        return value

    @property
    def soft_share(self) -> float | None:
        """The share of the trigger from which on a pass is prepared in the background; None for never."""
        if self.background is False or not self.enabled:
            return None
        return SOFT if self.background is True else self.background

    @property
    def has_own_trigger(self) -> bool:
        """Whether the caller said when to compact. Then that is obeyed to the letter; the default may be put off."""
        return "trigger" in self.model_fields_set

    @property
    def compresses_outputs(self) -> bool:
        """Whether the caller asked for old tool outputs to be compressed: then each pass does it, not only one that has
        to, with any summarizer.
        """
        return self.tool_outputs.enabled and "tool_outputs" in self.model_fields_set

    def clauses(self, window: int, overhead: int = 0) -> tuple[Clause, ...]:
        """What starts a pass in a window of ``window`` tokens; any clause may. ``overhead``: as of ``start_of``."""
        if "trigger" in self.model_fields_set:
            return self.trigger
        left = (self.target.tokens(window) or 0) if self.target is not None else 0
        # The larger the window, the earlier: what is to be left may be more than where a pass starts by default.
        share = LATEST if left >= int(start_of(window) * window) else start_of(window, overhead, left)
        return (Clause((Size("fraction", share),)),)

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


LATEST, EARLIEST = 0.8, 0.6
"""Shares of the window between which the default trigger lies."""

CALL = 400
"""Tokens that one call of an agent adds to a history: a short step. Replays show 300 to 700."""

CARRYING, REWRITING = 0.1, 1.15
"""Prices in input tokens: of sending a token that the provider has cached, and of sending it uncached beyond that."""


BESIDE = 0.06
"""Share of the window that a pass leaves besides the summary message, where what stays is short."""


def start_of(window: int, overhead: int = 0, target: int = 0) -> float:
    """The share of ``window`` tokens at which a pass starts, where the caller did not say it.

    What came since the last pass is carried at every call. A pass pays when that has cost as much as sending what it
    leaves: with ``left`` tokens after a pass and ``CALL`` more at each call, at ``left + sqrt(2 * left * CALL *
    REWRITING / CARRYING)`` (the lot size of Harris, "How many parts to make at once", 1913). Small windows
    end before that; then it is as late as is safe. ``overhead``: tokens of the system prompt and the tools, which no
    pass rewrites: ``left`` comes on top of them. Where they take half of a small window, passes that do not start later
    for them follow each other every few turns; so they would where a ``target`` of the caller's, all of which a pass
    may leave, lies just below.
    """
    left = (Budgets().carried_of(window) + BESIDE) * window
    best = max(_paying(left) + overhead, _paying(target))
    return round(min(LATEST, max(EARLIEST, best / window)), 2)


def _paying(left: float) -> float:
    """The size at which a pass pays that leaves so much."""
    return left + math.sqrt(2 * left * CALL * REWRITING / CARRYING)


def _policy_error(error: ValidationError) -> PolicyError:
    """A pydantic error as one line a person can act on: each field, its value and what is allowed."""
    problems = [(tuple(problem["loc"]), _explained(problem)) for problem in error.errors()]
    lines = [f"{'.'.join(map(str, key))}: {text}" if key else text for key, text in problems]
    return PolicyError("; ".join(lines), problems)


def _fields_beside(place: tuple[int | str, ...]) -> list[str]:
    """The settings that exist where an unknown one was given: of ``Policy``, or of the section that it stands in."""
    section: type[BaseModel] = Policy
    for name in place[:-1]:
        annotation = section.model_fields[str(name)].annotation if str(name) in section.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            break
        section = annotation
    return list(section.model_fields)


def _explained(problem: ErrorDetails) -> str:
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"there is no such setting; there are: {', '.join(_fields_beside(problem['loc']))}"
    return text if problem["type"] == "value_error" else f"{text} (got {shown(problem['input'])})"
