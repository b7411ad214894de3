"""Settings times outputs: each setting is honored by each output, or refused with its place.

Outputs are the compactor (with ``compact``, ``call`` and sessions), both middlewares for LangChain, and the command.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from typer.testing import CliRunner

from contextfold import Compactor, Policy, PolicyError, SummaryFailed
from contextfold.cli.app import app
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.settings import Settings, load
from contextfold.settings.outputs import DECIDES
from contextfold.settings.summarization import from_format, to_format
from contextfold.testing import ProviderError
from contextfold.testing.dict_store import DictStore


def settings(folder: Path, text: str = "", /, **environ: str) -> Settings:
    if not text:
        return load(environ=environ)
    (folder / "config.yaml").write_text(text, "utf-8")
    return load(folder / "config.yaml", environ=environ)


def model(answer: str = "They counted words, and the ticket is BILL-1.") -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(answer)] * 50), profile={"max_input_tokens": 64_000})


ASKED: list[str] = []


class Noting(GenericFakeChatModel):
    """A chat model that notes what it is asked."""

    def _generate(self, messages: list[Any], *arguments: Any, **named: Any) -> Any:
        ASKED.append(str(messages[0].content))
        return super()._generate(messages, *arguments, **named)


def words(count: int, tokens: int = 1_000) -> list[dict[str, str]]:
    """Messages of about so many tokens."""
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "word " * tokens} for n in range(count)
    ]


def refuse(view: list[Any]) -> str:
    raise ProviderError(
        "This model's maximum context length is 8000 tokens. However, your messages resulted in 90000 tokens.",
        status_code=400,
        code="context_length_exceeded",
    )


SECTION = "summarization:\n  enabled: true\n  trigger: {type: tokens, value: 4000}\n"
OFF: dict[str, Callable[[Path], Settings]] = {
    "the environment": lambda folder: settings(folder, DYNAMIC_SUMMARY_ENABLED="false"),
    "the environment over a file": lambda folder: settings(folder, SECTION, DYNAMIC_SUMMARY_ENABLED="false"),
    "DeerFlow": lambda folder: settings(folder, SECTION.replace("true", "false")),
    "DeerFlow, as text": lambda folder: settings(folder, SECTION.replace("true", "'no'")),
    "DeerFlow without the section": lambda folder: settings(folder, "models: []\ntitle: {enabled: true}\n"),
    "DeerFlow with a model without key": lambda folder: settings(folder, "summarization: {model_name: gpt-4o-mini}\n"),
    "a file of ours": lambda folder: settings(folder, "enabled: false\ntrigger: tokens:4000\n"),
    "the caller": lambda folder: load(environ={}, enabled=False),
}


@pytest.mark.parametrize("off", OFF)
class TestOffMeansOff:
    def test_in_compact_and_call(self, tmp_path: Path, off: str) -> None:
        compactor = OFF[off](tmp_path).compactor(window=16_000)
        assert not compactor.compact(words(60)).changed
        sent: list[int] = []
        with pytest.raises(ProviderError):
            compactor.call(lambda view: (sent.append(len(view)), refuse(view)), words(60))
        assert sent == [60]

    def test_in_sessions_whatever_their_thresholds_are(self, tmp_path: Path, off: str) -> None:
        compactor = OFF[off](tmp_path).compactor(window=16_000)
        for options in ({}, {"upper_threshold": 2_000, "lower_threshold": 1_000, "background": True}):
            session = compactor.session("thread", DictStore(), options=options)
            session.append(words(70))
            assert len(session.view()) == 70
            session.join()
            assert session.summaries() == []
            assert session.compact().changed  # asked for by name

    def test_in_middlewares(self, tmp_path: Path, off: str) -> None:
        assert OFF[off](tmp_path).summarization_middleware(model()) is None
        assert OFF[off](tmp_path).compaction_middleware(model()) is None


def test_the_environment_goes_before_the_switch_of_a_file(tmp_path: Path) -> None:
    found = settings(tmp_path, "enabled: false\ntrigger: tokens:4000\n", DYNAMIC_SUMMARY_ENABLED="true")
    assert found.enabled
    assert found.compactor(window=16_000).compact(words(20)).changed


def test_what_is_switched_off_is_switched_off_as_a_whole() -> None:
    policy = Policy(enabled=False, trigger="tokens:10", resend_after_overflow=True)
    assert (policy.trigger, policy.resend_after_overflow) == ((), False)


class TestANumberMeansThatNumber:
    @pytest.mark.parametrize("source", ["environment", "file", "deerflow", "code"])
    def test_a_trigger_that_is_given_is_not_beaten_by_the_thresholds_of_sessions(
        self, tmp_path: Path, source: str
    ) -> None:
        compactor = {
            "environment": lambda: settings(tmp_path, SUMMARY_MAX_CONTEXT_TOKENS="100000").compactor(window=200_000),
            "file": lambda: settings(tmp_path, "trigger: tokens:100000\n").compactor(window=200_000),
            "deerflow": lambda: settings(tmp_path, SECTION.replace("4000", "100000")).compactor(window=200_000),
            "code": lambda: Compactor(window=200_000, trigger=("fraction", 0.5)),
        }[source]()
        session = compactor.session("thread", DictStore())
        session.append(words(90))
        assert len(session.view()) == 90
        session.append(words(20))
        assert len(session.view()) < 110
        (summary,) = session.summaries()
        assert summary.reason in ("tokens:100000", "fraction:0.5")

    def test_thresholds_that_are_given_hold_beside_a_trigger(self) -> None:
        compactor = Compactor(window=200_000, trigger=("tokens", 100_000))
        session = compactor.session("thread", DictStore(), options={"upper_threshold": 50_000})
        session.append(words(60))
        session.view()
        assert [summary.reason for summary in session.summaries()] == ["tokens:50000"]

    def test_a_target_that_is_given_is_not_lowered_by_the_threshold_of_sessions(self) -> None:
        compactor = Compactor(window=200_000, target=("tokens", 45_000))
        session = compactor.session("thread", DictStore())
        session.append(words(60))
        assert session.compact().target == 45_000

    def test_whole_numbers_are_whole_however_they_are_written(self, tmp_path: Path) -> None:
        """``tokens:4000``, ``4000.0`` and ``'4000'`` reach both middlewares."""
        for text in (
            "trigger: tokens:4000\nkeep: messages:5\n",
            SECTION.replace("4000", "4000.0") + "  keep: {type: messages, value: 5.0}\n",
            SECTION.replace("4000", "'4000'") + "  keep: {type: messages, value: '5'}\n",
        ):
            found = settings(tmp_path, text)
            drop_in = found.summarization_middleware(model())
            ours = found.compaction_middleware(model(), window=64_000)
            assert drop_in is not None
            assert ours is not None
            assert drop_in.keep == ("messages", 5)
            assert repr(drop_in.keep[1]) == "5"
            assert str(ours.policy.trigger[0]) == "tokens:4000"
            assert repr(ours.policy.trigger[0].sizes[0].value) == "4000"

    @pytest.mark.parametrize("trim", ["12", "'12'", "511"])
    def test_a_trim_that_is_too_small_for_a_request_is_raised_and_said(
        self, tmp_path: Path, trim: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        found = settings(tmp_path, SECTION + f"  trim_tokens_to_summarize: {trim}\n")
        assert found.policy.summary.input_tokens == 512
        assert "config.yaml, line 4: trim_tokens_to_summarize is" in caplog.text
        assert found.summarization_middleware(model()) is not None

    def test_without_bisection_a_request_that_overflows_is_a_failed_summary(self, tmp_path: Path) -> None:
        """And with it the pieces are as many as are needed, not fewer than without."""
        asked: dict[str, int] = {}
        for switch in ("false", "true"):
            calls: list[int] = []

            def summarizer(prompt: str, calls: list[int] = calls) -> str:
                calls.append(len(prompt))
                if len(prompt) > 20_000:
                    raise ProviderError("prompt is too long", code="context_length_exceeded")
                return "They counted words."

            compactor = settings(tmp_path, SUMMARY_BISECT_ENABLED=switch).compactor(
                window=64_000, summarizer=summarizer
            )
            out = compactor.compact(words(50), force=True)
            asked[switch] = len(calls)
            assert out.changed == (switch == "true")
            if switch == "false":
                assert [event.name for event in out.events].count("summary_failed") == 1
        assert asked["false"] == 1
        assert asked["true"] > 2


class TestModels:
    @pytest.fixture
    def named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Settings]:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key-of-anyone")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key-of-anyone")
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        return lambda name: settings(tmp_path, SECTION + f"  model_name: {name}\n")

    @pytest.mark.parametrize(
        ("name", "full"),
        [
            ("gpt-4o-mini", "openai:gpt-4o-mini"),
            ("gpt-4", "openai:gpt-4"),
            ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
            ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ],
    )
    def test_a_name_without_provider_is_asked_everywhere(
        self, named: Callable[[str], Settings], name: str, full: str
    ) -> None:
        found = named(name)
        assert found.compactor(window=64_000).summarizer.name == full  # type: ignore[union-attr]
        drop_in, ours = found.summarization_middleware(), found.compaction_middleware(window=64_000)
        assert drop_in is not None
        assert ours is not None
        for middleware_model in (drop_in.model, ours.summarizer):
            said = getattr(middleware_model, "model_name", None) or getattr(middleware_model, "model", None)
            assert said == full.partition(":")[2]

    @pytest.mark.parametrize("output", ["compactor", "compaction_middleware", "summarization_middleware"])
    @pytest.mark.parametrize("name", ["house-model", "nobody:house-model"])
    def test_a_name_that_no_one_knows_is_refused_with_its_place(
        self, named: Callable[[str], Settings], name: str, output: str
    ) -> None:
        with pytest.raises(PolicyError, match=r"config\.yaml, line 4: model_name '(nobody:)?house-model': "):
            getattr(named(name), output)()

    def test_the_command_asks_the_model_of_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        (tmp_path / "config.yaml").write_text(SECTION + "  model_name: gpt-4o-mini\n")
        (tmp_path / "talk.json").write_text(json.dumps(words(60)))
        command = [
            "compact",
            str(tmp_path / "talk.json"),
            "--window",
            "16000",
            "--config",
            str(tmp_path / "config.yaml"),
        ]
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert "config.yaml, line 4: model_name: openai:gpt-4o-mini needs a key" in refused.output
        own = CliRunner().invoke(app, [*command, "--summarizer", "extractive"])
        assert own.exit_code == 0, own.output


class TestPrompts:
    PROMPT = 'Sum up as {{"facts": []}}: {messages}'

    def test_doubled_braces_are_single_ones_in_each_output(self, tmp_path: Path) -> None:
        found = settings(
            tmp_path, SECTION + f"  keep: {{type: messages, value: 4}}\n  summary_prompt: '{self.PROMPT}'\n"
        )
        history = words(30, 300)
        noting = Noting(messages=iter([AIMessage("They counted words.")] * 50))
        ASKED.clear()
        found.compactor(window=16_000, summarizer=noting).compact(history)
        by_compactor = len(ASKED)
        drop_in = found.summarization_middleware(noting)
        assert drop_in is not None
        kinds = (HumanMessage, AIMessage)
        messages = [kinds[n % 2](one["content"], id=f"m{n}") for n, one in enumerate(history)]
        drop_in.before_model({"messages": messages}, None)  # type: ignore[arg-type]
        assert 0 < by_compactor < len(ASKED)
        for prompt in ASKED:
            assert prompt.startswith('Sum up as {"facts": []}: ')

    @pytest.mark.parametrize(
        "prompt",
        ["{messages}", "a {b} {{c}} {messages} {", "}}{{ {instructions} {language} {max_tokens} {previous}", ""],
    )
    def test_a_prompt_of_ours_stays_itself_on_its_way_through_a_format_string(self, prompt: str) -> None:
        assert from_format(to_format(prompt)) == prompt


def differing(name: str) -> str:
    """A line of a settings file that gives this field another value than its default."""
    default = Policy.model_fields[name].get_default()
    if isinstance(default, bool) and name != "enabled":
        return f"{name}: {str(not default).lower()}"
    return {
        "enabled": "enabled: true",
        "trigger": "trigger: tokens:9000",
        "target": "target: tokens:3000",
        "keep": "keep: messages:6",
        "answer_reserve": "answer_reserve: 500",
        "recall": "recall: true",
        "budgets": "budgets: {usage: 0.6, summary: 0.26, recent: 0.65}",
        "first_user": "first_user: false",
        "recent_users": "recent_users: 0.1",
        "pins": "pins: {tools: [remember]}",
        "tool_arguments": "tool_arguments: {limit: 99}",
        "tool_outputs": "tool_outputs: {limit: 99}",
        "media": "media: {enabled: false}",
        "reasoning": "reasoning: {enabled: false}",
        "oversized": "oversized: {enabled: false}",
        "minimum_gain": "minimum_gain: 0.2",
        "evidence": "evidence: false",
        "summary": "summary: {max_tokens: 400}",
        "summary_role": "summary_role: assistant",
        "summary_place": "summary_place: after_system",
        "on_failure": "on_failure: raise",
        "fallback": "fallback: null",
        "resend_after_overflow": "resend_after_overflow: false",
        "on_overflow": "on_overflow: drop_oldest",
        "alternate": "alternate: true",
    }[name]


HONORED = {*DECIDES, *inspect.signature(SummarizationMiddleware).parameters}
"""Fields of a policy that the drop-in for LangChain's class can have."""


@pytest.mark.parametrize("name", sorted(Policy.model_fields))
def test_every_setting_reaches_every_output_or_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    found = settings(tmp_path, f"# a comment\n{differing(name)}\n")
    value = getattr(found.policy, name)
    assert getattr(found.compactor(window=64_000).policy, name) == value
    ours = found.compaction_middleware(model(), window=64_000)
    assert isinstance(ours, CompactionMiddleware)
    assert getattr(ours.policy, name) == value
    if name not in HONORED:
        with pytest.raises(PolicyError, match=rf"config\.yaml, line 2: {name}: .*use compaction_middleware\(\)"):
            found.summarization_middleware(model())
        return
    drop_in = found.summarization_middleware(model())
    assert isinstance(drop_in, SummarizationMiddleware)
    reached = {
        "enabled": True,
        "trigger": "9000" in str(drop_in.trigger),
        "keep": drop_in.keep == ("messages", 6),
        "evidence": drop_in.evidence is False,
        "summary": drop_in.summary == found.policy.summary,
    }
    assert reached.get(name, getattr(drop_in, name, None) == value), f"{name} is dropped without a word"


def test_a_failed_summary_is_an_error_where_that_is_asked_for(tmp_path: Path) -> None:
    def summarizer(prompt: str) -> str:
        raise ProviderError("prompt is too long", code="context_length_exceeded")

    found = settings(tmp_path, "on_failure: raise\n", SUMMARY_BISECT_ENABLED="false")
    with pytest.raises(SummaryFailed, match="with bisection off it is not cut"):
        found.compactor(window=64_000, summarizer=summarizer).compact(words(50), force=True)
