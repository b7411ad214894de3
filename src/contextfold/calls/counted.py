"""What of a view its provider counts: usage is compared with nothing else.

What belongs here: which tokens every provider counts, and which it need not. What does not: what follows from a count
that is too low (``recovery``), and what an answer says (``usage``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextfold.conversation.history import History
from contextfold.conversation.pins import natives, newest_native
from contextfold.formats.base import Format
from contextfold.messages import Text, ToolCall, ToolResult
from contextfold.record.compaction import Compaction
from contextfold.tokens import TokenCounter


def text_tokens(wire: Sequence[Any], format: Format, counter: TokenCounter) -> int:
    """Tokens of the texts, calls and results in a view: no media, no reasoning, and of what stands before a provider's
    own compaction the instructions alone.
    """
    messages = [format.decode(entry) for entry in wire]
    read_from = next(natives(messages), (0, 0))
    parts = [
        part
        for index, message in enumerate(messages)
        for number, part in enumerate(message.parts)
        if (index, number) >= read_from or message.is_instruction
    ]
    inner = [one for part in parts for one in (part.content if isinstance(part, ToolResult) else (part,))]
    return sum(counter.part(part) for part in inner if isinstance(part, Text | ToolCall))


def passed_over(history: History, record: Compaction | None, length: int) -> int:
    """Tokens of what stands in the view of the first ``length`` messages before a provider's own compaction. The
    provider reads its own item in their place, and need not count them.
    """
    messages = history.messages
    gone, removed = (record.gone(), record.removed()) if record else ((), ())
    native = newest_native(messages[:length] if length < len(messages) else messages, gone, removed)
    before = (n for n in range(max(native, 0)) if n not in gone and not messages[n].is_instruction)
    return sum(history.sizes[n] for n in before)
