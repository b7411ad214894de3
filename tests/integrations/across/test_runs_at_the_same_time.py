"""Runs of one thread that come at the same moment pay for one summary, whichever middleware keeps it small."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

TOGETHER = 3
SUMMARY = "The user asks for one module after the other; all of them were looked at, and none is late."


def writer() -> tuple[Any, Callable[[], int]]:
    """A chat model that writes summaries, and how often it was asked. It takes its time, so that others would ask."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    asked: list[int] = []

    class Writer(GenericFakeChatModel):
        def _generate(self, *given: Any, **named: Any) -> Any:
            asked.append(1)
            threading.Event().wait(0.4)
            return super()._generate(*given, **named)

    return Writer(messages=iter([AIMessage(SUMMARY)] * 99)), lambda: len(asked)


def of_langchain(model: Any, folder: Path) -> Any:
    from contextfold.integrations.langchain import SummarizationMiddleware

    return SummarizationMiddleware(model, trigger=("tokens", 4_000), keep=("messages", 6))


def of_deepagents(model: Any, folder: Path) -> Any:
    from deepagents.backends import FilesystemBackend

    from contextfold.integrations.deepagents import SummarizationMiddleware

    backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
    return SummarizationMiddleware(model, backend=backend, trigger=("tokens", 4_000), keep=("messages", 6))


def of_compaction(model: Any, folder: Path) -> Any:
    from contextfold.integrations.langchain import CompactionMiddleware

    return CompactionMiddleware(window=8_000, summarizer=model)


def paid(middleware: Callable[[Any, Path], Any], runs: int, folder: Path) -> int:
    """Requests for summaries of so many runs of one thread."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    model, asked = writer()
    answers = GenericFakeChatModel(messages=iter([AIMessage("It is so.") for _ in range(9)]))
    agent: Any = create_agent(answers, middleware=[middleware(model, folder)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    said = [(HumanMessage, AIMessage)[n % 2](f"Turn {n}: " + "word " * 150, id=str(n)) for n in range(60)]
    agent.update_state(config, {"messages": said}, as_node="model")
    together = threading.Barrier(runs)

    def ask(number: int) -> None:
        together.wait(20)
        agent.invoke({"messages": [HumanMessage(f"And number {number}?", id=f"asked {number}")]}, config)

    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(ask, range(runs)))
    return asked()


@pytest.mark.parametrize("middleware", [of_langchain, of_deepagents, of_compaction])
def test_runs_of_one_thread_at_the_same_time_pay_for_one_summary(
    middleware: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    alone = paid(middleware, 1, tmp_path / "alone")
    assert alone
    assert paid(middleware, TOGETHER, tmp_path / "together") == alone


def test_haystack_pays_once_for_runs_at_the_same_time() -> None:
    """It makes an engine for each target, and so for each run."""
    from haystack.dataclasses import ChatMessage
    from haystack.token_counters import ApproximateTokenCounter

    from contextfold.integrations.haystack import ContextfoldCompactor

    counter, kinds = ApproximateTokenCounter(), (ChatMessage.from_user, ChatMessage.from_assistant)
    asked: list[int] = []

    def write(prompt: str) -> str:
        asked.append(1)
        threading.Event().wait(0.4)
        return SUMMARY

    compactor = ContextfoldCompactor(summarizer=write)

    def compacted(start: int) -> Any:
        said = [kinds[n % 2](f"Turn {start + n}: " + "word " * 150) for n in range(60)]
        return compactor.compact(said, counter.count(said) // 3, counter)

    assert compacted(0)
    alone = len(asked)
    with ThreadPoolExecutor(TOGETHER) as pool:
        views = list(pool.map(compacted, [1_000] * TOGETHER))
    assert all(view and SUMMARY in str(view) for view in views)
    assert len(asked) == 2 * alone
