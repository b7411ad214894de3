"""What faces read of a conversation that grows: what is new in it, however the framework hands it over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from contextfold import Compactor, formats


def of_langchain(role: str, text: str) -> Any:
    messages = pytest.importorskip("langchain_core.messages")
    return (messages.HumanMessage if role == "user" else messages.AIMessage)(text)


def of_haystack(role: str, text: str) -> Any:
    kind = pytest.importorskip("haystack.dataclasses").ChatMessage
    return kind.from_user(text) if role == "user" else kind.from_assistant(text)


def of_pydantic_ai(role: str, text: str) -> Any:
    messages = pytest.importorskip("pydantic_ai.messages")
    if role == "user":
        return messages.ModelRequest([messages.UserPromptPart(text)])
    return messages.ModelResponse([messages.TextPart(text)])


def of_gemini(role: str, text: str) -> Any:
    types = pytest.importorskip("google.genai.types")
    return types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=text)])


MAKERS: dict[str, Callable[[str, str], Any]] = {
    "langchain": of_langchain,
    "haystack": of_haystack,
    "pydantic-ai": of_pydantic_ai,
    "gemini": of_gemini,
}


def talk(make: Callable[[str, str], Any], turns: int) -> list[Any]:
    said = [("user", "Question {}: " + "word " * 90), ("assistant", "Answer {}: " + "cellar and stairs " * 30)]
    return [make(role, text.format(turn)) for turn in range(turns) for role, text in said]


def counting(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """All messages that are decoded from here on."""
    kind, read = type(formats.get(name)), list[Any]()
    decode = kind.decode
    monkeypatch.setattr(kind, "decode", lambda *given: read.append(given[1]) or decode(*given))
    return read


@pytest.mark.parametrize("name", MAKERS)
def test_equal_copies_of_a_known_conversation_are_compared_and_not_read_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework that loads its messages from where it stores them has other objects at each turn."""
    stored, compactor = talk(MAKERS[name], 100), Compactor(window=200_000)
    compactor.compact(copy.deepcopy(stored), format=name)
    read = counting(monkeypatch, name)
    for turn in range(1, 6):
        given = copy.deepcopy([*stored, *talk(MAKERS[name], turn)])
        view = compactor.compact(given, format=name).messages
        assert all(one is other for one, other in zip(view, given, strict=True))
    assert len(read) <= 5 * 8


@pytest.mark.parametrize("name", MAKERS)
def test_a_message_that_was_changed_in_place_before_it_was_copied_is_read_before_a_pass(name: str) -> None:
    stored, compactor = talk(MAKERS[name], 40), Compactor(window=6_000, trigger=None)
    compactor.compact(stored, format=name)
    other = MAKERS[name]("assistant", "Answer 3: vault_south is the place.")
    vars(stored[7]).update(vars(other))
    given = copy.deepcopy(stored)
    out = compactor.compact(given, format=name, force=True)
    assert out.changed
    assert out.compaction == Compactor(window=6_000, trigger=None).compact(given, format=name, force=True).compaction


class Letters:
    """Haystack's protocol of a token counter."""

    def count(self, messages: list[Any]) -> int:
        return sum(len(message.text or "") for message in messages) // 4


@pytest.mark.parametrize("is_whole", [False, True], ids=["the view is the list", "the whole list each time"])
def test_a_compactor_of_haystack_counts_and_reads_each_message_once(
    is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made each pass with another engine, which knew nothing, and so read all originals again."""
    pytest.importorskip("haystack.hooks.compaction")
    from contextfold.integrations.haystack import ContextfoldCompactor

    counted, spent, passes = [0], list[int](), list[int]()

    def count_text(text: str) -> int:
        counted[0] += len(text)
        return len(text) // 4

    read = counting(monkeypatch, "haystack")
    face, state = ContextfoldCompactor(count_text=count_text), list[Any]()
    for message in talk(of_haystack, 300):
        state.append(message)
        if Letters().count(state) > 4_000:
            counted[0] = 0
            read.clear()
            view = face.compact(list(state), 2_400, Letters())
            assert view is not None
            passes.append(counted[0])
            spent.append(len(read))
            state = state if is_whole else view
    third = len(passes) // 3
    assert third > 3
    assert sum(passes[-third:]) < 1.5 * sum(passes[third : 2 * third])
    if is_whole:  # most turns have nothing to do
        assert sorted(spent)[len(spent) // 2] < 60
