"""What a chat model of LangChain says of itself.

What belongs here: its window, its name and where it is asked. What does not: asking it anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables.base import RunnableBindingBase

from contextfold.errors import held, plain_integer
from contextfold.window import LARGE_BETA, LARGE_WINDOW, resolve

ENDPOINTS = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "endpoint_url", "base_url")
"""Attributes under which chat models of LangChain keep the URL that requests go to."""


@dataclass(frozen=True, slots=True)
class Receiving:
    """A model that requests go to, as ``Compactor`` takes it. ``limit``: input tokens by its profile."""

    model_name: str | None = None
    limit: int | None = None
    endpoint: str = ""

    @classmethod
    def of(cls, model: Any) -> Receiving:
        """As far as the model says."""
        urls = (getattr(model, name, None) for name in ENDPOINTS)
        endpoint = next((url for url in urls if isinstance(url, str) and url), "")
        return cls(model_name(model), profile_window(model), endpoint)

    @property
    def profile(self) -> dict[str, int]:
        """In the words of LangChain."""
        return {} if self.limit is None else {"max_input_tokens": self.limit}


def profile_window(model: Any) -> int | None:
    """``max_input_tokens`` of a chat model's profile, or the larger window that it asks Claude's API for; None where it
    has no profile.
    """
    profile = getattr(model, "profile", None)
    limit = plain_integer(profile.get("max_input_tokens")) if isinstance(profile, Mapping) else None
    if limit is None or limit <= 0:
        return None
    headers = held(model, "default_headers")
    asked = (held(model, "betas"), headers.get("anthropic-beta") if isinstance(headers, Mapping) else None)
    return max(limit, LARGE_WINDOW) if LARGE_BETA in str(asked) else limit


def unbound(model: Any) -> Any:
    """The chat model inside of what ``with_retry`` and ``with_config`` make of one."""
    while isinstance(model, RunnableBindingBase):
        model = model.bound
    return model


def provider_of(model: Any) -> str | None:
    """The provider's name as the model tells it to tracers; None where it tells none."""
    told = getattr(model, "_get_ls_params", None)
    provider = told().get("ls_provider") if callable(told) else None
    return provider if isinstance(provider, str) else None


def model_name(model: Any) -> str | None:
    """``provider:name`` of a chat model, as far as it says so."""
    named = (getattr(model, key, None) for key in ("model_name", "model"))
    name = next((name for name in named if isinstance(name, str) and name), None)
    provider = provider_of(model)
    return name if name is None or provider is None or ":" in name else f"{provider}:{name}"


def window_of(model: Any) -> int:
    """Input tokens that a model takes: by its profile, by the registry, or by default."""
    return resolve(None, model_name(model), profile=profile_window(model)).tokens
