"""Without the extra, an error names the one that a store of this kind needs."""

from __future__ import annotations

import sys

import pytest

from contextfold.errors import InputError
from contextfold.store import open_store


@pytest.mark.parametrize(
    ("url", "extra"), [("sqlite:///talks.db", "store"), ("postgresql+psycopg://agent@db/talks", "postgres")]
)
def test_the_extra_that_is_missing_is_named(url: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "contextfold.store.sql", None)  # as where SQLAlchemy cannot be imported
    with pytest.raises(InputError, match=rf"pip install 'contextfold\[{extra}\]'"):
        open_store(url)
