"""Short ways to ask models in tests: a conversation, both colors, and the key that must not be seen anywhere."""

from __future__ import annotations

import asyncio
from typing import Any

KEY = "sk-proj-Zz9-secret-key-of-the-tests-0123456789"


def conversation(turns: int = 30, *, words: int = 60) -> list[dict[str, Any]]:
    """A chat of so many turns; each names a file and a ticket of its own."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Please repair the nightly import."}]
    for number in range(turns):
        said = f"I read /srv/app/part{number}.py and changed {number + 3} lines. " + "It works as it should. " * words
        messages.append({"role": "assistant", "content": said})
        messages.append({"role": "user", "content": f"Go on with ticket T-{number}."})
    return messages


def compacted(color: str, compactor: Any, *arguments: Any, **options: Any) -> Any:
    """One call, in either color."""
    if color == "sync":
        return compactor.compact(*arguments, **options)
    return asyncio.run(compactor.acompact(*arguments, **options))
