"""Haystack: a ``Compactor`` for its ``CompactionHook``, with ours inside.

    from haystack.hooks.compaction import CompactionHook
    from contextfold.integrations.haystack import ContextfoldCompactor

    hook = CompactionHook(compactor=ContextfoldCompactor(), context_window=128_000)
    agent = Agent(chat_generator=..., tools=[...], hooks={"before_llm": [hook]})

Their hook decides when, and how small the list is to be; what it gets takes the place of the agent's messages. So a
later call gets a list with an earlier summary in it, which is updated. As long as this process lasts the originals
behind it are known, and evidence is chosen from them.

What belongs here: their protocol around ``Compactor.compact``. What does not: what a ``ChatMessage`` says
(``formats.haystack``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

try:
    from haystack.components.generators.chat import MockChatGenerator
    from haystack.core.serialization import component_to_dict, default_from_dict, default_to_dict
    from haystack.dataclasses import ChatMessage
    from haystack.utils import deserialize_callable, serialize_callable
    from haystack.utils.deserialization import deserialize_component_inplace
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.haystack needs Haystack: pip install 'contextfold[haystack]'"
    ) from error

from contextfold import formats
from contextfold.compactor import CompactionResult, Compactor, CompactorWiring
from contextfold.errors import CannotFit, PolicyError, SummaryFailed, held, shown, whole_number
from contextfold.integrations.given import listed, reading, sending_nothing
from contextfold.integrations.known_lists import KnownLists
from contextfold.integrations.rewritten import Originals
from contextfold.observe import logger, scrub
from contextfold.policy import Policy, PolicyFields, Size, SizeInput, parse_trigger
from contextfold.ports import AsyncPorts, Ports, SyncPorts, run
from contextfold.record.compaction import Compaction
from contextfold.summary.summarizer import Answer
from contextfold.tokens import Calibration

__all__ = ["ContextfoldCompactor"]

FORMAT = "haystack"
MARK = "context_compaction"
"""The key of a message's meta data by which their compactors know what one of them has written."""
WINDOW = 2.5
"""Times the target: the hook's own defaults, which begin at 0.7 of a window and end at 0.4."""
ROOM = 1.15
"""Times what must stay: where the target cannot be reached, this much is aimed at, which leaves room for a summary."""
AGAIN = 0.6
"""Times the target: what is aimed at where the client gives its whole list at each turn, as from its own database. The
hook is above its threshold each time then, and of a view that just meets the target, the next message would be another
summary's price."""


class ContextfoldCompactor:
    """What ``CompactionHook(compactor=...)`` takes. One instance serves any number of agents and conversations.

    Args:
        window: input tokens of the receiving model, the hook's ``context_window``. Above it the built-in
            summary replaces one that fails, if the policy allows it. None: 2.5 times the target.
        summarizer: None for the built-in one that asks no model; a name such as ``"openai:gpt-5-mini"``, a callable, or
            a chat generator of Haystack.
        keep: how much of the newest messages stays word for word, as for ``Policy``.
        policy: every knob, in place of ``keep``. Its trigger and target are the hook's business.
        instructions: for the summarizer, in every compaction.
        settings: as for our ``Compactor``: ``count_text``, ``on_event`` and the rest.

    ``result`` is the ``CompactionResult`` of the last list that got smaller. Where no summary could be had, an event
    says so, the list stays as it is, and the next call tries again. Raises ``PolicyError`` when a setting is not
    allowed, ``TypeError`` for one that does not exist.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        summarizer: Any = None,
        keep: SizeInput | None = None,
        policy: Policy | None = None,
        instructions: str = "",
        **settings: Unpack[CompactorWiring],
    ) -> None:
        if policy is not None and keep is not None:
            raise PolicyError("give either policy or keep, not both: it is a field of the policy")
        for name in ("trigger", "target", "model"):
            if name in settings:
                raise TypeError(f"{name} is not taken here: CompactionHook says when to compact, and how small")
        if not isinstance(policy, Policy | None):
            raise PolicyError(f"policy must be a Policy, not {shown(policy)}")
        if not isinstance(instructions, str):
            raise PolicyError(f"instructions is {shown(instructions)}: it must be a text")
        if window is not None:
            Compactor(window=window)  # says what is wrong with it
        self.window = window
        self.summarizer = summarizer
        given: PolicyFields = {} if keep is None else {"keep": keep}
        self.policy = policy if policy is not None else Policy(**given)
        self.instructions = instructions
        self.settings = settings
        self.result: CompactionResult | None = None
        self._originals = Originals(formats.get(FORMAT))
        self._lists = KnownLists(formats.get(FORMAT))
        # A window that nothing exceeds: it is only asked for its estimate.
        self._looking = Compactor(window=1 << 40, policy=Policy(trigger=None), count_text=settings.get("count_text"))
        self._first: Compactor | None = None
        self._first = sending_nothing(self._compactor(1_000))  # says at once what is wrong

    # ---- their protocol ----

    def compact(self, messages: list[ChatMessage], target_tokens: int, token_counter: Any) -> list[ChatMessage] | None:
        """Shorter messages for the same conversation; None where they meet the target, or cannot be made shorter.

        ``target_tokens``: by ``token_counter``. Where what must stay takes more, as little above it as can be.
        """
        return run(self._compacted(messages, target_tokens, token_counter, Compactor.compact, SyncPorts()))

    async def compact_async(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: Any
    ) -> list[ChatMessage] | None:
        """``compact`` for async agents; it never blocks the event loop."""
        return await self._compacted(messages, target_tokens, token_counter, Compactor.acompact, AsyncPorts())

    def to_dict(self) -> dict[str, Any]:
        """For a stored agent or pipeline. Functions among the settings are stored by their names."""
        return default_to_dict(
            self,
            window=self.window,
            summarizer=_written(self.summarizer),
            policy=_policy_written(self.policy),
            instructions=self.instructions,
            **{name: _written(value) for name, value in self.settings.items()},
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ContextfoldCompactor:
        """What ``to_dict`` wrote."""
        with reading("the stored compactor"):
            given = dict(data.get("init_parameters", {}))
            given["policy"] = _policy_read(given.get("policy") or {})
            if isinstance(given.get("summarizer"), dict):
                deserialize_component_inplace(given, key="summarizer")
            # Instructions are words, with dots as well: never the name of a function.
            read = {name: value if name == "instructions" else _read(value) for name, value in given.items()}
        made: ContextfoldCompactor = default_from_dict(cls, {**data, "init_parameters": read})
        return made

    def warm_up(self) -> None:
        """Warm up the chat generator that writes summaries, if one does."""
        if hasattr(self.summarizer, "warm_up"):
            self.summarizer.warm_up()

    async def warm_up_async(self) -> None:
        """``warm_up`` for async agents."""
        if hasattr(self.summarizer, "warm_up_async"):
            await self.summarizer.warm_up_async()
        else:
            self.warm_up()

    def close(self) -> None:
        """Release what that chat generator holds."""
        if hasattr(self.summarizer, "close"):
            self.summarizer.close()

    async def close_async(self) -> None:
        """``close`` for async agents."""
        if hasattr(self.summarizer, "close_async"):
            await self.summarizer.close_async()
        else:
            self.close()

    # ---- one algorithm for both colors ----

    async def _compacted(
        self,
        messages: Sequence[ChatMessage],
        target: int,
        counter: Any,
        compact: Callable[..., Any],
        ports: Ports,
    ) -> list[ChatMessage] | None:
        whole_number("target_tokens", target, most=1 << 40)
        with reading("messages"):
            history, record = await ports.compute(self._originals.behind, listed("messages", messages))
            known = self._lists.of(history)
        is_whole = record is None and known.record is not None
        record = record or known.record  # one that was paid for, and is not in the list: it is whole, or the run failed
        before = await _counted(counter, messages, ports)
        if before <= target:  # the hook never asks then; whoever tries one compactor after another does
            return None
        calibration, beyond = await ports.compute(self._calibration, messages, before)

        async def made(target: int, *, force: bool) -> CompactionResult | None:
            options = {"format": FORMAT, "calibration": calibration, "instructions": self.instructions, "force": force}
            try:
                result: CompactionResult = await ports.call(
                    _bound(compact, self._compactor(target, beyond, compact)), history, record, options
                )
            except SummaryFailed as error:
                logger.warning("the messages stay as they are: %s", scrub(str(error)))
                return None
            return result

        # The record in force may do: no summary is paid for as long as the view under it meets the target.
        if record is not None and (result := await made(target, force=False)) is not None:
            size = await _counted(counter, result.messages, ports)
            if size <= target and size < before:
                return self._given(history, result)
        aim = max(1, int(AGAIN * target) if is_whole else target)
        while True:
            try:
                result = await made(aim, force=True)
                break
            except CannotFit as error:
                # A larger target keeps more, so what must stay may grow with it: it is asked again.
                aim = max(aim + 1, int(ROOM * error.needed * beyond))
                if aim >= before:
                    return None
        if result is None or result.compaction is None:
            return None
        self._lists.keep(replace(known, items=history, record=result.compaction))
        if await _counted(counter, result.messages, ports) >= before:
            return None
        return self._given(history, result)

    def _given(self, history: list[Any], result: CompactionResult) -> list[ChatMessage]:
        self.result = result
        self._originals.keep(history, result)
        return _marked(result.messages, history)

    def _calibration(self, messages: Sequence[ChatMessage], counted: int) -> tuple[Calibration, float]:
        """How far their counter is from the estimate, as for a provider's usage; and how far beyond what a provider's
        can be: one may count characters.
        """
        estimated = self._looking.compact(messages, format=FORMAT).estimated_tokens
        calibration = Calibration().learn(estimated, counted)
        return calibration, counted / (estimated * calibration.ratio) if calibration.observations else 1.0

    def _compactor(
        self, target: int, beyond: float = 1.0, compact: Callable[..., Any] = Compactor.compact
    ) -> Compactor:
        """A compactor for a target, which knows the conversations of all others. ``beyond``: their tokens for one of
        ours. ``compact``: what is called of it, and so how a chat generator is asked.
        """
        aim, room = max(1, int(target / beyond)), int((self.window or WINDOW * target) / beyond)
        update = {"trigger": parse_trigger(None), "target": Size("tokens", aim)}
        policy = self.policy.model_copy(update=update)
        window = max(room, aim + 1, 1_000)
        summarizer = _writing(self.summarizer, is_async=compact is Compactor.acompact)
        made = Compactor(window=window, policy=policy, summarizer=summarizer, **self.settings)
        return made if self._first is None else made._remembers_with(self._first)


def _marked(view: Sequence[ChatMessage], history: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The view with what compaction wrote marked as their compactors mark theirs.

    They look for the newest message of a user that has no mark, and keep it as the task; an output of a tool that has
    one is not shortened again. What a person said stays a person's when it is shortened.
    """
    given, metas = {id(message) for message in history}, {id(message.meta) for message in history}

    def is_ours(message: ChatMessage) -> bool:
        rebuilt = id(message.meta) in metas
        return id(message) not in given and (not rebuilt or bool(message.tool_call_results))

    mark = {MARK: {"strategy": "contextfold"}}
    return [replace(one, _meta={**one.meta, **mark}) if is_ours(one) else one for one in view]


async def _counted(counter: Any, messages: Sequence[Any], ports: Ports) -> int:
    """Tokens by their counter."""
    return whole_number("what the token counter returned", await ports.call(counter.count, list(messages)), 0, 1 << 40)


def _bound(compact: Callable[..., Any], compactor: Compactor) -> Callable[..., Any]:
    """``compact`` or ``acompact`` of a compactor, whose color the ports can see."""
    if compact is Compactor.compact:
        return lambda history, record, options: compactor.compact(history, record, **options)

    async def later(history: Any, record: Compaction | None, options: Any) -> CompactionResult:
        return await compactor.acompact(history, record, **options)

    return later


def _writing(summarizer: Any, *, is_async: bool) -> Any:
    """A chat generator of Haystack as a summarizer, asked as the agent asks its own; anything else as it is."""
    if held(summarizer, "run") is None or held(summarizer, "complete") is not None:
        return summarizer

    def answer(result: Any) -> Answer:
        reply = result["replies"][-1]
        # The framework's own double counts words: of JSON that is so little that the prompt would look cut off.
        usage = {} if isinstance(summarizer, MockChatGenerator) else reply.meta.get("usage") or {}
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return Answer(reply.text or "", reply.meta.get("finish_reason"), bool(reply.tool_calls), read, written)

    def write(prompt: str) -> Answer:
        return answer(summarizer.run(messages=[ChatMessage.from_user(prompt)]))

    async def write_async(prompt: str) -> Answer:
        return answer(await summarizer.run_async(messages=[ChatMessage.from_user(prompt)]))

    return write_async if is_async and held(summarizer, "run_async") is not None else write


def _policy_written(policy: Policy) -> dict[str, Any]:
    """The knobs that were set, as they are written in a file."""
    left_out: dict[str, Any] = {"trigger": True, "target": True, "pins": {"predicate"}}
    plain = policy.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    if policy.pins.predicate is not None:
        plain["pins"] = {**plain.get("pins", {}), "predicate": serialize_callable(policy.pins.predicate)}
    sizes = {name: value for name in plain if isinstance(value := getattr(policy, name), Size)}
    return {**plain, **{name: [size.unit, size.value] for name, size in sizes.items()}}


def _policy_read(plain: dict[str, Any]) -> Policy:
    """What ``_policy_written`` wrote."""
    pins = plain.get("pins")
    if isinstance(pins, dict) and isinstance(pins.get("predicate"), str):
        plain = {**plain, "pins": {**pins, "predicate": deserialize_callable(pins["predicate"])}}
    return Policy(**plain)


def _written(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return component_to_dict(value, name="summarizer")
    return serialize_callable(value) if callable(value) else value


def _read(value: Any) -> Any:
    """A setting from plain data: the name of a function has dots, that of a model a colon."""
    return deserialize_callable(value) if isinstance(value, str) and "." in value and ":" not in value else value
