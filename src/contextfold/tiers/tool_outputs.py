"""The tier for tool outputs: each is compressed as what it is, down to a number of tokens.

What belongs here: the tier, and sharing the limit among the texts of one result. What does not: how JSON
(``tool_outputs_json``), tables, prose, code and logs (``tool_outputs_text``, ``pieces``) are shortened. Which results
are shortened, and to how much, is the policy's to say.

All that stays is verbatim; what goes is counted by a marker in its place; JSON stays valid JSON. Whitespace between
the tokens of JSON is the only thing that goes without a marker.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from contextfold.messages import Part, Text, ToolResult
from contextfold.tiers import tool_outputs_json
from contextfold.tiers.fitting import LEAST, fit
from contextfold.tiers.markers import cut
from contextfold.tiers.remembered import RememberedTier
from contextfold.tiers.tool_outputs_text import of_text
from contextfold.tokens.estimate import estimate

_SHORTENED = RememberedTier()
"""A conversation has the same old outputs in every pass; the newest of them stay shortened and are asked for again."""


class ToolOutputsTier:
    """Compresses the texts of a tool result to ``limit`` tokens together. Media and opaque blocks stay.

    A limit below ``fitting.LEAST`` tokens counts as that, and so does the share of each text of a result.
    """

    name: ClassVar[str] = "tool_outputs"

    def reduce(self, part: Part, limit: int) -> Part:
        return shortened_result(part, limit) if isinstance(part, ToolResult) else part


def shortened_result(part: ToolResult, limit: int) -> ToolResult:
    """The result with its texts in ``limit`` tokens together; the same object if they are already."""
    sizes = [estimate(inner.text) for inner in part.content if isinstance(inner, Text)]
    budgets = zip(sizes, _shares(sizes, limit), strict=True)
    content = tuple(_shortened(inner, *next(budgets)) if isinstance(inner, Text) else inner for inner in part.content)
    if all(new is old for new, old in zip(content, part.content, strict=True)):
        return part
    return replace(part, content=content, edited=True)


def shorten(text: str, size: int, limit: int) -> str:
    """A text of ``size`` tokens by its kind within ``limit`` tokens; the same object where it fits already."""
    limit = max(limit, LEAST)
    # What is taken for a table hangs on a limit that any program may set.
    return (
        text
        if size <= limit
        else _SHORTENED.text(text, (limit, csv.field_size_limit()), lambda: _shorter(text, size, limit))
    )


def _shorter(text: str, size: int, limit: int) -> str:
    document = tool_outputs_json.read(text)
    if document is not None:
        shorter = fit(len(text), size, limit, document.render) or document.smallest()
    else:
        shorter = fit(len(text), size, limit, of_text(text).render) or cut(text, 0)
    return shorter if estimate(shorter) < size else text


def _shortened(part: Text, size: int, limit: int) -> Text:
    text = shorten(part.text, size, limit)
    return part if text is part.text else replace(part, text=text, edited=True)


def _shares(sizes: Sequence[int], limit: int) -> list[int]:
    """How many of ``limit`` tokens each text may take: small ones what they need, the others the same share each."""
    left = limit
    share = limit
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        left -= min(size, share)
    return [min(size, share) for size in sizes]
