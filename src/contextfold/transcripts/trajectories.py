"""Runs of agents as harnesses record them, step by step: Harbor's trajectories (ATIF), and the events of OpenHands.

What belongs here: what tells such a file, and its steps as messages of Chat Completions. What does not: finding them in
a document, and what is said where they cannot be read (``frameworks``).
"""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import arguments_text, readable
from contextfold.transcripts import chat
from contextfold.transcripts.document import first_object, objects_in
from contextfold.transcripts.turns import Turns, as_they_are


def _content(given: Any) -> str | list[dict[str, Any]]:
    """What was said, as a text or, with pictures beside it, as parts."""
    if not isinstance(given, list):
        return given if isinstance(given, str) else "" if given is None else readable(given)
    parts = [part for one in given for part in _part(one)]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return parts if len(texts) < len(parts) else "\n".join(texts)


def _part(one: Any) -> list[dict[str, Any]]:
    block = one if isinstance(one, dict) else {}
    source = block.get("source")
    urls = [source.get("path")] if isinstance(source, dict) else block.get("image_urls")
    if block.get("type") == "image" and isinstance(urls, list):
        return [_picture(str(url)) for url in urls]
    text = block.get("text")
    return [{"type": "text", "text": text if isinstance(text, str) else readable(one)}]


def _picture(url: str) -> dict[str, Any]:
    # In a file beside this one no provider could read it.
    is_sent = url.startswith(("https://", "http://", "data:"))
    return chat.media("image/", url, "") if is_sent else {"type": "text", "text": f"[picture: {url}]"}


def _text(given: Any) -> str:
    said = _content(given)
    return said if isinstance(said, str) else "\n".join(part.get("text") or readable(part) for part in said)


def _said(text: Any, calls: list[dict[str, Any]], thought: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    return {**said, "reasoning_content": thought} if isinstance(thought, str) and thought else said


# ---- Harbor ----


def is_atif(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("schema_version")).startswith("ATIF") and "steps" in value


def of_atif(trajectory: dict[str, Any]) -> list[Any]:
    messages: list[Any] = []
    for step in objects_in(trajectory["steps"]):
        said, calls = _content(step.get("message")), []
        if step.get("source") == "agent":
            calls = [
                chat.call(one.get("tool_call_id"), one.get("function_name"), arguments_text(one.get("arguments") or {}))
                for one in objects_in(step.get("tool_calls"))
            ]
            messages += [_said(said, calls, step.get("reasoning_content"))] if said or calls else []
        elif said:
            messages.append({"role": "system" if step.get("source") == "system" else "user", "content": said})
        messages += _results(step.get("observation"), [call["id"] for call in calls])
    return messages


def _results(observation: Any, calls: list[Any]) -> list[dict[str, Any]]:
    """What came of a step. What names no call is that of the first one without a result: Terminus gives what its
    commands did together. Where there are no calls, the model reads it as the user's.
    """
    found = objects_in(observation.get("results")) if isinstance(observation, dict) else []
    named = [one.get("source_call_id") for one in found]
    waiting = iter([call for call in calls if call not in named])
    made = []
    for one in found:
        call = one["source_call_id"] if one.get("source_call_id") in calls else next(waiting, None)
        if call is not None:
            made.append(chat.result(call, _text(one.get("content"))))
        elif one.get("content"):
            made.append({"role": "user", "content": _content(one["content"])})
    return made


# ---- OpenHands ----

FIRST = 20
"""Events among which one that says or does something is looked for."""


def is_openhands(value: Any) -> bool:
    """The first events may tell of the state of the agent alone."""
    first = objects_in(value[:FIRST] if isinstance(value, list) else None)
    return any("source" in event and (_is_new(event) or _is_old(event)) for event in first)


def _is_new(event: dict[str, Any]) -> bool:
    return event.get("kind") in ("MessageEvent", "SystemPromptEvent", "ActionEvent")


def _is_old(event: dict[str, Any]) -> bool:
    return isinstance(event.get("action"), str) and isinstance(event.get("args"), dict)


def of_openhands(events: list[Any]) -> list[Any]:
    turns = Turns()
    by_user: set[Any] = set()
    for event in objects_in(events):
        if "kind" in event:
            _add_new(turns, event)
        elif "action" in event and event.get("source") == "user" and event["action"] not in (*IN_TALK, *BY_ITSELF):
            by_user.add(str(event.get("id")))
        elif "action" in event:
            _add_old_action(turns, event)
        elif str(event.get("cause")) in by_user:
            turns.add({"role": "user", "content": BY_USER + _text(event.get("content"))})
        elif "observation" in event:
            _add_result(turns, _call_of(event, "cause"), _text(event.get("content")))
    return turns.messages(as_they_are)


def _add_new(turns: Turns, event: dict[str, Any]) -> None:
    """An event of OpenHands' SDK. Its own compactions stand beside what they replaced, and are left out."""
    kind, message = event["kind"], event.get("llm_message")
    if kind == "SystemPromptEvent":
        parts = [event[key] for key in ("system_prompt", "dynamic_context") if event.get(key)]
        turns.add({"role": "system", "content": _text(parts)})
    elif kind == "MessageEvent" and isinstance(message, dict):
        given = [*objects_in(message.get("content")), *objects_in(event.get("extended_content"))]
        said, thought = {"role": message.get("role"), "content": _content(given)}, message.get("reasoning_content")
        turns.add({**said, "reasoning_content": thought} if isinstance(thought, str) and thought else said)
    elif kind == "ActionEvent" and isinstance(call := event.get("tool_call"), dict):
        made = chat.call(call.get("id"), call.get("name"), arguments_text(call.get("arguments") or {}))
        _add_call(
            turns, made, event.get("llm_response_id"), _text(event.get("thought")), event.get("reasoning_content")
        )
    elif "tool_call_id" in event:  # an observation, or why there is none
        observed = event.get("observation")
        found = observed.get("content") if isinstance(observed, dict) else None
        told = found or event.get("error") or event.get("rejection_reason") or readable(observed)
        _add_result(turns, str(event["tool_call_id"]), _text(told))


IN_TALK = ("message", "system")
"""Actions of old events that say something."""
BY_ITSELF = ("change_agent_state", "recall", "condensation", "condensation_request", "null")
"""Actions of old events that no model asks for."""
BY_USER = "Observed result of command executed by user:\n"
"""What stands before what came of an action of the person's, as OpenHands tells it to the model."""


def _add_old_action(turns: Turns, event: dict[str, Any]) -> None:
    """An event of OpenHands before its SDK: an action by anyone, or what came of one."""
    action, source = str(event["action"]), event.get("source")
    args = event["args"] if isinstance(event.get("args"), dict) else {}
    if action in IN_TALK:
        role = "system" if action == "system" else "user" if source == "user" else "assistant"
        pictures = [{"type": "image", "image_urls": args["image_urls"]}] if args.get("image_urls") else []
        text = _text(args.get("content"))
        turns.add({"role": role, "content": _content([{"type": "text", "text": text}, *pictures])})
    elif action not in BY_ITSELF:
        told = event.get("tool_call_metadata")
        told = told if isinstance(told, dict) else {}
        response = told.get("model_response")
        response = response if isinstance(response, dict) else {}
        call = _call_of(event, "id")
        answered = first_object(response.get("choices")).get("message")
        asked = objects_in(answered.get("tool_calls")) if isinstance(answered, dict) else []
        made = next((one for one in asked if one.get("id") == call), None)
        if made is None:  # without what the model wrote, by what became of it
            rest = {key: value for key, value in args.items() if key != "thought"}
            made = chat.call(call, told.get("function_name") or action, arguments_text(rest))
        _add_call(turns, made, response.get("id"), _text(args.get("thought")), None)


def _call_of(event: dict[str, Any], key: str) -> str:
    told = event.get("tool_call_metadata")
    call = told.get("tool_call_id") if isinstance(told, dict) else None
    return call if isinstance(call, str) else f"call-{event.get(key)}"


def _add_call(turns: Turns, made: dict[str, Any], answer: Any, text: str, thought: Any) -> None:
    """A call, to the message of the answer that it is part of."""
    key = answer if isinstance(answer, str) else None
    # Some servers give all answers one id: what is said behind results is another one.
    if (known := turns.find(key)) is not None and not (text and turns.is_answered(key)):
        if text and text not in (known["content"] or ""):
            known["content"] = "\n".join(filter(None, (known["content"], text)))
        if isinstance(thought, str) and thought:
            known.setdefault("reasoning_content", thought)
        known.setdefault("tool_calls", []).append(made)
        turns.calls(str(key), [made["id"]])
    else:
        turns.add(_said(text, [made], thought), calls=[made["id"]], answer=key)


def _add_result(turns: Turns, call: str, text: str) -> None:
    turns.result(call, chat.result(call, text))  # others tell of what no one asked, such as the state of the agent
