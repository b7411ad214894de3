"""One turn of a thread: its view, made smaller where that is due.

    state ── messages, event ──▶ begin ──▶ truncate arguments ──▶ due? ──▶ fold, save originals ──▶ a new event

What belongs here: the order of these steps, written once as ``async def`` over ports, and keeping what was paid for.
What does not: hooks of the framework (``summarization``, ``tool``), the pass itself (``langchain.folding``).

A middleware can change the state only together with an answer of the model. Where that call fails, the new event stays
here, and the next attempt begins with it: no second summary, no second section in the history.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeGuard

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage

from contextfold.conversation.recognized import is_same_left
from contextfold.integrations.bounded import Bounded
from contextfold.integrations.deepagents import large_results, media
from contextfold.integrations.deepagents.arguments import Arguments
from contextfold.integrations.deepagents.files import Files
from contextfold.integrations.deepagents.frame import framed, unframed
from contextfold.integrations.deepagents.helper import Helper
from contextfold.integrations.deepagents.history import HistoryFiles, Saved
from contextfold.integrations.deepagents.state import RememberedEvent, SummarizationEvent
from contextfold.integrations.deepagents.views import (
    DeepAgentView,
    Reductions,
    bounds,
    newest_user,
    position_of,
    view_of,
)
from contextfold.integrations.known_lists import left_of
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.folding import DueFold, SummarizerFailed
from contextfold.integrations.langchain.paid import says_the_same
from contextfold.integrations.langchain.sending import Sending, shortened, valid
from contextfold.integrations.langchain.threads import ThreadKey, thread_key

NOTHING = DeepAgentView([], ())


@dataclass(frozen=True)
class ModelTurn:
    """A thread on its way to a model call. Sizes are tokens; ``tokens`` has all that is sent."""

    key: ThreadKey
    messages: Sequence[AnyMessage]
    """All of the state's."""
    saved: RememberedEvent
    """What the state remembers."""
    now: RememberedEvent
    sending: Sending
    shortened: int
    """Calls in the state's messages before this position have their arguments truncated."""
    view: DeepAgentView = NOTHING
    sent: list[AnyMessage] = field(default_factory=list)
    """The view as a provider takes it."""
    tokens: int = 0
    moved: tuple[ToolMessage, ...] = ()
    """Messages that are to replace those of the same id in the state."""
    has_failed: bool = False
    """The summarizer was asked in vain for this call."""

    @property
    def start(self) -> int:
        """Where the kept messages begin."""
        return bounds(self.messages, self.now.event)[0]

    def update(self) -> dict[str, Any]:
        """What is to change in the state; empty if nothing."""
        update = self.now.update_since(self.saved)
        return {**update, "messages": list(self.moved)} if self.moved else update


class Passes:
    """Turns of the threads that one middleware serves. Safe for concurrent use."""

    def __init__(self, helper: Helper, arguments: Arguments, root: str) -> None:
        self.helper = helper
        self.arguments = arguments
        self.history = HistoryFiles(root)
        self.results_folder = f"{root}/large_tool_results"
        self._reductions = Reductions(arguments)
        self._unsaved: Bounded[_Unsaved] = Bounded()
        self._sendings: Bounded[Sending] = Bounded()

    def begin(self, state: Mapping[str, Any], messages: Sequence[AnyMessage], sending: Sending | None) -> ModelTurn:
        """The turn as the state has it. ``sending``: None for how the thread's last model call was sent."""
        key = thread_key(messages)
        if sending is None:
            sending = self._sendings.get(key) or Sending()
        else:
            self._sendings.put(key, sending)
        saved = RememberedEvent.from_state(state).aligned(messages)
        now = self._remembered(key, saved, messages)
        shortened = position_of(messages, now.shortened_until)
        return self._viewed(ModelTurn(key, messages, saved, now, sending, shortened))

    def _remembered(self, key: ThreadKey, saved: RememberedEvent, messages: Sequence[AnyMessage]) -> RememberedEvent:
        """What is remembered of a thread: what the state has, or what was paid for since."""
        unsaved = self._unsaved.get(key)
        if unsaved is not None and unsaved.continues(saved, messages):
            return unsaved.now
        # Without a thread no state has anything at the beginning of a run: its messages tell which conversation it is.
        if key.thread_id or saved != RememberedEvent() or not messages:
            return saved
        alike = [(one.messages, one) for one in self._unsaved.all() if one.key[:2] == key[:2]]
        found = next(((one, range(0)) for _, one in alike if one.is_said_in(messages)), None)
        found = found or left_of(alike, messages, FORMAT)
        if found is None:
            return saved
        known, gone = found
        now = known.now.without(gone, messages)
        self._unsaved.drop(known.key)
        self._unsaved.put(key, _Unsaved(key, saved, now, messages))
        return now

    async def prepared(self, turn: ModelTurn, budget: int | None, files: Files) -> ModelTurn:
        """The turn with its arguments truncated and its older messages summarized, where that is due."""
        compute = files.ports.compute
        turn = await compute(self._truncated, turn, False)
        due = self._due(turn, budget)
        if due is None:
            return turn
        # a summary breaks the prompt cache anyway, so small steps pay too, and they may make the summary unnecessary
        turn = await compute(self._truncated, turn, True)
        due = self._due(turn, budget)
        return turn if due is None else await self.folded(turn, due, files)

    async def smaller(self, turn: ModelTurn, wanted: int, files: Files) -> ModelTurn:
        """The turn in ``wanted`` tokens, as far as that can be: summarized, then with large results moved away."""
        turn = await files.ports.compute(self._truncated, turn, True)
        turn = await self.folded(turn, DueFold(f"overflow:{wanted}", limit=wanted), files)
        return turn if turn.tokens <= wanted else await self.with_results_moved(turn, wanted, files)

    async def folded(self, turn: ModelTurn, due: DueFold, files: Files) -> ModelTurn:
        """The turn with more of it summarized; the same one where nothing can leave, or no summary could be had."""
        material = await files.ports.compute(self._material, turn)
        due = replace(due, has_failed=turn.has_failed)
        result = await self.helper.fold(
            material.messages, material.evicted, due, turn.tokens, turn.sending, files.ports
        )
        if isinstance(result, SummarizerFailed):
            return replace(turn, has_failed=True)
        if result is None:
            return turn
        cutoff, quoted = material.kept(result)
        # Nothing more would leave the view than has left it already; over a limit, a shorter summary is worth it.
        if cutoff < turn.start or (cutoff == turn.start and due.limit is None):
            return turn
        event = turn.now.event
        is_whole = event is not None and event.cutoff <= len(turn.messages)
        # A state that lost messages since tells nothing about the file any more: saved twice is better than not at all.
        archived = min(event.archived_until, cutoff) if event is not None and is_whole else 0
        session_id = turn.now.session_id or self._session_of(event) or f"session_{uuid.uuid4().hex}"
        saved = await self.history.save(session_id, turn.messages[archived:cutoff], files)
        summary = next(
            message for message in result if isinstance(message, HumanMessage) and layout.is_summary(message)
        )
        new = SummarizationEvent(
            cutoff=cutoff,
            summary=framed(_without_lost(summary, saved), saved.path, quoted),
            path=saved.path,
            created_at=len(turn.messages),
            archived_until=archived if saved.path is None else cutoff,
            covered_to=turn.messages[cutoff - 1].id,
            kept_from=turn.messages[cutoff].id if cutoff < len(turn.messages) else None,
            is_whole=event is None or (is_whole and event.is_whole),
        )
        now = replace(turn.now, event=new, session_id=session_id)
        # The state changes with the model's answer alone; should that fail, the next call finds what was paid for here.
        made = await files.ports.compute(self._viewed, replace(turn, now=now))
        if cutoff == turn.start and made.tokens >= turn.tokens:
            return turn
        self._unsaved.put(turn.key, _Unsaved(turn.key, turn.saved, now, turn.messages))
        return made

    def can_part(self, turn: ModelTurn, due: DueFold) -> bool:
        """Whether ``folded`` has anything that may leave: if not, no summary was asked for."""
        return self.helper.can_part(self._material(turn).messages, due, turn.tokens, turn.sending)

    async def with_results_moved(self, turn: ModelTurn, wanted: int, files: Files) -> ModelTurn:
        """The turn with large results at its end in the backend, the largest first, until it fits; what cannot be saved
        is sent shortened.
        """
        positions = large_results.results_at_end(turn.messages)
        sizes = await files.ports.compute(self.helper.sizes, turn.key, [turn.messages[n] for n in positions])
        messages, moved = list(turn.messages), list(turn.moved)
        over = turn.tokens - wanted
        for size, position in sorted(zip(sizes, positions, strict=True), key=lambda pair: (-pair[0], pair[1])):
            original = messages[position]
            if over <= 0 or size < large_results.LARGE or not isinstance(original, ToolMessage):
                break
            shorter = await large_results.moved(original, self.results_folder, files)
            if shorter is not None:
                messages[position] = shorter
                moved.append(shorter)
                over -= size - large_results.PREVIEW
        if len(moved) > len(turn.moved):
            turn = await files.ports.compute(self._viewed, replace(turn, messages=messages, moved=tuple(moved)))
        return turn if turn.tokens <= wanted else await files.ports.compute(self._shortened, turn, wanted)

    # ---- steps ----

    def _shortened(self, turn: ModelTurn, wanted: int) -> ModelTurn:
        """The turn with what results have above ``wanted`` left out of what is sent, with a mark. The state keeps it,
        and a later summary reads it whole.
        """
        sent = shortened(turn.sent, self.helper.sizes(turn.key, turn.sent), turn.tokens - wanted)
        return replace(turn, sent=sent, tokens=self.helper.tokens(turn.key, sent, turn.sending))

    def _viewed(self, turn: ModelTurn) -> ModelTurn:
        """The turn with its view, after anything that the view follows from has changed."""
        view = view_of(turn.messages, turn.now.event, turn.shortened, self._reductions)
        sent = valid(view.messages)
        return replace(turn, view=view, sent=sent, tokens=self.helper.tokens(turn.key, sent, turn.sending))

    def _due(self, turn: ModelTurn, budget: int | None) -> DueFold | None:
        due = self.helper.due(turn.sent, turn.tokens, turn.sending)
        if budget is None:
            return due
        if due is None:
            return DueFold(f"input limit:{budget}", limit=budget) if turn.tokens > budget else None
        return replace(due, limit=budget if due.limit is None else min(due.limit, budget))

    def _truncated(self, turn: ModelTurn, is_rewritten: bool) -> ModelTurn:
        """The turn with the border of truncation moved on, if it is due. ``is_rewritten``: the view changes anyway."""
        window, view = self.helper.window(turn.sending), turn.view
        if not self.arguments.is_due(tokens=turn.tokens, messages=len(view.messages), window=window):
            return turn
        sizes = partial(self.helper.sizes, turn.key, view.messages)
        border = self.arguments.border(len(view.messages), sizes, window)
        old = sum(1 for origin in view.origins if origin is None or origin < turn.shortened) if turn.shortened else 0
        if not any(self._changes(message) for message in view.messages[old:border]):
            return turn
        is_first = turn.shortened == 0
        # In steps: between two of them what is sent only grows, and a provider's prefix cache holds.
        if not is_first and not is_rewritten and not self.arguments.is_a_step(old, border, sizes, window):
            return turn
        now = replace(turn.now, shortened_until=view.messages[border].id)
        return self._viewed(replace(turn, now=now, shortened=view.origins[border] or 0))

    def _session_of(self, event: SummarizationEvent | None) -> str | None:
        """The session whose file an event names."""
        # The first releases of 0.7 remembered no session beside it.
        path = event.path if event is not None else None
        session_id = (path or "").removeprefix(f"{self.history.folder}/").removesuffix(".md")
        return session_id if session_id and path == self.history.path(session_id) and "/" not in session_id else None

    def _changes(self, message: AnyMessage) -> bool:
        return self._reductions.truncated(message) is not message

    def _material(self, turn: ModelTurn) -> _Material:
        """What a summary is made of: the view with LangChain's frame around the summary, and references for media."""
        items: list[tuple[AnyMessage, int | None]] = []
        person = newest_user(turn.messages)
        for message, origin in zip(turn.view.messages, turn.view.origins, strict=True):
            if origin is None:
                items.append((unframed(turn.now.event.summary) if turn.now.event else message, None))
                if person is not None and person < turn.start:
                    items.append((turn.messages[person], person))
            elif _is_parents(message):
                items.append((unframed(message, with_quote=True), origin))
            else:
                items.append((media.with_references(message, self.history.media_folder), origin))
        evicted = None
        if turn.now.event is not None and turn.now.event.is_whole:
            named, left = str(turn.now.event.summary.text), range(turn.start)
            evicted = [
                self._as_left(m, named)
                for n in left
                if n != person and not isinstance(m := turn.messages[n], SystemMessage)
            ]
        return _Material([message for message, _ in items], tuple(items), turn.messages, person, evicted)

    def _as_left(self, message: AnyMessage, named: str) -> AnyMessage:
        """A message as it was read when it left the view, so that the same may be quoted of it. ``named``: what the
        summary says, which names no medium that could not be stored.
        """
        if _is_parents(message):
            return layout.as_history(unframed(message, with_quote=True))
        if self.history.media_folder not in named:  # most have none, and their paths follow from all of their bytes
            return message
        return media.with_references(message, self.history.media_folder, named=named)


@dataclass(frozen=True, slots=True)
class _Material:
    """What goes into a pass, and where each message of it stands in the state (None: the summary)."""

    messages: list[AnyMessage]
    origins: tuple[tuple[AnyMessage, int | None], ...]
    state: Sequence[AnyMessage]
    person: int | None
    """Position of the newest user message."""
    evicted: Sequence[AnyMessage] | None
    """What the summary among the messages stands for; None where that is not known, or there is none."""

    def kept(self, result: Sequence[AnyMessage]) -> tuple[int, AnyMessage | None]:
        """(the cutoff that the messages of a result mean, the user message that the summary has to quote).

        What is kept is the end of the history, the newest user message, and system messages, which are in every view.
        """
        where = {id(message): origin for message, origin in self.origins}
        known = (where.get(id(message)) for message in result)
        origins = {n for n in known if n is not None and not isinstance(self.state[n], SystemMessage)}
        cutoff = min(origins - {self.person}, default=len(self.state))
        if self.person not in origins or self.person is None or self.person >= cutoff:
            return cutoff, None
        # Right before the cutoff it is kept as a message, which is shorter than quoting it.
        return (self.person, None) if self.person == cutoff - 1 else (cutoff, self.state[self.person])


@dataclass(frozen=True, slots=True)
class _Unsaved:
    """What the state is to remember as soon as an answer lets it, and the state that it was made from."""

    key: ThreadKey
    base: RememberedEvent
    now: RememberedEvent
    messages: Sequence[AnyMessage]

    def continues(self, saved: RememberedEvent, messages: Sequence[AnyMessage]) -> bool:
        """Whether the state is still that one, perhaps with more messages."""
        count = len(self.messages)
        return self.base == saved and 0 < count <= len(messages) and messages[count - 1].id == self.messages[-1].id

    def is_said_in(self, messages: Sequence[AnyMessage]) -> bool:
        """Whether what left the view is there as it was, whatever ids LangGraph has drawn for it. A summary that tells
        of messages which a caller has dropped before may be another one's: an id of a call has to say that it is not.
        """
        event, count = self.now.event, len(self.messages)
        if event is None or count > len(messages):
            return False
        told = self.messages[: event.cutoff] if event.is_whole else self.messages
        if not all(map(says_the_same, told, messages)):
            return False
        if event.is_whole:
            return True
        before, now = ([FORMAT.decode(one) for one in some] for some in (self.messages, messages))
        return is_same_left(before.__getitem__, now.__getitem__, range(0), count)


def _is_parents(message: AnyMessage) -> TypeGuard[HumanMessage]:
    """Whether this is a summary among the state's messages: that of a forked agent's parent."""
    return isinstance(message, HumanMessage) and layout.is_summary(message)


def _without_lost(summary: HumanMessage, saved: Saved) -> HumanMessage:
    """The summary without references to media that are not there."""
    text = str(summary.content)
    for path in saved.lost:
        text = text.replace(path, "(not saved)")
    return summary if text == summary.content else summary.model_copy(update={"content": text})
