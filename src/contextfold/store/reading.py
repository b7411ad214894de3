"""Reading a session, page by page, and remembering its view so that a turn reads only what is new.

What belongs here: asking the store in either color, and what one session object remembers. What does not: what is done
with it (``flow``).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from contextfold import formats
from contextfold.errors import FormatError, StoreCorrupt
from contextfold.formats.base import Format
from contextfold.messages import Message
from contextfold.ports import Ports
from contextfold.store import loading
from contextfold.store.layout import as_ranges
from contextfold.store.loading import Loaded
from contextfold.store.values import DamagedMessage, SessionState, StoredMessage, StoredSummary, Thread, unreadable

T = TypeVar("T")

PAGE = 2_000
"""Messages that are read at a time."""


async def ask(ports: Ports, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a method of a store, which may be sync (then it blocks) or async."""
    work = partial(method, *arguments, **named)
    if inspect.iscoroutinefunction(method):
        return await ports.call(work)
    return await ports.wait_for(work)


@contextmanager
def reading(thread: Thread, source: Format, messages: Sequence[StoredMessage]) -> Iterator[None]:
    """Around work on stored messages: one that is none in the session's format is named as the row that is damaged,
    and not as something that the caller gave."""
    try:
        yield
    except FormatError:
        for message in messages:
            _decoded(thread, source, message)
        raise


def _decoded(thread: Thread, source: Format, message: StoredMessage) -> Message:
    try:
        return source.decode(message.wire, message.sequence)
    except FormatError as error:
        raise unreadable(thread, message.sequence, error) from error


class Reader:
    """Reads one thread of a store. Safe for concurrent use: what is remembered is taken out by its one user."""

    def __init__(self, store: Any, thread: Thread, count_text: Callable[[str], int] | None) -> None:
        self.store = store
        self.thread = thread
        self.count_text = count_text
        self._remembered: dict[str, Loaded] = {}  # pop is atomic, and no other call has what was popped

    async def state(self, ports: Ports) -> SessionState:
        state: SessionState = await ask(ports, self.store.load, self.thread)
        return state

    async def is_gone(self, state: SessionState, ports: Ports) -> bool:
        """Whether the session was deleted, or its newest message taken back, or its file replaced, since it was in this
        state: what of it cannot be read then is not damaged."""
        now = await self.state(ports)
        return (now.opened, now.created_at, now.revision) != (state.opened, state.created_at, state.revision)

    async def steady(self, look: Callable[[SessionState], Awaitable[T]], ports: Ports) -> T:
        """What ``look`` finds in the session, all of it in one state: it reads the store more than once, so it looks
        again where the session was deleted meanwhile, or its newest message taken back.
        """
        while True:
            state = await self.state(ports)
            try:
                found = await look(state)
            except StoreCorrupt:
                if not await self.is_gone(state, ports):
                    raise
                continue
            # What is not there any more is no error to whoever asks for links, or for messages of the next session.
            if not await self.is_gone(state, ports):
                return found

    async def messages(self, ranges: Iterable[range], ports: Ports) -> list[StoredMessage]:
        """All messages of these ranges, read page by page."""
        found: list[StoredMessage] = []
        for some in _paged(ranges):
            found += await ask(ports, self.store.read_messages, self.thread, some)
        return found

    async def readable(
        self, ranges: Iterable[range], source: Format, ports: Ports
    ) -> list[tuple[StoredMessage, Message] | DamagedMessage]:
        """All messages of these ranges that can be read, each as it is stored and decoded; and of the others, why not.

        For whoever looks messages up: what is asked for stands in any of them. A view must have each of its messages.
        """
        found: list[tuple[StoredMessage, Message] | DamagedMessage] = []
        for some in _paged(ranges):
            for one in await self._apart(some, ports):
                found += [one] if isinstance(one, DamagedMessage) else await ports.compute(self._each, one, source)
        return found

    async def _apart(self, some: Sequence[range], ports: Ports) -> list[list[StoredMessage] | DamagedMessage]:
        """Messages in portions, so that those that cannot be read stand alone."""
        try:
            return [await ask(ports, self.store.read_messages, self.thread, some)]
        except StoreCorrupt as error:
            sequences = [sequence for one in some for sequence in one]
            if len(sequences) == 1:
                return [DamagedMessage(sequences[0], str(error))]
        middle = len(sequences) // 2
        halves = (as_ranges(sequences[:middle]), as_ranges(sequences[middle:]))
        return [found for half in halves for found in await self._apart(half, ports)]

    def _each(
        self, messages: Sequence[StoredMessage], source: Format
    ) -> list[tuple[StoredMessage, Message] | DamagedMessage]:
        found: list[tuple[StoredMessage, Message] | DamagedMessage] = []
        for message in messages:
            try:
                found.append((message, _decoded(self.thread, source, message)))
            except StoreCorrupt as error:
                found.append(DamagedMessage(message.sequence, str(error)))
        return found

    async def pages(self, wanted: range, ports: Ports) -> AsyncIterator[list[StoredMessage]]:
        """The messages of a range, a page at a time."""
        for some in _paged([wanted]):
            yield await ask(ports, self.store.read_messages, self.thread, some)

    async def summary(self, summary_id: int | None, ports: Ports) -> StoredSummary | None:
        if summary_id is None:
            return None
        found: StoredSummary = await ask(ports, self.store.read_summary, self.thread, summary_id)
        return found

    async def view(self, state: SessionState, ports: Ports) -> Loaded:
        """The view of a session as far as it is remembered, or up to the messages that its summary covers.

        The caller has it alone, and brings it back with ``remember``.
        """
        known = self._remembered.pop("view", None)
        if known is not None and known.continues(state):
            known.state = state
            return known
        summary = await self.summary(state.summary_id, ports)
        messages = await self.messages(loading.view_ranges(summary), ports)
        with reading(self.thread, source_of(state), messages):
            return await ports.compute(loading.view_conversation, state, summary, messages, self.count_text)

    async def next_page(self, loaded: Loaded, ports: Ports) -> None:
        """Some more messages at the end of what is loaded."""
        stop = min(loaded.until + PAGE, loaded.state.message_count)
        messages = await self.messages([range(loaded.until, stop)], ports)
        with reading(self.thread, source_of(loaded.state), messages):
            if len(messages) > FEW:  # decoding takes long enough to hold up an event loop
                await ports.compute(loaded.extend, messages)
            else:
                loaded.extend(messages)

    def ids(self, messages: Sequence[StoredMessage], state: SessionState) -> list[str | None]:
        """The messages' own ids."""
        source = source_of(state)
        return [_decoded(self.thread, source, message).id for message in messages]

    def remember(self, loaded: Loaded) -> None:
        """Keep a view for the next call."""
        self._remembered["view"] = loaded


def source_of(state: SessionState) -> Format:
    """The format of a session; that of most while it has no messages."""
    return formats.get(state.format or "openai-chat")


FEW = 64
"""Messages. As many are decoded in a few milliseconds."""


def _paged(ranges: Iterable[range]) -> Iterable[Sequence[range]]:
    """The same sequence numbers in the same order, in portions of at most a page."""
    portion: list[range] = []
    room = PAGE
    for one in ranges:
        start = one.start
        while start < one.stop:
            stop = min(one.stop, start + room)
            portion.append(range(start, stop))
            room -= stop - start
            start = stop
            if room == 0:
                yield portion
                portion, room = [], PAGE
    if portion:
        yield portion
