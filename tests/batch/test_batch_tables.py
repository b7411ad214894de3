"""Batches in, batches out: every kind of table, the same rows, nothing of the caller's changed."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from batch_talks import make_talk

from contextfold import Compaction, Compactor, InputError, Policy, PolicyError
from contextfold.batch import CheckBatch, CompactBatch, MeasureBatch

WINDOW = 2_000
"""Half of what the longest of these conversations takes."""


def rows() -> list[dict[str, Any]]:
    return [
        {"id": 1, "messages": json.dumps(make_talk(2))},
        {"id": 2, "messages": json.dumps(make_talk(30))},
        {"id": 3, "messages": "no conversation"},
    ]


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_numpy(rows: list[dict[str, Any]]) -> Any:
    import numpy

    return {name: numpy.array(values) for name, values in as_columns(rows).items()}


def as_pandas(rows: list[dict[str, Any]]) -> Any:
    import pandas

    return pandas.DataFrame(rows, index=[7, 5, 3][: len(rows)])


def as_table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow

    return pyarrow.Table.from_pylist(rows)


def as_record_batch(rows: list[dict[str, Any]]) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_pylist(rows)


def as_polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def column(batch: Any, name: str) -> list[Any]:
    if isinstance(batch, list):
        return [row[name] for row in batch]
    values = batch[name] if not hasattr(batch, "column") else batch.column(name)
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return [None if value is None or str(value) == "<NA>" else value for value in listed]


KINDS: list[Callable[[list[dict[str, Any]]], Any]] = [
    lambda rows: rows,
    as_columns,
    as_numpy,
    as_pandas,
    as_table,
    as_record_batch,
    as_polars,
]
NAMES = ["rows", "columns", "numpy", "pandas", "pyarrow", "record batch", "polars"]


@pytest.mark.parametrize("make", KINDS, ids=NAMES)
def test_every_kind_of_table_comes_back_as_it_is_with_columns_added(make: Callable[..., Any]) -> None:
    batch = make(rows())
    out = CompactBatch(window=WINDOW)(batch)
    assert type(out) is type(batch)
    assert column(out, "id") == [1, 2, 3]
    assert column(out, "messages") == [row["messages"] for row in rows()]
    assert column(out, "changed") == [False, True, None]
    assert column(out, "error")[:2] == [None, None]
    assert "neither JSON nor JSON Lines" in column(out, "error")[2]
    assert column(out, "error_type")[2] == "InputError"
    assert json.loads(column(out, "view")[0]) == make_talk(2)
    assert column(out, "tokens_after")[1] < WINDOW < column(out, "tokens_before")[1]


@pytest.mark.parametrize("make", KINDS, ids=NAMES)
def test_an_empty_batch_is_an_empty_batch_with_the_same_columns(make: Callable[..., Any]) -> None:
    if make is KINDS[0]:
        assert CompactBatch(window=WINDOW)([]) == []
        return
    filled = make(rows())
    empty = {name: values[:0] for name, values in filled.items()} if isinstance(filled, dict) else filled[:0]
    out = CompactBatch(window=WINDOW)(empty)
    assert len(column(out, "view")) == 0


FRAMES = [as_pandas, as_table, as_polars]


@pytest.mark.parametrize("make", FRAMES, ids=["pandas", "pyarrow", "polars"])
def test_messages_in_a_frames_own_columns_measure_like_those_in_json(make: Callable[..., Any]) -> None:
    """A column of structs fills what a message does not have with nulls; what is measured does not change."""
    written = [row for row in rows() if row["id"] != 3]
    held = [{**row, "messages": json.loads(row["messages"])} for row in written]
    for kind in (MeasureBatch(window=WINDOW), CompactBatch(window=WINDOW)):
        found, expected = kind(make(held)), kind(written)
        for name in set(kind.TYPES) - {"seconds", "view", "record"}:
            assert column(found, name) == [row[name] for row in expected], name


def test_polars_runs_a_batch_in_its_lazy_plans_and_by_slices() -> None:
    polars = pytest.importorskip("polars")
    compact, frame = CompactBatch(window=WINDOW), as_polars(rows())
    whole = compact(frame).drop("seconds")
    lazily = frame.lazy().map_batches(compact, schema=compact(frame[:0]).schema)
    assert lazily.select("id", "view", "error").collect().equals(whole.select("id", "view", "error"))
    assert lazily.collect(engine="streaming").drop("seconds").equals(whole)
    assert polars.concat(compact(part).drop("seconds") for part in frame.iter_slices(1)).equals(whole)
    with pytest.raises(InputError, match="collect"):
        compact(frame.lazy())
    with pytest.raises(InputError, match="not Series"):
        compact(frame["messages"])


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_a_mapping_of_another_librarys_columns_is_a_batch(library: str) -> None:
    """As a function of Daft gets them, one column each."""
    texts = [row["messages"] for row in rows()]
    module = pytest.importorskip(library)
    made = module.array(texts) if library == "pyarrow" else module.Series(texts)
    out = CompactBatch(window=WINDOW)({"messages": made})
    assert out["view"] == CompactBatch(window=WINDOW)({"messages": texts})["view"]


def test_the_view_and_the_record_are_those_of_the_compactor() -> None:
    messages = make_talk(30)
    out = CompactBatch(window=WINDOW)({"messages": [messages]})
    expected = Compactor(window=WINDOW).compact(messages)
    assert json.loads(out["view"][0]) == expected.messages
    assert Compaction.from_json(out["record"][0]) == expected.compaction
    assert out["tokens_after"] == [expected.tokens_after]
    fates = {fate: out[fate][0] for fate in ("kept", "pinned", "shortened", "summarized", "dropped")}
    assert {fate: count for fate, count in fates.items() if count} == {
        fate: count for fate, count in expected.ledger.counts().items() if count
    }


def test_the_columns_have_one_type_in_every_batch() -> None:
    """So that parts of one data set can be read together, also where all of one failed."""
    good, bad = ([{"messages": json.dumps(make_talk(1))}], [{"messages": "nothing"}])
    for kind in (CompactBatch(window=WINDOW), MeasureBatch(window=WINDOW), CheckBatch(window=WINDOW)):
        assert kind(as_table(good)).schema == kind(as_table(bad)).schema


def test_nothing_that_came_in_is_changed() -> None:
    messages = make_talk(30)
    batch = {"messages": [messages], "label": ["x"]}
    before = json.dumps(batch)
    CompactBatch(window=WINDOW)(batch)
    assert json.dumps(batch) == before


def test_messages_in_several_formats_stand_in_one_batch() -> None:
    anthropic = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"at": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "seen"}]},
    ]
    responses = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    out = CompactBatch(window=WINDOW)({"messages": [make_talk(1), anthropic, responses]})
    assert out["format"] == ["openai-chat", "anthropic", "openai-responses"]
    assert [json.loads(view) for view in out["view"]] == [make_talk(1), anthropic, responses]


def test_langchain_objects_go_in_and_come_out_as_langchain_writes_them() -> None:
    messages_of = pytest.importorskip("langchain_core.messages")
    messages = [messages_of.HumanMessage("Hello"), messages_of.AIMessage("Hello.")]
    out = CompactBatch(window=WINDOW)([{"messages": messages}])
    assert messages_of.messages_from_dict(json.loads(out[0]["view"])) == messages


def test_an_operation_can_be_pickled_and_does_the_same() -> None:
    batch = {"messages": [make_talk(30)]}
    for kind in (
        CompactBatch(window=WINDOW, trigger=("fraction", 0.5), to="anthropic", force=True),
        MeasureBatch(window=WINDOW, policy=Policy(evidence=False)),
        CheckBatch(window=WINDOW),
    ):
        again = pickle.loads(pickle.dumps(kind))
        first, second = kind(batch), again(batch)
        assert {n: v for n, v in first.items() if n != "seconds"} == {n: v for n, v in second.items() if n != "seconds"}


@pytest.mark.strict
def test_a_process_pool_does_batches() -> None:
    batches = [{"messages": [make_talk(30, seed)]} for seed in range(4)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for kind in (CompactBatch(window=WINDOW), MeasureBatch(window=WINDOW), CheckBatch(window=WINDOW)):
            for out, expected in zip(pool.map(kind, batches), map(kind, batches), strict=True):
                assert {**out, "seconds": 0} == {**expected, "seconds": 0}


def test_settings_are_refused_when_the_operation_is_made() -> None:
    with pytest.raises(PolicyError, match="trigger"):
        CompactBatch(window=WINDOW, trigger=("fraction", 7))
    with pytest.raises(PolicyError, match="same"):
        CompactBatch(window=WINDOW, summarizer="same")
    with pytest.raises(InputError, match="unknown format"):
        CompactBatch(window=WINDOW, to="klingon")


def test_a_failing_summarizer_is_an_error_of_its_row() -> None:
    def fails(prompt: str) -> str:
        raise RuntimeError("no model today")

    policy = Policy(on_failure="raise", summary={"retries_on_failure": 0})
    out = CompactBatch(window=WINDOW, policy=policy, summarizer=fails)({"messages": [make_talk(30), make_talk(1)]})
    assert out["error"] == ["no model today", None]
    assert out["error_type"] == ["RuntimeError", None]


def test_what_is_no_batch_and_what_has_no_conversations_is_said() -> None:
    compact = CompactBatch(window=WINDOW)
    with pytest.raises(InputError, match="a batch is"):
        compact("messages")
    with pytest.raises(InputError, match="there are id, talk"):
        compact({"id": [1], "talk": [[]]})
    with pytest.raises(InputError, match="no column dialogue"):
        CompactBatch(window=WINDOW, column="dialogue")({"messages": [[]]})
    assert CompactBatch(window=WINDOW, column="talk")({"talk": [make_talk(1)]})["error"] == [None]


def test_columns_that_are_there_already_are_not_replaced() -> None:
    batch = {"messages": [make_talk(1)], "error": ["mine"]}
    with pytest.raises(InputError, match="error already: rename them, or give prefix="):
        CompactBatch(window=WINDOW)(batch)
    out = CompactBatch(window=WINDOW, prefix="cf_")(batch)
    assert out["error"] == ["mine"]
    assert out["cf_error"] == [None]
    assert MeasureBatch(window=WINDOW, prefix="measured_")(CompactBatch(window=WINDOW)({"messages": [make_talk(1)]}))


class _Raises:
    """An object that raises for any name."""

    def __repr__(self) -> str:
        return "_Raises()"

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


@pytest.mark.parametrize("batch", [[{b"a": 1}], {b"a": [1]}, {"messages": _Raises()}, 7, [7], [{1: 2}]], ids=repr)
def test_what_is_no_batch_is_refused_as_ours(batch: Any) -> None:
    for made in (CompactBatch(window=WINDOW), MeasureBatch(window=WINDOW), CheckBatch(window=WINDOW)):
        with pytest.raises(InputError):
            made(batch)


@pytest.mark.parametrize("given", [{"column": 10**5_000}, {"prefix": 7}, {"prefix": b"x"}, {"column": ["a"]}])
def test_the_name_of_a_column_is_a_string(given: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        CompactBatch(**given)
