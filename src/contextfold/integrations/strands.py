"""Strands Agents: a conversation manager that sends views and keeps the whole conversation.

    from contextfold.integrations.strands import CompactionManager

    agent = Agent(model=model, tools=tools, conversation_manager=CompactionManager(window=200_000))

Before each call of the model the agent's messages become the view: what is new, behind the summary of what left. The
manager holds all messages (``history``) and the record, so that there is one summary, made from the originals. A
session stores every message itself; the manager's state is the record alone, and after a restore the view is made
again from both.

What belongs here: when Strands asks, and which of its messages are which of ours. What does not: any decision
(``Compactor``).
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Unpack

from contextfold import formats
from contextfold.calls.request import check_state
from contextfold.calls.usage import read_usage
from contextfold.compactor import CompactionResult, Compactor, CompactorSettings
from contextfold.conversation import pins
from contextfold.errors import ContextfoldError, ContextOverflow, PolicyError, held, text_of
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.given import listed, reading, sending_nothing, stored_record
from contextfold.integrations.known_lists import has_all, is_same_list
from contextfold.integrations.rewritten import Originals
from contextfold.integrations.wrapping import betas_in
from contextfold.observe import logger, scrub
from contextfold.overflow import classify
from contextfold.passes.question import Proposal
from contextfold.policy import Pins
from contextfold.ports import AsyncPorts
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration
from contextfold.window import LARGE_MARK, LARGE_WINDOW, LEAST_WINDOW, by_window

try:
    from strands._async import is_run_async_bridge
    from strands.agent.conversation_manager import (
        ConversationManager,
        NullConversationManager,
        SlidingWindowConversationManager,
        SummarizingConversationManager,
    )
    from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, HookOrder, HookRegistry
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.strands needs strands-agents, which is not installed: "
        "pip install 'contextfold[strands]'"
    ) from error

if TYPE_CHECKING:
    from strands import Agent
    from strands.types.content import Message, Messages

__all__ = ["CompactionManager"]

FORMAT = "bedrock-converse"
"""Strands speaks it with every model."""

MOST_REFUSALS = 8
"""Overflows in a row, without an answer between them, after which the error is the caller's: a model that refuses
whatever is sent would be asked without end."""


class CompactionManager(ConversationManager):
    """For ``Agent(conversation_manager=...)``; one for each agent.

    Args:
        compactor: the engine, which may serve any number of managers; or give its settings instead:
        settings: of ``Compactor``, such as ``window``, ``trigger``, ``target``, ``summarizer``, ``policy``. Without a
            window, the agent's model is asked for its ``context_window_limit``, else the registry by its name.
        previous: the record of this conversation, where it is stored elsewhere than in a session of Strands.

    ``removed_message_count`` is how many of the conversation's messages the view does not hold in any form. After a
    restore from a session it is zero until the first call of the model, because the agent has all messages then.

    Raises ``PolicyError`` for settings that are not allowed, and for ``summarizer="same"``: Strands hands a manager no
    way to ask the model as it asks it itself.
    """

    def __init__(
        self,
        compactor: Compactor | None = None,
        *,
        previous: Compaction | None = None,
        **settings: Unpack[CompactorSettings],
    ) -> None:
        super().__init__()
        if compactor is not None and settings:
            raise PolicyError(f"give either a compactor or {', '.join(settings)}: they are settings of a compactor")
        self.compactor = sending_nothing(Compactor(**settings) if compactor is None else compactor)
        is_given = compactor is not None or settings.get("window") is not None or settings.get("model") is not None
        self._settings = None if is_given else settings
        """Of a compactor for what the model says that it takes; None where the caller said it."""
        self._by_window: Bounded[Compactor] = Bounded(16)
        check_state(previous, None)
        self.compaction = previous
        """The record in force."""
        self.calibration: Calibration | None = None
        self.result: CompactionResult | None = None
        """Of the last call, with its ledger and events."""
        self._history: list[Any] = []
        self._view: list[Any] = []
        self._shown: list[Any] = []
        """The contents of the view's messages, as they were put there."""
        self._sends_all = True
        """The whole view is in the request that is being answered: hooks behind ours took nothing out."""
        self._refusals = 0
        self._is_listening = False
        self._originals = Originals(_BEDROCK)
        """What stands behind the views of this process: a snapshot that is loaded brings one of them back."""

    @property
    def history(self) -> Sequence[Message]:
        """All messages of the conversation, as they came, less what a guardrail had taken out."""
        return tuple(self._history)

    # ---- what Strands calls ------------------------------------------------------------------------------------------

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Compact before each call of the model, and learn from each answer."""
        super().register_hooks(registry, **kwargs)
        self._is_listening = True
        registry.add_callback(BeforeModelCallEvent, self._before_model)
        registry.add_callback(BeforeModelCallEvent, self._sending, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterModelCallEvent, self._after_model)

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Compact if it is due. Called when the agent has answered: a failure is logged, and changes nothing."""
        self._refusals = 0
        self._listen(agent)
        try:
            self._take(agent, self._managed(agent))
        except ContextfoldError as failure:
            logger.warning("the conversation was left as it is: %s", scrub(str(failure)))

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Make the view strictly smaller after a refusal; without one, compact now.

        Raises ``e`` again, with a note why, when the view cannot get smaller, and after eight refusals in a row.
        """
        if e is None:
            self._take(agent, self._managed(agent, force=True))
            return
        self._listen(agent)
        self._refusals += 1
        if self._refusals > MOST_REFUSALS:
            e.add_note(f"contextfold: {MOST_REFUSALS} smaller and smaller requests were refused as too long")
            raise e
        try:
            self._take(agent, self._refused(agent, e))
        except ContextfoldError as failure:
            e.add_note(f"contextfold: {failure}")
            raise e from failure

    def get_state(self) -> dict[str, Any]:
        """The record as JSON, beside what every manager stores."""
        record = self.compaction.to_json() if self.compaction is not None else None
        return {**super().get_state(), "compaction": record}

    def restore_from_session(self, state: dict[str, Any]) -> list[Message] | None:
        """Take up a stored record. The session then gives the agent all messages: nothing is removed from them yet.

        The state of one of Strands' own managers is none of ours: of what it left out, the session has the originals.
        Raises ``ValueError`` for the state of any other manager, as Strands expects it.
        """
        if state.get("__name__") not in _OF_STRANDS:
            super().restore_from_session(state)
        # With a count the session would leave out as many messages, and a record is read against all of them.
        self.removed_message_count = 0
        stored = state.get("compaction")
        self.compaction = stored_record("the manager's state", stored)
        self._history, self._view, self._shown, self._refusals = [], [], [], 0
        return None

    def _listen(self, agent: Agent) -> None:
        """Register the hooks of a manager that the agent was given after it was made, which Strands does not do."""
        if not self._is_listening:
            agent.hooks.add_hook(self)

    # ---- the view ----------------------------------------------------------------------------------------------------

    async def _before_model(self, event: BeforeModelCallEvent) -> None:
        agent: Agent = event.agent
        self._take(agent, await self._to_send(agent))

    def _sending(self, event: BeforeModelCallEvent) -> None:
        # Seen now: a hook that took something out for this call puts it back before we hear of the answer.
        self._sends_all = has_all(event.agent.messages, self._view)

    def _after_model(self, event: AfterModelCallEvent) -> None:
        # the call failed: `reduce_context` is told why
        if event.stop_response is None:
            return
        self._refusals = 0
        said: Any = event.stop_response.message.get("metadata")
        if self.result is not None and self._sends_all and isinstance(said, Mapping):
            self.result = self.result.after_usage(read_usage(said).input_tokens)
            self.calibration = self.result.calibration

    def _managed(self, agent: Agent, **options: Any) -> CompactionResult:
        """The result for the agent's conversation as it stands. Strands waits, though perhaps inside its event loop, as
        it does for its own managers.
        """
        # Nothing is sent now: calls at the end may wait for an approval, and snapshots keep this list. Behind results
        # that say there are none, the real ones would come too late.
        asked = self._asked(agent, **options)
        return self.compactor.compact(self._history, self.compaction, **asked)

    def _refused(self, agent: Agent, error: Exception) -> CompactionResult:
        """The result whose view follows a refusal, for Strands to send."""
        results: list[CompactionResult] = []
        sent = None if is_same_list(agent.messages, self._view) else list(agent.messages)
        asked = self._asked(agent, on_result=results.append)
        self.compactor.call(_refusing(error, sent), self._history, self.compaction, **asked)
        return results[-1]

    async def _to_send(self, agent: Agent) -> CompactionResult:
        """The result whose view Strands is about to send."""
        results: list[CompactionResult] = []
        asked = self._asked(agent, on_result=results.append)
        if is_run_async_bridge():
            # `agent(...)` has an event loop of its own, which ends with the answer, and what was begun on it with it: a
            # summary that is being prepared would be paid for and lost. On a thread it lives on.
            call = partial(self.compactor.call, _given, self._history, self.compaction, **asked)
            await AsyncPorts().wait_for(call)
        else:
            await self.compactor.acall(_given, self._history, self.compaction, **asked)
        return results[-1]

    def _asked(self, agent: Agent, **options: Any) -> dict[str, Any]:
        """The options of a call for the agent's conversation, which is read."""
        with reading("the agent's messages and settings"):
            self._fit(agent)
            self._read(listed("agent.messages", agent.messages))
            said = {"calibration": self.calibration, "model": _model_name(agent), "system": agent.system_prompt}
            before = _pinning if any(map(_has_pin, self._history)) else None
            return {"format": FORMAT, "tools": _tools(agent), "before": before, **said, **options}

    def _fit(self, agent: Agent) -> None:
        """The compactor for the window that the agent's model says it has, if it says one."""
        window = held(agent.model, "context_window_limit")
        if self._settings is None or not isinstance(window, int) or window < LEAST_WINDOW:
            return
        if (_model_name(agent) or "").endswith(LARGE_MARK):  # the model knows nothing of what its requests ask for
            window = max(window, LARGE_WINDOW)
        # An agent may take turns between models: what one of them paid for is not to be paid for again.
        made = self._by_window.get(window)
        if made is None:
            settings: CompactorSettings = {**self._settings, "window": window}
            made = Compactor(**settings)
            self._by_window.put(window, made)
        self.compactor = made

    def _read(self, messages: Messages) -> None:
        """Learn what the agent's list has behind the view."""
        view, history = self._view, self._history
        if view and is_same_list(messages[: len(view)], view):
            new = messages[len(view) :]
            self._history = [*self._redacted(), *new]
            self._shows(messages)
            return
        same = next((n for n, (one, other) in enumerate(zip(messages, view, strict=False)) if one is not other), None)
        same = min(len(messages), len(view)) if same is None else same
        places = {id(message): place for place, message in enumerate(history)}
        known = places.get(id(messages[same - 1])) if same else None
        made = [n for n, message in enumerate(view) if id(message) not in places]
        # A list that begins as the view does is the same conversation, and what was cut off is gone. Any other that was
        # rewritten elsewhere is a new one.
        if known is not None and not any(n >= same for n in made):
            self._history = [*history[: known + 1], *messages[same:]]
        else:
            behind, known_record = self._originals.behind(messages)
            if known_record is None:
                behind = [one for message in messages for one in _apart(message)]
            self._history = behind
            # with no view before it, the list is a restored one or the first, and the record was given beside it
            if view or known_record is not None:
                self.compaction = known_record
            self.removed_message_count = 0
        self._shows(messages)

    def _shows(self, messages: Messages) -> None:
        self._view = list(messages)
        self._shown = [message.get("content") if isinstance(message, dict) else None for message in messages]

    def _redacted(self) -> list[Any]:
        """The history without what a guardrail had taken out of the request. Strands does so in its own list, and where
        a message there is several of ours, ours still have it.
        """
        found = self._history
        shown = zip(self._view, self._shown, strict=True)
        rewritten = [(one, was) for one, was in shown if isinstance(was, list) and one.get("content") is not was]
        known = {id(message) for message in found} if rewritten else set()
        for message, was in rewritten:
            if id(message) in known:  # one of ours, which is read again
                continue
            blocks, redacted = {id(block) for block in was}, message["content"]
            # What was answered has passed the guardrail: only what the user said after that is meant.
            start = 1 + max((n for n, one in enumerate(found) if one["role"] != "user"), default=-1)
            found = [*found[:start], *(left for one in found[start:] if (left := _without(one, blocks, redacted)))]
        return found

    def _take(self, agent: Agent, result: CompactionResult) -> None:
        """The view in the agent's list, in place, and all that says what it is."""
        self.result, self.compaction, self.calibration = result, result.compaction, result.calibration
        if result.changed:
            self._originals.keep(self._history, result)
        counts = result.ledger.counts()
        self.removed_message_count = counts["summarized"] + counts["dropped"]
        agent.messages[:] = self._tracked(result.messages)
        self._shows(agent.messages)

    def _tracked(self, view: Sequence[Any]) -> Iterator[Any]:
        """The view with an id of Strands' for each message that we wrote, as all that it appends itself has one. The
        same words have the same id in each view: a note is written anew for every call.
        """
        known = {id(message) for message in self._history}
        written: Counter[str] = Counter()
        for message in view:
            if id(message) in known or message.get("tracking_id"):
                yield message
                continue
            text = f"{message['role']}: {message['content']}"
            written[text] += 1
            spoken = hashlib.sha256(f"{written[text]} {text}".encode(errors="surrogatepass")).digest()
            yield {**message, "tracking_id": str(uuid.UUID(bytes=spoken[:16], version=4))}


def _has_pin(message: Any) -> bool:
    """Whether Strands' own managers would keep a message: the mark is set and taken away in the message itself."""
    said = message.get("metadata") if isinstance(message, dict) else None
    custom = said.get("custom") if isinstance(said, dict) else None
    return isinstance(custom, dict) and custom.get("pinned") is True


def _pinning(proposal: Proposal) -> Pins:
    """Keeps what is pinned. A summary has a mark only from the message that it was joined to."""
    return Pins(predicate=lambda message: _has_pin(message.source) and not pins.is_summary(message))


def _without(message: Any, blocks: Collection[int], redacted: Sequence[Any]) -> Any:
    """What is left of a message that stood in one that was redacted: results, whose content is redacted in place, or
    the words that take the place of its own; None if nothing is. ``blocks``: ids of what stood in that one.
    """
    if all(id(block) not in blocks for block in message["content"]):
        return message
    results = [block for block in message["content"] if "toolResult" in block]
    content = results or [block for block in redacted if "toolResult" not in block]
    return {**message, "content": content} if content else None


def _apart(message: Message) -> list[Any]:
    """A message as several, where a summary of ours is a block among others."""
    content: Any = message.get("content") if isinstance(message, dict) else None
    # what is no message of theirs is the format's to refuse: it names the place
    if not isinstance(content, list) or len(content) < 2 or message.get("role") != "user":
        return [message]
    # Roles have to alternate, so in a view a summary may share a message with what the user said. As a message of its
    # own it is known for what it is, and updated.
    blocks: list[Any] = [{**message, "content": [block]} for block in content]
    places = [place for place, block in enumerate(blocks) if pins.is_summary(_BEDROCK.decode(block))]
    if not places:
        return [message]
    cuts = sorted({0, len(content), *places, *(place + 1 for place in places)})
    return [{**message, "content": content[start:end]} for start, end in pairwise(cuts)]


_BEDROCK = formats.get(FORMAT)

_OF_STRANDS = frozenset(
    manager.__name__
    for manager in (NullConversationManager, SlidingWindowConversationManager, SummarizingConversationManager)
)
"""Managers whose sessions go on under this one."""

Send = Callable[[list[Any]], Any]


def _given(view: list[Any]) -> None:
    """Sends nothing: the view is all that is wanted."""


def _refusing(error: Exception, sent: Sequence[Any] | None) -> Send:
    """Tells the engine what Strands was refused: the view, or a list that was ``sent`` before a view was made of it."""
    refusal = error if classify(error) is not None else ContextOverflow(text_of(error))
    views = 0

    def send(view: list[Any]) -> None:
        nonlocal views
        views += 1
        # The first view is refused as it was there, and the next one is taken. One that was never there is taken, too.
        if views == 1 and (sent is None or is_same_list(view, sent)):
            raise refusal

    return send


def _tools(agent: Agent) -> list[Any] | None:
    return list(agent.tool_registry.get_all_tool_specs()) or None


def _model_name(agent: Agent) -> str | None:
    read = getattr(agent.model, "get_config", None)  # a test's double may only stream
    config = read() if callable(read) else None
    if not isinstance(config, Mapping) or not isinstance(name := config.get("model_id"), str):
        return None
    more, params = config.get("additional_request_fields"), config.get("params")
    asked = more.get("anthropic_beta") if isinstance(more, Mapping) else None
    headers = params.get("extra_headers") if isinstance(params, Mapping) else None
    return by_window(name, betas_in((asked,), (headers, held(held(agent.model, "client"), "default_headers"))))
