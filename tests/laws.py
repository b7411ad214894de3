"""The laws of the design, checked on what comes out of a compactor: by wire messages, and by nothing of the engine.

What belongs here: one function per law, from one ``Pass`` to what it violates, and ``Session``, which grows a
conversation and checks every pass. What does not: reading wire messages (``wire``), and histories to try (the
strategies of ``contextfold.testing`` and the real conversations of ``benchmarks/laws.py``).

Every violation is one line that starts with the law. An empty list means that all laws held.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import contextfold
import wire
from contextfold import quoting
from contextfold.conversation.repair.pairing import UNANSWERED
from wire import Entry

FATES = ("kept", "pinned", "shortened", "summarized", "dropped")
GONE = ("summarized", "dropped")
SUMMARY_MARK = "<conversation_summary>"
NOTE = re.compile(
    r"\s*(?:<(environment_context|user_instructions|system-reminder)>.*?</\1>\s*)*+"
    r"(?:\Z|<(?:environment_context|user_instructions|system-reminder|local-command|command-name)"
    r"|# AGENTS\.md|Caveat:|\[Request interrupted by user)",
    re.DOTALL,
)
"""What coding agents write into user messages by themselves: no one's first words."""

FRAME = 4
"""Tokens that a message takes besides its content."""

SHORTEST_SEGMENT = 150
"""Letters and digits. A message that is split over several prompts is split into pieces of at least about this size."""


@dataclass(frozen=True)
class Pass:
    """One call of a compactor: what it was given, and what came out."""

    format: str
    history: Sequence[Any]
    out: Any
    target: int
    trigger: int | None = None
    """Tokens at which compaction starts; None: no such trigger."""
    previous_view: Sequence[Any] | None = None
    accepted: Sequence[str] | None = None
    """The prompts that were answered in this call; None where no one recorded them."""
    told: frozenset[int] = frozenset()
    """Messages whose text was in an earlier answered prompt, and which the record in force already covered."""

    known: list[Entry] | None = None
    """The history as ``wire.read`` gives it, if the caller has it already."""

    @cached_property
    def entries(self) -> list[Entry]:
        return self.known if self.known is not None else wire.read(self.format, self.history)

    @property
    def spoken(self) -> list[Entry]:
        """The history without what is left out where a provider refuses it: messages of the assistant that say nothing.

        Those of the user stay, as a note.
        """
        return [entry for entry in self.entries if not entry.is_empty or entry.role == "user"]

    @property
    def instructed_late(self) -> bool:
        """Whether an instruction stands behind other messages: then it may become one of the user's."""
        return any(
            after.is_instruction and not entry.is_instruction for entry, after in itertools.pairwise(self.entries)
        )

    @cached_property
    def view(self) -> list[Entry]:
        reader = wire.READERS[self.format]
        place_of = self.place_of
        return [
            self.entries[place_of[id(message)]] if id(message) in place_of else reader(message)
            for message in self.out.messages
        ]

    @cached_property
    def ledger(self) -> list[Any]:
        return list(self.out.ledger)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """id of a history object -> its index."""
        return {id(message): index for index, message in enumerate(self.history)}

    @cached_property
    def own(self) -> set[int]:
        """Indices of the history whose very objects are in the view."""
        return {self.place_of[id(message)] for message in self.out.messages if id(message) in self.place_of}

    @cached_property
    def changed_view(self) -> list[Entry]:
        """What is in the view and is no object of the history: summary, shortened, joined and mended messages."""
        return [
            entry
            for entry, message in zip(self.view, self.out.messages, strict=True)
            if id(message) not in self.place_of
        ]

    @cached_property
    def refusals_before(self) -> Counter[wire.Fault]:
        return wire.refusals(self.format, self.entries)

    @property
    def in_force(self) -> bool:
        return self.out.compaction is not None


def violations(
    format: str, history: Sequence[Any], out: Any, *, target: int, trigger: int | None = None, **more: Any
) -> list[str]:
    """What one call of a compactor violates; ``more`` are the other fields of ``Pass``."""
    case = Pass(format, history, out, target, trigger, **more)
    return [problem for check in CHECKS for problem in check(case)]


# ---- conservation ----------------------------------------------------------------------------------------------------


def every_message_has_one_fate(case: Pass) -> Iterator[str]:
    indices = [entry.index for entry in case.ledger]
    if indices != list(range(len(case.history))):
        yield f"conservation: the ledger has entries for {indices[:9]}..., and the history {len(case.history)} messages"
    for entry in case.ledger:
        if entry.fate not in FATES:
            yield f"conservation: message {entry.index} has the fate {entry.fate!r}"
        if entry.fate != "kept" and not entry.reason:
            yield f"conservation: message {entry.index} is {entry.fate} without a reason"
    counted = Counter(entry.fate for entry in case.ledger)
    if {fate: n for fate, n in case.out.ledger.counts().items() if n} != dict(counted):
        yield f"conservation: counts() says {case.out.ledger.counts()}, the entries {dict(counted)}"


def kept_messages_are_whole(case: Pass) -> Iterator[str]:
    """The same object, or, where it was joined with a neighbor or moved to its place, all of it."""
    for entry in case.ledger:
        if entry.fate in ("kept", "pinned") and entry.index not in case.own:
            original = case.entries[entry.index]
            if not original.is_empty and not any(holds(part, original) for part in case.changed_view):
                yield f"conservation: message {entry.index} ({original.role}) is {entry.fate} and not whole in the view"


def gone_messages_are_gone(case: Pass) -> Iterator[str]:
    for entry in case.ledger:
        if entry.fate in GONE and entry.index in case.own:
            yield f"conservation: message {entry.index} is {entry.fate} and still in the view"
        if entry.fate == "shortened" and entry.index in case.own:
            yield f"conservation: message {entry.index} is shortened and unchanged in the view"


def nothing_unreadable_is_called_summarized(case: Pass) -> Iterator[str]:
    """What no one can read cannot be in a prompt: it must be kept, or dropped with a reason."""
    for entry in case.ledger:
        if entry.fate == "summarized" and case.entries[entry.index].unreadable:
            yield f"conservation: message {entry.index} is summarized, but only its provider can read it"


def summarized_messages_were_read(case: Pass) -> Iterator[str]:
    if case.accepted is None:
        return
    prompts: list[str] | None = None
    for entry in case.ledger:
        if entry.fate != "summarized" or entry.index in case.told or case.entries[entry.index].is_instruction:
            continue
        if prompts is None:
            prompts = ["\n".join(squeezed(prompt) for prompt in case.accepted)]
        missing = [
            text
            for text in readable(case.entries[entry.index])
            # what only commands a terminal is no word of it
            if not any(was_read(said, prompts[0]) for said in (text, escaped(text), quoting.readable(text)))
        ]
        if missing:
            yield f"conservation: message {entry.index} is summarized, but no answered prompt had {missing[0][:60]!r}"


def readable(entry: Entry) -> Iterator[str]:
    """Every text of a message that a summarizer must be shown: not its reasoning, and not its media."""
    yield from entry.texts
    yield from entry.arguments
    for _, texts in entry.results:
        yield from texts


def escaped(text: str) -> str:
    """The text as it stands in JSON of ASCII characters only: so do some clients write arguments."""
    return json.dumps(text)


_NOISE = re.compile(r'(?:\\+["nrtu]?|[^\w\\]+|_+)+')


def squeezed(text: str) -> str:
    """Letters and digits only: quoting, escaping, indentation and neutralized tags do not matter."""
    return _NOISE.sub("", text)


def was_read(text: str, prompts: str) -> bool:
    """Whether all of a text stands in squeezed prompts: whole, or in few long pieces where it was split."""
    rest = squeezed(text)
    pieces = 2 + len(rest) // SHORTEST_SEGMENT
    while rest and pieces:
        length = _longest_beginning(rest, prompts)
        if not length:
            return False
        rest = rest[length:]
        pieces -= 1
    return not rest


def _longest_beginning(text: str, prompts: str) -> int:
    """How many characters of the beginning of ``text`` stand in ``prompts`` in one piece."""
    if text in prompts:
        return len(text)
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if text[:middle] in prompts else (low, middle)
    return low


# ---- integrity -------------------------------------------------------------------------------------------------------


def a_provider_accepts_the_view(case: Pass) -> Iterator[str]:
    """No refusals; apart from calls that never had a result in the history, and, before the first pass, its own."""
    never_answered = unanswered(case.entries)
    for (kind, call_id), times in wire.refusals(case.format, case.view).items():
        tolerated = case.refusals_before[kind, call_id]
        if kind == "call without result" and not tolerated:  # of two calls of one id the later one got a number
            tolerated = case.refusals_before[kind, unnumbered(call_id)]
        if case.in_force and not (
            kind == "call without result" and (never_answered[call_id] or never_answered[unnumbered(call_id)])
        ):
            tolerated = tolerated if kind == "text before a result" else 0
        if times > tolerated:
            yield f"integrity: a provider refuses the view: {kind} ({call_id})"


def nothing_in_the_view_breaks_a_rule_of_its_format(case: Pass) -> Iterator[str]:
    """Whether compacted or not, and however the history arrived."""
    if not all(entry.is_instruction for entry in case.entries):
        read_as = getattr(case.out, "format", case.format)  # nothing but roles and text is read as openai-chat
        for what, times in wire.rule_breaks(read_as, case.out.messages).items():
            yield f"integrity: a provider refuses the view: {what} ({times} times)"


def unanswered(entries: Sequence[Entry]) -> Counter[str]:
    """Calls for which no later result stands in the history, by id."""
    waiting: Counter[str] = Counter()
    for entry in entries:
        for call_id in entry.result_ids:
            waiting[call_id] = max(0, waiting[call_id] - 1)
        waiting.update(entry.call_ids)
    return +waiting


def parallel_calls_stay_whole(case: Pass) -> Iterator[str]:
    in_view = Counter(call_id for entry in case.view for call_id in entry.call_ids)
    in_history = Counter(call_id for entry in case.entries for call_id in entry.call_ids)
    for turn in turns_with_calls(case.format, case.entries):
        unique = [call_id for call_id in turn if in_history[call_id] == 1]
        there = [call_id for call_id in unique if in_view[call_id]]
        if there and len(there) < len(unique):
            yield f"integrity: of the parallel calls {unique} only {there} are in the view"


def turns_with_calls(format: str, entries: Sequence[Entry]) -> list[list[str]]:
    """The call ids of each turn of the model: of one message, of rows with one id, of one run of items."""
    turns: dict[Any, list[str]] = {}
    run = 0
    for place, entry in enumerate(entries):
        run += entry.role != "assistant"
        key = ("run", run) if format == "openai-responses" else ("row", entry.row) if entry.row else ("place", place)
        turns.setdefault(key, []).extend(entry.call_ids)
    return [calls for calls in turns.values() if calls]


def pending_calls_are_kept(case: Pass) -> Iterator[str]:
    """A call of the last turn of the model that has no result yet is in the view."""
    never_answered = unanswered(case.entries)
    start = len(case.entries) - 1
    while start >= 0 and case.entries[start].role != "assistant":
        start -= 1
    in_view = {call_id for entry in case.view for call_id in entry.call_ids}
    for call_id in case.entries[start].call_ids if start >= 0 else ():
        if never_answered[call_id] and call_id not in in_view:
            yield f"integrity: the pending call {call_id} is not in the view"


def reasoning_is_whole_or_gone(case: Pass) -> Iterator[str]:
    known = {block for entry in case.entries for block in entry.reasoning}
    for entry in case.view:
        if any(block not in known for block in entry.reasoning):
            yield f"integrity: a reasoning block was changed: {entry.reasoning[0][:80]}"
    newest = next((entry for entry in reversed(case.entries) if entry.role == "assistant"), None)
    if newest is None or not newest.calls:
        return
    there = [entry for entry in case.view if set(newest.calls) <= set(entry.calls)]
    wanted = {block for block in newest.reasoning if not is_signed(block)}
    if there and not any(wanted <= set(entry.reasoning) for entry in there):
        yield "integrity: the reasoning of the newest turn, which called tools, is gone"


def is_signed(block: str) -> bool:
    """Whether a block of thinking is bound to what stood before it: a changed view has to do without it."""
    signed = '"signature"' in block and ('"thinking"' in block or '"reasoningText"' in block)
    return signed or '"redacted_thinking"' in block or '"redactedContent"' in block


def no_thinking_is_under_a_view_that_it_was_not_made_under(case: Pass) -> Iterator[str]:
    """Signed thinking is refused behind anything but what stood before it when it was made."""
    if case.out.changed and any(is_signed(block) for entry in case.view for block in entry.reasoning):
        yield "integrity: signed thinking of before the pass is in the view that it made"


def reasoning_items_stay_with_their_neighbors(case: Pass) -> Iterator[str]:
    """Responses: a reasoning item without the item that followed it is refused, and the other way round."""
    if case.format != "openai-responses":
        return
    follower = {}
    for here, after in zip(case.history, [*case.history[1:], None], strict=True):
        if here.get("type") == "reasoning":
            follower[wire.canonical(here)] = after
    for place, item in enumerate(case.out.messages):
        if item.get("type") != "reasoning":
            continue
        wanted = follower.get(wire.canonical(item))
        got = case.out.messages[place + 1] if place + 1 < len(case.out.messages) else None
        if wanted is not None and (got is None or got.get("id") != wanted.get("id")):
            missing = wanted.get("id") or wanted.get("type")
            yield f"integrity: the reasoning item {item.get('id')} is not followed by {missing}"


def roles_are_in_order(case: Pass) -> Iterator[str]:
    before = [entry.role for entry in case.entries if not entry.is_instruction]
    after = [entry.role for entry in case.view if not entry.is_instruction]
    if all(entry.is_instruction for entry in case.spoken):
        return
    if not after:
        yield "integrity: nothing but instructions is in the view"
        return
    if before[0] == "user" and after[0] != "user":
        yield f"integrity: the view begins with {after[0]}, the history with user"
    if before[-1] != "assistant" and after[-1] == "assistant" and not _ends_with_late_results(case):
        yield f"integrity: the view ends with assistant, the history with {before[-1]}"
    alternated = case.format in wire.TAKE_TURNS and not case.instructed_late and _alternates(case.spoken)
    if alternated and not _alternates(case.view):
        yield "integrity: roles alternate in the history and not in the view"


def _ends_with_late_results(case: Pass) -> bool:
    """The last message answers calls of an earlier turn than the last: its place is not at the end."""
    answered = next(entry for entry in reversed(case.entries) if not entry.is_instruction).result_ids
    turn = next((entry for entry in reversed(case.entries) if entry.role == "assistant"), None)
    return bool(answered) and turn is not None and not set(answered) & set(turn.call_ids)


def _alternates(entries: Sequence[Entry]) -> bool:
    return all(one.role != other.role for one, other in itertools.pairwise(entries))


def the_end_of_the_history_is_in_the_view(case: Pass) -> Iterator[str]:
    """Whatever the model has to react to must not be in a summary only."""
    if not case.ledger or case.entries[-1].is_empty or case.ledger[-1].fate not in GONE:
        return
    if replace(case.entries[-1], reasoning=()).is_empty:
        return  # nothing but thinking, which a pass leaves out where it was made under an earlier view
    yield f"integrity: the newest message is {case.ledger[-1].fate} ({case.ledger[-1].reason})"


# ---- stability, progress, mutation, verbatim, one summary ------------------------------------------------------------


def the_view_only_grows_between_passes(case: Pass) -> Iterator[str]:
    """But for a result that came late: it takes the place of the words that said that there was none.

    What ended with calls that wait for their results was not sent yet, and counts up to them.
    """
    if case.out.changed or case.previous_view is None or case.refusals_before:
        return
    entries = wire.read(case.format, case.previous_view)
    waiting = unanswered(entries)
    sent = next((n for n, entry in enumerate(entries) if any(waiting[one] for one in entry.call_ids)), len(entries))
    grown = [wire.plain(message) for message in case.out.messages[:sent]]
    before = [wire.plain(message) for message in case.previous_view[:sent]]
    if wire.as_json(grown) == wire.as_json(before):
        return
    differing = (n for n, (new, old) in enumerate(zip(grown, before, strict=False)) if new != old)
    first = next((n for n in differing if UNANSWERED not in wire.as_json([before[n]])), len(grown))
    if first < len(before):
        yield f"stability: no new compaction, and the view differs from the last one at message {first}"


def a_pass_ends_at_its_target(case: Pass) -> Iterator[str]:
    out = case.out
    if out.changed:
        if out.tokens_after > case.target:
            yield f"progress: a pass ended at {out.tokens_after} tokens, above the target of {case.target}"
        if out.tokens_after >= out.tokens_before:
            yield f"progress: a pass made {out.tokens_before} tokens into {out.tokens_after}"
        if case.trigger is not None and case.target >= case.trigger:
            yield f"progress: the target {case.target} is not below the trigger {case.trigger}"
        if out.tokens_after != out.compaction.tokens_after:
            yield f"progress: tokens_after is {out.tokens_after}, and {out.compaction.tokens_after} in the record"
    counted = contextfold.count_tokens(list(out.messages))
    apart = sum(entry.fate not in GONE for entry in case.ledger) + 1  # and the summary
    joined = FRAME * max(0, apart - len(case.view))  # a message that was joined has no frame of its own
    if not counted <= out.tokens_after <= counted + joined:
        yield f"progress: tokens_after is {out.tokens_after}, and the view counts {counted}"


def lists_are_not_shared(case: Pass) -> Iterator[str]:
    if case.out.messages is case.history:
        yield "mutation: the view is the caller's own list: changing one changes the other"


def _is_shells(entries: Sequence[Entry], index: int) -> bool:
    """What SWE-agent's shell answered, in the user's name: it ends in the prompt, behind what the model wrote."""
    ends = index > 0 and entries[index].texts and entries[index].texts[-1].rstrip().endswith("\nbash-$")
    return bool(ends) and not entries[index - 1].is_person


def what_must_stay_is_verbatim(case: Pass) -> Iterator[str]:
    people = [
        index for index, entry in enumerate(case.entries) if entry.is_person and not _is_shells(case.entries, index)
    ]
    written = [index for index in people if _is_written(case.entries[index])]
    must = {index: "instruction" for index, entry in enumerate(case.entries) if entry.is_instruction}
    must |= dict.fromkeys(people[-1:], "newest user message") | dict.fromkeys(
        (written or people)[:1], "first user message"
    )
    for index, what in must.items():
        entry = case.entries[index]
        if index in case.own or entry.is_empty:
            continue
        said = Entry(entry.role, entry.texts, others=entry.others)  # results in the same message may be shortened
        # what a later instruction says again, and nothing else, need not be in the view twice
        is_again = what == "instruction" and any(n > index and case.entries[n] == entry for n in case.own)
        if not is_again and not any(holds(part, said) for part in case.changed_view):
            yield f"verbatim: the {what} (message {index}) is not in the view word for word"


def _is_written(entry: Entry) -> bool:
    return bool(entry.others) or any(text.strip() and not NOTE.match(text) for text in entry.texts)


def there_is_one_summary(case: Pass) -> Iterator[str]:
    """One in the view where the record has one, and none where it has not; marks inside it are neutralized."""
    marks = sum(text.count(SUMMARY_MARK) for entry in case.changed_view for text in entry.texts)
    given = sum(
        text.count(SUMMARY_MARK)
        for index, entry in enumerate(case.entries)
        if index not in case.own
        for text in entry.texts
    )
    wanted = int(case.in_force and case.out.compaction.summary is not None)
    if not wanted <= marks <= wanted + given:
        yield f"one-summary: {marks} summaries are in the view, and {wanted} in the record"
    if not wanted and any(entry.fate == "summarized" for entry in case.ledger):
        yield "one-summary: messages are summarized, and there is no summary"


def holds(part: Entry, original: Entry) -> bool:
    """Whether a message of the view contains all of a message of the history."""
    return (
        (part.role == original.role or (original.role in ("tool", "system") and part.role == "user"))
        and all(any(text in said for said in part.texts) for text in original.texts if text.strip())
        and all(_holds_result(part, call_id, texts) for call_id, texts in original.results)
        and set(original.calls) <= {*part.calls, *((unnumbered(call_id), name) for call_id, name in part.calls)}
        and set(original.arguments) <= set(part.arguments)
        and set(original.others) <= set(part.others)
        and set(original.shown) <= {*part.shown, *part.others}
    )


def unnumbered(call_id: str) -> str:
    """The id of a call as it was before a repeated one got a number behind it."""
    return re.sub(r"_\d+$", "", call_id)


def _holds_result(part: Entry, call_id: str, texts: tuple[str, ...]) -> bool:
    """As the result that it was, or, without its call, as words of the user."""
    if (call_id, texts) in {*part.results, *((unnumbered(found), said) for found, said in part.results)}:
        return True
    return all(any(text in said for said in part.texts) for text in texts)


CHECKS: tuple[Callable[[Pass], Iterator[str]], ...] = (
    every_message_has_one_fate,
    kept_messages_are_whole,
    gone_messages_are_gone,
    nothing_unreadable_is_called_summarized,
    summarized_messages_were_read,
    a_provider_accepts_the_view,
    nothing_in_the_view_breaks_a_rule_of_its_format,
    parallel_calls_stay_whole,
    pending_calls_are_kept,
    reasoning_is_whole_or_gone,
    no_thinking_is_under_a_view_that_it_was_not_made_under,
    reasoning_items_stay_with_their_neighbors,
    roles_are_in_order,
    the_end_of_the_history_is_in_the_view,
    the_view_only_grows_between_passes,
    a_pass_ends_at_its_target,
    lists_are_not_shared,
    what_must_stay_is_verbatim,
    there_is_one_summary,
)
