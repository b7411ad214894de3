"""Our own settings file: a mapping of policy fields, and how mistakes in it are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextfold.errors import InputError, PolicyError
from contextfold.policy import Policy
from contextfold.settings import load


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "settings.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_mapping_of_policy_fields_makes_a_policy(tmp_path: Path) -> None:
    text = "trigger: fraction:0.7\ntool_outputs:\n  limit: 300\npins:\n  tools: [remember]\n"
    settings = load(written(tmp_path, text), environ={})
    assert str(settings.policy.trigger[0]) == "fraction:0.7"
    assert settings.policy.tool_outputs.limit == 300
    assert settings.policy.pins.tools == {"remember"}
    assert settings.enabled
    assert settings.model is None
    assert settings.sources["tool_outputs"].endswith("settings.yaml, line 2")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str) -> None:
    assert load(written(tmp_path, text), environ={}).policy == Policy()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("trigger: fraction:0.7\n\ntriger: 1\n", r"yaml, line 3: there is no setting 'triger'; did you mean 'trigger'"),
        (
            "tool_outputs:\n  limit: 300\n  zzz: 1\n",
            r"line 3: there is no setting 'tool_outputs\.zzz'; there are: enab",
        ),
        ("1: 2\n", "line 1: there is no setting '1'"),
        ("first_user: true\ntrigger: 7\n", r"settings\.yaml, line 2: trigger: 7 is not a size"),
        ("tool_outputs: 3\n", r"settings\.yaml, line 1: tool_outputs: "),
        ("tool_outputs:\n  limit: -1\n", r"settings\.yaml, line 2: tool_outputs\.limit: .* \(got -1\)"),
        (
            "trigger: tokens:100\ntarget: tokens:100\n",
            r"line 2 and \S+yaml, line 1: target tokens:100 is not",
        ),
        ("summary:\n  max_depth: 2\n  prompt: ''\n", r"settings\.yaml, line 3: summary\.prompt: "),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_remedy(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        load(written(tmp_path, text), environ={})


def test_a_mistake_of_the_caller_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "trigger: fraction:0.7\n")
    for arguments in ((file,), ()):
        with pytest.raises(PolicyError, match=r"^the argument keep: 'many' is not a size"):
            load(*arguments, environ={}, keep="many")
    with pytest.raises(PolicyError, match=r"^the argument keeep: there is no such setting"):
        load(file, environ={}, keeep="messages:3")


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "summary: &s\n  prompt: *s\n", "x: &x {y: {z: *x}}\n"])
def test_a_file_that_contains_itself_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"settings\.yaml: '.*' contains itself, by an alias"):
        load(written(tmp_path, text), environ={})


def test_another_programs_file_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"line 1: there is no setting 'zzz'; there are: summarization, enabled"):
        load(written(tmp_path, "zzz: []\ntools: []\n"), environ={})
    with pytest.raises(PolicyError, match="did you mean 'summarization'"):
        load(written(tmp_path, "summarisation: {enabled: true}\n"), environ={})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b\n", "must be a mapping such as 'trigger: fraction:0.8', not a list"),
        ("hello\n", "not a text"),
        ("12\n", "not the value 12"),
        ("a: [1\n", r"is not YAML: line 2, column 1"),
        (b"\xff\xfe\xfa", r"is not UTF-8 text: byte 0 cannot be decoded; save it as UTF-8"),
        ("a:\n\tb: 1\n", r"line 2, column 1: found character '\\t' .*; indent with spaces"),
        ("a: \x07", r"is not YAML"),
        ("a: 2026-02-30\n", r"holds a value that cannot be read: day"),
        ("keep: messages:3\ntrigger: null\nkeep: messages:4\n", r"yaml, line 3: 'keep' is set twice, first in line 1"),
    ],
)
def test_what_is_no_mapping_is_refused_in_one_sentence(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load(written(tmp_path, text), environ={})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml cannot be read: no such file"):
        load(tmp_path / "none.yaml", environ={})


def test_arguments_win_over_the_environment_that_over_the_file_and_that_over_the_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, "trigger: fraction:0.7\nkeep: messages:9\nsummary: {max_depth: 3, min_messages: 2}\n")
    environ = {"SUMMARY_KEEP_LAST_N": "7", "SUMMARY_BISECT_MAX_DEPTH": "5"}
    policy = load(file, environ=environ, target="fraction:0.3").policy
    assert (str(policy.trigger[0]), str(policy.keep), str(policy.target)) == (
        "fraction:0.7",
        "messages:7",
        "fraction:0.3",
    )
    assert (policy.summary.max_depth, policy.summary.min_messages) == (5, 2)
    assert str(load(file, environ=environ, keep="messages:5").policy.keep) == "messages:5"
    assert load(environ={}).policy == Policy()


def test_the_settings_give_a_compactor(tmp_path: Path) -> None:
    compactor = load(written(tmp_path, "trigger: fraction:0.7\n"), environ={}).compactor(window=16_000)
    assert compactor.limits.trigger == 11_200
    assert compactor.summarizer is None
