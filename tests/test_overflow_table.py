"""The classifier on texts of many providers: the table of ``benchmarks/overflow_table.py``, held."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from contextfold.overflow import VERDICTS, Rule, classify
from contextfold.overflow import classifying as asking
from contextfold.overflow.text import ErrorText

ROOT = Path(__file__).resolve().parents[1]
TABLE = runpy.run_path(str(ROOT / "benchmarks" / "overflow_table.py"))
EXAMPLES: list[dict[str, Any]] = json.loads(TABLE["EXAMPLES"].read_text(encoding="utf-8"))

MISSED = {"snowflake cortex", "tts", "dalle"}
"""Texts too vague to be told from look-alikes; the reasons stand beside the assertions."""


def test_what_the_classifier_says_is_right_and_it_misses_little() -> None:
    """A false alarm compacts for nothing, a miss ends a conversation."""
    precision, recall = TABLE["rates"](TABLE["matrix"](EXAMPLES))
    assert precision == 1.0
    assert recall > 0.98
    wrong = {example["provider"] for example in EXAMPLES if TABLE["verdict"](example)[0] != (example["kind"] or "none")}
    # "max tokens of 4096 exceeded" is what others say of an answer; the other two are of no chat model
    assert wrong <= MISSED


def test_the_figures_of_right_verdicts_are_right() -> None:
    right, of = TABLE["figures"](EXAMPLES)
    assert right >= of - 2


def test_every_kind_and_the_look_alikes_are_in_every_large_group() -> None:
    kinds = {group: {example["kind"] for example in EXAMPLES if example["group"] == group} for group in (1, 2, 4, 5)}
    assert len(kinds[1]) == len(kinds[2]) == len(TABLE["KINDS"])
    wanted = {"prompt_too_long", "output_budget", "rate_limit_too_small", "malformed_history", None}
    assert kinds[4] >= kinds[5] >= wanted
    assert sum(example["kind"] is None for example in EXAMPLES) > 100


def deciding_row(said: ErrorText) -> Rule | None:
    """The row whose words decide about an error, arithmetic aside; of sentences, one with a verdict goes before."""
    of_text = asking._first(asking._WHOLE, said, said.text)
    sentences = asking._SENTENCE_END.split(said.text)
    found = [asking._first(asking._OF_SENTENCES, said, sentence) for sentence in sentences]
    return of_text or next(iter(sorted(filter(None, found), key=lambda rule: rule.verdict is None)), None)


@pytest.mark.parametrize("rule", VERDICTS, ids=lambda rule: rule.name)
def test_each_row_decides_its_own_sample(rule: Rule) -> None:
    """No row is shadowed by one above it, and none is there without need."""
    said = ErrorText()
    if rule.of == "code":
        said.add_code(rule.sample)
    elif rule.of == "finish":
        said.finishes.append(rule.sample)
    else:
        said.read(rule.sample)
    assert deciding_row(said) is rule


def test_the_page_about_requests_shows_the_table() -> None:
    page = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")
    shown = page.split("<!-- verdicts -->\n")[1].split("\n<!-- /verdicts -->")[0]
    assert shown == TABLE["rows"](), "put in what is printed by: python benchmarks/overflow_table.py --rows"


def _sdk_error(package: Any, example: dict[str, Any], body: dict[str, Any]) -> Exception:
    request = httpx.Request("POST", "https://api.test")
    response = httpx.Response(example["status"] or 400, json=body, request=request)
    error: Exception = package.APIStatusError(
        f"Error code: {response.status_code} - {body}", response=response, body=body
    )
    return error


def _chained(inner: Exception) -> Exception:
    outer = RuntimeError("the model call failed")
    outer.__cause__ = inner
    return outer


def _openai(example: dict[str, Any]) -> Exception:
    said = {"message": example["message"], "code": example["code"]}
    return _sdk_error(openai, example, {"error": said})


def _anthropic(example: dict[str, Any]) -> Exception:
    said = {"type": example["code"] or "invalid_request_error", "message": example["message"]}
    return _sdk_error(anthropic, example, {"type": "error", "error": said})


def _inner(example: dict[str, Any]) -> str:
    return json.dumps({"error": {"message": example["message"], "code": example["code"]}})


ENVELOPES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "OpenAI's SDK": _openai,
    "Anthropic's SDK": _anthropic,
    "a cause": lambda example: _chained(_openai(example)),
    "a gateway that quotes": lambda example: {
        "error": {"message": "Provider returned error", "code": example["status"], "metadata": {"raw": _inner(example)}}
    },
    "a body in a body": lambda example: json.dumps({"statusCode": example["status"], "body": _inner(example)}),
    "JSON in JSON": lambda example: json.dumps(_inner(example)),
    "a printed Python value": lambda example: Exception(
        f"litellm.BadRequestError: OpenAIException - Error code: {example['status'] or 400} - "
        f"{ {'error': {'message': example['message'], 'code': example['code']}} }"
    ),
}


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_the_verdict_is_the_same_in_every_envelope(envelope: str) -> None:
    """SDKs, gateways and frameworks wrap what a provider says; it means the same."""
    different = []
    for example in EXAMPLES:
        found = classify(ENVELOPES[envelope](example))
        verdict = (found.kind, found.limit, found.used) if found else ("none", None, None)
        if verdict != TABLE["verdict"](example):
            different.append((example["message"], verdict))
    assert not different


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = [{"provider": "x", "status": 400, "code": None, "message": "Hello", "kind": "output_budget",
              "limit": None, "used": None}]  # fmt: skip
    (tmp_path / "more.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert TABLE["main"]([str(tmp_path / "more.json")]) == 0
    printed = capsys.readouterr().out
    assert "prompt_too_l" in printed
    assert "recall 0.000" in printed
    assert "x: Hello: none, not output_budget" in printed
