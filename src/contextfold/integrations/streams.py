"""Streams of the SDKs, opened up to their first content before a caller gets them.

A provider may accept a request with status 200 and refuse it inside the stream. Code that hands the stream out at once
can do nothing about that any more. So events are read until the first content; what refuses the request on the way is
raised, as if the request had been refused. The caller then gets a stream that gives the same events in order.

What belongs here: reading ahead, in both colors around one ``StreamProgress`` without I/O. What does not:
what to do about a refusal (``recovery``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from contextfold.calls.refused import as_mapping
from contextfold.calls.usage import Usage, get, read_usage
from contextfold.errors import RefusedInStream
from contextfold.integrations.given import filled
from contextfold.overflow import classify

TO_THE_END = frozenset(
    ("get_final_message", "get_final_text", "get_final_completion", "get_final_response", "until_done")
)
"""Helpers of the SDKs that read a stream to its end. They know nothing of what was read ahead, nor of what ended it: of
a connection that broke, they would make a whole answer.
"""

OnUsage = Callable[[Usage], object]
"""Called once, when the caller has come to the event that says how many tokens the request took."""


class StreamProgress:
    """What the events of a stream have said so far."""

    def __init__(self) -> None:
        self.has_content = False
        self.reply = Usage()
        self._is_compacted = False

    def see(self, event: Any) -> None:
        """One more event. Raises ``RefusedInStream`` if it refuses the request before any content came, and nothing
        else: an event that cannot be read is content, and the caller's.
        """
        try:
            self._see(event)
        except RefusedInStream:
            raise
        except Exception:  # noqa: BLE001 - whatever an odd event, or an object of an SDK, raises when it is looked at
            self.has_content = True

    def _see(self, event: Any) -> None:
        chunk = get(event, "chunk") or event  # OpenAI's stream helpers wrap the raw chunk
        if not self.has_content and (refusal := _refusal(chunk)) is not None:
            raise RefusedInStream(refusal)
        holder = get(chunk, "response") or get(chunk, "message") or chunk
        if isinstance(chunk, Mapping) and chunk.keys() == {"metadata"}:  # Bedrock's last event
            holder = chunk["metadata"]
        self.reply = self.reply.merged(read_usage(holder))
        self._is_compacted = self._is_compacted or "compaction" in str(get(_begun(chunk), "type"))
        if self._is_compacted:
            self.reply = replace(self.reply, input_tokens=None)
        self.has_content = self.has_content or _has_content(chunk)


def _refusal(event: Any) -> dict[str, Any] | None:
    """What an event says against the request, if that is a matter of sizes or shape; all else is the caller's."""
    kind = get(event, "type")
    if kind == "response.failed":
        said = get(get(event, "response"), "error")
    elif kind == "error" or (kind is None and get(event, "error")):
        said = get(event, "error") or event
    else:
        return None
    body = as_mapping(said)
    return body if classify(body) is not None else None


_WITHOUT_CONTENT = (
    *("message_", "content_block_", "ping", "error", "chunk", "logprobs.", "response.content_part.added"),
    *("response.created", "response.queued", "response.in_progress", "response.failed"),
)
"""How the events of the SDKs are called that may come before any content."""

_OPENS = ("content_block_start", "response.output_item.added")
"""What begins a part of an answer. Where it is text, some proxies say so before they ask; a search, an image or
thinking may take minutes from there to the first piece of text, if there is one, and its caller waits to be told.
"""


def _begun(event: Any) -> Any:
    """The block or item that an event begins."""
    return get(event, "content_block") or get(event, "item")


_CONVERSE_WITHOUT_CONTENT = {"messageStart", "contentBlockStart", "contentBlockStop", "messageStop", "metadata"}
"""The same of Bedrock, whose events are named by their only key."""


def _has_content(event: Any) -> bool:
    if isinstance(event, Mapping) and event and event.keys() <= _CONVERSE_WITHOUT_CONTENT:
        return False
    kind = str(get(event, "type") or "")
    if kind in _OPENS:
        return get(_begun(event), "type") not in (None, "text", "message")
    if _piece(event, kind) == "":
        return False
    if kind:
        return kind == "content_block_delta" or not kind.startswith(_WITHOUT_CONTENT)
    choices = get(event, "choices")
    if choices is None:
        return True  # none of the SDKs' own, such as a text: what it means is the caller's business
    # The first chunk of a chat often has the role alone, before the provider looked at the prompt.
    return any(
        value for choice in choices for name, value in as_mapping(get(choice, "delta")).items() if name != "role"
    )


def _piece(event: Any, kind: str) -> Any:
    """The text that an event brings, where it is one that does: the first piece is often empty, and stands for nothing
    but that an answer begins. OpenAI's helper makes one of its own of the chunk with the role alone.
    """
    if kind == "text":  # of Anthropic's helper, beside the delta
        return get(event, "text")
    delta = get(event if kind else get(event, "contentBlockDelta"), "delta")
    return delta if isinstance(delta, str) else get(delta, "text")


class _Handed:
    """What both colors share: in every other way it is the SDK's own stream."""

    def __init__(self, stream: Any, on_usage: OnUsage, manager: Any = None, events: Any = None) -> None:
        self._stream = stream
        self._events = stream if events is None else events
        self._left = manager if manager is not None else stream
        """What is left at the end of ``with``: the SDK's manager that gave the stream, or the stream itself."""
        self._on_usage: OnUsage | None = on_usage
        self._progress = StreamProgress()
        self._ahead: deque[Any] = deque()
        self._failed: Exception | None = None
        """What ended the stream while it was read ahead, and is the caller's: raised behind the events before it."""

    @property
    def contextfold_usage(self) -> Usage:
        """What the stream has said about its request so far."""
        return self._progress.reply

    @property  # type: ignore[misc]  # what isinstance asks, too
    def __class__(self) -> Any:
        return self._stream.__class__

    def __getattr__(self, name: str) -> Any:
        found = getattr(filled(self, "_stream", name), name)
        return partial(self._ended, found) if name in TO_THE_END else found

    def _ended(self, read: Callable[[], Any]) -> Any:
        """What a helper of the SDK says that reads the stream to its end: all events are read here before."""
        raise NotImplementedError

    def _is_callers(self, error: BaseException) -> bool:
        """Whether an error on the way to the first content leaves the caller something to read before it."""
        if not isinstance(error, Exception) or isinstance(error, RefusedInStream):
            return False
        # With nothing to read before it, the error is raised at once.
        if not self._ahead or classify(error) is not None:
            return False
        self._failed = error
        return True

    def _next_ahead(self) -> Any:
        """An event that was read ahead, or ``_NEVER``; behind the last one, what ended the stream is raised."""
        if self._ahead:
            return self._ahead.popleft()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return _NEVER

    def _see(self, event: Any) -> Any:
        """An event on its way to the caller."""
        self._progress.see(event)
        if self._on_usage is not None and self._progress.reply.input_tokens:
            on_usage, self._on_usage = self._on_usage, None
            on_usage(self._progress.reply)
        return event


class OpenedStream(_Handed):
    """A stream for ``for``, ``with`` and ``close``. Creating one reads up to the first content."""

    def __init__(self, stream: Any, on_usage: OnUsage, manager: Any = None, events: Any = None) -> None:
        super().__init__(stream, on_usage, manager, events)
        try:
            while not self._progress.has_content:
                event = self._events.__next__()
                self._progress.see(event)
                self._ahead.append(event)
        except StopIteration:
            return
        except BaseException as error:  # cancelling included: the caller has no stream yet that it could close
            if self._is_callers(error):
                return
            _closed(stream)
            raise

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        ahead = self._next_ahead()
        return self._see(self._events.__next__()) if ahead is _NEVER else ahead

    def _ended(self, read: Callable[[], Any]) -> Any:
        deque(self, maxlen=0)
        return read()

    @property
    def text_stream(self) -> Iterator[str]:
        """The text alone, as Anthropic's stream helper has it."""
        return (text for event in self if (text := _text(event)))

    def __enter__(self) -> OpenedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave(self._left, kind, error, traceback)

    def close(self) -> None:
        """Release the connection."""
        _closed(self._stream)


class AsyncOpenedStream(_Handed):
    """A stream for ``async for``, ``async with`` and ``close``. ``opened`` reads up to the first content."""

    @classmethod
    async def opened(cls, stream: Any, on_usage: OnUsage, manager: Any = None, events: Any = None) -> AsyncOpenedStream:
        handed = cls(stream, on_usage, manager, events)
        try:
            while not handed._progress.has_content:
                event = await handed._events.__anext__()
                handed._progress.see(event)
                handed._ahead.append(event)
        except StopAsyncIteration:
            return handed
        except BaseException as error:  # cancelling included: the caller has no stream yet that it could close
            if handed._is_callers(error):
                return handed
            await handed.close()
            raise
        return handed

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        ahead = self._next_ahead()
        return self._see(await self._events.__anext__()) if ahead is _NEVER else ahead

    async def _ended(self, read: Callable[[], Any]) -> Any:
        async for _ in self:
            pass
        return await read()

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The text alone, as Anthropic's stream helper has it."""
        return (text async for event in self if (text := _text(event)))

    async def __aenter__(self) -> AsyncOpenedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await aleave(self._left, kind, error, traceback)

    async def close(self) -> None:
        """Release the connection."""
        await _aclosed(self._stream)


def leave(entered: Any, *error: Any) -> None:
    """The end of ``with``, as the SDK has it: what traces a request ends its span there. Else it is closed."""
    if hasattr(type(entered), "__exit__"):
        entered.__exit__(*error)
    else:
        _closed(entered)


async def aleave(entered: Any, *error: Any) -> None:
    """``leave`` for ``async with``."""
    if hasattr(type(entered), "__aexit__"):
        await entered.__aexit__(*error)
    else:
        await _aclosed(entered)


def _closed(stream: Any) -> None:
    # What a tracer puts in the place of a stream may have no such method, and a refusal in it counts all the same.
    if (close := getattr(stream, "close", None)) is not None:
        close()


async def _aclosed(stream: Any) -> None:
    # An async generator, such as those of tracers, has it by another name.
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None:
        await close()


def opened(response: Any) -> Any:
    """A response, opened if it is a stream for blocking code."""
    return handed(response) if hasattr(response, "close") else response


async def aopened(response: Any) -> Any:
    """A response, opened if it is a stream for async code: one of an SDK, or an async generator."""
    return await ahanded(response)


def _unheard(usage: Usage) -> None:
    """Usage that no one waits for."""


def handed(response: Any, on_usage: OnUsage = _unheard, manager: Any = None) -> Any:
    """``opened`` with a listener. ``manager``: of the SDK, which gave the response when ``with`` entered it."""
    events = _iterated(iter, response, "__iter__", "__next__")
    return response if events is None else OpenedStream(response, on_usage, manager, events)


async def ahanded(response: Any, on_usage: OnUsage = _unheard, manager: Any = None) -> Any:
    """``handed`` for async code."""
    events = _iterated(aiter, response, "__aiter__", "__anext__")
    return response if events is None else await AsyncOpenedStream.opened(response, on_usage, manager, events)


def _iterated(iterate: Callable[[Any], Any], response: Any, by: str, following: str) -> Any:
    """What ``for`` goes through in a stream; None for what is no stream.

    What traces a stream may do so in ``__iter__`` alone; and one that stands for every kind of answer says only there
    which one it is.
    """
    if not hasattr(response, following):
        return None
    if not hasattr(type(response), by):
        return response
    try:
        return iterate(response)
    except TypeError:
        return None


class Generated:
    """An async generator as a stream: it is closed by another name."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    async def __anext__(self) -> Any:
        return await self._generator.__anext__()

    async def close(self) -> None:
        await _aclosed(self._generator)


_NEVER = object()


def _text(event: Any) -> str:
    delta = get(event, "delta") if get(event, "type") == "content_block_delta" else None
    return (get(delta, "text") or "") if get(delta, "type") == "text_delta" else ""
