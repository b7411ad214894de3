"""The flow of a summary with summarizers of every temper: small windows, silent errors, stubborn lengths, refusals.

The promise behind all of them: a summarizer that takes N tokens, N from 2,000 up, never leaves a conversation
stuck, everything is read, and the number of calls stays within a multiple of what one reading needs.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from benchmarks.kinds import read_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextfold import formats
from contextfold.conversation.groups import group as grouped
from contextfold.errors import ContextOverflow, SummaryFailed
from contextfold.observe import Observer
from contextfold.ports import AsyncPorts, SyncPorts, run
from contextfold.summary.bisect import Summary, SummaryStats, summarize
from contextfold.summary.chunks import Unit
from contextfold.summary.options import SummaryOptions
from contextfold.summary.render import render_group
from contextfold.summary.summarizer import Answer, as_summarizer
from effort import examples
from real_files import files


def count(text: str) -> int:
    """Four characters a token, as the crudest of servers count."""
    return math.ceil(len(text) / 4)


class ProviderError(Exception):
    def __init__(self, text: str, status_code: int = 400) -> None:
        super().__init__(text)
        self.status_code = status_code


def named(limit: int, used: int) -> Exception:
    return ContextOverflow(limit=limit, used=used)


def provider(limit: int, used: int) -> Exception:
    return ProviderError(f"prompt is too long: {used} tokens > {limit} maximum")


def silent(limit: int, used: int) -> Exception:
    return ProviderError("Input is too long for requested model.")


def mute(limit: int, used: int) -> Exception:
    return ProviderError("Error code: 400")


def one_figure(limit: int, used: int) -> Exception:
    return ContextOverflow(limit=limit)


def budget(limit: int, used: int) -> Exception:
    return ProviderError(f"input length and `max_tokens` exceed context limit: {limit - 9} + 4096 > {limit}")


REJECTIONS = [named, provider, silent, one_figure, budget]


@dataclass
class Limited:
    """Rejects prompts of more than ``limit`` tokens (its tokens: ``scale`` of ours) and digests the others."""

    limit: int = 10**9
    reject: Callable[[int, int], Exception] = named
    answer: Callable[[str], Any] | None = None
    scale: float = 1.0
    delay: float = 0.0
    window: int | None = None
    prompts: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    def complete(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        time.sleep(self.delay)
        used = int(count(prompt) * self.scale)
        if used > self.limit:
            raise self.reject(self.limit, used)
        self.accepted.append(prompt)
        return (self.answer or digest)(prompt)

    @property
    def read(self) -> str:
        return "\n".join(sorted(self.accepted))


def digest(prompt: str) -> str:
    """The facts of the prompt, as many as the length asked for allows."""
    asked = int(re.findall(r"at most (\d+) tokens", prompt)[0])
    facts = list(dict.fromkeys(re.findall(r"fact-\d+", prompt)))
    return " ".join(facts[: max(1, asked // 3)]) or "nothing of note"


def stubborn(prompt: str) -> str:
    """A thousand tokens, whatever was asked."""
    return "many words " * 363


def conversation(sizes: Sequence[int]) -> list[Unit]:
    """One message each, of about so many tokens, that states one fact at its end."""
    return [
        Unit(f"[user]\n{'lorem ipsum dolor. ' * (size * 4 // 19)}fact-{number}.", (number,))
        for number, size in enumerate(sizes)
    ]


def ask(
    summarizer: Any,
    units: Sequence[Unit],
    *,
    previous: str | None = None,
    max_tokens: int = 2_000,
    observer: Observer | None = None,
    ports: Any = None,
    **options: Any,
) -> Summary:
    return run(asked(summarizer, units, previous, max_tokens, observer, ports or SyncPorts(), options))


async def asked(
    summarizer: Any,
    units: Sequence[Unit],
    previous: str | None,
    max_tokens: int,
    observer: Observer | None,
    ports: Any,
    options: dict[str, Any],
) -> Summary:
    return await summarize(
        units,
        previous=previous,
        summarizer=as_summarizer(summarizer),
        options=SummaryOptions(**options),
        max_tokens=max_tokens,
        language="en",
        ports=ports,
        count=count,
        observer=observer or Observer(),
    )


def ask_async(summarizer: Any, units: Sequence[Unit], **options: Any) -> Summary:
    async def main() -> Summary:
        return await asked(summarizer, units, None, 2_000, None, AsyncPorts(), options)

    return anyio.run(main)


def least_calls(units: Sequence[Unit], limit: int) -> int:
    """Requests that one reading of everything needs."""
    return math.ceil(sum(count(unit.text) for unit in units) / limit)


def everything_was_read(units: Sequence[Unit], summarizer: Limited) -> bool:
    return all(f"fact-{unit.indices[0]}." in summarizer.read for unit in units)


# ---- one request ----


def test_what_fits_is_one_request() -> None:
    units = conversation([300, 200, 400])
    summarizer = Limited()
    made = ask(summarizer, units)
    assert made.text == "fact-0 fact-1 fact-2"
    assert made.covered == {0, 1, 2}
    assert made.stats == SummaryStats(
        input_tokens=count(summarizer.prompts[0]), output_tokens=count(made.text), calls=1, chunk_count=1
    )
    assert "\n\n".join(unit.text for unit in units) in summarizer.prompts[0]


def test_a_previous_summary_is_updated_with_what_is_new_in_one_request() -> None:
    """Never summarized again."""
    summarizer = Limited()
    made = ask(summarizer, conversation([300]), previous="fact-900 was settled")
    assert made.text == "fact-900 fact-0"
    assert "<previous_summary>\nfact-900 was settled\n</previous_summary>" in summarizer.prompts[0]
    assert len(summarizer.prompts) == 1


@pytest.mark.parametrize("units", [[], [Unit(" \n", (3,))]])
def test_with_nothing_to_read_nobody_is_asked(units: list[Unit]) -> None:
    """Compacting nothing new changes nothing."""
    summarizer = Limited()
    assert ask(summarizer, units, previous="as it was") == Summary("as it was", frozenset(), SummaryStats())
    assert ask(summarizer, units).text == ""
    assert not summarizer.prompts


def test_the_providers_own_figures_are_reported_where_it_gives_them() -> None:
    made = ask(Limited(answer=lambda prompt: Answer("fact-0", "stop", False, 377, 5)), conversation([300]))
    assert (made.stats.input_tokens, made.stats.output_tokens) == (377, 5)


# ---- chunks ----


def test_a_known_window_is_never_overrun() -> None:
    units = conversation([400] * 60)
    observer = Observer()
    summarizer = Limited(4_000, window=4_000)
    made = ask(summarizer, units, observer=observer)
    assert sorted(summarizer.prompts) == sorted(summarizer.accepted)
    assert made.covered == set(range(60))
    assert made.stats.max_depth == 0
    assert made.stats.learned_window is None
    assert made.stats.chunk_count == 7
    assert [event.data["done"] for event in observer.events if event.name == "summary_chunked"] == [0]


def test_an_option_beats_what_the_summarizer_says_of_itself() -> None:
    summarizer = Limited(4_000, window=100_000)
    ask(summarizer, conversation([400] * 60), input_tokens=4_000)
    assert sorted(summarizer.prompts) == sorted(summarizer.accepted)


def test_chunks_are_cut_between_groups() -> None:
    units = conversation([400] * 20)
    summarizer = Limited(4_000, window=4_000)
    ask(summarizer, units)
    assert "[part " not in summarizer.read


def test_chunk_summaries_are_merged_in_order_and_together() -> None:
    summarizer = Limited(4_000, window=4_000)
    made = ask(summarizer, conversation([400] * 30))
    assert made.text.split() == [f"fact-{number}" for number in range(30)]
    assert len([prompt for prompt in summarizer.prompts if prompt.startswith("Merge")]) == 1


def test_a_previous_summary_is_merged_in_exactly_once_when_there_are_chunks() -> None:
    summarizer = Limited(4_000, window=4_000)
    made = ask(summarizer, conversation([400] * 30), previous="fact-900 was settled")
    with_previous = [prompt for prompt in summarizer.prompts if "fact-900" in prompt]
    assert len(with_previous) == 1
    assert with_previous[0].startswith("Update")
    assert made.text.split()[0] == "fact-900"


def test_no_prompt_exceeds_the_cap_on_one_string() -> None:
    summarizer = Limited()
    made = ask(summarizer, conversation([400] * 40), max_string_characters=9_000)
    assert max(map(len, summarizer.prompts)) <= 9_000
    assert made.covered == set(range(40))


def test_a_cap_on_characters_is_learned_from_the_error_that_names_it() -> None:
    class Capped(Limited):
        def complete(self, prompt: str) -> Any:
            if len(prompt) > 9_000:
                self.prompts.append(prompt)
                raise ProviderError(
                    "Invalid 'messages[0].content': string too long. Expected a string with maximum length 9000, "
                    f"but got a string with length {len(prompt)} instead."
                )
            return super().complete(prompt)

    summarizer = Capped()
    units = conversation([400] * 40)
    made = ask(summarizer, units)
    assert len(summarizer.prompts) - len(summarizer.accepted) == 1
    assert made.covered == set(range(40))
    assert everything_was_read(units, summarizer)


# ---- overflow ----


@pytest.mark.parametrize("reject", REJECTIONS)
@pytest.mark.parametrize("declared", [None, 60_000])
@pytest.mark.parametrize("limit", [2_000, 4_000, 8_000])
def test_a_window_that_is_unknown_or_wrongly_declared_is_found(reject: Any, declared: int | None, limit: int) -> None:
    units = conversation([30 + number * 37 % 900 for number in range(150)])
    summarizer = Limited(limit, reject, window=declared)
    observer = Observer()
    made = ask(summarizer, units, previous="fact-900", observer=observer)
    assert made.covered == set(range(150))
    assert not made.stats.truncated
    assert everything_was_read(units, summarizer)
    assert made.stats.learned_window is not None
    assert made.stats.learned_window <= (2 * limit if reject in (silent, budget) else limit)  # halving may stop above
    assert made.stats.calls == len(summarizer.prompts) <= 3 * least_calls(units, limit) + 20
    assert "summary_overflowed" in {event.name for event in observer.events}


def test_a_refusal_without_a_word_is_one_of_size_where_the_window_that_was_told_is_nearly_full() -> None:
    """Two vendors send an empty body. Of a short prompt it says nothing, and the error is raised as it is."""
    units = conversation([400] * 60)
    summarizer = Limited(6_000, mute, window=9_000)
    assert ask(summarizer, units).covered == set(range(60))
    assert everything_was_read(units, summarizer)
    with pytest.raises(ProviderError, match="400"):
        ask(Limited(6_000, mute, window=200_000), units)


def test_a_limit_named_once_is_kept_for_the_whole_run() -> None:
    summarizer = Limited(4_000)
    made = ask(summarizer, conversation([400] * 60))
    assert len(summarizer.prompts) - len(summarizer.accepted) == 1
    assert made.stats.max_depth == 1


def test_only_one_request_at_a_time_searches_a_window_that_errors_do_not_name() -> None:
    summarizer = Limited(2_000, silent)
    ask(summarizer, conversation([400] * 500))
    assert len(summarizer.prompts) - len(summarizer.accepted) <= 8  # log2 of 200,000 / 2,000


def test_a_message_larger_than_the_window_is_read_in_segments() -> None:
    log = "a long log line\n" * 5_000
    units = [*conversation([100]), Unit(f"[result of bash]\n{log}fact-1.", (1, 2))]
    summarizer = Limited(2_000)
    made = ask(summarizer, units)
    assert made.covered == {0, 1, 2}
    assert not made.stats.truncated
    assert re.search(r"\[part 2 of \d+: result of bash\]\na long log line", summarizer.read)
    assert summarizer.read.count("a long log line") == 5_000


def test_a_short_span_is_cut_by_size_and_a_long_one_between_messages() -> None:
    units = conversation([1_000] * 6)
    by_size, between = Limited(3_500, silent), Limited(3_500, silent)
    ask(by_size, units, min_messages=7)
    ask(between, units, min_messages=2)
    assert "[part 2 of" in by_size.read
    assert "[part " not in between.read


def test_beyond_the_greatest_depth_the_promised_window_is_tried_at_once() -> None:
    units = conversation([400] * 200)
    deep, flat = Limited(2_000, silent), Limited(2_000, silent)
    assert ask(deep, units).stats.max_depth == 6
    assert ask(flat, units, max_depth=0).stats.max_depth == 1
    assert everything_was_read(units, flat)


def test_what_fits_in_no_request_is_clipped_and_said() -> None:
    """Forced truncation comes last, and what was cut away does not count as summarized."""
    wordy = "w " * 1_200  # a prompt that leaves a window of 660 tokens about 40
    observer = Observer()
    summarizer = Limited(660, silent)
    made = ask(summarizer, [Unit("x" * 500, (0,))], prompt=wordy, observer=observer)
    assert made.stats.truncated
    assert made.covered == frozenset()
    assert "summary_truncated" in {event.name for event in observer.events}


@pytest.mark.parametrize("reject", REJECTIONS)
@pytest.mark.parametrize("declared", [None, 2_000])
def test_a_previous_summary_larger_than_the_window_costs_no_new_message(reject: Any, declared: int | None) -> None:
    """It is the culprit, not the message beside it: that is read alone, and counts as summarized."""
    summarizer = Limited(2_000, reject, window=declared)
    made = ask(summarizer, conversation([20]), previous="fact-900 " * 1_200, max_tokens=3_000)
    assert made.covered == {0}
    assert "fact-900" in made.text
    assert "fact-0" in made.text
    assert not made.stats.truncated


def test_a_window_that_is_told_but_counted_otherwise_is_first_taken_a_little_smaller() -> None:
    summarizer = Limited(2_000, silent, scale=1.25, window=2_000)
    made = ask(summarizer, conversation([400] * 60))
    assert made.stats.learned_window is not None
    assert made.stats.learned_window > 1_200


def test_a_summarizer_that_takes_nothing_is_given_up_with_a_reason() -> None:
    summarizer = Limited(50, silent)
    with pytest.raises(SummaryFailed, match=r"refuses even a prompt of .* tokens") as failure:
        ask(summarizer, conversation([400] * 5))
    assert failure.value.attempts == ("prompt_too_long",)
    assert len(summarizer.prompts) < 12


@pytest.mark.parametrize(("limit", "sizes"), [(500, [400] * 150), (1_000, [1_000] * 60), (1_000, [5_000] * 6)])
def test_a_summarizer_below_the_supported_window_is_not_asked_hundreds_of_times(limit: int, sizes: list[int]) -> None:
    summarizer = Limited(limit, silent)
    with pytest.raises(SummaryFailed, match=r"smaller ones would be needed.*at least 2,000 tokens") as failure:
        ask(summarizer, conversation(sizes))
    assert failure.value.attempts == ("prompt_too_long",)
    assert len(summarizer.prompts) < 12


def test_the_search_for_a_limit_leaves_no_crumbs_to_ask_about() -> None:
    """Pieces of what was too long are cut as one again, and only one of them at a time is refused."""
    summarizer = Limited(1_000, silent)
    ask(summarizer, conversation([190] * 80))
    assert sum(count(prompt) > 1_000 for prompt in summarizer.prompts) == 5
    assert len(summarizer.prompts) <= 50


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=60),
    limit=st.integers(2_000, 12_000),
    reject=st.sampled_from(REJECTIONS),
    declared=st.sampled_from([None, "right", 50_000]),
    scale=st.sampled_from([0.8, 1.0, 1.25]),
    answer=st.sampled_from([None, stubborn]),
    previous=st.sampled_from([None, "fact-900 " * 20, "fact-901 " * 1_000]),
    max_tokens=st.sampled_from([200, 1_000, 4_000]),
)
def test_every_summarizer_from_2000_tokens_up_reads_everything_within_bounds(
    sizes: list[int],
    limit: int,
    reject: Any,
    declared: Any,
    scale: float,
    answer: Any,
    previous: str | None,
    max_tokens: int,
) -> None:
    """It ends, all is read, the cap holds, and calls are linear in the chunks."""
    units = conversation(sizes)
    summarizer = Limited(limit, reject, answer, scale, window=limit if declared == "right" else declared)
    try:
        made = ask(summarizer, units, previous=previous, max_tokens=max_tokens)
    except SummaryFailed:
        if answer is stubborn and sum(count(unit.text) for unit in units) < 1_200:
            return  # a thousand tokens for less than that are no summary, and are refused
        raise
    assert made.covered == set(range(len(units)))
    assert everything_was_read(units, summarizer)
    assert count(made.text) <= max_tokens
    assert made.text.strip()
    assert made.stats.calls == len(summarizer.prompts)
    assert made.stats.calls <= 3 * made.stats.chunk_count + 24


@pytest.mark.strict
def test_every_real_conversation_is_read_whole_through_a_window_of_2000_tokens(transcripts: Path) -> None:
    """Every letter and digit of it, in order, in requests that were answered."""
    for units in real_conversations(transcripts):
        summarizer = Limited(2_000, answer=lambda prompt: "a few facts", window=2_000)
        made = ask(summarizer, units, ports=OneByOne())
        assert made.covered == {index for unit in units for index in unit.indices}
        assert not made.stats.truncated
        read = [found[1] for prompt in summarizer.accepted if (found := MATERIAL.search(prompt))]
        assert squeezed(LABEL.sub("", "".join(read))) == squeezed("".join(unit.text for unit in units))


class OneByOne(SyncPorts):
    async def gather(self, branches: Sequence[Any]) -> list[Any]:
        return [await branch() for branch in branches]


MATERIAL = re.compile(r"<conversation>\n(.*)\n</conversation>", re.DOTALL)
LABEL = re.compile(r"\[part \d+ of \d+[^\n]*\]")


def squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def real_conversations(folder: Path) -> Iterator[list[Unit]]:
    """The larger half of the conversations, rendered."""
    for path in files(folder, "**/*.json*"):
        for found in read_file(path) if path.stat().st_size > 60_000 and "probing" not in path.name else ():
            messages = formats.decode(found.messages, formats.get(found.format))
            groups = [group.indices for group in grouped(messages).groups]
            units = [Unit(render_group([messages[n] for n in indices]), tuple(indices)) for indices in groups]
            yield [unit for unit in units if unit.text]


# ---- stubborn lengths ----


def test_summaries_that_cannot_be_merged_are_joined_where_that_is_short_enough() -> None:
    summarizer = Limited(2_000, answer=stubborn, window=2_000)
    made = ask(summarizer, conversation([800] * 6), max_tokens=20_000)
    assert not made.stats.truncated
    assert made.text.count("many words " * 300) == made.stats.chunk_count == made.stats.calls


def test_merging_ends_for_a_summarizer_that_ignores_the_length_asked_for() -> None:
    """A thousand tokens each, and a window of two thousand: no two fit into one request."""
    observer = Observer()
    summarizer = Limited(2_000, answer=stubborn, window=2_000)
    made = ask(summarizer, conversation([800] * 40), max_tokens=800, observer=observer)
    assert count(made.text) <= 800
    assert made.stats.truncated
    assert made.covered == set(range(40))
    assert made.stats.calls <= 3 * made.stats.chunk_count + 2
    assert "summary_truncated" in {event.name for event in observer.events}


def test_a_long_final_summary_is_asked_once_to_be_shorter() -> None:
    answers = iter(["word " * 900, "short and fact-0"])
    summarizer = Limited(answer=lambda prompt: next(answers))
    made = ask(summarizer, conversation([2_000]), max_tokens=300)
    assert made.text == "short and fact-0"
    assert summarizer.prompts[1].startswith("Shorten")
    assert not made.stats.truncated


def test_merging_with_a_summarizer_that_refuses_every_merge_ends() -> None:
    class NoMerge(Limited):
        def complete(self, prompt: str) -> Any:
            if prompt.startswith(("Merge", "Shorten")):
                self.prompts.append(prompt)
                raise ContextOverflow()
            return super().complete(prompt)

    summarizer = NoMerge(4_000, window=4_000)
    made = ask(summarizer, conversation([400] * 60), max_tokens=60)
    assert count(made.text) <= 60
    assert made.stats.truncated
    assert len(summarizer.prompts) < 60


# ---- refused answers and other errors ----


def test_an_unusable_answer_is_asked_for_again_and_told_why() -> None:
    answers = iter(["", "fact-0 and no more"])
    observer = Observer()
    summarizer = Limited(answer=lambda prompt: next(answers))
    made = ask(summarizer, conversation([300]), observer=observer)
    assert made.text == "fact-0 and no more"
    assert made.stats.calls == 2
    assert "could not be used: it is blank" in summarizer.prompts[1]
    assert [event.data["reason"] for event in observer.events if event.name == "summary_rejected"] == ["it is blank"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "it is blank"),
        ("Previous conversation was too long to summarize.", "it is a placeholder"),
        (Answer("half a sum", "length"), "it was cut off"),
        (Answer("text", has_tool_calls=True), "it calls a tool"),
        ("word " * 2_000, "it is longer than its input"),
    ],
)
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_answers_that_stay_unusable_end_in_an_error_with_all_attempts(answer: Any, reason: str, retries: int) -> None:
    summarizer = Limited(answer=lambda prompt: answer)
    with pytest.raises(SummaryFailed, match=reason) as failure:
        ask(summarizer, conversation([300]), retries_on_rejection=retries)
    assert len(failure.value.attempts) == len(summarizer.prompts) == retries + 1


def test_a_retry_that_would_not_fit_repeats_the_plain_request() -> None:
    answers = iter([""])
    summarizer = Limited(2_000, window=2_000, answer=lambda prompt: next(answers, "fact-0"))
    ask(summarizer, conversation([1_785]))
    assert summarizer.prompts[0] == summarizer.prompts[1]


@pytest.mark.parametrize("text", ["Rate limit reached", "invalid x-api-key", "Connection error.", "Overloaded"])
def test_every_other_error_is_raised_as_it_is(text: str) -> None:
    """Only overflow leads to bisection."""
    error = ProviderError(text, 429)

    def fail(prompt: str) -> str:
        raise error

    for summary in (ask, ask_async):
        with pytest.raises(ProviderError) as raised:
            summary(fail, conversation([400] * 20), retries_on_failure=0)
        assert raised.value is error


def test_a_wrong_key_costs_no_more_calls_than_run_side_by_side() -> None:
    prompts: list[str] = []

    def fail(prompt: str) -> str:
        prompts.append(prompt)
        raise ProviderError("invalid x-api-key", 401)

    with pytest.raises(ProviderError):
        ask(fail, conversation([1_000] * 100), input_tokens=2_000, parallel=4)
    assert 1 <= len(prompts) <= 4  # one may have failed before the last of them began


# ---- options on every path ----


def test_the_callers_prompt_and_instructions_reach_every_request() -> None:
    """First, chunk, merge, update, shorten, retry."""
    kinds: set[str] = set()

    def answer(prompt: str) -> str:
        kind = re.search(r"Merge|Update|Shorten|could not be used", prompt)
        kinds.add(kind[0] if kind else "chunk")
        if kind is None and "fact-3." in prompt:
            return ""
        return "word " * 900 if kind is not None and kind[0] == "Update" else digest(prompt) + " pad" * 300

    summarizer = Limited(4_000, window=4_000, answer=answer)
    ask(
        summarizer,
        conversation([400] * 120),
        previous="fact-900 " * 200,
        max_tokens=600,
        prompt="Be a good scribe. {messages}",
        instructions="Name every port.",
    )
    assert kinds == {"chunk", "Merge", "Update", "Shorten", "could not be used"}
    assert all("Be a good scribe." in prompt and "Name every port." in prompt for prompt in summarizer.prompts)


def test_the_length_asked_for_suits_the_window_that_was_learned() -> None:
    summarizer = Limited(2_000)
    ask(summarizer, conversation([400] * 60), max_tokens=4_000)
    asked_for = [int(re.findall(r"at most (\d+) tokens", prompt)[0]) for prompt in summarizer.accepted]
    assert max(asked_for) <= 1_000
    assert "in English, at most" in summarizer.accepted[0]


@pytest.mark.parametrize("size", [300, 900, 1_700])
def test_no_longer_answer_is_asked_for_than_is_accepted(size: int) -> None:
    """A writer who uses all the length that he was given is not refused for it."""

    def obedient(prompt: str) -> str:
        return "word" * int(re.findall(r"at most (\d+) tokens", prompt)[0])

    summarizer = Limited(2_000, answer=obedient, window=2_000)
    made = ask(summarizer, conversation([size]))
    assert made.stats.calls == 1
    assert count(made.text) < size


# ---- both colors, side by side ----


@pytest.mark.parametrize(
    "make", [lambda: Limited(3_000), lambda: Limited(3_000, silent), lambda: Limited(window=2_000)]
)
def test_both_colors_give_the_same_summary(make: Callable[[], Limited]) -> None:
    units = conversation([30 + number * 53 % 1_500 for number in range(60)])
    first, second = make(), make()
    assert ask(first, units) == ask_async(second, units)
    assert sorted(first.prompts) == sorted(second.prompts)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_eight_chunks_run_side_by_side(color: str) -> None:
    """No chunk is answered before all eight were asked for."""
    units = conversation([1_700] * 8)
    asked = 0

    def met() -> bool:
        return asked >= 8

    class Together:
        window = 2_000
        arrived = threading.Condition()

        def complete(self, prompt: str) -> str:
            nonlocal asked
            with self.arrived:
                asked += 1
                self.arrived.notify_all()
                assert self.arrived.wait_for(met, timeout=30)
            return digest(prompt)

    class TogetherAsync:
        window = 2_000

        async def complete(self, prompt: str) -> str:
            nonlocal asked
            asked += 1
            with anyio.fail_after(30):
                while not met():
                    await anyio.sleep(0.01)
            return digest(prompt)

    made = ask_async(TogetherAsync(), units) if color == "async" else ask(Together(), units)
    assert made.stats.chunk_count == 8


def test_no_more_requests_run_at_once_than_allowed() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def answer(prompt: str) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1
        return digest(prompt)

    ask(answer, conversation([1_700] * 30), input_tokens=2_000, parallel=3, ports=SyncPorts(3))
    assert most == 3


def test_the_outcome_does_not_depend_on_who_answers_first() -> None:
    """Branches report to the trunk, in order."""
    units = conversation([1_700] * 12)

    def events(delay: Callable[[str], float]) -> list[Any]:
        def answer(prompt: str) -> str:
            time.sleep(delay(prompt))
            return digest(prompt)

        observer = Observer()
        ask(Limited(2_500, provider, answer), units, observer=observer)
        return [(event.name, dict(event.data)) for event in observer.events]

    assert events(lambda prompt: len(prompt) % 7 / 1_000) == events(lambda prompt: (7 - len(prompt) % 7) / 1_000)
