"""What a compaction did, as one JSON-ready mapping: the public contract of ``--report json``.

What belongs here: the keys and their values. What does not: how a person sees them (``screen``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextfold.compactor import CompactionResult


def compaction_report(result: CompactionResult, seconds: float) -> dict[str, Any]:
    """All sizes are tokens; ``entries`` of the ledger are ``[index, fate, reason]``, one per message of the history."""
    return {
        "format": result.format,
        "messages_before": len(result.ledger),
        "messages_after": len(result.messages),
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "window": result.window,
        "changed": result.changed,
        "trigger": result.trigger,
        "target": result.target,
        "floor": sum(result.floor.values()),
        "ledger": {
            "counts": dict(result.ledger.counts()),
            "entries": [[entry.index, entry.fate, entry.reason] for entry in result.ledger],
        },
        "summary": summary_report(result),
        "seconds": round(seconds, 3),
    }


def summary_report(result: CompactionResult) -> dict[str, Any] | None:
    """The summary with what it took; None where the view has none."""
    summary = result.summary
    if summary is None:
        return None
    return {
        "text": summary.text,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "calls": summary.calls,
        "chunk_count": summary.chunk_count,
        "max_depth": summary.max_depth,
        "truncated": summary.truncated,
        "compression_ratio": summary.compression_ratio,
        "algorithm": summary.algorithm,
    }


def json_bytes(value: Any) -> bytes:
    """Readable JSON in UTF-8; escaped where a text holds half a surrogate pair, which UTF-8 cannot carry."""
    try:
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()
