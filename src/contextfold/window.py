"""How many tokens the receiving model takes, and who says so.

Belongs here: the order in which sources are asked, and what refusals taught about an endpoint. Does not: what of the
window is kept free for the answer (``policy``), and reading limits out of errors (``overflow``).

The order says what is assumed as long as nothing was refused. A refusal is no assumption: what an endpoint proved to be
smaller than assumed stays smaller in the calls that follow, whatever the assumption was based on. Otherwise the next
turn would be refused again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, Protocol, TypeVar

from contextfold.errors import PolicyError, held, plain_integer, reason, shown
from contextfold.limits import Limits
from contextfold.observe import Observer
from contextfold.policy import MOST_TOKENS, Clause, Policy, Size
from contextfold.ports import Ports
from contextfold.redaction import is_compiled, redact
from contextfold.tokens import Calibration

DEFAULT_WINDOW = 64_000
"""Tokens, for an unknown model. Seven in eight models of the registry take this or more, and an agent's
prompt and tools still leave room in it: too small costs some compactions, too large ends in refused requests."""

LARGE_MARK, LARGE_WINDOW = "[1m]", 1_000_000
"""How Claude Code names a model whose larger window is asked for, and its tokens. Registries have the usual one."""

LARGE_BETA = "context-1m-"
"""How the beta of Anthropic's is called, before its date, by which a request takes that many."""

LEAST_WINDOW = 256
"""Tokens. A smaller figure in an error is about something else."""

MOST_NAMES = 1_000
"""Models whose window is remembered: the clients of a gateway name what they like."""

MANY_TAKEN = 16
"""Requests that fill half of a guess, or more, until more than it is tried: some turns of a long conversation."""

CLOSE = 0.05
"""Share of a refused size. A guess as close below it is worth no other refusal."""

Source = Literal["explicit", "profile", "registry", "learned", "default"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Window:
    """The window in tokens, and where the figure comes from."""

    tokens: int
    source: Source
    most: int = 0
    """Largest size not yet refused, while ``tokens`` is a guess; else 0."""


@dataclass(frozen=True, slots=True)
class _Guess:
    """A window that follows from a refusal without a figure."""

    tokens: int
    refused: int
    """The fewest tokens that were."""
    taken: int = 0
    """Requests since then that filled half of it."""

    def after(self, tokens: int) -> _Guess:
        """The guess once a request of this size was taken."""
        if tokens > self.tokens:
            return replace(self, tokens=tokens)
        if 2 * tokens < self.tokens or self.refused - self.tokens <= CLOSE * self.refused:
            return self
        if self.taken + 1 < MANY_TAKEN:
            return replace(self, taken=self.taken + 1)
        return _Guess((self.tokens + self.refused) // 2, self.refused)


@dataclass(frozen=True, slots=True)
class PromptAndAnswer:
    """What prompt and answer may have together at one endpoint, for one model, as a refusal has said."""

    limit: int
    rate: float
    """The provider's tokens for one of the estimate, the fewest that were seen: for conversations of which it has
    counted nothing yet. One that needs more is refused once; one that needs less would have its answer cut short."""
    usual: int | None = None
    """The answer limit of requests that name none, where a refusal said so."""


class WindowStore(Protocol):
    """Keeps what refusals taught beyond the life of a process. Methods may be sync or async.

    ``endpoint`` is the base URL that requests go to, ``model`` the name they carry; either may be empty.
    """

    def load_window(self, endpoint: str, model: str) -> Any:
        """The window in tokens, or None."""
        ...

    def save_window(self, endpoint: str, model: str, tokens: int) -> Any:
        """Remember it in place of an earlier one."""
        ...


class Windows:
    """The windows of the models that one ``Compactor`` talks to.

    ``explicit``, ``model`` and ``profile`` are as for ``resolve``; the model is used where a call names none.
    """

    def __init__(
        self,
        explicit: int | None = None,
        model: str | None = None,
        profile: int | None = None,
        store: WindowStore | None = None,
    ) -> None:
        self.model = model
        self._explicit = explicit
        self._profile = profile
        self._store = store
        self._assumed: dict[str | None, Window] = {}
        # What providers named, and None where the store had nothing; what was guessed.
        self._proved: dict[tuple[str, str], int | None] = {}
        self._guesses: dict[tuple[str, str], _Guess] = {}
        self._accepted: dict[tuple[str, str], int] = {}
        self._together: dict[tuple[str, str], PromptAndAnswer] = {}
        self._counted: dict[tuple[str, str], Calibration] = {}
        self._refused: dict[tuple[str, str], bool] = {}
        """Where a view was refused for its size."""
        self._distrusted: dict[tuple[str, str], bool] = {}
        self._told: set[str] = set()
        """Models of which it was said that their window is not known."""

    def kept_in(self, store: WindowStore) -> Windows:
        """The same windows, with what refusals teach kept in a store as well; these very ones if they have a store."""
        if self._store is not None:
            return self
        kept = copy(self)
        kept._store = store
        # What was looked up and not found is forgotten: this store may have it.
        kept._proved = {key: tokens for key, tokens in self._proved.items() if tokens is not None}
        kept._guesses = dict(self._guesses)
        return kept

    def assumed(self, model: str | None = None) -> Window:
        """What is taken for the window as long as nothing was refused. Raises ``PolicyError`` as ``resolve`` does."""
        model = model or self.model
        if model not in self._assumed:
            if len(self._assumed) >= MOST_NAMES:
                self._assumed.clear()
                self._told.clear()
            # the profile is of the model object that it came with, and of no other
            profile = self._profile if model == self.model else None
            self._assumed[model] = resolve(self._explicit, model, profile=profile)
        return self._assumed[model]

    async def find(self, endpoint: str, model: str | None, ports: Ports, observer: Observer) -> Window:
        """The window for a call, and an event that says whose figure it is."""
        assumed = self.assumed(model)
        key = self._key(endpoint, model)
        await self._recall(key, ports, observer)
        proved = self.learned(endpoint, model)
        found = assumed
        # A default is no knowledge: what was learned counts even where it is larger.
        if proved is not None and (proved < assumed.tokens or assumed.source == "default"):
            guess = self._guesses.get(key)
            # `most` is 0 where the provider named the limit: then it is no guess.
            found = Window(proved, "learned", guess.refused - 1 if guess and guess.tokens == proved else 0)
        name = model or self.model or "the model"
        if found.source == "default" and name not in self._told and (model or self.model):
            self._told.add(name)
            _log.warning(
                "the window of %s is not known: %d tokens are assumed until a refusal tells more. "
                "Give its window, in tokens, where contextfold is set up (window=)",
                shown(name),
                found.tokens,
            )
        figures = {"tokens": found.tokens, "source": found.source, "assumed": assumed.tokens}
        data = {"model": model or self.model, "endpoint": endpoint, **figures, "assumed_source": assumed.source}
        if not is_compiled():  # this is the first event of a call, and an event loop is not to wait for patterns
            await ports.compute(redact, "")
        observer.emit_once("window_resolved", f"{name} takes {found.tokens:,} tokens ({found.source})", **data)
        return found

    def say_nothing_of(self, model: str) -> None:
        """No model stands behind this name, so that no one can give its window."""
        self._told.add(model)

    async def learn(
        self, endpoint: str, model: str | None, tokens: int, ports: Ports, observer: Observer, *, refused: int | None
    ) -> None:
        """A refusal taught that the window is ``tokens``.

        ``refused``: the tokens that were refused, where the provider named no limit and ``tokens`` is a guess. Only
        what a provider said is stored. A figure that is no window, or above what is assumed already, teaches nothing,
        unless less was learned before: what the provider said last holds. Nor does a guess about less than was taken
        before: it was refused for something else than its tokens.
        """
        key, stated = self._key(endpoint, model), refused is None
        known, assumed = self.learned(endpoint, model), self.assumed(model)
        if tokens < LEAST_WINDOW or (tokens == known and not (stated and key in self._guesses)):
            return
        if tokens >= assumed.tokens and assumed.source != "default":
            if not stated or known is None or known >= assumed.tokens:
                return
            # The provider names more than it did before: the earlier figure was about something else.
            tokens = assumed.tokens
        if not stated and known is not None and tokens > known and key not in self._guesses:
            return  # what the provider said stands against a guess
        if refused is not None and self._accepted.get(key, 0) > refused:
            return
        if refused is None:
            _remember(self._proved, key, tokens)
            self._guesses.pop(key, None)
        else:
            before = self._guesses.get(key)
            _remember(self._guesses, key, _Guess(tokens, min(refused, before.refused) if before else refused))
        observer.emit(
            "window_learned",
            f"{model or self.model or 'the model'} takes {tokens:,} tokens, not {known or assumed.tokens:,}",
            model=model or self.model,
            endpoint=endpoint,
            tokens=tokens,
            stated=stated,
            assumed=assumed.tokens,
            assumed_source=assumed.source,
        )
        if stated and self._store is not None:
            await self._ask_store(self._store.save_window, (*key, tokens), ports, observer)

    def adopt(self, endpoint: str, model: str, tokens: int) -> None:
        """Another process learned a window from a refusal: it counts here too, unless a smaller one is known."""
        known = self._proved.get((endpoint, model))
        if tokens >= LEAST_WINDOW and (known is None or tokens < known):
            _remember(self._proved, (endpoint, model), tokens)

    def accept(self, endpoint: str, model: str | None, tokens: int) -> None:
        """A request of this size was taken: a guess never goes below it, nor stays there.

        What was refused is no more than it weighs by the estimate, and that can be off by half for words of another
        kind. So a guess holds only as long as nothing larger was taken than what it followed from. And as nothing
        larger than the guess is sent as long as it holds, it rises by itself, by half of what is between the two each
        time, where conversations would make use of more: that costs a refusal now and then, and half of the window
        would be lost for good.
        """
        key = self._key(endpoint, model)
        _remember(self._accepted, key, max(tokens, self._accepted.get(key, 0)))
        if (guess := self._guesses.get(key)) is None:
            return
        if tokens > guess.refused:
            self._guesses.pop(key, None)
        else:
            self._guesses[key] = guess.after(tokens)

    def learned(self, endpoint: str, model: str | None) -> int | None:
        """What refusals taught of an endpoint so far, in tokens; None where there is nothing."""
        key = self._key(endpoint, model)
        named, guess = self._proved.get(key), self._guesses.get(key)
        if guess is None:
            return named
        return guess.tokens if named is None else min(named, guess.tokens)

    def accepted(self, endpoint: str, model: str | None) -> int:
        """The largest request that was taken, in tokens; 0 before the first."""
        return self._accepted.get(self._key(endpoint, model), 0)

    def learn_together(
        self, endpoint: str, model: str | None, limit: int, *, rate: float, usual: int | None = None
    ) -> None:
        """A prompt that fits was refused for the answer that was asked for beside it; see ``PromptAndAnswer``."""
        key = self._key(endpoint, model)
        known = self._together.get(key) or PromptAndAnswer(limit, rate)
        _remember(self._together, key, PromptAndAnswer(limit, min(rate, known.rate), usual or known.usual))

    def together(self, endpoint: str, model: str | None) -> PromptAndAnswer | None:
        """What prompt and answer may have together; None as long as nothing was refused for it."""
        return self._together.get(self._key(endpoint, model))

    def learn_counted(
        self, endpoint: str, model: str | None, estimated: int, reported: int | None, *, is_refusal: bool = False
    ) -> None:
        """What a provider counted of a view that was ``estimated``, by its usage or in a refusal."""
        key = self._key(endpoint, model)
        if is_refusal:
            _remember(self._refused, key, True)
        known = self._counted.get(key, Calibration())
        if (learned := known.learn(estimated, reported)) is not known:
            _remember(self._counted, key, learned)

    def counted(self, endpoint: str, model: str | None) -> Calibration | None:
        """How far the provider's count was from the estimate lately, in all conversations; None as long as nothing was
        refused. For those that hand on no calibration, or whose answers tell no usage: each view would grow until it is
        refused, as the first one was."""
        key = self._key(endpoint, model)
        return self._counted.get(key) if key in self._refused else None

    def rate(self, endpoint: str, model: str | None) -> float:
        """The provider's tokens for one of the estimate lately, whether or not anything was refused."""
        return self._counted.get(self._key(endpoint, model), Calibration()).ratio

    def distrust(self, endpoint: str, model: str | None) -> None:
        """The input tokens that this endpoint reports do not count what is sent to it."""
        _remember(self._distrusted, self._key(endpoint, model), True)

    def trusts(self, endpoint: str, model: str | None) -> bool:
        """Whether its input tokens may be compared with what was sent."""
        return self._key(endpoint, model) not in self._distrusted

    def _key(self, endpoint: str, model: str | None) -> tuple[str, str]:
        return endpoint, model or self.model or ""

    async def _recall(self, key: tuple[str, str], ports: Ports, observer: Observer) -> None:
        if key not in self._proved:
            stored = None
            if self._store is not None:
                stored = await self._ask_store(self._store.load_window, key, ports, observer)
            usable = isinstance(stored, int) and stored >= LEAST_WINDOW
            _remember(self._proved, key, stored if usable else None)

    async def _ask_store(self, ask: Any, arguments: tuple[Any, ...], ports: Ports, observer: Observer) -> Any:
        """A store that is out of order costs at most one refused request, so it never ends a call."""
        try:
            return await ports.call(ask, *arguments)
        except Exception as error:  # noqa: BLE001 - user code: any failure of it is the same to us
            observer.emit("window_store_failed", reason(error), error=type(error).__name__)
            return None


def _remember(known: dict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    """Of more models than ``MOST_NAMES`` all are forgotten, and each is learned again by what it answers."""
    if len(known) >= MOST_NAMES and key not in known:
        known.clear()
    known[key] = value


def name_and_profile(model: Any) -> tuple[str | None, int | None]:
    """The name of a model, and the input tokens that it says it takes.

    ``model`` is a name, a chat model object with a ``profile`` (LangChain's say ``max_input_tokens``), or None.
    """
    if model is None or isinstance(model, str):
        return (None if model is None else str.__str__(model)), None
    if isinstance(model, int | float | bytes | list | tuple | dict | set):
        raise PolicyError(f"model is {shown(model)}: it must be a name such as 'openai:gpt-5', or a model object")
    profile = held(model, "profile")
    tokens = plain_integer(profile.get("max_input_tokens")) if isinstance(profile, dict) else None
    named = (held(model, attribute) for attribute in ("model_name", "model", "model_id"))
    name = next((name for name in named if isinstance(name, str) and name), None)
    return name, tokens if tokens is not None and tokens < MOST_TOKENS else None


def resolve(window: int | None, model: str | None, *, profile: int | None = None) -> Window:
    """The window of the receiving model, in tokens, from the first source that has one.

    In this order: ``window`` as the caller gave it; ``profile``, what the model object says of itself; the registry,
    for the name ``model`` ("openai:gpt-5", "anthropic/claude-sonnet-4-5", "gpt-4o"); ``DEFAULT_WINDOW``. An unknown
    model is no error. Raises ``PolicyError`` for a ``window`` that is not a positive whole number.
    """
    found = _first(window, model, profile)
    _log.info("window of %s: %d tokens (%s)", model or "the model", found.tokens, found.source)
    return found


def _first(window: int | None, model: str | None, profile: int | None) -> Window:
    if window is not None:
        return Window(_explicit(window), "explicit")
    if profile is not None and profile > 0:
        return Window(profile, "profile")
    if model and (known := registered(model)):
        return Window(known, "registry")
    return Window(DEFAULT_WINDOW, "default")


def _explicit(window: int) -> int:
    tokens = plain_integer(window)
    if tokens is None or not 0 < tokens < MOST_TOKENS:
        wanted = "a positive whole number of tokens, or None to look it up"
        raise PolicyError(f"window is {shown(window)}; it must be {wanted}")
    return tokens


def by_window(model: str, betas: str) -> str:
    """A model's name as its window is known by: a request may ask for the larger one that some of Claude's have, and
    what is refused beside such a request says nothing about the others. ``betas``: what it asks for.
    """
    return model + LARGE_MARK if model and LARGE_BETA in betas and not model.endswith(LARGE_MARK) else model


def registered(model: str) -> int | None:
    """The context window of a model as genai-prices knows it, in tokens, or None. Uses no network."""
    if model.endswith(LARGE_MARK):
        return max(LARGE_WINDOW, registered(model.removesuffix(LARGE_MARK)) or 0)
    if sized := _SIZED.search(model):
        return int(sized[1]) * 1_000
    for provider, name in chain.from_iterable(map(_readings, _written(model))):
        if (found := _entry(provider, name)) is None:
            continue
        known: int | None = found.model.context_window
        # OpenRouter lists windows that the makers' own entries leave out, such as those of Gemini's largest.
        if not known and (listed := _entry("openrouter", f"{found.provider.id}/{found.model.id}")) is not None:
            known = listed.model.context_window
        if known:
            return known
    return None


def _entry(provider: str | None, name: str) -> Any:
    """What the registry has of a model; None where it knows none by this name."""
    from genai_prices import Usage, calc_price  # 1.6 MB of tables: only when a model is to be looked up

    try:
        return calc_price(Usage(), name, provider_id=provider)
    except LookupError:
        return None


def _readings(model: str) -> Iterator[tuple[str | None, str]]:
    """What a model string may mean, as (provider, name): the likeliest first."""
    provider, mark, name = re.match(r"([^:/]*)([:/]?)(.*)", model.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if mark and name:
        # LangChain writes "google_genai", the registry "google"
        yield from ((provider, name), (provider.split("_")[0], name))
    yield None, model.strip()
    if mark and name:
        yield None, name
        yield "openrouter", f"{provider.split('_')[0]}/{name}"
    # boto3 and Strands give Bedrock's ids bare: what stands before their colon is no provider.
    yield "aws", model.strip()
    if "/" in name:
        yield None, name.rpartition("/")[2]  # Vertex: "projects/.../models/gemini-2.5-flash"


def _written(model: str) -> Iterator[str]:
    """A model's name, and what stays of it without what says how it is reached or served."""
    model = _TUNED.sub(r"\1\2", model)
    yield model
    if (usual := _VARIANT.sub("", model)) != model:
        yield usual
    gateway, _, name = model.partition("/")
    if ":" in name and ":" not in gateway:
        yield name  # pydantic-ai: "gateway/openai:gpt-5"


_TUNED = re.compile(r"(^|[:/])ft:([^:]+):.*$", re.DOTALL)
"""How OpenAI names a model that was tuned, behind what names the provider: ``ft:BASE:ORGANIZATION:NAME:ID``."""

_SIZED = re.compile(r":\d{1,3}:([1-9]\d{0,3})k\s{0,8}\Z")
"""How Bedrock's ids for provisioned throughput end: ``anthropic.claude-3-haiku-20240307-v1:0:48k``."""

_VARIANT = re.compile(r":(?:free|nitro|floor|exacto|online|extended|thinking|beta)\s*$")
"""What OpenRouter takes behind a model's name, for another way of serving the same model."""


# ---- a policy in a window ----

REACHABLE = 0.8
"""Share of a learned window where compaction starts, if the policy's own trigger is above it: the default trigger's."""


def bounds(policy: Policy, window: Window, assumed: Window) -> tuple[Policy, Limits]:
    """A policy within a window, and its limits in tokens.

    Where the window is smaller than the ``assumed`` one that the policy was made for, all that exceeds it comes down
    with it. Raises ``PolicyError`` when the policy does not fit the window that was assumed.
    """
    policy = _reachable(policy, window)
    if window.tokens >= assumed.tokens:
        return policy, Limits.of(policy, window.tokens)
    usable = max(1, window.tokens - policy.answer_reserve)
    shrunk = Limits.of(policy, assumed.tokens).shrunk(usable)
    return policy, replace(shrunk, minimum_gain=int(policy.minimum_gain * usable))


def _reachable(policy: Policy, window: Window) -> Policy:
    """The policy, with a trigger that can be reached where a refusal proved the window smaller than the caller knew."""
    if window.source != "learned":
        return policy
    usable = window.tokens - policy.answer_reserve
    sizes = [tokens for clause in policy.trigger for size in clause.sizes if (tokens := size.tokens(usable))]
    # A trigger by messages alone, or none, stays as it is: off means off.
    if not sizes or min(sizes) <= usable:
        return policy
    reached = Clause((Size("tokens", max(1, int(REACHABLE * usable))),))
    # Added, not put in its place: the clauses by messages that the caller gave still fire.
    return policy.model_copy(update={"trigger": (*policy.trigger, reached)})
