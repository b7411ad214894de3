"""How many tokens the receiving model takes, and who says so (R21).

Belongs here: the order in which sources are asked. Does not: what of the window is kept free for the answer
(``policy``), and reading limits out of errors (``overflow``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contextfold.errors import PolicyError

DEFAULT_WINDOW = 64_000
"""Tokens, for a model that nobody knows. Seven in eight models of the registry take this or more, and an agent's
prompt and tools still leave room in it: too small costs some compactions, too large ends in refused requests."""

Source = Literal["explicit", "profile", "registry", "learned", "default"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Window:
    """The window in tokens, and where the figure comes from."""

    tokens: int
    source: Source


def resolve(window: int | None, model: str | None, *, profile: int | None = None, learned: int | None = None) -> Window:
    """The window of the receiving model, in tokens, from the first source that has one.

    In this order: ``window`` as the caller gave it; ``profile``, what the model object says of itself; the registry,
    for the name ``model`` ("openai:gpt-5", "anthropic/claude-sonnet-4-5", "gpt-4o"); ``learned``, the limit that an
    earlier overflow error named; ``DEFAULT_WINDOW``. An unknown model is no error. Raises ``PolicyError`` for a
    ``window`` that is not a positive whole number.
    """
    found = _first(window, model, profile, learned)
    _log.info("window of %s: %d tokens (%s)", model or "the model", found.tokens, found.source)
    return found


def _first(window: int | None, model: str | None, profile: int | None, learned: int | None) -> Window:
    if window is not None:
        return Window(_explicit(window), "explicit")
    if profile is not None and profile > 0:
        return Window(profile, "profile")
    if model and (known := registered(model)):
        return Window(known, "registry")
    if learned is not None and learned > 0:
        return Window(learned, "learned")
    return Window(DEFAULT_WINDOW, "default")


def _explicit(window: int) -> int:
    if isinstance(window, bool) or not isinstance(window, int) or window <= 0:
        raise PolicyError(f"window is {window!r}; it must be a positive whole number of tokens, or None to look it up")
    return window


def registered(model: str) -> int | None:
    """The context window of a model as genai-prices knows it, in tokens, or None. Uses no network."""
    from genai_prices import Usage, calc_price  # 1.6 MB of tables: only when a model is to be looked up

    for provider, name in _readings(model):
        try:
            known = calc_price(Usage(), name, provider_id=provider).model.context_window
        except LookupError:
            continue
        if known:
            return known
    return None


def _readings(model: str) -> Iterator[tuple[str | None, str]]:
    """What a model string may mean, as (provider, name): the likeliest first."""
    provider, mark, name = re.match(r"([^:/]*)([:/]?)(.*)", model.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if mark and name:
        # LangChain writes "google_genai", the registry "google"
        yield from ((provider, name), (provider.split("_")[0], name))
    yield None, model.strip()
    if mark and name:
        yield None, name
        yield "openrouter", f"{provider.split('_')[0]}/{name}"  # lists windows that the makers' own entries leave out
