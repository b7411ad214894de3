"""Does this error mean that the prompt does not fit, and which limit does it name?

The table of ``verdicts`` is asked row by row. Between its rows for whole texts and those for single sentences stands
arithmetic: a prompt of 9,000 tokens under a limit of 8,192 needs no more words. A status never decides.

What belongs here: one verdict about what an error says. What does not: the words that tell (``verdicts``), and acting
on the verdict (``calls.recovery``, ``summary.request``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from contextfold.errors import ContextOverflow
from contextfold.overflow.figures import Figures, figures_of, whole_number
from contextfold.overflow.text import ErrorText, inner_exceptions, read_exception
from contextfold.overflow.verdicts import (
    ITEM_FIELD,
    MEDIA_CAP,
    NAMED_FIELD,
    ONLY_ANSWER,
    RATE,
    VERDICTS,
    WHOLE_REQUEST,
    WINDOWED,
    Overflow,
    Rule,
)

BARE_FILL = 0.8
"""Share of the assumed window from which on a refusal without a word is taken for its size: two vendors refuse what is
too long with an empty body, and there is nothing else that a full window and a bare 400 have in common."""


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
    try:
        return _classified(error, status, code, message, body, fill)
    except Exception:  # noqa: BLE001 - what an SDK hangs on its exceptions may raise; the error itself must get through
        return None


def _classified(
    error: object, status: int | None, code: str | int | None, message: str | None, body: object, fill: float | None
) -> Overflow | None:
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
    return found or (_bare_verdict(read_exception(error, given)) if is_full else None)


def _bare_verdict(said: ErrorText) -> Overflow | None:
    """The verdict on a refusal that has a status and not a word about why."""
    return Overflow("prompt_too_long") if _is_bare(said) else None


def _is_bare(said: ErrorText) -> bool:
    """Whether a refusal has a status and not a word about why."""
    statuses = {400, 413}.intersection(said.statuses) or _BARE_STATUS.search(said.text)
    if not statuses or any(code.replace("_", "") not in _BARE_CODES for code in said.codes):
        return False
    return not any(map(str.isalnum, _BARE_WORDS.sub(" ", said.text)))


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
        # LiteLLM repeats what the text of an SDK's exception says, which may be the status alone: the words are inside.
        for inner in inner_exceptions(current, is_answer=bool(said.statuses) and not _is_bare(said)):
            # a chain of causes may lead back to itself
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return None


def _is_another_matter(said: ErrorText) -> bool:
    """Whether this level names a cause of its own (rate, rights, money), so that inner levels do not count."""
    return bool(_CLOSED_ELSEWHERE.intersection(said.statuses)) or bool(RATE.search(said.text))


# Asked only where a level gave no verdict of its own: a 429 may well say that one request is above the rate.
_CLOSED_ELSEWHERE = frozenset({401, 402, 403, 404, 429})

_BARE_STATUS = re.compile(r"\b(?:400|413)\b")
# Names of exceptions and codes that say "refused" and not why. Any other code is a word about the cause.
_BARE_CODES = frozenset(
    (
        *("badrequesterror", "badrequest", "apistatuserror", "httpstatuserror", "invalidrequesterror", "apierror"),
        *("refused", "exception", "runtimeerror", "clienterror", "clientresponseerror", "httperror", "responseerror"),
        *("requesterror", "providererror", "contenttoolargeerror", "requesttoolargeerror"),
    )
)
_BARE_WORDS = re.compile(
    r"error code|status[ _]code|\bno body\b|bad ?request|client error|http|\berror\b|\bnone\b|\b(?:400|413)\b"
    r"|(?:payload|request entity|content) too large|\bmessage="
    r"|litellm\.(?:badrequest|api)error|\bapierror\b|\b\w{1,40}exception(?= -)"
)


_REQUEST_ITSELF = re.compile(r"request too large|requested tokens? exceed|request of \d|by itself")
_RATE_LIMIT = re.compile(r"limit:? (\d[\d,]{0,20})")
_RATE_REQUESTED = re.compile(r"requested:? (\d[\d,]{0,20})")
_ITEM_LENGTHS = re.compile(
    r"(?<![\d,])(?P<used>\d[\d,]{0,20}) (?:bytes|characters) > (?P<limit>\d[\d,]{0,20})"
    r"|(?:at most|maximum length:?|exceeds) (?P<cap>\d[\d,]{0,20}+)"
    r"(?! ?[kmg]i?b)(?:.{0,160}?(?:length|got|given) (?P<length>\d[\d,]{0,20}))?"
)
# A cap on one of these is no matter of length: a clipped id or name points nowhere.
_IDENTITY = re.compile(r"(?:^|[._])(?:id|call_id|tool_call_id|name|role|type|title)$")
_HISTORY_ROOT = re.compile(r"^(?:messages|inputs?|prompt|contents?)\b")
_MESSAGE_LIST = re.compile(r"messages|input|contents")
_NEGATIVE_ANSWER_ROOM = re.compile(r"at least [01],? (?:but )?(?:got|received|was)\w* -(\d+)")
_SENTENCE_END = re.compile(r"(?<=[.;!?。])\s+|\n")

_OF_SENTENCES = tuple(rule for rule in VERDICTS if rule.of == "sentence")
_WHOLE = tuple(rule for rule in VERDICTS if rule.of != "sentence")
_ARITHMETIC = next(place for place, rule in enumerate(_WHOLE) if rule.name == "only the answer")
_OF_LOOK_ALIKES, _OF_TEXTS = _WHOLE[:_ARITHMETIC], _WHOLE[_ARITHMETIC:]


def _pieces(rule: Rule, said: ErrorText, text: str) -> Iterable[str]:
    """What of an error a row for texts is about."""
    match rule.of:
        case "line":
            return text.splitlines()
        case "fields":
            return ["\n".join([text, *said.fields])]
        case "code":
            return [*said.codes] + [code.replace("_", " ") for code in said.codes]
        case "finish":
            return said.finishes
        case _:
            return [text]


def _verdict(said: ErrorText) -> Overflow | None:
    text = said.text
    figures = figures_of(text)
    if (rule := _first(_OF_LOOK_ALIKES, said, text)) is not None:
        return _refined(rule, said, text)
    if said.truncated:
        return Overflow("truncated_silently", *_sizes(figures))
    if (counted := _by_arithmetic(text, figures)) is not None:
        return counted[0]
    if (rule := _first(_OF_TEXTS, said, text)) is not None:
        return _refined(rule, said, text)
    if _is_measured_too_long(text, figures):
        return Overflow("prompt_too_long", *_sizes(figures))
    rule = _of_a_sentence(text)
    return None if rule is None else _refined(rule, said, text)


def _first(rules: Sequence[Rule], said: ErrorText, text: str) -> Rule | None:
    return next((rule for rule in rules if any(rule.holds(piece) for piece in _pieces(rule, said, text))), None)


def _of_a_sentence(text: str) -> Rule | None:
    """The row of the first sentence with a verdict."""
    found = (
        next((rule for rule in _OF_SENTENCES if rule.holds(sentence)), None) for sentence in _SENTENCE_END.split(text)
    )
    return next((rule for rule in found if rule is not None and rule.verdict is not None), None)


def _rate_verdict(text: str) -> Overflow | None:
    limit, requested = _number(_RATE_LIMIT, text), _number(_RATE_REQUESTED, text)
    if limit is not None and requested is not None:
        return Overflow("rate_limit_too_small", limit, requested) if requested > limit else None
    if not _REQUEST_ITSELF.search(text):
        return None
    figures = figures_of(text)
    return Overflow("rate_limit_too_small", limit or figures.limit, requested or figures.prompt)


def _item_fields(said: ErrorText) -> list[str]:
    """The named places that lie in the history, from there on: of ``body.messages.3.content`` what follows ``body``."""
    return [found[1] for name in said.fields if (found := ITEM_FIELD.search(name))]


def _item_verdict(said: ErrorText, text: str) -> Overflow | None:
    """One field over its cap: the verdict only where the field is content of the history."""
    found = NAMED_FIELD.search(text) or ITEM_FIELD.search(text)
    names = [found[1]] if found else _item_fields(said) or said.fields
    name = names[0].rstrip(".:") if names else ""
    if not name and MEDIA_CAP.search(text):
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


def _refined(rule: Rule, said: ErrorText, text: str) -> Overflow | None:
    """What a row that holds says of this text, with the figures that belong to it."""
    if rule.verdict is None or rule.verdict == "malformed_history":
        return None if rule.verdict is None else Overflow(rule.verdict, about=rule.about)
    if rule.verdict == "rate_limit_too_small":
        return _rate_verdict(text)
    if rule.verdict == "item_too_long":
        return _item_verdict(said, text)
    figures = figures_of(text)
    of_bytes = WHOLE_REQUEST.search(text) is not None and WINDOWED.search(text) is None
    return Overflow(rule.verdict, *_sizes(figures), of_bytes=of_bytes)


def _by_arithmetic(text: str, figures: Figures) -> tuple[Overflow | None] | None:
    """The verdict where the text gives prompt, answer and limit, in a tuple; None where it does not.

    What is only about the answer is told by the rows that follow, so that a measured prompt alone decides nothing yet.
    """
    prompt, answer, limit = _whole_prompt(figures), figures.answer, figures.limit
    windowed = _is_windowed(text, figures)
    if windowed and prompt is not None and answer is not None and limit is not None:
        if prompt >= limit:  # at the limit not one token of an answer is left
            return (Overflow("prompt_too_long", limit, prompt),)
        # exactly full is refused as well: some servers want a token to spare
        return (Overflow("output_budget", limit, prompt, answer=answer) if prompt + answer >= limit else None,)
    if windowed and prompt is not None and limit is not None and prompt < limit and ONLY_ANSWER.search(text):
        # the prompt fits, and the text is about the answer, whose figure is not there
        return (Overflow("output_budget", limit, prompt),)
    if (_number(_NEGATIVE_ANSWER_ROOM, text) or 0) > 1:  # the prompt left less than no room; -1 is a caller's "no cap"
        return (Overflow("prompt_too_long", limit),)
    return None


def _is_measured_too_long(text: str, figures: Figures) -> bool:
    """Whether the text names a size in tokens, and a limit below it."""
    measured = _whole_prompt(figures) if figures.prompt is not None else figures.total
    is_over = measured is not None and figures.limit is not None and measured > figures.limit
    return is_over and _is_windowed(text, figures)


def _is_windowed(text: str, figures: Figures) -> bool:
    return bool(WINDOWED.search(text)) and not figures.other_unit


def _whole_prompt(figures: Figures) -> int | None:
    """The prompt's size. Where a text gives it in parts ("of text input", "of tool input"), what the total leaves."""
    if figures.prompt is None or figures.total is None or figures.answer is None:
        return figures.prompt
    return max(figures.prompt, figures.total - figures.answer)


def _sizes(figures: Figures) -> tuple[int | None, int | None]:
    """Limit and used, where they are tokens."""
    if figures.other_unit:
        return None, None
    used = figures.prompt if figures.prompt is not None else figures.total
    if used is not None and figures.limit is not None and used < figures.limit:
        used = None  # what fits was not refused: a number of something else
    return figures.limit, used


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return whole_number(match[1]) if match else None
