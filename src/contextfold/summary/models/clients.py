"""Clients of the official SDKs: which one a model needs, where its key comes from, and how it is made ready.

What belongs here: everything that knows the SDKs' packages, classes and environment variables. What does not: requests
and answers (``openai``, ``anthropic``). An SDK is imported when a session is opened, not before.

A client made here lives for one summary and is closed after it. A client of the caller is never changed or closed: it
is asked through a copy that shares its connections and does not retry by itself, since ``asking`` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

from contextfold.errors import PolicyError
from contextfold.ports import BothColors
from contextfold.summary.models import anthropic, openai
from contextfold.summary.models.base import Fold, OpenModel
from contextfold.summary.models.settings import RequestSettings, refused_field

NO_KEY = "not-needed"
"""Sent to a server of one's own when the environment holds no key: the SDK wants one, most such servers none."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API of a provider: the client's method, by its path, the call to make with it, and how answers are read."""

    method: str
    request: Callable[[Any, RequestSettings, str, int, float | None], partial[Any]]
    fold: Callable[[], Fold]


@dataclass(frozen=True, slots=True)
class Sdk:
    """One official SDK. ``apis`` maps the name of each API to how it is asked and read; the first is the default."""

    package: str
    classes: tuple[str, str]
    """Of the sync and the async client."""
    key_variables: tuple[str, ...]
    url_variable: str
    apis: dict[str, Api]

    def check_installed(self, name: str) -> None:
        """Raises ``PolicyError`` that says what to install for the model ``name``."""
        if find_spec(self.package) is None:
            raise PolicyError(
                f"{name} needs the package {self.package}, which is not installed: "
                f"pip install 'contextfold[{self.package}]'"
            )

    def has_key(self) -> bool:
        return any(os.environ.get(variable) for variable in self.key_variables)

    def address(self, base_url: str | None) -> str | None:
        """Where the provider's own API is not meant: the given address, or the one in the environment."""
        return base_url or os.environ.get(self.url_variable) or None


SDKS = {
    "openai": Sdk(
        package="openai",
        classes=("OpenAI", "AsyncOpenAI"),
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        apis={
            "chat": Api("chat.completions.create", openai.chat_request, openai.ChatFold),
            "responses": Api("responses.create", openai.responses_request, openai.ResponsesFold),
        },
    ),
    "anthropic": Sdk(
        package="anthropic",
        classes=("Anthropic", "AsyncAnthropic"),
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        url_variable="ANTHROPIC_BASE_URL",
        apis={"messages": Api("messages.create", anthropic.messages_request, anthropic.MessagesFold)},
    ),
}


def sdk_of(client: Any) -> str | None:
    """The name of the SDK that an object is a client of, or None. Those for Azure, Bedrock and Vertex count too."""
    for cls in type(client).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in SDKS and cls.__name__ in ("SyncAPIClient", "AsyncAPIClient"):
            return package
    return None


@dataclass(frozen=True, slots=True)
class SdkModel:
    """A model that is asked through an official SDK. ``window`` is tokens of prompt."""

    name: str
    provider: str
    api: str
    settings: RequestSettings
    window: int | None
    base_url: str | None = None
    client: Any = None
    refused: set[str] = field(default_factory=set, compare=False, repr=False)

    def opening(self, *, stream: bool) -> Callable[[], OpenModel] | BothColors:
        if self.client is not None:
            # The SDK's own retries would multiply with ours.
            return lambda: self._session(self.client.with_options(max_retries=0), close=None)
        blocking, suspending = (partial(self._opened, name) for name in SDKS[self.provider].classes)
        return BothColors(blocking, suspending)

    def _opened(self, class_name: str) -> OpenModel:
        sdk = SDKS[self.provider]
        options: dict[str, Any] = {"max_retries": 0}
        if self.base_url is not None:
            options["base_url"] = self.base_url
            if not sdk.has_key():
                options["api_key"] = NO_KEY
        client = getattr(import_module(sdk.package), class_name)(**options)
        return self._session(client, close=client.close)

    def _session(self, client: Any, close: Callable[[], Any] | None) -> OpenModel:
        api = SDKS[self.provider].apis[self.api]
        create = attrgetter(api.method)(client)  # imports more of the SDK
        keys = (getattr(client, name, None) for name in ("api_key", "auth_token"))

        def request(prompt: str, answer_tokens: int, seconds: float | None) -> partial[Any]:
            settings = replace(self.settings, without=frozenset(self.refused))
            return api.request(create, settings, prompt, answer_tokens, seconds)

        return OpenModel(
            request=request,
            fold=api.fold,
            close=close,
            keys=tuple(key for key in keys if isinstance(key, str) and key != NO_KEY),
            refused_field=refused_field,
        )
