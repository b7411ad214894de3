"""Where the window comes from: explicit, profile, registry, learned, default, in this order."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from contextfold import Compactor
from contextfold.errors import ContextOverflow, PolicyError, StillTooLong
from contextfold.observe import Observer
from contextfold.ports import AsyncPorts, SyncPorts, run
from contextfold.window import DEFAULT_WINDOW, PromptAndAnswer, Window, Windows, registered, resolve

MODEL = "openai:gpt-4o"


def test_sources_are_asked_in_order() -> None:
    assert resolve(9_000, MODEL, profile=7_000) == Window(9_000, "explicit")
    assert resolve(None, MODEL, profile=7_000) == Window(7_000, "profile")
    assert resolve(None, MODEL) == Window(128_000, "registry")
    assert resolve(None, "no-such-model") == resolve(None, None) == Window(DEFAULT_WINDOW, "default")


@pytest.mark.parametrize("useless", [0, -1])
def test_a_profile_or_a_learned_limit_that_is_no_size_is_passed_over(useless: int) -> None:
    assert resolve(None, None, profile=useless).source == "default"


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "openai:gpt-4o", "openai/gpt-4o", "azure_openai:gpt-4o", " gpt-4o ", "openrouter/openai/gpt-4o"],
)
def test_a_model_is_known_by_any_of_its_usual_names(model: str) -> None:
    assert registered(model) == 128_000


def test_a_name_that_asks_for_the_larger_window_has_it() -> None:
    assert registered("claude-sonnet-4-5[1m]") == registered("anthropic:claude-sonnet-4-5[1m]") == 1_000_000


def test_models_with_colons_slashes_and_dots_in_their_names_are_known() -> None:
    assert registered("anthropic:claude-sonnet-4-5") == registered("anthropic/claude-sonnet-4-5")
    assert (registered("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0") or 0) >= 200_000


BEDROCKS = "anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.mark.parametrize(
    "model",
    [
        *(BEDROCKS, f"us.{BEDROCKS}", f"global.{BEDROCKS}", f"bedrock/{BEDROCKS}", f"bedrock/converse/us.{BEDROCKS}"),
        f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.{BEDROCKS}",
    ],
)
def test_a_model_of_bedrock_is_known_by_the_id_that_its_own_clients_take(model: str) -> None:
    assert registered(model) == 200_000
    assert registered(f"{model}[1m]") == 1_000_000


@pytest.mark.parametrize(
    "model", ["anthropic.claude-3-haiku-20240307-v1:0", "us.anthropic.claude-v2:1", f"bedrock/{BEDROCKS}"]
)
@pytest.mark.parametrize("size", [28, 48, 200])
def test_an_id_of_bedrock_that_ends_in_a_window_has_that_window(model: str, size: int) -> None:
    """What is bought as provisioned throughput may take less than the model does."""
    assert registered(f"{model}:{size}k") == size * 1_000


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "gemini-3.1-pro-preview", "gemini-2.5-flash"])
@pytest.mark.parametrize(
    "written",
    ["{}", "models/{}", "google:{}", "gemini/{}", "vertex_ai/{}", "projects/p/locations/l/publishers/google/models/{}"],
)
def test_a_window_that_the_makers_own_entry_leaves_out_is_found_by_every_name(name: str, written: str) -> None:
    assert registered(written.format(name)) == 1_048_576


@pytest.mark.parametrize("written", ["{}", "openai:{}", "openai/{}", "azure/{}", "openai-responses:{}"])
@pytest.mark.parametrize("base", ["gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4.1-2025-04-14", "gpt-3.5-turbo-0125"])
def test_a_tuned_model_has_the_window_of_its_base(base: str, written: str) -> None:
    usual = registered(base)
    assert usual
    for name in (f"ft:{base}:org::id", f"ft:{base}:org:name:id:ckpt-step-90"):
        assert registered(written.format(name)) == usual


@pytest.mark.parametrize(
    ("served", "usual"),
    [
        *((f"openai/gpt-4o:{variant}", "openai/gpt-4o") for variant in ("nitro", "floor", "extended", "online")),
        ("openrouter:anthropic/claude-sonnet-4.5:thinking", "anthropic/claude-sonnet-4.5"),
        ("gateway/openai:gpt-5", "openai:gpt-5"),
        ("gateway/anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ],
)
def test_another_way_of_serving_a_model_has_the_window_of_the_model(served: str, usual: str) -> None:
    """OpenRouter's variants, pydantic-ai's gateway, and Vertex's versions."""
    assert registered(served) == registered(usual) is not None


@pytest.mark.parametrize("model", ["groq:llama-9", "my-deployment", "ollama:qwen:8b", "ft:my-base:org::id"])
def test_an_unknown_model_is_told_once_with_the_way_out(model: str, caplog: pytest.LogCaptureFixture) -> None:
    compactor = Compactor()
    for _ in range(2):
        compactor.compact([{"role": "user", "content": "hello"}], model=model)
    (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert model in said.getMessage()
    assert f"{DEFAULT_WINDOW} tokens are assumed" in said.getMessage()
    assert "window=" in said.getMessage()


def test_where_a_window_is_given_or_no_model_is_named_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    for compactor, model in ((Compactor(window=9_000), "my-deployment"), (Compactor(), None), (Compactor(), MODEL)):
        compactor.compact([{"role": "user", "content": "hello"}], model=model)
    assert not caplog.records


@pytest.mark.parametrize("model", ["a" + ":free" * 5_000, "a/" * 5_000 + "b:c", "ft:" * 5_000, "a:" * 5_000])
def test_a_name_of_any_length_is_looked_up(model: str) -> None:
    assert registered(model) is None


@pytest.mark.parametrize("model", ["", ":", "/", "a:b:c", "ollama:my-model", "\n", "模型", "openai:"])
def test_an_unknown_model_never_fails(model: str) -> None:
    assert resolve(None, model) == Window(DEFAULT_WINDOW, "default")


@pytest.mark.parametrize("window", [0, -5, 1.5, "64000", True])
def test_a_window_that_is_no_positive_whole_number_is_refused(window: Any) -> None:
    with pytest.raises(PolicyError, match="positive whole number of tokens") as error:
        resolve(window, None)
    assert repr(window) in str(error.value)


def test_looking_up_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert resolve(None, MODEL).source == "registry"


def test_names_of_models_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of a gateway name what they like, and each name stayed in several of these."""
    monkeypatch.setattr("contextfold.window.MOST_NAMES", 3)
    windows = Windows(None, None)

    async def all_that_is_learned(name: str) -> None:
        ports, observer = AsyncPorts(), Observer()
        await windows.find("", name, ports, observer)
        windows.accept("", name, 900)
        windows.learn_together("", name, 8_000, rate=1.0)
        windows.learn_counted("", name, 1_000, 1_400, is_refusal=True)
        windows.distrust("", name)
        await windows.learn("", name, 1_000, ports, observer, refused=None)
        await windows.learn("", name, 950, ports, observer, refused=1_500)
        windows.adopt("other", name, 2_000)

    for number in range(10):
        anyio.run(all_that_is_learned, f"no-such-model-{number}")
        assert windows.assumed(MODEL).tokens == 128_000
        newest = f"no-such-model-{number}"
        assert windows.accepted("", newest) == 900
        assert windows.counted("", newest) is not None
        assert not windows.trusts("", newest)
    held = {name: len(value) for name, value in vars(windows).items() if isinstance(value, dict | set)}
    assert len(held) >= 8
    assert {name for name, size in held.items() if size > 3} == set()


def test_what_a_model_object_says_of_its_window_is_taken_for_no_other_model() -> None:
    windows = Windows(None, "own-model", 7_000)
    assert windows.assumed() == windows.assumed("own-model") == Window(7_000, "profile")
    assert windows.assumed("another") == Window(DEFAULT_WINDOW, "default")


def test_a_store_is_asked_for_what_was_not_known_without_it() -> None:
    """A compactor has answered calls before a session with a store is opened."""

    class Kept:
        def __init__(self, tokens: int) -> None:
            self.tokens = tokens

        def load_window(self, endpoint: str, model: str) -> int:
            return self.tokens

        def save_window(self, endpoint: str, model: str, tokens: int) -> None:
            self.tokens = tokens

    def found(windows: Windows, endpoint: str = "http://host") -> int:
        return run(windows.find(endpoint, "model", SyncPorts(), Observer())).tokens

    windows = Windows(explicit=40_000)
    assert found(windows) == 40_000
    kept = windows.kept_in(Kept(5_000))
    assert found(kept) == found(kept.kept_in(Kept(3_000)), "http://other") == 5_000
    assert found(windows) == 40_000
    for useless in (255, 0, -1, True, 5_000.0, "5000"):  # a store may be anyone's, and hold anything
        assert found(Windows(explicit=40_000).kept_in(Kept(useless))) == 40_000  # type: ignore[arg-type]


def test_of_prompt_and_answer_together_the_newest_limit_counts_beside_the_fewest_tokens_seen() -> None:
    """Whose prompt needs fewer would have its answer cut short for nothing; whose needs more is refused once."""
    windows = Windows(None, None)
    for limit, rate, usual in ((8_000, 1.4, 4_096), (9_000, 1.2, None), (9_000, 1.6, None)):
        windows.learn_together("endpoint", "model", limit, rate=rate, usual=usual)
    assert windows.together("endpoint", "model") == PromptAndAnswer(9_000, 1.2, 4_096)
    assert windows.together("other", "model") is windows.together("endpoint", "other") is None


def test_the_source_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="contextfold.window"):
        resolve(None, "no-such-model")
    assert "window of no-such-model: 64000 tokens (default)" in caplog.text


def test_the_registry_is_loaded_only_when_a_model_is_looked_up() -> None:
    code = "import sys, contextfold.window as w; w.resolve(1000, 'gpt-4o'); sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_last_window_that_a_provider_names_holds() -> None:
    """One that named less was about something else, and would be in the way for ever."""

    async def learned(*said: int) -> int:
        windows = Windows(explicit=8_000)
        for tokens in said:
            await windows.learn("http://host", "model", tokens, AsyncPorts(), Observer(), refused=None)
        return (await windows.find("http://host", "model", AsyncPorts(), Observer())).tokens

    assert anyio.run(learned, 500) == 500
    assert anyio.run(learned, 500, 8_000) == 8_000
    assert anyio.run(learned, 500, 9_000) == 8_000
    assert anyio.run(learned, 9_000) == 8_000


def test_a_guess_holds_as_long_as_nothing_larger_was_taken_than_what_it_followed_from() -> None:
    """It followed from words that cost more tokens than the estimate had it, and would be in the way for ever."""
    windows, ports, observer = Windows(explicit=40_000), SyncPorts(), Observer()

    def found(*taken: int) -> tuple[int, int]:
        for tokens in taken:
            windows.accept("http://host", "model", tokens)
        window = run(windows.find("http://host", "model", ports, observer))
        return window.tokens, window.most

    run(windows.learn("http://host", "model", 10_000, ports, observer, refused=20_000))
    assert found() == found(9_000) == (10_000, 19_999)
    assert found(15_000) == found(12_000) == (15_000, 19_999)
    assert found(20_001) == (40_000, 0)
    run(windows.learn("http://host", "model", 10_000, ports, observer, refused=20_000))
    assert found() == (40_000, 0)
    run(windows.learn("http://host", "model", 30_000, ports, observer, refused=None))
    assert found(35_000) == (30_000, 0)  # what a provider says is no guess


def test_a_guess_rises_with_the_requests_that_are_taken_and_fill_half_of_it() -> None:
    """One refusal that named no limit would leave half of the window unused for as long as the process lives: all that
    is larger than the guess is compacted before it is sent.
    """
    windows, ports, observer = Windows(explicit=40_000), SyncPorts(), Observer()

    def found(times: int, tokens: int) -> tuple[int, int]:
        for _ in range(times):
            windows.accept("http://host", "model", tokens)
        window = run(windows.find("http://host", "model", ports, observer))
        return window.tokens, window.most

    run(windows.learn("http://host", "model", 10_000, ports, observer, refused=20_000))
    assert found(100, 4_999) == (10_000, 19_999)
    assert found(15, 5_000) == (10_000, 19_999)
    assert found(1, 5_000) == (15_000, 19_999)
    assert found(15, 7_500) == (15_000, 19_999)
    assert found(1, 7_500) == (17_500, 19_999)
    run(windows.learn("http://host", "model", 14_000, ports, observer, refused=17_000))  # which begins anew, below that
    assert found(15, 8_000) == (14_000, 16_999)
    assert found(1, 8_000) == (15_500, 16_999)
    assert found(500, 15_000) == (16_250, 16_999)  # a twentieth below what was refused is as good as all of it
    assert found(1, 16_900) == (16_900, 16_999)


@pytest.mark.parametrize("room", [20_000, 31_000], ids=["a third of the window", "half of it"])
def test_a_long_conversation_has_its_window_again_behind_a_refusal_that_named_none(room: int) -> None:
    compactor, record, refused = Compactor(window=60_000), None, 0
    counted, sizes = Compactor(window=1 << 30), list[int]()
    history: list[dict[str, Any]] = [{"role": "user", "content": f"{n} " + "words " * 700} for n in range(45)]

    def send(view: list[Any]) -> dict[str, Any]:
        nonlocal refused
        tokens = counted.compact(view).tokens_after
        if tokens > room:
            refused += 1
            raise ContextOverflow
        sizes.append(tokens)
        return {"choices": [{"message": {"role": "assistant", "content": "fine"}}]}

    for n in range(160):
        found = list[Any]()
        compactor.call(send, history, record, on_result=found.append)
        record = found[-1].compaction
        history += [{"role": "assistant", "content": "fine"}, {"role": "user", "content": f"{n} " + "more " * 700}]
    assert 1 <= refused <= 2
    assert max(sizes[-40:]) > 0.65 * room


def test_what_a_provider_named_outlives_every_guess() -> None:
    windows, ports, observer = Windows(explicit=100_000), SyncPorts(), Observer()

    def found() -> tuple[int, int]:
        window = run(windows.find("http://host", "model", ports, observer))
        return window.tokens, window.most

    def learn(tokens: int, refused: int | None) -> None:
        run(windows.learn("http://host", "model", tokens, ports, observer, refused=refused))

    learn(30_000, None)
    learn(10_000, 40_000)
    assert found() == (10_000, 39_999)
    windows.accept("http://host", "model", 35_000)
    assert found() == (30_000, 0)
    windows.accept("http://host", "model", 40_001)
    assert found() == (30_000, 0)
    learn(20_000, 41_000)
    learn(20_000, None)  # the very figure that was guessed
    windows.accept("http://host", "model", 41_001)
    assert found() == (20_000, 0)
    learn(15_000, 42_000)
    windows.adopt("http://host", "model", 12_000)
    windows.accept("http://host", "model", 14_000)
    assert found() == (12_000, 0)


@pytest.mark.parametrize(
    ("explicit", "said", "tokens", "source"),
    [
        pytest.param(8_000, [(255, None)], 8_000, "explicit", id="a figure that is no window"),
        pytest.param(None, [(100_000, None)], 100_000, "learned", id="more than the default, which is no knowledge"),
        pytest.param(8_000, [(1_000, None), (2_000, 4_000)], 1_000, "learned", id="a guess above what was said"),
    ],
)
def test_what_a_refusal_teaches(
    explicit: int | None, said: list[tuple[int, int | None]], tokens: int, source: str
) -> None:
    """Beside the tokens: what was refused, where the figure is a guess."""
    windows, observer = Windows(explicit=explicit), Observer()
    for figure, refused in said:
        run(windows.learn("http://host", "model", figure, SyncPorts(), observer, refused=refused))
    found = run(windows.find("http://host", "model", SyncPorts(), observer))
    assert (found.tokens, found.source) == (tokens, source)
    told = [event.data["tokens"] for event in observer.events if event.name == "window_learned"]
    assert told == ([tokens] if source == "learned" else [])


def test_what_another_process_learned_counts_where_it_is_a_window_and_less_than_what_is_known() -> None:
    windows = Windows(explicit=100_000)
    for tokens, known in ((100, None), (30_000, 30_000), (40_000, 30_000), (255, 30_000), (20_000, 20_000)):
        windows.adopt("http://host", "model", tokens)
        assert windows.learned("http://host", "model") == known


def test_what_one_session_guesses_takes_nothing_from_another(tmp_path: Path) -> None:
    compactor = Compactor(window=100_000, model=MODEL)
    one, other = (compactor.session(name, f"sqlite:///{tmp_path / 'file.db'}") for name in ("one", "other"))
    refusals = [ContextOverflow()]
    windows: list[int] = []

    def send(view: list[Any]) -> dict[str, Any]:
        if refusals:
            raise refusals.pop()
        return {"choices": [{"message": {"role": "assistant", "content": "fine"}}]}

    def ask(asked: Any, text: str) -> int:
        asked.call(send, [{"role": "user", "content": text}], on_result=lambda result: windows.append(result.window))
        return windows[-1]

    with pytest.raises(StillTooLong):
        ask(one, "words " * 60_000)
    for asked in (other, compactor) * 2:
        assert ask(asked, "hello") == 100_000
