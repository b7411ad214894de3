"""``SummaryModel``: the model that writes summaries, as users name it.

What belongs here: the value with its options, their validation, and what follows from them: provider, window, price.
What does not: what is asked for and how patiently (``summary.options``), clients (``clients``), and other things that
can summarize (``chain``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from contextfold import window as windows
from contextfold.errors import PolicyError, plain_integer
from contextfold.observe import scrub
from contextfold.summary.models.clients import SDKS, Sdk, SdkModel, sdk_of
from contextfold.summary.models.settings import RequestSettings

SMALLEST_WINDOW = 1_024
"""Tokens. Prompts and answers of less than that are of no use."""

_ANSWER_SHARE, _LONGEST_RESERVE = 8, 4_096
"""Without an answer limit, what of a window is kept free for the answer: this fraction, up to this many tokens."""


@dataclass(frozen=True)
class SummaryModel:
    """A model that writes summaries, through an official SDK.

    ``SummaryModel("openai:gpt-5-mini")``, ``SummaryModel("anthropic:claude-haiku-4-5")``, any server that speaks
    OpenAI's API by ``base_url``, or ``SummaryModel("gpt-5-mini", client=client)``. Keys come from the environment or
    the client. Raises ``PolicyError`` for what cannot be, such as an unknown provider or a missing key.
    """

    model: str
    """``PROVIDER:MODEL``; with a client, the model's name alone will do."""
    _: KW_ONLY
    client: Any = field(default=None, repr=False)
    """A client of the ``openai`` or ``anthropic`` SDK, sync or async. It is not changed and not closed."""
    base_url: str | None = None
    """The address of a server that speaks the provider's API."""
    api: str | None = None
    """Of OpenAI: ``chat`` (Chat Completions, the default) or ``responses``."""
    temperature: float | None = None
    """None: the provider's default. Reasoning models take no other."""
    max_output_tokens: int | None = None
    """A hard limit for each answer, in tokens, reasoning included. An answer that reaches it is not used."""
    window: int | None = None
    """Tokens that the model takes, prompt and answer together. None: looked up by name, else learned from errors."""
    stream: bool = True
    """Ask for the answer bit by bit, so that silence is noticed early. False for servers that cannot."""
    fallbacks: Sequence[Any] = ()
    """What to ask, in this order, when this model fails: anything that can be a summarizer."""

    def __post_init__(self) -> None:
        self._check_shape()
        sdk = SDKS[self.provider]
        if self.api is not None and self.api not in sdk.apis:
            raise PolicyError(f"api is {self.api!r}: for {self.provider} it is {' or '.join(sdk.apis)}")
        if self.client is None:
            sdk.check_installed(self.model)
            if not sdk.has_key() and sdk.address(self.base_url) is None:
                raise PolicyError(
                    f"{self.model} needs a key: set {sdk.key_variables[0]} in the environment, or pass client="
                )

    def _check_shape(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise PolicyError(f"model is {self.model!r}: it must be a name such as 'openai:gpt-5-mini'")
        for name, smallest in (("max_output_tokens", 1), ("window", SMALLEST_WINDOW)):
            value = getattr(self, name)
            number = plain_integer(value)
            if value is not None and (number is None or number < smallest):
                raise PolicyError(f"{name} is {value!r}: it must be a whole number of at least {smallest:,} tokens")
            object.__setattr__(self, name, number)
        if self.client is not None and self.base_url is not None:
            raise PolicyError("give either client or base_url, not both: a client knows its address")
        if self.base_url is not None and not re.match(r"https?://[^/\s]", str(self.base_url)):
            raise PolicyError(
                f"base_url is {scrub(repr(self.base_url))}: it must be an address such as 'http://localhost:8000/v1'"
            )
        if isinstance(self.fallbacks, str):
            raise PolicyError(
                f"fallbacks is the text {self.fallbacks!r}: it must be a list, such as [{self.fallbacks!r}]"
            )

    @property
    def provider(self) -> str:
        """``openai`` or ``anthropic``. Raises ``PolicyError`` when neither the client nor the name says so."""
        if self.client is not None:
            provider = sdk_of(self.client)
            if provider is None:
                kind = type(self.client).__name__
                raise PolicyError(f"client is a {kind}: it must be a client of the SDK {' or '.join(SDKS)}")
            return provider
        provider, colon, name = self.model.partition(":")
        if provider in SDKS and name:
            return provider
        known = ", ".join(f"{known}:MODEL" for known in SDKS)
        problem = f"there is no provider {provider!r}" if colon and name else "it names no provider and model"
        raise PolicyError(
            f"summarizer {self.model!r}: {problem}; there are {known}, and openai:MODEL with a base_url for "
            "every server that speaks OpenAI's API"
        )

    def resolved(self) -> SdkModel:
        """The model, ready to be opened."""
        provider = self.provider
        sdk = SDKS[provider]
        name = self.model.removeprefix(f"{provider}:")
        address = sdk.address(self.base_url) if self.client is None else None
        return SdkModel(
            name=f"{provider}:{name}",
            provider=provider,
            api=self.api or next(iter(sdk.apis)),
            settings=RequestSettings(
                model=name,
                temperature=self.temperature,
                max_output_tokens=self.max_output_tokens,
                stream=self.stream,
                is_compatible_server=address is not None or not _is_home(self.client, sdk),
            ),
            window=self._prompt_window(f"{provider}:{name}", elsewhere=address is not None),
            base_url=address,
            client=self.client,
        )

    def _prompt_window(self, name: str, *, elsewhere: bool) -> int | None:
        """Tokens of prompt: the window less what the answer needs. Other servers set windows of their own."""
        window = self.window or (None if elsewhere else windows.registered(name))
        if window is None:
            return None
        reserve = self.max_output_tokens or min(_LONGEST_RESERVE, window // _ANSWER_SHARE)
        return max(window - reserve, window // 2)


def _is_home(client: Any, sdk: Sdk) -> bool:
    """Whether a client speaks to the maker of its SDK."""
    return client is None or f".{sdk.package}.com" in str(getattr(client, "base_url", ""))
