"""The fakes and generators that ship to users."""

from __future__ import annotations

import builtins
import json
import sys
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wire
from contextfold.errors import ContextOverflow
from contextfold.testing import (
    FailingSummarizer,
    LimitedSummarizer,
    ProviderError,
    ScriptedSummarizer,
    histories,
    plots,
    render,
)
from contextfold.testing.plots import (
    DAMAGES,
    UNITS,
    AssistantSays,
    Blank,
    Instruction,
    PlotCall,
    PlotWords,
    ProviderCompaction,
    Result,
    ToolsAnswer,
    UserSays,
    duplicate_ids,
    interleaved_rows,
    interrupted_results,
)
from contextfold.testing.summarizers import extract
from effort import examples

FORMATS = ("openai-chat", "openai-responses", "anthropic", "langchain", "gemini", "bedrock-converse")
quick = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


class TestScripted:
    def test_it_gives_its_answers_in_order_and_remembers_the_prompts(self) -> None:
        summarizer = ScriptedSummarizer(["one", "two"])
        assert [summarizer("a"), summarizer("b")] == ["one", "two"]
        assert summarizer.prompts == summarizer.accepted == ["a", "b"]

    def test_an_exception_in_the_script_is_raised_and_its_prompt_not_accepted(self) -> None:
        summarizer = ScriptedSummarizer([TimeoutError("too slow"), "fine"])
        with pytest.raises(TimeoutError, match="too slow"):
            summarizer("a")
        assert summarizer("b") == "fine"
        assert (summarizer.prompts, summarizer.accepted) == (["a", "b"], ["b"])

    def test_a_callable_answers_each_prompt(self) -> None:
        assert ScriptedSummarizer(str.upper)("abc") == "ABC"

    def test_the_end_of_the_script_is_an_error_that_counts(self) -> None:
        summarizer = ScriptedSummarizer(["only one"])
        summarizer("a")
        with pytest.raises(AssertionError, match="the script has 1 answers, and this is request 2"):
            summarizer("b")

    def test_threads_get_each_answer_once(self) -> None:
        summarizer = ScriptedSummarizer(str(number) for number in range(64))
        got: list[str] = []
        threads = [
            threading.Thread(target=lambda: got.extend(summarizer("x") for _ in range(8)), daemon=True)
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got, key=int) == [str(number) for number in range(64)]


class TestLimited:
    def test_it_answers_what_fits_with_words_of_the_prompt(self) -> None:
        prompt = "the deployment of module seven failed again " * 20
        summarizer = LimitedSummarizer(2_000)
        answer = summarizer(prompt)
        assert set(answer.split()) <= set(prompt.split())
        assert 0 < len(answer) < len(prompt)
        assert summarizer.accepted == [prompt]

    def test_it_rejects_what_does_not_fit_with_the_limit(self) -> None:
        summarizer = LimitedSummarizer(100)
        with pytest.raises(ContextOverflow) as caught:
            summarizer("word " * 1_000)
        assert caught.value.limit == 100
        assert caught.value.used is not None
        assert caught.value.used > 900
        assert (len(summarizer.rejected), summarizer.accepted) == (1, [])

    @pytest.mark.parametrize(
        ("style", "text", "code"),
        [
            ("openai", "maximum context length is 100 tokens", "context_length_exceeded"),
            ("anthropic", "prompt is too long: ", "invalid_request_error"),
        ],
    )
    def test_it_can_reject_as_providers_do(self, style: Any, text: str, code: str) -> None:
        with pytest.raises(ProviderError, match=text) as caught:
            LimitedSummarizer(100, error=style)("word " * 1_000)
        assert (caught.value.status_code, caught.value.code) == (400, code)
        assert caught.value.body["error"]["code"] == code

    def test_an_inner_summarizer_answers_what_fits(self) -> None:
        assert LimitedSummarizer(100, lambda prompt: "inner")("short") == "inner"

    def test_an_unknown_style_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(
            ValueError, match="error='gemini' is not known: use one of context_overflow, openai, anthropic"
        ):
            LimitedSummarizer(100, error="gemini")  # type: ignore[arg-type]


class TestFailing:
    def test_it_fails_with_the_given_error(self) -> None:
        with pytest.raises(PermissionError):
            FailingSummarizer(PermissionError("no key"))("a")

    def test_by_default_it_fails_like_a_provider_that_is_down(self) -> None:
        with pytest.raises(ProviderError) as caught:
            FailingSummarizer()("a")
        assert caught.value.status_code == 503

    def test_it_can_answer_some_requests_first(self) -> None:
        summarizer = FailingSummarizer(after=1)
        assert summarizer("some words here")
        with pytest.raises(ProviderError):
            summarizer("more words")
        assert summarizer.accepted == ["some words here"]


@quick
@given(st.text())
def test_an_extract_is_never_blank(text: str) -> None:
    assert extract(text).strip()


@pytest.mark.parametrize("format", FORMATS)
class TestHistories:
    @quick
    @given(data=st.data())
    def test_a_valid_history_is_accepted_by_its_provider(self, format: str, data: st.DataObject) -> None:
        """Apart from calls at its end that wait for their results."""
        entries = wire.read(format, data.draw(histories(format)))
        waiting = len(entries) and entries[-1].calls
        assert waiting or not wire.refusals(format, entries) or _is_partly_answered(entries)

    @quick
    @given(data=st.data())
    def test_a_broken_history_is_still_readable(self, format: str, data: st.DataObject) -> None:
        for entry in wire.read(format, data.draw(histories(format, broken=True))):
            assert entry.role in ("system", "developer", "user", "assistant", "tool")

    @quick
    @given(data=st.data())
    def test_texts_of_one_history_differ(self, format: str, data: st.DataObject) -> None:
        entries = wire.read(format, data.draw(histories(format, max_units=3, huge_units=5)))
        said = Counter(text for entry in entries for text in entry.texts if text)
        assert all(times == 1 for times in said.values())

    @quick
    @given(data=st.data())
    def test_the_beginning_of_a_plot_gives_the_beginning_of_its_history(self, format: str, data: st.DataObject) -> None:
        plot = data.draw(plots(format, max_turns=2, max_units=2, huge_units=2))
        whole, part = render(plot, format), render(plot[: len(plot) // 2], format)
        assert wire.as_json(whole[: len(part)]) == wire.as_json(part)

    def test_every_kind_of_event_can_be_rendered(self, format: str) -> None:
        messages = render(EVERYTHING, format)
        text = wire.as_json(messages)
        for number in range(1, len(EVERYTHING)):
            assert f"note-{number}" in text or f"-{number}" in text or f"{number}" in text
        assert len(wire.read(format, messages)) >= len(EVERYTHING) - 2


EVERYTHING = (
    Instruction(PlotWords("english", 1), "developer", blocks=True),
    ProviderCompaction(),
    UserSays(PlotWords("chinese", 2), name="ada", blocks=True, image=True, document=True),
    AssistantSays(
        PlotWords("japanese", 1),
        thinking=PlotWords("english", 2),
        calls=(
            PlotCall("c1", arguments=PlotWords("code", 3)),
            PlotCall("c2", "patch", PlotWords("log", 2), custom=True),
        ),
        blocks=True,
        refusal=True,
        server_tool=True,
        row="row_1",
    ),
    ToolsAnswer(
        (Result("c1", PlotWords("json", 3), "read_file", image=True), Result("c2", PlotWords("log", 1), custom=True))
    ),
    Blank("user"),
    Blank("assistant"),
    AssistantSays(PlotWords(), calls=(PlotCall("c3"),)),
    ToolsAnswer((Result("c3", is_error=True, blocks=True),)),
    UserSays(),
    AssistantSays(PlotWords("english", 1), blocks=True),
)


def _is_partly_answered(entries: list[wire.Entry]) -> bool:
    """The last turn called several tools, and only some have answered."""
    last = max(place for place, entry in enumerate(entries) if entry.role == "assistant")
    answered = {call_id for entry in entries[last:] for call_id in entry.result_ids}
    return 0 < len(answered) < len(entries[last].calls)


def test_json_outputs_are_json() -> None:
    assert len(json.loads(PlotWords("json", 4).spell(7))["rows"]) == 4


@pytest.mark.parametrize("script", [*UNITS, "json"])
def test_a_text_grows_with_its_units_and_differs_by_its_tag(script: Any) -> None:
    assert len(PlotWords(script, 3).spell(1)) < len(PlotWords(script, 9).spell(1))
    assert PlotWords(script, 0).spell(1) != PlotWords(script, 0).spell(2)


PARALLEL = (
    UserSays(),
    AssistantSays(calls=(PlotCall("a"), PlotCall("b"))),
    ToolsAnswer((Result("a"), Result("b"))),
    AssistantSays(PlotWords()),
)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_every_damage_changes_a_plot_with_parallel_calls_and_can_be_rendered(damage: Any, place: int) -> None:
    broken = damage(PARALLEL, place)
    assert broken != PARALLEL
    for format in FORMATS:
        assert wire.read(format, render(broken, format))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_no_damage_fails_where_there_is_nothing_to_break(damage: Any) -> None:
    assert isinstance(damage((), 3), tuple)
    assert isinstance(damage((ToolsAnswer((Result("a"),)),), 0), tuple)


def test_interleaved_rows_share_their_id_and_keep_every_result() -> None:
    broken = interleaved_rows(PARALLEL, 0)
    rows = [event for event in broken if isinstance(event, AssistantSays) and event.row]
    assert [row.calls[0].id for row in rows] == ["a", "b"]
    assert len({row.row for row in rows}) == 1
    half = interleaved_rows((PARALLEL[1], ToolsAnswer((Result("a"),))), 0)
    assert sum(isinstance(event, ToolsAnswer) for event in half) == 1


def test_duplicate_ids_stay_paired() -> None:
    twice = duplicate_ids(PARALLEL + PARALLEL, 0)
    assert {r.call_id for event in twice if isinstance(event, ToolsAnswer) for r in event.results} == {
        "call_0",
        "call_1",
    }


def test_an_interruption_stands_between_parallel_results() -> None:
    kinds = [type(event) for event in interrupted_results(PARALLEL, 0)]
    assert kinds[2:5] == [ToolsAnswer, UserSays, ToolsAnswer]


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="format='xml' is not known: use one of openai-chat"):
        histories("xml")


def test_without_hypothesis_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.split(".")[0] == "hypothesis":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"contextfold\[test\]"):
        histories()


def test_importing_the_fakes_does_not_import_hypothesis() -> None:
    import subprocess

    code = "import sys, contextfold.testing; sys.exit('hypothesis' in sys.modules or 'langchain_core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
