"""What happens to a session between messages in and view out. One color: async functions over ports.

    load ─▶ view, page by page ─▶ due? ──no──▶ soon? ─▶ (in the background) pass ─▶ recorded, not in force
      ▲                             │ yes
      │                             ▼
      │               one is prepared? ──yes, and it still fits───────────────┐
      │                             │ no                                      ▼
      │                           lease ─▶ pass ─▶ recorded ─▶ put in force: compare and swap on the revision
      │                             │ another worker has it                   │
      └───────── wait ──────────────┴─────────────────────────────────────────┘

What belongs here: what is known of a session from call to call, and what is done beside the calls. What does not: the
order of the steps of one call (``settling``), the steps (``attempt``), how things are stored (the store).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from contextfold.calls.background import Background
from contextfold.conversation.ledger import Account
from contextfold.errors import is_control_flow, reason
from contextfold.limits import Limits
from contextfold.observe import Observer
from contextfold.passes.perform import Archiver
from contextfold.policy import Policy
from contextfold.ports import Ports
from contextfold.store import recording
from contextfold.store.decision import SessionSize
from contextfold.store.kept import PassKey, SessionMemory
from contextfold.store.options import SessionOptions
from contextfold.store.reading import Reader, ask
from contextfold.store.request import EngineParts, SessionRequest, Settled
from contextfold.store.settling import Settling
from contextfold.store.values import SessionState, StoredSummary, Thread
from contextfold.window import bounds


class Flow:
    """The steps of one session. Safe for concurrent use."""

    def __init__(
        self, means: EngineParts, thread: Thread, store: Any, options: SessionOptions, archive: Archiver | None = None
    ) -> None:
        self.means = means
        self.thread = thread
        self.store = store
        self.archive = archive
        self.given = options
        self.options = options.under(means.policy)
        self.policy = options.policy(means.policy)
        Limits.of(self.policy, means.windows.assumed().tokens)  # raises at once where they do not go together
        self.reader = Reader(store, thread, options.count_text(means.count_text))
        counting = options.token_calculation_method if means.count_text is None else means.count_text
        self.memory = SessionMemory(means.passes, means.remembered, PassKey.of(store, thread, counting))
        self.background = Background(self.policy.summary.parallel)
        self.fruitless: tuple[int, int] | None = None
        """Revision and length at which a pass changed nothing: it is not tried again until something changed."""
        self.failed: int | None = None
        """Revision under which a model was asked for a summary and gave none."""
        self.rejected: set[int] = set()
        """Summaries that were prepared and do not fit the messages any more."""
        self.is_strict = False
        """The provider refused a list as malformed: roles take turns from then on."""

    def under(self, options: SessionOptions) -> Flow:
        """The same session under other options: its user has changed them."""
        other = Flow(self.means, self.thread, self.store, options, self.archive)
        # What was learned of the session holds whatever its options are; a second thread in the background would pay
        # twice.
        other.background, other.is_strict, other.rejected = self.background, self.is_strict, self.rejected
        other.failed = self.failed
        return other

    async def settle(self, request: SessionRequest, ports: Ports, observer: Observer) -> Settled:
        """The session with its view, summarized where that is due or asked for. Raises what a pass raises."""
        settled = await (await Settling.of(self, request, ports, observer)).run()
        self.reader.remember(settled.loaded)
        if settled.rules.soon(settled.size) and self._may_prepare(settled.loaded.state):
            self.start_preparing(request, ports)
        return settled

    async def bounds(self, request: SessionRequest, ports: Ports, observer: Observer) -> tuple[Policy, Limits]:
        """The policy and its limits, within what refusals taught of the window."""
        windows = self.means.windows
        found = request.window or await windows.find("", None, ports, observer)
        return bounds(self.policy, found, windows.assumed())

    async def due(self, request: SessionRequest, ports: Ports) -> str | None:
        """Why a summary has to be in force before the next request, in words; None when none has."""
        settling = await Settling.of(self, request, ports, self.means.observe())

        async def look(state: SessionState) -> str | None:
            resting = self.is_idle(state)
            found = await settling.read_on(state, resting)
            self.reader.remember(found.loaded)
            due = None if resting else found.rules.due(found.size)
            return due.reason if due is not None else None

        return await self.reader.steady(look, ports)

    async def look(self, request: SessionRequest, ports: Ports) -> tuple[SessionSize, Limits]:
        """How large the view is, summarized or not, and the limits for it."""
        settling = await Settling.of(self, replace(request, forced=None), ports, self.means.observe())

        async def look(state: SessionState) -> tuple[SessionSize, Limits]:
            found = await settling.read_on(state, resting=True)
            self.reader.remember(found.loaded)
            return found.size, found.rules.limits

        return await self.reader.steady(look, ports)

    async def mended(self, state: SessionState, ports: Ports) -> dict[int, Account]:
        """Messages that no summary took and that cannot be sent as they stand, by sequence number."""
        settling = await Settling.of(self, SessionRequest(), ports, self.means.observe())
        loaded = (await settling.read_on(state, resting=False)).loaded
        self.reader.remember(loaded)
        found = {loaded.layout.sequence(place): account for place, account in loaded.conversation.view.mended.items()}
        return {sequence: account for sequence, account in found.items() if sequence is not None}

    async def undo(self, ports: Ports, observer: Observer) -> StoredSummary | None:
        """Put what was in force before in force again; the summary that is undone, or None if there is none."""
        while True:
            state, summary = await self.reader.steady(partial(self._newest, ports), ports)
            if summary is None:
                return None
            # where the session changed meanwhile, the loop looks at what is in force now
            if await self.put_in_force(summary.parent_id, (), ports, revision=state.revision, undoing=summary.id):
                text = f"summary {summary.id} of session {self.thread} is undone"
                observer.emit("compaction_undone", text, summary=summary.id, parent=summary.parent_id)
                return summary

    async def put_in_force(
        self, summary_id: int | None, links: Sequence[Any], ports: Ports, *, revision: int, **more: Any
    ) -> bool:
        """Show a summary of the session, or none. False where it is not at ``revision`` any more."""
        swap = partial(self.store.put_in_force, revision=revision, **more)
        if not await ask(ports, swap, self.thread, summary_id, links):
            return False
        self.memory.follow(revision)
        return True

    async def _newest(self, ports: Ports, state: SessionState) -> tuple[SessionState, StoredSummary | None]:
        """The session, and the summary that an undo takes back."""
        summary = await self.reader.summary(state.summary_id, ports)
        # What was recalled goes with the summary that it stands behind: undoing that row alone brings nothing back.
        while summary is not None and summary.trigger in recording.COMPANIONS:
            summary = await self.reader.summary(summary.parent_id, ports)
        return state, summary

    # ---- in the background ----

    def is_idle(self, state: SessionState) -> bool:
        """Whether nothing is to be compacted by itself: that was just undone, or was of no use."""
        undone = state.held_until > 0 and state.message_count <= state.held_until
        return undone or self.fruitless == (state.revision, state.message_count)

    def _may_prepare(self, state: SessionState) -> bool:
        prepared = state.prepared_id is not None and state.prepared_id not in self.rejected
        return not prepared and not state.is_summarizing and not self.is_idle(state)

    def start_preparing(self, request: SessionRequest, ports: Ports) -> None:
        self.background.start(partial(self._prepare, request), ports)

    async def _prepare(self, request: SessionRequest, ports: Ports) -> None:
        """A summary that is recorded and not in force. What goes wrong is told, and changes nothing."""
        observer = self.means.observe()
        try:
            settling = await Settling.of(self, replace(request, forced="background"), ports, observer)
            await settling.prepare()
        # No caller waits for a summary in the background, so what goes wrong with it must not end the caller's turn.
        # Tables of anyone's own raise what their database raises.
        except Exception as error:
            if is_control_flow(error):
                raise
            observer.emit("background_failed", reason(error), error=type(error).__name__)
