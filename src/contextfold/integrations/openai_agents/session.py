"""A session of ours as a ``Session`` of the Agents SDK: items in a store, and a view that fits out.

What belongs here: the four methods of their protocol over ``contextfold.store``. What does not: storing, summarizing.

A store only ever adds, because summaries speak about what was added before. So an item that is taken back
(``pop_item``) means that the rest is written again, under a second name, before the first one is deleted: at no time is
there less in the store than what is to stay. If it ends in between, both are there, and the shorter one is the newer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from contextfold.compactor import Compactor
from contextfold.errors import InputError, StoreError
from contextfold.ports import AsyncPorts

if TYPE_CHECKING:
    from contextfold.store import Session

FORMAT = "openai-responses"
OTHER = "~"
"""Behind the name of a session: its second name."""


class CompactionSession:
    """``Runner.run(agent, ..., session=CompactionSession("user-7", compactor, "sqlite:///sessions.db"))``.

    Args:
        session_id: the name of the conversation.
        compactor: the window, the policy and the summarizer.
        store: ``sqlite:///FILE``, ``postgresql+psycopg://...``, or a store.
        session_settings: the framework's own, such as how many items are read at most; or its fields as a mapping.
        options: as for ``Compactor.session``: ``options``, ``namespace``, ``user`` and the rest.

    ``get_items()`` gives the view: the summary of what no longer fits, and the newest items word for word. All items
    that were ever added are in ``await session.history()``. Safe for concurrent use by processes, but for
    ``pop_item`` and ``clear_session``. Raises ``InputError`` for an id or a store that cannot be, ``StoreError`` when
    the database fails, ``TypeError`` for a field of the settings that does not exist.
    """

    def __init__(
        self,
        session_id: str,
        compactor: Compactor | None = None,
        store: Any = "sqlite:///contextfold.db",
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if session_id.endswith(OTHER):
            raise InputError(
                f"session_id {session_id!r} ends in {OTHER!r}, which is for names of our own: choose another"
            )
        self.session_id = session_id
        given = SessionSettings() if session_settings is None else session_settings  # as their own sessions have it
        self.session_settings: SessionSettings | None = coerce_session_settings(given)
        self._compactor = compactor or Compactor()
        self._options = options
        self._is_store_ours = isinstance(store, str)
        self._sessions: dict[str, Session] = {}
        self._store = self._open(session_id, store).store

    def _open(self, name: str, store: Any = None) -> Session:
        if name not in self._sessions:
            opened = self._compactor.session(
                name, store=self._store if store is None else store, format=FORMAT, **self._options
            )
            self._sessions[name] = opened
        return self._sessions[name]

    async def current(self) -> Session:
        """The session in the store, for what this protocol has no method for: search, summaries, the ledger."""
        both = [self._open(self.session_id), self._open(self.session_id + OTHER)]
        counts = [(await one.astate()).message_count for one in both]
        if all(counts):  # taking an item back was interrupted
            older = both[0] if counts[0] > counts[1] else both[1]
            await self._delete(older)
            return both[1] if older is both[0] else both[0]
        return both[1] if counts[1] else both[0]

    async def history(self) -> list[Any]:
        """All items that were ever added, word for word."""
        return await (await self.current()).ahistory()

    # ---- the protocol ----

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The view. With ``limit``: the newest items word for word, at most as many, oldest first."""
        session = await self.current()
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is None:
            return list(await session.aview())
        if limit <= 0:
            return []
        count = (await session.astate()).message_count
        return await session.ahistory(max(0, count - limit), limit)

    async def add_items(self, items: list[Any]) -> None:
        """Append items, all or none. When this returns, they are on disk."""
        if items:
            await (await self.current()).aappend(items)

    async def pop_item(self) -> Any | None:
        """Take the newest item back; None if there is none. The rest is written again, and so is its summary when one
        is due.
        """
        session = await self.current()
        items = await session.ahistory()
        if not items:
            return None
        if len(items) > 1:
            is_first = session.thread.id == self.session_id
            other = self._open(self.session_id + OTHER if is_first else self.session_id)
            # at 0: a second attempt fails instead of appending them twice
            await other.aappend(items[:-1], at=0)
        await self._delete(session)
        return items[-1]

    async def clear_session(self) -> None:
        """Delete the session."""
        for name in (self.session_id, self.session_id + OTHER):
            session = self._open(name)
            if (await session.astate()).message_count:
                await self._delete(session)

    def close(self) -> None:
        """Close the connections to a store that was given by its address; a store of the caller's own stays open. A
        later call opens new ones; what was in memory alone is gone.
        """
        if self._is_store_ours:
            self._store.close()

    async def _delete(self, session: Session) -> None:
        delete = getattr(session.store, "delete_idle", None)
        if delete is None:
            raise InputError(
                f"{type(session.store).__name__} cannot delete a session: pop_item and clear_session need a store of "
                "contextfold, such as sqlite:///FILE, or one with delete_idle(thread, seconds)"
            )
        if not await AsyncPorts().wait_for(delete, session.thread, 0.0):
            raise StoreError(f"session {session.thread} is being summarized, so it is not deleted: try again")
        self._sessions.pop(session.thread.id, None)
