"""Requests to providers, as people record them: the messages, with what stands beside them.

An Anthropic ``system``, a Responses ``instructions``, a Gemini ``systemInstruction`` or a harness's ``system_prompt``
becomes a leading system entry; the answer to the request, if it was recorded too, becomes the last entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextfold.formats.langchain_shapes import shape_of
from contextfold.formats.marks import is_marked
from contextfold.transcripts.document import first_object, json_in, objects_in

SYSTEM_KEYS = ("system", "instructions", "system_prompt", "systemPrompt", "systemInstruction", "system_instruction")

ANSWERS = {
    "messages": ("choices", "output", "completion"),
    "input": ("output",),
    "inputs": ("outputs", "output"),
    "full_request": ("full_response",),
    "request_body": ("response_body",),
    "requestBody": ("responseBody",),
    "modelInput": ("modelOutput",),
    "prompt": ("completion", "sampled"),
}
"""Where the answer is, if not under ``response``: LangSmith, Langfuse, Weave, OpenAI's evals, Vertex, Bedrock."""
HOLDING_TOOLS = (
    "toolConfig",
    "config",
    "kwargs",
    "model_parameters",
    "modelParameters",
    "optional_params",
    "invocation_params",
)
"""Keys beside the messages under which tools may stand: Bedrock's, Google's, and those of OpenHands, LiteLLM, Langfuse
and LangSmith.
"""
HOLDING = ("body", "body_raw", "outputBodyJson", "output", "message", "candidates", "choices", "generations")
"""Keys of a response under which the answer may stand."""
BODY = frozenset(("error", "choices", "candidates", "object", "usage"))
"""Keys of a body, which tell it from an answer that is JSON itself."""
BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result")
"""What answers of Anthropic's are made of."""
OTHERS = ("openai-chat", "anthropic", "langchain", "gemini", "bedrock-converse")
"""The formats whose marks tell more than the keys of what stands around the messages."""
SAID = ("content", "tool_calls", "function_call", "refusal", "audio")
"""Keys of an answer of Chat Completions, any of which may be all that it has."""


def format_of(body: Mapping[str, Any], key: str, messages: list[Any]) -> str | None:
    """The format that a request body tells by its keys; those of records of calls and of agents may stand beside
    messages of another, which have its marks (Langfuse, Letta).
    """
    if key == "contents":
        return "gemini"
    if key == "input" and "model" in body:
        told = "openai-responses"
    elif "anthropic_version" in body or ("system" in body and "model" in body):
        told = "anthropic"
    else:
        return None
    others = [name for name in OTHERS if name != told]
    return None if any(is_marked(name, message) for message in messages for name in others) else told


def messages_of(body: Mapping[str, Any], key: str) -> list[Any] | None:
    """The list of messages under ``key``; the ``input`` of a Responses request may be one string."""
    value = body.get(key)
    if isinstance(value, list):
        return value
    if key == "input" and isinstance(value, str) and "model" in body:
        return [{"role": "user", "content": value}]
    return None


def tools_of(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """The tool declarations of a request; they take room in the window as the messages do.

    They may be JSON in a text, as in data sets, or stand where Converse, Google's SDK, old requests and logs have them.
    """
    inner = [held for key in HOLDING_TOOLS if isinstance(held := body.get(key), Mapping)]
    given = [*(held.get("tools") for held in (body, *inner)), body.get("functions")]
    read = (json_in(tools) if isinstance(tools, str) else tools for tools in given)
    return next((tuple(found) for tools in read if (found := objects_in(tools))), ())


def with_system(messages: list[Any], body: Mapping[str, Any]) -> list[Any]:
    """The messages, led by the system prompt that stands beside them, unless they have one of their own."""
    system = next((body[key] for key in SYSTEM_KEYS if body.get(key)), None)
    if system is None and isinstance(config := body.get("config") or body.get("generation_config"), Mapping):
        system = next((config[key] for key in SYSTEM_KEYS if config.get(key)), None)  # as the Python SDK takes it
    first = first_object(messages)
    if isinstance(first.get("parts"), list):
        parts = _parts_of(system)
        return [{"role": "system", "parts": parts}, *messages] if parts and first.get("role") != "system" else messages
    if not isinstance(system, str | list) or "system" in (first.get("role"), first.get("type")):
        return messages
    key = "type" if shape_of(first) is not None else "role"
    return [{key: "system", "content": system}, *messages]


def _parts_of(system: Any) -> list[Any]:
    """Gemini's system instruction: a content, parts, or a text."""
    parts = system.get("parts", [system] if "text" in system else []) if isinstance(system, Mapping) else system
    if isinstance(parts, str):
        return [{"text": parts}]
    found = parts if isinstance(parts, list) else [parts]
    return [{"text": part} if isinstance(part, str) else part for part in found if part]


def answer_beside(body: Mapping[str, Any], key: str, messages: list[Any]) -> list[Any]:
    """The answer that is recorded beside what ``key`` holds, unless it stands at the end of the messages already."""
    keys = (*ANSWERS.get(key, ()), "response")
    answer = next((found for one in keys if (found := _recorded(body.get(one), messages))), [])
    return [] if _is_among(answer, messages) else [_as_sent(one) for one in answer]


def _recorded(response: Any, messages: list[Any]) -> list[Any]:
    """The messages of a response, which a log may hold as JSON, or as nothing but what the answer says."""
    if isinstance(response, list) and len(response) == 1 and isinstance(response[0], str):
        response = response[0]
    last = first_object(messages[-1:])
    if not isinstance(response, str) or _is_event_stream(response):
        return answer_in(response) or _answer_of(_blocks_in(response), last)
    if response.lstrip().startswith(("{", "[")):
        held = json_in(response)
        if (found := answer_in(held)) or held in ({}, []) or (isinstance(held, dict) and not BODY.isdisjoint(held)):
            return found
        if blocks := _blocks_in(held):
            return _answer_of(blocks, last)
    return _answer_of(response, last)


def _answer_of(said: str | list[Any], last: dict[str, Any]) -> list[Any]:
    """A text, or blocks, as an answer behind the message ``last``."""
    is_answered = last.get("role", last.get("type")) in ("assistant", "model", "ai")
    if is_answered or not said or (isinstance(said, str) and not said.strip()):  # then it may be anything
        return []
    if isinstance(last.get("parts"), list):
        return [{"role": "model", "parts": [{"text": said}]}] if isinstance(said, str) else []
    return [{"type": "ai", "content": said} if shape_of(last) is not None else {"role": "assistant", "content": said}]


def _blocks_in(response: Any) -> list[Any]:
    """The blocks of an answer of Anthropic's, where a recorder keeps these alone (Opik)."""
    content = response.get("content") if isinstance(response, dict) and "role" not in response else response
    blocks = objects_in(content)
    return blocks if blocks == content and all(one.get("type") in BLOCKS for one in blocks) else []


def _is_among(answer: list[Any], messages: list[Any]) -> bool:
    """Whether the messages end with an answer, or hold it under its id, with what a tool made of it behind it."""
    if not answer or _said(messages[-len(answer) :]) == _said(answer):
        return True
    named = {one["id"] for one in messages if isinstance(one, dict) and isinstance(one.get("id"), str)}
    return any(isinstance(one, dict) and isinstance(one.get("id"), str) and one["id"] in named for one in answer)


def _as_sent(message: Any) -> Any:
    """An answer of Anthropic's without what it tells beside the blocks, which it does not take back."""
    is_response = isinstance(message, dict) and message.get("type") == "message" and "role" in message
    if not is_response or is_marked("openai-responses", message):
        return message
    return {"role": message["role"], "content": message.get("content")}


def _said(messages: list[Any]) -> list[Any]:
    """What messages say, without what a recorder writes beside it."""
    kept = (*SAID, "parts", "output")
    said = ({key: one[key] for key in kept if one.get(key)} if isinstance(one, dict) else None for one in messages)
    return [found or one for found, one in zip(said, messages, strict=True)]


def answer_in(response: Any, depth: int = 6) -> list[Any]:
    """The messages of a recorded response, or in the body of one: Chat Completions, Anthropic, Responses, Gemini,
    Converse or Ollama; messages as they are; or the generations of a run of LangChain. Looks ``depth`` levels deep.
    """
    if not depth:
        return []
    if isinstance(response, str):
        response = sent_events(response) if _is_event_stream(response) else json_in(response)
    if isinstance(response, list):
        if _is_stream(response):
            return _of_stream(response)
        if chunks := [one for one in objects_in(response) if one.get("object") == CHUNK]:
            return _of_chunks(chunks)
        if whole := [one for one in objects_in(response) if one.get("type") in FINISHED]:
            return answer_in(whole[-1].get("response"), depth - 1)
        if all(isinstance(one, dict) and ("role" in one or is_marked("openai-responses", one)) for one in response):
            return list(response)
        return answer_in(response[0], depth - 1)  # choices, or the generations of each prompt
    if not isinstance(response, dict):
        return []
    if response.get("role") == "assistant" and (
        isinstance(response.get("content"), list) or any(response.get(key) for key in SAID)
    ):
        return [response]
    if shape_of(response.get("message")) is not None:
        return [response["message"]]
    content = response.get("content")
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return [content]
    found = next((found for key in HOLDING if (found := answer_in(response.get(key), depth - 1))), [])
    return found or _answers_alone(response.get("messages"))


def _answers_alone(messages: Any) -> list[Any]:
    """Messages of an answer; none where others speak among them, as in the state of an agent."""
    answers = [one for one in objects_in(messages) if one.get("role") == "assistant"]
    return answers if answers == messages else []


# ---- a stream that was recorded as it came ----

FINISHED = ("response.completed", "response.incomplete")
"""The events of a stream of Responses that hold all of it."""
CHUNK = "chat.completion.chunk"
STREAMED = {"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "input"}
"""What a piece of Anthropic's holds, and which key of its block that is a piece of."""


def _is_event_stream(text: str) -> bool:
    """An answer may begin with such a word, too."""
    return text.lstrip().startswith(("event:", "data:")) and bool(objects_in(sent_events(text)))


def sent_events(text: str) -> list[Any]:
    """What server-sent events hold; comments, pings, one that was cut off, and a mark of the end are none."""
    lines = (line[5:] for line in text.split("\n") if line.startswith("data:"))
    return [held for held in map(json_in, lines) if held is not None]


def _of_chunks(chunks: list[dict[str, Any]]) -> list[Any]:
    """The answer whose pieces Chat Completions streamed: the first one, where several were asked for."""
    choices = (choice for chunk in chunks for choice in objects_in(chunk.get("choices")) if not choice.get("index"))
    deltas = [choice["delta"] for choice in choices if isinstance(choice.get("delta"), dict)]
    calls: list[list[dict[str, Any]]] = []
    newest: dict[str, list[dict[str, Any]]] = {}
    for call in (call for delta in deltas for call in objects_in(delta.get("tool_calls"))):
        place = str(call.get("index"))
        if place not in newest or _is_another(call, newest[place]):
            newest[place] = []
            calls.append(newest[place])
        newest[place].append(call)
    message: dict[str, Any] = {**_joined(deltas), "role": "assistant"}
    if calls:
        message["tool_calls"] = [_called(pieces) for pieces in calls]
    return [{"content": None, **message}] if any(message.get(key) for key in SAID) else []


def _is_another(call: dict[str, Any], pieces: list[dict[str, Any]]) -> bool:
    """Whether a piece with the same index as these, or none, begins another call. Not every provider counts its calls,
    and some (vLLM) give each piece an id of its own.
    """
    if not call.get("id") or _id_of(pieces) in (None, call["id"]) or not _told([call]).get("name"):
        return False
    last = next((text for one in reversed(pieces) if (text := _told([one]).get("arguments", "").strip())), "")
    return not last or (last.endswith("}") and json_in(_told(pieces)["arguments"]) is not None)


def _called(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    function = _told(pieces)
    names = [name for one in pieces if (name := _told([one]).get("name"))]
    if names and all(name == names[0] for name in names):  # some say it with each piece
        function["name"] = names[0]
    return {"id": _id_of(pieces), "type": "function", "function": {"arguments": "", **function}}


def _told(pieces: list[dict[str, Any]]) -> dict[str, str]:
    return _joined([one["function"] for one in pieces if isinstance(one.get("function"), dict)])


def _id_of(pieces: list[dict[str, Any]]) -> Any:
    return next((one["id"] for one in pieces if one.get("id")), None)


def _joined(pieces: list[dict[str, Any]]) -> dict[str, str]:
    """The texts that come in pieces, under their keys."""
    texts: dict[str, list[str]] = {}
    for key, text in (pair for piece in pieces for pair in piece.items()):
        if isinstance(text, str):
            texts.setdefault(key, []).append(text)
    return {key: "".join(found) for key, found in texts.items()}


def _is_stream(response: list[Any]) -> bool:
    """Whether these are the events of Anthropic's stream, which Bedrock's logs hold as they came."""
    first = first_object(response)
    return first.get("type") == "message_start" and isinstance(first.get("message"), dict)


def _of_stream(events: list[Any]) -> list[Any]:
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    for event in events:
        number = event.get("index") if isinstance(event, dict) else None
        if not isinstance(number, int):
            continue
        begun, delta = event.get("content_block"), event.get("delta")
        if isinstance(begun, dict):
            blocks[number] = {**begun}
        elif isinstance(delta, dict) and number in blocks:
            for written, key in STREAMED.items():
                if isinstance(delta.get(written), str):
                    pieces.setdefault((number, key), []).append(delta[written])
    for (number, key), texts in pieces.items():
        text = "".join(texts)
        if key != "input":
            blocks[number][key] = f"{blocks[number].get(key) or ''}{text}"
        elif text:
            blocks[number][key] = _read(text)
    content = [blocks[number] for number in sorted(blocks)]
    return [{"role": "assistant", "content": content}] if content else []


def _read(written: str) -> Any:
    """The arguments of a call; those that were cut off are kept as they were written."""
    held = json_in(written)
    return {"": written} if held is None else held
