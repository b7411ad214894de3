"""What clients put in the place of tool results and arguments to save room.

What belongs here: telling it from what a tool has said. What does not: which conversation it is in (``recognized``).
"""

from __future__ import annotations

import re

from contextfold.messages import Text, ToolCall, ToolResult


def is_cleared(part: ToolCall | ToolResult, *, begins_as_before: bool, was_cut: bool = False) -> bool:
    """Whether a client has put a placeholder in place of what a tool answered, to save room, perhaps with the beginning
    behind it, or has left out all but its beginning; or has taken arguments out of a call. A placeholder that may stand
    there so that no one reads what it was, like ``[redacted]`` or ``[removed]``, is none. Where what the tool answered
    looks so itself (``was_cut``), this may be its answer of another time: a placeholder alone is not.
    """
    told = (part.arguments if isinstance(part, ToolCall) else part.text).strip()
    if isinstance(part, ToolCall) and told in ("", "{}"):
        return True
    if isinstance(part, ToolResult) and not all(isinstance(one, Text) for one in part.content):
        return False
    first = told[: _LONGEST_PLACEHOLDER + 1].partition("\n")[0]
    preview = len(told) - len(first) - 1  # characters of what stands behind the first line
    most = _LONGEST_PREVIEW if first[:1] in ("[", "<", "(") else 0
    if len(first) <= _LONGEST_PLACEHOLDER and preview <= most and _CLEARED.search(first) is not None:
        is_alone = not was_cut or (preview <= 0 and _ALONE.match(first) is not None)
        return is_alone and (isinstance(part, ToolResult) or begins_as_before)
    if not begins_as_before or was_cut:
        return False
    is_cut = _SHORTEST_CUT <= len(told) <= _LONGEST_PREVIEW and told.endswith(("...", "…"))
    return (is_cut and isinstance(part, ToolResult)) or (len(told) <= _LONGEST_REST and _has_mark(told))


def _has_mark(told: str) -> bool:
    """Whether something amid it says that some was left out: "[... 900 characters truncated ...]"."""
    # From the word back: to look at all that stands behind each bracket or dot would take long where there are many.
    lowered = told.lower()
    words = (one.start() for one in _MARK.finditer(told)) if any(map(lowered.__contains__, _STEMS)) else ()
    return any(_OPENED.search(told, max(0, at - _LONGEST_OPENING), at) for at in words)


_LONGEST_PLACEHOLDER = 300
"""Characters."""
_LONGEST_PREVIEW = 2_000
"""Characters."""
_SHORTEST_CUT = 80
"""Characters: dots behind fewer may stand for a secret."""
_LONGEST_REST = 10_000
"""Characters."""
_WORDS = (
    r"\b(?:cleared|omitted|truncated|elided|pruned|trimmed|compacted|condensed|collapsed|offloaded|evicted"
    r"|no longer (?:available|shown|kept|in (?:the )?context)|(?:removed|hidden|dropped|discarded) "
    r"(?:to (?:save|free|reduce|make room)|from (?:the )?(?:context|history)|for brevity))\b"
)
_CLEARED = re.compile(  # "[Old tool result content cleared]", "<MASKED>", "Old output: (12 lines omitted)"
    rf"{_WORDS}|^<masked>$|output_masked"
    r"|^[\[(<].*\b(?:deduplicated|superseded|duplicate (?:file|read|of|content|result)"
    r"|(?:see|replaced by|repeated in)(?: a| an| the)? (?:newer|newest|later|latest|more recent))\b",
    re.IGNORECASE,
)
_MARK = re.compile(rf"{_WORDS}|output_masked\b", re.IGNORECASE)
_ALONE = re.compile(r"[\[<(].*[\])>]$|old\b", re.IGNORECASE)
"""What no tool answers: "[cleared]", "Old environment output: (12 lines omitted)"; not "Cache cleared: 42 entries"."""
_STEMS = ["cleared", "omitted", "truncated", "elided", "pruned", "trimmed", "compacted", "condensed", "collapsed"]
_STEMS += ["offloaded", "evicted", "no longer", "removed", "hidden", "dropped", "discarded", "output_masked"]
"""One of them is in each mark. Most texts have none, and are told by these in a tenth of the time."""
_LONGEST_OPENING = 63
"""Characters."""
_OPENED = re.compile(rf"(?:[\[<(]|\.\.\.|…)[^\n\])>]{{0,{_LONGEST_OPENING}}}\Z")
