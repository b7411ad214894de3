"""What the tests of frameworks and SDKs share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from emulator import ProviderServer

from integrations import rooms
from leftovers import close_loop, collected


@pytest.fixture(autouse=True, scope="module")
def _left_open() -> Iterator[None]:
    with collected():
        yield


@pytest.fixture(autouse=True)
def _loop_left() -> Iterator[None]:
    """LiteLLM's blocking calls leave a loop too, and the next test that calls ``asyncio.run`` would be told of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close_loop()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """The provider of a talk about rooms. Tests of other conversations have their own."""
    with rooms.provider() as running:
        yield running


@pytest.fixture
def own_loop() -> Iterator[None]:
    with rooms.own_loop():
        yield
