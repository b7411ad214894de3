"""What a person said: how much of it stands in the view word for word, or can be found again without loss.

``contextfold.inspector.words`` says what that means. A place that the agent can open is a file or an archive entry of
``Strategy.archive``.

Every message that the user's role holds counts, except what a harness put there (``words.INJECTED``). A view
that a provider would refuse (over the window, malformed) keeps nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from benchmarks.replay.chat import content_text, rendered
from benchmarks.replay.measure import Column, Number, Step, share_column
from benchmarks.replay.recording import Recording
from benchmarks.replay.strategies.base import Strategy
from contextfold.inspector.words import INJECTED, Said, WordsFound, found, said, squeezed

NAMES = ("users", "users_verbatim", "users_findable", "constraints", "constraints_verbatim")


class UserWords:
    """Follows every user message through the views."""

    columns: ClassVar[Sequence[Column]] = (
        share_column(
            "users_verbatim",
            "user messages verbatim %",
            "User messages that stand in the view word for word, of all there were so far; a refused view has none.",
            "words_users_verbatim",
            "words_users",
        ),
        share_column(
            "users_findable",
            "user messages findable %",
            "The same, or in the view in pieces, or in a file that the view names and the agent can read.",
            "words_users_findable",
            "words_users",
            main=False,
        ),
        share_column(
            "constraints",
            "user's constraints %",
            "Sentences of the user with must, never, only, do not and the like (in four languages) that stand in the "
            "view word for word.",
            "words_constraints_verbatim",
            "words_constraints",
        ),
    )

    def __init__(self, recording: Recording, window: int) -> None:
        self._recording = recording
        self._said: list[Said] = []
        self._walked = 0
        self._counts: Counter[str] = Counter()
        self._foreign: tuple[int, ...] | None = None
        self._others = ""
        self._places: Mapping[str, str] = {}
        self._known: dict[int, WordsFound] = {}  # place in ``_said`` -> how it fares beside the present ``_foreign``

    def step(self, step: Step) -> None:
        self._listen(step.index)
        if step.foreign != self._foreign:
            self._look_around(step)
        for place, message in enumerate(self._said):
            self._count(message, self._find(place, message, step) if step.usable else WordsFound(False, False, 0))

    def result(self, strategy: Strategy) -> dict[str, Number]:
        return {f"words_{name}": self._counts[name] for name in NAMES}

    def _listen(self, until: int) -> None:
        for index in range(self._walked, until):
            message = self._recording.messages[index]
            text = content_text(message["content"])
            if message["role"] == "user" and text.strip() and not text.lstrip().startswith(INJECTED):
                self._said.append(said(self._recording.numbers[index], text))
        self._walked = until

    def _look_around(self, step: Step) -> None:
        messages = self._recording.known.messages
        self._foreign = step.foreign
        self._others = squeezed("\n".join(rendered(messages[number]) for number in step.foreign))
        self._places = {name: squeezed(text) for name, text in step.strategy.archive().items()}
        self._known = {}

    def _find(self, place: int, message: Said, step: Step) -> WordsFound:
        if message.number in step.present:
            return found(message, True, "", {})
        if place not in self._known:
            self._known[place] = found(message, False, self._others, self._places)
        return self._known[place]

    def _count(self, message: Said, result: WordsFound) -> None:
        self._counts["users"] += 1
        self._counts["users_verbatim"] += result.verbatim
        self._counts["users_findable"] += result.findable
        self._counts["constraints"] += len(message.constraints)
        self._counts["constraints_verbatim"] += result.constraints
