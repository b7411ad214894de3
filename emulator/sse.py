"""Server-sent events: one value per event, how it is written, and the pieces in which a text is streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PIECE = re.compile(r"(?:\S{1,24}\s*|\s+){1,3}")
"""About three words: some ten characters, as the tokens of real streams come in small groups."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: JSON data, or a bare word such as ``[DONE]``. ``is_piece``: it carries a piece of the answer."""

    data: Mapping[str, Any] | str
    name: str | None = None
    is_piece: bool = False

    def encode(self) -> bytes:
        """As it goes over the wire (WHATWG HTML, "Server-sent events")."""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data, ensure_ascii=False)
        name = f"event: {self.name}\n" if self.name else ""
        return f"{name}data: {data}\n\n".encode(errors="replace")


def pieces(text: str) -> list[str]:
    """The text in the pieces in which it is streamed; none for an empty one."""
    return _PIECE.findall(text)
