"""The section ``summarization`` of a DeerFlow ``config.yaml``."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from contextfold import count_tokens
from contextfold.errors import PolicyError
from contextfold.settings import Settings, load

OTHER_SECTIONS = "models:\n  - name: main\n    use: langchain_openai:ChatOpenAI\ntitle:\n  enabled: true\n"


def section(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    """The settings of a ``config.yaml`` whose lines 6 and on are the section."""
    path = folder / "config.yaml"
    path.write_text(OTHER_SECTIONS + "summarization:\n" + indent(dedent(text).strip("\n"), "  "), "utf-8")
    return load(path, environ=environ or {})


def triggers(settings: Settings) -> list[str]:
    return [str(clause) for clause in settings.policy.trigger]


MINIMAL = """
    enabled: true
    trigger:
      type: tokens
      value: 4000
    keep:
      type: messages
      value: 20
"""
PRODUCTION = """
    enabled: true
    model_name: gpt-4o-mini
    trigger:
      - type: tokens
        value: 6000
      - type: messages
        value: 75
    keep:
      type: messages
      value: 25
    trim_tokens_to_summarize: 5000
"""
SEVERAL_MODELS = """
    enabled: true
    model_name: gpt-4o-mini
    trigger:
      type: fraction
      value: 0.7
    keep:
      type: fraction
      value: 0.3
    trim_tokens_to_summarize: 4000
"""
CAREFUL = """
    enabled: true
    model_name: gpt-4
    trigger:
      type: tokens
      value: 8000
    keep:
      type: messages
      value: 40
    trim_tokens_to_summarize: null
"""


class TestTheFourConfigurations:
    """The minimal, the production, the several-models and the careful one."""

    def test_minimal(self, tmp_path: Path) -> None:
        settings = section(tmp_path, MINIMAL)
        assert settings.enabled
        assert settings.model is None
        assert triggers(settings) == ["tokens:4000"]
        assert str(settings.policy.keep) == "messages:20"
        assert settings.policy.summary.input_tokens == 4000
        assert settings.policy.summary.prompt is None

    def test_production(self, tmp_path: Path) -> None:
        settings = section(tmp_path, PRODUCTION)
        assert settings.model == "gpt-4o-mini"
        assert triggers(settings) == ["tokens:6000", "messages:75"]
        assert str(settings.policy.keep) == "messages:25"
        assert settings.policy.summary.input_tokens == 5000

    def test_several_models(self, tmp_path: Path) -> None:
        settings = section(tmp_path, SEVERAL_MODELS)
        assert triggers(settings) == ["fraction:0.7"]
        assert str(settings.policy.keep) == "fraction:0.3"
        limits = settings.compactor(window=100_000, summarizer=None).limits
        assert limits.trigger == 70_000

    def test_careful(self, tmp_path: Path) -> None:
        settings = section(tmp_path, CAREFUL)
        assert settings.model == "gpt-4"
        assert str(settings.policy.keep) == "messages:40"
        assert settings.policy.summary.input_tokens is None

    @pytest.mark.parametrize("text", [MINIMAL, PRODUCTION, SEVERAL_MODELS, CAREFUL])
    def test_each_keeps_a_long_conversation_going(self, tmp_path: Path, text: str) -> None:
        compactor = section(tmp_path, text).compactor(window=16_000, summarizer=None)
        roles = ("user", "assistant")
        history = [{"role": roles[n % 2], "content": f"turn {n}: " + "word " * 120} for n in range(201)]
        out = compactor.compact(history)
        assert out.changed
        assert out.messages[-1] is history[-1]
        assert out.ledger.counts()["summarized"] > 50


class TestMeanings:
    def test_it_is_off_unless_enabled(self, tmp_path: Path) -> None:
        for text in ("\n    keep:\n      type: messages\n      value: 5\n", MINIMAL.replace("true", "false")):
            settings = section(tmp_path, text)
            assert not settings.enabled
            assert settings.policy.trigger == ()

    def test_an_empty_section_is_off(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text("summarization:\n")
        assert not load(tmp_path / "config.yaml", environ={}).enabled

    def test_null_means_the_default(self, tmp_path: Path) -> None:
        text = MINIMAL + "    model_name: null\n    summary_prompt: null\n"
        assert section(tmp_path, text).policy == section(tmp_path, MINIMAL).policy
        no_keep = "\n    enabled: true\n    trigger: {type: tokens, value: 4000}\n    keep: null\n"
        assert str(section(tmp_path, no_keep).policy.keep) == "messages:20"

    def test_a_prompt_reaches_the_summary_call(self, tmp_path: Path) -> None:
        settings = section(tmp_path, MINIMAL + "    summary_prompt: 'Sum up: {messages}'\n")
        asked: list[str] = []

        def summarizer(prompt: str) -> str:
            asked.append(prompt)
            return "They counted words."

        history = [{"role": "user", "content": f"turn {n}: " + "word " * 300} for n in range(60)]
        settings.compactor(window=16_000, summarizer=summarizer).compact(history)
        assert asked
        assert all(prompt.startswith("Sum up: ") for prompt in asked)

    def test_the_trim_is_the_size_of_a_request_and_discards_nothing(self, tmp_path: Path) -> None:
        settings = section(tmp_path, MINIMAL.rstrip(" ") + "    trim_tokens_to_summarize: 2000\n")
        asked: list[str] = []

        def summarizer(prompt: str) -> str:
            asked.append(prompt)
            return "They counted."

        history = [{"role": "user", "content": f"turn number{n} " + "word " * 300} for n in range(60)]
        compactor = settings.compactor(window=16_000, summarizer=summarizer)
        out = compactor.compact(history)
        gone = [entry.index for entry in out.ledger if entry.fate == "summarized"]
        assert len(gone) > 30
        assert all(any(f"number{n} " in prompt for prompt in asked) for n in gone)

    def test_the_environment_goes_before_the_file(self, tmp_path: Path) -> None:
        off = section(tmp_path, PRODUCTION, {"DYNAMIC_SUMMARY_ENABLED": "false"})
        assert not off.enabled
        assert off.policy.trigger == ()
        limited = section(tmp_path, PRODUCTION, {"SUMMARY_MESSAGE_LIMIT": "30"})
        assert triggers(limited) == ["messages:30"]
        assert limited.sources["trigger"] == "SUMMARY_MESSAGE_LIMIT"
        assert limited.sources["keep"].endswith("config.yaml, line 14")
        on = section(tmp_path, MINIMAL.replace("true", "false"), {"DYNAMIC_SUMMARY_ENABLED": "yes"})
        assert triggers(on) == ["tokens:4000"]


class TestMiddleware:
    """The same settings as a ready middleware."""

    def test_the_drop_in_has_what_the_file_says(self, tmp_path: Path) -> None:
        model = GenericFakeChatModel(messages=iter(()))
        middleware = section(tmp_path, CAREFUL.replace("gpt-4", "null")).summarization_middleware(model)
        assert middleware is not None
        assert middleware.model is model
        assert middleware.keep == ("messages", 40)
        assert middleware.trim_tokens_to_summarize is None
        assert "8000" in str(middleware.trigger)

    def test_the_drop_in_has_the_switches_of_the_environment(self, tmp_path: Path) -> None:
        """How long a summary may be, and whether a request that overflows is halved."""
        history = [HumanMessage(f"question {n}: " + "word " * 60, id=f"m{n}") for n in range(90)]
        environ = {"SUMMARY_BISECT_MAX_DEPTH": "0", "SUMMARY_TARGET_TOKENS": "80"}
        settings = section(tmp_path, PRODUCTION.replace("gpt-4o-mini", "null"), environ)
        model = GenericFakeChatModel(
            messages=iter([AIMessage(" ".join(f"Question {n} is about word {n}." for n in range(30)))] * 50)
        )
        middleware = settings.summarization_middleware(model, evidence=False)
        assert middleware is not None
        assert middleware.summary.max_depth == 0
        update = middleware.before_model({"messages": history}, None)  # type: ignore[arg-type]
        assert update is not None
        assert count_tokens([update["messages"][1]]) < 120

    def test_our_own_has_the_policy(self, tmp_path: Path) -> None:
        settings = section(tmp_path, MINIMAL)
        middleware = settings.compaction_middleware(window=16_000)
        assert middleware is not None
        assert middleware.policy == settings.policy
        assert middleware.summarizer is None

    def test_switched_off_there_is_none(self, tmp_path: Path) -> None:
        settings = section(tmp_path, MINIMAL.replace("true", "false"))
        assert settings.summarization_middleware() is None
        assert settings.compaction_middleware() is None

    def test_the_drop_in_needs_a_model(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match="no summary model: set model_name"):
            section(tmp_path, MINIMAL).summarization_middleware()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n    enabled: maybe\n", r"config\.yaml, line 7: summarization\.enabled: must be true or false, not 'maybe'"),
        ("\n    enable: true\n", r"line 7: there is no setting 'summarization\.enable'; did you mean 'enabled'"),
        ("\n    enabled: true\n", r"line 6: summarization: summarization is enabled and has no trigger"),
        ("\n    enabled: true\n    trigger: []\n", r"line 8: summarization\.trigger: .*has no trigger"),
        ("\n    enabled: true\n    trigger: null\n", r"line 8: summarization\.trigger: .*has no trigger"),
        ("\n    trigger: 4000\n", r"line 7: summarization\.trigger: must be a mapping such as"),
        ("\n    trigger:\n      type: tokens\n", r"line 7: summarization\.trigger: has no value"),
        ("\n    trigger:\n      kind: tokens\n", r"line 8: there is no setting 'summarization\.trigger\.kind'"),
        (
            "\n    trigger:\n      type: token\n      value: 3\n",
            r"line 8: summarization\.trigger\.type: must be one of tok",
        ),
        (
            "\n    trigger:\n      - type: fraction\n        value: 1.5\n",
            r"line 9: summarization\.trigger\.0\.value: a frac",
        ),
        (
            "\n    keep:\n      type: messages\n      value: 2.5\n",
            r"line 9: summarization\.keep\.value: a size in messages",
        ),
        ("\n    trim_tokens_to_summarize: 0\n", r"line 7: summarization\.trim_tokens_to_summarize: .* at least 1, or"),
        ("\n    trim_tokens_to_summarize: .inf\n", r"line 7: summarization\.trim_tokens_to_summarize: "),
        ("\n    trim_tokens_to_summarize: true\n", r"line 7: summarization\.trim_tokens_to_summarize: "),
        ("\n    summary_prompt: ''\n", r"line 7: summarization\.summary_prompt: must be a text with words in it"),
        ("\n    model_name: 4\n", r"line 7: summarization\.model_name: "),
        (f"\n    trigger: {{type: tokens, value: '{'9' * 4000}'}}\n", r"line 7: summarization\.trigger\.value: "),
        (f"\n    trim_tokens_to_summarize: -{'9' * 4000}\n", r"not -9{190,198}…$"),
        (f"\n    enabled: {'x' * 4000}\n", r"not 'x{190,198}…$"),
        (
            "\n    enabled: true\n    trigger: {type: messages, value: 10}\n",
            r"config\.yaml, line 8: keep messages:20 is not below the trigger messages:10",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key_and_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        section(tmp_path, text)


def test_of_a_setting_of_our_own_beside_the_section_is_told_that_it_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was passed over in silence. Another program may have a section of that name, so it is no mistake."""
    (tmp_path / "config.yaml").write_text(
        "title: {}\nkeep: messages:3\nsummarization:\n  enabled: true\n  trigger: {type: messages, value: 50}\n"
    )
    with caplog.at_level("WARNING"):
        found = load(tmp_path / "config.yaml", environ={})
    assert str(found.policy.keep) == "messages:20"
    assert "line 2: keep is not used: a file with a section summarization sets only enabled, " in caplog.text


def test_a_section_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("summarization: [enabled]\n")
    with pytest.raises(PolicyError, match=r"line 1: summarization: must be a mapping of enabled, model_name"):
        load(tmp_path / "config.yaml", environ={})


SETTING = """\
# DeerFlow, with sections of its own   摘要
models:
  - {name: gpt-4o, use: "langchain_openai:ChatOpenAI", api_key: $OPENAI_API_KEY}
sizes:
  - &small {type: messages, value: 12}
summarization: &folding
  enabled: true
  trigger:
    - {type: messages, value: 50}
    - {type: fraction, value: 0.8}
  keep: *small
  preserve_recent_skill_count: 5
  preserve_recent_skill_tokens: 25000
  preserve_recent_skill_tokens_per_skill: 5000
  skill_file_read_tool_names: [read_file]
memory: {enabled: true}
"""


@pytest.mark.parametrize(
    "written",
    [
        SETTING.encode(),
        b"\xef\xbb\xbf" + SETTING.encode(),
        SETTING.replace("\n", "\r\n").encode(),
        b"---\n" + SETTING.encode(),
    ],
    ids=["plain", "bom", "crlf", "document"],
)
def test_a_whole_file_of_deerflow_is_read_however_it_was_saved(tmp_path: Path, written: bytes) -> None:
    """Other sections, anchors, names of later releases: none of them is a mistake."""
    (tmp_path / "config.yaml").write_bytes(written)
    settings = load(tmp_path / "config.yaml", environ={})
    assert [str(clause) for clause in settings.policy.trigger] == ["messages:50", "fraction:0.8"]
    assert str(settings.policy.keep) == "messages:12"


def test_a_trigger_may_come_from_elsewhere(tmp_path: Path) -> None:
    """The section is switched on without one: the environment or the caller has it, or it is missed."""
    (tmp_path / "config.yaml").write_text("summarization:\n  enabled: false\n")
    file = tmp_path / "config.yaml"
    on = {"DYNAMIC_SUMMARY_ENABLED": "true"}
    with pytest.raises(PolicyError, match=r"config\.yaml, line 1: summarization: .*has no trigger"):
        load(file, environ=on)
    assert str(load(file, environ={**on, "SUMMARY_MESSAGE_LIMIT": "50"}).policy.trigger[0]) == "messages:50"
    assert str(load(file, environ=on, trigger="tokens:9000").policy.trigger[0]) == "tokens:9000"
    assert load(file, environ=on, trigger=None).policy.trigger == ()
    assert load(file, environ={"SUMMARY_MESSAGE_LIMIT": "50"}).policy.trigger == ()


def test_a_model_whose_key_is_missing_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's client was asked first, and its error named neither the file nor the setting."""
    pytest.importorskip("langchain_openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = tmp_path / "config.yaml"
    file.write_text(
        "summarization:\n  enabled: true\n  model_name: gpt-4o-mini\n  trigger: {type: tokens, value: 6000}\n"
    )
    for wanted in (Settings.summarization_middleware, Settings.compaction_middleware):
        with pytest.raises(PolicyError, match=r"config\.yaml, line 3: model_name 'gpt-4o-mini': .*OPENAI_API_KEY"):
            wanted(load(file, environ={}))
