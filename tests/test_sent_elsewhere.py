"""Results, messages and errors can be copied, and sent from a process of a pool to the one that waits for them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from contextfold import CannotFit, Compactor, errors
from contextfold.batch.job import WorkerDied
from contextfold.cli.files import SeveralConversations
from contextfold.errors import ContextfoldError
from contextfold.messages import Message

WAYS = pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["copy", "deep", "pickle"]
)


def raised(kind: type[ContextfoldError]) -> ContextfoldError:
    given: dict[type[ContextfoldError], Callable[[], ContextfoldError]] = {
        errors.FormatError: lambda: errors.FormatError("no role", index=3),
        errors.PolicyError: lambda: errors.PolicyError("keep is no size", [(("keep",), "no size")]),
        errors.CannotFit: lambda: errors.CannotFit(limit=10, floor={"tools": 12}, limit_name="window"),
        errors.StillTooLong: lambda: errors.StillTooLong(sent=[30, 20], limit=10, floor={"tools": 12}),
        errors.SummaryFailed: lambda: errors.SummaryFailed("no summary", attempts=["429", "429"]),
        errors.TimedOut: lambda: errors.TimedOut("too slow", seconds=2.5, total=True),
        errors.RefusedInStream: lambda: errors.RefusedInStream({"error": {"message": "too long"}}),
        SeveralConversations: lambda: SeveralConversations("talks.json", []),
        errors.ContextOverflow: lambda: errors.ContextOverflow(limit=8_000, used=9_000),
    }
    error = given[kind]() if kind in given else kind("said")
    error.add_note("where it happened")
    return error


def kinds(base: type[ContextfoldError]) -> list[type[ContextfoldError]]:
    found = [base]
    for kind in base.__subclasses__():
        found += kinds(kind)
    return [kind for kind in dict.fromkeys(found) if kind.__module__.startswith("contextfold")]


def test_the_errors_of_all_modules_are_tried() -> None:
    assert {WorkerDied, SeveralConversations, errors.StillTooLong} <= set(kinds(ContextfoldError))


@WAYS
@pytest.mark.parametrize("kind", kinds(ContextfoldError), ids=lambda kind: kind.__name__)
def test_an_error_arrives_as_it_was_raised(kind: type[ContextfoldError], copied: Callable[[Any], Any]) -> None:
    error = raised(kind)
    arrived = copied(error)
    assert type(arrived) is kind
    assert (str(arrived), arrived.args, vars(arrived)) == (str(error), error.args, vars(error))


def talk() -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{n}: " + f"module_{n}.py is read. " * 40} for n in range(60)
    ]


class Archive:
    address = "a queue"

    def append(self, messages: Mapping[int, Message]) -> None:
        self.saved = dict(messages)


@WAYS
def test_a_result_and_what_an_archive_gets_arrive_whole(copied: Callable[[Any], Any]) -> None:
    archive = Archive()
    out = Compactor(window=4_000).compact(talk(), archive=archive)
    arrived = copied(out)
    assert (arrived.messages, arrived.compaction) == (out.messages, out.compaction)
    assert list(arrived.ledger) == list(out.ledger)
    assert (arrived.floor, arrived.text_tokens, arrived.events) == (out.floor, out.text_tokens, out.events)
    assert arrived.after_usage(9_000).calibration == out.after_usage(9_000).calibration
    message = next(iter(archive.saved.values()))
    assert copied(message) == message
    assert copied(message).metadata == {}


def work(window: int) -> Any:
    return Compactor(window=window, target=("tokens", window // 3)).compact(talk())


def test_a_pool_of_processes_gets_results_and_errors_and_goes_on() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        refused = pool.submit(work, 120)
        with pytest.raises(CannotFit) as told:
            refused.result(60)
        assert told.value.floor
        assert pool.submit(work, 6_000).result(60).changed
