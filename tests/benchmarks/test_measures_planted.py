"""Planted facts: what is asked is in the conversation and nowhere else, and answers are told from losses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.replay import collect, jobs, tokens
from benchmarks.replay.chat import Message, content_text
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.experiments import planted as experiment
from benchmarks.replay.measure import added
from benchmarks.replay.planted.facts import (
    KINDS,
    LANGUAGES,
    NEAR,
    Language,
    facts,
    is_told,
    is_verbatim,
    parts_together,
    squeezed,
)
from benchmarks.replay.planted.planting import Planted, language_of, plant
from benchmarks.replay.planted.retention import AFTER, Retention
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.strategies.none import Everything
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(autouse=True)
def _estimate() -> None:
    tokens.use(tokens.ESTIMATE)


def dialogue(turns: int, text: str = "Part {n} is about the weather, and more of the same.") -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text.format(n=n)} for n in range(turns)]


# ---- facts ----


def test_there_are_four_facts_of_each_of_ten_kinds_in_each_language() -> None:
    for language in LANGUAGES:
        assert Counter(fact.kind for fact in facts(language)) == dict.fromkeys(KINDS, 4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_fact_is_told_by_its_own_sentence_and_by_no_other(language: str) -> None:
    for fact in facts(language):
        own = squeezed(f"Before it. {fact.sentence} After it.")
        assert is_told(fact, own)
        assert is_verbatim(fact, own)
        others = squeezed("\n".join(other.sentence for other in facts(language) if other is not fact))
        assert not is_told(fact, others)
        assert not is_verbatim(fact, others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_parts_say_it_in_other_words_but_only_together(language: str) -> None:
    for fact in facts(language):
        together, apart = " and ".join(fact.parts), (" " + "x" * NEAR + " ").join(fact.parts)
        assert is_told(fact, squeezed(together))
        assert parts_together(fact, squeezed(together)) == len(fact.parts)
        assert is_told(fact, squeezed(apart)) == (len(fact.parts) == 1)


def test_a_part_inside_a_longer_word_or_number_does_not_count() -> None:
    fact = next(fact for fact in facts("en") if "412 ms" in fact.parts)
    assert is_told(fact, squeezed("412 ms for 36,218 requests"))
    assert not is_told(fact, squeezed("1412 ms for 36,218 requests"))
    assert not is_told(fact, squeezed("412 msec for 36,218 requests"))


# ---- planting ----


def test_facts_are_spread_over_a_conversation_and_nothing_else_changes() -> None:
    before = dialogue(200)
    after, planted = plant(before, "one")
    assert len(planted) == 40
    assert len({place.index for place in planted}) == 40
    assert min(place.index for place in planted) < 20 < 180 < max(place.index for place in planted)
    changed = {place.index: place.fact for place in planted}
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if index in changed:
            assert new["content"].startswith(old["content"])
            assert new["content"].endswith(changed[index].sentence)
            assert (
                new["role"] == old["role"] == (changed[index].voice if changed[index].voice != "tool" else "assistant")
            )
        else:
            assert new is old


def test_planting_follows_from_the_conversation_and_its_name_alone() -> None:
    first, again, other = (plant(dialogue(100), name)[1] for name in ("one", "one", "two"))
    assert first == again
    assert [place.fact for place in first] != [place.fact for place in other]


def test_the_first_user_message_and_structured_texts_get_no_fact() -> None:
    messages = [*dialogue(2), *dialogue(20, '{{"n": {n}}}'), *dialogue(20, "<note>{n}</note>")]
    _, planted = plant(messages, "one")
    assert {place.index for place in planted} <= {1}


def test_a_fact_that_the_conversation_tells_already_is_not_planted() -> None:
    known = facts("en")[0]
    messages = [*dialogue(100), {"role": "user", "content": known.sentence}]
    assert known not in {place.fact for place in plant(messages, "one")[1]}


def test_facts_of_tools_stand_inside_their_outputs() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    messages: list[Message] = dialogue(4)
    for _ in range(20):
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "1", "content": "one\ntwo\nthree\nfour"})
    after, planted = plant(messages, "one")
    outputs = [after[p.index]["content"].split("\n") for p in planted if after[p.index]["role"] == "tool"]
    assert len(outputs) == 12
    assert all(lines[0] == "one" and len(lines) == 5 for lines in outputs)
    assert {lines[-1] == "four" for lines in outputs} == {True, False}


def test_blocks_of_text_and_images_keep_their_shape() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = dialogue(40)
    for message in messages:
        message["content"] = [{"type": "text", "text": message["content"]}, image, "more"]
    after, planted = plant(messages, "one")
    assert planted
    for place in planted:
        blocks = after[place.index]["content"]
        assert blocks[:2] == messages[place.index]["content"][:2]
        assert blocks[2].endswith(place.fact.sentence)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please look at the parser and tell me what it does.", "en"),
        ("请看一下解析器，告诉我它在做什么。", "zh"),
        ("パーサーを見て、何をしているか教えてください。", "ja"),
        ("Bitte sieh dir den Parser an und sag mir, was er nicht kann.", "de"),
        ("12345", "en"),
    ],
)
def test_facts_speak_the_language_of_the_conversation(text: str, language: Language) -> None:
    messages: list[Message] = [{"role": "user", "content": text}, {"role": "assistant", "content": text}] * 10
    assert language_of(messages) == language
    assert {place.fact.language for place in plant(messages, "one")[1]} == {language}


# ---- following ----


class Forgets(Strategy):
    """Keeps the newest four messages behind a note; compacts before every answer from the sixth message on."""

    def note(self, gone: Sequence[Message]) -> str:
        return f"{len(gone)} messages are gone."

    def view(self, messages: list[Message]) -> list[Message]:
        if len(messages) < 6:
            return messages
        return [{"role": "user", "content": self.note(messages[:-4])}, *messages[-4:]]


class Remembers(Forgets):
    def note(self, gone: Sequence[Message]) -> str:
        return "\n".join(content_text(message["content"]) for message in gone)


def followed(strategy: type[Strategy], window: int = 100_000) -> Retention:
    messages, planted = plant(dialogue(120), "one")
    recording = Recording(Conversation("one", "one", tuple(messages)))
    return experiment.follow(recording, strategy(window), planted)


def test_a_view_that_has_every_fact_scores_one_and_one_that_lost_them_zero() -> None:
    remembers, forgets = followed(Remembers), followed(Forgets)
    for after in AFTER:
        assert remembers.total("left", after)[0] == forgets.total("left", after)[0] > 30
        assert remembers.share("left", after) == remembers.share("left", after, "exact") == 1.0
        assert forgets.share("left", after) == forgets.share("left", after, "parts_told") == 0.0


def test_since_it_was_said_a_fact_in_the_kept_tail_is_known() -> None:
    forgets = followed(Forgets)
    said = forgets.share("said", 1)
    assert said is not None
    assert said > 0.9  # all but one: it was said before the first four messages that were kept
    assert forgets.share("said", 3) == 0.0


def test_a_refused_view_tells_nothing() -> None:
    assert followed(Remembers, window=50).share("said", 1) == 0.0


def test_a_strategy_that_never_compacts_is_asked_nothing() -> None:
    assert followed(Everything).share("left", 1) is None


def test_counts_can_be_asked_by_kind_voice_and_language() -> None:
    remembers = followed(Remembers)
    by_kind = [remembers.total("left", 1, kind=kind)[0] for kind in KINDS]
    assert sum(by_kind) == remembers.total("left", 1)[0]
    assert all(by_kind)
    assert remembers.total("left", 1, language="ja") == (0, 0)


@given(st.lists(st.tuples(st.sampled_from(["left", "said"]), st.sampled_from(AFTER), st.booleans()), max_size=20))
def test_saved_counts_come_back_and_add_up_like_any_totals(asked: list[tuple[str, int, bool]]) -> None:
    one, other, both = Retention(), Retention(), Retention()
    for number, (clock, after, told) in enumerate(asked):
        key = (clock, after, KINDS[number % 10], "user", "en")
        figures = (1, told, told, 2 * told, 2)
        (one if number % 2 else other).add(key, figures)
        both.add(key, figures)
    assert Retention.from_json(both.to_json()) == both
    assert Retention.from_json(added([one.to_json(), other.to_json()])) == both
    one.merge(other)
    assert one == both


# ---- the experiment ----


def found(source: str, size: int, number: int = 0) -> collect.Found:
    return collect.Found(collect.Place(f"{source}.json", number), source, size, f"{source}{size}")


def test_the_longest_of_every_source_are_taken_in_turn() -> None:
    entries = [found("a", 10), found("a", 30, 1), found("b", 20), found("a", 40, 2)]
    assert [(e.source, e.tokens) for e in experiment.choose(entries)] == [("a", 40), ("b", 20), ("a", 30), ("a", 10)]
    assert len(experiment.choose([found("a", n, n) for n in range(100)])) == experiment.MOST


def test_a_long_conversation_is_cut_and_keeps_the_results_of_a_call() -> None:
    messages = dialogue(10)
    messages.insert(4, {"role": "tool", "tool_call_id": "1", "content": "done"})
    size = sum(tokens.message_tokens(message) for message in messages[:4])
    assert experiment.head(messages, size) == messages[:5]
    assert experiment.head(messages, 10**6) == messages


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], dict[str, object]]:
    """Two runs over a small conversation, the second with what the first saved."""
    data = tmp_path_factory.mktemp("data")
    lines = dialogue(160, "Part {n} is about the weather in the mountains, and there is more of the same to come, {n}.")

    (data / "talk.json").write_text(json.dumps(lines), encoding="utf-8")
    plan = jobs.Plan(data, (1_000, 2_000), ("none", "floor", "contextfold"), tokens.ESTIMATE, data / "saved")
    tokens.use(tokens.ESTIMATE)
    talk = collect.read(data, "talk.json")[0]
    entry = collect.Found(collect.Place("talk.json", 0), "talk", 5_000, talk.digest)
    runs = [experiment.run(plan, [entry], lambda *_: None) for _ in range(2)]
    return runs[0], runs[1]


@pytest.mark.strict
def test_a_second_run_gives_the_same_figures(report: tuple[dict[str, object], dict[str, object]]) -> None:
    assert report[0] == report[1]


def test_the_section_has_every_strategy_that_compacts_and_every_class(
    report: tuple[dict[str, object], dict[str, object]],
) -> None:
    text = experiment.markdown(report[0])
    assert "| floor |" in text
    assert "| contextfold |" in text
    assert "| none |" not in text
    assert all(f"| kind: {kind} |" in text for kind in KINDS)
    assert "| language: ja |" in text
    assert "**1,000 tokens**" in text
    assert "**2,000 tokens**" in text


def test_facts_planted_into_real_conversations_are_where_they_are_said_to_be(transcripts: Path) -> None:
    original = collect.read(transcripts, "kimi-cli-claude-code-zh/516b7270.jsonl")[0]
    messages, planted = plant(original.messages, original.name)
    assert len(planted) > 15
    assert {place.fact.language for place in planted} == {"zh"}
    for place in planted:
        assert isinstance(place, Planted)
        assert place.fact.sentence in content_text(messages[place.index]["content"])
        assert place.fact.sentence not in content_text(original.messages[place.index]["content"])


def test_a_conversation_is_not_counted_twice_in_its_own_language(tmp_path: Path) -> None:
    lines: list[Message] = dialogue(160, "{n}番目の部品は天気についての話です。まだまだ続きがあります。")
    (tmp_path / "talk.json").write_text(json.dumps(lines), encoding="utf-8")
    plan = jobs.Plan(tmp_path, (1_000,), ("floor",), tokens.ESTIMATE, tmp_path / "saved")
    talk = collect.read(tmp_path, "talk.json")[0]
    entry = collect.Found(collect.Place("talk.json", 0), "talk", 5_000, talk.digest)
    counts = experiment.run(plan, [entry], lambda *_: None)["figures"]["counts"]["1000|floor"]
    asked = {
        language: Retention.from_json(counts).total("said", 1, language=language)[0] for language in ("ja", "de", "en")
    }
    assert 30 < asked["ja"] <= 40
    assert 30 < asked["de"] <= 40
    assert asked["en"] == 0
