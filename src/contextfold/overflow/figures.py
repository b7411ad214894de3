"""The figures in an error's text, each in the role that the words beside it name: prompt, answer, total or limit.

What belongs here: telling the numbers of a text apart. What does not: where the text comes from (``text``), and what
the figures say when compared (``classifying``).

A number's role is what follows it closely ("8192 tokens maximum"), else what the nearest telling word before it says
("a limit of 8192"). Texts are in lower case and without quotes, as ``ErrorText.text`` gives them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["prompt", "answer", "total", "limit"]

ANSWER = (
    r"(?:completions?|outputs?|generat(?:ed|ion)|new[ _]tokens|num_predict|reply|answer"
    r"|max(?:imum)?[ _-]?(?:new|completion|output)?[ _-]?tokens(?! allowed))"
)
"""A pattern of the words for what the model writes, and for the setting that limits it."""

_PROMPT = r"(?:prompts?|inputs?|messages?|conversation|history|request|(?<!con)text)"
# 128000, 1,048,576, 128k, ~269722, and 为32768个 among signs that need no blanks; not the 4 of gpt-4o, the 3 of
# messages[3], the 5 of 3.5 or a status in front
_SPACED = r"[^\W\u3040-\u9fff\uac00-\ud7af]"
_UNIT = r"(?:k|m|thousand|million)"
_NUMBER = re.compile(
    rf"(?<!{_SPACED})(?<![.\-])(?<!\w\[)(?!(?<![^\n])[45]\d\d\b)"
    rf"(\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d{{1,3}}(?= ?{_UNIT}\b))?)(?:\.0)?(?: ?({_UNIT}))?(?!{_SPACED}|\.\d)"
)
_MULTIPLE = {None: 1, "k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000}

# Every repeat is bounded, here and in the other tables: an error may quote a whole prompt, and a pattern that goes back
# over it takes quadratic time.
_SHAPES = (
    re.compile(
        r"(?<![\d,])(?P<prompt>\d[\d,]{0,20}) \+ (?P<answer>\d[\d,]{0,20}) (?:>|exceeds?) (?P<limit>\d[\d,]{0,20})"
    ),
    re.compile(r"(?<![\d,])(?P<prompt>\d[\d,]{0,20}) ?/ ?(?P<limit>\d[\d,]{0,20}) tokens"),
    re.compile(r"\((?P<prompt>\d[\d,]{0,20}) > (?P<limit>\d[\d,]{0,20})\)"),
    re.compile(r"\((?P<prompt>\d[\d,]{0,20})\) > [a-z_ ]{1,40} \((?P<limit>\d[\d,]{0,20})\)"),
    re.compile(r"(?<![\d,.])(?P<prompt>\d[\d,]{0,20}+) (?:vs\.?|versus) (?P<limit>\d[\d,]{0,20})"),
    re.compile(
        r"\b(?:needs?|requires?)[: ] ?(?P<prompt>\d[\d,]{0,20}+)[^.\n]{0,40}?\b(?:have|has|available|only):? "
        r"(?P<limit>\d[\d,]{0,20})"
    ),
    re.compile(
        rf"{_PROMPT}[ _]?(?:length|tokens|size)?[^.\n]{{0,200}}"
        r"(?<!shape )\[ ?(?P<least>\d{1,20}) ?, ?(?P<limit>\d[\d,]{0,20}) ?\]"
    ),
)
"""Sums, shares and ranges: the place of a figure in them tells its role."""

_REACH_BEFORE, _REACH_AFTER = 90, 40
"""Characters before and after a number in which words may tell its role."""

_AFTER: tuple[tuple[Role | Literal["excess"], re.Pattern[str]], ...] = (
    ("excess", re.compile(r"^ tokens? (?:past|beyond|too many)\b")),
    ("answer", re.compile(rf"^(?: tokens?)?(?: (?:in|for|of|from))?(?: (?:the|your))? ?{ANSWER}")),
    ("prompt", re.compile(rf"^(?: tokens?)?(?: (?:in|for|of|from))?(?: (?:the|your))? ?(?:text )?{_PROMPT}\b")),
    ("prompt", re.compile(r"^ tokens? (?:(?:was|were) )?(?:given|provided|received|sent|supplied)")),
    ("limit", re.compile(r"^(?: tokens?)? (?:maximum|max\b|limit\b|context|available)")),
    ("prompt", re.compile(r"^ ?(?:tokens? )?(?:are |were )?(?:required|needed)\b")),
)
_LIMIT_RIGHT_BEFORE = re.compile(r"(?:limit|max(?:imum)?|at most|up to|最大|最多)(?: (?:of|is|to|are))?:? ?$")
"""Closer to a number than what follows it: "a limit of 128000 input tokens"."""
_AFTER_COMPARED = re.compile(
    r"^(?: tokens?)?[\])]?(?: (?:is|are))? (?:(?:greater|longer|larger|more) than|exceeds?\b|over\b|above\b|> ?\d"
    r"|(?:must|can|should)(?:not| not)? (?:exceed|be (?:less|at most|<)))"
)
"""What is said to be larger than something else was measured, whatever it is called; unless it is a maximum."""
_MAXIMUM_BEFORE = re.compile(r"\bmax(?:imum)?\b[^.\n]{0,30}$")
_AFTER_OTHER_UNIT = re.compile(r"^ ?(?:bytes|[kmg]i?b\b|characters|chars|pixels|images|pages|messages|items)")

_OTHER_UNIT_BEFORE = re.compile(r"\b(?:bytes|characters)[:=]? ?$")

_BEFORE_LIMIT = re.compile(
    r"max(?:imum)? number of (?:\w+ )?tokens|(?:max(?:imum)?|allowed)(?: \w+)? (?:length|size)|最大[^\d\s]{0,10}长度"
    r"|最大(?:输入|请求|上下文|入力|입력)[^\d\n，,。]{0,16}|最大值|최대(?:[^\d\s,]| (?=컨텍스트|입력|길이|토큰)){0,16}"
    r"|max(?:imum)?[ _](?:allowed[ _])?(?:prompt|input|context|sequence|message)s?[ _](?:tokens?|length|size)"
    r"|max(?:imum)?(?![ _-]?(?:new|completion|output)?[ _-]?tokens\b(?! allowed))|limit|allowed"
    r"|window(?: has)?|n_?ctx\w*|n ctx|(?:accepts?|supports?|only)(?: up to)?"
    r"|truncated to|超过|限制|上限|最大(?:上下文)?|最多|超え"
    r"|(?:模型|超过)[^\d\s,，]{0,12}长度|최대"
    r"|(?<!requested )(?:context|session)[ _](?:length|size|of|is)|コンテキスト長|exceeds?|exceeded"
    r"|longer than|greater than|larger than|more than|less than|fewer than"
    r"|at most|(?<!add )up to|above|takes|\bctx(?: size)?|\bmodel context(?= ?$)|>|<="
    r"|capacity|ceiling|room for|upper bound|permitted|limited to|loaded with"
    r"|cache of|maximal\w*|longueur maximale[^\d\n(]{0,20}\(?|m[aá]xim[oa][^\d\n(]{0,30}\(?"
    r"|over (?:the )?limit|handles?|erlaubt(?: sind)?"
)
_BEFORE_PROMPT = re.compile(
    rf"{_PROMPT}|resulted in|number of tokens|current|actual|length(?! of)|count|used|keep the first|\bn_tokens"
    r"|(?<!max_)num_tokens"
    r"|\byours|add up to|eingabe|sequence of"
    r"|长度|输入|上下文|请求|当前|实际|現在|実際|入力|長さ|입력|토큰 수|현재|실제"
)
_BEFORE_TOTAL = re.compile(r"requested|total|require[sd]?|input and (?:\w+ )?output tokens")
_BEFORE_ANSWER = re.compile(ANSWER)
# "too large: 9000", "got 9000": the size of whatever was named last
_BEFORE_EITHER = re.compile(
    r"too (?:long|large|many tokens)|given|received|got|contains?|has\b|have\b|needs?|sent|passed|provided|found"
    r"|cannot \w+(?: to)?"
)
# "exceeds the limit by 900": a difference, of use beside the limit
_BEFORE_EXCESS = re.compile(r"\bby\b")
# Of words that end at the same place the first counts.
_BEFORE: dict[Role | Literal["either", "excess"], re.Pattern[str]] = {
    "limit": _BEFORE_LIMIT,
    "prompt": _BEFORE_PROMPT,
    "total": _BEFORE_TOTAL,
    "answer": _BEFORE_ANSWER,
    "either": _BEFORE_EITHER,
    "excess": _BEFORE_EXCESS,
}
_MEASURED: tuple[Role, ...] = ("prompt", "total", "answer")
"""Of equally near words, or of none, the first counts."""
_NAME_BEFORE = re.compile(r"\b(?:id|trace|ray|code)[:=]? ?$")
"""A number that names a request or an error, not a size."""
_STATUS_BEFORE = re.compile(r"(?:status|code|exception|\bhttp(?:/[\d.]{1,3}| error)?)(?: code)?:? $")
_STATUS_AFTER = re.compile(r"^(?:</| request entity| bad request| the\b)")
"""Beside a number of three digits: it is the status of the answer."""

_LONGEST_SIZE = 20
"""Characters. Python reads no number of thousands of digits."""

_LEAST_LIMIT = 256
"""Tokens. A smaller figure ("greater than 0", "for tier 1") limits something else: nothing could be made to fit it."""

_ERROR_NUMBER = re.compile(r"limit ?\(\d+\)")


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of a text by role, in tokens unless the text says otherwise (``other_unit``)."""

    prompt: int | None = None
    answer: int | None = None
    total: int | None = None
    limit: int | None = None
    other_unit: bool = False


def figures_of(text: str) -> Figures:
    """Each number by the words around it; the first number of a role wins."""
    found, known = _figures_in_shapes(text)
    other_unit, previous_end = False, 0
    for match in _NUMBER.finditer(text):
        # Not beyond the number before: the words there belong to that one.
        before = text[max(previous_end, match.start() - _REACH_BEFORE) : match.start()]
        after = text[match.end() : match.end() + _REACH_AFTER]
        previous_end = match.end()
        other_unit = other_unit or bool(_AFTER_OTHER_UNIT.match(after) or _OTHER_UNIT_BEFORE.search(before))
        role = None if match.start() in known or _is_no_size(match[1], before, after) else _role(before, after)
        if role is not None and ((size := _times(match[1], _MULTIPLE[match[2]])) >= _LEAST_LIMIT or role != "limit"):
            found.setdefault(role, size)
    if found.keys() == {"limit"} and _ERROR_NUMBER.search(text):
        return Figures(other_unit=other_unit)  # "exceeds limit (2013)": a provider's number for the error, not a size
    if "limit" in found and "excess" in found:
        found.setdefault("prompt", found["limit"] + found["excess"])
    return Figures(
        found.get("prompt"), found.get("answer"), found.get("total"), found.get("limit"), other_unit=other_unit
    )


def _is_no_size(digits: str, before: str, after: str) -> bool:
    """Whether a number is the status of the answer, the name of a request, or a row of them that is quoted back."""
    if len(digits) > _LONGEST_SIZE:
        return True
    is_status = len(digits) == 3 and (_STATUS_BEFORE.search(before) or _STATUS_AFTER.match(after))
    return bool(is_status or _NAME_BEFORE.search(before))


def whole_number(digits: str) -> int:
    """The number that digits stand for, with or without commas between thousands."""
    return int(digits.replace(",", ""))


def _times(digits: str, multiple: int) -> int:
    """The tokens that digits stand for: of "1.2m" 1,200,000."""
    whole, _, part = digits.partition(".")
    return whole_number(whole) * multiple + (int(part) * multiple // 10 ** len(part) if part else 0)


def _figures_in_shapes(text: str) -> tuple[dict[str, int], set[int]]:
    """The figures by role, and the places in the text of all numbers that need no other explanation."""
    found: dict[str, int] = {}
    places: set[int] = set()
    for match in filter(None, (shape.search(text) for shape in _SHAPES)):
        for name, digits in match.groupdict().items():
            found[name] = whole_number(digits)
            places.add(match.start(name))
    return found, places


def _role(before: str, after: str) -> Role | Literal["excess"] | None:
    """The role that the words beside a number give it: what follows it closely, else the nearest word before."""
    # Behind an equals sign the name in front of it decides, whatever follows: "max_tokens=4096 prompt=9000".
    if not before.endswith("=") and not _LIMIT_RIGHT_BEFORE.search(before):
        for role, pattern in _AFTER:
            if pattern.match(after):
                return role
    ends = {name: _last_end(pattern, before) for name, pattern in _BEFORE.items()}
    if _AFTER_COMPARED.match(after) and not _MAXIMUM_BEFORE.search(before):
        return max(_MEASURED, key=lambda name: ends[name])
    nearest = max(ends, key=lambda name: ends[name])
    if ends[nearest] < 0:
        return None
    if nearest == "either":  # what was named last, and a prompt if nothing was
        return "answer" if ends["answer"] > ends["prompt"] else "prompt"
    return nearest


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    return max((match.end() for match in pattern.finditer(text)), default=-1)
