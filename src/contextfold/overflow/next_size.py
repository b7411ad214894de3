"""Which size follows a refusal. The one answer, for every face.

What belongs here: the arithmetic from a verdict to the tokens to aim at. What does not: the verdict (``verdicts``),
what an endpoint is known to take (``window``), and making the view (``passes``).
"""

from __future__ import annotations

from contextfold.overflow.verdicts import Overflow

WITHOUT_FIGURE = 0.5
"""Share of a refused size that is assumed to fit where the provider names no limit. There is one attempt."""

BELOW_REFUSED = 0.9
"""Share of a refused size that a new view must stay below in any case: nearly the same size would be refused again."""

ANSWER_MARGIN = 0.01
"""Share of the window that stays free between prompt and answer: some providers only give a prompt's size roughly, and
an estimate is one."""


def next_size(verdict: Overflow, sent: int, window: int, accepted: int = 0) -> int:
    """The window to aim at after a refusal, in tokens as ``sent`` counts them.

    Args:
        verdict: what the refusal means, with the figures that it names.
        sent: tokens of the view that was refused, by our count.
        window: the window that was assumed; never exceeded.
        accepted: tokens of the largest request that this endpoint took before; 0 for none.
    """
    if verdict.limit is None:
        return min(window, assumed_limit(sent, accepted))
    most = min(window, int(BELOW_REFUSED * sent))
    if verdict.kind == "rate_limit_too_small":  # what is requested may include the answer
        beside = max(0, (verdict.used or 0) - sent)
        return max(1, min(most, verdict.limit - beside if verdict.limit > 2 * beside else verdict.limit // 2))
    share = min(1.0, sent / verdict.used) if verdict.used else 1.0  # the provider counts, our estimate is off
    return max(1, min(most, int(verdict.limit * share)))


def assumed_limit(sent: int, accepted: int = 0) -> int:
    """The limit to assume, in tokens, where ``sent`` tokens were refused and none was named.

    What was taken before is known to fit, unless it is no smaller than what was refused now.
    """
    return max(1, accepted if accepted < sent else 0, int(WITHOUT_FIGURE * sent))


def room_beside(prompt: int, window: int) -> int:
    """Tokens that an answer may take beside a prompt of so many; none or less where it fills the window by itself."""
    room = window - prompt
    return room - min(int(ANSWER_MARGIN * window), room // 2)
