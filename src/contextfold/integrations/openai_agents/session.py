"""A session of ours as a ``Session`` of the Agents SDK: items in a store, and a view that fits out.

What belongs here: the four methods of their protocol over ``contextfold.store``. What does not: storing, summarizing.

Each method is one transaction of the store or asks again, so any number of runs and processes may share a conversation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from contextfold.compactor import Compactor
from contextfold.errors import InputError, StoreCorrupt, StoreError
from contextfold.integrations.given import checked_compactor
from contextfold.ports import AsyncPorts, settled

if TYPE_CHECKING:
    from contextfold.store import Session, SessionState
    from contextfold.store.options import FormatlessKeywords

T = TypeVar("T")

FORMAT = "openai-responses"

WHENEVER = -1e9
"""Seconds. As idle a session is at any rate, also one that was written to before the clock was put back."""


class CompactionSession:
    """``Runner.run(agent, ..., session=CompactionSession("user-7", compactor, "sqlite:///sessions.db"))``.

    Args:
        session_id: the name of the conversation.
        compactor: the window, the policy and the summarizer.
        store: ``sqlite:///FILE``, ``postgresql+psycopg://...``, or a store.
        session_settings: the framework's own, such as how many items are read at most; or its fields as a mapping.
        options: as for ``Compactor.session``: ``options``, ``namespace``, ``user`` and the rest.

    ``get_items()`` gives the view: the summary of what no longer fits, and the newest items word for word. All items
    that were added are in ``await session.history()``. A run puts its input and the results of its tools behind the
    view, which the session cannot count: give it the filter or the provider of ``compaction`` as well.

    Safe for concurrent use by threads and processes. Raises ``InputError`` for an id or a store that cannot be,
    ``PolicyError`` for what is no compactor, ``StoreError`` when the database fails, ``TypeError`` for a field of the
    settings that does not exist.
    """

    def __init__(
        self,
        session_id: str,
        compactor: Compactor | None = None,
        store: Any = "sqlite:///contextfold.db",
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Unpack[FormatlessKeywords],
    ) -> None:
        self.session_id = session_id
        given = SessionSettings() if session_settings is None else session_settings  # as their own sessions have it
        self.session_settings: SessionSettings | None = coerce_session_settings(given)
        self._is_store_ours = isinstance(store, str)
        made = Compactor() if compactor is None else checked_compactor(compactor)
        self._session = made.session(session_id, store=store, format=FORMAT, **options)

    async def current(self) -> Session:
        """The session in the store, for what this protocol has no method for: search, summaries, the ledger."""
        return self._session

    async def history(self) -> list[Any]:
        """All items that were added and not taken back, word for word."""
        return await self._read(lambda state: self._session.ahistory(0, state.message_count))

    # ---- the protocol ----

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The view. With ``limit``: the newest items word for word, at most as many, oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is None:
            return list(await self._read(lambda _: self._session.aview()))
        if limit <= 0:
            return []
        return await self._read(lambda state: self._session.ahistory(max(0, state.message_count - limit), limit))

    async def add_items(self, items: list[Any]) -> None:
        """Append items, all or none. When this returns, they are on disk."""
        if items:
            await settled(self._session.aappend(items))

    async def pop_item(self) -> Any | None:
        """Take the newest item back; None if there is none. Summaries go with it: another is made when one is due."""
        return await settled(self._popped())

    async def clear_session(self) -> None:
        """Delete the session."""
        await settled(self._cleared())

    def close(self) -> None:
        """Close the connections to a store that was given by its address; a store of the caller's own stays open. A
        later call opens new ones; what was in memory alone is gone.
        """
        if self._is_store_ours:
            self._session.store.close()

    # ---- what they do ----

    async def _popped(self) -> Any | None:
        delete = self._method("delete_newest", "pop_item", "delete_newest(thread, count, revision)")

        async def read(state: SessionState) -> tuple[SessionState, list[Any]]:
            return state, await self._session.ahistory(max(0, state.message_count - 1), 1)

        while True:
            state, newest = await self._read(read)
            if not state.message_count:
                return None
            if not newest:  # another one took it back meanwhile
                continue
            if await AsyncPorts().wait_for(delete, state.thread, state.message_count, state.revision):
                return newest[0]
            await self._check_free(state)

    async def _cleared(self) -> None:
        delete = self._method("delete_idle", "clear_session", "delete_idle(thread, seconds)")
        while (state := await self._session.astate()).message_count:
            if not await AsyncPorts().wait_for(delete, state.thread, WHENEVER):
                await self._check_free(state)

    async def _read(self, read: Callable[[SessionState], Awaitable[T]]) -> T:
        """What ``read`` finds in the session as it is."""
        while True:
            before = await self._session.astate()
            try:
                return await read(before)
            except StoreCorrupt:
                after = await self._session.astate()
                if (after.revision, after.created_at) == (before.revision, before.created_at):
                    raise  # else what was to be read has been taken back meanwhile

    def _method(self, name: str, asker: str, needed: str) -> Callable[..., bool]:
        method: Callable[..., bool] | None = getattr(self._session.store, name, None)
        if method is None:
            raise InputError(
                f"{type(self._session.store).__name__} deletes nothing: {asker} needs a store of contextfold, such as "
                f"sqlite:///FILE, or one with {needed}"
            )
        return method

    async def _check_free(self, before: SessionState) -> None:
        """Raises ``StoreError`` where a summary that is being made is why nothing was deleted."""
        state = await self._session.astate()
        if state.is_summarizing and state.message_count == before.message_count:
            raise StoreError(f"session {state.thread} is being summarized, so nothing of it is deleted: try again")
