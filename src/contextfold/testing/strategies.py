"""Hypothesis strategies for conversations: valid ones, and ones broken in the ways that real ones are.

What belongs here: chance. What does not: what the events look like (``plots``, ``render``). Hypothesis is not needed
at run time, so it is imported when a strategy is asked for.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contextfold.testing.plots import (
    DAMAGES,
    AssistantSays,
    Event,
    Instruction,
    Plot,
    PlotCall,
    PlotWords,
    ProviderCompaction,
    Result,
    Script,
    ToolsAnswer,
    UserSays,
)
from contextfold.testing.render import render

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

SCRIPTS: tuple[Script, ...] = ("english", "log", "code", "json", "chinese", "japanese")
TOOLS = ("read_file", "run_command", "search")
ENDINGS = ("results", "answer", "pending", "partial")
STRICT_ALTERNATION = ("anthropic", "gemini", "bedrock-converse")


def histories(
    format: str = "openai-chat", *, broken: bool = False, max_turns: int = 6, max_units: int = 40, huge_units: int = 800
) -> SearchStrategy[list[Any]]:
    """Conversations as lists of wire messages.

    ``format`` is the name of a wire format, such as ``openai-chat``. A valid conversation is one
    that the provider would accept, apart from calls at its end that still wait for their results. With ``broken``,
    one to four things are wrong with it: see ``contextfold.testing.plots.DAMAGES``.

    ``max_turns`` limits what the user says; each turn has up to four rounds of up to four parallel tool calls.
    ``max_units`` limits each text (a unit has 9 to 30 tokens), ``huge_units`` the few outputs that are much longer.

    Raises ``ImportError`` where hypothesis is not installed, and ``ValueError`` for another format.
    """
    story = plots(format, broken=broken, max_turns=max_turns, max_units=max_units, huge_units=huge_units)
    return story.map(lambda plot: render(plot, format))


def plots(
    format: str = "openai-chat", *, broken: bool = False, max_turns: int = 6, max_units: int = 40, huge_units: int = 800
) -> SearchStrategy[Plot]:
    """The plots behind ``histories``, for tests that want to change them before they are rendered."""
    strategies = _hypothesis()
    render((), format)  # an unknown format fails here, not in the middle of a test
    ingredients = _Ingredients(format, max_turns, max_units, huge_units)
    whole: SearchStrategy[Plot] = strategies.composite(lambda draw: _Drawing(draw, ingredients).plot())()
    if not broken:
        return whole
    damaged: SearchStrategy[Plot] = strategies.composite(_draw_damaged)(whole)
    return damaged


def _hypothesis() -> Any:
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise ImportError(
            "contextfold.testing.histories needs hypothesis: pip install 'contextfold[test]', or pip install hypothesis"
        ) from error
    return strategies


def _draw_damaged(draw: DrawFn, whole: SearchStrategy[Plot]) -> Plot:
    strategies = _hypothesis()
    plot = draw(whole)
    damage = strategies.tuples(strategies.sampled_from(DAMAGES), strategies.integers(0, 40))
    for change, place in draw(strategies.lists(damage, min_size=1, max_size=4)):
        plot = change(plot, place)
    return plot


class _Ingredients:
    """The strategies that are drawn from often, made once."""

    def __init__(self, format: str, max_turns: int, max_units: int, huge_units: int) -> None:
        strategies = _hypothesis()
        self.format = format
        self.turns = strategies.integers(0, max_turns)
        self.scripts = strategies.sampled_from(SCRIPTS)
        self.units = strategies.integers(0, max_units)
        # one output in sixteen is huge; the others come first, so that shrinking makes outputs ordinary
        self.huge = strategies.integers(0, 15).map(lambda roll: huge_units if roll == 15 else None)
        self.count = strategies.integers(0, 4)
        self.tool = strategies.sampled_from(TOOLS)
        self.flags = strategies.integers(0, 255)
        self.ending = strategies.sampled_from(ENDINGS)


class _Drawing:
    def __init__(self, draw: DrawFn, ingredients: _Ingredients) -> None:
        self._draw = draw
        self._from = ingredients
        self._numbers = itertools.count(1)

    def plot(self) -> Plot:
        """Instructions, turns of the user with rounds of tools, and one of four endings."""
        flags = self._draw(self._from.flags)
        chat_like = self._from.format not in STRICT_ALTERNATION
        events: list[Event] = []
        if flags & 1:
            developer = flags & 2 and self._from.format.startswith("openai")
            events.append(Instruction(self._words(), "developer" if developer else "system"))
        if flags & 4 and self._from.format == "openai-responses":
            events.append(ProviderCompaction())
        turns = self._draw(self._from.turns)
        for number in range(turns + 1):
            if flags & 8 and number == 1 and chat_like:
                events.append(Instruction(PlotWords("english", 1)))
            events.extend(self._turn(last=number == turns))
        return tuple(events)

    def _words(self) -> PlotWords:
        return PlotWords(self._draw(self._from.scripts), self._draw(self._from.units))

    def _output(self) -> PlotWords:
        words, huge = self._words(), self._draw(self._from.huge)
        return words if huge is None else PlotWords(words.script, huge)

    def _turn(self, *, last: bool) -> list[Event]:
        flags = self._draw(self._from.flags)
        name = "ada" if flags & 1 else None
        says = UserSays(self._words(), name, bool(flags & 2), image=flags & 12 == 12, document=flags & 48 == 48)
        events: list[Event] = [says]
        for _ in range(self._draw(self._from.count)):
            events.extend(self._round())
        ending = self._draw(self._from.ending) if last else "answer"
        if ending == "answer":
            events.append(AssistantSays(self._words(), blocks=bool(flags & 64), refusal=flags & 192 == 192))
        elif ending in ("pending", "partial"):
            calling, answers = self._round()
            partial = ending == "partial" and len(answers.results) > 1
            events += [calling, ToolsAnswer(answers.results[:1])] if partial else [calling]
        return events

    def _round(self) -> tuple[AssistantSays, ToolsAnswer]:
        """One to four parallel calls and their results, in the order of the calls or the other way round."""
        flags, tool = self._draw(self._from.flags), self._draw(self._from.tool)
        custom = bool(flags & 1) and self._from.format.startswith("openai")
        calls, results = [], []
        for _ in range(max(1, self._draw(self._from.count))):
            call = PlotCall(f"call_id_{next(self._numbers)}", tool, self._words(), custom)
            calls.append(call)
            result = Result(call.id, self._output(), tool, is_error=bool(flags & 2), custom=custom)
            results.append(replace(result, blocks=bool(flags & 4), image=flags & 12 == 12))
        says = AssistantSays(
            self._words() if flags & 16 else None,
            self._words() if flags & 32 else None,
            tuple(calls),
            server_tool=flags & 192 == 192,
        )
        return says, ToolsAnswer(tuple(reversed(results) if flags & 64 else results))
