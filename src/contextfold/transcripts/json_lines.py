"""Lists of messages in one of the wire formats: bare (JSON or JSON Lines), or somewhere inside an object.

Whatever wraps them (a request, a run, a benchmark's results, a graph's state), lists are looked for under the keys
that such files use, in that order, then under any other key, a few levels deep. A file may hold several.

Entries of a list that the recorder added and that no model was ever sent are left out: the ``exit`` entry of
mini-swe-agent, the calls that a simulated user of tau2 made in its own environment, with their results, and Kimi CLI's
rows about its context. So is what Roo Code's own compaction put in the place of messages that are in the file. Entries
that stand for several are these: answers of Responses that mini-swe-agent keeps whole, and the results of parallel
calls in one message of AG2's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from contextfold import formats
from contextfold.errors import InputError
from contextfold.formats.langchain_shapes import shape_of
from contextfold.formats.marks import is_marked
from contextfold.transcripts import pages, requests
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile, json_in, objects_in

KIND = "messages"
KNOWN_KEYS = (
    "messages",
    "history",
    "request",
    "simulations",
    "values",
    "traj",
    "trajectory",
    "samples",
    "input",
    "contents",
)
BODIES = ("body", "request", "request_body", "requestBody", "full_request")
TEXTS = ("messages", "history", "trajectory", "input", "conversation", "conversations", *BODIES)
"""Keys under which data sets, exports of tables and logs of requests have messages as JSON in a text."""
PREFERENCES = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"))
"""Keys under which data sets for preferences have two answers to what was asked: TRL's, and OpenAI's."""
ASKED = ("prompt", "input")
OF_TRACES = ("observations", "spans")
"""Keys under which traces have what was asked on the way, beside the input and output of the whole run."""
STAND_INS = (("condenseId", "condenseParent"), ("truncationId", "truncationParent"))
"""Of Roo Code and Kilo Code: the id of a summary or mark, and under which key originals have it."""
KIMI_PROMPT = "_system_prompt"
KIMI_ROWS = ("_checkpoint", "_usage")
DEPTH = 5
PIECES = ("messages", "parts", "content")
"""Keys whose lists are messages of some kind, or what a message is made of: below them is no conversation."""


@dataclass(frozen=True)
class Found:
    """A list of messages, and the format and the tools that its surroundings tell, if they do. ``missing``: what is
    said of messages that are not in it.
    """

    messages: list[Any]
    format: str | None = None
    tools: tuple[Any, ...] = ()
    missing: tuple[str, ...] = ()


def recognizes(document: TranscriptFile) -> bool:
    return document.value == [] or next(_found(document), None) is not None


def read(document: TranscriptFile, format: str | None = None) -> list[Conversation]:
    """Every list of messages in the file; ``format`` names their format instead of having it detected."""
    found = list(_found(document)) or [Found([])]
    left_out = _without_messages(document)
    conversations = []
    for name, entry in zip(document.names(len(found)), found, strict=True):
        originals = _without_stand_ins(entry.messages)
        messages = [sent for message in originals if _was_sent(message) for sent in _as_sent(message)]
        known = format or entry.format or _detected(messages)
        conversations.append(Conversation(name, known, messages, KIND, entry.tools, (*left_out, *entry.missing)))
    return conversations


def _without_stand_ins(entries: list[Any]) -> list[Any]:
    """The entries without summaries and marks of Roo Code whose originals, which name them, are among the entries."""
    replaced = {found for one in objects_in(entries) for _, of in STAND_INS if isinstance(found := one.get(of), str)}
    return [one for one in entries if not (isinstance(one, dict) and _names(one) & replaced)]


def _names(entry: dict[str, Any]) -> set[str]:
    return {name for own, _ in STAND_INS if isinstance(name := entry.get(own), str)}


def _detected(messages: list[Any]) -> str:
    """The format, or the plainest where an entry fits none: decoding then names that entry."""
    try:
        return formats.detect(messages).name
    except InputError:
        return "openai-chat"


def _without_messages(document: TranscriptFile) -> tuple[str, ...]:
    """What is said of rows without messages, in a file whose other rows hold some."""
    value = document.value
    if not isinstance(value, list) or not value or _is_messages(value):
        return ()
    places = [place for place, row in enumerate(value) if next(_lists_in(row, DEPTH - 1), None) is None]
    they = "it holds" if len(places) == 1 else "they hold"
    return (f"{document.places(places)}: left out, as {they} no messages",) if places else ()


def _found(document: TranscriptFile) -> Iterator[Found]:
    if _is_message(document.value):  # JSON Lines of one message
        yield Found([document.value])
    else:
        yield from _lists_in(document.value, DEPTH)


def _lists_in(value: Any, depth: int) -> Iterator[Found]:
    """Lists of messages, outermost first. Stops at ``depth`` levels."""
    if isinstance(value, list):
        if _is_messages(value):
            yield Found(pages.in_order(value))
        elif depth:
            for entry in value:
                yield from _lists_in(entry, depth - 1)
    elif isinstance(value, dict) and depth:
        if pages.is_page(value) and _is_messages(value["data"]):
            yield Found(pages.in_order(value["data"], is_page=True), missing=pages.missing(value))
        else:
            yield from _lists_under_keys(value, depth - 1)


def _lists_under_keys(body: Mapping[str, Any], depth: int) -> Iterator[Found]:
    """Lists under the first known key that has any; under all other keys only if none has."""
    body = _unpacked(body, depth)
    if compared := list(_compared(body, depth)):
        yield from compared
        return
    for key in KNOWN_KEYS:
        listed = requests.messages_of(body, key)
        if listed is not None and (_is_messages(listed) or (key == "messages" and not listed)):
            answer = requests.answer_beside(body, key, listed)
            messages = [*requests.with_system(listed, body), *answer]
            found = Found(messages, requests.format_of(body, key, messages), requests.tools_of(body))
            yield found
            yield from _on_the_way(body, key, [found], depth)
            return
        below = list(_answered(body, key, depth))
        if below:
            yield from below
            yield from _on_the_way(body, key, below, depth)
            return
    asked: list[Any] = []
    for key in sorted(body, key=lambda key: key not in requests.ANSWERS):  # what was asked is before its answer
        for found in _answered(body, key, depth):
            # What is answered beside it holds this list already.
            if not any(found.messages == one[-len(found.messages) :] for one in asked):
                yield found
            if key in requests.ANSWERS:
                asked.append(found.messages)


def _on_the_way(body: Mapping[str, Any], key: str, asked: list[Found], depth: int) -> Iterator[Found]:
    """What a trace holds beside the input of a whole run: the requests in it, and the state that it left."""
    if key != "input":
        return
    output = body.get("output")
    is_state = isinstance(output, dict) and isinstance(output.get("messages"), list)
    for held in (*(body.get(name) for name in OF_TRACES), output if is_state else None):
        for found in _lists_in(held, depth):
            if not any(found.messages == one.messages[-len(found.messages) :] for one in asked):
                yield found


def _compared(body: Mapping[str, Any], depth: int) -> Iterator[Found]:
    """What was asked with each of two answers, one of which is preferred; they may hold it themselves."""
    answers = [body[key] for pair in PREFERENCES if body.keys() >= set(pair) for key in pair]
    if not answers or not all(isinstance(one, list) and _is_messages(one) for one in answers):
        return
    asked = {key: body[key] for key in ASKED if isinstance(body.get(key), list | dict)}
    found = next(_lists_under_keys(asked, depth), Found([]))
    for answer in answers:
        holds_it = answer[: len(found.messages)] == found.messages
        messages = answer if holds_it else [*found.messages, *answer]
        yield replace(found, messages=messages, tools=found.tools or requests.tools_of(body))


def _unpacked(body: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    """The same, with messages, or an object around them, in place of the texts that hold them as JSON.

    Any other text stays: that of a Responses request is the user's, whatever it holds.
    """
    found = {}
    for key in TEXTS:
        text = body.get(key)
        if isinstance(text, str) and text.lstrip().startswith(("[", "{")):
            value = json_in(text)
            if next(_lists_in(value, depth), None) is not None or (key == "messages" and value == []):
                found[key] = value
    return {**body, **found} if found else body


def _answered(body: Mapping[str, Any], key: str, depth: int) -> Iterator[Found]:
    """The lists under a key of what was sent, with the answer that stands beside it."""
    if key in PIECES and _are_pieces(body.get(key)):
        return
    below = list(_lists_in(body.get(key), depth))
    is_request = len(below) == 1 and (key == "request" or key in requests.ANSWERS)
    for found in below:
        answer = requests.answer_beside(body, key, found.messages) if is_request else []
        extra = body.get("extra") if is_request else None  # LangSmith's
        tools = found.tools or (requests.tools_of(extra) if isinstance(extra, dict) else ())
        yield replace(found, messages=[*found.messages, *answer], tools=tools)


def _are_pieces(value: Any) -> bool:
    objects = objects_in(value)
    return bool(objects) and not any("role" in entry for entry in objects)


def _is_messages(value: list[Any]) -> bool:
    """Whether a list is meant as messages: it begins with one, or most of it is. The rest is named when decoded."""
    marked = sum(1 for entry in value if _is_message(entry))
    return bool(marked) and (_is_message(value[0]) or marked * 2 > len(value))


def _is_message(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    # Gemini's contents have a role as well, and parts in place of a content.
    if isinstance(entry.get("role"), str) and not isinstance(entry.get("parts"), list):
        said = "content" in entry or "tool_calls" in entry or "function_call" in entry
        return said or entry["role"] in KIMI_ROWS
    shape = shape_of(entry)
    if shape in ("flat", "data"):  # events of many kinds have such a type, and say things in other ways
        return "content" in (entry if shape == "flat" else entry["data"])
    return shape is not None or is_marked("openai-responses", entry) or is_marked("gemini", entry)


def _as_sent(message: Any) -> list[Any]:
    """A message as a model was sent it, or those that an entry stands for: whole answers, and results of one turn."""
    if not isinstance(message, dict):
        return [message]
    if message.get("role") == KIMI_PROMPT:
        return [{**message, "role": "system"}]
    inner = message.get("output") if message.get("object") == "response" else message.get("tool_responses")
    held = objects_in(inner) if "tool_call_id" not in message else []
    return held if held and held == inner else [message]


def _was_sent(message: Any) -> bool:
    if not isinstance(message, dict):
        return True
    if message.get("role") == "exit":
        return "extra" not in message
    if message.get("role") in KIMI_ROWS:
        return False
    if message.get("role") == "tool":
        return message.get("requestor") != "user"
    calls = message.get("tool_calls")
    return message.get("role") != "user" or not calls or bool(message.get("content"))
