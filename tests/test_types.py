"""What a type checker takes for a setting is what the program takes: the same names, and the same forms of values.

A setting that is misspelled or of the wrong kind is found where it is typed, and an editor completes the names.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import contextfold
from contextfold import Budgets, Compactor, Pins, Policy, SummaryOptions, compactor, policy
from contextfold.policy import Oversized, Recall, Toggle, ToolArguments, ToolOutputs
from contextfold.store import SessionOptions, options
from contextfold.summary.options import SummaryFields

PRELUDE = """
from typing import Literal

from contextfold import Budgets, Compactor, Pins, Policy, SummaryOptions
from contextfold.policy import Clause, Oversized, Recall, Size, Toggle, ToolArguments, ToolOutputs
from contextfold.settings import Settings, load
from contextfold.store import SessionOptions


class Kept:
    def load_window(self, endpoint: str, model: str) -> int | None:
        return None

    def save_window(self, endpoint: str, model: str, tokens: int) -> None: ...


async def announced(step: object) -> None: ...


compactor = Compactor()
share: Literal["fraction"] = "fraction"
"""

SIZES = (
    *("('tokens', 4_000)", "('tokens', 4e3)", "'tokens:4000'", "{'tokens': 4_000}", "(share, 0.3)"),
    *("{'type': 'fraction', 'value': 0.3}", "Size('tokens', 4_000)"),
)
SWITCH = ("True", "False")
SHARE = ("0.3", "1")
NUMBER = ("100",)
NAMES = ("{'a'}", "frozenset('a')", "['a']", "('a',)", "{'a': 1}.keys()")
TEXT = ("'a'",)
ON, WHAT_NOT = ("None", *SWITCH), ("None",)
TRIGGERS = (
    *(*SIZES, "None", "{'tokens': 40_000, 'messages': 50}", "[('fraction', 0.8), {'tokens': 40_000, 'messages': 50}]"),
    *("['tokens:4000', ('messages', 20)]", "(('tokens', 4_000), ('messages', 20))", "[[('tokens', 4_000)]]", "[]"),
    *("Clause((Size('tokens', 4_000),))", "(Clause((Size('tokens', 4_000),)),)"),
)
LISTENS = ("None", "print")
WAITS = (*LISTENS, "announced")

FIELDS: Mapping[type, tuple[Any, Mapping[str, tuple[str, ...]]]] = {
    policy.BudgetsFields: (
        Budgets,
        {
            **dict.fromkeys(("usage", "carried", "prose"), (*WHAT_NOT, *SHARE)),
            **dict.fromkeys(("summary", "recent", "shortened"), ("0.01", "0")),
        },
    ),
    policy.PinsFields: (
        Pins,
        {
            **dict.fromkeys(("ids", "tools", "plans"), NAMES),
            "metadata": ("{}", "{'kind': 'rule'}"),
            "predicate": (*WHAT_NOT, "lambda message: message.role == 'user'"),
        },
    ),
    policy.ToolArgumentsFields: (
        ToolArguments,
        {"enabled": SWITCH, "limit": NUMBER, "tools": (*WHAT_NOT, *NAMES)},
    ),
    policy.ToolOutputsFields: (ToolOutputs, {"enabled": SWITCH, "limit": NUMBER, "exclude": NAMES}),
    policy.ToggleFields: (Toggle, {"enabled": SWITCH}),
    policy.RecallFields: (Recall, {"enabled": SWITCH, "budget": SHARE, "threshold": SHARE, "tools": SWITCH}),
    policy.OversizedFields: (Oversized, {"enabled": SWITCH, "minimum": NUMBER}),
    SummaryFields: (
        SummaryOptions,
        {
            **dict.fromkeys(("max_tokens", "merge_max_tokens"), (*WHAT_NOT, *NUMBER)),
            "input_tokens": (*WHAT_NOT, "4_000"),
            **dict.fromkeys(("prompt", "language"), (*WHAT_NOT, *TEXT)),
            "instructions": TEXT,
            "bisect": SWITCH,
            **dict.fromkeys(("max_depth", "min_messages", "parallel"), NUMBER),
            **dict.fromkeys(("retries_on_rejection", "retries_on_failure"), NUMBER),
            "max_string_characters": ("1_000_000",),
            **dict.fromkeys(("total_seconds", "idle_seconds"), (*WHAT_NOT, *NUMBER, "0.5")),
        },
    ),
    policy.PolicyFields: (
        Policy,
        {
            **dict.fromkeys(("enabled", "first_user", "evidence", "bound_thinking", "redact"), SWITCH),
            "trigger": TRIGGERS,
            "target": (*WHAT_NOT, *SIZES),
            "keep": (*WHAT_NOT, *SIZES, "('messages', 20)"),
            "background": (*SWITCH, "0.6"),
            "answer_reserve": NUMBER,
            **dict.fromkeys(("recent_users", "minimum_gain"), SHARE),
            "budgets": ("Budgets()",),
            "pins": ("Pins()",),
            "tool_arguments": ("ToolArguments()",),
            "tool_outputs": ("ToolOutputs()",),
            **dict.fromkeys(("media", "reasoning"), ("Toggle()",)),
            "oversized": ("Oversized()",),
            "recall": (*ON, "Recall()"),
            "summary": ("SummaryOptions()",),
            "summary_role": ("'user'", "'system'", "'developer'", "'assistant'"),
            "summary_place": ("'after_first_user'", "'after_system'"),
            "on_failure": ("'keep'", "'raise'"),
            "fallback": (*WHAT_NOT, "'extractive'"),
            "resend_after_overflow": SWITCH,
            "on_overflow": ("'raise'", "'drop_oldest'"),
            "alternate": ON,
        },
    ),
    options.SessionFields: (
        SessionOptions,
        {
            "upper_threshold": (*WHAT_NOT, "60_000"),
            "lower_threshold": (*WHAT_NOT, "20_000"),
            **dict.fromkeys(("min_messages", "min_new_messages"), NUMBER),
            "trigger_ratio": ("2", "0.3"),
            "background": SWITCH,
            "soft_ratio": SHARE,
            "lease_seconds": (*NUMBER, "0.5"),
            "enable_context_optimization": SWITCH,
            "token_calculation_method": ("'estimate'", "'tiktoken'"),
            **dict.fromkeys(("target_usage_ratio", "summary_token_ratio", "recent_token_ratio"), (*WHAT_NOT, *SHARE)),
            "compress_tool_output": ON,
            "tool_output_max_tokens": (*WHAT_NOT, *NUMBER),
        },
    ),
    compactor.CompactorSettings: (
        Compactor,
        {
            "window": (*WHAT_NOT, "100_000"),
            "model": (*WHAT_NOT, "'openai:gpt-5'"),
            "trigger": TRIGGERS,
            "target": (*WHAT_NOT, *SIZES),
            "keep": (*WHAT_NOT, *SIZES),
            "summarizer": (*WHAT_NOT, "'extractive'", "'same'", "str.upper", "announced"),
            "policy": (*WHAT_NOT, "Policy()"),
            "count_text": (*WHAT_NOT, "len"),
            "on_event": LISTENS,
            **dict.fromkeys(("on_start", "on_stream", "on_progress", "on_end"), WAITS),
            "windows": (*WHAT_NOT, "Kept()"),
            "remembered": ("0", "100"),
        },
    ),
}
"""Keywords of a model, the model, and every form in which the documentation writes a value of each field."""

SECTIONS = {
    "budgets": policy.BudgetsFields,
    "pins": policy.PinsFields,
    "tool_arguments": policy.ToolArgumentsFields,
    "tool_outputs": policy.ToolOutputsFields,
    "media": policy.ToggleFields,
    "reasoning": policy.ToggleFields,
    "oversized": policy.OversizedFields,
    "recall": policy.RecallFields,
    "summary": SummaryFields,
}
ANYTHING = {"model", "summarizer"}
"""Settings whose values are objects of others: they have no type that could be told."""

WRONG = [
    "Policy(trigger=('token', 4_000))",
    "Policy(trigger={'token': 4_000})",
    "Policy(trigger=['tokens', 4_000])",
    "Policy(trigger=[('tokens', 4_000), 50])",
    "Policy(keep=4_000)",
    "Policy(target={'type': 'tokens', 'size': 4_000})",
    "Policy(background='on')",
    "Policy(media=False)",
    "Policy(summary_role='tool')",
    "Policy(fallback='none')",
    "Pins(tools='read_file')",
    "Policy(pins={'tools': 'read_file'})",
    "Compactor(trigger=('token', 4_000))",
    "Compactor(policy={'keep': ('messages', 4)})",
    "load(tigger=None)",
    "load(trigger=('token', 4_000))",
    "Settings(Policy()).compactor(windw=8_000)",
    "Settings(Policy()).compactor(window=8_000, policy=4)",
    "compactor.session('a', 'sqlite://', namspace='a')",
    "compactor.session('a', 'sqlite://', options={'upper_treshold': 60_000})",
]
"""Slips of the hand that both find."""


def accepted() -> list[str]:
    calls = ["load(keep=('messages', 4), summary={'max_tokens': 500})", "Settings(Policy()).compactor(window=8_000)"]
    for kind, (model, forms) in FIELDS.items():
        calls += [f"{model.__name__}({name}={form})" for name, some in forms.items() for form in some]
        for section in (name for name, fields in SECTIONS.items() if fields is kind):
            calls += [f"Policy({section}={{{n!r}: {form}}})" for n, some in forms.items() for form in some]
    some = FIELDS[options.SessionFields][1].items()
    calls += [f"compactor.session('a', 'sqlite://', options={{{name!r}: {forms[0]}}})" for name, forms in some]
    keywords = ("namespace='a'", "user=7", "format='anthropic'", "archive=None", "get_optimization_config={}")
    return calls + [f"compactor.session('a', 'sqlite://', {keyword})" for keyword in keywords]


def refused() -> list[str]:
    calls = list(WRONG)
    for kind, (model, forms) in FIELDS.items():
        calls += [f"{model.__name__}({name}=object())" for name in forms if name not in ANYTHING]
        calls += [f"{model.__name__}({name}_={some[0]})" for name, some in forms.items()]
        for section in (name for name, fields in SECTIONS.items() if fields is kind):
            calls += [f"Policy({section}={{{name!r}: object()}})" for name in forms]
            calls += [f"Policy({section}={{'{name}_': {some[0]}}})" for name, some in forms.items()]
    return calls


def found_by_the_checker(program: str, folder: Path, *more: str) -> set[str]:
    """The lines of a strict program that mypy finds wrong."""
    checker = pytest.importorskip("mypy.api")
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    flags = ["--strict", "--cache-dir", str(folder / "cache"), "--config-file", "", *more, str(file)]
    said, failed, _ = checker.run(flags)
    assert not failed, failed
    lines = program.splitlines()
    return {lines[int(line.split(":")[1]) - 1] for line in said.splitlines() if line.startswith(f"{file}:")}


@pytest.fixture(autouse=True)
def sources_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(contextfold.__file__).parents[1]))


@pytest.mark.strict  # pydantic has some 10 seconds of types
def test_every_form_of_a_setting_that_is_documented_is_taken_and_nothing_else(tmp_path: Path) -> None:
    right, wrong = accepted(), refused()
    program = "\n".join([PRELUDE, *right, *wrong, ""])
    found = found_by_the_checker(program, tmp_path, "--follow-imports=silent")
    assert not found - set(wrong), "a type checker refuses what may be given"
    assert not set(wrong) - found, "a type checker lets pass what is refused when the program runs"
    there: dict[str, Any] = {}
    exec(PRELUDE, there)
    for call in right:
        eval(call, there)
    assert not [call for call in wrong if is_taken(call, there)], "what a type checker refuses is taken"


def is_taken(call: str, there: dict[str, Any]) -> bool:
    try:
        eval(call, there)
    except (ValueError, TypeError, contextfold.ContextfoldError):
        return False
    return True


def parameters(function: Any) -> set[str]:
    """What may be given by name alone, also where ``**`` hands it on."""
    names = set[str]()
    for one in inspect.signature(function).parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY:
            names.add(one.name)
        elif one.kind is inspect.Parameter.VAR_KEYWORD:
            names |= set(get_args(eval(one.annotation, vars(import_module(function.__module__))))[0].__annotations__)
    return names


@pytest.mark.parametrize("keywords", FIELDS, ids=lambda keywords: keywords.__name__)
def test_a_type_checker_knows_the_names_that_there_are(keywords: Any) -> None:
    model, examples = FIELDS[keywords]
    there = set(model.model_fields) if issubclass(model, BaseModel) else parameters(model)
    assert set(keywords.__annotations__) == there == set(examples)


@pytest.mark.parametrize(
    ("keywords", "taker"),
    [
        ("calls.request:CompactOptions", "compactor:Compactor.compact"),
        ("calls.request:AsyncCallOptions", "compactor:Compactor.acall"),
        ("store.options:SessionKeywords", "store:Session"),
        ("integrations.langgraph:ContextOptions", "integrations.langgraph:Context"),
        ("integrations.langchain.compaction:MiddlewareOptions", "integrations.langchain:CompactionMiddleware"),
        ("integrations.langchain.constructor:DropInOptions", "integrations.langchain:SummarizationMiddleware"),
    ],
)
def test_keywords_that_are_handed_on_are_those_that_are_taken(keywords: str, taker: str) -> None:
    assert set(named(keywords).__annotations__) == parameters(named(taker))


def named(place: str) -> Any:
    module, _, name = place.partition(":")
    return operator.attrgetter(name)(pytest.importorskip(f"contextfold.{module}", exc_type=ImportError))


FACES = {
    "google_adk": "CompactionPlugin({})",
    "strands": "CompactionManager({})",
    "pydantic_ai": "Compaction({})",
    "openai_agents": "compaction({})",
    "haystack": "ContextfoldCompactor({})",
}
"""Those that take the settings of a ``Compactor`` in its place."""
HANDED_ON = """
from collections.abc import Sequence
from typing import Any

from contextfold import Compactor, Policy
from contextfold.integrations.deepagents import create_summarization_middleware
from contextfold.integrations.google_adk import CompactionPlugin
from contextfold.integrations.haystack import ContextfoldCompactor
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.integrations.langgraph import Context, SessionContext
from contextfold.integrations.openai_agents import CompactionSession, compaction
from contextfold.integrations.pydantic_ai import Compaction, history_processor
from contextfold.integrations.strands import CompactionManager
from contextfold.settings import load

compactor = Compactor()
session = compactor.session("a", "sqlite://")
model: Any = None


def said(view: list[Any]) -> str:
    return ""


async def saying(view: list[Any]) -> str:
    return ""


def limited(view: Sequence[Any], max_tokens: int | None) -> str:
    return ""


def unsent() -> str:
    return ""
"""
OF_FACES = [
    "history_processor(window=8_000, keep=('messages', 4))",
    "CompactionSession('a', compactor, namespace='b', options={'min_messages': 4})",
    "Context.of_window(8_000, system=lambda state: state['who'], tools=[])",
    "SessionContext(lambda thread: compactor.session(thread, 'sqlite://'), view_key='view')",
    "SummarizationMiddleware('m', trigger=[('tokens', 4_000), {'messages': 9}], trim_tokens_to_summarize=0.4 * 9_000)",
    "SummarizationMiddleware('m', max_tokens_before_summary=4_000, messages_to_keep=9)",
    "create_summarization_middleware(model, None, evidence=False, counting='langchain')",
    "load().summarization_middleware(trigger=('messages', 9), keep=('messages', 4), evidence=False)",
    "load().compaction_middleware(window=8_000, tool=True)",
    "CompactionMiddleware(window=8_000, trigger=[('fraction', 0.8)])",
    *(call.format("window=8_000, policy=Policy(), remembered=4") for call in FACES.values()),
]
SLIPS = [
    "history_processor(windw=8_000)",
    "CompactionSession('a', compactor, namspace='b')",
    "CompactionSession('a', compactor, options={'min_message': 4})",
    "Context.of_window(8_000, sytem='Be brief.')",
    "Context.of_window(8_000, tools=4)",
    "CompactionMiddleware(windw=8_000)",
    "CompactionMiddleware(trigger=('token', 4_000))",
    "SessionContext(lambda thread: compactor.session(thread, 'sqlite://'), view='view')",
    "SummarizationMiddleware('m', triger=('tokens', 4_000))",
    "SummarizationMiddleware('m', keep=('message', 4))",
    "create_summarization_middleware(model, None, evidnce=False)",
    "create_summarization_middleware(model, None, counting='tiktoken')",
    "load().summarization_middleware(evidnce=False)",
    "load().compaction_middleware(windw=8_000)",
    *(call.format("windw=8_000") for call in FACES.values()),
    *(call.format("window='all'") for call in FACES.values()),
    *(call.format("policy=4") for call in FACES.values()),
    *(call.format("keep=('message', 4)") for call in FACES.values()),
]


HERE = Path(contextfold.__file__).parent
ENGINE = [HERE / name for name in ("__init__.py", "compactor.py", "policy.py", "ports.py")]
ENGINE += [HERE / "calls" / "request.py", HERE / "summary" / "options.py"]
READ = [str(file) for room in ("settings", "store", "integrations") for file in (HERE / room).rglob("*.py")]
READ += [str(file) for file in ENGINE]
"""Of ours, and nothing that these import: the types of ten frameworks would take minutes."""

ANSWERED = [
    "    text: str = compactor.call(said, [])",
    "    text = session.call(said, [])",
    "    text = compactor.call(limited, [], max_tokens=900)",
    "    text = session.call(lambda view, limit: limited(view, limit), [], max_tokens=900)",
    *(f"    text = await {door}.acall({send}, [])" for door in ("compactor", "session") for send in ("said", "saying")),
    "    text = await compactor.acall(lambda view: saying(view), [], force=True, max_tokens=900)",
    "    text = await session.acall(lambda view: saying(view), [], answer=lambda said: [said.upper()])",
]
MISREAD = [
    "    number: int = compactor.call(said, [])",
    *(
        f"    number = await {door}.acall({send}, [])"
        for door in ("compactor", "session")
        for send in ("said", "saying")
    ),
    "    await compactor.acall(saying, [], forced=True)",
    *(f"    {call}(unsent, [])" for call in ("compactor.call", "session.call", "await compactor.acall")),
]


def test_to_a_type_checker_a_call_answers_what_is_sent(tmp_path: Path) -> None:
    program = "\n".join([HANDED_ON, "async def main() -> None:", *ANSWERED, *MISREAD, ""])
    assert found_by_the_checker(program, tmp_path, "--follow-imports=skip", *READ) == set(MISREAD)


def test_faces_tell_a_type_checker_what_they_hand_on(tmp_path: Path) -> None:
    program = "\n".join([HANDED_ON, *OF_FACES, *SLIPS, ""])
    found = found_by_the_checker(program, tmp_path, "--follow-imports=skip", *READ)
    assert found == set(SLIPS)


@pytest.mark.parametrize("face", FACES)
def test_a_face_takes_what_a_compactor_takes(face: str) -> None:
    taken = parameters(named(f"integrations.{face}:{FACES[face].partition('(')[0]}"))
    assert parameters(Compactor) - taken == ({"trigger", "target", "model"} if face == "haystack" else set())
