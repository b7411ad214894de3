"""Whom the examples ask: OpenAI if ``OPENAI_API_KEY`` is set, else a provider on loopback with a small window.

The provider on loopback (``emulator/``) refuses what does not fit, as a real one does, and answers with the names that
it found in the prompt, so you can see what still reaches the model. Nothing leaves the machine then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SMALL_WINDOW = 4_000


@contextmanager
def client(answers: Callable[[Any], Any] | None = None) -> Iterator[tuple[Any, str, int]]:
    """An OpenAI client, the model to ask, and its window in tokens. ``answers`` scripts the provider on loopback."""
    from openai import OpenAI

    if os.environ.get("OPENAI_API_KEY"):
        yield OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-5-mini"), 128_000
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from emulator import ProviderServer

    with ProviderServer(windows={"small": SMALL_WINDOW}, answers=answers) as server:
        opened = OpenAI(base_url=server.openai_url, api_key="any", max_retries=0)
        yield opened, "small", SMALL_WINDOW
        opened.close()
