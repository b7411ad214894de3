"""What the extractive summary may quote: sentences and tool actions, each with its section and its weight.

What belongs here: reading messages and judging one sentence or action at a time. What does not: the budget, the order
on the page and the headings (``extractive``), and the wording that gives a sentence away (``extractive_cues``).
Hidden reasoning is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

from contextfold import identifiers, json_values
from contextfold.at_once import some_words
from contextfold.harness import is_inserted, is_output, parted, said_in, typed, without_notes
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult
from contextfold.quoting import readable
from contextfold.summary import extractive_cues as cues
from contextfold.summary.hosted import acted, answered
from contextfold.summary.rules import Fallen, in_force, taken_back
from contextfold.summary.statements import WHOLE, Statement, is_question, statements_of

Section = Literal["goal", "constraints", "superseded", "decisions", "done", "errors", "open"]

QUOTE = 240
"""Characters. A longer sentence is cut at a word, with an ellipsis."""

TARGET = 110
"""Characters of what a tool worked on."""

OUTCOME = 70
"""Characters of what came of it."""

SAME = 1000
"""Characters of what a tool worked on that must be alike for it to be the same."""

TELLING = 0.25
"""Density of exact facts from which on a plain sentence is worth quoting."""

PASTED = 1500
"""Characters. In a longer message of a user only the beginning and the end are taken for the user's own words."""

# Of 38 real messages above 1,500 characters, those up to 6,000 say 21 rules between their ends, and one sentence that
# looks like one; longer ones are pages, demonstrations and transcripts, where every other such sentence is no rule.
OWN = 6000
"""Characters. A message up to this size is read for rules between its ends, too."""

RULE = 4.0
"""Weight from which on a constraint is a rule: it goes before everything else, into room of its own."""

_PLACES = ("file_path", "path", "filename", "target_file", "url")
_MAIN_ARGUMENTS = (
    *("command", "commands", "cmd", *_PLACES, "query", "queries", "pattern", "question", "code"),
    *("description", "prompt", "name", "id", "title", "text", "input"),
)
_SENTENCE_END = re.compile(
    r"(?<=[。｡！？।؟])|(?<=．)(?!(?<=\d．)\d)|(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)\s+"  # "3. Mai" is a date
)
LEAST_WORDS = 3
"""Of a finding that names nothing exact: ``Key trade-offs`` is a heading."""

_VERB = re.compile(r"[a-z]+(?:_[a-z]+)*")
"""A first argument that names one of the things that a tool can do, as ``str_replace`` of an editor."""

_NAME_ALONE = re.compile(r"(?:\*\*)?`[^`\s]+`(?:\*\*)?:?|\*\*[^*\s]+\*\*:?")
"""The heading of what follows, such as a file: by itself it tells nothing."""

_ENTRY = re.compile(r'"[^"]{1,40}"\s?:')
"""What a line of JSON begins with."""

_COMMAND = re.compile(r"/[\w:-]*")
"""What a user types to the program and not to the model: ``/theme``."""

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]*\*\*:?\s*$)")
_EXACT = re.compile(r"\d|`|\w[/._-]\w")  # a number, code, or a name that is no word
_NAMED = re.compile(r"\d|`|\w[/._]\w")
_DECORATION = re.compile(r"^(?:[\s>#•·–—]++(?=\S)|\s*[*+-]\s++|\s*\d{1,2}[.)、]\s++)+")
_DIAGRAM = ("-->", "<br>", "<br/>")
"""What lines of a diagram in Mermaid have: they say nothing as sentences."""

_EMPTY = re.compile(r"[\W_]*|\|.*|.{1,60}[:：]\W*", re.DOTALL)
"""Nothing said: no letters, a row of a table, or a few words that only announce what follows."""

_BARE_FAILURE = re.compile(
    r"\W{0,4}(?:Traceback \(most recent call last\)|error"
    r"|(?:command |process )?(?:finished with )?exit(?:ed)?\b[a-z ]{0,30}\W{0,4}\d{1,5}"
    r"|returncode\W{1,3}\d{1,5}(?:</returncode)?)\W{0,4}",
    re.IGNORECASE,
)
"""A line that says that something failed, and not what."""

_FRAME = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited with code|Original token count|Total output lines)\b[^\n]*\n)++"
    r"Output:[ \t]*(?:\n|$)"
    r"|<returncode>\d+</returncode>\s*<output>"
)
"""What a harness puts before the output of a command: Codex, mini-swe-agent."""

_OF_OUTPUT = re.compile(r"(?<!\s)\s*(?:2>\s*(?:&1|/dev/null)|\|\s*(?:head|tail)\b[^|&;\n]*)")
"""In a command: how much of what it says is looked at."""

_READER = re.compile(r"(?:read|view|cat)(?![a-z])", re.IGNORECASE)
"""The name of a tool that reads a file."""

_READING = re.compile(r"(?:cd \S+ && )?(?:view|cat|head|tail|nl|sed -n)\s[^;&|<>]*")
"""A command that does, or an editor's."""

_LOG = re.compile(r"(?<![a-z])logs?(?![a-z])|\.(?:out|err)\b", re.IGNORECASE)
FEW_LINES = 8
"""Of the output of a call that reads a file: it may say why it could not. More are the file's, whatever they say."""

_RULES = re.compile(r"</?(?:instructions|rules|constraints|requirements|guidelines|important)>", re.IGNORECASE)
"""What people put around their rules; other tagged blocks are pasted or a harness's."""

_QUOTED = re.compile(r" {0,3}>(?!>> ?\w)")
"""A line of a quotation in Markdown or in mail; not one of Python's prompt."""

_THESE_RULES = re.compile(
    r"(?:\b(?:rules?|follow|obey|instructions?|guidelines?|requirements?|constraints?|regeln|vorgaben|anweisungen|beachte"
    r"|règles|consignes|instructions|reglas|instrucciones|regras|instruções|regole|istruzioni|regels|правила)\b"
    r"|规则|規則|要求|指示|ルール|규칙)[^:：]{0,40}[:：]\W*\Z",
    re.IGNORECASE,
)
"""The end of a line that says of what follows that it is to be obeyed."""

_NUMBERED = re.compile(r"\d{1,6}[:|]|[|{}()\[\]<>;=+]|.*(?:[;{}=]|\)\s*:?|[\"'],?)$")
"""A line of code, of a listing or of a table."""

_OPENING = re.compile(r"<([\w-]++)[^<>]*+>")
_CLOSING = re.compile(r"</([\w-]++)>")


class Fact(NamedTuple):
    """One line for a section. ``order`` is its place in the conversation, ``weight`` decides who gets the room."""

    section: Section
    text: str
    order: int
    weight: float


_Said = tuple[Section, str, float]
"""A fact, whatever its place: section, text and weight."""


class Action(NamedTuple):
    """A tool call and what came of it. ``failure``: the line that names one. ``same``: what a line shows of what calls
    that do the same have in common, however much of their output they show.
    """

    tool: str
    target: str
    same: str
    outcome: str
    lines: int
    failure: str
    changing: bool
    order: int


@dataclass(frozen=True, slots=True)
class Note:
    """What a message gives wherever it stands in a conversation. It follows from the message alone and can be kept.

    ``said``: its facts unless it is the first or newest of its kind; ``newest``: those of an answer that is the newest.
    ``calls`` and ``results``: in their order.
    """

    role: Literal["user", "assistant", "other"]
    speaks: bool
    said: tuple[_Said, ...]
    calls: tuple[_Call, ...]
    results: tuple[_Result, ...]
    rules: tuple[Statement, ...] = ()
    """What a user demands, forbids or limits, and what may withdraw it."""
    newest: tuple[_Said, ...] = ()

    @classmethod
    def of(cls, message: Message) -> Note:
        """What there is to know about a message."""
        role: Literal["user", "assistant", "other"] = "other"
        said: Iterable[_Said] = ()
        newest: Iterable[_Said] = ()
        rules: tuple[Statement, ...] = ()
        done = list(acted(message))
        if message.is_user_turn and not is_output(message):
            role = "user"
            found = _from_user(message, 0, first=False, newest=False)
            said = [(fact.section, fact.text, fact.weight) for fact in found]
            rules = tuple(_statements_in(message))
        elif message.role == "assistant":
            role = "assistant"
            said, newest = _from_assistant(message)
        return cls(
            role,
            role == "assistant" and bool(answered(message).strip()),
            tuple(said),
            tuple(_call(call) for call in done if isinstance(call, ToolCall)),
            tuple(_result(result) for result in done if isinstance(result, ToolResult)),
            rules,
            tuple(newest),
        )


SILENT = Note("other", False, (), (), ())
"""Of a message that was not read: it says nothing."""


class _Call(NamedTuple):
    id: str
    tool: str
    target: str
    same: str
    shown: str
    """As much of that as a line shows."""
    reads: bool
    changing: bool


class _Result(NamedTuple):
    call_id: str
    failure: str
    is_error: bool
    quoted: str
    lines: int


def rules(notes: Sequence[Note], beside: Sequence[tuple[int, Note]] = ()) -> Iterator[Fact]:
    """What the user demanded, forbade or limited, and did not take back. Rules do not fade; the newest go first.

    ``beside``: messages that stand in the view, each with how many of ``notes`` come before it. They may replace what
    was said before them, and need not be told.
    """
    for place, rule in in_force(_statements(notes, beside)):
        # Even places are those of messages in the view, which need not be told.
        if place % 2 == 0:
            continue
        n = place // 2
        # "The cache is only a backstop" may be no rule; a label that someone wrote in capitals is meant.
        strict = 1.0 if cues.STRICT.search(rule.text) else 0.5 if cues.is_labeled(rule.text) else 0.0
        yield Fact("constraints", rule.text, n, RULE + strict + n / max(1, len(notes)))


def rules_taken_back(notes: Sequence[Note], beside: Sequence[tuple[int, Note]] = ()) -> Fallen:
    """The rules that later words of the user withdrew or replaced."""
    return taken_back(_statements(notes, beside))


def _statements(notes: Sequence[Note], beside: Sequence[tuple[int, Note]]) -> list[tuple[int, tuple[Statement, ...]]]:
    said = [(2 * n + 1, note.rules) for n, note in enumerate(notes) if note.rules]
    said += [(2 * before, note.rules) for before, note in beside if note.rules]
    return sorted(said, key=lambda one: one[0])


def spoken(messages: Sequence[Message], notes: Sequence[Note]) -> Iterator[Fact]:
    """What people and the assistant said, sorted into sections."""
    people = [n for n, note in enumerate(notes) if note.role == "user"]
    last_spoken = max((n for n, note in enumerate(notes) if note.speaks), default=-1)
    for n, note in enumerate(notes):
        if note.role == "user" and n in (people[0], people[-1]):
            yield from _from_user(messages[n], n, first=n == people[0], newest=n == people[-1])
        else:
            for section, text, weight in note.newest if n == last_spoken else note.said:
                yield Fact(section, text, n, weight)


Done = tuple[_Call, _Result | None, int]
"""A call, its result, and its place."""


def actions(done: Iterable[Done]) -> Iterator[Action]:
    """Every tool call, in order, with what came of it."""
    return (_action(call, result, n) for call, result, n in done)


def paired(notes: Sequence[Note]) -> list[Done]:
    """Every tool call with the next result of its id, since ids may come again, and its place."""
    found: list[Done] = []
    results: dict[str, _Result] = {}
    for n in range(len(notes) - 1, -1, -1):
        results.update((result.call_id, result) for result in reversed(notes[n].results))
        found += [(call, results.pop(call.id, None), n) for call in reversed(notes[n].calls)]
    return found[::-1]


def errors(done: Sequence[Done]) -> Iterator[Fact]:
    """What went wrong, in the words of tools' results, unless the same was done later and went well."""
    overcome: set[tuple[str, str]] = set()
    for call, result, n in reversed(done):
        if result is None:
            continue
        failure = _failure(call, result)
        if not failure:
            overcome.add((call.tool, call.same))
        # What only says that something failed says what in the line of what was done.
        elif (call.tool, call.same) not in overcome and not _BARE_FAILURE.fullmatch(failure):
            yield Fact("errors", failure, n, 2.0 if result.is_error else 1.0)


def sentences(text: str, limit: int = QUOTE, *, headings: bool = True) -> Iterator[str]:
    """The sentences of running text, without code blocks, tagged blocks of harnesses, list marks and line breaks.

    One of more than ``limit`` characters is cut. ``headings=False``: nor headings in Markdown that name nothing.
    """
    fenced, is_drawn = False, _is_drawn(text)
    for line in _without_tagged(text).splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced or not line.strip() or (is_drawn and _is_drawn(line)):
            continue
        elif headings or not _is_bare_heading(line):
            for sentence in chain.from_iterable(map(_SENTENCE_END.split, some_words(_DECORATION.sub("", line)))):
                if not _EMPTY.fullmatch(sentence):
                    yield clipped(sentence, limit)


def _is_drawn(line: str) -> bool:
    return any(sign in line for sign in _DIAGRAM)


def _is_bare_heading(line: str) -> bool:
    return bool(_HEADING.match(line)) and not _EXACT.search(line)


def _without_tagged(text: str) -> str:
    """The text with a line break for each tagged block, from its opening tag to the next closing one of that name."""
    # Where each name is closed last is looked up first: an opening tag without an end costs nothing then.
    last = {found[1]: found.start() for found in _CLOSING.finditer(text)}
    kept: list[str] = []
    done = 0
    for found in _OPENING.finditer(text):
        if found.start() >= done and last.get(found[1], -1) >= found.end():
            kept.append(text[done : found.start()])
            closing = f"</{found[1]}>"
            done = text.index(closing, found.end()) + len(closing)
    return "\n".join([*kept, text[done:]])


def clipped(text: str, limit: int) -> str:
    """On one line and within ``limit`` characters: cut at a word where there is one, and marked."""
    text = " ".join(text[: limit * 4].split())
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit // 2, limit)
    return text[: cut if cut > 0 else limit - 1].rstrip() + "…"


def _statements_in(message: Message) -> Iterator[Statement]:
    """What a message of a user says that matters to rules. Between the ends of a long one, which may be pasted, only
    rules are read, and they take none back.
    """
    own = _unquoted(_RULES.sub("\n", said_in(_typed(message))))
    ends = list(sentences(_ends(own), limit=WHOLE))
    if not PASTED < len(own) <= OWN:
        yield from statements_of(ends)
        return
    known = frozenset(ends)
    for one in statements_of(list(sentences(own, limit=WHOLE))):
        if one.text in known:
            yield one
        elif one.is_rule and not cues.is_labeled(one.text) and not _NUMBERED.match(one.text):
            yield replace(one, withdraws=False)


def _unquoted(text: str) -> str:
    """A text of a user without what it quotes behind ``>``, which others said: that is told, and neither sets rules nor
    takes any back. What stands behind words for rules and a colon is meant, and so is a text that is all quoted.
    """
    if ">" not in text:
        return text
    kept: list[str] = []
    before, is_meant = "", False
    for line in text.splitlines():
        if _QUOTED.match(line):
            if not _QUOTED.match(before):
                is_meant = bool(_THESE_RULES.search(before))
            if is_meant:
                kept.append(line)
        else:
            kept.append(line)
        before = line if line.strip() else before
    return "\n".join(kept) if any(map(str.strip, kept)) else text


def _from_user(message: Message, order: int, *, first: bool, newest: bool) -> Iterator[Fact]:
    # A note of a harness may set rules (of a project's instructions), but it asks for nothing.
    text = "" if is_inserted(message.text) else _ends(_typed(message, noted=False))
    own = list(sentences(text))
    said = frozenset(sentences(_unquoted(text))) if ">" in text else frozenset(own)
    if cues.is_labeled(whole := " ".join(own)) and len(whole) <= WHOLE and not is_question(whole):
        return  # one statement, among the rules
    for position, sentence in enumerate(own):
        heads = cues.heads(sentence)
        if (cues.demands(sentence, heads) or cues.is_labeled(sentence)) and not is_question(sentence):
            continue  # a rule, or what was one
        if sentence in said and cues.CORRECTION.search(sentence, heads):
            yield Fact("superseded", sentence, order, 1.0 + _density(sentence))
        elif sentence in said and cues.CONSTRAINT.search(sentence, heads):
            yield Fact("constraints", sentence, order, 1.0 + _density(sentence))
        elif (position < 3 or first) and not cues.only_assents(sentence) and not _COMMAND.fullmatch(sentence):
            weight = 3.0 if first else 2.0 if newest else 1.0
            yield Fact("goal", sentence, order, weight + _density(sentence) - 0.3 * position)


def _typed(message: Message, *, noted: bool = True) -> str:
    _, said = parted(message)
    texts = [
        typed(readable(part.text))
        for part in (said.parts if said else ())
        if isinstance(part, Text) or (isinstance(part, Opaque) and not part.is_output)
    ]
    return "\n".join(texts if noted else map(without_notes, texts))


def _ends(text: str) -> str:
    return text if len(text) <= PASTED else f"{text[: PASTED // 2]}\n{text[-PASTED // 2 :]}"


def _from_assistant(message: Message) -> tuple[list[_Said], list[_Said]]:
    """What an answer tells where others follow it, and what it tells as the newest one."""
    concludes = not message.tool_calls  # what ends a turn tells its result, what stands before a call its purpose
    earlier, newest = list[_Said](), list[_Said]()
    for sentence in sentences(answered(message), headings=False):
        heads = cues.heads(sentence)
        found = _finding(sentence, heads, concludes)
        # "The build is failing" is no finding that holds
        if found is not None and not cues.PASSING.search(sentence, heads):
            earlier.append(found)
        if cues.OPEN.search(sentence, heads):
            found = ("open", sentence, 2.0 + _density(sentence))
        if found is not None:
            newest.append(found)
    return earlier, newest


def _finding(sentence: str, heads: cues.Heads, concludes: bool) -> _Said | None:
    if is_question(sentence) or cues.says_nothing(sentence) or _leads_on(sentence):
        return None
    if cues.DECISION.search(sentence, heads):
        return "decisions", sentence, 1.0 + _density(sentence) + 0.5 * concludes
    density = _density(sentence) if concludes else 0.0
    return ("decisions", sentence, density) if density > TELLING else None


def _leads_on(sentence: str) -> bool:
    """Whether it tells nothing by itself, but that something follows: a name as a heading, ``The changes are:``, two
    words, ``Let me look``, an entry of JSON.
    """
    if (
        cues.ANNOUNCES.match(sentence)
        or _ENTRY.match(sentence)
        or _NAME_ALONE.fullmatch(sentence)
        or sentence.endswith((":", "："))
    ):
        return True
    return sentence.isascii() and len(sentence.split()) < LEAST_WORDS and not _NAMED.search(sentence)


def _density(sentence: str) -> float:
    """Between 0 and 1: how much of what must be repeated exactly is in it, for its length."""
    return min(1.0, 12 * len(identifiers.names(sentence)) / (24 + len(sentence)))


def _call(call: ToolCall) -> _Call:
    target = _target(call)
    same = _OF_OUTPUT.sub("", target[:SAME])
    is_changing = bool(cues.CHANGING.search(call.name))
    shown = clipped(same, TARGET)
    return _Call(call.id, call.name, clipped(target, TARGET), same, shown, _reads(call.name, same), is_changing)


def _reads(tool: str, same: str) -> bool:
    """Whether a call shows what a file says, and not what is happening, as a log does."""
    return bool(_READER.match(tool) or _READING.fullmatch(same)) and not _LOG.search(f"{tool} {same}")


def _result(result: ToolResult) -> _Result:
    failure = error_line(result)
    text = readable(result.text).strip()
    if framed := _FRAME.match(text):
        text = text[framed.end() :].removesuffix("</output>").strip()
    whole = clipped(text, OUTCOME) if len(text) <= OUTCOME and "\n" not in text else ""
    return _Result(result.call_id, failure, result.is_error, whole, text.count("\n") + 1 if text else 0)


def _failure(call: _Call, result: _Result) -> str:
    """What a result says of a failure. What stands in a file that was read is none."""
    return "" if call.reads and not result.is_error and result.lines > FEW_LINES else result.failure


_NO_RESULT = _Result("", "", False, "", 0)


def _action(call: _Call, result: _Result | None, order: int) -> Action:
    came = result or _NO_RESULT
    failure = _failure(call, came)
    outcome = (clipped(failure, OUTCOME) if failure else "") or came.quoted
    return Action(call.tool, call.target, call.shown, outcome, came.lines, failure, call.changing, order)


def _target(call: ToolCall) -> str:
    """What the call worked on: its most telling argument, or the text of a custom tool."""
    try:
        arguments = json_values.read(call.arguments)
    except ValueError:
        return call.arguments
    if not isinstance(arguments, Mapping):
        return call.arguments
    given = (arguments[key] for key in _MAIN_ARGUMENTS if key in arguments)
    if told := next(filter(None, map(_words_of, given)), ""):  # "view" alone does not tell what was viewed
        place = next((arguments[key] for key in _PLACES if isinstance(arguments.get(key), str)), "")
        return f"{told} {place}" if _VERB.fullmatch(told) and place else told
    return ", ".join(f"{key}: {value}" for key, value in arguments.items() if _is_short(value))


def _words_of(value: Any) -> str:
    """A text; of a list of texts, such as the commands of a shell, all of them."""
    words = value if isinstance(value, list) and all(isinstance(one, str) for one in value) else [value]
    return " ".join(words).strip() if all(isinstance(one, str) for one in words) else ""


def _is_short(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and 0 < len(value) <= TARGET)


def error_line(result: ToolResult) -> str:
    """The line that names the failure, empty if nothing failed. One that says no more than that something did gives way
    to the next.
    """
    text = readable(result.text)
    bare = ""
    # A long output says what failed at one of its ends.
    head, tail = text[:4000], text[4000:][-2000:]
    for part in (head, tail):
        words = list(filter(part.__contains__, cues.ERROR_WORDS))
        if words:  # the pattern is tried where one of them stands, as in few lines
            for line in part.splitlines():
                if len(line) < 2000 and any(map(line.__contains__, words)) and cues.ERROR.search(line):
                    if not _BARE_FAILURE.fullmatch(line):
                        return clipped(line, QUOTE)
                    bare = bare or _with_its_reason(line, part)
    if bare:
        return clipped(bare, QUOTE)
    if result.is_error:
        return clipped(next((line for line in head.splitlines() if line.strip()), ""), QUOTE)
    return ""


def _with_its_reason(line: str, text: str) -> str:
    """``ERROR:`` with the line below it, which says what of."""
    if not line.strip(" *").lower().startswith("error"):
        return line
    return line + " " + next(filter(str.strip, text.partition(line)[2].splitlines()), "")
