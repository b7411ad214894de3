"""``summarizer="same"``: the model that a request goes to writes the summary, behind the very view it has just read.

A provider keeps what it read of a prompt for some minutes and takes a tenth of the price for reading it again. So the
request for the summary is the view byte for byte, sent the same way (system prompt, tools and cache marks included),
with one instruction behind it. Where that does not fit, is refused, or brings no summary, the same model is asked the
usual way: with the text of what leaves, in chunks.

What belongs here: these two requests, and reading the text of any provider's answer. What does not: whether an answer
will do (``summary.accept``), and when to summarize (``passes``).
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextfold.calls.usage import get, read_usage
from contextfold.formats import gemini_shapes
from contextfold.formats.base import Format
from contextfold.messages import Message, Text
from contextfold.summary.summarizer import REFUSAL, UNMARKED, Answer, is_refusal, to_answer

SAME = "same"

Ask = Callable[[list[Any], bool, int], Any]
"""Sends messages and returns the provider's response: ``ask(messages, whole, answer_tokens)``. ``whole``: as the
request itself is sent, with its system prompt and tools; None where its answer could be no summary (``is_shaped``).
``answer_tokens``: the answer limit in place of the request's, if that has one; 0 where it may be as it is. May be
``async def``."""

NOT_FOR_A_SUMMARY = (
    *("stream", "stream_options", "thread", "background", "n", "stop", "stop_sequences"),
    *("logit_bias", "prediction", "modalities", "audio"),
)
"""Fields of a request that are no part of its prompt, and with which its answer would be no summary, several, or the
beginning of one: a word at which the agent's answers end may stand in a summary, and OpenAI does not say that it did.
An answer may also be in sound, or in words that the task prefers; and OpenAI bills what of a predicted one is not said.
"""

_SUMMARY = re.compile(
    r"^\s*(?:<(think|thinking|reasoning)>.*?</\1>\s*)?(?:<summary>|[^<]{1,200}(?P<whole><summary>.*</summary>))",
    re.DOTALL | re.IGNORECASE,
)
"""Many models say a word before what they were asked for, "Here is the summary:" or the beginning of a block of code.
Then the summary has to be closed, and is what stands between its tags."""


@dataclass
class SameModel:
    """The model of one request as a summarizer. ``sample``: one of the caller's messages, None if there is none: a new
    one gets its shape, object or mapping. ``answer_limit``: the request's own.
    """

    ask: Ask
    format: Format
    sample: Any = None
    window: int | None = None
    answer_limit: int | None = None

    def complete(self, prompt: str) -> Any:
        """The answer to a prompt by itself, as for any summarizer."""
        value = self.ask([self.said(prompt)], False, 0)
        return self._awaited(value) if inspect.isawaitable(value) else answer_of(value)

    def said(self, text: str) -> Any:
        """A message of the user in the caller's format."""
        before = [] if self.sample is None else [self.format.decode(self.sample)]
        return self.format.encode([*before, Message("user", (Text(text),))])[-1]

    def read(self, response: Any) -> Answer:
        """What the model said behind a view. One that does not begin as it was asked to has gone on with the task."""
        answer = answer_of(response)
        found = _SUMMARY.match(answer.text)
        if found is not None and found["whole"]:
            return replace(answer, text=found["whole"])
        if answer.text.strip() and not answer.has_tool_calls and found is None:
            finish = answer.finish_reason if answer.finish_reason == REFUSAL else UNMARKED
            return replace(answer, text="", finish_reason=finish)
        return answer

    @staticmethod
    async def _awaited(value: Awaitable[Any]) -> Answer:
        return answer_of(await value)


def begins_as_given(messages: Sequence[Any], history: Sequence[Any]) -> bool:
    """Whether what stands before the instruction is the caller's own list, which went out with the caller's fields.

    Behind a view the fields of a request may be others, such as ``thinking``: what the provider has in its cache was
    sent with those, and with any others it reads nothing there, or refuses the request.
    """
    return all(map(operator.is_, messages[:-1], history))


def is_shaped(arguments: Mapping[str, Any]) -> bool:
    """Whether a request with these arguments, named as in the APIs of any provider, has its answer forced into a shape
    that no summary has: a call of a tool, or JSON. Asked otherwise, it would not be read from the cache: what forces
    the shape is a part of the prompt.
    """
    choices = [arguments.get(name) for name in ("tool_choice", "function_call")]
    formats = [arguments.get(name) for name in ("response_format", "output_format", "text_format")]
    formats += [get(arguments.get("output_config"), "format"), get(arguments.get("text"), "format")]
    config = arguments.get("config")  # google-genai's, which takes both spellings of a name
    calling = gemini_shapes.get(gemini_shapes.get(config, "tool_config"), "function_calling_config")
    choices += [gemini_shapes.get(calling, "mode")]
    formats += [gemini_shapes.get(config, name) for name in ("response_schema", "response_json_schema")]
    is_json = "json" in str(gemini_shapes.get(config, "response_mime_type") or "")
    return is_json or any(map(_forces, choices)) or any(map(_is_format, formats))


_LEAVE_ROOM = ("auto", "none", "validated", "mode_unspecified", "0", "1", "3", "4")
"""The numbers are those that JSON for protocol buffers takes in place of Gemini's names: 2 is ANY."""


def _forces(choice: Any) -> bool:
    """Whether a choice among tools leaves no room for an answer in words."""
    if choice is None or choice is False or _is_left_out(choice):
        return False
    if isinstance(choice, Mapping):
        return _forces(choice.get("mode") or choice.get("type") or next(iter(choice), None))
    word = getattr(choice, "value", choice)  # of an enumeration of an SDK
    return str(word).lower() not in _LEAVE_ROOM


def _is_format(said: Any) -> bool:
    return said is not None and get(said, "type") != "text" and not _is_left_out(said)


def _is_left_out(value: Any) -> bool:
    # OpenAI's and Anthropic's marks of an argument that was not given
    return type(value).__name__ in ("NotGiven", "Omit")


def answer_of(response: Any) -> Answer:
    """What any provider's response says: of OpenAI, Anthropic, Gemini, Bedrock, LangChain, or a text."""
    if response is None or isinstance(response, str | Answer):
        return to_answer(response)
    results = get(response, "result")
    if isinstance(results, list | tuple) and results:  # LangChain's ModelResponse
        response = results[-1]
    usage = read_usage(response)
    text, called, is_refused = _read(response)
    finish = REFUSAL if is_refused else usage.finish
    return Answer(text, finish, called, usage.input_tokens, usage.output_tokens)


def _read(response: Any) -> tuple[str, bool, bool]:
    """(the words, whether a tool is called, whether the model refuses beside what it says)."""
    # By the field that only one provider has; `content` comes last, since Anthropic and LangChain both use it.
    choices = get(response, "choices")
    if isinstance(choices, list | tuple) and choices:
        message = get(choices[0], "message")
        content, called = get(message, "content"), bool(get(message, "tool_calls") or get(message, "function_call"))
        return _text_of(content), called, is_refusal(message, content)
    candidates = get(response, "candidates")
    if isinstance(candidates, list | tuple):
        return *_read_candidate(candidates[0] if candidates else None), False
    output = get(response, "output")
    if isinstance(output, list | tuple):
        said = [item for item in output if get(item, "type") == "message"]
        calls = [item for item in output if str(get(item, "type") or "").endswith("_call")]
        contents = [get(item, "content") for item in said]
        is_refused = any(is_refusal(None, content) for content in contents)
        return "".join(map(_text_of, contents)), bool(calls), is_refused
    content = get(response, "content")
    if isinstance(said := get(output, "message"), Mapping):  # Bedrock's Converse
        content = get(said, "content")
    blocks = content if isinstance(content, list | tuple) else ()
    called = bool(get(response, "tool_calls")) or any(
        get(block, "type") == "tool_use" or get(block, "toolUse") is not None for block in blocks
    )
    return _text_of(content), called, is_refusal(get(response, "additional_kwargs"), content)


def _read_candidate(candidate: Any) -> tuple[str, bool]:
    """Gemini's answer: the words of its parts, without thoughts."""
    parts = get(get(candidate, "content"), "parts")
    parts = parts if isinstance(parts, list | tuple) else ()
    called = any(get(part, "function_call") or get(part, "functionCall") for part in parts)
    return "".join(str(get(part, "text") or "") for part in parts if not get(part, "thought")), called


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else ()
    return "".join(
        block if isinstance(block, str) else str(get(block, "text") or "")
        for block in blocks
        if isinstance(block, str) or get(block, "type") in (None, "text", "output_text")
    )
