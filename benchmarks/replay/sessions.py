"""The project's own example sessions, replayed where no transcripts are at hand: four kinds, two of each.

They are written by the generators in ``examples/`` as they are needed, so none has to be shipped. They are made up, so
they show that the instrument works and how strategies compare on one known kind of text; real conversations decide.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from benchmarks.replay import collect, tokens
from benchmarks.replay.conversation import Conversation, build
from contextfold import formats

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Maker = Callable[[], Mapping[str, Any]]


@cache
def _module(name: str) -> ModuleType:
    """A program of the examples' folder, imported without running it."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "coding agent 1": lambda: _module("make_session").make_request(31),
        "coding agent 2": lambda: _module("make_session").make_request(77),
        "research agent 1": lambda: _module("make_research").make_research(5),
        "research agent 2": lambda: _module("make_research").make_research(6),
        "dialogue 1": lambda: _module("make_dialogue").make_dialogue("en", 11),
        "dialogue 2": lambda: _module("make_dialogue").make_dialogue("en", 12),
        "Chinese dialogue 1": lambda: _module("make_dialogue").make_dialogue("zh", 21),
        "Chinese dialogue 2": lambda: _module("make_dialogue").make_dialogue("zh", 22),
    }
)


@cache
def load(number: int) -> Conversation:
    """The example session of this number."""
    name, make = list(MAKERS.items())[number]
    messages = make()["messages"]
    return build(name, f"examples: {name[:-2]}", formats.decode(messages, formats.get("openai-chat")))


def examples() -> list[Conversation]:
    """All example sessions."""
    return [load(number) for number in range(len(MAKERS))]


def found() -> list[collect.Found]:
    """The same as a survey of a folder would list them."""
    return [
        collect.Found(
            collect.Place(conversation.name, number),
            conversation.source,
            sum(tokens.message_tokens(message) for message in conversation.messages),
            conversation.digest,
        )
        for number, conversation in enumerate(examples())
    ]
