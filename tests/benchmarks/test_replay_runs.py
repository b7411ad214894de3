"""A run: it goes on where it was stopped, takes strategies of one's own, and reports the same figures every time."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.replay import check, cli, jobs, report, splits, statistics, strategies, tokens
from benchmarks.replay.measure import added
from benchmarks.replay.measures import columns
from benchmarks.replay.results import Result, Saved

OWN = """
from benchmarks.replay.strategies.base import Strategy

class LastTen(Strategy):
    def view(self, messages):
        return messages[:1] + messages[-10:]

class NoStrategy:
    pass
"""


def silent(*_: object) -> None:
    pass


def a_plan(folder: Path, **changes: object) -> jobs.Plan:
    plan = jobs.Plan(None, (16_000,), ("none", "floor"), tokens.ESTIMATE, folder / "saved")
    return replace(plan, **changes)  # type: ignore[arg-type]


def some(plan: jobs.Plan, count: int = 2) -> list[jobs.collect.Found]:
    return list(jobs.survey(plan, silent).conversations)[:count]


def a_result(strategy: str, conversation: str, kept: int, of: int, *, chinese: bool = False) -> Result:
    totals = {"recall_hard_context": kept, "recall_hard": of}
    return Result("k", conversation, "here", conversation, 9, chinese, True, 16_000, strategy, totals)


@pytest.mark.strict
def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved is not replayed again, a line that was cut off is, and a fresh run replays everything."""
    plan = a_plan(tmp_path)
    conversations = some(plan)
    first = jobs.run(plan, conversations, silent)
    assert len(first) == 4
    replayed: list[str] = []
    known = jobs._result

    def counting(*arguments: object) -> Result:
        replayed.append(str(arguments[-1]))
        return known(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "_result", counting)
    assert jobs.run(plan, conversations, silent) == first
    assert replayed == []

    saved = plan.saved / f"{conversations[0].digest}.jsonl"
    saved.write_text(saved.read_text()[:-40])
    again = jobs.run(plan, conversations, silent)
    assert replayed == ["floor"]
    assert [result.totals for result in again] == [result.totals for result in first]
    assert len(Saved(plan.saved).of(conversations[0].digest)) == 2

    jobs.run(plan, conversations, silent, fresh=True)
    assert len(replayed) == 5


def test_code_that_changed_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key names the strategy's code and the instrument's, so an old figure never passes for a new one."""
    module = tmp_path / "own_strategy.py"
    module.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = a_plan(tmp_path, strategies=("none", "own_strategy:LastTen"))
    before = jobs.Keys.of(plan)
    module.write_text(OWN.replace("-10", "-11"))
    after = jobs.Keys.of(plan)
    assert before.strategies[0] == after.strategies[0]
    assert before.strategies[1] != after.strategies[1]
    assert before.instrument == after.instrument
    assert jobs.Keys.of(replace(plan, tokenizer=tokens.ESTIMATE)).instrument.endswith(tokens.ESTIMATE)
    sys.modules.pop("own_strategy")


def test_a_strategy_of_ones_own_is_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by module and class; what is none is said in one line."""
    (tmp_path / "own_strategy.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "own_strategy:LastTen"
    found = jobs.run(a_plan(tmp_path, strategies=("none", name)), some(a_plan(tmp_path)), silent)
    assert {result.strategy for result in found} == {"none", name}
    assert all(result.totals["views"] for result in found)
    missing = strategies.unavailable([name, "own_strategy:NoStrategy", "nowhere_at_all:X"])
    assert "is no benchmarks.replay" in missing["own_strategy:NoStrategy"]
    assert "nowhere_at_all" in missing["nowhere_at_all:X"]
    with pytest.raises(ValueError, match="module:Class, or one of none, floor"):
        strategies.entry("unheard_of")
    sys.modules.pop("own_strategy")


def test_the_strategy_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``docs/benchmark-guide.md`` shows runs as it stands, and every view of it is valid."""
    guide = (Path(__file__).resolve().parents[2] / "docs" / "benchmark-guide.md").read_text(encoding="utf-8")
    code = guide.split("```python\n")[1].split("```")[0]
    assert code.startswith("# my_strategies.py")
    (tmp_path / "my_strategies.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = a_plan(tmp_path, strategies=("none", "my_strategies:LastTen"))
    _, mine = jobs.run(plan, some(plan, 1), silent)
    assert mine.totals["conduct_invalid"] == 0
    assert mine.totals["cost_view_tokens"] > 0
    sys.modules.pop("my_strategies")


@pytest.mark.strict
def test_one_process_and_two_find_the_same(tmp_path: Path) -> None:
    """How the work is spread decides nothing, and progress reaches its end."""
    told: list[tuple[str, int, int]] = []
    one = a_plan(tmp_path / "one")
    two = a_plan(tmp_path / "two", jobs=2)
    conversations = some(one)
    alone = jobs.run(one, conversations, silent)
    spread = jobs.run(two, conversations, lambda *what: told.append(what))
    assert [result.totals for result in alone] == [result.totals for result in spread]
    assert told[-1] == ("replaying", 4, 4)


def test_totals_add_up_and_largest_stay_largest() -> None:
    """Sums for all names but those that say otherwise."""
    assert added([{"a": 1, "max_b": 5}, {"a": 2, "max_b": 3, "c": 0.5}]) == {"a": 3, "max_b": 5, "c": 0.5}


def test_an_interval_holds_the_share_and_is_the_same_twice() -> None:
    """Over conversations, not over identifiers: one conversation has none."""
    pairs = [(8, 10), (5, 10), (90, 100), (0, 0)]
    low, high = statistics.interval(pairs) or (1.0, 0.0)
    assert 0.5 <= low < 103 / 120 < high <= 0.9
    assert statistics.interval(pairs) == (low, high)
    assert statistics.interval([(1, 2), (0, 0)]) is None


def test_a_turned_ranking_is_said() -> None:
    """Where strategies stand the other way round among Chinese conversations, the report names them."""
    results = [
        a_result("contextfold", "x", 90, 100), a_result("contextfold", "y", 1, 10, chinese=True),
        a_result("floor", "x", 10, 100), a_result("floor", "y", 9, 10, chinese=True),
    ]  # fmt: skip
    text = splits.markdown(results)
    assert "Chinese: floor is first" in text
    assert "The other way round than over all: contextfold and floor" in text
    assert "| contextfold | 82.7 (1) | 10.0 (2) |" in text
    straight = splits.markdown([replace(result, is_chinese=True) for result in results])
    assert "the ranking is the same as over all" in straight


@pytest.mark.strict
def test_a_report_has_every_strategy_and_the_same_figures_twice(tmp_path: Path) -> None:
    """Also without matplotlib; only the last section differs from run to run."""

    def written(folder: Path) -> str:
        plan = a_plan(folder, strategies=("none", "floor", "contextfold"))
        survey = jobs.Survey(tuple(some(plan, 1)), ("notes.txt: nothing",))
        results = jobs.run(plan, survey.conversations, silent)
        path = folder / "benchmark.md"
        report.write(path, report.Material(plan, survey, results, {"langmem": "not installed"}, {}, 1.0))
        return path.read_text(encoding="utf-8")

    first, second = written(tmp_path / "first"), written(tmp_path / "second")
    assert first.split("## Times")[0] == second.split("## Times")[0]
    assert "**contextfold**" in first
    assert "`langmem` could not be run: not installed" in first
    assert "example sessions" in first
    assert "python -m benchmarks.replay --windows 16000 --data examples --strategies floor contextfold" in first
    figures = json.loads((tmp_path / "first" / "figures.json").read_text())
    assert {row["strategy"] for row in figures["rows"]} == {"none", "floor", "contextfold"}
    assert figures == json.loads((tmp_path / "second" / "figures.json").read_text())


@pytest.mark.strict
@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib comes with the extra bench")
@pytest.mark.parametrize("asked", ["trim_oldest", "none"])
def test_a_report_of_any_one_strategy_is_written(tmp_path: Path, asked: str) -> None:
    """Also of one that no plot shows by default; the one that does nothing has no plots."""
    plan = a_plan(tmp_path, strategies=tuple(dict.fromkeys(("none", asked))))
    survey = jobs.Survey(tuple(some(plan, 1)), ())
    results = jobs.run(plan, survey.conversations, silent)
    report.write(tmp_path / "benchmark.md", report.Material(plan, survey, results, {}, {}, 1.0))
    drawn = tmp_path / "benchmark" / "saw-teeth.svg"
    assert drawn.exists() == (asked != "none")
    assert asked == "none" or asked in drawn.read_text(encoding="utf-8")
    assert ("saw-teeth.svg" in (tmp_path / "benchmark.md").read_text(encoding="utf-8")) == drawn.exists()


def test_every_column_says_what_it_means() -> None:
    """And has a name of its own."""
    keys = [column.key for column in columns()]
    assert len(set(keys)) == len(keys)
    assert all(column.meaning.endswith(".") and column.title for column in columns())


def test_the_check_fails_beyond_its_margin_and_not_within() -> None:
    """Fidelity down or cost up; a better figure, or one of another strategy, never fails it."""
    then = {
        "16000 contextfold": {"hard_in_context": 0.8, "far_usable": 0.7, "cost": 0.25},
        "16000 floor": {"hard_in_context": 0.4, "far_usable": 0.0, "cost": 0.2},
    }

    def after(**changes: float) -> list[str]:
        return check.worse(then | {"16000 contextfold": then["16000 contextfold"] | changes}, then)

    assert after() == after(hard_in_context=0.95, cost=0.1) == []
    assert after(hard_in_context=0.8 - check.FIDELITY_MARGIN / 2, cost=0.25 * (1 + check.COST_MARGIN / 2)) == []
    assert "hard_in_context fell from 0.8000 to 0.7500" in after(hard_in_context=0.75)[0]
    assert "far_usable fell" in after(far_usable=0.6)[0]
    assert "cost rose from 0.2500 to 0.3000" in after(cost=0.3)[0]
    assert check.worse({}, then) == ["contextfold at 16000: not measured"]


def test_wrong_usage_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, the value that is wrong, and the way out."""
    for arguments, said in (
        (["--windows", "10"], "a window of 10 tokens is too small"),
        (["--strategies", "unheard_of"], "no strategy 'unheard_of': give module:Class, or one of"),
        (["--data", str(tmp_path / "nowhere")], "there is no such folder or file"),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main([*arguments, "--tokenizer", tokens.ESTIMATE])
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
