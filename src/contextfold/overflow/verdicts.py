"""Does this error mean that the prompt does not fit, and which limit does it name?

What belongs here: one verdict about what an error says. What does not: reading errors (``error_text``) and the numbers
in them (``error_figures``), and acting on the verdict (``compactor``, ``summary.request``).

The verdict asks what is too long: arithmetic first, then the wording (which thing exceeds what), and a code only where
it says it all and the text does not contradict it. A status never decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from contextfold.errors import ContextOverflow
from contextfold.overflow.figures import ANSWER, Figures, figures_of, whole_number
from contextfold.overflow.text import ErrorText, inner_exceptions, read_exception

Kind = Literal[
    "prompt_too_long",  # compact, then resend
    "output_budget",  # the prompt fits, prompt and answer together do not: lower the answer limit
    "item_too_long",  # one field of the history is over its own cap
    "rate_limit_too_small",  # the tokens-per-minute limit is below this one request
    "truncated_silently",  # the request "succeeded", and part of the prompt was not read
    "malformed_history",  # calls and results or roles do not pair: repair, then resend
]


About = Literal[
    "thinking",  # thinking or ciphertext that was made under another view or by another model: resend without it
    "no_thinking",  # thinking that has to come back with its calls, and was left out: resend with it
]

BARE_FILL = 0.8
"""Share of the assumed window from which on a refusal without a word is taken for its size: two vendors refuse what is
too long with an empty body, and there is nothing else that a full window and a bare 400 have in common."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """A verdict.

    ``limit`` and ``used`` are tokens, and None where the text does not name them in tokens; for
    ``item_too_long`` they are the characters (or bytes) of that item. ``used`` is the size of the prompt.
    """

    kind: Kind
    limit: int | None = None
    used: int | None = None
    about: About | None = field(default=None, compare=False)
    """What of a ``malformed_history`` is refused, where that has a remedy of its own."""


def classify(
    error: object = None,
    *,
    status: int | None = None,
    code: str | int | None = None,
    message: str | None = None,
    body: object = None,
    fill: float | None = None,
) -> Overflow | None:
    """What an error says about sizes, or None if it says nothing about them.

    ``fill``: the request as a share of the window that is assumed, where the caller knows it. From ``BARE_FILL`` on, a
    status 400 or 413 without any body means that it was too long.

    ``error`` is an exception of any SDK, or a body (text, bytes, parsed JSON); the keywords give what the
    caller has already taken apart. Never raises. None means: an error of another kind, leave it alone.
    """
    given = ErrorText()
    given.add_status(status)
    given.add_code(code)
    given.read(message)
    given.read(body)
    is_full = fill is not None and fill >= BARE_FILL
    if not isinstance(error, BaseException):
        given.read(error)
        return _verdict(given) or (_bare_verdict(given) if is_full else None)
    found = _verdict(given) or (None if _is_another_matter(given) else _chain_verdict(error))
    return found or (_bare_verdict(read_exception(error)) if is_full else None)


def _bare_verdict(said: ErrorText) -> Overflow | None:
    """The verdict on a refusal that has a status and not a word about why."""
    statuses = {400, 413}.intersection(said.statuses) or _BARE_STATUS.search(said.text)
    if not statuses or any(code not in _BARE_CODES for code in said.codes):
        return None
    return None if any(map(str.isalnum, _BARE_WORDS.sub(" ", said.text))) else Overflow("prompt_too_long")


def _chain_verdict(error: BaseException) -> Overflow | None:
    """The verdict of the outermost exception that gives one, unless an outer one names another matter."""
    waiting, seen = [error], {id(error)}
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, ContextOverflow):
            return Overflow("prompt_too_long", current.limit, current.used)
        said = read_exception(current)
        verdict = _verdict(said)
        if verdict is not None:
            return verdict
        if _is_another_matter(said):
            continue
        for inner in inner_exceptions(current, is_answer=bool(said.statuses)):
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return None


# What names a matter of its own: rates, rights, money.
_RATE = re.compile(
    r"per[ -_](?:min(?:ute)?|sec(?:ond)?|hour|day)|\b[tr]p[mds]\b|rate[ _-]?limit|too many requests|throttl|quota"
    r"|billing|credits|insufficient[ _]balance|enqueued|this minute"
    r"|monthly|daily|weekly|wait before|try again (?:later|in \d)|can only afford|paid (?:account|plan|tier)"
    r"|频率|限流|额度|余额|配额|每(?:分钟|秒|小时|天|日)|リクエスト数|毎(?:分|秒|日)|요청 (?:수|한도)|분당"
)
_CLOSED_ELSEWHERE = frozenset({401, 402, 403, 404, 429})
_REQUEST_ITSELF = re.compile(r"request too large|requested tokens? exceed|request of \d|by itself")
_RATE_LIMIT = re.compile(r"limit:? (\d[\d,]*)")
_RATE_REQUESTED = re.compile(r"requested:? (\d[\d,]*)")

# What does not pair.
_PAIRING = re.compile(
    r"(?:(?:tool|function)[ _-]?(?:call|use|result|response|output|message)(?:_id)?s?|role:? tool)\b"
    r"[^\n]{0,160}(?:without|must follow|must be followed|must have a corresponding|must be a response"
    r"|immediately after"
    r"|preced+ing|did not have|not found|were found|unexpected|does not match|mismatch|equal to|unanswered|number of)"
    r"|(?:no|missing|expected|unexpected|orphan(?:ed)?|each|unanswered|duplicate) (?:tool|function)[ _-]?"
    r"(?:call|use|result|response|output)s?\b|not the same number of function|number of tool_?results? blocks"
    r"|tool[ _-]?(?:call|use|result)s?(?: blocks?| messages?)? (?:cannot|can not|must not|may not) be"
    r"|tool messages? must follow|role:tool[^\n]{0,160}must be satisfied|ids must be unique"
    r"|tool[^\n]{0,160}(?:必须|缺少|不匹配|没有对应)"
    r"|reasoning[^\n]{0,160}without its required|(?:thinking|reasoning)[^\n]{0,160}cannot be modified|expected thinking"
)
_THINKING = re.compile(
    r"(?:thinking|reasoning)[^\n]{0,80}(?:bound to|different conversation)"
    r"|invalid[^\n]{0,12}signature[^\n]{0,40}thinking"
    r"|thinking[^\n]{0,40}invalid[^\n]{0,12}signature|invalid[_ ]encrypted[_ ]content"
    r"|encrypted (?:reasoning )?content[^\n]{0,160}(?:could not|cannot|failed to) (?:be )?(?:verified|decrypted|parsed)"
)
_NO_THINKING = re.compile(r"expected [^\n]{0,12}thinking[^\n]{0,80}but found|must start with a thinking block")
_BARE_STATUS = re.compile(r"\b(?:400|413)\b")
_BARE_CODES = frozenset(
    {
        "bad_request_error",
        "bad_request",
        "api_status_error",
        "http_status_error",
        "invalid_request_error",
        "badrequesterror",
        "apistatuserror",
        "apierror",
        "httpstatuserror",
        "api_error",
    }
)
_BARE_WORDS = re.compile(
    r"error code|status[ _]code|\bno body\b|bad ?request|client error|http|\berror\b|\bnone\b|\b(?:400|413)\b"
    r"|payload too large|for url \S{0,500}"
)
_ROLES = re.compile(
    r"roles? (?:must|should) (?:be )?alternat|alternat\w{0,10} between (?:user|assistant)"
    r"|(?:first|last) message[^.\n]{0,160}must|(?:expected|unexpected) (?:last )?role"
    r"|conversation must (?:start|end|begin)|(?:consecutive|successive) (?:user|assistant|messages?)"
)

# One field of the request, or one medium, over its own cap.
_NAMED_FIELD = re.compile(r"(?:invalid )?\b([a-z_]{1,60}(?:[.\[][\w\].\[]{0,120})?):? (?:string|array) too long")
_ITEM_FIELD = re.compile(r"\b((?:messages|input|contents|content)(?:\[\d{1,9}\]|\.\d{1,9})[\w.\[\]]{0,120})")
_ITEM_CAP = re.compile(r"too (?:long|large)|exceeds?|at most|above")
_ITEM_LENGTHS = re.compile(
    r"(?<![\d,])(?P<used>\d[\d,]{0,20}) (?:bytes|characters) > (?P<limit>\d[\d,]{0,20})"
    r"|(?:at most|maximum length:?|exceeds) (?P<cap>\d[\d,]{0,20}+)"
    r"(?! ?[kmg]i?b)(?:.{0,160}?(?:length|got|given) (?P<length>\d[\d,]{0,20}))?"
)
_MEDIA_CAP = re.compile(
    r"\b(?:image|document|pdf|audio|video)\b(?![^\n]{0,160}\btokens\b)(?![^\n]{0,160}\bfile\b)[^\n]{0,160}"
    r"(?:exceeds?|too large|too big|larger than)"
)
_PIXELS = re.compile(r"\bpixels?\b|\bdimensions?\b|\bduration\b")
_IDENTITY = re.compile(r"(?:^|[._])(?:id|call_id|tool_call_id|name|role|type|title)$")
_HISTORY_ROOT = re.compile(r"^(?:messages|inputs?|prompt|contents?)\b")
_MESSAGE_LIST = re.compile(r"messages|input|contents")

# The prompt over its limit, and what only sounds like it.
_NEGATIVE_ANSWER_ROOM = re.compile(r"at least [01],? (?:but )?(?:got|received|was)\w* -(\d+)")
_NOT_SIZES = re.compile(
    r"time[d ]?-?out|deadline|retries|attempts|concurren|connection|recursion|header|seconds|api[ _](?:key|token)|jwt"
    r"|(?:access|bearer|session|refresh) token|authenticat|too small|file ?name|ur[il]\b|budget|memory"
    r"|safety|moderation|blocked|flagged|sensitive|pixels?\b|dimensions?\b|token (?:has )?expired"
    r"|(?:took|taking) too long|too long to (?:complete|respond|process|answer|run)|\bcancell?ed\b|\d ?s\b"
    r"|invalid (?:json )?schema|response content|completion_?usage"
)
_OVER = (
    r"(?:too (?:long|large|many|big)|exceed\w{0,12}|longer than|greater than|larger than|more than|surpass\w{0,6}"
    r"|overflow\w{0,12}"
    r"|over the|is full|less than|fewer than|reached|(?:not|cannot|n't) fit)"
)
_WINDOW = r"(?:context[ _-]?(?:window|length|size|limit)?|token limit|max[ _]?model[ _]?len\w*|model length)"
_WINDOWED = re.compile(rf"tokens?\b|n_ctx|{_WINDOW}|上下文|输入|入力|입력|토큰")
_SENTENCE_END = re.compile(r"(?<=[.;!?。])\s+|\n")
_SIZE = re.compile(r"tokens?|bytes|characters|length|size|context|window|payload|limit|maximum|model|long|large|big")
_TOO_LONG = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:prompts?|inputs?|messages|conversation|history)\b[^\n]{{0,160}}{_OVER}",
        rf"\b(?:request|payload|tokens?|length|{_WINDOW})\b[^\n]{{0,160}}{_OVER}",
        r"(?:too (?:long|large|many|big)|exceed\w{0,12}|overflow\w{0,12}|reached)[^\n]{0,160}"
        rf"\b(?:{_WINDOW}|tokens)\b",
        rf"(?:longer|larger|greater|more) than[^\n]{{0,60}}\b{_WINDOW}",
        r"too (?:many|much|large)[^\n]{0,40}\b(?:bytes|characters)\b",
        r"(?:reduce|shorten|decrease)[^\n]{0,160}\b(?:prompt|input|messages|conversation|context)\b",
        r"max(?:imum)? (?:context|prompt|input|sequence)[ _](?:length|size|tokens)\b[^\n]{0,12}\d",
        r"(?:entity|payload|content) too large|^(?:the )?(?:text|content) (?:is )?too long",
        rf"(?:ran|run|running) out of [^\n]{{0,160}}{_WINDOW}",
        r"range of (?:input|prompt|messages?)[^\n]{0,160}\[\d+",
    )
)
_TOO_LONG_EAST_ASIAN = re.compile(
    r"(?:输入|提示|上下文|消息|对话长度|请求|prompt|token|入力|プロンプト|コンテキスト|トークン|입력|프롬프트|컨텍스트|토큰)[^\n]{0,160}"
    r"(?:超长|超过|超出|超限|过长|太长|長すぎ|超え|超過|上限|초과|너무 [길긴깁])"
    r"|(?:超过|超出|大于)[^\n]{0,160}(?:上下文|窗口|输入长度)"
)
_ANSWER_EAST_ASIAN = re.compile(r"输出|出力|출력")
_ONLY_ANSWER = re.compile(
    rf"{ANSWER}[^\n]{{0,160}}(?:{_OVER}|limit|must be|valid|range|supports?|at most|reached|超|上限)"
)
_ONLY_ANSWER_INVERTED = re.compile(rf"(?:range|value|maximum) of {ANSWER}")
_NAMES_PROMPT = re.compile(
    r"\b(?:(?:prompt|input)(?:_len\w*|_tokens)?|messages|conversation|context (?:length|limit|size))\b"
    r"|输入|上下文|提示|入力"
)
_FILE_TOO_LONG = re.compile(r"\bfile\b[^\n]{0,160}(?:exceeds?|too (?:long|large|big)|larger than)")
"""A tool that read a file says so, or an upload; it is not the prompt, unless that is named too."""
_CODE_SAYS_ALL = re.compile(
    r"(?:context|prompt|input)_(?:\w{1,40}_)?(?:exceed|overflow|too_(?:long|large))|context_?overflow"
    r"|exceed\w{0,40}_context|request_too_large|payload_too_large"
)
_TRUNCATED = re.compile(
    r"\b(?:prompt|input|context|messages?)\b[^.\n]{0,160}\b(?:was|were|been|is|being|will be) truncated"
    r"|truncating (?:the )?(?:input|prompt|context|messages?)"
)


def _is_another_matter(said: ErrorText) -> bool:
    """Whether this level names a cause of its own (rate, rights, money), so that inner levels do not count."""
    return bool(_CLOSED_ELSEWHERE.intersection(said.statuses)) or bool(_RATE.search(said.text))


def _verdict(said: ErrorText) -> Overflow | None:
    """The verdict on one level. The order matters: what looks alike is asked about first."""
    text = said.text
    if _RATE.search(text):
        return _rate_verdict(text)
    if _THINKING.search(text) or any(_THINKING.search(code.replace("_", " ")) for code in said.codes):
        return Overflow("malformed_history", about="thinking")
    if _NO_THINKING.search(text):
        return Overflow("malformed_history", about="no_thinking")
    if any(_PAIRING.search(line) or _ROLES.search(line) for line in text.splitlines()):
        return Overflow("malformed_history")
    if _is_item(said, text):
        return _item_verdict(said, text)
    figures = figures_of(text)
    if said.truncated or _TRUNCATED.search(text) or any(_CODE_SAYS_ALL.search(end) for end in said.finishes):
        return Overflow("truncated_silently", *_sizes(figures))
    return _size_verdict(said, text, figures)


def _rate_verdict(text: str) -> Overflow | None:
    limit, requested = _number(_RATE_LIMIT, text), _number(_RATE_REQUESTED, text)
    if limit is not None and requested is not None:
        return Overflow("rate_limit_too_small", limit, requested) if requested > limit else None
    if not _REQUEST_ITSELF.search(text):
        return None
    figures = figures_of(text)
    return Overflow("rate_limit_too_small", limit or figures.limit, requested or figures.prompt)


def _is_item(said: ErrorText, text: str) -> bool:
    """Whether the complaint is about one named field or one medium. Pixels are no length: nothing shortens them."""
    if _PIXELS.search(text):
        return False
    if _NAMED_FIELD.search(text) or "string_above_max_length" in said.codes or _MEDIA_CAP.search(text):
        return True
    return bool((_ITEM_FIELD.search(text) or _item_fields(said)) and _ITEM_CAP.search(text))


def _item_fields(said: ErrorText) -> list[str]:
    """The named places that lie in the history, from there on: of ``body.messages.3.content`` what follows ``body``."""
    return [found[1] for name in said.fields if (found := _ITEM_FIELD.search(name))]


def _item_verdict(said: ErrorText, text: str) -> Overflow | None:
    """One field over its cap: the verdict only where the field is content of the history."""
    found = _NAMED_FIELD.search(text) or _ITEM_FIELD.search(text)
    names = [found[1]] if found else _item_fields(said) or said.fields
    name = names[0].rstrip(".:") if names else ""
    if not name and _MEDIA_CAP.search(text):
        name = "content"
    if not _HISTORY_ROOT.match(name) or _IDENTITY.search(name):
        return None
    if "array too long" in text and _MESSAGE_LIST.fullmatch(name):
        return Overflow("prompt_too_long")  # too many messages: the limit is no number of tokens
    lengths = _ITEM_LENGTHS.search(text)
    if lengths is None:
        return Overflow("item_too_long")
    limit, used = lengths["limit"] or lengths["cap"], lengths["used"] or lengths["length"]
    return Overflow("item_too_long", whole_number(limit), whole_number(used) if used else None)


def _size_verdict(said: ErrorText, text: str, figures: Figures) -> Overflow | None:
    """Prompt, answer and window: by arithmetic where the text gives figures, else by its wording."""
    prompt, answer, limit = _whole_prompt(figures), figures.answer, figures.limit
    windowed = bool(_WINDOWED.search(text)) and not figures.other_unit
    if windowed and prompt is not None and answer is not None and limit is not None:
        if prompt >= limit:  # at the limit not one token of an answer is left
            return Overflow("prompt_too_long", limit, prompt)
        # exactly full is refused as well: some servers want a token to spare
        return Overflow("output_budget", limit, prompt) if prompt + answer >= limit else None
    if windowed and prompt is not None and limit is not None and prompt < limit and _ONLY_ANSWER.search(text):
        return Overflow("output_budget", limit, prompt)  # the prompt fits, and the answer is what the text is about
    if (_number(_NEGATIVE_ANSWER_ROOM, text) or 0) > 1:  # the prompt left less than no room; -1 is a caller's "no cap"
        return Overflow("prompt_too_long", limit)
    if _is_only_answer(text):
        return None
    measured = prompt if prompt is not None else figures.total
    too_long = measured is not None and limit is not None and measured > limit and windowed
    code_says_all = any(_CODE_SAYS_ALL.search(code) for code in said.codes)
    if too_long or code_says_all or _CODE_SAYS_ALL.search(text) or _says_too_long(text):
        return Overflow("prompt_too_long", *_sizes(figures))
    return None


def _whole_prompt(figures: Figures) -> int | None:
    """The prompt's size. Where a text gives it in parts ("of text input", "of tool input"), what the total leaves."""
    if figures.prompt is None or figures.total is None or figures.answer is None:
        return figures.prompt
    return max(figures.prompt, figures.total - figures.answer)


def _is_only_answer(text: str) -> bool:
    """Whether the complaint is about the size of the answer alone, with nothing said about the prompt's."""
    about_answer = _ONLY_ANSWER.search(text) or _ONLY_ANSWER_INVERTED.search(text)
    return bool((about_answer and not _NAMES_PROMPT.search(text)) or _ANSWER_EAST_ASIAN.search(text))


def _says_too_long(text: str) -> bool:
    return any(_sentence_says_too_long(sentence) for sentence in _SENTENCE_END.split(text))


def _sentence_says_too_long(sentence: str) -> bool:
    if _NOT_SIZES.search(sentence) or (_FILE_TOO_LONG.search(sentence) and not _NAMES_PROMPT.search(sentence)):
        return False
    if _TOO_LONG_EAST_ASIAN.search(sentence):
        return True
    return bool(_SIZE.search(sentence)) and any(pattern.search(sentence) for pattern in _TOO_LONG)


def _sizes(figures: Figures) -> tuple[int | None, int | None]:
    """Limit and used, where they are tokens."""
    if figures.other_unit:
        return None, None
    return figures.limit, figures.prompt if figures.prompt is not None else figures.total


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return whole_number(match[1]) if match else None
