"""What ``call`` and ``acall`` do when a provider refuses a view, kind by kind, in both colors.

The provider here is a function that counts what it is sent by the built-in estimate and refuses in the words of real
ones; the same over HTTP with the official SDKs is in ``tests/integrations/test_sdks.py``.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from building import conversation
from contextfold import Compaction, CompactionResult, Compactor, ContextOverflow, InputError, Policy, count_tokens
from contextfold.calls.recovery import is_partly_read, shorter_answer
from contextfold.calls.thinking import shorter_thinking
from contextfold.errors import CannotFit, ContextfoldError, StillTooLong
from contextfold.overflow import Overflow
from contextfold.testing.dict_store import DictStore
from contextfold.tokens import Calibration
from contextfold.window import DEFAULT_WINDOW
from effort import crossed

Wire = list[dict[str, Any]]
COLORS = pytest.mark.parametrize("color", ["sync", "async"])


class Refused(Exception):
    """As an SDK raises it."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status_code = status
        self.body = {"error": {"message": message}}


@dataclass
class Provider:
    """Refuses what it counts as more than ``limit`` tokens. ``ratio``: its tokens for one of the estimate."""

    limit: int
    names_limit: bool = True
    ratio: float = 1.0
    usage: bool = True
    sent: list[int] = field(default_factory=list)
    views: list[Wire] = field(default_factory=list)
    limits: list[Any] = field(default_factory=list)

    def __call__(self, view: Wire, *max_tokens: int | None) -> dict[str, Any]:
        tokens = round(count_tokens(view) * self.ratio)
        self.sent.append(tokens)
        self.views.append(copy.deepcopy(view))
        self.limits += max_tokens
        if tokens > self.limit:
            named = f"prompt is too long: {tokens} tokens > {self.limit} maximum"
            raise Refused(named if self.names_limit else "Input is too long for requested model.")
        read = {"prompt_tokens": tokens} if self.usage else {}
        return {"choices": [{"finish_reason": "stop"}], "usage": read, "n": len(self.sent)}


def call(
    color: str, compactor: Compactor, send: Callable[..., Any], wire: Wire, previous: Any = None, **options: Any
) -> tuple[Any, CompactionResult]:
    """The response and the result whose view was answered."""
    results: list[CompactionResult] = []
    options["on_result"] = results.append
    if color == "sync":
        return compactor.call(send, wire, previous, **options), results[0]

    async def asend(*arguments: Any) -> Any:
        return send(*arguments)

    return asyncio.run(compactor.acall(asend, wire, previous, **options)), results[0]


def names(result: CompactionResult) -> list[str]:
    return [event.name for event in result.events]


# ---- the prompt does not fit ----


@COLORS
@pytest.mark.parametrize("names_limit", [True, False])
def test_an_overflow_is_compacted_and_sent_once_more_and_strictly_smaller(color: str, names_limit: bool) -> None:
    wire = conversation(100)
    before = copy.deepcopy(wire)
    provider = Provider(10_000, names_limit)
    response, result = call(color, Compactor(window=100_000), provider, wire)
    assert response["n"] == 2
    assert provider.sent[1] <= 10_000 < provider.sent[0]
    assert result.trigger == "overflow: prompt_too_long"
    assert {"request_overflowed", "window_learned", "request_resent"} <= set(names(result))
    assert sum(result.ledger.counts().values()) == len(wire)
    assert wire == before


SAYS_TOO_LONG = "prompt is too long: 12000 tokens > 10000 maximum"
IN_ANSWERS = {
    "at the top": {"error": {"message": SAYS_TOO_LONG, "code": 400}},
    "as a bare text": {"error": SAYS_TOO_LONG},
    "in place of the words": {
        "choices": [{"finish_reason": "error", "error": {"message": SAYS_TOO_LONG}, "message": {"content": ""}}]
    },
    "of a failed answer": {
        "status": "failed",
        "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."},
        "output": [],
    },
}


@COLORS
@pytest.mark.parametrize("refusal", IN_ANSWERS.values(), ids=IN_ANSWERS)
def test_a_refusal_inside_an_answer_that_came_as_a_success_is_one_too(color: str, refusal: dict[str, Any]) -> None:
    """Routers before several providers answer with 200, and tell in the body what the provider said."""
    provider = Provider(10_000)

    def send(view: Wire) -> dict[str, Any]:
        try:
            return provider(view)
        except Refused:
            return refusal

    response, result = call(color, Compactor(window=100_000), send, conversation(100))
    assert response["n"] == 2
    assert provider.sent[1] <= 10_000 < provider.sent[0]
    assert result.trigger == "overflow: prompt_too_long"


@COLORS
def test_an_answer_that_refuses_and_cannot_be_helped_is_the_callers(color: str) -> None:
    refusal = IN_ANSWERS["at the top"]
    policy = Policy(resend_after_overflow=False)
    assert call(color, Compactor(window=100_000, policy=policy), lambda _: refusal, conversation(5))[0] is refusal
    other = {"error": {"message": "No endpoints found for this model", "code": 404}}
    assert call(color, Compactor(window=100_000), lambda _: other, conversation(5))[0] is other


def test_an_answer_with_words_is_one_whatever_stands_beside_them() -> None:
    answer = {**IN_ANSWERS["at the top"], "choices": [{"message": {"content": "Done."}}]}
    sent: list[Wire] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(view)
        return answer

    assert Compactor(window=100_000).call(send, conversation(5)) is answer
    assert len(sent) == 1


@COLORS
def test_what_cannot_be_made_to_fit_is_a_typed_error_with_the_floor_and_the_providers_error(color: str) -> None:
    """The user's own words are never cut."""
    wire = [*conversation(40), {"role": "user", "content": "Read this: " + "fact " * 4_000}]
    provider = Provider(2_000)
    with pytest.raises(StillTooLong) as caught:
        call(color, Compactor(window=100_000), provider, wire)
    assert isinstance(caught.value.__cause__, Refused)
    assert isinstance(caught.value, CannotFit)
    assert caught.value.floor["newest user message"] > 3_000
    assert "newest user message" in str(caught.value)
    assert caught.value.limit == 2_000
    assert caught.value.sent == tuple(sorted(caught.value.sent, reverse=True))
    assert len(provider.sent) == len(caught.value.sent) <= 2


@COLORS
def test_a_refusal_that_stays_is_answered_once_not_for_ever(color: str) -> None:
    provider = Provider(1, names_limit=False)
    with pytest.raises(StillTooLong) as caught:
        call(color, Compactor(window=100_000), provider, conversation(100))
    assert len(provider.sent) == 2
    assert provider.sent[1] < provider.sent[0]
    assert "drop_oldest" in str(caught.value)


@COLORS
def test_the_next_turn_does_not_overflow_again(color: str) -> None:
    """What an endpoint proved holds for later calls, though the window was declared larger."""
    compactor = Compactor(window=100_000)
    provider = Provider(10_000)
    wire = conversation(100)
    _, result = call(color, compactor, provider, wire)
    for turn in range(1, 6):
        wire = wire + conversation(12, words=100 + turn)[2:]
        _, result = call(color, compactor, provider, wire, result.compaction)
        assert result.window_source == "learned"
        assert result.window == 10_000
    assert sum(tokens > 10_000 for tokens in provider.sent) == 1


def test_other_errors_come_out_as_they_are_and_are_sent_once() -> None:
    sent = []
    for error in (KeyError("no such model"), Refused("rate limit reached", 429), Refused("invalid x-api-key", 401)):

        def send(view: Wire, error: Exception = error) -> str:
            sent.append(view)
            raise error

        with pytest.raises(type(error)) as caught:
            Compactor(window=100_000).call(send, conversation(3))
        assert caught.value is error
    assert len(sent) == 3


def test_options_of_compact_are_options_of_call() -> None:
    _, result = call("sync", Compactor(window=100_000), Provider(50_000), conversation(50), force=True, system="Hi")
    assert result.trigger == "manual"
    assert result.floor["system prompt"] > 0


# ---- the last resort ----


@COLORS
def test_where_allowed_the_older_half_goes_step_by_step_and_each_drop_is_in_the_ledger(color: str) -> None:
    wire = conversation(100)
    provider = Provider(1_200, names_limit=False)
    policy = Policy(on_overflow="drop_oldest", keep=("fraction", 0.4))
    response, result = call(color, Compactor(window=100_000, policy=policy), provider, wire)
    assert response["n"] > 2
    assert provider.sent == sorted(provider.sent, reverse=True)
    assert len(set(provider.sent)) == len(provider.sent)
    assert provider.views[-1][:2] == wire[:2]
    assert provider.views[-1][-1] == wire[-1]
    dropped = [entry for entry in result.ledger if entry.fate == "dropped"]
    assert dropped
    assert {entry.reason for entry in dropped} == {"history limit halved after an overflow"}
    assert sum(result.ledger.counts().values()) == len(wire)
    halved = [event for event in result.events if event.name == "history_halved"]
    assert sum(event.data["dropped"] for event in halved) == len(dropped)
    calls = {one["id"] for message in provider.views[-1] for one in message.get("tool_calls", ())}
    assert calls == {message["tool_call_id"] for message in provider.views[-1] if message["role"] == "tool"}


def test_a_record_with_drops_goes_through_json_and_on_into_later_passes() -> None:
    wire = conversation(100)
    policy = Policy(on_overflow="drop_oldest", keep=("fraction", 0.4))
    compactor = Compactor(window=100_000, policy=policy)
    provider = Provider(1_200, names_limit=False)
    _, result = call("sync", compactor, provider, wire)
    assert result.compaction is not None
    record = Compaction.from_json(result.compaction.to_json())
    again = Compactor(window=100_000, policy=policy).compact(wire, record)
    assert again.messages == result.messages
    gone = {entry.index for entry in result.ledger if entry.fate == "dropped"}
    later = compactor.compact(wire + conversation(100, words=90)[2:], record, force=True)
    assert gone <= {entry.index for entry in later.ledger if entry.fate == "dropped"}


def test_pins_and_the_users_words_survive_the_last_resort_and_then_it_ends() -> None:
    wire = conversation(30)
    policy = Policy(on_overflow="drop_oldest", pins={"predicate": lambda message: "module_7." in message.text})
    provider = Provider(10, names_limit=False)
    with pytest.raises(StillTooLong) as caught:
        Compactor(window=100_000, policy=policy).call(provider, wire)
    last = json.dumps(provider.views[-1])
    assert "module_7." in last
    assert "ledger_2019" in last
    assert "pinned by policy" in caught.value.floor
    assert len(provider.sent) < 20


def test_the_last_resort_also_works_without_a_record_in_force() -> None:
    """The compaction fails, because its own promise cannot be kept; dropping half by half still helps."""
    wire = conversation(60)
    policy = Policy(on_overflow="drop_oldest", on_failure="raise")

    def broken(prompt: str) -> str:
        raise ConnectionError("down")

    provider = Provider(4_000)
    with pytest.raises(ConnectionError):  # the policy asks for the summarizer's own error
        Compactor(window=100_000, policy=policy, summarizer=broken).call(provider, wire)
    failing = Policy(on_overflow="drop_oldest", fallback=None)
    _, result = call("sync", Compactor(window=100_000, policy=failing, summarizer=broken), Provider(4_000), wire)
    assert result.summary is None
    assert result.ledger.counts()["dropped"] > 0
    assert result.tokens_after <= 4_000


@COLORS
def test_where_no_limit_is_named_the_next_view_may_be_as_large_as_what_was_taken_before(color: str) -> None:
    """What was taken is known as the provider counts, and a view as it is counted here. Compared as they are, more
    seemed to have been taken than was refused, and half of that was aimed at.
    """
    provider, subject = Provider(10_000, names_limit=False, ratio=1.5), Compactor(window=100_000)
    wire = conversation(90)
    length = next(n for n in range(len(wire)) if count_tokens(wire[:n]) * 1.5 > 9_500)
    call(color, subject, provider, wire[: length - 1])
    _, result = call(color, subject, provider, wire[: 2 * length // 3 * 2])
    taken, refused, again = provider.sent
    assert refused > 10_000 >= again
    assert count_tokens(provider.views[1]) < taken
    assert 0.95 * taken <= 1.5 * result.window <= taken


@COLORS
def test_a_window_that_is_learned_without_a_figure_is_below_what_was_refused_in_a_new_conversation_too(
    color: str,
) -> None:
    """Its views are counted as the provider did in another one, so what was refused is not to be made larger again."""
    provider, subject = Provider(10_000, ratio=2.0), Compactor(window=100_000)
    call(color, subject, provider, conversation(90))
    provider.limit, provider.names_limit, count = 5_000, False, len(provider.sent)
    call(color, subject, provider, conversation(40, words=30))
    refused, *others = provider.sent[count:]
    assert refused > 5_000 > max(others)
    assert subject.windows.learned("", None) < refused


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.5])
@pytest.mark.parametrize("taken", [5, 60], ids=["little was taken", "more than half was taken"])
def test_a_guess_in_a_conversation_that_was_counted_lies_between_half_of_what_was_refused_and_all_of_it(
    ratio: float, taken: int
) -> None:
    limit = round(14_000 * ratio)
    provider, subject = Provider(limit, names_limit=False, ratio=ratio), Compactor(window=100_000)
    _, known = call("sync", subject, provider, conversation(taken))
    assert known.calibration.observations
    before = provider.sent[-1]
    call("sync", subject, provider, conversation(110), known.compaction, calibration=known.calibration)
    refused, again = provider.sent[-2:]
    assert refused > limit >= again
    assert subject.windows.learned("", None) == pytest.approx(max(before, refused / 2), rel=0.01)


@COLORS
def test_a_cap_on_bytes_is_no_window(color: str) -> None:
    """A picture may weigh a megabyte and few tokens: later requests without it would be made smaller for nothing."""
    wire, subject, sent = conversation(60), Compactor(window=100_000), list[int]()

    def send(view: Wire) -> dict[str, Any]:
        sent.append(len(str(view)))
        if sent[-1] >= sent[0]:
            raise Refused("request_too_large: Request exceeds the maximum allowed number of bytes")
        return {"choices": []}

    call(color, subject, send, wire)
    assert len(sent) == 2
    assert subject.windows.learned("", None) is None


# ---- prompt and answer together ----


@COLORS
def test_where_prompt_and_answer_do_not_fit_together_the_answer_gets_shorter_and_nothing_is_compacted(
    color: str,
) -> None:
    wire = conversation(40)
    limits: list[int | None] = []

    def send(view: Wire, max_tokens: int | None) -> str:
        limits.append(max_tokens)
        tokens = count_tokens(view)
        if max_tokens is None or tokens + max_tokens > 10_000:
            raise Refused(f"input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > 10000")
        return "fine"

    _, result = call(color, Compactor(window=100_000), send, wire, max_tokens=8_000)
    assert limits[0] == 8_000
    assert 0 < (limits[1] or 0) <= 10_000 - result.tokens_after
    assert len(limits) == 2
    assert not result.changed
    assert result.messages == wire
    assert "answer_limit_lowered" in names(result)


@COLORS
@pytest.mark.parametrize("asked", [8_000, None], ids=["asked for", "the provider's usual one"])
@pytest.mark.parametrize("tells", [True, False], ids=["usage", "no usage"])
def test_an_answer_limit_that_was_refused_once_is_lowered_before_later_requests_and_for_no_other_model(
    color: str, asked: int | None, tells: bool
) -> None:
    wire, compactor, tokens = conversation(120), Compactor(window=100_000), 0
    refused: list[str] = []
    limits: list[int | None] = []

    def send(view: Wire, max_tokens: int | None) -> dict[str, Any]:
        nonlocal tokens
        tokens, limit = round(1.2 * count_tokens(view)), max_tokens or 8_000
        if tokens + limit > 24_000:
            said = f"input length and `max_tokens` exceed context limit: {tokens} + {limit} > 24000"
            refused.append(said)
            raise Refused(said)
        limits.append(max_tokens)
        return {"usage": {"prompt_tokens": tokens}} if tells else {}

    def ask(steps: int, model: str, known: CompactionResult | None = None) -> CompactionResult:
        calibration = known.calibration if known else None
        options = {"max_tokens": asked, "model": model, "calibration": calibration}
        result = call(color, compactor, send, wire[: 2 * steps], **options)[1]
        assert not result.changed
        return result

    result = None
    for steps in range(40, 79, 2):
        result = ask(steps, "small", result)
        assert limits[-1] == asked or 24_000 - tokens - 400 <= (limits[-1] or 0) < 8_000
    assert len(refused) == 1
    assert (limits[-1] or 8_000) < 8_000
    assert "answer_limit_lowered" in names(result)  # said each time
    ask(20, "small")
    ask(60, "other")
    assert limits[-2:] == [asked] * 2
    assert len(refused) == 1


@pytest.mark.parametrize("face", ["call", "new conversations", "session"])
@pytest.mark.parametrize("usage", [True, False])
def test_what_a_refusal_counted_is_known_where_no_calibration_is_handed_on(face: str, usage: bool) -> None:
    """Each view grew until it was refused, before each pass of sessions, agents and streams that tell no usage."""
    compactor, provider = Compactor(window=8_000), Provider(8_000, ratio=1.4, usage=usage)
    session = compactor.session("thread", DictStore())
    passes, record = 0, None
    for seed in range(6 if face == "new conversations" else 1):
        wire = conversation(30 if face == "new conversations" else 120, words=120 + seed)
        record = None
        for steps in range(0, len(wire), 2):
            if face == "session":
                session.append(wire[steps : steps + 2])
                session.call(provider)
                continue
            result = call("sync", compactor, provider, wire[: steps + 2], record)[1]
            record, passes = result.compaction, passes + result.changed
    assert sum(size > 8_000 for size in provider.sent) == 1
    assert max(passes, len(session.summaries())) > 5


@COLORS
@pytest.mark.parametrize("asked", [2_000, 4_000])
@pytest.mark.parametrize("ratio", [1.0, 1.4])
def test_an_answer_that_a_send_always_asks_for_is_refused_once(color: str, asked: int, ratio: float) -> None:
    """``CompactionMiddleware`` and every ``send`` that takes a view alone were refused before each pass."""
    compactor, record, refused, passes = Compactor(window=8_000), None, 0, 0

    def send(view: Wire) -> dict[str, Any]:
        nonlocal refused
        tokens = round(count_tokens(view) * ratio)
        if tokens + asked > 8_000:
            refused += 1
            raise Refused(f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > 8000")
        return {"usage": {"prompt_tokens": tokens}}

    wire = conversation(150, words=90)
    for steps in range(4, len(wire), 2):
        result = call(color, compactor, send, wire[:steps], record)[1]
        record, passes = result.compaction, passes + result.changed
    assert refused == 1
    assert passes > 3


@COLORS
@pytest.mark.parametrize("takes_limit", [True, False])
@pytest.mark.parametrize(("steps", "asked"), [(40, 30_000), (100, 30_000), (100, 4_096), (300, 4_096), (300, 30_000)])
@pytest.mark.parametrize("ratio", [1.0, 1.2])
def test_a_server_that_stops_counting_where_the_answer_no_longer_fits_is_answered(
    color: str, takes_limit: bool, steps: int, asked: int, ratio: float
) -> None:
    """vLLM names a prompt of one token more than fits beside the answer, however long the prompt is, also above the
    window."""
    sent: list[tuple[int, int]] = []

    def send(view: Wire, max_tokens: int = asked) -> dict[str, Any]:
        sent.append((round(count_tokens(view) * ratio), max_tokens))
        if sum(sent[-1]) > 32_768:
            fits = 32_768 - max_tokens + 1
            raise Refused(
                f"This model's maximum context length is 32768 tokens. However, you requested {max_tokens} output "
                f"tokens and your prompt contains at least {fits} input tokens, for a total of at least 32769 tokens. "
                f"Please reduce the length of the input prompt or the number of requested output tokens."
            )
        return {}

    options = {"max_tokens": asked} if takes_limit else {}
    call(color, Compactor(window=200_000), send, conversation(steps), **options)
    assert len(sent) <= 2
    assert sent[-1][1] >= 256


@COLORS
@pytest.mark.parametrize("takes_limit", [True, False])
@pytest.mark.parametrize("ratio", [1.4, 1.9])
def test_a_server_that_stops_counting_far_above_the_estimate_is_answered_in_every_turn(
    color: str, takes_limit: bool, ratio: float
) -> None:
    """Where its answers tell no usage, either, every turn ended in its error."""
    refused = 0

    def send(view: Wire, max_tokens: int = 3_000) -> dict[str, Any]:
        nonlocal refused
        if count_tokens(view) * ratio + max_tokens > 8_000:
            refused += 1
            raise Refused(
                f"This model's maximum context length is 8000 tokens. However, you requested {max_tokens} output "
                f"tokens and your prompt contains at least {8_001 - max_tokens} input tokens, for a total of at "
                f"least 8001 tokens."
            )
        return {}

    compactor, wire, record = Compactor(window=8_000), conversation(60, words=90), None
    options = {"max_tokens": 3_000} if takes_limit else {}
    for steps in range(4, len(wire), 2):
        record = call(color, compactor, send, wire[:steps], record, **options)[1].compaction
    assert record is not None
    assert not takes_limit or refused <= 8


@COLORS
@pytest.mark.parametrize("ratio", [0.8, 1.0])
def test_what_was_assumed_of_a_prompt_that_was_not_counted_gives_way_to_what_its_answer_reports(
    color: str, ratio: float
) -> None:
    """Later answers had a few hundred tokens where thousands were left. Here no calibration is handed on."""
    wire, compactor = conversation(120), Compactor(window=24_000)
    left: list[tuple[int, int]] = []

    def send(view: Wire, max_tokens: int) -> dict[str, Any]:
        tokens = round(count_tokens(view) * ratio)
        if tokens + max_tokens > 24_000:
            raise Refused(
                f"This model's maximum context length is 24000 tokens. However, you requested {max_tokens} output "
                f"tokens and your prompt contains at least {24_001 - max_tokens} input tokens, for a total of at "
                f"least 24001 tokens."
            )
        left.append((max_tokens, min(12_000, 24_000 - tokens)))
        return {"usage": {"prompt_tokens": tokens}}

    record = None
    for steps in range(40, 121, 2):
        record = call(color, compactor, send, wire[: 2 * steps], record, max_tokens=12_000)[1].compaction
    first = next(n for n, (limit, _) in enumerate(left) if limit < 12_000)
    assert all(limit > 0.9 * most for limit, most in left[first + 1 :])


def test_a_send_without_an_answer_limit_gets_the_providers_own_error() -> None:
    def send(view: Wire) -> str:
        raise Refused("input length and `max_tokens` exceed context limit: 5000 + 8000 > 10000")

    with pytest.raises(Refused):
        Compactor(window=100_000).call(send, conversation(30))


@pytest.mark.parametrize(
    ("used", "asked", "then"),
    [
        (9_900, None, []),
        (9_900, 8_000, []),
        (9_900, 256, []),
        (9_900, 150, [50]),
        (9_000, 8_000, [900]),
        (9_000, None, [900]),
    ],
)
def test_where_nothing_can_leave_as_good_as_no_answer_is_for_those_alone_who_asked_for_as_little(
    used: int, asked: int | None, then: list[int]
) -> None:
    """All others get the provider's own words: many a client makes its own room then."""
    limits: list[int | None] = []

    def send(view: Wire, max_tokens: int | None) -> str:
        limits.append(max_tokens)
        if len(limits) == 1:
            raise Refused(f"input length and `max_tokens` exceed context limit: {used} + {asked or 32_000} > 10000")
        return "fine"

    wire = [{"role": "user", "content": "all of it " * 3_000}]
    if then:
        assert call("sync", Compactor(window=100_000), send, wire, max_tokens=asked)[0] == "fine"
    else:
        with pytest.raises(Refused):
            call("sync", Compactor(window=100_000), send, wire, max_tokens=asked)
    assert limits == [asked, *then]


@pytest.mark.parametrize(("ratio", "length", "compacts"), [(0.5, 90, True), (1.0, 60, False), (1.5, 60, True)])
def test_what_a_refusal_counted_of_one_conversation_brings_a_pass_of_another_on_and_puts_none_off(
    ratio: float, length: int, compacts: bool
) -> None:
    """As words of one may be lighter than those of the next."""
    provider, subject = Provider(1_000_000, ratio=ratio), Compactor(window=17_000)
    subject.windows.learn_counted("", None, 6_000, round(ratio * 6_000), is_refusal=True)
    _, result = call("sync", subject, provider, conversation(length))
    assert result.changed is compacts


@pytest.mark.parametrize(
    ("limit", "used", "asked", "lowered"),
    [
        (10_000, 6_000, 8_000, 3_900),
        (10_000, 9_990, 8_000, 5),
        (10_000, 9_999, 8_000, 1),
        (10_000, 6_000, None, 3_900),
        (10_000, 2_000, 1_000, None),  # as low already: the figures are about something else
        (None, None, 8_000, 4_000),
        (None, None, None, None),
        (None, None, 1, None),
    ],
)
def test_the_lowered_answer_limit(limit: int | None, used: int | None, asked: int | None, lowered: int | None) -> None:
    assert shorter_answer(Overflow("output_budget", limit, used), asked) == lowered


# ---- broken histories, items, rates ----


@COLORS
def test_a_history_that_was_broken_in_place_is_read_anew_and_sent_once_more(color: str) -> None:
    compactor = Compactor(window=100_000)
    wire = conversation(10)

    def send(view: Wire) -> str:
        calls = {one["id"] for message in view for one in message.get("tool_calls", ())}
        results = {message["tool_call_id"] for message in view if message["role"] == "tool"}
        if calls != results:
            raise Refused("An assistant message with 'tool_calls' must be followed by tool messages")
        return "fine"

    call(color, compactor, send, wire)
    wire[3]["tool_call_id"] = "call_of_nobody"
    sent: list[Wire] = []

    def recorded(view: Wire) -> str:
        sent.append(view)
        return send(view)

    response, result = call(color, compactor, recorded, wire)
    assert response == "fine"
    assert len(sent) == 2
    assert "history_repaired" in names(result)


@COLORS
def test_where_roles_must_alternate_neighbors_are_joined_now_and_from_then_on(color: str) -> None:
    wire: Wire = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    sent: list[list[str]] = []

    def send(view: Wire) -> str:
        roles = [message["role"] for message in view]
        sent.append(roles)
        if any(one == two for one, two in itertools.pairwise(roles)):
            raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
        return "fine"

    compactor = Compactor(window=100_000)
    call(color, compactor, send, wire)
    assert sent == [["user", "user"], ["user"]]
    call(color, compactor, send, wire)
    assert sent[2:] == [["user"]]


@COLORS
def test_a_history_that_is_right_and_refused_all_the_same_is_not_sent_again(color: str) -> None:
    sent: list[Wire] = []

    def send(view: Wire) -> str:
        sent.append(view)
        raise Refused("tool_use ids were found without tool_result blocks immediately after: x")

    with pytest.raises(Refused):
        call(color, Compactor(window=100_000), send, conversation(5))
    assert len(sent) == 1


@COLORS
def test_one_item_over_its_cap_is_clipped_and_the_rest_stays(color: str) -> None:
    wire = conversation(10)
    wire[5]["content"] = "".join(f"row {n} | {n * 7} | ok\n" for n in range(3_000))
    cap = 10_000

    def send(view: Wire) -> str:
        for number, message in enumerate(view):
            if len(message["content"]) > cap:
                raise Refused(
                    f"Invalid 'messages[{number}].content': string too long. Expected a string with maximum length "
                    f"{cap}, but got a string with length {len(message['content'])} instead."
                )
        return "fine"

    _, result = call(color, Compactor(window=1_000_000), send, wire)
    assert 100 < len(result.messages[5]["content"]) <= cap
    assert [new for n, new in enumerate(result.messages) if n != 5] == [old for n, old in enumerate(wire) if n != 5]
    assert next(entry for entry in result.ledger if entry.index == 5).fate == "shortened"
    _, again = call(color, Compactor(window=1_000_000), send, wire, result.compaction)
    assert again.messages == result.messages


def calls(*ids: str, arguments: str = "{}") -> dict[str, Any]:
    named = [{"id": id, "type": "function", "function": {"name": "write", "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": "I write it.", "tool_calls": named}


LONG = json.dumps({"text": "".join(f"row {n} | {n * 7} | ok\n" for n in range(3_000))})


@pytest.mark.parametrize(
    ("end", "is_clipped"),
    [
        ([calls("waits", arguments=LONG), {"role": "user", "content": "Stop."}], True),
        ([calls("waits", arguments=LONG)], False),
        ([calls("waits", "done"), {"role": "tool", "tool_call_id": "done", "content": LONG}], True),
    ],
    ids=["a call that the user interrupted", "a call that is about to run", "a result beside a call that is"],
)
def test_for_a_cap_nothing_of_a_waiting_call_is_clipped_but_what_is_not_run_any_more(
    end: Wire, is_clipped: bool
) -> None:
    def send(view: Wire) -> str:
        if len(json.dumps(view)) > 60_000:
            raise Refused(
                "Invalid 'messages[6].content': string too long. Expected a string with maximum length 10000, got"
            )
        return "fine"

    wire = [*conversation(3), *end]
    if is_clipped:
        _, result = call("sync", Compactor(window=1_000_000), send, wire)
        assert sum(entry.fate == "shortened" for entry in result.ledger) == 1
    else:
        with pytest.raises(Refused):
            Compactor(window=1_000_000).call(send, wire)


def test_what_the_user_said_last_is_not_clipped_for_a_cap() -> None:
    wire = [*conversation(3), {"role": "user", "content": "x" * 5_000}]

    def send(view: Wire) -> str:
        raise Refused("Invalid 'messages[8].content': string too long. Expected a string with maximum length 4000, got")

    with pytest.raises(Refused):
        Compactor(window=100_000).call(send, wire)


def test_an_unnamed_cap_halves_the_largest_item() -> None:
    wire = conversation(10)
    wire[5]["content"] = "".join(f"row {n} | {n * 7} | ok\n" for n in range(3_000))

    def send(view: Wire) -> str:
        if len(view[5]["content"]) > 30_000:
            raise Refused("messages.5.content: text block is too large")
        return "fine"

    _, result = call("sync", Compactor(window=1_000_000), send, wire)
    assert len(result.messages[5]["content"]) <= 30_000


@COLORS
def test_an_old_image_over_its_cap_becomes_a_reference(color: str) -> None:
    wire = conversation(6)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}
    wire[5]["content"] = [{"type": "text", "text": "screenshot"}, image]

    def send(view: Wire) -> str:
        if "base64" in json.dumps(view):
            raise Refused("messages.5.content.1: image exceeds 5000 bytes maximum: 6750 bytes > 5000 bytes")
        return "fine"

    _, result = call(color, Compactor(window=100_000), send, wire)
    assert "screenshot" in json.dumps(result.messages[5])


@COLORS
@pytest.mark.parametrize("answer", [0, 2_000])
def test_a_rate_limit_below_the_prompt_is_met_by_a_smaller_prompt(color: str, answer: int) -> None:
    def send(view: Wire) -> str:
        requested = count_tokens(view) + answer
        if requested > 8_000:
            text = f"Request too large for gpt-4o on tokens per min (TPM): Limit 8000, Requested {requested}."
            raise Refused(text, 429)
        return "fine"

    _, result = call(color, Compactor(window=100_000), send, conversation(100))
    assert result.tokens_after + answer <= 8_000
    assert [event.data["kind"] for event in result.events if event.name == "request_overflowed"] == [
        "rate_limit_too_small"
    ]


def test_a_rate_limit_that_the_answer_alone_fills_leaves_half_of_it_to_the_prompt() -> None:
    sent: list[int] = []

    def send(view: Wire) -> str:
        sent.append(count_tokens(view))
        if len(sent) == 1:
            raise Refused("Request too large for x on tokens per min (TPM): Limit 8000, Requested 90000.", 429)
        return "fine"

    Compactor(window=100_000).call(send, conversation(100))
    assert sent[1] <= 4_000


# ---- answers that were given without reading everything ----


@dataclass
class Truncating:
    """Reads the last ``window`` tokens of what it gets, in silence."""

    window: int
    sent: list[int] = field(default_factory=list)
    closed: int = 0

    def __call__(self, view: Wire) -> Any:
        tokens = count_tokens(view)
        self.sent.append(tokens)
        return Closable(self, min(tokens, self.window))


@dataclass
class Closable:
    """An answer that holds a connection."""

    owner: Truncating
    read: int

    @property
    def usage(self) -> dict[str, int]:
        return {"prompt_tokens": self.read}

    def close(self) -> None:
        self.owner.closed += 1


@COLORS
def test_a_prompt_that_was_read_in_part_is_compacted_and_sent_again(color: str) -> None:
    """Usage says fewer input tokens than were sent."""
    provider = Truncating(6_000)
    response, result = call(color, Compactor(window=100_000), provider, conversation(100))
    assert len(provider.sent) == 2
    assert provider.sent[1] == response.read <= 6_000
    assert provider.closed == 1
    assert result.trigger == "overflow: truncated_silently"
    assert result.calibration.ratio == pytest.approx(1.0, abs=0.02)


class Unclosable(Truncating):
    def __call__(self, view: Wire) -> Any:
        answer = super().__call__(view)
        answer.close = self.fail
        return answer

    def fail(self) -> None:
        self.closed += 1
        raise RuntimeError("Attempted to call a sync close on an async stream.")


class UnclosableLater(Unclosable):
    async def fail(self) -> None:  # type: ignore[override]
        super().fail()


@COLORS
@pytest.mark.parametrize("kind", [Unclosable, UnclosableLater])
def test_an_answer_that_is_given_up_and_cannot_be_closed_does_not_keep_the_smaller_view_from_being_sent(
    color: str, kind: type[Unclosable]
) -> None:
    provider = kind(6_000)
    _, result = call(color, Compactor(window=100_000), provider, conversation(100))
    assert (len(provider.sent), provider.closed) == (2, 1)
    assert result.trigger == "overflow: truncated_silently"


@COLORS
def test_an_endpoint_whose_usage_counts_something_else_is_believed_once(color: str) -> None:
    """Some servers report only what their cache did not hold."""
    sent: list[int] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(count_tokens(view))
        return {"usage": {"prompt_tokens": count_tokens(view) // 3}}

    compactor = Compactor(window=100_000)
    _, result = call(color, compactor, send, conversation(100))
    assert "usage_distrusted" in names(result)
    assert result.calibration == Calibration()
    call(color, compactor, send, conversation(100), result.compaction)
    assert len(sent) == 3


@COLORS
def test_a_tiny_figure_that_nothing_can_meet_ends_in_the_answer_that_was_given(color: str) -> None:
    sent: list[int] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(len(view))
        return {"usage": {"prompt_tokens": 12}}

    wire = [*conversation(3), {"role": "user", "content": "fact " * 3_000}]
    response, result = call(color, Compactor(window=100_000), send, wire)
    assert response == {"usage": {"prompt_tokens": 12}}
    assert len(sent) == 1
    assert result.messages == wire


@COLORS
def test_an_answer_that_the_window_cut_off_is_asked_for_again_with_room(color: str) -> None:
    answers = [
        {"stop_reason": "model_context_window_exceeded", "usage": {"input_tokens": 14_000, "output_tokens": 900}},
        {"stop_reason": "end_turn", "usage": {"input_tokens": 6_000, "output_tokens": 900}},
    ]
    sent: list[int] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(count_tokens(view))
        return answers[len(sent) - 1]

    response, _ = call(color, Compactor(window=100_000), send, conversation(80))
    assert response is answers[1]
    assert sent[1] < sent[0] / 1.5


@pytest.mark.parametrize(
    "usage", [{}, {"output_tokens": 900}, {"input_tokens": 0, "output_tokens": 900}, {"input_tokens": 14_000}]
)
def test_an_answer_that_the_window_cut_off_is_asked_for_again_whatever_its_usage_leaves_out(
    usage: dict[str, int],
) -> None:
    """Without the prompt's count no limit follows: the tokens of an answer alone are none."""
    answers: list[dict[str, Any]] = [
        {"stop_reason": "model_context_window_exceeded", "usage": usage},
        {"stop_reason": "end_turn"},
    ]
    sent: list[int] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(count_tokens(view))
        return answers[len(sent) - 1]

    response, _ = call("sync", Compactor(window=100_000), send, conversation(80))
    assert response is answers[1]
    assert 1_000 < sent[1] < sent[0]


@pytest.mark.parametrize(
    ("observations", "ratio", "estimated", "texts", "least"),
    [
        (0, 1.0, 10_000, 10_000, 7_000),
        (1, 1.0, 10_000, 10_000, 7_000),
        (2, 1.0, 10_000, 10_000, 8_500),  # corrected by what this conversation's provider reported
        (2, 1.3, 10_000, 10_000, 8_500),  # never above the estimate
        (2, 0.5, 10_000, 10_000, 4_250),
        (0, 1.0, 10_000, 2_000, 1_400),  # the rest is media and reasoning
        (0, 1.0, 10_000, 999, 0),
        (0, 1.0, 1_000, 1_000, 700),
        (0, 1.0, 999, 999, 0),
    ],
)
def test_a_prompt_counts_as_read_in_part_below_a_share_of_its_texts_and_never_where_it_is_short(
    observations: int, ratio: float, estimated: int, texts: int, least: int
) -> None:
    """``least``: what a provider reports at least that has read it all."""
    view = replace(
        Compactor(window=100_000).compact(conversation(2)),
        calibration=Calibration(ratio, observations),
        estimated_tokens=estimated,
        _text_tokens=lambda: texts,
    )
    assert not is_partly_read(least, view)
    assert is_partly_read(least - 1, view) is (least > 0)


def test_small_prompts_and_hosted_tools_are_never_taken_for_truncated() -> None:
    for wire, answer in (
        (conversation(2), {"usage": {"prompt_tokens": 20}}),
        (conversation(40), {"usage": {"input_tokens": 20, "server_tool_use": {"web_search_requests": 2}}}),
        (conversation(40), {"usage": {"prompt_tokens": 0}}),
        (conversation(40), {"usage": None}),
    ):
        sent = []
        Compactor(window=100_000).call(lambda view, a=answer, s=sent: (s.append(view), a)[1], wire)
        assert len(sent) == 1


# ---- calibration ----


@COLORS
@pytest.mark.parametrize("ratio", [0.75, 1.4])
def test_usage_for_what_was_sent_corrects_the_next_turn_in_both_directions(color: str, ratio: float) -> None:
    wire = conversation(50)
    provider = Provider(100_000, ratio=ratio)
    compactor = Compactor(window=100_000)
    _, first = call(color, compactor, provider, wire)
    assert first.tokens_after == first.estimated_tokens
    assert first.calibration.ratio == pytest.approx(ratio, rel=0.01)
    _, second = call(color, compactor, provider, wire, first.compaction, calibration=first.calibration)
    assert second.tokens_after == pytest.approx(provider.sent[-1], rel=0.01)


@pytest.mark.parametrize("ratio", [0.7, 1.3, 1.9])
def test_a_calibrated_pass_ends_below_the_target_as_the_provider_counts(ratio: float) -> None:
    """Also where the newest result has to be clipped."""
    wire = conversation(100)
    wire[-1]["content"] = " ".join(f"/var/log/app_{n}.log" for n in range(4_000))
    calibration = Calibration(ratio, 4)
    out = Compactor(window=10_000).compact(wire, calibration=calibration)
    assert out.changed
    assert count_tokens(out.messages) * ratio <= out.target + 1
    assert out.compaction is not None
    assert out.compaction.tokens_after >= out.tokens_after


@pytest.mark.strict
def test_the_same_state_decides_the_same_way_with_and_without_memory() -> None:
    """The calibration is an argument, and nothing else of usage is remembered."""
    wire = conversation(100)
    used = Compactor(window=10_000)
    used.compact(wire, calibration=Calibration(1.6, 3))
    for calibration in (None, Calibration(1.3, 2), Calibration(0.8, 2)):
        one = used.compact(wire, calibration=calibration)
        two = Compactor(window=10_000).compact(wire, calibration=calibration)
        assert one.messages == two.messages
        assert one.compaction == two.compaction
        assert one.tokens_before == two.tokens_before


def test_a_smaller_count_by_the_provider_puts_a_pass_off_and_a_larger_one_brings_it_on() -> None:
    wire = conversation(45)
    size = Compactor(window=100_000).compact(wire).tokens_after
    window = int(size / 0.8)
    assert Compactor(window=window).compact(wire).changed
    assert not Compactor(window=window).compact(wire, calibration=Calibration(0.8, 1)).changed
    wide = int(size / 0.7)
    assert not Compactor(window=wide).compact(wire).changed
    assert Compactor(window=wide).compact(wire, calibration=Calibration(1.25, 1)).changed


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 0}, {"prompt_tokens": None}])
def test_missing_or_zero_usage_teaches_nothing(usage: dict[str, Any]) -> None:
    _, result = call("sync", Compactor(window=100_000), lambda view: {"usage": usage}, conversation(30))
    assert result.calibration == Calibration()


def test_what_is_no_calibration_is_refused() -> None:
    with pytest.raises(InputError, match=r"out\.calibration"):
        Compactor(window=10_000).compact(conversation(2), calibration=1.2)  # type: ignore[arg-type]
    for ratio, observations in ((0.0, 1), (9.0, 1), (float("nan"), 1), (1.0, -1)):
        with pytest.raises(InputError, match="ratio"):
            Calibration(ratio, observations)


# ---- windows ----


class Stored:
    """A store of learned windows, as a session store may implement it."""

    def __init__(self) -> None:
        self.windows: dict[tuple[str, str], int] = {}
        self.loads = 0

    def load_window(self, endpoint: str, model: str) -> int | None:
        self.loads += 1
        return self.windows.get((endpoint, model))

    def save_window(self, endpoint: str, model: str, tokens: int) -> None:
        self.windows[endpoint, model] = tokens


class AsyncStored(Stored):
    async def load_window(self, endpoint: str, model: str) -> int | None:  # type: ignore[override]
        return super().load_window(endpoint, model)

    async def save_window(self, endpoint: str, model: str, tokens: int) -> None:  # type: ignore[override]
        super().save_window(endpoint, model, tokens)


@COLORS
@pytest.mark.parametrize("kind", [Stored, AsyncStored])
def test_a_stated_window_outlives_the_process_for_its_endpoint_and_model(color: str, kind: type[Stored]) -> None:
    store = kind()
    wire = conversation(100)
    options = {"model": "m", "endpoint": "http://here/"}
    call(color, Compactor(windows=store), Provider(9_000), wire, **options)
    assert store.windows == {("http://here/", "m"): 9_000}
    provider = Provider(9_000)
    fresh = Compactor(windows=store)
    _, result = call(color, fresh, provider, wire, **options)
    assert len(provider.sent) == 1
    assert (result.window, result.window_source) == (9_000, "learned")
    call(color, fresh, provider, wire, **options)
    assert store.loads == 2
    other = fresh.compact(wire, model="m", endpoint="http://there/")
    assert (other.window, other.window_source) == (DEFAULT_WINDOW, "default")


def test_a_guess_is_not_stored_and_never_goes_below_what_was_taken() -> None:
    store = Stored()
    compactor = Compactor(window=100_000, windows=store)
    provider = Provider(12_000, names_limit=False)
    wire = conversation(60)
    _, result = call("sync", compactor, provider, wire)
    taken = provider.sent[-1]
    _, result = call("sync", compactor, provider, wire + conversation(40)[2:], result.compaction)
    assert not store.windows
    assert result.window >= taken


@COLORS
@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.3])
def test_a_limit_that_no_one_names_is_met_once_also_where_no_calibration_is_handed_on(color: str, ratio: float) -> None:
    """What was taken is as the provider counts. What was refused was as we do, and seemed to be less: a window half as
    large was learned, given up with the next answer, and every view refused that had grown again."""
    provider = Provider(8_000, names_limit=False, ratio=ratio)
    compactor, wire, record = Compactor(window=64_000), conversation(4), None
    for turn in range(30):
        wire = wire + conversation(6, words=120 + turn)[2:]
        _, result = call(color, compactor, provider, wire, record)
        record = result.compaction
    refused = [size for size in provider.sent if size > provider.limit]
    assert len(refused) == 1
    assert result.window_source == "learned"


@COLORS
def test_a_store_that_is_out_of_order_costs_a_refused_request_and_no_call(color: str) -> None:
    class Broken:
        def load_window(self, endpoint: str, model: str) -> int | None:
            raise OSError("disk")

        def save_window(self, endpoint: str, model: str, tokens: int) -> None:
            raise OSError("disk")

    _, result = call(color, Compactor(windows=Broken()), Provider(9_000), conversation(100))
    assert names(result).count("window_store_failed") == 2


@pytest.mark.parametrize("useless", [None, 0, -4, "9000", True, 12])
def test_what_a_store_returns_is_checked(useless: Any) -> None:
    store = Stored()
    store.windows["", ""] = useless
    assert Compactor(windows=store).compact(conversation(2)).window_source == "default"


def test_the_source_of_the_window_is_in_an_event() -> None:
    out = Compactor(model="openai:gpt-4o").compact(conversation(2))
    found = next(event for event in out.events if event.name == "window_resolved")
    assert (found.data["tokens"], found.data["source"], found.data["model"]) == (128_000, "registry", "openai:gpt-4o")
    out = Compactor(window=9_000).compact(conversation(2), model="gpt-4o")
    assert out.window_source == "explicit"


def test_a_model_object_says_its_window_itself() -> None:
    class ChatModel:
        profile = {"max_input_tokens": 7_000}  # noqa: RUF012 - as LangChain's models have it
        model_name = "gpt-4o"

    out = Compactor(model=ChatModel()).compact(conversation(2))
    assert (out.window, out.window_source) == (7_000, "profile")
    assert Compactor(model=object()).compact(conversation(2)).window_source == "default"


@pytest.mark.parametrize("trigger", [("tokens", 60_000), [{"tokens": 60_000, "messages": 2}]])
def test_a_trigger_above_a_learned_window_comes_down_with_it(trigger: Any) -> None:
    compactor = Compactor(window=100_000, trigger=trigger)
    provider = Provider(10_000)
    wire = conversation(100)
    _, result = call("sync", compactor, provider, wire)
    for _ in range(3):
        wire = wire + conversation(30)[2:]
        _, result = call("sync", compactor, provider, wire, result.compaction)
    assert sum(tokens > 10_000 for tokens in provider.sent) == 1


def test_off_stays_off_and_an_overflow_is_still_recovered() -> None:
    compactor = Compactor(window=100_000, trigger=None)
    provider = Provider(10_000)
    _, result = call("sync", compactor, provider, conversation(100))
    assert result.changed
    assert not compactor.compact(conversation(110)).changed


def test_our_own_overflow_is_understood_and_keeps_its_figures() -> None:
    sent: list[int] = []

    def send(view: Wire) -> str:
        sent.append(count_tokens(view))
        if sent[-1] > 9_000:
            raise ContextOverflow(limit=9_000, used=sent[-1])
        return "fine"

    _, result = call("sync", Compactor(window=100_000), send, conversation(100))
    assert result.tokens_after <= 9_000
    assert issubclass(StillTooLong, ContextfoldError)


@crossed(color=("sync", "async"), quick=1)
def test_a_summary_that_was_made_for_a_larger_window_shrinks_with_it(color: str) -> None:
    """The view is nothing but the summary and what must stay, and the window turns out smaller than the view."""
    wire = conversation(800)
    compactor = Compactor()
    provider = Provider(6_000)
    _, result = call(color, compactor, provider, wire)
    assert len(provider.sent) == 2
    assert provider.sent[0] > 6_000 >= provider.sent[1]
    assert result.summary is not None
    assert result.summary.evidence
    assert "/srv/app/module_" in result.summary.evidence


def test_what_a_tiny_request_took_is_no_reason_to_take_a_later_one_for_truncated() -> None:
    """ "Hello" and its frame are nine tokens for some, and four for others."""
    provider = Provider(100_000)
    wire = conversation(50)
    compactor = Compactor(window=100_000)
    _, first = call("sync", compactor, lambda view: {"usage": {"prompt_tokens": 9}}, wire[1:2])
    assert first.calibration == Calibration()
    call("sync", compactor, provider, wire, calibration=Calibration(1.5, 1))
    assert len(provider.sent) == 1


def test_reasoning_and_media_that_a_provider_does_not_count_are_no_reason_either() -> None:
    wire = conversation(12)
    wire[-2]["reasoning_content"] = "Let me think about module names. " * 2_000
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    wire.insert(2, {"role": "user", "content": [image] * 8})
    sent: list[Wire] = []

    def send(view: Wire) -> dict[str, Any]:
        sent.append(view)
        return {"usage": {"prompt_tokens": result.text_tokens}}

    result = Compactor(window=100_000).compact(wire)
    assert result.text_tokens < 0.6 * result.estimated_tokens
    Compactor(window=100_000).call(send, wire)
    assert len(sent) == 1


@COLORS
def test_a_guess_gives_way_before_it_makes_a_conversation_impossible(color: str) -> None:
    """The instructions take nearly all of a window that no one ever named."""
    wire = conversation(6)
    wire[0]["content"] = "Rule number one. " * 1_850
    provider = Provider(8_000, names_limit=False)
    assert 0.9 * 8_000 < count_tokens(wire[:2]) < 0.95 * 8_000
    compactor = Compactor(window=100_000)
    record = None
    calibration = None
    for turn in range(6):
        wire = wire + conversation(8, words=60 + turn)[2:]
        _, result = call(color, compactor, provider, wire, record, calibration=calibration)
        record, calibration = result.compaction, result.calibration
    assert provider.sent[-1] <= 8_000
    assert len(provider.sent) <= 10


@pytest.mark.parametrize(
    ("budget", "before", "now", "sent"),
    [
        (4_000, 8_000, 5_000, 4_000),
        (7_999, 8_000, 5_000, 2_048),
        (7_999, 8_000, 1_500, 1_024),
        (9_000, 8_000, 500, 9_000),
        (9_000, None, 5_000, 2_048),
        (4_000, None, 5_000, 4_000),
    ],
)
def test_a_budget_for_thinking_follows_the_answer_limit(budget: int, before: int | None, now: int, sent: int) -> None:
    """``None``: the request named no limit, and frameworks put the model's largest in its place."""
    assert shorter_thinking({"budget_tokens": budget}, before, now) == {"budget_tokens": sent}


def test_an_answer_with_no_room_for_the_least_budget_is_given_without_thinking() -> None:
    """Anthropic takes no budget below 1,024 tokens, and none that is not below the answer limit."""
    assert shorter_thinking({"type": "enabled", "budget_tokens": 31_999}, 32_000, 1_024) == {"type": "disabled"}
    assert shorter_thinking({"type": "adaptive"}, 32_000, 1_024) == {"type": "adaptive"}


@pytest.mark.parametrize("named", [True, False])
def test_a_refusal_of_one_long_item_brings_nothing_back_that_was_shortened(named: bool) -> None:
    """What counts is how long an item is in the view that was refused, not how long it once was."""
    most = 12_000

    def turn(name: str, length: int) -> list[Any]:
        call = {"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}
        lines = "\n".join(f"file {name} line {n} value {n * 7}" for n in range(length // 16))
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": lines[:length]},
        ]

    class Refused(Exception):
        status_code = 400
        code = "string_above_max_length"

    history: list[Any] = [{"role": "user", "content": "task"}]
    for n in range(17):
        history += turn(f"c{n}", 20_000)
    history += turn("last", 1_000)
    compactor, sent = Compactor(window=130_000, summarizer=lambda prompt: "s"), list[list[str]]()
    record = compactor.compact(history).compaction
    assert record is not None
    assert len(record.edits) > 10
    history += turn("new", 16_000)

    def send(view: list[Any]) -> str:
        sent.append([entry.get("content") or "" for entry in view])
        longest = max(map(len, sent[-1]))
        if longest > most:
            figure = f" Expected a string with maximum length {most}, but got one with length {longest} instead."
            raise Refused("Invalid 'messages[39].content': string too long." + (figure if named else ""))
        return "answered"

    assert compactor.call(send, history, record) == "answered"
    assert len(sent) == 2
    for before, after in zip(*sent, strict=True):
        assert before == after or len(before) > most


class _Undecipherable(Exception):
    status_code = 400
    body: ClassVar[dict[str, Any]] = {
        "error": {
            "message": "The encrypted content could not be verified. Reason: it could not be decrypted or parsed.",
            "code": "invalid_encrypted_content",
            "type": "invalid_request_error",
        }
    }


def test_an_item_of_reasoning_that_left_whole_is_told_as_dropped() -> None:
    """The ledger said that it is shortened, which is in the view."""
    thought: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}
    results: list[CompactionResult] = []

    def send(view: list[Any]) -> str:
        if thought in view:
            raise _Undecipherable(str(_Undecipherable.body))
        return "done"

    history = [{"role": "user", "content": "go"}, thought, call, output]
    Compactor(window=8_000).call(send, history, format="openai-responses", on_result=results.append)
    [result] = results
    assert result.messages == [history[0], call, output]
    assert [entry.fate for entry in result.ledger] == ["pinned", "dropped", "kept", "kept"]
