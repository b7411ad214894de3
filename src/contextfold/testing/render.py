"""Plots written as wire messages, the way each provider's documentation shows them.

What belongs here: one class per wire format that knows nothing of ``contextfold.formats``, so that it can serve
as a second opinion on it. What does not: events (``plots``).

Sources: the API references of OpenAI (Chat Completions, Responses), Anthropic (Messages), Google (Gemini), Amazon
Bedrock (Converse), and LangChain's message classes.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from contextfold.testing.plots import (
    AssistantSays,
    Blank,
    Event,
    Instruction,
    Plot,
    PlotCall,
    PlotWords,
    ProviderCompaction,
    Result,
    ToolsAnswer,
    UserSays,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG image of one pixel, base64."""

PIXEL_URL = f"data:image/png;base64,{PIXEL}"

PAGE = "JVBERi0xLjAKMSAwIG9iajw8L1BhZ2VzIDIgMCBSPj5lbmRvYmoKMiAwIG9iajw8L0tpZHNbXS9Db3VudCAwPj5lbmRvYmoKJSVFT0Y="
"""A PDF document, base64."""

Wire = dict[str, Any]
Tags = Iterator[int]


def render(plot: Plot, format: str) -> list[Any]:
    """The plot as a list of messages in the format of this name, such as ``openai-chat``.

    Deterministic, and prefix-stable: the first n events give a prefix of what all give. Raises ``ValueError``
    for another format, and ``ImportError`` for ``langchain`` where langchain-core is not installed.
    """
    if format not in WRITERS:
        raise ValueError(f"format={format!r} is not known: use one of {', '.join(WRITERS)}")
    writer, tags = WRITERS[format](), itertools.count(1)
    messages: list[Any] = []
    for event in plot:
        writer.write(event, tags, messages)
    return messages


class Renderer(Protocol):
    """Writes events one after the other."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        """Append what ``event`` is in this format; an event that the format does not know adds nothing."""
        ...


def spell(words: PlotWords | None, tags: Tags) -> str:
    """The text with the next number; nothing for no words."""
    return words.spell(next(tags)) if words is not None else ""


def arguments(call: PlotCall, tags: Tags) -> dict[str, Any]:
    """A short field that must survive shortening, and a long one that may not."""
    tag = next(tags)
    return {"path": f"/srv/item-{tag}.txt", "content": call.arguments.spell(tag)}


class ChatWriter:
    """OpenAI Chat Completions."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append({"role": event.role, "content": self._content(spell(event.words, tags), event.blocks)})
        elif isinstance(event, UserSays):
            messages.append(self._user(event, tags))
        elif isinstance(event, AssistantSays):
            messages.append(self._assistant(event, tags))
        elif isinstance(event, ToolsAnswer):
            messages.extend(self._result(result, tags) for result in event.results)
        elif isinstance(event, Blank):
            messages.append({"role": event.role, "content": ""})

    def _content(self, text: str, blocks: bool) -> Any:
        return [{"type": "text", "text": text}] if blocks else text

    def _user(self, event: UserSays, tags: Tags) -> Wire:
        text = spell(event.words, tags)
        content: Any = self._content(text, event.blocks or event.image or event.document)
        if event.image:
            content.append({"type": "image_url", "image_url": {"url": PIXEL_URL, "detail": "low"}})
        if event.document:
            file = {"filename": "page.pdf", "file_data": f"data:application/pdf;base64,{PAGE}"}
            content.append({"type": "file", "file": file})
        return {"role": "user", "content": content, **({"name": event.name} if event.name else {})}

    def _assistant(self, event: AssistantSays, tags: Tags) -> Wire:
        text = spell(event.words, tags)
        message: Wire = {"role": "assistant", "content": self._content(text, event.blocks) if text else None}
        if event.refusal:
            message["refusal"] = spell(PlotWords("english", 1), tags)
        if event.thinking is not None:
            message["reasoning_content"] = spell(event.thinking, tags)
        if event.calls:
            message["tool_calls"] = [self._call(call, tags) for call in event.calls]
        if event.row:
            message["id"] = event.row
        return message

    def _call(self, call: PlotCall, tags: Tags) -> Wire:
        if call.custom:
            return {
                "id": call.id,
                "type": "custom",
                "custom": {"name": call.name, "input": spell(call.arguments, tags)},
            }
        function = {"name": call.name, "arguments": json.dumps(arguments(call, tags), ensure_ascii=False)}
        return {"id": call.id, "type": "function", "function": function}

    def _result(self, result: Result, tags: Tags) -> Wire:
        content = self._content(spell(result.words, tags), result.blocks)
        name = {"name": result.name} if result.name else {}
        return {"role": "tool", "tool_call_id": result.call_id, **name, "content": content}


class ResponsesWriter:
    """OpenAI Responses: every reasoning, text and call of a turn is an item of its own."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append({"type": "message", "role": event.role, "content": self._input(spell(event.words, tags))})
        elif isinstance(event, UserSays):
            messages.append(self._user(event, tags))
        elif isinstance(event, AssistantSays):
            messages.extend(self._assistant(event, tags))
        elif isinstance(event, ToolsAnswer):
            messages.extend(self._result(result, tags) for result in event.results)
        elif isinstance(event, Blank):
            messages.append({"type": "message", "role": event.role, "content": []})
        elif isinstance(event, ProviderCompaction):
            tag = next(tags)
            messages.append({"type": "compaction", "id": f"cmp_{tag}", "encrypted_content": f"gAAAAAB{tag}" * 8})

    def _input(self, text: str) -> list[Wire]:
        return [{"type": "input_text", "text": text}]

    def _user(self, event: UserSays, tags: Tags) -> Wire:
        text = spell(event.words, tags)
        if not (event.blocks or event.image or event.document):
            return {"role": "user", "content": text}
        content = self._input(text)
        if event.image:
            content.append({"type": "input_image", "image_url": PIXEL_URL, "detail": "low"})
        if event.document:
            content.append({"type": "input_file", "filename": "page.pdf", "file_data": PAGE})
        return {"type": "message", "role": "user", "content": content}

    def _assistant(self, event: AssistantSays, tags: Tags) -> Iterator[Wire]:
        if event.thinking is not None:
            tag = next(tags)
            summary = [{"type": "summary_text", "text": event.thinking.spell(tag)}]
            yield {"type": "reasoning", "id": f"rs_{tag}", "summary": summary, "encrypted_content": f"gAAAA{tag}" * 9}
        if event.server_tool:
            tag = next(tags)
            action = {"type": "search", "query": f"query {tag}"}
            yield {"type": "web_search_call", "id": f"ws_{tag}", "status": "completed", "action": action}
        content: list[Wire] = []
        if event.words is not None:
            content.append({"type": "output_text", "text": spell(event.words, tags), "annotations": []})
        if event.refusal:
            content.append({"type": "refusal", "refusal": spell(PlotWords("english", 1), tags)})
        if content:
            tag = next(tags)
            yield {
                "type": "message",
                "id": f"msg_{tag}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        for call in event.calls:
            yield self._call(call, tags)

    def _call(self, call: PlotCall, tags: Tags) -> Wire:
        tag = next(tags)
        if call.custom:
            text = spell(call.arguments, tags)
            return {
                "type": "custom_tool_call",
                "id": f"ctc_{tag}",
                "call_id": call.id,
                "name": call.name,
                "input": text,
            }
        text = json.dumps(arguments(call, tags), ensure_ascii=False)
        return {"type": "function_call", "id": f"fc_{tag}", "call_id": call.id, "name": call.name, "arguments": text}

    def _result(self, result: Result, tags: Tags) -> Wire:
        text = spell(result.words, tags)
        output: Any = self._input(text) if result.blocks or result.image else text
        if result.image:
            output.append({"type": "input_image", "image_url": PIXEL_URL, "detail": "low"})
        kind = "custom_tool_call_output" if result.custom else "function_call_output"
        return {"type": kind, "call_id": result.call_id, "output": output}


class AnthropicWriter:
    """Anthropic Messages: results of one turn stand together in one user message, before the user's words."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append({"role": "system", "content": spell(event.words, tags)})
        elif isinstance(event, UserSays):
            messages.append({"role": "user", "content": self._user(event, tags)})
        elif isinstance(event, AssistantSays):
            row = {"id": event.row} if event.row else {}
            messages.append({"role": "assistant", **row, "content": self._assistant(event, tags)})
        elif isinstance(event, ToolsAnswer):
            content = [self._result(result, tags) for result in event.results]
            messages.append({"role": "user", "content": content})
        elif isinstance(event, Blank):
            messages.append({"role": event.role, "content": []})

    def _user(self, event: UserSays, tags: Tags) -> Any:
        text = spell(event.words, tags)
        if not (event.blocks or event.image or event.document):
            return text
        content: list[Wire] = [{"type": "text", "text": text}]
        if event.image:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            content.append({"type": "image", "source": source, "cache_control": {"type": "ephemeral"}})
        if event.document:
            source = {"type": "base64", "media_type": "application/pdf", "data": PAGE}
            content.append({"type": "document", "source": source})
        return content

    def _assistant(self, event: AssistantSays, tags: Tags) -> Any:
        text = spell(event.words, tags)
        if text and event.thinking is None and not (event.calls or event.blocks or event.server_tool):
            return text
        content: list[Wire] = []
        if event.thinking is not None:
            tag = next(tags)
            content.append({"type": "thinking", "thinking": event.thinking.spell(tag), "signature": f"sig{tag}" * 6})
        if event.server_tool:
            content.extend(self._search(next(tags)))
        if text:
            content.append({"type": "text", "text": text})
        for call in event.calls:
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments(call, tags)})
        return content

    def _search(self, tag: int) -> tuple[Wire, Wire]:
        found = {"type": "web_search_result", "url": f"https://example.org/{tag}", "encrypted_content": f"Eo{tag}" * 5}
        return (
            {"type": "server_tool_use", "id": f"srvtoolu_{tag}", "name": "web_search", "input": {"query": f"q {tag}"}},
            {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{tag}", "content": [found]},
        )

    def _result(self, result: Result, tags: Tags) -> Wire:
        text = spell(result.words, tags)
        content: Any = [{"type": "text", "text": text}] if result.blocks or result.image else text
        if result.image:
            content.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
        block: Wire = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
        return {**block, "is_error": True} if result.is_error else block


class ConverseWriter:
    """Bedrock Converse: blocks without a type, media as bytes; results of one turn stand together."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append({"role": "system", "content": [{"text": spell(event.words, tags)}]})
        elif isinstance(event, UserSays):
            messages.append({"role": "user", "content": self._user(event, tags)})
        elif isinstance(event, AssistantSays):
            row = {"id": event.row} if event.row else {}
            messages.append({"role": "assistant", **row, "content": self._assistant(event, tags)})
        elif isinstance(event, ToolsAnswer):
            content = [self._result(result, tags) for result in event.results]
            messages.append({"role": "user", "content": content})
        elif isinstance(event, Blank):
            messages.append({"role": event.role, "content": []})

    def _user(self, event: UserSays, tags: Tags) -> list[Wire]:
        tag = next(tags)
        text = event.words.spell(tag)
        guarded = event.name and not event.document  # a document needs a text beside it
        content: list[Wire] = [{"guardContent": {"text": {"text": text}}} if guarded else {"text": text}]
        if event.image:
            content.append({"image": {"format": "png", "source": {"bytes": base64.b64decode(PIXEL)}}})
        if event.document:
            source = {"bytes": base64.b64decode(PAGE)}
            content.append({"document": {"format": "pdf", "name": f"page-{tag}", "source": source}})
        return [*content, {"cachePoint": {"type": "default"}}] if event.blocks else content

    def _assistant(self, event: AssistantSays, tags: Tags) -> list[Wire]:
        content: list[Wire] = []
        if event.thinking is not None:
            tag = next(tags)
            said = {"text": event.thinking.spell(tag), "signature": f"sig{tag}" * 6}
            content.append({"reasoningContent": {"reasoningText": said}})
        if event.server_tool:
            tag = next(tags)
            cited = {"title": f"page {tag}", "sourceContent": [{"text": f"source {tag}"}]}
            content.append({"citationsContent": {"content": [{"text": f"cited {tag}"}], "citations": [cited]}})
        if event.words is not None:
            content.append({"text": spell(event.words, tags)})
        for call in event.calls:
            content.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments(call, tags)}})
        return content

    def _result(self, result: Result, tags: Tags) -> Wire:
        text = spell(result.words, tags)
        content: list[Wire] = [{"json": {"output": text}} if result.blocks else {"text": text}]
        if result.image:
            content.append({"image": {"format": "png", "source": {"bytes": base64.b64decode(PIXEL)}}})
        block: Wire = {"toolUseId": result.call_id, "content": content}
        return {"toolResult": {**block, "status": "error"} if result.is_error else block}


class LangChainWriter:
    """LangChain message objects."""

    def __init__(self) -> None:
        from langchain_core import messages as langchain

        self._classes = langchain

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append(self._classes.SystemMessage(spell(event.words, tags)))
        elif isinstance(event, UserSays):
            messages.append(self._user(event, tags))
        elif isinstance(event, AssistantSays):
            messages.append(self._assistant(event, tags))
        elif isinstance(event, ToolsAnswer):
            messages.extend(self._result(result, tags) for result in event.results)
        elif isinstance(event, Blank):
            of_role = self._classes.AIMessage if event.role == "assistant" else self._classes.HumanMessage
            messages.append(of_role(""))

    def _user(self, event: UserSays, tags: Tags) -> Any:
        tag = next(tags)
        text = event.words.spell(tag)
        content: Any = [{"type": "text", "text": text}] if event.blocks or event.image else text
        if event.image:
            content.append({"type": "image_url", "image_url": {"url": PIXEL_URL}})
        return self._classes.HumanMessage(content, id=f"human-{tag}", name=event.name)

    def _assistant(self, event: AssistantSays, tags: Tags) -> Any:
        text = spell(event.words, tags)
        content: Any = text
        if event.thinking is not None:
            tag = next(tags)
            thinking = {"type": "thinking", "thinking": event.thinking.spell(tag), "signature": f"sig{tag}" * 6}
            content = [thinking, *([{"type": "text", "text": text}] if text else [])]
        elif event.blocks and text:
            content = [{"type": "text", "text": text}]
        calls = [{"id": call.id, "name": call.name, "args": arguments(call, tags)} for call in event.calls]
        return self._classes.AIMessage(content, tool_calls=calls, id=event.row or f"ai-{next(tags)}")

    def _result(self, result: Result, tags: Tags) -> Any:
        text = spell(result.words, tags)
        content: Any = [{"type": "text", "text": text}] if result.blocks else text
        status = "error" if result.is_error else "success"
        return self._classes.ToolMessage(content, tool_call_id=result.call_id, name=result.name, status=status)


class GeminiWriter:
    """Gemini: parts of a user or a model, results of one turn together; calls with ids, as its newer models give."""

    def write(self, event: Event, tags: Tags, messages: list[Any]) -> None:
        if isinstance(event, Instruction):
            messages.append({"role": "system", "parts": [{"text": spell(event.words, tags)}]})
        elif isinstance(event, UserSays):
            messages.append({"role": "user", "parts": self._user(event, tags)})
        elif isinstance(event, AssistantSays):
            row = {"id": event.row} if event.row else {}
            messages.append({"role": "model", **row, "parts": self._model(event, tags)})
        elif isinstance(event, ToolsAnswer):
            messages.append({"role": "user", "parts": [self._result(result, tags) for result in event.results]})
        elif isinstance(event, Blank):
            messages.append({"role": "model" if event.role == "assistant" else "user", "parts": []})

    def _user(self, event: UserSays, tags: Tags) -> list[Wire]:
        parts: list[Wire] = [{"text": spell(event.words, tags)}]
        if event.image:
            parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
        if event.document:
            parts.append({"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/page.pdf"}})
        return parts

    def _model(self, event: AssistantSays, tags: Tags) -> list[Wire]:
        parts: list[Wire] = []
        signature: Wire = {}
        if event.thinking is not None:
            tag = next(tags)
            parts.append({"text": event.thinking.spell(tag), "thought": True})
            signature = {"thoughtSignature": f"c2ln{tag}" * 6}
        if event.server_tool:
            tag = next(tags)
            parts.append({"executableCode": {"language": "PYTHON", "code": f"print({tag})"}})
            parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": f"{tag}\n"}})
        if event.words is not None:
            parts.append({"text": spell(event.words, tags), **({} if event.calls else signature)})
        for number, call in enumerate(event.calls):
            called = {"id": call.id, "name": call.name, "args": arguments(call, tags)}
            parts.append({"functionCall": called, **(signature if number == 0 else {})})
        return parts

    def _result(self, result: Result, tags: Tags) -> Wire:
        text = spell(result.words, tags)
        response: Wire = {"error" if result.is_error else "output": text}
        if result.blocks and not result.is_error:
            response = {"content": [{"type": "text", "text": text}]}
        answer: Wire = {"id": result.call_id, "name": result.name or "read_file", "response": response}
        if result.image:
            answer["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
        return {"functionResponse": answer}


WRITERS: Mapping[str, Callable[[], Renderer]] = {
    "openai-chat": ChatWriter,
    "openai-responses": ResponsesWriter,
    "anthropic": AnthropicWriter,
    "langchain": LangChainWriter,
    "gemini": GeminiWriter,
    "bedrock-converse": ConverseWriter,
}
