"""Which older messages of users stay word for word.

What belongs here: what a message of a user is worth, and the choice among them within a room. What does not: how large
that room is and what else stays (``decide``), and reading rules (``summary.rules``).
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from contextfold.conversation import pins
from contextfold.evidence.told import told
from contextfold.messages import Message
from contextfold.passes import joined
from contextfold.passes.question import Question
from contextfold.passes.shorten import NOTHING, Shortening, clip_tail, combined
from contextfold.summary import extractive_cues as cues
from contextfold.summary import rules, statements

RECENT_USER = "recent user message"
"""Why such a message stays, as the ledger tells it."""

FOR_NEWEST = 0.15
"""Of what users' words may take, the part that goes to the newest before anything is weighed."""

LARGEST = 0.15
"""Of the same, what one message may take. A longer one is a paste: its two ends stay, in half of that, and evidence
quotes what matters of the rest."""

# In a dialogue 45 % of what users wrote stays word for word with these; with four times as much for a rule, 32 %.
WORTH = (1.0, 1.2, 1.4)
"""What a message of a user counts for each token that it takes: anything, a correction or an answer, a rule. Higher
factors keep a few long messages that mention a rule, and lose most short ones."""

BESIDE_WORDS = 4
"""Tokens that a message takes besides its words."""

_READ = 2_000
"""Characters of a message that say what it is worth: the rest of a paste is not read for rules."""


class UsersWords:
    """The messages of users in a history. ``sizes``: of each message in the view, in tokens. ``held``: those that stay
    in any case.
    """

    def __init__(self, question: Question, sizes: Sequence[int], held: Container[int]) -> None:
        self._question = question
        self._messages = question.messages
        self._sizes = sizes
        self._held = held

    def has_rules(self) -> bool:
        """Whether a person set a rule in a message that is not held anyway, be it gone already."""
        history = self._question.history
        return any(history.said(_is_rule, n) for n in range(len(self._messages)) if n not in self._held)

    def chosen(
        self, older: Sequence[int], *, beside: set[int], room: int, most: int | None = None
    ) -> tuple[dict[int, str], Shortening, int]:
        """Which of the ``older`` messages, in ascending order, stay within ``room`` tokens, and why; how long ones are
        shortened; and their size then. ``beside``: what stays anyway. ``most``: how many may stay; None for any number.

        Some of the room goes to the newest, the rest to what is worth most for its tokens: rules before corrections and
        answers to a question, those before others, short before long. Of rules that say the same of other names or
        figures the newest stays.
        """
        left = room
        found = [n for n in reversed(older) if self._is_said(n)]
        whole = int(LARGEST * room)
        price = {n: BESIDE_WORDS + self._sizes[n] for n in found}
        by_worth = sorted(found, key=lambda n: (-self._value(n) / price[n], -n))
        if most is not None:  # where messages are counted, a long rule costs no more than a short remark
            by_worth.sort(key=lambda n: -self._question.history.said(_worth, n))
        users: dict[int, str] = {}
        clips: list[Shortening] = []
        said = {self._about(n) for n in beside if self._is_said(n)}
        # The newest first and in their order, because the work goes on from them; then whatever is worth most,
        # however old.
        for newest in (True, False):
            for index in found if newest else by_worth:
                if most is not None and len(users) >= (FOR_NEWEST * most if newest else most):
                    break
                if index in users or (key := self._about(index)) in said:
                    continue
                clip = self._shortened(index, whole // 2) if self._sizes[index] > whole else NOTHING
                size = clip.sizes.get(index, self._sizes[index])
                if newest and room - left + size > FOR_NEWEST * room:
                    break
                # Not the end: a shorter one behind it may still fit.
                if size > left:
                    continue
                left -= size
                users[index] = RECENT_USER
                said.add(key)
                clips.append(clip)
        return users, combined(clips), room - left

    def _is_said(self, index: int) -> bool:
        return self._question.history.said(_is_said, index)

    def _about(self, index: int) -> object:
        return self._question.history.said(_about, index)

    def _value(self, index: int) -> float:
        history = self._question.history
        value = WORTH[history.said(_worth, index)]
        # In a dialogue most of the words are small talk: there they count by what they tell as well.
        return value * history.said(_told, index) if self._question.is_talk else value

    def _shortened(self, index: int, limit: int) -> Shortening:
        """A long paste with a visible cut, within a limit of tokens; nothing where the message is within it."""
        question = self._question
        policy, earlier = question.policy.oversized, question.record.edits if question.record else ()
        is_edited = any(edit.index == index for edit in earlier)
        if self._sizes[index] <= limit or is_edited or not policy.enabled or limit < policy.minimum:
            return NOTHING
        return clip_tail(
            self._messages, [index], limit=limit, pending=(), policy=question.policy, counter=question.counter
        )


# ---- one message: asked at each pass, so the history keeps the answers ----


def _read(message: Message) -> str:
    return pins.own_text(message)[:_READ]


def _is_said(messages: Sequence[Message], index: int) -> bool:
    message = messages[index]
    return pins.is_person(message) and not message.tool_results and not joined.is_joined(message)


def _is_rule(messages: Sequence[Message], index: int) -> bool:
    if not pins.is_person(messages[index]):
        return False
    text = _read(messages[index])
    return bool(cues.STRICT.search(text)) or cues.is_labeled(text)


def _about(messages: Sequence[Message], index: int) -> object:
    return rules.about(_read(messages[index]))


def _told(messages: Sequence[Message], index: int) -> float:
    return told(_read(messages[index]))


def _worth(messages: Sequence[Message], index: int) -> int:
    """How much is lost without a message: 2 for a rule, 1 for a correction or an answer."""
    text = _read(messages[index])
    if cues.STRICT.search(text):
        return 2
    before = messages[index - 1] if index else None
    is_answer = before is not None and before.role == "assistant" and statements.is_question(before.text)
    return int(is_answer or bool(cues.CORRECTION.search(text)))
