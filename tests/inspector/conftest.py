"""One browser of each kind for all tests of the page: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import Browser


@pytest.fixture(scope="session", params=["chromium", pytest.param("firefox", marks=pytest.mark.strict)])
def browser(request: Any) -> Iterator[Browser]:
    found = Browser(request.param)
    yield found
    found.close()
