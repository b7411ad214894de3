"""Where the work stands: todo lists, plans and tasks that an agent writes down with its tools.

What belongs here: finding the one in force among the calls, and what it says is done, is being done and comes next.
What does not: what else a conversation says (``extractive_facts``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from contextfold import json_values
from contextfold.messages import Message, ToolCall, ToolResult
from contextfold.summary.extractive_facts import QUOTE, Fact, clipped, error_line

PLANNED = 3.9
"""Weight of the first step of a todo list: where the work stands goes before what was said about it."""

ADDS, UPDATES = "TaskCreate", "TaskUpdate"
"""Claude Code's tools for a list that is written down task by task: no call holds it all."""

_NUMBER = re.compile(r"#(\w+)")
_ASKS = re.compile(
    r'\s*+(?:\{\s*(?:"\w+"\s*:\s*null\s*|"operation"\s*:\s*"read"\s*(?:,\s*"\w+"\s*:\s*\[\s*\]\s*)?)?\})?\s*'
)
_MERGES = re.compile(r'"merge"\s*:\s*true')
"""Of a todo list: what it does not say stays as it was."""

_DONE = re.compile(
    r"(?<!in)(?<!un)(?<!not[ _-])(?<!nicht )(?<!partially )(?<!almost )(?<!to be )(?<!pas )(?<!no )(?<!não )(?<!non )"
    r"(?<!niet )(?<!не )(?<!nie )(?<![未没沒不미अ])(?<!غير )"
    r"(?:complete(?!r)|done|finished|erledigt|fertig|abgeschlossen|terminée?|complétée?|fait\b|hecho|terminad[oa]"
    r"|completad[oa]|conclu[ií]d[oa]|feit[oa]\b|fatt[oa]\b|completat[oa]|voltooid|klaar|afgerond|готово|выполнен|завершен"
    r"|gotowe|ukończon|zrobion|완료|완성|完成|完了|完毕|完畢|[结結]束|做完|終了|済|पूर्ण|पूरा(?! नहीं)|مكتمل|منجز)",
    re.IGNORECASE,
)
_TICKS = ("done", "completed")
"""Of a step without a status: whether it is done."""

_BOX = re.compile(
    r"^[ \t]{0,20}(?:(?:[-*+]|\d{1,4}[.)])[ \t]{1,4})?\[([ xX~/-])\][ \t]{1,4}(\S.{0,4000})", re.MULTILINE
)
_BOXES = {" ": "pending", **dict.fromkeys("xX", "completed"), **dict.fromkeys("-~/", "in progress")}
"""A line of a checklist, and what its box says."""

_DROPPED = re.compile(
    r"cancel|skipped|dropped|deleted|abandon|abgebrochen|annul[éa]|geannuleerd|отмен|anulowan"
    r"|取消|取り消|中止|[终終]止|作[废廢]|放[弃棄]|キャンセル|취소|중단|रद्द|ملغ",
    re.IGNORECASE,
)
"""A step that is neither done nor to be done."""

_NEXT = re.compile(
    r"pending|todo|open|not[ _-]?started|next|offen|à faire|pendiente|pendente|da fare|ожида|do zrobienia"
    r"|待[办辦处處]|未[开開]始|未着手|未対応|대기|예정",
    re.IGNORECASE,
)


class Task(NamedTuple):
    """An entry of a list that is written down one by one, where it was, and its newest status."""

    place: int
    text: str
    status: str


def plan(messages: Sequence[Message], tools: Collection[str], tasks: Sequence[Task] = ()) -> Iterator[Fact]:
    """Where the work stands: what the newest todo list or plan says is done, is being done, and comes next. ``tasks``
    stand in a list of their own.
    """
    newest = newest_plan(messages, tools)
    # A list that changes an earlier one stands among the tasks, whole.
    is_whole = newest is not None and not _MERGES.search(newest[1].arguments)
    steps = [Task(newest[0], *step) for step in _steps(newest[1])] if newest and is_whole else []
    for listed in (steps, tasks):
        for number, (n, text, status) in enumerate(listed):
            weight = PLANNED - number / (1 + len(listed))
            if _DROPPED.search(status):
                continue
            if _DONE.search(status):
                yield Fact("done", text, n, weight - 2)
            else:
                doing = f" ({status})" if status and not _NEXT.search(status) else ""
                yield Fact("open", text + doing, n, weight)


def tasks_of(messages: Sequence[Message], tools: Collection[str] = ()) -> list[Task]:
    """The tasks that were written down one by one, each as its last change left it, without those that were deleted.

    ``tools``: those that write a todo list. Of lists that change an earlier one all steps are tasks.
    """
    found: dict[str, Task] = {}
    lists: list[tuple[int, ToolCall]] = []
    asked: dict[str, tuple[int, ToolCall]] = {}
    for n, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.name in (ADDS, UPDATES) or part.name in tools:
                    asked[part.id] = (n, part)
            elif asked and isinstance(part, ToolResult) and part.call_id in asked:
                place, call = asked.pop(part.call_id)
                if call.name in tools:
                    if not _is_refused(call, part) and not _ASKS.fullmatch(call.arguments):
                        if not _MERGES.search(call.arguments):
                            lists.clear()
                        lists.append((place, call))
                elif not part.is_error:
                    _changed(found, place, call, part.text)
    return [*found.values(), *(_merged(lists) if lists and _MERGES.search(lists[-1][1].arguments) else ())]


def _merged(lists: Sequence[tuple[int, ToolCall]]) -> Iterable[Task]:
    """The steps of a todo list and of those that change it."""
    found: dict[str, Task] = {}
    for place, call in lists:
        for key, text, status in _entries(call):
            before = found.get(key)
            if text:
                found[key] = Task(place, text, status or (before.status if before else ""))
            elif before:
                found[key] = before._replace(status=status or before.status)
    return found.values()


def _changed(found: dict[str, Task], place: int, call: ToolCall, answer: str) -> None:
    try:
        arguments = json_values.read(call.arguments)
    except ValueError:
        return
    if not isinstance(arguments, Mapping):
        return
    text, status = (value if isinstance(value := arguments.get(key), str) else "" for key in ("subject", "status"))
    text, status = clipped(text, QUOTE), clipped(status, 40)
    if call.name == UPDATES:
        key = str(arguments.get("taskId", ""))
        if task := found.get(key):
            found[key] = Task(task.place, text or task.text, status or task.status)
        if status == "deleted":
            found.pop(key, None)
    elif text and (number := _NUMBER.search(answer)):
        found[number[1]] = Task(place, text, status)


def newest_plan(messages: Sequence[Message], tools: Collection[str]) -> tuple[int, ToolCall] | None:
    """The newest todo list or plan, and its place. One that its tool refused is none, nor is a call that only asks for
    the list: the earlier one still holds.
    """
    results: dict[str, ToolResult] = {}
    unread = len(messages)
    for n in range(len(messages) - 1, -1, -1):
        if not [part for part in messages[n].parts if isinstance(part, ToolCall) and part.name in tools]:
            continue
        # Most histories have few lists or none, so results are read only down to one. They are taken out again, because
        # another call further up may have the same id.
        answered: list[tuple[ToolCall, ToolResult | None]] = []
        for place in range(unread - 1, n - 1, -1):
            results.update((result.call_id, result) for result in messages[place].tool_results)
            answered = [(call, results.pop(call.id, None)) for call in reversed(messages[place].tool_calls)]
        unread = n
        for call, result in answered:
            if call.name in tools and not _is_refused(call, result) and not _ASKS.fullmatch(call.arguments):
                return n, call
    return None


def _is_refused(call: ToolCall, result: ToolResult | None) -> bool:
    """Whether a result says that the call failed. Formats without a mark for it say so in words alone, as a list about
    errors may, too: there only a call that holds no list counts as failed.
    """
    if result is None:
        return False
    return result.is_error or (bool(error_line(result)) and not any(_steps(call)))


def _steps(call: ToolCall) -> Iterator[tuple[str, str]]:
    """The entries of a todo list: what they say, and their status."""
    return ((text, status) for _, text, status in _entries(call) if text)


def _listed(value: Any) -> Sequence[Any]:
    """The entries of one argument. Some models write a list as a text of JSON, and some tools take a checklist in
    Markdown (Roo Code's ``update_todo_list``).
    """
    if not isinstance(value, str):
        return value if isinstance(value, list) else ()
    if value.lstrip().startswith("[{"):
        try:
            return _listed(json_values.read(value))
        except ValueError:
            return ()
    return [{"content": text, "status": _BOXES[box]} for box, text in _BOX.findall(value)]


def _entries(call: ToolCall) -> Iterator[tuple[str, str, str]]:
    """The same, each with the id by which a later list changes it; such a list need not repeat what it says."""
    try:
        found = json_values.read(call.arguments)
    except ValueError:
        return
    given = found.values() if isinstance(found, Mapping) else (found,)
    for entry in (entry for value in given for entry in _listed(value)):
        if isinstance(entry, str):
            yield entry, clipped(entry, QUOTE), ""
        elif isinstance(entry, Mapping):
            texts = [entry[key] for key in ("content", "step", "title", "task", "text", "description") if key in entry]
            text = clipped(texts[0], QUOTE) if texts and isinstance(texts[0], str) else ""
            is_ticked = any(entry.get(key) is True for key in _TICKS)
            status = entry.get("status") or entry.get("state") or ("done" if is_ticked else "")
            yield str(entry.get("id", text)), text, clipped(str(status), 40)
