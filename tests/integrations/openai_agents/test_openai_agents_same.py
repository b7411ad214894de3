"""``summarizer="same"`` with the Agents SDK: what its model is asked for a summary."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    AgentOutputSchema,
    Model,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    Usage,
    function_tool,
    handoff,
)
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from contextfold.integrations.openai_agents import compaction
from integrations import rooms


class Recording(Model):
    """A model that answers one thing, and keeps what it was asked."""

    def __init__(self, summary: str) -> None:
        self.summary = summary
        self.asked: list[dict[str, Any]] = []

    async def get_response(self, system_instructions: str | None, input: Any, *rest: Any, **beside: Any) -> Any:
        names = ("model_settings", "tools", "output_schema", "handoffs", "tracing")
        self.asked.append(
            {"input": input, "system": system_instructions, **dict(zip(names, rest, strict=False)), **beside}
        )
        wants = "<summary>" in str(input[-1]) or "<conversation>" in str(input[-1])
        text = ResponseOutputText(annotations=[], text=self.summary if wants else "Seen.", type="output_text")
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **beside: Any) -> Any:
        raise AssertionError("these runs do not stream")


@pytest.mark.parametrize("is_json", [False, True])
def test_the_model_itself_is_asked_as_the_run_asks_it_or_for_words_alone(is_json: bool) -> None:
    """With the same tools and handoffs behind its view, for the cache; where its answers have a schema, without."""
    wrapped = Recording("<summary>Every room was seen, and the cellar was not.</summary>")
    model = compaction(window=4_000, summarizer="same").model(wrapped)
    schema = AgentOutputSchema(dict[str, str], strict_json_schema=False) if is_json else None
    tools, handoffs = [function_tool(rooms.look)], [handoff(Agent("Other"))]
    items: list[Any] = []

    async def run() -> None:
        for n in range(60):
            items.append({"role": "user", "content": f"Look at room {n}. " + "It has a window to the yard. " * 10})
            await model.get_response(
                "Never touch the cellar.", items, ModelSettings(), tools, schema, handoffs, ModelTracing.DISABLED,
                previous_response_id=None, conversation_id=None, prompt=None,
            )  # fmt: skip
            items.append({"role": "assistant", "content": "Seen."})

    asyncio.run(run())
    behind = [asked for asked in wrapped.asked if "Pause the task" in str(asked["input"][-1])]
    alone = [asked for asked in wrapped.asked if "<conversation>" in str(asked["input"][-1])]
    assert bool(behind) is not is_json
    assert bool(alone) is is_json
    assert all(asked["handoffs"] == handoffs and asked["tools"] == tools for asked in behind)
    assert not any(asked["handoffs"] or asked["tools"] or asked["output_schema"] for asked in alone)
    assert "Every room was seen" in str(wrapped.asked[-1]["input"])


@pytest.mark.parametrize("choice", [None, "required"])
def test_a_summary_does_not_end_at_the_stop_words_of_the_task(choice: str | None) -> None:
    wrapped = Recording("<summary>Every room was seen.</summary>")
    model = compaction(window=4_000, summarizer="same").model(wrapped)
    given: dict[str, Any] = {"stop": ["Observation:"], "logit_bias": {"50256": -100}, "seed": 7}
    settings = ModelSettings(extra_args=given, extra_body=given, tool_choice=choice)
    items = [{"role": "user", "content": f"Look at room {n}. " + "It has a window. " * 30} for n in range(60)]

    async def run() -> None:
        await model.get_response(
            None, items, settings, [function_tool(rooms.look)], None, [], ModelTracing.DISABLED,
            previous_response_id=None, conversation_id=None, prompt=None,
        )  # fmt: skip

    asyncio.run(run())
    *summaries, task = [asked["model_settings"] for asked in wrapped.asked]
    assert summaries
    assert [made.extra_args for made in summaries] == [{"seed": 7}] * len(summaries)
    assert [made.extra_body for made in summaries] == [{"seed": 7}] * len(summaries)
    assert task.extra_args == task.extra_body == given
