"""What a message holds comes back from a store as it was, or is refused by the name of its field."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from contextfold import Compactor, InputError
from contextfold.store import payload
from contextfold.store.sql import SQLStore


class _Point(BaseModel):
    x: int = 1


class _Pair(NamedTuple):
    x: int = 1


class _Color(StrEnum):
    RED = "red"


CHANGING: dict[str, tuple[Any, str]] = {
    "set": ({1, 2}, "is of the type set"),
    "date": (date(2031, 3, 11), "is of the type date"),
    "object": (object(), "is of the type object"),
    "model": (_Point(), "is of the type _Point"),
    "named tuple": (_Pair(), "is of the type _Pair"),
    "decimal": (Decimal("1.5"), "is of the type Decimal"),
    "not a number": (math.nan, "is nan, which JSON has not"),
    "number as key": ({1: "one"}, "has the key 1, and keys are texts"),
    "two keys of one text": ({1: "one", "1": "uno"}, "has the key 1, and keys are texts"),
    "nothing as key": ({None: "one"}, "has the key None, and keys are texts"),
}
"""What JSON cannot say, or says as something else."""


def _holding(place: str, value: Any) -> Any:
    """A message that holds a value at a place: in a mapping, or in a field of an object of LangChain's."""
    if place == "metadata":
        return {"role": "user", "content": "fine", "metadata": {"of": [0, value]}}
    messages = pytest.importorskip("langchain_core.messages")
    if place == "artifact":
        return messages.ToolMessage("fine", tool_call_id="c1", artifact={"of": [0, value]})
    return messages.AIMessage("fine", **{place: {"of": [0, value]}})


@pytest.mark.parametrize("place", ["metadata", "artifact", "additional_kwargs", "response_metadata"])
@pytest.mark.parametrize("kind", CHANGING)
def test_what_would_come_back_as_something_else_is_refused_by_the_name_of_its_field(
    kind: str, place: str, sqlite_store: SQLStore
) -> None:
    """A number as a key came back as a text, or took the place of another; an object in a message of LangChain as a
    mapping; and of a set or a date no one said where it stood."""
    value, said = CHANGING[kind]
    session = Compactor(window=8_000).session("changing", sqlite_store)
    with pytest.raises(InputError, match=re.escape(f"message 1 cannot be stored: {place}.of[1] {said}")):
        session.append([_holding(place, "fine"), _holding(place, value)])
    assert session.state().message_count == 0


@pytest.mark.parametrize("place", ["metadata", "artifact", "additional_kwargs", "response_metadata"])
def test_what_equals_plain_data_comes_back_as_that(place: str, sqlite_store: SQLStore) -> None:
    given = {"tuple": (1, (2, 3)), "word": _Color.RED, "kept": OrderedDict(b=1, a=2), "big": 10**30, "none": None}
    back = {"tuple": [1, [2, 3]], "word": "red", "kept": {"b": 1, "a": 2}, "big": 10**30, "none": None}
    session = Compactor(window=8_000).session("plain", sqlite_store)
    session.append([_holding(place, given)])
    assert session.history() == [_holding(place, back)]


def test_documents_and_messages_in_the_artifact_of_a_tool_come_back_as_such(store: SQLStore) -> None:
    """As tools for retrieval give them; they came back as mappings, in which a program looks for ``page_content``."""
    messages = pytest.importorskip("langchain_core.messages")
    documents = pytest.importorskip("langchain_core.documents")
    inner = messages.ToolMessage("inner", tool_call_id="c0", artifact=[documents.Document("deep", metadata={"n": 1})])
    artifact = {"found": [documents.Document("said", id="d1", metadata={"raw": b"x"})], "talk": [inner]}
    given = [
        messages.HumanMessage("Find it."),
        messages.AIMessage("", tool_calls=[{"id": "c1", "name": "find", "args": {}}]),
        messages.ToolMessage("Found.", tool_call_id="c1", artifact=artifact),
    ]
    session = Compactor(window=8_000).session("documents", store)
    session.append(given)
    for back in (
        session.history(),
        list(session.view()),
        Compactor(window=8_000).session("documents", store).history(),
    ):
        assert back == given
        assert type(back[-1].artifact["found"][0]) is documents.Document
    assert payload.plain(given[-1])["data"]["artifact"]["talk"][0]["content"] == "inner"


def test_what_contains_itself_is_refused(sqlite_store: SQLStore) -> None:
    ring: list[Any] = []
    ring.append(ring)
    for place in ("metadata", "artifact"):
        with pytest.raises(InputError, match="message 0 "):
            Compactor(window=8_000).session("ring", sqlite_store).append([_holding(place, ring)])


@pytest.mark.parametrize("frames", [0, 200, 400])
def test_what_was_stored_is_read_from_however_far_down_the_stack(frames: int, sqlite_store: SQLStore) -> None:
    """A message that a thread of a service took was damaged to an agent that calls itself."""
    nested: Any = {"x": 1}
    for _ in range(550):
        nested = {"a": nested}
    call = {"type": "tool_use", "id": "1", "name": "f", "input": nested}
    talk = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]},
    ]
    with ThreadPoolExecutor(1) as shallow:
        shallow.submit(Compactor(window=64_000).session("deep", sqlite_store).append, talk).result()

    def view(left: int) -> list[Any]:
        return view(left - 1) if left else Compactor(window=64_000).session("deep", sqlite_store).view()

    found = view(frames)
    assert payload.dumps(found[1], 1) == payload.dumps(talk[1], 1)
