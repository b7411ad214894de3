"""Ranking the pieces of an output of megabytes: no search of it holds the interpreter for long, nor loses by that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contextfold import identifiers
from contextfold.identifiers import Identifier
from contextfold.tiers import pieces

TEXTS = {
    "log": "2031-01-02 worker-7 GET /api/v2/users/{} took refreshUserToken 913ms\n",
    "log in Chinese": "夜间导入 worker-7 读取 /api/v2/用户/{} 用时 refreshUserToken 九百毫秒\n",
    "prose in Chinese": "夜间导入太慢，请先看日志{}。",
    "one line of JSON": '{{"id": {}, "name": "order_{}", "owner": "Anna Meyer"}}, ',
}


@pytest.mark.parametrize("line", TEXTS.values(), ids=TEXTS)
def test_identifiers_of_a_long_text_are_looked_for_some_at_a_time(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without a find held the event loop for 200 ms in a log in Chinese."""
    texts = [line.format(n, n) for n in range(8_000)]
    searched: list[int] = []
    search = identifiers.find

    def find(text: str) -> Iterator[Identifier]:
        searched.append(len(text))
        return search(text)

    monkeypatch.setattr(identifiers, "find", find)
    order = pieces._order(texts)
    assert max(searched) < 100_000
    monkeypatch.setattr(pieces, "stretches", lambda text, _: [text])
    assert order == pieces._order(texts)
