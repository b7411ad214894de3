"""Will this answer do as a summary?

What belongs here: the reasons to refuse an answer, each a plain sentence. What does not: what happens then
(``bisect`` asks again, then gives up). Missing headings are no reason: a summary in its own shape loses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from contextfold.summary.summarizer import Answer

TINY_INPUT = 200
"""Tokens. Below this an honest summary may well be longer than what it sums up: its headings alone cost that."""

SHORT = 240
"""Characters. Only an answer up to this length can be nothing but an apology, an error or a placeholder."""

_CUT_OFF = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"}
    | {"pause_turn"}
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

_APOLOGY = re.compile(
    r"^(?:i[’']?m (?:very |so )?sorry|i am sorry|sorry,|i apologi[sz]e|i (?:can[’']?t|cannot|can not|won[’']?t)\b"
    r"|i am (?:not able|unable)|i[’']?m (?:not able|unable)|unfortunately,? i|as an ai\b"
    r"|抱歉|很抱歉|对不起|我(?:无法|不能)|申し訳|すみません|ごめん)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^(?:error (?:code|generating|summari[sz]ing|while)\b|error:|exception:|traceback \(most recent"
    r"|(?:api|http|internal(?: server)?|server|request) error\b|service unavailable|too many requests|rate limit"
    r"|bad gateway|gateway time|\{\s*[\"']error[\"']|[45]\d\d\b(?!,))",
    re.IGNORECASE,
)
# Only what cannot be a summary. "Summary" alone is short, but it is what test doubles of chat models answer.
_PLACEHOLDER = re.compile(
    r"^(?:(?:the )?(?:previous|earlier|prior) (?:conversation|messages|history)[^.]*"
    r"(?:too long|omitted|truncated|removed|unavailable)[^.]*"
    r"|conversation (?:history )?(?:was |is )?(?:too long|truncated|omitted)[^.]*"
    r"|(?:no|nothing)(?: (?:previous|prior|new|further))? "
    r"(?:conversation|messages?|history|summary|content|to summari[sz]e)[^.]*"
    r"|(?:the |conversation )?summary (?:is )?(?:unavailable|not available|failed|pending|goes here)[^.]*"
    r"|\[(?:conversation )?summary\]|\[?(?:truncated|omitted|content removed)\]?"
    r"|n/?a|none|null|todo|tbd|undefined)[.!]?$",
    re.IGNORECASE,
)
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


def rejection(answer: Answer, *, input_tokens: int, count: Callable[[str], int]) -> str | None:
    """Why this answer cannot be used, as a short phrase, or None if it can.

    ``input_tokens`` is the size of what was to be summarized, without the words around it.
    """
    text = clean(answer.text)
    reason = (answer.finish_reason or "").lower()
    if answer.has_tool_calls or reason in _CALLED:
        return "it calls a tool"
    if reason in _REFUSED:
        return f"it was refused ({reason})"
    is_blank = not text.strip(" \n\t.#*-_`>[]()")
    if is_blank and reason in _CUT_OFF:
        return f"it was cut off ({reason}) before a word was said: reasoning counts against the answer limit, raise it"
    if is_blank:
        return "it is blank"
    if reason in _CUT_OFF:
        return f"it was cut off ({reason})"
    if reason in _ENDED_EARLY:
        return f"it ended early ({reason})"
    return _rejected_words(text) or _rejected_length(text, input_tokens, count)


def _rejected_words(text: str) -> str | None:
    if len(text) > SHORT:
        return None
    for pattern, phrase in (
        (_APOLOGY, "it is a refusal"),
        (_ERROR, "it is an error text"),
        (_PLACEHOLDER, "it is a placeholder"),
    ):
        if pattern.match(text):
            return f"{phrase}: {text[:80]!r}"
    return None


def _rejected_length(text: str, input_tokens: int, count: Callable[[str], int]) -> str | None:
    if input_tokens < TINY_INPUT:
        return None
    tokens = count(text)
    return f"it is longer than its input ({tokens:,} > {input_tokens:,} tokens)" if tokens > input_tokens else None
