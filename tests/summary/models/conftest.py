"""What the tests of models share: a provider on loopback, and keys that must not be seen anywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asking_models import KEY
from emulator import ProviderServer

from contextfold.summary.models import SummaryModel, retry
from contextfold.summary.summarizer import as_summarizer


@pytest.fixture(scope="package")
def provider() -> Iterator[ProviderServer]:
    """One server for all tests of this folder.

    Each API is asked once before anything is timed: at their first use the SDKs build half a second of types.
    """
    with ProviderServer(windows={"small": 4_000}) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("ANTHROPIC_API_KEY", KEY)
        for name, url, api in (
            ("openai:warm", server.openai_url, "chat"),
            ("openai:warm", server.openai_url, "responses"),
            ("anthropic:warm", server.anthropic_url, "messages"),
        ):
            as_summarizer(SummaryModel(name, base_url=url, api=api)).complete("Hello")
        yield server


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[ProviderServer]:
    provider.faults.clear()
    yield provider
    provider.faults.clear()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys as the SDKs look for them, and none of the machine's own settings."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without the wait between them."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
