"""The facade: ``Compactor``.

What belongs here: arguments in, result out, the sync and async doors. What does not: decisions (``passes``), the
view of a request (``calls.views``), what follows a refusal (``calls.recovery``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from contextfold.calls.memory import REMEMBERED
from contextfold.calls.request import (
    UNLIMITED,
    After,
    AsyncCallOptions,
    Before,
    CompactionResult,
    CompactOptions,
    Once,
    Request,
)
from contextfold.calls.same import SAME, Ask
from contextfold.calls.views import Views
from contextfold.errors import PolicyError, check_callable, functions, held, plain_functions, plain_integer, shown
from contextfold.limits import Limits
from contextfold.observe import Event, Hooks, Observer, SummaryEnd, SummaryPiece, SummaryProgress, SummaryStart
from contextfold.passes.means import Archiver
from contextfold.policy import Policy, SizeInput, TriggerInput
from contextfold.ports import AsyncPorts, Cancellation, Ports, Sends, SyncPorts, hand_over, run
from contextfold.record.compaction import Compaction
from contextfold.summary.summarizer import EXTRACTIVE, Summarizer, as_summarizer
from contextfold.tokens import Calibration
from contextfold.window import Windows, WindowStore, name_and_profile

if TYPE_CHECKING:
    from contextfold.calls.recovery import Exchange
    from contextfold.passes.without_pass import Revise
    from contextfold.store import Session
    from contextfold.store.options import SessionKeywords

__all__ = ["After", "Before", "CompactionResult", "Compactor"]

T = TypeVar("T")

UNSET: Any = object()


def policy_of(policy: Policy | None, **fields: Any) -> Policy:
    """The policy, or one with those of its fields that are given, not both. Raises ``PolicyError``."""
    given = {name: value for name, value in fields.items() if value is not UNSET}
    if policy is not None and given:
        raise PolicyError(f"give either policy or {', '.join(given)}, not both: they are fields of the policy")
    if not isinstance(policy, Policy | None):
        raise PolicyError(f"policy must be a Policy, not {shown(policy)}")
    return policy if policy is not None else Policy(**given)


class CompactorWiring(TypedDict, total=False):
    """What a ``Compactor`` takes besides the settings that say what it does."""

    count_text: Callable[[str], int] | None
    on_event: Callable[[Event], object] | None
    on_start: Callable[[SummaryStart], object] | None
    on_stream: Callable[[SummaryPiece], object] | None
    on_progress: Callable[[SummaryProgress], object] | None
    on_end: Callable[[SummaryEnd], object] | None
    windows: WindowStore | None
    remembered: int


class WindowlessSettings(CompactorWiring, total=False):
    """The arguments of a ``Compactor`` but for ``window``."""

    model: Any
    trigger: TriggerInput
    target: SizeInput | None
    keep: SizeInput | None
    summarizer: Any
    policy: Policy | None


class CompactorSettings(WindowlessSettings, total=False):
    """The arguments of a ``Compactor``, for functions that hand them on."""

    window: int | None


class Compactor:
    """Keeps conversations inside a window. One instance serves any number of conversations and threads.

    Args:
        window: input tokens of the receiving model. None: looked up for ``model``, else learned from refusals, else a
            conservative default.
        model: name of the receiving model, such as ``"openai:gpt-5"``, or a chat model object that has a profile.
        trigger, target, keep: see ``Policy``; or give the whole ``policy`` instead.
        summarizer: None or ``"extractive"`` for the built-in one; ``"openai:MODEL"`` or ``"anthropic:MODEL"``; a
            ``SummaryModel``; a LangChain chat model; a callable from prompt to text, sync or async. ``"same"``: the
            model that a request goes to, behind the view that its provider has in the cache (``call``, ``acall``,
            wrapped clients, LangChain's agents; ``compact`` sends nothing and refuses it).
        count_text: tokens of a text, to replace the built-in estimate.
        on_event: called with each ``Event`` as it happens; a plain function.
        on_start, on_stream, on_progress, on_end: called around each summary by a model (``observe.Hooks``), with text
            as it arrives; sync or async, in the sync API perhaps from several threads.
        windows: keeps windows that refusals taught beyond this process (``window.WindowStore``).
        remembered: conversations that are kept in memory between calls, so that a turn costs only what is new in it.

    Raises ``PolicyError`` when a setting is not allowed.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        model: Any = None,
        trigger: TriggerInput = UNSET,
        target: SizeInput | None = UNSET,
        keep: SizeInput | None = UNSET,
        summarizer: Any = None,
        policy: Policy | None = None,
        count_text: Callable[[str], int] | None = None,
        on_event: Callable[[Event], object] | None = None,
        on_start: Callable[[SummaryStart], object] | None = None,
        on_stream: Callable[[SummaryPiece], object] | None = None,
        on_progress: Callable[[SummaryProgress], object] | None = None,
        on_end: Callable[[SummaryEnd], object] | None = None,
        windows: WindowStore | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        self._made_with = {name: value for name, value in locals().items() if name != "self" and value is not UNSET}
        of_subclass = vars(self).keys() - {"_made_with"}
        self.policy = policy_of(policy, trigger=trigger, target=target, keep=keep)
        if windows is not None and not all(callable(held(windows, name)) for name in ("load_window", "save_window")):
            raise PolicyError(f"windows must have load_window and save_window, and this is {type(windows).__name__}")
        name, profile = name_and_profile(model)
        self.windows = Windows(window, name, profile, windows)
        self.window = self.windows.assumed()
        # Here already: settings that do not go together are refused before the first conversation, not in the middle of
        # one.
        self.limits = Limits.of(self.policy, self.window.tokens)
        self.summarizer = _summarizer(summarizer)
        self._is_same = summarizer == SAME if isinstance(summarizer, str) else False
        kept = plain_integer(remembered)
        if kept is None or kept < 0:
            raise PolicyError(f"remembered is {shown(remembered)}: it must be a whole number of conversations")
        self._remembered = kept
        self._parts: Any = None
        self._views = Views(self.policy, self.windows, self.summarizer, count_text, kept, same=self._is_same)
        self._count_text = count_text
        plain_functions(count_text=count_text, on_event=on_event)
        functions(on_start=on_start, on_stream=on_stream, on_progress=on_progress, on_end=on_end)
        self._on_event = on_event
        self._hooks = Hooks(on_start, on_stream, on_progress, on_end)
        self._ours = frozenset(vars(self).keys() - of_subclass | {"_ours"})

    def compact(
        self,
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        format: str | None = None,
        to: str | None = None,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        force: bool = False,
        instructions: str = "",
        before: Before | None = None,
        after: After | None = None,
        calibration: Calibration | None = None,
        model: str | None = None,
        endpoint: str = "",
        cancel: Cancellation | None = None,
        archive: Archiver | None = None,
    ) -> CompactionResult:
        """The view of a conversation, compacted if the policy says so. Nothing that is passed in is changed.

        Args:
            messages: the full history, in any supported format; never a view of an earlier call.
            previous: the record in force, from the last call or from a store.
            format: the format of ``messages``; detected if not given.
            to: the format of the view; the one that came in if not given.
            system, tools: what is sent besides the messages; they count.
            force: compact now, whatever the trigger says.
            instructions: extra instructions for the summarizer, for this call.
            before, after: hooks around a pass; the first may veto it or pin more, the second saves what it wants.
            calibration: what the provider's usage taught so far, ``out.calibration`` of the last turn. None: nothing.
            model, endpoint: where the view will go, if that differs from call to call: a window is looked up for the
                name, and what refusals taught is kept for both (``endpoint``: the base URL).
            cancel: a ``threading.Event`` or the like; once it is set, the call ends with ``Cancelled``. Async code
                cancels its task instead.
            archive: gets the originals of what leaves the view, before it does; ``open_archive(...).thread(id)`` of
                ``contextfold.archive``. Where it fails, nothing leaves.

        Raises ``InputError`` for data that is not a conversation, ``CannotFit`` when no compaction can reach the
        target, ``SummaryFailed`` when there is no acceptable summary and no way to go on without one, ``Cancelled``.
        Nothing has changed then.
        """
        request = Request.of(
            messages,
            previous,
            format=format,
            to=to,
            system=system,
            tools=tools,
            force=force,
            instructions=instructions,
            before=before,
            after=after,
            calibration=calibration,
            model=model,
            endpoint=endpoint,
            cancel=cancel,
            archive=archive,
        )
        self._needs_no_model()
        return run(self._views.view(request, self._blocking(request), self._observer()))

    async def acompact(
        self, messages: Sequence[Any], previous: Compaction | None = None, **options: Unpack[CompactOptions]
    ) -> CompactionResult:
        """``compact`` for async code: the same arguments and algorithm, and it never blocks the event loop."""
        request = Request.of(messages, previous, **options)
        self._needs_no_model()
        return await self._views.view(request, self._suspending(request), self._observer())

    def call(
        self,
        send: Sends[T],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        max_tokens: int | None = UNLIMITED,
        on_result: Callable[[CompactionResult], object] | None = None,
        ask: Ask | None = None,
        **options: Unpack[CompactOptions],
    ) -> T:
        """Send a conversation: ``send(view)``, compacted before, and once more if the provider says it does not fit.

        Args:
            send: sends a view and returns the response; any exception of the provider's SDK may come out of it.
            max_tokens: the answer limit, if ``send`` takes one: it is then called ``send(view, max_tokens)``, and
                with a lower one where the provider says that prompt and answer together do not fit.
            on_result: gets the result whose view was answered; its ``compaction`` and ``calibration`` are the next
                call's ``previous`` and ``calibration``. Sync or async.
            ask: with ``summarizer="same"``, how the model is asked for a summary, if not by ``send``:
                ``ask(messages, whole, answer_tokens)`` returns the response; ``whole``: with system prompt and tools.
                ``answer_tokens``: the answer limit to send in place of ``max_tokens``, which may be too low for a
                summary, and too high beside the prompt; 0: as it is.
            options: as for ``compact``.

        After a refusal the view is sent again only if it is strictly smaller, or mended where it was refused as
        malformed. Raises ``StillTooLong`` when every view was refused for its size, and what ``send`` raised otherwise.
        """
        request = replace(Request.of(messages, previous, **options), ask=ask or _asking(send, max_tokens))
        check_callable(on_result=on_result)
        exchange = self._exchange(send, request, max_tokens, self._blocking(request))
        response, result = run(exchange.answer())
        if on_result is not None:
            run(hand_over(self._blocking(request), on_result, result))
        answer: T = response
        return answer

    @overload
    async def acall(
        self,
        send: Sends[Awaitable[T]],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        **options: Unpack[AsyncCallOptions],
    ) -> T: ...

    @overload
    async def acall(
        self,
        send: Sends[Awaitable[T] | T],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        **options: Unpack[AsyncCallOptions],
    ) -> T: ...

    async def acall(
        self,
        send: Callable[..., Any],
        messages: Sequence[Any],
        previous: Compaction | None = None,
        *,
        max_tokens: int | None = UNLIMITED,
        on_result: Callable[[CompactionResult], object] | None = None,
        ask: Ask | None = None,
        once: Once | None = None,
        whose: bytes = b"",
        **options: Unpack[CompactOptions],
    ) -> Any:
        """``call`` for async code; ``send`` may be sync or async.

        ``once``: where several processes share a conversation, ``await once(base, make)`` returns the summary that
        ``make`` prepares in the background, or the one that another has prepared behind the record ``base``; without
        ``make``, the latter, or True where another is at it. ``whose``: where one compactor serves several people,
        stands for this one; what was prepared for the others is not for it, even if they said the same.
        """
        asks = ask or _asking(send, max_tokens)
        request = replace(Request.of(messages, previous, **options), ask=asks, once=once, whose=whose)
        check_callable(on_result=on_result)
        exchange = self._exchange(send, request, max_tokens, self._suspending(request))
        response, result = await exchange.answer()
        if on_result is not None:
            await hand_over(self._suspending(request), on_result, result)
        return response

    def due(
        self, messages: Sequence[Any], previous: Compaction | None = None, **options: Unpack[CompactOptions]
    ) -> str | None:
        """Why ``compact`` with the same arguments would make a pass now, such as ``"fraction:0.8"``; None if it would
        not. Nothing is compacted, and no model is asked. A pass that is due may still find nothing worth its rewrite.

        Raises ``InputError`` for data that is not a conversation.
        """
        request = Request.of(messages, previous, **options)
        return run(self._views.due(request, self._blocking(request), self._observer()))

    def __repr__(self) -> str:
        model = f", model={self.windows.model!r}" if self.windows.model else ""
        trigger = f"{self.limits.trigger:,}" if self.limits.trigger is not None else "none"
        return (
            f"<Compactor window={self.window.tokens:,} ({self.window.source}){model}, trigger={trigger}, "
            f"target={self.limits.target:,}, summarizer={'built-in' if self.summarizer is None else self.summarizer!r}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, and one that was sent to another process, has the same settings and remembers no conversation."""
        of_subclass = {name: value for name, value in vars(self).items() if name not in self._ours}
        return _made_again, (type(self), self._made_with), of_subclass or None

    def session(
        self, thread_id: str, store: Any = "sqlite:///contextfold.db", **options: Unpack[SessionKeywords]
    ) -> Session:
        """A conversation that outlives the process, on ``sqlite:///FILE``, ``postgresql+psycopg://...`` or an object
        that is a ``SummaryStore``.

        ``options`` are ``namespace``, ``options`` (a ``SessionOptions`` or a mapping), ``user``,
        ``get_optimization_config`` and ``format``, as ``contextfold.store.Session`` takes them. Raises ``InputError``
        for a thread id or store that cannot be, ``PolicyError`` for an option.
        """
        self._needs_no_model()
        door = import_module("contextfold.store")  # imports point inward: this is the one door outward, opened late
        if self._parts is None:
            self._parts = door.EngineParts(
                self.policy, self.windows, self.summarizer, self._count_text, self._observer, self._remembered
            )
        session: Session = door.open_session(self._parts, thread_id, store, **options)
        return session

    def _exchange(self, send: Callable[..., Any], request: Request, max_tokens: Any, ports: Ports) -> Exchange:
        from contextfold.calls.recovery import Exchange  # only what is sent can be refused

        observer = self._observer()

        async def compact(
            request: Request, *, window: int | None = None, revise: Revise | None = None, strict: bool = False
        ) -> CompactionResult:
            return await self._views.view(request, ports, observer, window=window, revise=revise, strict=strict)

        limit = max_tokens if isinstance(max_tokens, int) else None
        sent = replace(request, sending=True, answer_limit=limit)
        return Exchange(send, sent, compact, self.windows, self.policy, observer, ports, max_tokens)

    def _needs_no_model(self) -> None:
        if self._is_same:
            raise PolicyError(
                'summarizer="same" asks the model that a request goes to, and nothing is sent here: '
                "use call, acall or a wrapped client, or name a summarizer"
            )

    def _remembers_with(self, other: Compactor) -> Compactor:
        """This one, with what another knows of conversations: for a face whose window or target differs from call to
        call. Both count texts alike."""
        self._views.memory = other._views.memory
        return self

    def _observer(self) -> Observer:
        return Observer(self._on_event, self._hooks)

    def _blocking(self, request: Request) -> Ports:
        return SyncPorts(self.policy.summary.parallel, cancel=request.cancel)

    def _suspending(self, request: Request) -> Ports:
        return AsyncPorts(self.policy.summary.parallel, cancel=request.cancel)


def _made_again(kind: type[Compactor], settings: Mapping[str, Any]) -> Compactor:
    made = kind.__new__(kind)
    Compactor.__init__(made, **settings)  # that of a subclass may take other arguments
    return made


def _summarizer(value: Any) -> Summarizer | None:
    value = str.__str__(value) if isinstance(value, str) else value
    if value is None or (isinstance(value, str) and value in (EXTRACTIVE, SAME)):
        return None
    return as_summarizer(value)


def _asking(send: Callable[..., Any], max_tokens: Any) -> Ask:
    """How to ask the model of a request for a summary: as its view is sent."""

    def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
        if max_tokens is UNLIMITED:
            return send(messages)
        # The limit is for answers to the conversation; a summary that is cut off by it would be paid for and thrown
        # away.
        return send(messages, max_tokens if max_tokens is None else answer_tokens or max_tokens)

    return ask
