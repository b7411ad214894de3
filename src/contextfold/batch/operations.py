"""What becomes of one conversation, and the batch classes that do it to every row.

Each class works on the public ``Compactor`` and nothing below it. It can be pickled, so that a process pool or Ray
hands it on; settings are checked when it is made, not in the middle of a job. What goes wrong with a conversation is an
error of its row (``error``, ``error_type``; all other new columns are None then), and never one of the batch.

What belongs here: columns and their values. What does not: tables, files, and who does the work.
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict, Unpack

from contextfold import json_values
from contextfold.batch import measures
from contextfold.batch.rows import BESIDE, Given, column_of, read_row
from contextfold.batch.tables import ColumnType, column_names, encodable, extended, rows_of
from contextfold.compactor import CompactionResult, Compactor
from contextfold.conversation.groups import group
from contextfold.conversation.ledger import FATES
from contextfold.errors import (
    CannotFit,
    InputError,
    PolicyError,
    SummaryFailed,
    border,
    shown,
    text_of,
)
from contextfold.formats import decode, detect, get
from contextfold.formats.langchain_shapes import is_object
from contextfold.messages import well_formed
from contextfold.policy import Policy, SizeInput, TriggerInput
from contextfold.window import Window

SAME = "same"
IN_ALL: Mapping[str, ColumnType] = {"left_out": "text", "error": "text", "error_type": "text"}
MOST_PROBLEMS = 20
"""Problems of one conversation that are told in words; all are counted."""


MOST_WHOLE = (1 << 63) - 1
"""What a column of whole numbers holds."""


class CompactorOptions(TypedDict, total=False):
    """What a ``Compactor`` is made of, but for a summarizer."""

    window: int | None
    model: Any
    trigger: TriggerInput
    target: SizeInput | None
    keep: SizeInput | None
    policy: Policy | None
    count_text: Callable[[str], int] | None


class SummarizingOptions(CompactorOptions, total=False):
    """What a ``Compactor`` is made of."""

    summarizer: Any


class _Batch:
    """What the three classes share: rows in, columns out."""

    TYPES: ClassVar[Mapping[str, ColumnType]]
    """The columns that are added, and what they hold."""

    def __init__(
        self,
        *,
        column: str | None = None,
        format: str | None = None,
        prefix: str = "",
        **compactor: Unpack[SummarizingOptions],
    ) -> None:
        if compactor.get("summarizer") == SAME:
            raise PolicyError(
                'summarizer="same" asks the model that a request goes to, and a batch sends none: name one'
            )
        if format is not None:
            get(format)
        if not isinstance(prefix, str) or not isinstance(column, str | None):
            raise PolicyError(f"column and prefix must be strings, not {shown(column)} and {shown(prefix)}")
        self.column = column
        self.format = format
        self.prefix = prefix
        self.settings = compactor
        self._compactor = self._made()
        # Else each part would fail when it is written.
        if self.window.tokens > MOST_WHOLE:
            raise PolicyError(f"a window must be at most {MOST_WHOLE:,} here, what a column holds")

    def _made(self) -> Compactor:
        # A conversation comes once, so none is worth remembering but the one that a replay is going through.
        return Compactor(**self.settings, remembered=1)

    def __getstate__(self) -> dict[str, Any]:
        # Locks and caches of a compactor do not pickle; each process makes its own from the settings.
        return {name: value for name, value in vars(self).items() if name != "_compactor"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._compactor = self._made()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._compactor!r})"

    @property
    def window(self) -> Window:
        """What its conversations are to fit in, in tokens, and who says so."""
        return self._compactor.window

    def __call__(self, batch: Any) -> Any:
        """The batch with a column for each of ``TYPES``, the same kind of table with the same rows.

        Raises ``InputError`` where the batch as a whole is none: no such column, or one that is there already.
        """
        with border("the batch cannot be read"):  # a table, or an object that is none, whatever its own code raises
            return self._with_columns(batch)

    def _with_columns(self, batch: Any) -> Any:
        names = column_names(batch)
        if odd := next((name for name in names if not isinstance(name, str)), None):
            raise InputError(f"the name of a column is {shown(odd)}: it must be a string")
        taken = [
            name for name in names if name.removeprefix(self.prefix) in self.TYPES and name.startswith(self.prefix)
        ]
        if taken := [name for name in taken if name != "format"]:
            raise InputError(
                f"the batch has the columns {', '.join(taken)} already: rename them, or give prefix= for the new ones"
            )
        column = column_of(names, self.column) if names else ""
        found = [self.row(row, column) for row in rows_of(batch, (column, *BESIDE))]
        made = {self.prefix + name: [one[name] for one in found] for name in self.TYPES}
        return extended(batch, made, {self.prefix + name: type for name, type in self.TYPES.items()})

    def row(self, row: Mapping[str, Any], column: str) -> dict[str, Any]:
        """The values for one row, ``view`` and ``record`` as JSON text. Never raises."""
        try:
            given = read_row(row, column, self.format)
            if len(given) != 1:
                raise InputError(
                    f"{column} holds {len(given):,} conversations: give each its own row, as contextfold batch does"
                )
        except Exception as error:  # noqa: BLE001  one bad row must not end a job of a million
            return self.failed(error)
        return self.as_text(self.one(given[0]))

    def one(self, given: Given) -> dict[str, Any]:
        """The values for one conversation, ``view`` and ``record`` as objects. Never raises."""
        try:
            values = self._values(given)
        except Exception as error:  # noqa: BLE001  as above
            return self.failed(error)
        return {**dict.fromkeys(self.TYPES), **values, "left_out": list(given.left_out) or None}

    def failed(self, error: Exception) -> dict[str, Any]:
        """The values where there are none."""
        return {
            **dict.fromkeys(self.TYPES),
            "error": well_formed(" ".join(text_of(error).split())),
            "error_type": type(error).__name__,
        }

    def as_text(self, values: dict[str, Any]) -> dict[str, Any]:
        """The same values with all that is no text, number or truth as JSON."""
        return {
            name: value if isinstance(value, str | int | float | bool | None) else as_json(value)
            for name, value in values.items()
        }

    def _values(self, given: Given) -> dict[str, Any]:
        raise NotImplementedError

    def _compacted(self, given: Given, compactor: Compactor | None = None, **options: Any) -> CompactionResult:
        return (compactor or self._compactor).compact(
            given.messages, format=given.format, system=given.system, tools=given.tools, **options
        )


class CompactBatch(_Batch):
    """Compacts the conversation of each row.

    Args:
        window, model, trigger, target, keep, summarizer, policy, count_text: as for ``Compactor``, which is made once
            in each process.
        to: the format of the views; that of each conversation if not given.
        force: compact also what is not due.
        column: the column that holds conversations; the first of messages, conversation, text, bytes if not given.
        format: the format of all conversations, if it is not to be detected; a column ``format`` goes before it.
        prefix: put before the names of the new columns.

    New columns: ``view`` (the messages to send) and ``record`` (the compaction in force, None where there is none),
    both as JSON text; ``format``, ``changed``, ``trigger``, ``messages_before``, ``messages_after``, ``tokens_before``,
    ``tokens_after``, ``window``, ``target``; how many messages were ``kept``, ``pinned``, ``shortened``,
    ``summarized``, ``dropped``; ``summary_calls``, ``summary_input_tokens``, ``summary_output_tokens`` (of a
    model), ``seconds``; ``left_out`` (what of a session's file is not in its conversation, a JSON list of sentences);
    ``error`` and ``error_type``.

    Raises ``PolicyError`` for a setting that is not allowed.
    """

    TYPES: ClassVar[Mapping[str, ColumnType]] = {
        "view": "text",
        "record": "text",
        "format": "text",
        "changed": "truth",
        "trigger": "text",
        "messages_before": "whole",
        "messages_after": "whole",
        "tokens_before": "whole",
        "tokens_after": "whole",
        "window": "whole",
        "target": "whole",
        **dict.fromkeys(FATES, "whole"),
        "summary_calls": "whole",
        "summary_input_tokens": "whole",
        "summary_output_tokens": "whole",
        "seconds": "number",
        **IN_ALL,
    }

    def __init__(
        self,
        *,
        to: str | None = None,
        force: bool = False,
        column: str | None = None,
        format: str | None = None,
        prefix: str = "",
        **compactor: Unpack[SummarizingOptions],
    ) -> None:
        if to is not None:
            get(to)
        self.to = to
        self.force = force
        super().__init__(column=column, format=format, prefix=prefix, **compactor)

    def _values(self, given: Given) -> dict[str, Any]:
        started = time.perf_counter()
        result = self._compacted(given, to=self.to, force=self.force)
        seconds = time.perf_counter() - started
        fates, summary = result.ledger.counts(), result.summary
        return {
            "view": _written(result.messages),
            "record": None if result.compaction is None else result.compaction.model_dump(mode="json"),
            "format": result.format if self.to is None else self.to,
            "changed": result.changed,
            "trigger": result.trigger,
            "messages_before": len(given.messages),
            "messages_after": len(result.messages),
            "tokens_before": result.tokens_before,
            "tokens_after": result.tokens_after,
            "window": result.window,
            "target": result.target,
            **{fate: fates.get(fate, 0) for fate in FATES},
            "summary_calls": summary.calls if summary else 0,
            "summary_input_tokens": summary.input_tokens if summary else 0,
            "summary_output_tokens": summary.output_tokens if summary else 0,
            "seconds": round(seconds, 6),
        }


class MeasureBatch(_Batch):
    """Replays the conversation of each row turn by turn, and measures every view as the benchmark does.

    Before each answer of the agent, the view is made of all that was said so far, and the answer that really came tells
    what was needed (docs/benchmark-guide.md). Takes as long as the conversation has answers, times a call.

    Args: as for ``CompactBatch``, without ``to`` and ``force``.

    New columns: ``format``, ``window``, ``messages_before``, ``tokens_before``, ``requests``, ``compactions``; the
    benchmark's figures of this conversation under their keys there (``hard_in_context``,
    ``far_usable``, ``users_verbatim``, ``constraints``, ``cost``,
    ``rewrites``, ``view_tokens``, ``peak_view``, ``cached``, ``invalid``, ``over_window``, ``latest_user_lost``, ...),
    None where there is nothing to tell; and the totals that they are made of (``recall_hard``, ``words_users``,
    ``cost_view_tokens``, ...), which add up over conversations; ``seconds``; ``left_out``, as there; ``error`` and
    ``error_type``.
    """

    TYPES: ClassVar[Mapping[str, ColumnType]] = {
        "format": "text",
        "window": "whole",
        "messages_before": "whole",
        "tokens_before": "whole",
        **measures.TYPES,
        "seconds": "number",
        **IN_ALL,
    }

    def _values(self, given: Given) -> dict[str, Any]:
        started = time.perf_counter()
        format = given.format or detect(given.messages).name
        replay = measures.Replayed(given, format, self._compactor)
        return {
            "format": format,
            "window": self.window.tokens,
            "messages_before": len(given.messages),
            "tokens_before": replay.tokens,
            **replay.figures(),
            "seconds": round(time.perf_counter() - started, 6),
        }


class CheckBatch(_Batch):
    """Says of the conversation of each row whether a provider would take it, whether it fits, and whether it could.

    Args: as for ``CompactBatch``, without ``summarizer``: whether a conversation can be made to fit is found out with
    the built-in summarizer, which needs no model.

    New columns: ``valid`` (a provider takes it as it stands), ``problems`` (what is wrong, as a JSON list of
    sentences), ``problem_count``; ``fits`` (the window); ``compactable`` (a compaction reaches the target) and
    ``why_not``; ``format``, ``messages_before``, ``tokens_before``, ``tokens_after`` (what a compaction would leave),
    ``window``, ``target``, ``floor`` (tokens that no compaction can remove); ``seconds``; ``left_out``, as there;
    ``error`` and ``error_type``, for what is no conversation.
    """

    TYPES: ClassVar[Mapping[str, ColumnType]] = {
        "valid": "truth",
        "problems": "text",
        "problem_count": "whole",
        "fits": "truth",
        "compactable": "truth",
        "why_not": "text",
        "format": "text",
        "messages_before": "whole",
        "tokens_before": "whole",
        "tokens_after": "whole",
        "window": "whole",
        "target": "whole",
        "floor": "whole",
        "seconds": "number",
        **IN_ALL,
    }

    def __init__(
        self,
        *,
        column: str | None = None,
        format: str | None = None,
        prefix: str = "",
        **compactor: Unpack[CompactorOptions],
    ) -> None:
        if "summarizer" in compactor:
            raise PolicyError("checking asks no model: leave summarizer out")
        super().__init__(column=column, format=format, prefix=prefix, **compactor)

    def _made(self) -> Compactor:
        made = super()._made()
        # A policy that changes nothing gives the list as it came, so whatever differs in its view was mended.
        self._as_it_stands = Compactor(window=made.window.tokens, policy=Policy(enabled=False), remembered=1)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_as_it_stands"}

    def _values(self, given: Given) -> dict[str, Any]:
        started = time.perf_counter()
        standing = self._compacted(given, self._as_it_stands)
        problems = _problems(given, standing)
        after: int | None = None
        why_not = None
        target = self._compactor.limits.target
        try:
            result = self._compacted(given, force=True)
            after, target = result.tokens_after, result.target
            if standing.tokens_before > result.window and after > result.window:
                why_not = f"what is left takes {after:,} tokens, and the window {result.window:,}"
        except (CannotFit, SummaryFailed) as error:
            why_not = str(error)
        return {
            "valid": not problems,
            "problems": problems[:MOST_PROBLEMS],
            "problem_count": len(problems),
            "fits": standing.tokens_before <= self._compactor.window.tokens,
            "compactable": why_not is None,
            "why_not": why_not,
            "format": standing.format,
            "messages_before": len(given.messages),
            "tokens_before": standing.tokens_before,
            "tokens_after": after,
            "window": self.window.tokens,
            "target": target,
            "floor": sum(standing.floor.values()),
            "seconds": round(time.perf_counter() - started, 6),
        }


def _problems(given: Given, standing: CompactionResult) -> list[str]:
    """Why a provider would not take a conversation as it stands: what is broken, and what else would be mended."""
    decoded = decode(given.messages, get(standing.format))
    grouping = group(decoded)
    # A call at the end that waits for its result is no fault: the conversation was stored in the middle of a turn.
    ends = grouping.groups[grouping.group_of[-1]].last if decoded else None
    faults = [
        fault
        for fault in grouping.faults
        if fault.kind != "dangling_call" or grouping.groups[grouping.group_of[fault.index]].last != ends
    ]
    told = {fault.index for fault in faults}
    problems = [str(fault) for fault in faults]
    if not decoded:
        problems.append("there are no messages")
    elif all(message.is_instruction for message in decoded):
        problems.append("there is nothing but instructions")
    sent = {id(message) for message in standing.messages}
    mended = [index for index, message in enumerate(given.messages) if id(message) not in sent and index not in told]
    problems += [
        f"message {index}: not as the provider wants it, it would be mended before it is sent" for index in mended
    ]
    return problems


def _written(messages: Sequence[Any]) -> list[Any]:
    """The messages as JSON values; LangChain's objects as LangChain writes them."""
    if any(is_object(message) for message in messages):
        from langchain_core.messages import message_to_dict

        return [message_to_dict(message) if is_object(message) else message for message in messages]
    return list(messages)


def _told(value: Any) -> Any:
    """What a table has and JSON has not: a column that goes along unread must not fail the rows beside it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    return value.isoformat() if hasattr(value, "isoformat") else shown(value)


def as_json(value: Any) -> str:
    """The value as JSON text that can be encoded: half a surrogate pair, which UTF-8 cannot carry, stays escaped. A
    number that JSON has not (``NaN``, as pandas has it where nothing is) is ``null``: a reader would refuse the line.
    """
    text = json_values.write(value, compact=True, default=_told)
    if "NaN" in text or "Infinity" in text:
        text = json_values.write(_finite(value), compact=True, default=_told)
    return encodable(text)


def _finite(value: Any) -> Any:
    """A copy without numbers that JSON has not. A loop, because nothing limits the depth."""
    made: list[Any] = [value]
    waiting: list[tuple[Any, Any]] = [(made, 0)]
    while waiting:
        holder, place = waiting.pop()
        found = holder[place]
        if isinstance(found, float) and not math.isfinite(found):
            holder[place] = None
        elif isinstance(found, dict):
            inner = holder[place] = dict(found)
            waiting += [(inner, key) for key in inner]
        elif isinstance(found, list | tuple):
            parts = holder[place] = list(found)
            waiting += [(parts, n) for n in range(len(parts))]
    return made[0]
