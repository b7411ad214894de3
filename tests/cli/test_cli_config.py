"""The YAML file of --config: what it may hold, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextfold.cli.config import read_config, read_policy
from contextfold.errors import InputError, PolicyError
from contextfold.policy import Policy


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "settings.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_mapping_of_policy_fields_makes_a_policy(tmp_path: Path) -> None:
    text = "trigger: fraction:0.7\ntool_outputs:\n  limit: 300\npins:\n  tools: [remember]\n"
    policy = Policy(**read_config(written(tmp_path, text)))
    assert str(policy.trigger[0]) == "fraction:0.7"
    assert policy.tool_outputs.limit == 300
    assert policy.pins.tools == {"remember"}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str) -> None:
    assert read_config(written(tmp_path, text)) == {}


def test_an_unknown_setting_is_named_with_its_line_and_the_closest_name(tmp_path: Path) -> None:
    file = written(tmp_path, "trigger: fraction:0.7\n\ntriger: fraction:0.6\n")
    with pytest.raises(
        PolicyError, match=r"settings\.yaml, line 3: there is no setting 'triger'; did you mean 'trigger'"
    ):
        read_config(file)


def test_an_unknown_setting_inside_a_section_is_named_with_its_path(tmp_path: Path) -> None:
    file = written(tmp_path, "tool_outputs:\n  limit: 300\n  zzz: 1\n")
    with pytest.raises(
        PolicyError, match=r"line 3: there is no setting 'tool_outputs\.zzz'; there are: enabled, limit"
    ):
        read_config(file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b\n", "must be a mapping such as 'trigger: fraction:0.8', not a list"),
        ("hello\n", "not a text"),
        ("12\n", "not the value 12"),
        ("a: [1\n", r"is not YAML: line 2, column 1"),
        (b"\xff\xfe\xfa", r"is not UTF-8 text: byte 0"),
        ("a: \x07", r"is not YAML"),
    ],
)
def test_what_is_no_mapping_is_refused_in_one_sentence(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_config(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--config .*none\.yaml cannot be read: no such file"):
        read_config(str(tmp_path / "none.yaml"))


def test_options_go_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, "trigger: fraction:0.7\ntarget: fraction:0.4\n")
    policy = read_policy(file, {"target": "fraction:0.3"})
    assert (str(policy.trigger[0]), str(policy.target)) == ("fraction:0.7", "fraction:0.3")
    assert read_policy(None, {}) == Policy()


@pytest.mark.parametrize("text", ["trigger: 7\n", "tool_outputs: 3\n", "tool_outputs: {limit: -1}\n"])
def test_a_value_that_is_not_allowed_is_named_with_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(PolicyError, match=rf"with --config .*settings\.yaml: {text.partition(':')[0]}"):
        read_policy(written(tmp_path, text), {})
