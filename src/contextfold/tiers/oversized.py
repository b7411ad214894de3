"""The last resort for an item that must stay although it is too large: clipped to a number of tokens.

What belongs here: bringing one text, one result or the arguments of one call under a limit whatever is in them. What
does not: when that is needed, and whether what a user said may be clipped (the policy's to say).

Each is first shortened as what it is, by the means of the other tiers. Where that is not enough, media and blocks that
we do not understand become references, and of many blocks the first and the last ones stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias

from contextfold.messages import Media, Opaque, Part, Text, ToolCall, ToolResult
from contextfold.tiers import json_text
from contextfold.tiers.fitting import LEAST, clip, fit
from contextfold.tiers.json_text import Object
from contextfold.tiers.markers import counts_in, is_shortened, marker, without_markers
from contextfold.tiers.media import as_text
from contextfold.tiers.tool_outputs import ToolOutputs, shorten
from contextfold.tiers.tool_outputs_json import OMITTED, JsonOutput
from contextfold.tokens.estimate import estimate

Block: TypeAlias = Text | Media | Opaque

_OUTPUTS = ToolOutputs()


class Oversized:
    """Brings a text, a tool result or the arguments of a call to ``limit`` tokens (``fitting.LEAST`` if that is more)."""

    name: ClassVar[str] = "oversized"

    def reduce(self, part: Part, limit: int) -> Part:
        limit = max(limit, LEAST)
        if isinstance(part, Text):
            text = shorten(part.text, estimate(part.text), limit)
            return part if text is part.text else replace(part, text=text, edited=True)
        if isinstance(part, ToolCall):
            arguments = _clipped_arguments(part, limit)
            return part if arguments is part.arguments else replace(part, arguments=arguments, edited=True)
        if isinstance(part, ToolResult):
            return _clipped_result(part, limit)
        return part
