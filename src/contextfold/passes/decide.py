"""The decision: whether to compact, and what becomes of every message. Pure: it performs nothing.

    question ──▶ triggered? ──▶ what must stay (pins) ──▶ floor fits? ──▶ cheap tiers enough? ──▶ Plan (no summary)
                      │                                       │                  │ no
                      ▼                                       ▼                  ▼
                    Nothing                                  CannotFit     tail, evicted, budgets ──▶ Plan

What belongs here: the arithmetic of a pass. What does not: choosing pins (``pins``) and edits (``shorten``), asking for
summaries (``summary``), building the record (``perform``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from contextfold.conversation import pins
from contextfold.conversation.groups import Group
from contextfold.conversation.ledger import Fate
from contextfold.errors import CannotFit
from contextfold.messages import ToolCall, ToolResult
from contextfold.passes import joined
from contextfold.passes.fates import PASSED, fates
from contextfold.passes.fates import evicted_fate as evicted_fate  # and what becomes of a message that leaves
from contextfold.passes.means import Nothing as Nothing  # decisions are read from here
from contextfold.passes.question import BACKGROUND, Question, Trigger, triggered
from contextfold.passes.shorten import NOTHING, Shortening, clip_tail, combined, shorten_all, shorten_old, without
from contextfold.passes.words import UsersWords
from contextfold.policy import PATIENCE, PROSE, Policy, Toggle, ToolArguments
from contextfold.record.compaction import Edit, FateRun
from contextfold.tiers.reasoning import ReasoningRemoved

SMALLEST_SUMMARY = 160
"""Tokens that a summary message needs to say anything: its frame takes about 60."""

SMALL = 600
"""Tokens up to which a summary message takes all that the tail leaves below a target."""

PLAN = "latest todo list or plan"

# With the larger share for lowered targets, too, evidence of a long session had no room left for its early facts.
FOR_USERS, FOR_USERS_OF_TARGET = 0.65, 0.15
"""Of the room beside the tail, the most that older words of users may take, whatever their budget. Less where a target
or a tail is given, since the summary message has what they leave."""

MUCH = 0.5
"""Share of the window: a view that may have no more after a pass has a target that was lowered."""

# Tuned on the replay: a quarter leaves what agents need again where it was (87.9 and 87.8 % at 16,000 tokens). Twice
# that beyond a twentieth of the window brings a dialogue from .184 to .173 of what no compaction costs.
PAID, FEW_WORDS = 0.25, 0.05
"""Of what users' words take, the part by which the summary message is smaller, since they would be quoted there; twice
that for what exceeds this share of the window. So much is only said in a dialogue, where evidence has little else."""

LARGE = 0.05
"""Share of the window from which on a group that the model has not read yet makes a pass wait for the next call."""

STEP = 0.25
"""Share of the messages that stay that has to come in addition before there is another pass, where what the caller
wants kept is above the caller's own trigger: else every message would rewrite the view."""

FULL = 0.95
"""Share of the window up to which what ``keep`` names stays, whatever the default target. The rest is for what an
estimate may be wrong."""

NO_USERS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass will do. Indices are positions in the history; budgets are tokens."""

    trigger: str
    target: int
    floor: Mapping[str, int]
    covers: int
    fates: tuple[tuple[Fate, str], ...]
    edits: tuple[Edit, ...]
    saved: Mapping[str, int]
    evicted: tuple[int, ...] = ()
    """Messages that leave the view in this pass."""
    gone: tuple[int, ...] = ()
    """Messages that are out of the view after this pass: ``evicted`` and all earlier ones."""
    summary_after: int = -1
    kept_tokens: int = 0
    """The view without its summary message."""
    prose_tokens: int = 0
    evidence_tokens: int = 0
    makes_summary: bool = False
    """False: an earlier summary, if there is one, stands as it is."""
    above_trigger: bool = False
    """What the caller wants kept is above the caller's own trigger: the view after this pass would fire it again."""


def decide(question: Question) -> Plan | Nothing:
    """What to do about a conversation. Raises ``CannotFit`` when its floor is above what must be reached."""
    trigger = question.trigger
    if trigger is None:
        return Nothing("below the trigger")
    return _Pass(question, trigger).decide()


class _Pass:
    """One decision, step by step; every attribute is set once."""

    def __init__(self, question: Question, trigger: Trigger) -> None:
        self.question = question
        self.trigger = trigger.reason
        self.limits = question.limits
        self.sizes = list(question.sizes_after)
        self.by_count = trigger.by_count
        self.is_wanted = question.forced not in (None, BACKGROUND)
        """A person or a refusal wants the pass. One that is prepared is made where it would be made at the trigger."""
        self.before, removed = question.out_of_view
        # Pending calls are no part of the floor: they stay whatever their size, but results beside them may still be
        # clipped.
        held = question.held
        self.held = {n: reason for n, reason in held.items() if n not in self.before and reason != pins.PENDING}
        self.pending = {n: reason for n, reason in held.items() if n not in self.before and reason == pins.PENDING}
        self.joined = self._joined()
        for index, size in self.joined.sizes.items():
            self.sizes[index] = size
        self.groups = sorted(
            (group for group in question.grouping.groups if any(n not in self.before for n in group.indices)),
            # a group is as recent as its last result, however long ago the call was
            key=lambda group: group.last,
            reverse=True,
        )
        said = pins.newest_said(question.messages)
        self.newest = next((group for group in self.groups if group.last == said), None)
        """The group that ends the conversation, but for instructions behind it; None where it is not in the view."""
        self.native = pins.newest_native(question.messages, self.before, removed)
        """What stands before this message is in the provider's own compaction, and is not read any more."""
        self.newest_turn = next((found.indices for found in self.groups if self._is_turn(found)), ())
        self.floor = self._floor()
        self.floor_tokens = sum(self.floor.values())

    def _joined(self) -> Shortening:
        """What an earlier view joined to messages that are in this one."""
        apart = {edit.index for edit in self._earlier_edits() if edit.tier == joined.TIER}
        return joined.taken_apart(
            self.question.messages,
            [n for n in self._present() if n not in apart],
            newest=pins.newest_user(self.question.messages),
            room=self.limits.recent_users // 2,
            counter=self.question.counter,
        )

    def decide(self) -> Plan | Nothing:
        """At the policy's target; where only the default stands against what must stay, the default gives way.

        An explicit target is a promise and is never raised. While the view fits the window, the default never ends a
        conversation either.
        """
        if self._is_worth_waiting():
            return Nothing("the newest messages are large and not read yet: they can leave at the next call")
        try:
            return self._at(self.limits.target)
        except CannotFit as problem:
            if self.question.policy.target is not None:
                raise
            return self._above_target(problem)

    def _is_worth_waiting(self) -> bool:
        """Whether the newest group is so large that a pass had better wait until the model has read it."""
        # What a caller set or asked for is done when it is due; only the default may be put off.
        if self.question.forced or self.question.policy.has_own_trigger or self.newest is None:
            return False
        # Unread it has to stay as it is, in the place of what else could be carried; after the next call it can leave.
        window = self.limits.window
        return self._free_size(self.newest) > LARGE * window and self.question.view_tokens <= PATIENCE * window

    def _above_target(self, problem: CannotFit) -> Plan | Nothing:
        """At a higher target, as low as it can be, below the trigger; below the window where the view exceeds that."""
        # A view that ends right at the trigger would fire it again with the next message.
        ceiling = int(0.95 * (self.limits.trigger or self.limits.window))
        room = 8 if self.is_wanted else 2  # after a refusal the limit may be a guess: stay well below it
        # `share` divides the room above what must stay: a part of it first, so that the view ends low, then all of it.
        for share in (room, 1):
            target = self._raised(problem, ceiling, share)
            if self.limits.target < target <= ceiling:
                try:
                    return self._at(target)
                except CannotFit as other:
                    problem = other
        if self.question.view_tokens <= self.limits.window:
            return Nothing(f"what must stay takes {problem.needed:,} tokens, too much to end below the trigger")
        window = self.limits.window
        # A pass that ends above the trigger is not repeated: the view fits then, and nothing is left to do.
        for share in (8, 8, 1):  # the first may find that the newest messages need more than was known
            if problem.needed > window:
                break
            try:
                return self._at(self._raised(problem, window, share))
            except CannotFit as other:
                problem = other
        raise CannotFit(limit=window, floor=problem.floor, limit_name="window") from None

    def _raised(self, problem: CannotFit, ceiling: int, share: int) -> int:
        """A target above what must stay, with a part of what is left below the ceiling for what may stay."""
        # The default was lowered to a caller's number: what must stay never makes what may stay grow.
        if self.limits.most <= self.limits.target:
            return problem.needed
        return problem.needed + (ceiling - problem.needed) // share

    def _at(self, target: int) -> Plan | Nothing:
        if self.floor_tokens + SMALLEST_SUMMARY > target:
            raise CannotFit(limit=target, floor={**self.floor, "smallest summary": SMALLEST_SUMMARY})
        target = self._with_room_for_keep(target)
        tail = self._tail(target)
        # Shortening first: it asks no model and takes no message out that is read.
        return self._unread(target) or self._cheap_tiers(target, tail) or self._summarizing(target, tail)

    def _with_room_for_keep(self, target: int) -> int:
        """The target, raised as far as the window goes where a default one has no room for an explicit ``keep``."""
        policy, most = self.question.policy, int(FULL * self.limits.window)
        if policy.keep is None or policy.target is not None or target >= most:
            return target
        # ``keep`` that was given is a promise, the default target is none: so the target gives way.
        needed = self.floor_tokens + sum(self._free_size(group) for group in self._tail(most))
        if needed + SMALLEST_SUMMARY <= target:
            return target
        summary = max(SMALLEST_SUMMARY, int(policy.budgets.summary * (target - self.floor_tokens)))
        return max(target, min(most, needed + summary))

    def _floor(self) -> dict[str, int]:
        floor = {name: size for name, size in self.question.overhead.items() if size}
        for index, reason in sorted(self.held.items()):
            floor[reason] = floor.get(reason, 0) + self.sizes[index]
        return floor

    # ---- the tail ----

    def _tail(self, target: int) -> list[Group]:
        """The groups that stay, at least one, within what ``keep`` allows and the target leaves."""
        room = target - self.floor_tokens
        count, tokens = self._keep(room)
        newest = next((group for group in self.groups if not self._is_beside(group)), None)
        # Groups with pending calls stay whatever their size, and so does the newest.
        tail = [group for group in self.groups if not self.pending.keys().isdisjoint(group.indices)]
        held = {group.first for group in tail}
        kept_messages = sum(len(group.indices) for group in tail)
        kept_tokens = sum(self._free_size(group) for group in tail)
        # Results whose calls are missing, and instructions, may be newer than the newest turn and say nothing without
        # it: the tail goes on until that turn is in it.
        reached = newest is None
        for group in self.groups:
            if group.first not in held:
                size = self._free_size(group)
                full = kept_tokens + size > tokens or (count is not None and kept_messages >= count)
                if full and reached and tail:
                    break
                tail.append(group)
                kept_tokens += size
                kept_messages += len(group.indices)
            reached = reached or group is newest
        return tail

    def _keep(self, room: int) -> tuple[int | None, int]:
        """(messages, tokens) that the tail may have; None for any number of messages."""
        most = max(0, room - SMALLEST_SUMMARY)
        keep = self.limits.keep
        if keep is None:
            # A trigger that counts messages is met by fewer messages: a tail that is chosen by tokens alone could
            # keep them all.
            count = self.question.view_messages // 2 if self.by_count else None
            # Where a summary can say little, rules go before messages beside the newest.
            recent = 0.0 if room <= SMALL and self._words().has_rules() else self.question.policy.budgets.recent
            return count, min(most, int(recent * room))
        tokens = keep.tokens(self.limits.window)
        return (int(keep.value), most) if tokens is None else (None, min(most, tokens))

    def _is_turn(self, group: Group) -> bool:
        return any(self.question.messages[index].role == "assistant" for index in group.indices)

    def _policy_for(self, indices: Sequence[int]) -> Policy:
        policy = self.question.policy
        if not self.question.thinking_is_asked_for and set(indices).isdisjoint(self.newest_turn):
            return policy
        # Providers want the newest turn's reasoning back while its calls are answered, and some that of all.
        return policy.model_copy(update={"reasoning": Toggle(enabled=False)})

    def _is_beside(self, group: Group) -> bool:
        """Nothing but an instruction, or results whose calls are missing: the newest turn is the one before them."""
        answers, messages = self.question.grouping.answers, self.question.messages
        return all(
            messages[index].is_instruction or (isinstance(part, ToolResult) and (index, number) not in answers)
            for index in group.indices
            for number, part in enumerate(messages[index].parts)
        )

    def _free_size(self, group: Group) -> int:
        """Tokens of a group beyond what is in the floor or gone already."""
        return sum(self.sizes[n] for n in group.indices if n not in self.held and n not in self.before)

    # ---- without a summary ----

    def _unread(self, target: int) -> Plan | None:
        """A plan that only takes out what the provider's own compaction stands for, if that alone meets the target."""
        older = [group.indices for group in self.groups if max(group.indices) < self.native]
        stays = self.before | self.held.keys() | self.pending.keys()
        unread = {n for indices in older for n in indices if n not in stays}
        left = self.question.view_tokens - sum(self.sizes[n] for n in unread)
        if not unread or left > target or self.by_count or self.question.forced or self._too_little(left):
            return None
        kept_tokens = left - self.question.summary_tokens
        evidence_tokens = self.question.summary_tokens
        return self._plan(
            target, evicted=unread, found=NOTHING, kept_tokens=kept_tokens, evidence_tokens=evidence_tokens
        )

    def _cheap_tiers(self, target: int, tail: Sequence[Group]) -> Plan | None:
        """A plan that only shortens old messages, if that alone meets the target and is worth its rewrite."""
        by_name = self.question.policy.compresses_outputs
        # Shortening saves the price of a summary, so nothing is saved where that is free; and it takes no message out,
        # which is what a trigger by count asks for.
        if (self.question.summary_is_free and not by_name) or self.by_count:
            return None
        kept = {n for group in tail for n in group.indices}
        edited = {edit.index for edit in self._earlier_edits()}
        old = [n for n in self._present() if n not in kept and n not in self.held and n not in edited]
        plan = {n for group in self._plan_kept(kept, target) for n in group.indices}
        # The newest turn is still being worked on; and a plan that is cut is no plan.
        old = [n for n in old if n not in self.newest_turn and n not in plan]
        evidence = int(self._share_for_evidence() * (target - self.floor_tokens))
        quoted = 0 if by_name else max(0, evidence - self.question.summary_tokens)  # else in what is left
        wanted = self.question.view_tokens - target + quoted
        found = self._compressed(old) if by_name else NOTHING
        if sum(found.saved.values()) < wanted and not self.question.summary_is_free:
            found = shorten_old(
                self.question.messages,
                old,
                policy=self._policy_for(old),
                counter=self.question.counter,
                # compression that a caller asked for by name is complete, not just as much as the target needs
                wanted=sum(self.sizes) if by_name else wanted,
            )
        total = sum(found.saved.values())
        # Halfway is worse than nothing: the prefix would be rewritten now, and again for the summary that follows.
        if wanted <= 0 or total < max(wanted, 0 if self._obeys_trigger else self.limits.minimum_gain):
            return None
        return self._plan(
            target,
            evicted=set(),
            found=found,
            kept_tokens=self.question.view_tokens - self.question.summary_tokens - total,
            evidence_tokens=max(evidence, self.question.summary_tokens),
        )

    def _compressed(self, old: Sequence[int]) -> Shortening:
        """Every tool output among old messages that is over the limit, compressed."""
        off = Toggle(enabled=False)
        # A caller asked for compressed outputs by name, and for nothing else.
        alone = self.question.policy.model_copy(
            update={"reasoning": off, "media": off, "tool_arguments": ToolArguments(enabled=False)}
        )
        names = self._tool_names()
        return shorten_all(self.question.messages, old, policy=alone, counter=self.question.counter, names=names)

    def _share_for_evidence(self) -> float:
        return self.question.policy.budgets.summary * (1 - PROSE) if self.question.policy.evidence else 0.0

    def _less_evidence(self, target: int) -> Plan | None:
        """A plan that keeps every message and quotes less; None where that does not reach the target."""
        kept_tokens = self.question.view_tokens - self.question.summary_tokens
        # After a refusal with no message left to evict, the summary message itself may be what is too much.
        budget = target - kept_tokens
        if not SMALLEST_SUMMARY <= budget < self.question.summary_tokens:
            return None
        if self._too_little(target):
            return None
        return self._plan(target, evicted=set(), found=NOTHING, kept_tokens=kept_tokens, evidence_tokens=budget)

    # ---- with a summary ----

    def _summarizing(self, target: int, tail: Sequence[Group]) -> Plan | Nothing:
        room = target - self.floor_tokens
        # The order is that of importance: the tail, what users said, the newest plan, each out of what the ones before
        # it left. Shortened messages come last, from what remains beside the summary's own share.
        found, tail_size = self._clip(tail, room)
        recent = {n for group in tail for n in group.indices}
        users, clipped, users_size = self._users(recent, room - tail_size - SMALLEST_SUMMARY)
        room -= users_size
        plan = self._plan_kept({*recent, *users}, (room - tail_size - SMALLEST_SUMMARY) // 4)
        room -= sum(self._free_size(group) for group in plan)
        users |= {n: PLAN for group in plan for n in group.indices if n not in self.held and n not in self.before}
        # the slack is for turns to come; a summary that can say little had better use it
        summary = max(SMALLEST_SUMMARY, int(self.question.policy.budgets.summary * room), min(SMALL, room - tail_size))
        share = 0 if self.by_count else int(self.question.policy.budgets.shortened * room)
        middle, shortened, middle_size = self._middle(tail, users, min(share, room - tail_size - summary))
        kept = {n for group in [*tail, *middle] for n in group.indices}
        evicted = {n for n in self._present() if n not in kept and n not in self.held and n not in users}
        found = combined([found, clipped, shortened, without(self.joined, evicted)])
        if not evicted and not found.edits:
            return self._less_evidence(target) or self._nothing_to_do()
        budget = min(room - tail_size - middle_size, summary)
        kept_tokens = target - room + tail_size + middle_size
        if self.limits.carried is not None and not self.by_count:
            # what users said need not be quoted again, so a part of what it takes comes out of the summary's room
            carried = max(SMALLEST_SUMMARY, self.limits.carried - self._paid(users_size))
            budget = min(carried, max(budget, self.limits.most - kept_tokens))
            target = kept_tokens + budget
        # The tail left the summary less than half of its share: a larger view beats a summary that says next to
        # nothing.
        elif budget < summary // 2 and target < self.limits.comfortable:
            return self._at(self.limits.comfortable)
        expected = kept_tokens + budget
        fires_again = self._obeys_trigger and self._fires(expected, self._view_messages(evicted))
        # What is prepared early has room for all of its summary, so what it may free at most counts.
        freed_to = min(expected, kept_tokens + SMALLEST_SUMMARY) if self.question.forced == BACKGROUND else expected
        if skip := self._too_little(freed_to) or (self._no_step(evicted, tail) if fires_again else None):
            return skip
        prose = self._prose(budget)
        return self._plan(
            target,
            evicted=evicted,
            users=users,
            found=found,
            kept_tokens=kept_tokens,
            prose_tokens=prose,
            evidence_tokens=budget - prose if self.question.policy.evidence else 0,
            makes_summary=True,
            above_trigger=fires_again,
        )

    def _paid(self, users_size: int) -> int:
        """Tokens by which the summary message is smaller for what users said that stays."""
        beyond = max(0, users_size - int(FEW_WORDS * self.limits.window))
        return int(PAID * (users_size + beyond))

    def _middle(
        self, tail: Sequence[Group], users: Mapping[int, str], budget: int
    ) -> tuple[list[Group], Shortening, int]:
        """Groups next older than the tail that stay shortened, how, and their size, within a budget of tokens."""
        messages, counter = self.question.messages, self.question.counter
        names = self._tool_names()
        edited = {edit.index for edit in self._earlier_edits()}
        middle: list[Group] = []
        found: list[Shortening] = []
        size = 0
        kept = {group.first for group in tail}
        for group in (group for group in self.groups if group.first not in kept):
            free = [n for n in group.indices if n not in self.held and n not in self.before and n not in users]
            fresh = [n for n in free if n not in edited]
            policy = self._policy_for(group.indices)
            reduced = shorten_all(messages, fresh, policy=policy, counter=counter, names=names)
            more = sum(reduced.sizes.get(n, self.sizes[n]) for n in free)
            if size + more > budget:
                break
            size += more
            middle.append(group)
            found.append(reduced)
        return middle, combined(found), size

    def _users(self, kept: set[int], left: int) -> tuple[dict[int, str], Shortening, int]:
        """Older messages of users that stay, how long ones are shortened, and their size then, within a part of what is
        left.
        """
        lowered = self.limits.carried is None or self.limits.most < MUCH * self.limits.window
        share = FOR_USERS_OF_TARGET if lowered else FOR_USERS
        room = min(self.limits.recent_users, int(share * max(0, left)))
        words = self._words()
        # what stands before a provider's own compaction would not be read
        older = [n for n in self._present() if n not in kept and n not in self.held and n > self.native]
        return words.chosen(older, beside=kept, room=room, most=self._most_users(kept))

    def _most_users(self, kept: set[int]) -> int | None:
        """How many older messages of users may stay: half of what else stays leaves below a trigger that counts
        messages, or the view would fire it again, or for ever. None for any number.
        """
        question = self.question
        clauses = question.policy.clauses(question.limits.window, question.limits.overhead) if self.by_count else ()
        counts = [int(size.value) for clause in clauses for size in clause.sizes if size.unit == "messages"]
        stays = len(kept - self.before) + len(self.held.keys() - kept) + 1  # with the summary
        return max(0, min(counts) - stays) // 2 if counts else None

    def _words(self) -> UsersWords:
        return UsersWords(self.question, self.sizes, self.held)

    def _plan_kept(self, kept: set[int], room: int) -> list[Group]:
        """The group with the newest todo list or plan, where it is older than the tail and within the room."""
        newest = self.question.newest_plan
        for group in self.groups:
            if newest is not None and newest[0] in group.indices:
                is_there = kept.issuperset(group.indices) or not self.before.isdisjoint(group.indices)
                return [] if is_there or self._free_size(group) > room else [group]
        return []

    def _clip(self, tail: Sequence[Group], room: int) -> tuple[Shortening, int]:
        """How to clip items of a tail that is too large for the room, and its size then.

        Raises ``CannotFit`` if clipping is not enough.
        """
        most = room - SMALLEST_SUMMARY
        size = sum(self._free_size(group) for group in tail)
        if size <= most:
            return NOTHING, size
        free = sorted(n for group in tail for n in group.indices if n not in self.held and n not in self.before)
        found = clip_tail(
            self.question.messages,
            free,
            limit=most,
            pending=pins.about_to_run(self.question.messages, self.pending),
            policy=self.question.policy,
            counter=self.question.counter,
        )
        left = sum(found.sizes.get(n, self.sizes[n]) for n in free)
        if left > most:
            floor = {**self.floor, "newest messages, clipped": left, "smallest summary": SMALLEST_SUMMARY}
            raise CannotFit(limit=self.limits.target, floor=floor)
        return found, left

    def _prose(self, budget: int) -> int:
        question, policy = self.question, self.question.policy
        share = policy.budgets.prose_of(budget, built_in=question.summary_is_free, behind_view=question.is_behind_view)
        prose = max(min(budget, SMALLEST_SUMMARY), share if policy.evidence else budget)
        cap = policy.summary.max_tokens
        return min(budget, prose if cap is None else cap)

    def _nothing_to_do(self) -> Nothing:
        if self.question.view_tokens > self.limits.window:
            rest = self.question.view_tokens - self.floor_tokens
            raise CannotFit(
                limit=self.limits.window, floor={**self.floor, "recent messages": rest}, limit_name="window"
            )
        return Nothing("nothing is left to compact")

    @property
    def _obeys_trigger(self) -> bool:
        """Whether the caller said when to compact, and no number for what a pass must free: then each trigger fires."""
        policy = self.question.policy
        return policy.has_own_trigger and "minimum_gain" not in policy.model_fields_set

    def _too_little(self, expected: int) -> Nothing | None:
        # A rewrite that frees next to nothing costs more than it saves, while the view still fits.
        gain = self.question.view_tokens - expected
        fits = self.question.view_tokens <= self.limits.window
        # How much is worth it is ours to say under the default trigger, and the caller's with a number.
        if (
            self.is_wanted
            or self.by_count
            or not fits
            or gain >= self.limits.minimum_gain
            or (self._obeys_trigger and gain > 0)
        ):
            return None
        least = self.limits.minimum_gain
        return Nothing(f"a pass would free {max(0, gain):,} tokens, less than the minimum of {least:,}")

    def _fires(self, tokens: int, messages: int) -> bool:
        return triggered(self.question.policy, self.limits, tokens, messages) is not None

    def _view_messages(self, evicted: set[int]) -> int:
        """Messages of the view after the pass, the summary included."""
        return sum(1 for n in self._present() if n not in evicted) + 1

    def _no_step(self, evicted: set[int], tail: Sequence[Group]) -> Nothing | None:
        """Under a trigger below what must be kept, a pass waits until enough has come since the last one."""
        question = self.question
        if question.record is None or self.is_wanted or question.view_tokens > self.limits.window:
            return None
        kept = [n for group in tail for n in group.indices]
        if len(evicted) >= max(2, STEP * len(kept)):
            return None
        return Nothing("what must be kept is above the trigger, and too little came since the last pass")

    # ---- the plan ----

    def _present(self) -> list[int]:
        return [n for n in range(len(self.question.messages)) if n not in self.before]

    def _tool_names(self) -> dict[str, str]:
        parts = (part for message in self.question.messages for part in message.parts)
        return {part.id: part.name for part in parts if isinstance(part, ToolCall)}

    def _earlier_edits(self) -> tuple[Edit, ...]:
        return self.question.record.edits if self.question.record else ()

    def _plan(
        self,
        target: int,
        *,
        evicted: set[int],
        found: Shortening,
        kept_tokens: int,
        users: Mapping[int, str] = NO_USERS,
        prose_tokens: int = 0,
        evidence_tokens: int = 0,
        makes_summary: bool = False,
        above_trigger: bool = False,
    ) -> Plan:
        edits = self._edits(found.edits, evicted)
        gone = evicted | self.before
        passed = {n for n in evicted if n < self.native} | {
            n for run in self._earlier_fates() if run.reason == PASSED[1] for n in range(run.start, run.stop)
        }
        # As few messages as possible: whatever is edited or rewound behind them leaves the record valid.
        covers = 1 + max([*gone, *(edit.index for edit in edits)], default=-1)
        return Plan(
            trigger=self.trigger,
            target=target,
            floor=self.floor,
            covers=covers,
            fates=fates(
                self.question.messages[:covers],
                pinned=self.held | self.pending | dict(users),
                edits=edits,
                evicted=evicted,
                passed=passed,
                earlier=self._earlier_fates(),
            ),
            edits=edits,
            saved=found.saved,
            evicted=tuple(sorted(evicted - passed)),
            gone=tuple(sorted(gone - passed)),
            summary_after=self._summary_after(gone, users),
            kept_tokens=kept_tokens,
            prose_tokens=prose_tokens,
            evidence_tokens=evidence_tokens,
            makes_summary=makes_summary and bool(gone - passed or self.joined.edits),
            above_trigger=above_trigger,
        )

    def _edits(self, found: Sequence[Edit], evicted: set[int]) -> tuple[Edit, ...]:
        """Those of the record in force that still hold, and the new ones."""
        # New ones were priced against the original message, so they replace earlier ones of it. But a part that has
        # left stays out: the provider has refused it, or the summary tells of it.
        clipped = {edit.index for edit in found}
        left = {(e.index, e.part) for e in self._earlier_edits() if e.tier in (ReasoningRemoved.name, joined.TIER)}
        held = [e for e in self._earlier_edits() if e.index not in clipped or (e.index, e.part) in left]
        fresh = [e for e in found if (e.index, e.part) not in left]
        edits = (e for e in [*held, *fresh] if e.index not in evicted)
        return tuple(sorted(edits, key=lambda edit: (edit.index, edit.part)))

    def _earlier_fates(self) -> Sequence[FateRun]:
        return self.question.record.fates if self.question.record else ()

    def _summary_after(self, gone: set[int], users: Iterable[int]) -> int:
        """Behind the leading instructions and, by policy, behind the first user message if older ones are gone, and
        behind what users said that stays: that is mostly the same after the next pass, and is read from the cache then.
        """
        messages = self.question.messages
        leading = -1
        while leading + 1 < len(messages) and messages[leading + 1].is_instruction:
            leading += 1
        if self.question.policy.summary_place == "after_system" or not (gone or self.joined.edits):
            return max(leading, self.native)
        first = next((n for n, reason in self.held.items() if reason == pins.FIRST_USER), None)
        if first is None and self.question.policy.first_user:  # the only user message is first and newest
            first = pins.first_user(messages)
        place = leading if first is None or first > max(gone, default=first) else max(leading, first)
        if not self.question.alternates:
            # Where roles alternate, these words would be one with the first message for who keeps a view as history.
            place = max(place, *users, -1)
        # In any case behind a provider's own compaction: the provider reads nothing that stands before that.
        return max(place, self.native)
