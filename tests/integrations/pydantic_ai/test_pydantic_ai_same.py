"""``summarizer="same"`` with pydantic-ai: behind the view where the model may answer in words, else the usual way."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from contextfold.integrations.pydantic_ai import Compaction

SUMMARY = "<summary>Every room was seen, and nothing is open.</summary>"


class Found(BaseModel):
    """Where it is."""

    path: str


@pytest.mark.parametrize(
    ("output", "is_words"),
    [(str, True), ([Found, str], True), (Found, False), (PromptedOutput(Found), False)],
    ids=["words", "words or a schema", "a schema", "a schema in the prompt"],
)
def test_a_model_whose_answers_are_forced_into_a_schema_is_asked_for_words_alone(output: Any, is_words: bool) -> None:
    behind: list[int] = []
    alone: list[int] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        newest = str(messages[-1])
        if "Pause the task" in newest:
            behind.append(len(info.output_tools))
            return ModelResponse([TextPart(SUMMARY)])
        if "<conversation>" in newest:
            alone.append(len(info.output_tools))
            return ModelResponse([TextPart("Every room was seen, and nothing is open.")])
        if info.output_tools:
            return ModelResponse([ToolCallPart(info.output_tools[0].name, {"path": "a.py"})])
        return ModelResponse([TextPart('{"path": "a.py"}')])

    agent = Agent(FunctionModel(answer), output_type=output, capabilities=[Compaction(window=4_000, summarizer="same")])
    history: list[ModelMessage] = []
    for n in range(30):
        prompt = f"Look at room {n}. " + "It has a window to the yard and a door. " * 20
        history = agent.run_sync(prompt, message_history=history).all_messages()
    assert bool(behind) is is_words
    assert bool(alone) is not is_words
    assert not any(alone)


@pytest.mark.parametrize(
    "whose", ["the run's", "the model's", "those of a model inside of another", "those of one in a chain"]
)
def test_a_summary_does_not_end_at_the_stop_words_of_the_task(whose: str) -> None:
    settings: Any = {"stop_sequences": ["room"]}
    stops: dict[bool, list[Any]] = {True: [], False: []}

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        is_asked = "Pause the task" in str(messages[-1])
        stops[is_asked].append((info.model_settings or {}).get("stop_sequences"))
        return ModelResponse([TextPart(SUMMARY if is_asked else "It is dry.")])

    compaction = Compaction(window=4_000, summarizer="same")
    model: Any = FunctionModel(answer, settings=None if whose == "the run's" else settings)
    if whose == "those of a model inside of another":
        model = WrapperModel(model)
    elif whose == "those of one in a chain":
        model = FallbackModel(model, FunctionModel(answer))
    agent = Agent(model, capabilities=[compaction], model_settings=settings if whose == "the run's" else None)
    history: list[ModelMessage] = []
    for n in range(30):
        prompt = f"Look at room {n}. " + "It has a window to the yard and a door. " * 20
        history = agent.run_sync(prompt, message_history=history).all_messages()
    assert stops[False] == [["room"]] * 30
    assert stops[True]
    assert not any(stops[True])
