"""A row is measured as the benchmark measures a replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from batch_talks import make_talk

from contextfold.batch import MeasureBatch
from contextfold.batch.measures import TOTALS, figures_of

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def measured(messages: Any, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = MeasureBatch(**settings)([{"messages": messages}])[0]
    assert found["error"] is None, found["error"]
    return found


@pytest.mark.parametrize("window", [1_500, 4_000, 100_000])
def test_totals_and_figures_are_the_benchmarks(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same conversation, replayed by the benchmark and in a row; both count tokens alike here."""
    from benchmarks.replay import recording, tokens
    from benchmarks.replay.conversation import Conversation
    from benchmarks.replay.measure import added
    from benchmarks.replay.measures import MEASURES, columns
    from benchmarks.replay.replay import replay
    from benchmarks.replay.strategies import contextfold as ours
    from benchmarks.replay.strategies.none import Everything

    from contextfold import formats
    from contextfold.inspector.wire import Wire

    tokens.use(tokens.ESTIMATE)
    shape = Wire(formats.get("openai-chat"))
    monkeypatch.setattr(recording.tokens, "message_tokens", shape.tokens)
    messages = make_talk(30)
    conversation = Conversation("talk", "tests", tuple(messages))
    expected = added([replay(conversation, ours.ContextFold(window), MEASURES).totals])
    reference = added([replay(conversation, Everything(window), MEASURES).totals])
    found = measured(messages, window=window)
    assert found["requests"] == expected["views"]
    shared = [name for name in TOTALS if name in expected]
    assert len(shared) > 25
    assert {name: found[name] for name in shared} == {name: expected[name] for name in shared}
    figures = {column.key: column.value(expected, reference) for column in columns()}
    own = figures_of({name: found[name] for name in TOTALS})
    assert {key: figures[key] for key in own if key in figures} == pytest.approx(
        {key: own[key] for key in own if key in figures}, nan_ok=True
    )
    assert own.keys() <= figures.keys()


def test_a_window_that_is_large_enough_costs_what_the_whole_history_costs() -> None:
    found = measured(make_talk(30), window=1_000_000)
    assert found["cost"] == pytest.approx(1.0)
    assert found["rewrites"] == found["compactions"] == 0
    assert found["recall"] == 1.0


def test_what_is_lost_in_a_small_window_shows() -> None:
    found = measured(make_talk(30), window=1_500)
    assert found["compactions"] > 1
    assert found["cost"] != 1.0
    assert found["recall_hard"] > 0
    assert 0 <= found["hard_in_context"] <= 1
    assert found["over_window"] == found["invalid"] == found["errors"] == 0


def test_a_view_that_could_not_be_made_is_an_error_of_its_request() -> None:
    talk = [{"role": "user", "content": "x " * 3_000}, {"role": "assistant", "content": "Yes."}]
    found = measured(talk, window=1_000)
    assert found["requests"] == found["errors"] == 1
    assert "CannotFit" in found["first_error"]


def test_tools_and_system_prompt_beside_the_messages_count() -> None:
    talk = make_talk(3)
    bare = measured(talk, window=100_000)
    row = {
        "messages": talk,
        "tools": [{"type": "function", "function": {"name": "read_file", "description": "x " * 200}}],
    }
    more = MeasureBatch(window=100_000)([row])[0]
    assert more["view_tokens"] > bare["view_tokens"] + 100
    assert more["tokens_before"] - bare["tokens_before"] > 100


def test_a_model_that_summarizes_is_in_the_cost() -> None:
    def summarizer(prompt: str) -> str:
        return "The agent read files and found errors."

    free = measured(make_talk(30), window=1_500)
    paid = measured(make_talk(30), window=1_500, summarizer=summarizer)
    assert free["cost_summary_input"] == 0
    assert paid["cost_summary_input"] > 0
    assert paid["money_openai"] > 0


@pytest.mark.parametrize("format", ["anthropic", "openai-responses"])
def test_every_format_is_measured(format: str) -> None:
    from contextfold import Compactor

    messages = Compactor(window=1_000_000).compact(make_talk(12), to=format).messages
    found = measured(json.dumps(messages), window=1_500, format=format)
    assert found["format"] == format
    assert found["requests"] >= 12
    assert found["invalid"] == found["errors"] == 0
