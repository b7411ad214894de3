"""Sentences, and which of them are constraints, in English, Chinese, Japanese and German.

Made for measuring and kept apart from contextfold's own cues on purpose: what an engine looks for is no judge of what
it found. What belongs here: one text in, its sentences out. What does not: views (``words``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SHORTEST = 6
"""Letters and digits: what is shorter is a heading or a word of thanks. CJK letters count twice."""
LONGEST = 400
"""Characters: what is longer is pasted data, not a sentence."""

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*•>]+|\d{1,2}[.)])\s+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|Mr|Mrs|Ms|Dr|Prof|No|St|z\.\s?B|d\.\s?h|u\.\s?a|bzw|ca|usw|Nr|Hr|Fr|evtl|ggf|inkl"
    r"|Std|Min|Str)|\b[A-Za-z]|\b\d{1,2})\.$"
)
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？!?]+[」』”’）]*")
_REACH = 16
"""Characters before the end of a sentence in which an abbreviation would begin."""
_WEIGHED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

_ENGLISH = (
    r"\b(?:must(?:n['’]t)?|never|always|only|cannot|may not|no (?:more|less|longer|later) than|at (?:most|least)"
    r"|make sure|not allowed|forbidden|under no circumstances|ha(?:s|ve) to|needs? to|should(?: not|n['’]t))\b"
    r"|(?<!\bI )(?<!\bwe )(?<!\bWe )(?<!\bthey )(?<!\byou )(?<!\bThey )(?<!\bYou )\b[Dd](?:o not|on['’]t)\b"
)
_GERMAN = (
    r"\b(?:muss|müssen|darf|dürfen|nie(?:mals)?|immer|nur|kein(?:e[nrms]?)?|bitte nicht|auf keinen Fall"
    r"|nicht (?:mehr|länger|später|weniger) als|höchstens|mindestens|unbedingt"
    r"|ausschließlich|soll(?:te|st|en|ten)? nicht|keinesfalls)\b"
)
_CHINESE = (
    r"必须|必需|务必|一定要|千万|不要|不能|不可以|不得|不许|不准|禁止|严禁|只能|只许|只允许|仅限|始终|永远|总是|绝不|绝对不|从不"
    r"|至少|至多|最多|不超过|不多于|确保|(?<![特分级类个识区辨差])别(?![的人处名墅扭])"
)
_JAPANESE = (
    r"なければ(?:なら|いけ)|ねばなら|てはいけ|てはなら|ないで(?:ください|下さい|ほしい)|しないで|禁止|必ず|絶対|決して|だけ(?!ど|で[なは])|のみ"
    r"|常に|いつも|以内に?|までに|必要があり"
)
_CONSTRAINT = re.compile(f"{_ENGLISH}|{_GERMAN}|{_CHINESE}|{_JAPANESE}", re.IGNORECASE)
_QUESTION = ("?", "？")


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, each as it stands there; fenced code is left out."""
    return [sentence for line in _lines(text) for sentence in _of_line(line) if _is_sentence(sentence)]


def is_constraint(sentence: str) -> bool:
    """Whether a user's sentence limits what may be done. Questions do not."""
    return _CONSTRAINT.search(sentence) is not None and not sentence.rstrip("」』”’）)\"' ").endswith(_QUESTION)


def constraints(text: str) -> list[str]:
    """The sentences of a user's text that are constraints."""
    return [sentence for sentence in sentences(text) if is_constraint(sentence)]


def _lines(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside and line.strip():
            yield _BULLET.sub("", line).strip()


def _of_line(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if end.group().startswith(".") and _ABBREVIATION.search(line, max(start, end.end() - _REACH), end.end()):
            continue
        yield line[start : end.end()].strip()
        start = end.end()
    yield line[start:].strip()


def _is_sentence(text: str) -> bool:
    weight = len(_WEIGHED.findall(text)) + len(_CJK.findall(text))
    return weight >= SHORTEST and len(text) <= LONGEST
