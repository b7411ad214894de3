"""Items of answers that their provider keeps, so that a client may name them by their ids alone.

Vercel's AI SDK does so for reasoning and for what is said behind it, unless it is told ``store: false``. Who relays an
answer knows what such a name stands for, and so the engine may be told.

What belongs here: what an ``item_reference`` stands for. What does not: which requests are looked at (``exchange``).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from contextfold.formats.openai_responses import is_reference
from contextfold.gateway.body import dumped

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Bytes of all items: the ones that were in no request for longest go first."""

_OF_REASONING = "rs_"
"""How OpenAI's ids of reasoning begin."""


class KeptItems:
    """The items of answers that this process has relayed, by scope and id. Not for several threads."""

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._items: OrderedDict[tuple[bytes, str], bytes] = OrderedDict()

    def remember(self, scope: bytes, items: Iterable[dict[str, Any]]) -> None:
        """Keep what was answered, but for reasoning, and forget the oldest if it is too much."""
        for item in items:
            if item.get("type") == "reasoning":
                continue
            key, data = (scope, item["id"]), dumped(item)
            self._bytes += len(data) - len(self._items.pop(key, b""))
            self._items[key] = data
        while self._bytes > self._most:
            self._bytes -= len(self._items.popitem(last=False)[1])

    def used(self, scope: bytes, messages: Iterable[Any]) -> None:
        """These are in a conversation that goes on: what was read at an earlier turn may have to be read again."""
        names = (message.get("id") for message in messages if isinstance(message, dict))
        for key in ((scope, name) for name in names if isinstance(name, str)):
            if key in self._items:
                self._items.move_to_end(key)

    def named(self, scope: bytes, entry: Any) -> Any:
        """What an entry of a list stands for: itself, unless it is a name of something that is known here."""
        if not is_reference(entry):
            return entry
        name = str(entry.get("id"))
        if name.startswith(_OF_REASONING):
            # Never part of a summary, so nothing has to be known of it, and all processes read the same.
            return {"type": "reasoning", "id": name, "summary": []}
        if (data := self._items.get((scope, name))) is None:
            return entry
        with suppress(KeyError):  # a thread asks, and the event loop may just have forgotten it
            self._items.move_to_end((scope, name))
        return json.loads(data)  # orjson takes no half of an emoji, nor all integers
