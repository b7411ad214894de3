"""What a ranked search costs as a session grows, and as sessions become many, beside the database's own query.

    python benchmarks/search.py [--messages 1000000] [--sessions 10000] [--each 100] [--url sqlite]

First one session grows to a million messages. At each size: the time of a search by a question of common words, by one
rare name, by a phrase, and by a word that every tenth message has, the best of five, since other work on the machine
only ever adds to it. Beside it the time of the database's own ranked query for the same words, over a plain table of
nothing but these texts (SQLite: ``MATCH ... ORDER BY bm25() LIMIT 20``; PostgreSQL: ``ts_rank`` over ``tsvector @@
tsquery``). Then the same searches in one of many sessions of ``--each`` messages.

Exit code 1, with a line that says why, where a search takes more than 5 times the own query and more than 0.1 s.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import text
from store_stress import database

from contextfold import Compactor
from contextfold.store import Session, open_store
from contextfold.store.sql import SQLStore
from contextfold.store.values import NewMessage, Thread

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PAGE = 5_000
REPEATS = 5
SLOWER, NOTICEABLE = 5.0, 0.1
WORDS = [
    a + b
    for a in ("ba", "do", "fer", "gan", "lim", "mor", "pel", "ru", "sten", "tal")
    for b in ("ber", "dan", "fi", "ga", "kel", "lo", "mar", "ne", "pon", "rik", "sa", "to", "ven", "wil", "zu")
]
QUERIES = {
    "question": "When did Caroline go to the support group for the gateway?",
    "name": "TCK-0000123",
    "phrase": '"support group"',
    "common": "caroline",
}
ASKED = {
    "question": ("caroline", "go", "support", "group", "gateway"),
    "name": ("tck0000123",),
    "phrase": ("support", "group"),
    "common": ("caroline",),
}


def said(number: int) -> str:
    """About 30 words: common ones, some that every tenth message has, and a name of its own."""
    chance = random.Random(number)
    words = [chance.choice(WORDS) for _ in range(24)]
    for one, share in (("caroline", 0.1), ("go", 0.2), ("support group", 0.02), ("gateway", 0.05)):
        if chance.random() < share:
            words.insert(chance.randrange(len(words)), one)
    return f"{' '.join(words)} TCK-{number:07d}"


def rows(numbers: range) -> Iterator[NewMessage]:
    for n in numbers:
        line = said(n)
        yield NewMessage(f'{{"role":"user","content":"{line}"}}', "user", None, 40, line)


def grow(store: SQLStore, thread: Thread, size: int) -> float:
    """Append until there are ``size`` messages; seconds per 1,000."""
    count = store.load(thread).message_count
    known = "openai-chat" if count else None
    started, began = time.perf_counter(), count
    while count < size:
        new = list(rows(range(count, min(size, count + PAGE))))
        store.append(thread, new, format="openai-chat", marked=True, expected_format=known)
        count, known = count + len(new), "openai-chat"
    return (time.perf_counter() - started) / max(1, count - began) * 1000


def own_table(store: SQLStore) -> None:
    with store.database.write() as connection:
        if store.database.dialect == "sqlite":
            connection.execute(text("CREATE VIRTUAL TABLE own USING fts5(words)"))
        else:
            connection.execute(text("CREATE TABLE own (id BIGSERIAL, words TSVECTOR)"))
            connection.execute(text("CREATE INDEX own_words ON own USING gin (words)"))


def own_grow(store: SQLStore, numbers: range) -> None:
    new = {
        "sqlite": "INSERT INTO own (words) VALUES (:w)",
        "postgresql": "INSERT INTO own (words) VALUES (to_tsvector('simple', :w))",
    }[store.database.dialect]
    for start in range(numbers.start, numbers.stop, PAGE):
        some = [{"w": said(n).replace("-", "")} for n in range(start, min(numbers.stop, start + PAGE))]
        with store.database.write() as connection:
            connection.execute(text(new), some)


def own_query(store: SQLStore, name: str) -> Callable[[], Any]:
    words = ASKED[name]
    if store.database.dialect == "sqlite":
        asked = f'"{" ".join(words)}"' if name == "phrase" else " OR ".join(words)
        query = "SELECT rowid FROM own WHERE own MATCH :q ORDER BY bm25(own) LIMIT 20"
    else:
        asked = (" <-> " if name == "phrase" else " | ").join(words)
        query = (
            "SELECT id FROM own, to_tsquery('simple', :q) q WHERE words @@ q ORDER BY ts_rank(words, q) DESC LIMIT 20"
        )

    def run() -> Any:
        with store.database.read() as connection:
            return connection.execute(text(query), {"q": asked}).all()

    return run


def best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(session: Session, store: SQLStore, label: str) -> list[str]:
    problems = []
    cells = []
    for name, query in QUERIES.items():
        ours = best(lambda query=query: session.search(query))  # type: ignore[misc]
        theirs = best(own_query(store, name))
        cells.append(f"{name} {ours * 1000:8.1f} / {theirs * 1000:8.1f} ms")
        if ours > NOTICEABLE and ours > SLOWER * theirs:
            problems.append(f"{label}, {name}: {ours:.2f} s, the database's own query {theirs:.2f} s")
    print(f"{label:>24}: " + "   ".join(cells), flush=True)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=SIZES[-1])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=100, help="messages of each of the many sessions")
    parser.add_argument("--url", default="sqlite")
    arguments = parser.parse_args()
    problems: list[str] = []
    with database(arguments.url) as url:
        store = open_store(url)
        own_table(store)
        session = Compactor(window=128_000).session("long", store)
        before = 0
        print("search / the database's own ranked query, best of five")
        for size in [*(size for size in SIZES if size < arguments.messages), arguments.messages]:
            per_thousand = grow(store, session.thread, size)
            own_grow(store, range(before, size))
            before = size
            problems += measure(session, store, f"{size:,} messages")
            print(f"{'':>24}  appended and indexed at {per_thousand:.2f} s per 1,000", flush=True)
        store.close()
    with database(arguments.url) as url:
        store = open_store(url)
        own_table(store)
        for number in range(arguments.sessions):
            thread = Thread("", f"short-{number}")
            new = list(rows(range(number * arguments.each, (number + 1) * arguments.each)))
            store.append(thread, new, format="openai-chat", marked=True, expected_format=None)
        own_grow(store, range(arguments.sessions * arguments.each))
        one = Compactor(window=128_000).session(f"short-{arguments.sessions // 2}", store)
        problems += measure(one, store, f"1 of {arguments.sessions:,} sessions")
        store.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
