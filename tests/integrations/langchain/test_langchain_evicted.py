"""What left a thread: as long as this process knows it, evidence is chosen from it, and from nothing else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_scripted import SUMMARY, ScriptedModel

from contextfold.integrations.langchain import SummarizationMiddleware, layout
from contextfold.integrations.langchain.evicted import KNOWN, LeftMessages

SIZES: dict[str, Any] = {"trigger": ("tokens", 6_000), "keep": ("tokens", 1_500)}


def middleware(answer: str = SUMMARY, **options: Any) -> SummarizationMiddleware:
    return SummarizationMiddleware(ScriptedModel(script=lambda messages, number: answer), **{**SIZES, **options})


def told(middleware: SummarizationMiddleware, thread: list[Any], more: list[BaseMessage]) -> list[Any]:
    """The thread with more messages, as the middleware leaves it."""
    thread = [*thread, *more]
    update = middleware.before_model({"messages": thread}, None)  # type: ignore[arg-type]
    kept = update["messages"] if update else thread
    return [message for message in kept if not isinstance(message, RemoveMessage)]


def turn(number: int) -> list[BaseMessage]:
    """A file is read that names many things."""
    call = {"name": "read", "args": {"path": f"src/part_{number}.py"}, "id": f"c{number}"}
    lines = [f"def step_{number}_{n}(limit_{n * 37}): raise Fault{number}x{n}" for n in range(200)]
    return [
        HumanMessage(f"What does part_{number} raise?", id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage("\n".join(lines), tool_call_id=f"c{number}", id=f"t{number}"),
    ]


def small_talk(number: int) -> list[BaseMessage]:
    return [HumanMessage("well then " * 400, id=f"w{number}"), AIMessage("so it is " * 400, id=f"i{number}")]


def quoted(thread: list[Any]) -> set[int]:
    """The lines of the first file that the summary quotes."""
    text = "\n".join(layout.evidence_of(message) for message in thread if layout.is_summary(message))
    return {n for n in range(200) if f"step_0_{n}(" in text}


def test_what_one_summary_has_no_room_for_a_later_one_quotes() -> None:
    """Lines that are quoted from quoted lines can only become fewer."""
    sizes = {"trigger": ("messages", 9), "keep": ("messages", 4)}
    first = middleware(**sizes)
    thread = told(first, [], [*turn(0), *small_talk(0)[:1], *(HumanMessage("Go on.", id=f"g{n}") for n in range(5))])
    assert 0 < len(few := quoted(thread)) < 120
    more = [message for n in range(1, 4) for message in small_talk(n)]
    known, restarted = (quoted(told(one, thread, more)) for one in (first, middleware(**sizes)))
    assert restarted <= few
    assert len(known) > 1.3 * len(few)


def test_each_summary_stands_for_what_left_before_it_in_its_own_branch() -> None:
    """A thread that is taken up again at an earlier point knows nothing of what came after it there."""
    one = middleware()
    thread: list[Any] = []
    branches: list[list[Any]] = []
    for number in range(30):
        thread = told(one, thread, turn(number))
        if layout.is_summary(thread[0]) and (not branches or branches[-1][0] is not thread[0]):
            branches.append(thread)
    assert len(branches) > 2
    for branch in branches:
        kept = {message.id for message in branch}
        left = [message.id for message in one._evicted.behind(branch) or ()]
        last = max(int(str(name)[1:]) for name in kept if str(name)[1:].isdigit())
        everything = [message.id for number in range(last + 1) for message in turn(number)]
        assert left == [name for name in everything if name not in kept]
    secret = [HumanMessage("The other branch hides vault_7741.", id="other")]
    elsewhere = told(one, branches[-1], [*secret, *(m for n in range(30, 40) for m in turn(n))])
    assert "vault_7741" in str(elsewhere[0].content)
    here = told(one, branches[0], [m for n in range(30, 45) for m in turn(n)])
    assert here[0] is not branches[0][0]
    assert "vault_7741" not in str(here)


def test_threads_with_equal_summaries_are_told_apart() -> None:
    """What left one of them is never quoted in the other."""
    one = middleware("S")
    threads = [
        told(one, [], [HumanMessage(f"word {n} " * 900, id=f"{name}{n}") for n in range(9)]) for name in ("a", "b")
    ]
    assert threads[0][0].content == threads[1][0].content
    left = [{str(message.id)[0] for message in one._evicted.behind(thread) or ()} for thread in threads]
    assert left == [{"a"}, {"b"}]
    unnamed = [threads[0][0].model_copy(update={"id": None}), *threads[0][1:]]
    assert one._evicted.behind(unnamed) is None
    edited = [threads[0][0].model_copy(update={"content": "[removed]"}), *threads[0][1:]]
    assert one._evicted.behind(edited) is None, "what a user took out of a summary stays out"


def test_a_summary_of_before_a_restart_is_chosen_from_as_it_is() -> None:
    """What it quotes goes on to be quoted, with what left since."""
    early = [HumanMessage("The deploy key is /srv/keys/deploy-7741.pem and must never be rotated.", id="fact")]
    thread = told(middleware(), [], early + [m for n in range(12) for m in turn(n)])
    restarted = middleware()
    for number in range(12, 40):
        thread = told(restarted, thread, turn(number))
    assert "/srv/keys/deploy-7741.pem" in str(thread[0].content)


def test_what_is_known_is_bounded_and_no_copy_has_it() -> None:
    one = middleware("S")
    threads = [told(one, [], [HumanMessage(f"word {n} " * 2_000, id=f"{t}-{n}") for n in range(6)]) for t in range(40)]
    known = [one._evicted.behind(thread) is not None for thread in threads]
    assert known == [False] * (40 - KNOWN) + [True] * KNOWN
    for copied in (copy.deepcopy(one._evicted), pickle.loads(pickle.dumps(one._evicted))):
        assert isinstance(copied, LeftMessages)
        assert copied.behind(threads[-1]) is None


def test_a_thread_that_is_summarized_often_takes_no_room_from_others() -> None:
    """Threads are counted, not their summaries."""
    one = middleware("S", trigger=("messages", 9), keep=("messages", 4))
    others = [told(one, [], [HumanMessage(f"word {n}", id=f"{t}-{n}") for n in range(9)]) for t in range(3)]
    busy: list[Any] = []
    summaries = set[str]()
    for number in range(150):
        busy = told(one, busy, [HumanMessage(f"go {number}", id=f"g{number}"), AIMessage("so", id=f"s{number}")])
        summaries |= {str(message.id) for message in busy if layout.is_summary(message)}
    assert len(summaries) > KNOWN
    assert all(one._evicted.behind(thread) is not None for thread in [*others, busy])
