"""Google's Agent Development Kit: every request of every agent of an app is sent compacted.

    from contextfold.integrations.google_adk import CompactionPlugin

    app = App(name="support", root_agent=agent, plugins=[CompactionPlugin(window=1_000_000)])

The session keeps all of its events; only what a model is sent gets shorter. The record in force is kept in the state
of the session, one for each agent, so it outlives the process with any session service, and is plain JSON text.

What belongs here: where ADK keeps what matters, and the state of its conversations. What does not: any decision, which
``Compactor`` makes.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

try:
    from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions, EventCompaction
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai.types import (
        Content,
        FunctionCall,
        FunctionResponse,
        GenerateContentResponseUsageMetadata,
        Part,
        ThinkingConfig,
    )
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.google_adk needs google-adk: pip install 'contextfold[google-adk]'"
    ) from error

from contextfold import formats, json_values, quoting
from contextfold.calls.thinking import thinking_beside
from contextfold.calls.usage import read_usage
from contextfold.compactor import CompactionResult, Compactor, CompactorSettings
from contextfold.errors import ContextfoldError, held, is_control_flow, text_of
from contextfold.formats import gemini_shapes as shapes
from contextfold.formats.values import media_note
from contextfold.integrations.given import listed, reading, sending_nothing, stored_record
from contextfold.integrations.google_genai import declared, system_text
from contextfold.integrations.known_lists import as_known, has_all, is_same_list, shared
from contextfold.messages import Media, Opaque
from contextfold.observe import scrub
from contextfold.overflow import classify
from contextfold.policy import Policy
from contextfold.record.compaction import Compaction
from contextfold.summary.message import CLOSE, OPEN, parse
from contextfold.tokens import Calibration
from contextfold.transcripts.document import json_in
from contextfold.transcripts.frameworks import is_adks_own

__all__ = ["CompactionPlugin", "EventsSummarizer"]

STATE = "contextfold:record:"
"""Begins the key of a record in a session's state; the name of the agent follows."""

UNMEASURED = 1 << 40
"""A window that nothing exceeds."""
ROOM = 1.25
"""Times the size of the events: a window in which all of them fit."""

REMEMBERED = 256
"""Conversations whose contents are kept in memory, so that a request costs only what is new in it."""

_log = logging.getLogger("contextfold")


@dataclass
class _Known:
    """What is remembered of the conversation of one agent in one session."""

    contents: list[Any] = field(default_factory=list)
    """Of the last request, before it was compacted."""
    view: list[Any] = field(default_factory=list)
    """What it was given in their place. Callbacks behind this plugin may have changed it since."""
    request: Any = None
    """The one that is being answered, which has what was sent in the end."""
    record: Compaction | None = None
    text: str | None = None
    """The record as text, as it is to stand in the session's state."""
    stored: str | None = None
    """What stood there at the last request: ours reaches it only with the event of an answer."""
    calibration: Calibration | None = None
    result: CompactionResult | None = None
    """Of the request that is being answered; None once its usage was read."""


class CompactionPlugin(BasePlugin):
    """Compacts what models are sent, before they refuse it and when they did all the same.

    Args:
        compactor: how; or give ``options``, which are those of ``Compactor``: ``window``, ``trigger``, ``keep``,
            ``summarizer``, ``policy`` and so on.
        name: of the plugin. An app takes no two of one name.

    Without ``window``, it is looked up for the model of each request. Raises ``PolicyError`` for a setting that is not
    allowed, and for ``summarizer="same"``: ADK's callbacks have no way to ask the model as ADK asks it itself.
    ``TypeError`` for one that is not known.
    """

    def __init__(
        self, compactor: Compactor | None = None, *, name: str = "contextfold", **options: Unpack[CompactorSettings]
    ) -> None:
        super().__init__(name=name)
        if compactor is not None and options:
            raise TypeError(f"give either a compactor or {', '.join(options)}, not both: they are its options")
        self.compactor = sending_nothing(Compactor(**options) if compactor is None else compactor)
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """The contents of a request become their view. Raises ``CannotFit`` where no view can fit, which ADK
        puts as the cause into a ``RuntimeError``.
        """
        known = self._conversation(callback_context)
        if _is_elsewhere(llm_request, callback_context):
            known.result = None
            return
        with reading("the request"):
            known.contents = _same_objects(known.contents, listed("contents", llm_request.contents))
            record, options = self._record(known, callback_context), _options(llm_request, known)
        results: list[CompactionResult] = []
        # As for a call, though ADK sends it: calls that still wait for a result get one that says so.
        await self.compactor.acall(_given, known.contents, record, on_result=results.append, **options)
        result = results[-1]
        self._take_over(known, result, callback_context)
        known.view, known.request = list(result.messages), llm_request
        _set_view(llm_request, known.view, known.contents)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """What the provider counted corrects the estimate of the next request."""
        known = self._conversation(callback_context)
        used = read_usage(llm_response).input_tokens
        # A partial answer counts the prompt too, and would teach the same request several times.
        if known.result is not None and used and not llm_response.partial:
            if has_all(known.request.contents, known.view):
                known.calibration = known.result.after_usage(used).calibration
            known.result = known.request = None

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """A refusal for size is answered by a smaller request; its answer takes the place of the error.

        Any other error is the agent's, and so is a refusal that nothing can mend.
        """
        known = self._conversation(callback_context)
        fill = known.result.tokens_after / known.result.window if known.result is not None else None
        if classify(error, fill=fill) is None or _is_elsewhere(llm_request, callback_context):
            return None
        refusals, results = [error], list[CompactionResult]()
        llm = callback_context.get_invocation_context().agent.canonical_model
        contents, record = known.contents, self._record(known, callback_context)
        # What an agent's own callback put in or took out stays so: such a list is compacted as it was refused, and the
        # session keeps the record of what it has.
        changed = [] if is_same_list(llm_request.contents, known.view) else list(llm_request.contents)
        if changed:
            contents, record = changed, None

        async def send(view: list[Any]) -> Any:
            if refusals and (not changed or is_same_list(view, changed)):
                raise refusals.pop()  # the very view that was refused: it is not sent again
            known.view, known.request = list(view), llm_request
            _set_view(llm_request, view, contents)
            answers = [answer async for answer in llm.generate_content_async(llm_request, stream=False)]
            return answers[-1]

        try:
            answer = await self.compactor.acall(
                send, contents, record, on_result=results.append, **_options(llm_request, known)
            )
        except Exception as failed:
            if is_control_flow(failed):
                raise
            _log.warning("a refused request could not be made smaller: %s", scrub(text_of(failed)))
            return None
        if changed:
            known.result, known.calibration = results[-1], results[-1].calibration
        else:
            self._take_over(known, results[-1], callback_context)
        return answer

    def _conversation(self, context: Any) -> _Known:
        session = context.session
        key = (session.app_name, session.user_id, session.id, context.agent_name, context.branch or "")
        known = self._known.setdefault(key, _Known())
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return known

    def _record(self, known: _Known, context: Any) -> Compaction | None:
        """The record in the session's state."""
        text = context.state.get(STATE + context.agent_name)
        # Another process may have made it, and a rewind may have taken it back. One that was paid for before a model
        # failed is not there, and is used all the same.
        if text not in (known.text, known.stored):
            readable = text if _has_spoken(context) else None
            known.text, known.record = text, stored_record("the session's state", readable)
        known.stored = text
        return known.record

    def _take_over(self, known: _Known, result: CompactionResult, context: Any) -> None:
        known.result = result
        known.calibration = result.calibration
        if result.compaction is not known.record:
            known.record = result.compaction
            known.text = None if known.record is None else known.record.to_json()
        if known.text != known.stored:
            context.state[STATE + context.agent_name] = known.text


def _given(view: list[Any]) -> None:
    """Sends nothing: the view is all that is wanted."""


def _is_elsewhere(request: Any, context: Any) -> bool:
    """Whether the provider keeps the conversation (the Interactions API, a live connection) and is sent what is new in
    it alone. There is nothing to compact here then: a summary would be paid for, and left out by ADK.
    """
    is_live = context.get_invocation_context().live_request_queue is not None
    return is_live or bool(held(request, "previous_interaction_id"))


def _has_spoken(context: Any) -> bool:
    """Whether the agent has said anything in this session. If not, a record there was handed over: each call of an
    agent as a tool is a session of its own, which begins with the caller's state, and so with the record of the call
    before.
    """
    return any(event.author == context.agent_name for event in context.session.events)


def _same_objects(before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    # ADK builds the contents again for each request. As the same objects the conversation is recognized, and only what
    # is new is read.
    return as_known(before, now, shared(before, now))


def _options(request: Any, known: _Known) -> dict[str, Any]:
    """For ``Compactor.acompact``: what is sent besides the contents, and where to."""
    return {
        "format": "gemini",
        "system": system_text(shapes.get(request.config, "system_instruction")),
        "tools": declared(shapes.get(request.config, "tools")),
        "model": request.model,
        "calibration": known.calibration,
    }


def _set_view(request: Any, view: Sequence[Any], contents: Sequence[Any]) -> None:
    """Send a view of the contents, and of Claude no budget for thinking that it would refuse beside this view."""
    request.contents = list(view)
    budget = shapes.get(shapes.get(request.config, "thinking_config"), "thinking_budget")
    if isinstance(budget, int) and budget > 0:
        thinking = {"type": "enabled", "budget_tokens": budget}
        if thinking_beside(thinking, view, contents, "gemini", request.model) is not thinking:
            request.config = request.config.model_copy(update={"thinking_config": ThinkingConfig(thinking_budget=0)})


# ---- ADK's own compaction, with our summaries ----


class EventsSummarizer(BaseEventsSummarizer):
    """Summaries for ADK's own compaction of events, ``EventsCompactionConfig(summarizer=EventsSummarizer(...))``.

    ADK decides when, and which events; it may never offer a range with an orphaned call in it. ``CompactionPlugin``
    decides by itself and has no such limit, so prefer it; never use both in one app.

    Args:
        summarizer: whatever ``Compactor`` takes; None for the built-in one, which needs no model.
        window: of the agent's model, in tokens. None: as large as fits the events that ADK gives, so that what stays of
            them is a part of them under any ``token_threshold``.
    """

    def __init__(self, summarizer: Any = None, *, window: int | None = None) -> None:
        self._summarizer, self._window = summarizer, window
        self.compactor = self._compactor(UNMEASURED if window is None else window)

    def _compactor(self, window: int) -> Compactor:
        # ADK has decided that these events go: no threshold of ours stands in the way, and as little as can be is kept
        policy = Policy(trigger=None, keep=("messages", 1), minimum_gain=0)
        return sending_nothing(Compactor(window=window, policy=policy, summarizer=self._summarizer))

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """One event that stands for these; None, and a line in the log, where no summary could be made.

        What the first and the newest message of the user say stays word for word; calls stay with their results.
        """
        try:
            with reading("the events"):
                contents = [content for number, event in enumerate(events) for content in _contents_of(event, number)]
            if not contents:
                return None
            compactor = self.compactor
            if self._window is None:
                seen = await compactor.acompact(contents, format="gemini")  # no trigger: it only looks
                compactor = self._compactor(max(1_000, int(ROOM * seen.estimated_tokens)))
            result = await compactor.acompact(contents, format="gemini", force=True)
            with reading("the events"):
                told = _told(result.messages)
        except ContextfoldError as failed:
            _log.warning("events were not compacted, and stay as they are: %s", scrub(text_of(failed)))
            return None
        if result.compaction is None:
            _log.warning("events were not compacted, and stay as they are: there is nothing to gain")
            return None
        # ADK's own has the role model, and then stands first where the API wants the user
        whole = Content(role="user", parts=[Part(text=told)])
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp, end_timestamp=events[-1].timestamp, compacted_content=whole
        )
        return Event(
            author="user",
            actions=EventActions(compaction=compaction),
            invocation_id=Event.new_id(),
            usage_metadata=_spent(result.compaction),
        )


def _spent(record: Compaction) -> GenerateContentResponseUsageMetadata | None:
    """What a summary took; None where no model was asked."""
    summary = record.summary
    if summary is None or not summary.calls:
        return None
    read, written = summary.input_tokens, summary.output_tokens
    # Where ADK's own compaction puts it, so that it is counted with the rest of a session.
    return GenerateContentResponseUsageMetadata(
        prompt_token_count=read, candidates_token_count=written, total_token_count=read + written
    )


def _contents_of(event: Event, number: int) -> list[Content]:
    """What an event says: its content, or what an earlier compaction was told."""
    compaction = event.actions.compaction if event.actions else None
    content = (event.content or _spoken(event)) if compaction is None else compaction.compacted_content
    if content is None or not content.parts or is_adks_own(content):
        return []
    # ADK gives the earlier one as the first event, which says nothing else of itself: a model never speaks as the user.
    is_earlier = compaction is not None or (number == 0 and event.author == "model")
    if is_earlier and content.role == "user" and (text := "".join(part.text or "" for part in content.parts)):
        return _untold(text)
    # without a role it would be the user's; whose it is, the event says
    author = "user" if event.author == "user" else "model"
    return [content if content.role else content.model_copy(update={"role": author})]


def _spoken(event: Event) -> Content | None:
    """What was spoken in a live session, by its transcript, as ADK makes a content of it for a request."""
    for role, name in (("user", "input_transcription"), ("model", "output_transcription")):
        if text := held(held(event, name), "text"):
            return Content(role=role, parts=[Part(text=text)])
    return None


def _told(view: Sequence[Any]) -> str:
    """A view as one text, with who said what. What was said cannot pass for one of these marks, or for a summary."""
    lines = []
    for content in view:
        role = quoting.word(str(content.role))
        for part in content.parts or ():
            if part.text and not part.thought:
                is_ours = role == "user" and parse(part.text) is not None
                lines.append(part.text if is_ours else f"[{role}] {quoting.quoted(part.text)}")
            elif part.function_call is not None:
                call = part.function_call
                lines.append(f"[{role} called {quoting.word(str(call.name))}] {_json(call.args or {})}")
            elif part.function_response is not None:
                answer = part.function_response
                lines.append(f"[{quoting.word(str(answer.name))} answered] {_json(answer.response or {})}")
            else:
                lines += [f"[{role}] {quoting.quoted(note)}" for note in _notes(content, part)]
    return "\n\n".join(lines)


def _notes(content: Content, part: Part) -> Iterator[str]:
    """What stands in a text for a part that is none: which file it was, or the code that ran and what came of it."""
    for one in _GEMINI.decode(content.model_copy(update={"parts": [part]})).parts:
        if isinstance(one, Media):
            yield media_note(one).text
        elif isinstance(one, Opaque) and one.text:
            yield one.text


_GEMINI = formats.get("gemini")
_TAG = re.compile(rf"^(?:({OPEN})|{CLOSE})$", re.MULTILINE)
_MARKED = re.compile(r"^\[(?:(user|model)|model called ([^\]\n]*)|([^\]\n]*) answered)\] ", re.MULTILINE)


def _untold(text: str) -> list[Content]:
    """The contents that ``_told`` made a text of: the next compaction updates the summary among them, and takes the
    words for those of the same speakers.
    """
    contents: list[Content] = []
    for is_summary, block in _parted(text):
        if is_summary:
            contents.append(Content(role="user", parts=[Part(text=block)]))
            continue
        before, *marked = _MARKED.split(block)
        for role, called, name, rest in [("user", None, None, before), *zip(*[iter(marked)] * 4, strict=True)]:
            if said := quoting.unquoted(rest.strip()):
                _add(contents, _part(said, called, name), role or ("user" if called is None else "model"))
    return contents


def _parted(text: str) -> Iterator[tuple[bool, str]]:
    """The summaries in such a text, and what stands before, between and behind them."""
    end, begun = 0, None
    for tag in _TAG.finditer(text):
        if tag[1]:
            begun = tag.start() if begun is None else begun
        elif begun is not None:
            yield False, text[end:begun]
            yield True, text[begun : tag.end()]
            end, begun = tag.end(), None
    yield False, text[end:]


def _part(said: str, called: str | None, answered: str | None) -> Part:
    """A part of what stands behind one of our marks. A text that someone else wrote may have a line that looks so."""
    if called is None and answered is None:
        return Part(text=said)
    value = json_in(said)
    if not isinstance(value, dict):
        return Part(text=f"[{f'{answered} answered' if called is None else f'model called {called}'}] {said}")
    if called is not None:
        return Part(function_call=FunctionCall(name=called, args=value))
    return Part(function_response=FunctionResponse(name=answered, response=value))


def _add(contents: list[Content], part: Part, role: str) -> None:
    """Calls that were made at once stand in one content, and so do their results."""
    last = contents[-1] if contents else None
    if last is not None and last.parts and last.role == role and (role == "model" or part.function_response):
        last.parts.append(part)
    else:
        contents.append(Content(role=role, parts=[part]))


def _json(value: Any) -> str:
    return quoting.quoted(json_values.write(shapes.plain(value)))
