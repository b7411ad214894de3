"""What the tests of frameworks and SDKs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leftovers import collected


@pytest.fixture(autouse=True, scope="module")
def _left_open() -> Iterator[None]:
    with collected():
        yield
