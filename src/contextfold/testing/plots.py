"""Plots: what happens in a conversation, before it is written in any wire format.

A plot is a tuple of events. It is small (texts are a script and a length, not characters), so that random ones
are made and shrunk quickly; ``render`` writes it as wire messages, and gives every text a number of its own,
so that no two texts of a history are equal unless the plot says so.

What belongs here: the events, how texts are spelled out, and the ways in which real histories are broken.
What does not: wire shapes (``render``) and chance (``strategies``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Script = Literal["english", "chinese", "japanese", "code", "log", "json"]
Role = Literal["system", "developer", "user", "assistant"]

UNITS: Mapping[str, str] = {
    "english": "Pane {tag} of report {n} was moved by Ada before noon, and no one objected. ",
    "chinese": "第{n}次检查发现模块{tag}的配置已经更新，用户确认无误。",
    "japanese": "{n}回目の確認で、モジュール{tag}の設定が更新されたことが分かりました。",
    "code": "def step_{n}(value_{tag}: int) -> int:\n    return value_{tag} * {n} + 1\n",
    "log": "2026-01-02T03:04:05 ERROR worker-{tag} task={n} failed: /srv/app/module_{n}.py:{n} <retry>\n",
}
"""One unit of text in each script; a text of length n is n of them. 9 to 30 tokens each."""


@dataclass(frozen=True, slots=True)
class PlotWords:
    """A text: ``units`` times a sentence, line or record in one ``script``, after its number."""

    script: Script = "english"
    units: int = 0

    def spell(self, tag: int) -> str:
        """The characters. Different for every ``tag``."""
        if self.script == "json":
            rows = [{"id": f"row-{tag}-{n}", "path": f"/data/{tag}/{n}.csv", "size": n} for n in range(self.units)]
            return json.dumps({"tag": f"note-{tag}", "rows": rows})
        return f"note-{tag} " + "".join(UNITS[self.script].format(tag=tag, n=n) for n in range(self.units))


@dataclass(frozen=True, slots=True)
class PlotCall:
    """A tool call. ``custom`` calls take free text instead of JSON, where the format knows such calls."""

    id: str
    name: str = "read_file"
    arguments: PlotWords = PlotWords()
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to the call with ``call_id``; in ``blocks`` if so, and always if it carries an ``image``."""

    call_id: str
    words: PlotWords = PlotWords()
    name: str | None = None
    is_error: bool = False
    blocks: bool = False
    image: bool = False
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """A system or developer message."""

    words: PlotWords = PlotWords()
    role: Literal["system", "developer"] = "system"
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class UserSays:
    """A message of the user."""

    words: PlotWords = PlotWords()
    name: str | None = None
    blocks: bool = False
    image: bool = False
    document: bool = False


@dataclass(frozen=True, slots=True)
class AssistantSays:
    """A turn of the model: ``thinking``, then words, then calls; each may be missing, but not all.

    ``row`` is an id that several rows of one turn share. ``server_tool`` adds a search that the provider ran.
    """

    words: PlotWords | None = None
    thinking: PlotWords | None = None
    calls: tuple[PlotCall, ...] = ()
    blocks: bool = False
    refusal: bool = False
    server_tool: bool = False
    row: str | None = None


@dataclass(frozen=True, slots=True)
class ToolsAnswer:
    """Results that are delivered together."""

    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Blank:
    """A message without content."""

    role: Literal["user", "assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ProviderCompaction:
    """The item by which a provider's own compaction stands for what was before it: not readable."""


Event: TypeAlias = Instruction | UserSays | AssistantSays | ToolsAnswer | Blank | ProviderCompaction
Plot: TypeAlias = tuple[Event, ...]


# ---- how real histories are broken: each takes a plot and a place, and changes one thing there ----


def orphan_result(plot: Plot, place: int) -> Plot:
    """A result whose call is nowhere."""
    return _insert(plot, place, ToolsAnswer((Result("call_of_nobody", PlotWords("log", 2)),)))


def dangling_call(plot: Plot, place: int) -> Plot:
    """The results of one delivery are lost, all or all but the first."""

    def lose(event: ToolsAnswer) -> Plot:
        kept = event.results[:1] if len(event.results) > 1 and place % 2 else ()
        return (ToolsAnswer(kept),) if kept else ()

    return _at_results(plot, place, lose)


def late_results(plot: Plot, place: int) -> Plot:
    """A delivery arrives one to four events too late."""
    index = _index_of_results(plot, place)
    if index is None:
        return plot
    without = plot[:index] + plot[index + 1 :]
    return _insert(without, min(len(without), index + 1 + place % 4), plot[index])


def interrupted_results(plot: Plot, place: int) -> Plot:
    """The user says something between parallel results."""

    def interrupt(event: ToolsAnswer) -> Plot:
        singles = tuple(ToolsAnswer((result,)) for result in event.results)
        return (*singles[:1], UserSays(PlotWords("english", 1)), *singles[1:])

    return _at_results(plot, place, interrupt)


def interleaved_rows(plot: Plot, place: int) -> Plot:
    """Parallel calls of one turn stand in rows of their own, each before its own result, and share an id."""
    index = _index_of_results(plot, place)
    owner = None if index in (None, 0) else plot[(index or 0) - 1]
    if index is None or not isinstance(owner, AssistantSays) or len(owner.calls) < 2:
        return plot
    answers = plot[index]
    assert isinstance(answers, ToolsAnswer)
    found = {result.call_id: result for result in answers.results}
    rows: list[Event] = []
    for number, call in enumerate(owner.calls):
        first = owner if number == 0 else AssistantSays()
        rows.append(replace(first, calls=(call,), row=f"row_{place}"))
        if call.id in found:
            rows.append(ToolsAnswer((found[call.id],)))
    return plot[: index - 1] + tuple(rows) + plot[index + 1 :]


def duplicate_ids(plot: Plot, place: int) -> Plot:
    """Every delivery and its calls use the ids call_0, call_1, ... again."""
    events: list[Event] = []
    names: dict[str, str] = {}
    for event in plot:
        if isinstance(event, AssistantSays):
            names.update({call.id: f"call_{number}" for number, call in enumerate(event.calls)})
            event = replace(event, calls=tuple(replace(call, id=names[call.id]) for call in event.calls))
        elif isinstance(event, ToolsAnswer):
            event = ToolsAnswer(tuple(replace(r, call_id=names.get(r.call_id, r.call_id)) for r in event.results))
        events.append(event)
    return tuple(events)


def repeated_result(plot: Plot, place: int) -> Plot:
    """One delivery arrives twice."""
    return _at_results(plot, place, lambda event: (event, event))


def result_before_call(plot: Plot, place: int) -> Plot:
    """A delivery stands before the calls that it answers."""
    index = _index_of_results(plot, place)
    if not index:
        return plot
    return (*plot[: index - 1], plot[index], plot[index - 1], *plot[index + 1 :])


def empty_message(plot: Plot, place: int) -> Plot:
    return _insert(plot, place, Blank("assistant" if place % 2 else "user"))


def late_instruction(plot: Plot, place: int) -> Plot:
    return _insert(plot, place, Instruction(PlotWords("english", 1), "developer" if place % 2 else "system"))


def doubled_user(plot: Plot, place: int) -> Plot:
    return _insert(plot, place, UserSays(PlotWords("english", 1)))


def doubled_assistant(plot: Plot, place: int) -> Plot:
    return _insert(plot, place, AssistantSays(PlotWords("english", 1)))


Damage: TypeAlias = Callable[[Plot, int], Plot]

DAMAGES: tuple[Damage, ...] = (
    orphan_result,
    dangling_call,
    late_results,
    interrupted_results,
    interleaved_rows,
    duplicate_ids,
    repeated_result,
    result_before_call,
    empty_message,
    late_instruction,
    doubled_user,
    doubled_assistant,
)


def _insert(plot: Plot, place: int, event: Event) -> Plot:
    index = place % (len(plot) + 1)
    return (*plot[:index], event, *plot[index:])


def _index_of_results(plot: Plot, place: int) -> int | None:
    indices = [index for index, event in enumerate(plot) if isinstance(event, ToolsAnswer)]
    return indices[place % len(indices)] if indices else None


def _at_results(plot: Plot, place: int, change: Callable[[ToolsAnswer], Plot]) -> Plot:
    index = _index_of_results(plot, place)
    if index is None:
        return plot
    event = plot[index]
    assert isinstance(event, ToolsAnswer)
    return plot[:index] + change(event) + plot[index + 1 :]
