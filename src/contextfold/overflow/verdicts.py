"""What the words of a refusal mean: the one table of it.

``VERDICTS`` is asked from the top, since what looks alike has to be told apart first; the first row that holds decides.
The rows name words, not sentences, so that texts which are new fall into them too. Each has a sample, which tests and
the page about requests read.

What belongs here: verdicts, and the words that tell them. What does not: asking the table and arithmetic
(``classifying``), reading errors (``text``) and the numbers in them (``figures``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from contextfold.overflow.figures import ANSWER

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
    of_bytes: bool = field(default=False, compare=False)
    """Whether the request was too large as it was sent, by its pictures for instance. That says nothing about the
    tokens which the model takes."""
    answer: int | None = field(default=None, compare=False)
    """The tokens that were asked for as an answer, where the text names them beside the prompt."""

    @property
    def is_cut_short(self) -> bool:
        """Whether ``used`` is only where the counting ended: vLLM reads one token more than fits beside the answer, so
        that the prompt may be of any size from there on."""
        return None not in (self.limit, self.used, self.answer) and self.used + self.answer == self.limit + 1  # type: ignore[operator]


# ---- the words -------------------------------------------------------------------------------------------------------

_FAR_OVER = (
    r"(?:too (?:long|large|many|much|big|lengthy|great)|exceed\w{0,12}|surpass\w{0,6}|overflow\w{0,12}|exhausted"
    r"|overr[ua]n\w{0,6}|outgr[eo]w\w{0,3}|oversized?|\bpast\b|beyond|reached|\bhit\b"
    r"|no longer fits?|(?:not|cannot|n't) fit)"
)
_OVER = rf"(?:{_FAR_OVER}|(?:longer|greater|larger|bigger|more|less|fewer) than|over (?:the|limit|\d)|above|is full)"
"""That something is more than it may be; the first also where it stands before what it is said of."""
_READ = r"(?:prompts?|inputs?|messages|conversations?|chats?|dialog(?:ue)?s?|history|transcript|input_ids)"
"""What a model reads."""
_WINDOW = (
    r"(?:context[ _-]?(?:window|length|size|limit|capacity)?|token (?:limit|count)|max[ _]?model[ _]?len\w*"
    r"|model length|kv[ _-]?cache|position[ _]embeddings|max[ _]seq[ _]?len\w*|model[ _]max[ _]len\w*|\b(?:n_)?ctx\b"
    r"|sequence length)"
)
"""What it has room for."""
_MODEL_CAN = (
    r"(?:what )?(?:this|the|our|your|its) (?:\w+ )?model(?:s? \w+)? "
    r"(?:can|is able|was|accepts?|supports?|allows?|reads?|handles?|takes?|has)\b"
)

RATE = re.compile(
    r"per[ -_](?:min(?:ute)?|sec(?:ond)?|hour|day)|\b[tr]p[mds]\b|rate[ _-]?limit|too many requests|throttl|quota"
    r"|billing|credits?\b|insufficient[ _]balance|enqueued|this minute|spending"
    r"|monthly|daily|weekly|hourly|wait before|try again (?:later|in \d)|can only afford|paid (?:account|plan|tier)"
    r"|频率|限流|额度|余额|配额|每(?:分钟|秒|小时|天|日)|リクエスト数|毎(?:分|秒|日)|요청 (?:수|한도)|분당"
)

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
_ROLES = re.compile(
    r"roles? (?:must|should) (?:be )?alternat|alternat\w{0,10} between (?:user|assistant)"
    r"|(?:first|last) message[^.\n]{0,160}must|(?:expected|unexpected) (?:last )?role"
    r"|conversation must (?:start|end|begin)|(?:consecutive|successive) (?:user|assistant|messages?)"
)
_THINKING = re.compile(
    r"(?:thinking|reasoning)[^\n]{0,80}(?:bound to|different conversation)"
    r"|invalid[^\n]{0,12}signature[^\n]{0,40}thinking"
    r"|thinking[^\n]{0,40}invalid[^\n]{0,12}signature|invalid[_ ]encrypted[_ ]content"
    r"|encrypted (?:reasoning )?content[^\n]{0,160}(?:could not|cannot|failed to) (?:be )?(?:verified|decrypted|parsed)"
)
_NO_THINKING = re.compile(
    r"expected [^\n]{0,12}thinking[^\n]{0,80}but found|must start with a thinking block"
    # DeepSeek (also behind Anthropic's API), Kimi
    r"|in the thinking mode must be passed back"
    r"|missing [^\n]{0,4}reasoning_content|reasoning_content[^\n]{0,4} is missing"
)

NAMED_FIELD = re.compile(r"(?:invalid )?\b([a-z_]{1,60}(?:[.\[][\w\].\[]{0,120})?):? (?:string|array) too long")
ITEM_FIELD = re.compile(r"\b((?:messages|input|contents|content)(?:\[\d{1,9}\]|\.\d{1,9})[\w.\[\]]{0,120})")
_ITEM_CAP = re.compile(r"too (?:long|large)|exceeds?|at most|above")
MEDIA_CAP = re.compile(
    r"\b(?:image|document|pdf|audio|video)\b(?![^\n]{0,160}\btokens\b)(?![^\n]{0,160}\bfile\b)[^\n]{0,160}"
    r"(?:exceeds?|too large|too big|larger than)"
)
_PIXELS = re.compile(r"\bpixels?\b|\bdimensions?\b|\bduration\b")

_TRUNCATED = re.compile(
    r"\b(?:prompt|input|context|messages?)\b[^.\n]{0,160}\b(?:was|were|been|is|being|will be) truncated"
    r"|truncating (?:the )?(?:input|prompt|context|messages?)"
)
WINDOWED = re.compile(rf"tokens?\b|n_ctx|{_WINDOW}|上下文|输入|入力|입력|토큰")
WHOLE_REQUEST = re.compile(r"\b(?:request|payload|entity|body|(?<!text )bytes)\b|content (?:is )?too large")
ONLY_ANSWER = re.compile(
    rf"{ANSWER}[^\n]{{0,160}}(?:{_OVER}|limit|must be|valid|range|supports?|at most|reached|超|上限)"
    rf"|(?:range|value|maximum) of {ANSWER}"
)
_NAMES_PROMPT = re.compile(
    r"\b(?:(?:prompt|input)(?:_len\w*|_tokens)?|messages|conversation|context (?:length|limit|size))\b"
    r"|输入|上下文|提示|入力"
)
_ANSWER_EAST_ASIAN = re.compile(r"输出|出力|출력")
_CODE_SAYS_ALL = re.compile(
    r"(?:context|prompt|input|conversation|history)_(?:\w{1,40}_)?(?:exceed|overflow|too_(?:long|large))"
    r"|context_(?:length|window|limit|size)_error|(?:messages|prompt|input|context)too(?:long|large)\b"
    r"|context_?overflow|exceed\w{0,40}_context|request_too_large|payload_too_large"
)

_NOT_SIZES = re.compile(
    r"time[d ]?-?out|deadline|retries|attempts|concurren|connection|recursion|header|seconds|api[ _](?:key|token)|jwt"
    r"|(?:access|bearer|session|refresh) token|authenticat|too small|file ?name|ur[il]\b|budget|\bmemory\b"
    r"|safety|moderation|blocked|flagged|sensitive|pixels?\b|dimensions?\b|token (?:has )?expired"
    r"|(?:took|taking) too long|too long to (?:complete|respond|process|answer|run)|\bcancell?ed\b|\d ?s\b"
    r"|invalid (?:json )?schema|response content|completion_?usage|execution context|stored in kv"
)
_OTHER_THING = re.compile(
    r"\b(?:schemas?|metadata|stop|logit_?bias|batch(?:es)?|embeddings?(?<!position embeddings)|top_[kp]|temperature"
    r"|vocabulary|user[ _]id|tool names?|function names?|descriptions?|labels?|upload(?:s|ed|ing)?|pages"
    r"|images|cache_control|seeds?|tools|functions|choices|candidates|logprobs|penalt(?:y|ies)|depth)\b"
)
_FILE_TOO_LONG = re.compile(r"\bfile\b[^\n]{0,160}(?:exceeds?|too (?:long|large|big)|larger than)")
_SIZE = re.compile(r"tokens?|bytes|characters|length|size|context|window|payload|limit|maximum|model|long|large|big")


# ---- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a text (or code, line, sentence) with ``pattern`` and ``also`` in it, and without ``unless``, means
    ``verdict``. A verdict of None means that it is another matter: nothing of that text, or sentence, counts.
    """

    name: str
    pattern: re.Pattern[str]
    verdict: Kind | None
    sample: str
    of: Literal["text", "line", "fields", "code", "finish", "sentence"] = "text"
    also: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    about: About | None = None

    def holds(self, piece: str) -> bool:
        """Whether this row speaks about a text, in lower case and without quotes."""
        return (
            self.pattern.search(piece) is not None
            and (self.also is None or self.also.search(piece) is not None)
            and (self.unless is None or self.unless.search(piece) is None)
        )


def _row(name: str, verdict: Kind | None, pattern: str, sample: str) -> Rule:
    """A row about one sentence that speaks of a size."""
    return Rule(name, re.compile(pattern), verdict, sample, "sentence", also=_SIZE)


VERDICTS: tuple[Rule, ...] = (
    Rule(
        # first, since these texts speak of tokens and limits as those about the window do
        "rates, rights and money",
        RATE,
        "rate_limit_too_small",
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41000.",
    ),
    Rule(
        "bound thinking",
        _THINKING,
        "malformed_history",
        "Invalid signature in thinking block. The block is bound to a different conversation",
        about="thinking",
    ),
    Rule("unreadable thinking", _THINKING, "malformed_history", "invalid encrypted content", "code", about="thinking"),
    Rule(
        "missing thinking",
        _NO_THINKING,
        "malformed_history",
        "messages.1.content.0.type: Expected `thinking`, but found `tool_use`.",
        about="no_thinking",
    ),
    Rule(
        "calls and results",
        _PAIRING,
        "malformed_history",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each id.",
        "line",
    ),
    Rule("roles", _ROLES, "malformed_history", "messages: roles must alternate between user and assistant", "line"),
    Rule(
        "one field",
        NAMED_FIELD,
        "item_too_long",
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576.",
        unless=_PIXELS,
    ),
    Rule(
        "one field, by its code",
        re.compile(r"^string above max length$"),
        "item_too_long",
        "string_above_max_length",
        "code",
    ),
    Rule(
        "one medium",
        MEDIA_CAP,
        "item_too_long",
        "messages.0.content.0.image: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        unless=_PIXELS,
    ),
    Rule(
        "one message",
        ITEM_FIELD,
        "item_too_long",
        "messages.3.content: text is too long, at most 400000 characters",
        "fields",
        also=_ITEM_CAP,
        unless=_PIXELS,
    ),
    Rule("read in part", _TRUNCATED, "truncated_silently", "warning: the prompt was truncated to 4096 tokens"),
    Rule("ended by the window", _CODE_SAYS_ALL, "truncated_silently", "model_context_window_exceeded", "finish"),
    # -- arithmetic stands here: see ``_by_arithmetic`` --
    Rule(
        "only the answer",
        ONLY_ANSWER,
        None,
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
        unless=_NAMES_PROMPT,
    ),
    Rule("only the answer, East Asian", _ANSWER_EAST_ASIAN, None, "输出长度超过最大值 4096"),
    Rule("a code that says it all", _CODE_SAYS_ALL, "prompt_too_long", "context_length_exceeded", "code"),
    Rule("such a code in the text", _CODE_SAYS_ALL, "prompt_too_long", "failed: exceed_context_size_error"),
    # Before the rows about sizes, whose words these sentences have: "took too long", "token expired".
    Rule("not about sizes", _NOT_SIZES, None, "Request timed out: the input took too long to process", "sentence"),
    Rule("a file", _FILE_TOO_LONG, None, "The file exceeds the maximum of 256 kB", "sentence", unless=_NAMES_PROMPT),
    Rule(
        "another thing",
        _OTHER_THING,
        None,
        "The response_format schema is too large: 16000 characters allowed",
        "sentence",
        unless=re.compile(rf"{_NAMES_PROMPT.pattern}|\b{_WINDOW}\b"),
    ),
    _row(
        "what is read is too long",
        "prompt_too_long",
        rf"\b{_READ}\b[^\n]{{0,160}}{_OVER}",
        "prompt is too long: 213462 tokens > 200000 maximum",
    ),
    _row(
        "too much of what is read",
        "prompt_too_long",
        rf"(?:too (?:many|much|large|long)|oversized?)[^\n]{{0,40}}\b(?:{_READ}|context)\b"
        r"|(?:not enough|insufficient) context (?:left|window|space|room|size|length|capacity|available|remain)",
        "Too much input: the model handles 32k tokens",
    ),
    _row(
        "more than the window",
        "prompt_too_long",
        rf"(?:{_FAR_OVER}|run(?:ning)? (?:out )?of|ran out of)[^\n]{{0,160}}\b(?:{_WINDOW}|tokens)\b"
        rf"|(?:longer|larger|greater|more) than[^\n]{{0,60}}\b{_WINDOW}"
        rf"|more (?:tokens|text|words) than {_MODEL_CAN}",
        "This is longer than the model's maximum context length",
    ),
    _row(
        "the window is full",
        "prompt_too_long",
        rf"\b(?:request|payload|tokens?|length|text|{_WINDOW})\b[^\n]{{0,160}}{_OVER}",
        "Context window exhausted",
    ),
    _row(
        "more than the model can",
        "prompt_too_long",
        rf"(?:longer|larger|greater|bigger|more) than {_MODEL_CAN}",
        "This is larger than what our model can take in at once.",
    ),
    _row(
        "too many bytes",
        "prompt_too_long",
        r"too (?:many|much|large)[^\n]{0,40}\b(?:bytes|characters)\b",
        "too many total text bytes: 28000000 > 25000000",
    ),
    _row(
        "shorten it",
        "prompt_too_long",
        rf"(?:reduce|shorten|decrease|trim|cut)[^\n]{{0,160}}\b(?:{_READ}|context)\b",
        "Please reduce the length of the messages.",
    ),
    _row(
        "only a limit",
        "prompt_too_long",
        r"max(?:imum)? (?:context|prompt|input|sequence)[ _](?:length|size|tokens)\b[^\n]{0,12}\d",
        "max context length: 8192",
    ),
    _row(
        "the whole request",
        "prompt_too_long",
        r"(?:entity|payload|content|body) (?:is )?too large|^(?:the )?(?:text|content) (?:is )?too long"
        r"|\b(?:request|payload|body)\b[^\n]{0,80}larger than",
        "413 Content Too Large",
    ),
    _row(
        "a range of lengths",
        "prompt_too_long",
        r"range of (?:input|prompt|messages?)[^\n]{0,160}\[\d+",
        "Range of input length should be [1, 129024]",
    ),
    Rule(
        "Chinese, Japanese, Korean",
        re.compile(
            r"(?:输入|提示|上下文|消息|对话|请求|prompt|token|入力|プロンプト|コンテキスト|トークン|입력|프롬프트|컨텍스트|토큰)[^\n]{0,160}"
            r"(?:超长|超过|超出|超限|过长|太长|長すぎ|超え|超過|上限|초과|너무 [길긴깁])"
            r"|(?:超过|超出|大于)[^\n]{0,160}(?:上下文|窗口|输入长度)"
        ),
        "prompt_too_long",
        "输入长度超过模型最大上下文",
        "sentence",
    ),
    Rule(
        "European languages",
        re.compile(
            r"dépass|excède|trop (?:long|grand|de)|supérieur|zu (?:lang|groß|viele?)\b|überschr|übersteig|länger als"
            r"|demasiad|\bsuperan?\b|\bexceden?\b|sobrepasa|ultrapassa|muito long|eccede|troppo lung|превыш|слишком"
        ),
        "prompt_too_long",
        "Die Eingabe ist zu lang: 40000 Token, erlaubt sind 32768.",
        "sentence",
        also=re.compile(
            r"context|contexte|jetons?|tokens?\b|entrée|eingabe|kontext|prompt|contesto|entrada|contexto|conversa"
            r"|unterhaltung|контекст|токен|промпт"
        ),
    ),
)
"""In the order in which they are asked: the first row that holds decides."""
