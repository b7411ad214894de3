"""Does this error mean that the prompt does not fit, and which limit does it name?

What belongs here: reading whatever a provider, a gateway or an SDK hands back, and one verdict about it.
What does not: acting on the verdict (``engine``, ``summary.bisect``).

It works in three steps. *Reading* turns exceptions, bodies, JSON inside strings and wrapped errors into plain
text and codes, one level of the exception chain at a time. *Figures* gives each number of the text the role
that the words around it name: prompt, answer, total, limit. The *verdict* asks what is too long: arithmetic first,
then the wording (which thing exceeds what), and a code only where it says it all and the text does not
contradict it. A status never decides.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from contextfold.errors import ContextOverflow

Kind = Literal[
    "prompt_too_long",  # compact, then resend
    "output_budget",  # the prompt fits, prompt and answer together do not: lower the answer limit
    "item_too_long",  # one field of the history is over its own cap
    "rate_limit_too_small",  # the tokens-per-minute limit is below this one request
    "truncated_silently",  # the request "succeeded", and part of the prompt was not read
    "malformed_history",  # calls and results or roles do not pair: repair, then resend
]


@dataclass(frozen=True, slots=True)
class Overflow:
    """A verdict.

    ``limit`` and ``used`` are tokens, and None where the text does not name them in tokens; for
    ``item_too_long`` they are the characters (or bytes) of that item. ``used`` is the size of the prompt.
    """

    kind: Kind
    limit: int | None = None
    used: int | None = None


def classify(
    error: object = None,
    *,
    status: int | None = None,
    code: str | int | None = None,
    message: str | None = None,
    body: object = None,
) -> Overflow | None:
    """What an error says about sizes, or None if it says nothing about them.

    ``error`` is an exception of any SDK, or a body (text, bytes, parsed JSON); the keywords give what the
    caller has already taken apart. Never raises. None means: an error of another kind, leave it alone.
    """
    given = _Evidence()
    given.add_status(status)
    given.add_code(code)
    _read(message, given)
    _read(body, given)
    if not isinstance(error, BaseException):
        _read(error, given)
        return _judge(given)
    return _judge(given) or (None if _is_another_matter(given) else _classify_chain(error))


def _classify_chain(error: BaseException) -> Overflow | None:
    """The verdict of the outermost exception that gives one, unless an outer one names another matter."""
    waiting, seen = [error], {id(error)}
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, ContextOverflow):
            return Overflow("prompt_too_long", current.limit, current.used)
        evidence = _read_exception(current)
        verdict = _judge(evidence)
        if verdict is not None:
            return verdict
        if _is_another_matter(evidence):
            continue
        for inner in _inner_exceptions(current, evidence):
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return None


def _inner_exceptions(error: BaseException, evidence: _Evidence) -> Iterator[BaseException]:
    if error.__cause__ is not None:
        yield error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__ and not evidence.statuses:
        # A provider's own answer (it has a status) is no wrapper of the error during whose handling it arose.
        yield error.__context__
    yield from (argument for argument in error.args if isinstance(argument, BaseException))
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions


# ---------------------------------------------------------------------------------------------- reading

_DEEPEST = 12  # nesting of JSON inside strings inside JSON; real errors have at most five
_TEXT_KEYS = re.compile(
    r"^(?:message|msg|error|errors|detail|details|description|error_?description|title|raw|reason)$"
)
_CODE_KEYS = re.compile(r"^(?:code|type|status|error_?code|error_?type|__type)$")
_FIELD_KEYS = re.compile(r"^(?:param|parameter|loc|path)$")
_FINISH_KEYS = re.compile(r"^(?:finish_?reason|stop_?reason|done_?reason)$", re.IGNORECASE)
_FIGURE_KEYS = re.compile(r"^(?:n_prompt_tokens|prompt_tokens|n_ctx|context_length|max_context_length|limit)$")
# What was sent or answered is not what is said about it.
_FOREIGN_KEYS = frozenset({"messages", "input", "inputs", "prompt", "contents", "content", "output", "tools", "usage"})
_FOREIGN_KEYS |= {"delta", "text", "headers", "request", "arguments", "instructions", "system"}


@dataclass(slots=True)
class _Evidence:
    """What one level of an error says. ``finishes`` are finish reasons of an answer that came as a success."""

    texts: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    finishes: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    truncated: bool = False

    def add_status(self, value: object) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            self.statuses.append(value)

    def add_code(self, value: object) -> None:
        if isinstance(value, str):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value)
            self.codes.append(re.sub(r"[\s.\-]+", "_", snake).lower())
        else:
            self.add_status(value)

    @property
    def text(self) -> str:
        """All sentences, lower case, without quotes and back-ticks, in the order of their first mention."""
        joined = "\n".join(dict.fromkeys(text.strip() for text in self.texts))
        return re.sub(r"[ \t]+", " ", re.sub(r"[`'\"‘’“”*\\]", "", joined.lower()))


def _read_exception(error: BaseException) -> _Evidence:
    evidence = _Evidence()
    evidence.add_code(type(error).__name__)
    for name in ("status_code", "status", "code", "type"):
        evidence.add_code(_attribute(error, name))
    for name in ("message", "body", "param", "detail"):
        value = _attribute(error, name)
        if name == "param" and isinstance(value, str):
            evidence.fields.append(value)
        else:
            _read(value, evidence)
    _read([argument for argument in error.args if isinstance(argument, str | bytes | Mapping)], evidence)
    _read(_text_of(error), evidence)
    _read_response(_attribute(error, "response"), evidence)
    return evidence


def _read_response(response: object, evidence: _Evidence) -> None:
    """An HTTP response object, or the mapping that botocore puts in its place."""
    if response is None or isinstance(response, Mapping | str | bytes):
        _read(response, evidence)
        return
    evidence.add_status(_attribute(response, "status_code"))
    _read(_attribute(response, "text"), evidence)


def _attribute(value: object, name: str) -> Any:
    try:
        found = getattr(value, name, None)
    except Exception:  # noqa: BLE001 - reading a streamed response's text may raise anything; it says nothing then
        return None
    return None if callable(found) else found


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may fail; then it says nothing
        return ""


def _read(value: object, evidence: _Evidence, depth: int = 0) -> None:
    """Collect texts, codes, fields and finish reasons from any value."""
    if depth > _DEEPEST:
        return
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", errors="replace")
    if isinstance(value, str):
        _read_text(value, evidence, depth)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _read_entry(str(key), inner, evidence, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _read(inner, evidence, depth + 1)


def _read_entry(key: str, value: object, evidence: _Evidence, depth: int) -> None:
    if _FINISH_KEYS.match(key) and isinstance(value, str):
        evidence.finishes.append(value.lower())
    elif key == "truncated" and value is True:
        evidence.truncated = True
    elif _CODE_KEYS.match(key) and isinstance(value, str | int):
        evidence.add_code(value)
    elif _FIELD_KEYS.match(key) and isinstance(value, str | list | tuple):
        evidence.fields.append(value if isinstance(value, str) else ".".join(map(str, value)))
    elif _FIGURE_KEYS.match(key) and isinstance(value, int) and not isinstance(value, bool):
        evidence.texts.append(f"{key.replace('_', ' ')}: {value}")
    elif isinstance(value, str) and not _TEXT_KEYS.match(key):
        return
    elif key not in _FOREIGN_KEYS:
        _read(value, evidence, depth)


def _read_text(text: str, evidence: _Evidence, depth: int) -> None:
    """A sentence; JSON or a printed Python dict inside it is read for what it is."""
    for start in (place.start() for place in re.finditer(r"[{\[]\s*[\"'{]", text)):
        parsed, end = _parsed(text, start)
        if isinstance(parsed, dict | list):
            evidence.texts.append(text[:start])
            _read(parsed, evidence, depth + 1)
            _read_text(text[end:], evidence, depth + 1)
            return
    if text.strip():
        evidence.texts.append(text)


def _parsed(text: str, start: int) -> tuple[object, int]:
    """The JSON or Python value that begins at ``start`` and where it ends; None if there is none."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        try:
            value = ast.literal_eval(text[start:end])
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None, start
    return value, end


# ---------------------------------------------------------------------------------------------- figures

_ANSWER = (
    r"(?:completions?|outputs?|generat(?:ed|ion)|new[ _]tokens|num_predict|reply|answer"
    r"|max(?:imum)?[ _-]?(?:new|completion|output)?[ _-]?tokens(?! allowed))"
)
_PROMPT = r"(?:prompts?|inputs?|messages?|conversation|history|request|text)"
# 128000, 1,048,576, 128k, ~269722; not the 4 of gpt-4o, the 3 of messages[3], the 5 of 3.5 or a status in front
_NUMBER = re.compile(r"(?<![\w.\-])(?<!\w\[)(?!(?<![^\n])[45]\d\d\b)(\d{1,3}(?:,\d{3})+|\d+)(k|m)?(?![\w]|\.\d)")
_SUM = re.compile(r"(\d[\d,]*) \+ (\d[\d,]*) (?:>|exceeds?) (\d[\d,]*)")
_SHARE = re.compile(r"(\d[\d,]*) ?/ ?(\d[\d,]*) tokens")
_RANGE = re.compile(rf"{_PROMPT}[ _]?(?:length|tokens|size)?[^.\n]*\[ ?\d+ ?, ?(\d[\d,]*) ?\]")
_AFTER_ANSWER = re.compile(rf"^(?: tokens?)?(?: (?:in|for|of|from))?(?: (?:the|your))? ?{_ANSWER}")
_AFTER_PROMPT = re.compile(rf"^(?: tokens?)?(?: (?:in|for|of|from))?(?: (?:the|your))? ?(?:text )?{_PROMPT}\b")
_AFTER_LIMIT = re.compile(r"^(?: tokens?)? (?:maximum|max\b|limit\b|context)")
_AFTER_OTHER_UNIT = re.compile(r"^ ?(?:bytes|[kmg]i?b\b|characters|chars|pixels|images|pages|messages|items)")
_BEFORE_LIMIT = re.compile(
    r"max(?:imum)? number of (?:\w+ )?tokens"
    r"|max(?:imum)?[ _](?:allowed[ _])?(?:prompt|input|context|sequence|message)s?[ _](?:tokens?|length|size)"
    r"|max(?:imum)?(?![ _-]?(?:new|completion|output)?[ _-]?tokens\b(?! allowed))|limit|allowed"
    r"|window(?: has)?|n_?ctx\w*|n ctx|(?:accepts?|supports?|only)(?: up to)?"
    r"|truncated to|超过|限制|上限|最大|超え"
    r"|context (?:length|size)|exceeds?|exceeded|longer than|greater than|larger than|more than|less than|fewer than"
    r"|at most|up to|above|>|<="
)
_BEFORE_EXCESS = re.compile(r"\bby\b")
_BEFORE_PROMPT = re.compile(
    rf"{_PROMPT}|resulted in|current|actual|length(?! of)|count|used|\bn_tokens|长度|输入|上下文|请求|入力|長さ"
)
_BEFORE_EITHER = re.compile(
    r"too (?:long|large|many tokens)|given|received|got|contains?|has\b|have\b|needs?|sent|passed|provided"
)
_BEFORE_TOTAL = re.compile(r"requested|total|require[sd]?")
_BEFORE_ANSWER = re.compile(_ANSWER)
_BEFORE = {
    "limit": _BEFORE_LIMIT,
    "prompt": _BEFORE_PROMPT,
    "total": _BEFORE_TOTAL,
    "answer": _BEFORE_ANSWER,
    "either": _BEFORE_EITHER,
    "excess": _BEFORE_EXCESS,
}


@dataclass(frozen=True, slots=True)
class _Figures:
    """The numbers of a text by role, in tokens unless the text says otherwise (``other_unit``)."""

    prompt: int | None = None
    answer: int | None = None
    total: int | None = None
    limit: int | None = None
    other_unit: bool = False


def _figures(text: str) -> _Figures:
    """Each number by the words around it; the first number of a role wins."""
    found: dict[str, int] = {}
    for pattern, roles in ((_SUM, ("prompt", "answer", "limit")), (_SHARE, ("prompt", "limit")), (_RANGE, ("limit",))):
        match = pattern.search(text)
        if match:
            found.update(zip(roles, (int(group.replace(",", "")) for group in match.groups()), strict=True))
    other_unit, previous_end = False, 0
    for match in _NUMBER.finditer(text):
        before, after = (
            text[max(previous_end, match.start() - 90) : match.start()],
            text[match.end() : match.end() + 40],
        )
        previous_end = match.end()
        other_unit = other_unit or bool(_AFTER_OTHER_UNIT.match(after))
        role = _role(before, after)
        if role is not None:
            found.setdefault(role, int(match[1].replace(",", "")) * {None: 1, "k": 1000, "m": 1_000_000}[match[2]])
    if "limit" in found and len(found) == 1 and re.search(r"limit ?\(\d+\)", text):
        del found["limit"]  # "exceeds limit (2013)": a provider's error code, not a size
    return _Figures(**found, other_unit=other_unit)


def _role(before: str, after: str) -> str | None:
    """The role that the words beside a number give it: what follows it closely, else the nearest word before."""
    if not before.endswith("="):
        for role, pattern in (("answer", _AFTER_ANSWER), ("prompt", _AFTER_PROMPT), ("limit", _AFTER_LIMIT)):
            if pattern.match(after):
                return role
    ends = {role: _last_end(pattern, before) for role, pattern in _BEFORE.items()}
    nearest = max(ends, key=lambda role: ends[role])
    if ends[nearest] < 0:
        return None
    if nearest == "either":  # "... is too large: N": what is? the thing named last, and a prompt if none is
        return "answer" if ends["answer"] > ends["prompt"] else "prompt"
    return None if nearest == "excess" else nearest


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    return max((match.end() for match in pattern.finditer(text)), default=-1)


# ---------------------------------------------------------------------------------------------- verdict

_RATE = re.compile(
    r"per[ -_](?:min(?:ute)?|sec(?:ond)?|hour|day)|\b[tr]p[mds]\b|rate[ _-]?limit|too many requests|throttl|quota"
    r"|billing|credits|insufficient[ _]balance|this minute|monthly|daily|weekly|wait before|try again (?:later|in \d)"
    r"|频率|限流|额度|余额|配额"
)
_REQUEST_ITSELF = re.compile(r"request too large|requested tokens? exceed")
_RATE_LIMIT = re.compile(r"limit:? (\d[\d,]*)")
_RATE_REQUESTED = re.compile(r"requested:? (\d[\d,]*)")
_PAIRING = re.compile(
    r"(?:(?:tool|function)[ _-]?(?:call|use|result|response|output|message)(?:_id)?s?|role:? tool)\b"
    r"[^\n]*(?:without|must be followed|must have a corresponding|must be a response|immediately after|preced+ing"
    r"|did not have|not found|were found|unexpected|does not match|mismatch|equal to|unanswered|number of)"
    r"|(?:no|missing|expected|unexpected|orphan(?:ed)?|each|unanswered|duplicate) (?:tool|function)[ _-]?"
    r"(?:call|use|result|response|output)s?\b|not the same number of function|number of tool_?results? blocks"
    r"|reasoning[^\n]*without its required|(?:thinking|reasoning)[^\n]*cannot be modified|expected thinking"
)
_ROLES = re.compile(r"roles? must alternate|(?:first|last) message must|(?:expected|unexpected) (?:last )?role")
_NAMED_FIELD = re.compile(r"(?:invalid )?([a-z_]+(?:[.\[][\w\].\[]*)?):? (?:string|array) too long")
_ITEM_FIELD = re.compile(r"\b((?:messages|input|contents|content)(?:\[\d+\]|\.\d+)[\w.\[\]]*)")
_ITEM_CAP = re.compile(r"too (?:long|large)|exceeds?|at most|above")
_ITEM_LENGTHS = re.compile(
    r"(?P<used>\d[\d,]*) bytes > (?P<limit>\d[\d,]*)|(?:at most|maximum length:?|exceeds) (?P<cap>\d[\d,]*)"
    r"(?! ?[kmg]i?b)(?:.*?(?:length|got|given) (?P<length>\d[\d,]*))?"
)
_MEDIA_CAP = re.compile(r"\b(?:image|document|pdf|audio|video|file)\b[^\n]*(?:exceeds?|too large|too big|larger than)")
_IDENTITY = re.compile(r"(?:^|[._])(?:id|call_id|tool_call_id|name|role|type|title)$")
_HISTORY_ROOT = re.compile(r"^(?:messages|inputs?|prompt|contents?)\b")
_NEGATIVE_ANSWER_ROOM = re.compile(r"at least [01],? (?:but )?(?:got|received|was)\w* -(\d+)")
_NOT_SIZES = re.compile(
    r"time[d ]?-?out|deadline|retries|attempts|concurren|connection|recursion|header|seconds|api[ _](?:key|token)|jwt"
    r"|(?:access|bearer|session|refresh) token|authenticat|too small|file ?name|url|budget"
)
_OVER = (
    r"(?:too (?:long|large|many|big)|exceed\w*|longer than|greater than|larger than|more than|surpass\w*|overflow\w*"
    r"|over the|is full|less than|fewer than|reached)"
)
_WINDOW = r"(?:context[ _-]?(?:window|length|size|limit)?|token limit|max[ _]?model[ _]?len\w*|model length)"
_WINDOWED = re.compile(rf"tokens?\b|n_ctx|{_WINDOW}|上下文|输入|入力")
_SIZE = r"(?:tokens?|length|size|context|window|payload|limit|maximum|model|long|large|big)"
_TOO_LONG = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:prompts?|inputs?|messages|conversation|history)\b[^\n]*{_OVER}[^\n]*",
        rf"\b(?:request|payload|tokens?|length|{_WINDOW})\b[^\n]*{_OVER}[^\n]*",
        rf"(?:too (?:long|large|many|big)|exceed\w*|overflow\w*|reached)[^\n]*\b(?:{_WINDOW}|tokens)\b",
        r"(?:reduce|shorten|decrease)[^\n]*\b(?:prompt|input|messages|conversation|context)\b",
        r"max(?:imum)? (?:context|prompt|input|sequence)[ _](?:length|size|tokens)\b[^\n]{0,12}\d",
        r"(?:entity|payload|content) too large",
        r"range of (?:input|prompt|messages?)[^\n]*\[\d+",
    )
)
_TOO_LONG_EAST_ASIAN = re.compile(
    r"(?:输入|提示|上下文|消息|请求|prompt|token|入力|プロンプト|コンテキスト|トークン)[^\n]*"
    r"(?:超长|超过|超出|超限|过长|太长|長すぎ|超え|超過|上限)"
)
_ANSWER_EAST_ASIAN = re.compile(r"输出|出力")
_ONLY_ANSWER = re.compile(rf"{_ANSWER}[^\n]*(?:{_OVER}|limit|must be|valid|range|supports?|at most|reached|超|上限)")
_ONLY_ANSWER_INVERTED = re.compile(rf"(?:range|value|maximum) of {_ANSWER}")
_NAMES_PROMPT = re.compile(
    r"\b(?:prompt|input|messages|conversation|context (?:length|limit|size))\b|输入|上下文|提示|入力"
)
_CODE_SAYS_ALL = re.compile(
    r"(?:context|prompt|input)_(?:\w+_)?(?:exceed|overflow|too_(?:long|large))|context_?overflow"
    r"|exceed\w*_context|request_too_large|payload_too_large"
)
_TRUNCATED = re.compile(
    r"\b(?:prompt|input|context|messages?)\b[^.\n]*\b(?:was|were|been|is|being|will be) truncated"
    r"|truncating (?:the )?(?:input|prompt|context|messages?)"
)
_CLOSED_ELSEWHERE = frozenset({401, 402, 403, 404, 429})


def _is_another_matter(evidence: _Evidence) -> bool:
    """Whether this level names a cause of its own (rate, rights, money), so that inner levels do not count."""
    return bool(_CLOSED_ELSEWHERE.intersection(evidence.statuses)) or bool(_RATE.search(evidence.text))


def _judge(evidence: _Evidence) -> Overflow | None:
    """The verdict on one level. The order matters: what looks alike is asked about first."""
    text = evidence.text
    if _RATE.search(text):
        return _judge_rate(text)
    if any(_PAIRING.search(line) or _ROLES.search(line) for line in text.splitlines()):
        return Overflow("malformed_history")
    if _is_item(evidence, text):
        return _judge_item(evidence, text)
    figures = _figures(text)
    if evidence.truncated or _TRUNCATED.search(text) or any(_CODE_SAYS_ALL.search(end) for end in evidence.finishes):
        return Overflow("truncated_silently", *_sizes(figures))
    return _judge_sizes(evidence, text, figures)


def _judge_rate(text: str) -> Overflow | None:
    limit, requested = _number(_RATE_LIMIT, text), _number(_RATE_REQUESTED, text)
    if limit is not None and requested is not None:
        return Overflow("rate_limit_too_small", limit, requested) if requested > limit else None
    return Overflow("rate_limit_too_small", limit, requested) if _REQUEST_ITSELF.search(text) else None


def _is_item(evidence: _Evidence, text: str) -> bool:
    """Whether the complaint is about one named field or one medium."""
    named = _NAMED_FIELD.search(text) or "string_above_max_length" in evidence.codes or _MEDIA_CAP.search(text)
    return bool(named or ((_ITEM_FIELD.search(text) or _item_fields(evidence)) and _ITEM_CAP.search(text)))


def _item_fields(evidence: _Evidence) -> list[str]:
    return [name for name in evidence.fields if _ITEM_FIELD.search(name)]


def _judge_item(evidence: _Evidence, text: str) -> Overflow | None:
    """One field over its cap: the verdict only where the field is content of the history."""
    found = _NAMED_FIELD.search(text) or _ITEM_FIELD.search(text)
    names = [found[1]] if found else evidence.fields
    name = names[0].rstrip(".:") if names else ""
    if not name and _MEDIA_CAP.search(text):
        name = "content"
    if not _HISTORY_ROOT.match(name) or _IDENTITY.search(name):
        return None
    if "array too long" in text and re.fullmatch(r"messages|input|contents", name):
        return Overflow("prompt_too_long")  # too many messages: the limit is no number of tokens
    lengths = _ITEM_LENGTHS.search(text)
    if lengths is None:
        return Overflow("item_too_long")
    limit, used = lengths["limit"] or lengths["cap"], lengths["used"] or lengths["length"]
    return Overflow("item_too_long", _integer(limit), _integer(used))


def _judge_sizes(evidence: _Evidence, text: str, figures: _Figures) -> Overflow | None:
    """Prompt, answer and window: by arithmetic where the text gives figures, else by its wording."""
    prompt, answer, limit = figures.prompt, figures.answer, figures.limit
    windowed = bool(_WINDOWED.search(text)) and not figures.other_unit
    if windowed and prompt is not None and answer is not None and limit is not None:
        if prompt >= limit:  # at the limit not one token of an answer is left
            return Overflow("prompt_too_long", limit, prompt)
        return Overflow("output_budget", limit, prompt) if prompt + answer > limit else None
    below_zero = _number(_NEGATIVE_ANSWER_ROOM, text)
    if (
        below_zero is not None and below_zero > 1
    ):  # computed from a prompt that leaves no room; -1 is a caller's "no cap"
        return Overflow("prompt_too_long", limit)
    if _is_only_answer(text):
        return None
    measured = prompt if prompt is not None else figures.total
    too_long = measured is not None and limit is not None and measured > limit and windowed
    code_says_all = any(_CODE_SAYS_ALL.search(code) for code in evidence.codes)
    if too_long or code_says_all or _CODE_SAYS_ALL.search(text) or _says_too_long(text):
        return Overflow("prompt_too_long", *_sizes(figures))
    return None


def _is_only_answer(text: str) -> bool:
    """Whether the complaint is about the size of the answer alone, with nothing said about the prompt's."""
    about_answer = _ONLY_ANSWER.search(text) or _ONLY_ANSWER_INVERTED.search(text)
    return bool((about_answer and not _NAMES_PROMPT.search(text)) or _ANSWER_EAST_ASIAN.search(text))


def _says_too_long(text: str) -> bool:
    for sentence in re.split(r"(?<=[.;!?。])\s+|\n", text):
        if _NOT_SIZES.search(sentence):
            continue
        if _TOO_LONG_EAST_ASIAN.search(sentence):
            return True
        if any(pattern.search(sentence) for pattern in _TOO_LONG) and re.search(_SIZE, sentence):
            return True
    return False


def _sizes(figures: _Figures) -> tuple[int | None, int | None]:
    if figures.other_unit:
        return None, None
    return figures.limit, figures.prompt if figures.prompt is not None else figures.total


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return _integer(match[1]) if match else None


def _integer(digits: str | None) -> int | None:
    return int(digits.replace(",", "")) if digits else None
