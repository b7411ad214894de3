"""Will this answer do as a summary?

What belongs here: the reasons to refuse an answer, each a plain sentence. What does not: what happens then
(``bisect`` asks again, then gives up). Missing headings are no reason: a summary in its own shape loses nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from contextfold.summary.refusal_words import APOLOGIES, ERRORS, OPENINGS, PLACEHOLDERS
from contextfold.summary.summarizer import UNMARKED, Answer

TINY_INPUT = 200
"""Tokens. Below this an honest summary may well be longer than what it sums up: its headings alone cost that."""

SHORT = 240
"""Characters. Only an answer up to this length can be nothing but an apology, an error, a placeholder or a greeting."""

LOOP = 600
"""Characters from which on an answer is looked at for loops and copies: small models fall into both."""

_RUN = 8
"""Tokens in a row that a text says once, if a person wrote it; a table's rows differ in as many."""

_DISTINCT = 0.15
"""Share of such runs that differ, below which a text is a loop. Honest summaries have above 0.8, tables above 0.4."""

_TIMES, _WORDS = 24, 3
"""How often the commonest run comes in a loop, and the different words in it at least. One word or two, again and
again, are what doubles of chat models answer in tests."""

_SAME_LINES = 12
"""Times that one line makes up half of an answer at least, so that it is a loop, however short the answer is."""

_COPIED_RUN, _COPIED = 240, 0.9
"""Characters in a row that count as copied, and the share of an answer that makes it a copy. Quotations are shorter."""

_LOOKED_AT = 12_000
"""Characters of an answer that are compared."""

_ANCHOR = 48
"""Characters by which a copied stretch is found in its source."""

_TOKEN = re.compile(r"[^\W\d_][\u0300-\u036f]?(?<=[\u2e80-\uffff])|\w+|[^\w\s]")
"""A word, a sign, or a letter of a script that writes words without blanks."""

_CUT_OFF = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"}
    | {"pause_turn", "continuation"}
)
_ENDED_EARLY = frozenset(
    {"error", "failed", "cancelled", "canceled", "abort", "aborted", "insufficient_system_resource", "in_progress"}
)
_REFUSED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "prohibited_content", "recitation", "blocklist", "spii"}
    | {"guardrail_intervened", "sensitive", "error_toxic", "image_safety", "language"}
)
_CALLED = frozenset(
    {"tool_calls", "tool_call", "tool_use", "function_call", "malformed_function_call", "unexpected_tool_call"}
)

_CALL = re.compile(
    r"<tool_call>|<function_calls>|<invoke name=|<function=|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|<[|｜]tool[▁_]calls?[▁_]begin[|｜]>"
)
"""What a call begins with in a model's own words, where a server does not read it: Qwen and Hermes, Claude, Llama,
Mistral, DeepSeek."""

_APOLOGY = re.compile(rf"^(?:{APOLOGIES})", re.IGNORECASE)
_ERROR = re.compile(rf"^(?:{ERRORS})", re.IGNORECASE)
_PLACEHOLDER = re.compile(rf"^(?:{PLACEHOLDERS})[.!。．｡！।]?$", re.IGNORECASE)
_OPENING = re.compile(rf"^(?:{OPENINGS})[.!?。？！ ]{{0,3}}$", re.IGNORECASE)
_THOUGHT = re.compile(r"^\s*<(think|thinking|reasoning|analysis)>.*?(?:</\1>\s*|\Z)", re.DOTALL | re.IGNORECASE)
"""Thinking that is left in the text; all of it, where the thinking never ended."""
_THOUGHT_END = re.compile(r"^[^\S\n]*+</think(?:ing)?>[^\S\n]*$", re.IGNORECASE | re.MULTILINE)
_THOUGHT_BEGIN = re.compile(r"<think", re.IGNORECASE)
_WRAPPING = re.compile(r"<(summary|conversation_summary)>", re.IGNORECASE)


def clean(text: str) -> str:
    """The summary itself: without thinking that a server left in the text, and without a wrapper around it all."""
    text = _without_thought_tail(_THOUGHT.sub("", text)).strip()
    wrapped = _WRAPPING.match(text)
    closing = f"</{wrapped[1]}>" if wrapped else ""
    if wrapped and text[-len(closing) :].lower() == closing.lower():
        return text[wrapped.end() : -len(closing)].strip()
    return text


def _without_thought_tail(text: str) -> str:
    """The text behind the end of a thought that a server's template opened: that end alone is to be seen, on a line of
    its own, and no beginning before it.
    """
    end, begin = _THOUGHT_END.search(text), _THOUGHT_BEGIN.search(text)
    return text[end.end() :] if end and (begin is None or end.start() < begin.start()) else text


def rejection(answer: Answer, *, input_tokens: int, count: Callable[[str], int], source: str = "") -> str | None:
    """Why this answer cannot be used, as a short phrase, or None if it can.

    ``input_tokens`` is the size of what was to be summarized, without the words around it. ``source``: the prompt with
    it, where nothing in that is a summary which may come back as it is.
    """
    text = clean(answer.text)
    reason = (answer.finish_reason or "").lower()
    # Calls first: the text beside one is usually blank, and "it is blank" would not say why.
    if answer.has_tool_calls or reason in _CALLED or _CALL.match(text):
        return "it calls a tool"
    if reason in _REFUSED:
        return f"it was refused ({reason})"
    if reason == UNMARKED:
        return "it does not begin with <summary>, as it was asked to: the model may have gone on with the task"
    is_blank = not any(map(str.isalnum, text))  # signs alone, also those that no one sees (zero-width space, BOM)
    if is_blank and reason in _CUT_OFF:
        return f"it was cut off ({reason}) before a word was said: reasoning counts against the answer limit, raise it"
    if is_blank:
        return "it is blank"
    if reason in _CUT_OFF:
        return f"it was cut off ({reason})"
    if reason in _ENDED_EARLY:
        return f"it ended early ({reason})"
    return (
        _rejected_words(text)
        or _rejected_length(text, input_tokens, count)
        or _rejected_repetition(text)
        # Next to nothing was there to be summed up: a double of a chat model that repeats its prompt does no harm.
        or (None if input_tokens < TINY_INPUT else _rejected_copy(text, source))
    )


def _rejected_words(text: str) -> str | None:
    if len(text) > SHORT:
        return None
    for pattern, phrase in (
        (_APOLOGY, "it is a refusal"),
        (_ERROR, "it is an error text"),
        (_PLACEHOLDER, "it is a placeholder"),
        (_OPENING, "it sums up nothing"),
    ):
        if pattern.match(text):
            return f"{phrase}: {text[:80]!r}"
    return None


def _rejected_length(text: str, input_tokens: int, count: Callable[[str], int]) -> str | None:
    if input_tokens < TINY_INPUT:
        return None
    tokens = count(text)
    return f"it is longer than its input ({tokens:,} > {input_tokens:,} tokens)" if tokens > input_tokens else None


def _rejected_repetition(text: str) -> str | None:
    """A loop: one line, or the same few runs of words, again and again."""
    lines = [stripped for line in text[:_LOOKED_AT].splitlines() if (stripped := line.strip())]
    if lines:
        line, often = Counter(lines).most_common(1)[0]
        if often >= max(_SAME_LINES, len(lines) / 2):
            return f"it repeats itself: {line[:80]!r}, {often} times"
    if len(text) < LOOP:
        return None
    tokens = _TOKEN.findall(text[:_LOOKED_AT])
    runs = [tuple(tokens[n : n + _RUN]) for n in range(len(tokens) - _RUN + 1)]
    times = Counter(run for run in runs if len(set(run)) >= _WORDS)
    if not times or len(set(runs)) >= _DISTINCT * len(runs):
        return None
    run, often = times.most_common(1)[0]
    return f"it repeats itself: {' '.join(run)!r}, {often} times" if often >= _TIMES else None


def _rejected_copy(text: str, source: str) -> str | None:
    """Long stretches of its own input, one after the other, and hardly a word beside them."""
    text = text[:_LOOKED_AT]
    if len(text) < LOOP or not source:
        return None
    copied = place = 0
    while place + _ANCHOR <= len(text):
        run = _common(text, place, source)
        copied += run if run >= _COPIED_RUN else 0
        place += max(run, _ANCHOR // 2)
    return "it is a copy of what was to be summed up" if copied >= _COPIED * len(text) else None


def _common(text: str, place: int, source: str) -> int:
    """Characters from a place on that stand in the source as well, in a row; 0 for fewer than an anchor."""
    found = source.find(text[place : place + _ANCHOR])
    if found < 0:
        return 0
    pairs = zip(text[place:], source[found : found + len(text) - place], strict=False)
    return next(
        (n for n, (one, other) in enumerate(pairs) if one != other), min(len(text) - place, len(source) - found)
    )
