"""Sizes of parts, messages and tools, with the estimate or a counter of the user's."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import BaseModel

import contextfold
from contextfold.errors import PolicyError
from contextfold.formats import FORMATS
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from contextfold.tokens import TokenCounter, count_tokens, estimate
from contextfold.tokens.counter import CALL_OVERHEAD, MESSAGE_OVERHEAD, REFERENCED_TOOL, TOOL_OVERHEAD, compact_json
from contextfold.tokens.media import rule_of

COUNTER = TokenCounter()
LENGTHS = TokenCounter(len)


def test_a_message_is_its_parts_its_name_and_its_frame() -> None:
    parts = (Text("hello"), ToolCall("1", "grep", '{"a":1}'))
    message = Message("assistant", parts, name="bob")
    assert LENGTHS.message(message) == MESSAGE_OVERHEAD + 3 + 5 + CALL_OVERHEAD + 4 + 7
    assert LENGTHS.message(Message("assistant", ())) == MESSAGE_OVERHEAD


def test_a_result_is_what_it_holds() -> None:
    result = ToolResult("1", (Text("abc"), Media("image", detail="low"), Opaque("x", "de")))
    assert LENGTHS.part(result) == 3 + 85 + 2


def test_the_media_rule_decides_the_price_of_an_image() -> None:
    image = Media("image")
    assert TokenCounter(media_rule="anthropic").part(image) == 1600
    assert TokenCounter(media_rule="openai").part(image) == 765


def test_without_a_counter_the_estimate_counts() -> None:
    assert COUNTER.text("some words, 123") == estimate("some words, 123")


def test_readable_reasoning_is_its_text_and_the_signature_beside_it_counts_nothing() -> None:
    assert LENGTHS.part(Reasoning("think", source={"thinking": "think", "signature": "s" * 4_000})) == 5


def test_ciphertext_counts_as_the_text_in_it() -> None:
    """Base64 of n bytes stands for about n / 4 tokens."""
    secret = base64.b64encode(bytes(4_000)).decode()
    assert COUNTER.part(Reasoning("", source={"encrypted_content": secret})) == pytest.approx(1_000, rel=0.01)
    assert COUNTER.part(Reasoning("short", source={"encrypted_content": secret})) == pytest.approx(1_000, rel=0.01)
    assert COUNTER.part(Reasoning("", source={"signature": secret})) == pytest.approx(1_000, rel=0.01)
    assert COUNTER.part(Opaque("compaction", source={"encrypted_content": secret})) == pytest.approx(1_000, rel=0.01)


def test_the_same_hidden_reasoning_counts_the_same_in_every_shape() -> None:
    hidden = base64.b64encode(bytes(4_000)).decode()
    blocks = [{"type": "redacted_thinking", "data": hidden}]
    shapes: list[dict[str, Any]] = [
        {"role": "assistant", "content": [*blocks, {"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": "ok", "thinking_blocks": blocks},
        {"role": "assistant", "content": "ok", "reasoning_details": [{"type": "reasoning.encrypted", "data": hidden}]},
        {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": bytes(4_000)}}, {"text": "ok"}]},
        {"type": "ai", "content": [*blocks, {"type": "text", "text": "ok"}]},
        *(
            {"type": "ai", "content": [block, {"type": "text", "text": "ok"}]}
            for block in (
                {"type": "reasoning", "id": "r", "reasoning": "", "extras": {"encrypted_content": hidden}},
                {"type": "reasoning_content", "reasoning_content": {"redacted_content": bytes(4_000)}},
                {"type": "non_standard", "value": blocks[0]},
            )
        ),
        *(
            {"type": "ai", "content": "ok", "additional_kwargs": held}
            for held in (
                {"reasoning": {"type": "reasoning", "summary": [], "encrypted_content": hidden}},
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": hidden}]},
                {"thinking_blocks": blocks},
            )
        ),
    ]
    assert [count_tokens([message]) for message in shapes] == [pytest.approx(1_005, abs=3)] * len(shapes)


def test_hidden_reasoning_of_haystack_and_pydantic_ai_counts_the_same() -> None:
    haystack = pytest.importorskip("haystack.dataclasses")
    pydantic_ai = pytest.importorskip("pydantic_ai.messages")
    hidden = base64.b64encode(bytes(4_000)).decode()
    extras: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "r", "encrypted_content": hidden},
        {"reasoning_contents": [{"type": "redacted_thinking", "data": hidden}]},
        {"reasoning_contents": [{"reasoning_content": {"redacted_content": bytes(4_000)}}]},
    ]
    messages = [
        haystack.ChatMessage.from_assistant("ok", reasoning=haystack.ReasoningContent("", extra=extra))
        for extra in extras
    ]
    parts = [
        pydantic_ai.ThinkingPart("", signature=hidden, provider_name="openai"),
        pydantic_ai.CompactionPart(
            content=None, provider_name="openai", provider_details={"encrypted_content": hidden}
        ),
    ]
    messages += [pydantic_ai.ModelResponse([part, pydantic_ai.TextPart("ok")]) for part in parts]
    assert [count_tokens([message]) for message in messages] == [pytest.approx(1_005, abs=3)] * len(messages)


def test_reasoning_with_nothing_in_it_costs_nothing() -> None:
    assert COUNTER.part(Reasoning("")) == 0
    assert COUNTER.part(Reasoning("", source=object())) == 0


def test_an_opaque_block_is_its_text_or_its_json_without_base64() -> None:
    data = base64.b64encode(bytes(30_000)).decode()
    assert LENGTHS.part(Opaque("x", "abc", source={"much": "more"})) == 3
    assert LENGTHS.part(Opaque("x", source={"type": "x", "list": [1, "a"]})) == len('{"type":"x","list":[1,"a"]}')
    assert COUNTER.part(Opaque("x", source={"type": "x", "blob": data, "url": f"data:a/b;base64,{data}"})) < 40
    assert LENGTHS.part(Opaque("x")) == 0
    assert LENGTHS.part(Opaque("x", source=object())) == len('"object"')


PNG = "data:image/png;base64,"
PIXELS = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (512).to_bytes(4) * 2 + bytes(90_000)).decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}
PAGE = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF /Type /Page /").decode()}
HIDDEN = base64.b64encode(bytes(4_000)).decode()
LINES = "The port is 8443. " * 200
TEXT = base64.b64encode(b"some" * 1_000).decode()
RAN = {"type": "server_tool_result", "tool_call_id": "i", "status": "success"}
CONVERSE = {"format": "png", "source": {"bytes": base64.b64decode(PIXELS)}}


@pytest.mark.parametrize(
    ("format", "wire", "tokens"),
    [
        ("openai-responses", {"type": "image_generation_call", "id": "i", "result": PIXELS}, 255),
        (
            "openai-responses",
            {"type": "code_interpreter_call", "outputs": [{"type": "image", "url": f"data:image/png;base64,{PIXELS}"}]},
            255,
        ),
        ("openai-chat", {"role": "assistant", "images": [{"image_url": {"url": f"{PNG}{PIXELS}"}}]}, 255),
        (
            "openai-chat",
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A" * 1_280_000}}]},
            600,
        ),
        ("anthropic", {"type": "mcp_tool_result", "tool_use_id": "m", "content": [IMAGE]}, 350),
        (
            "anthropic",
            {"type": "web_search_tool_result", "content": [{"url": "u", "encrypted_content": HIDDEN}] * 3},
            3_000,
        ),
        ("anthropic", {"type": "web_fetch_tool_result", "content": {"content": {"source": PAGE}}}, 2_250),
        (
            "anthropic",
            {"type": "web_fetch_tool_result", "content": {"source": {"type": "text", "data": LINES}}},
            estimate(LINES),
        ),
        ("langchain", {"type": "text-plain", "mime_type": "text/plain", "base64": TEXT}, 1_000),
        ("langchain", {"type": "video_url", "video_url": {"url": f"data:text/plain;base64,{TEXT}"}}, 1_000),
        ("langchain", {**RAN, "output": [{"type": "image", "mime_type": "image/png", "base64": PIXELS}]}, 255),
        (
            "langchain",
            {**RAN, "output": [{"type": "file", "mime_type": "application/pdf", "base64": PAGE["data"]}]},
            2_250,
        ),
        ("langchain", {"type": "guard_content", "guard_content": {"image": CONVERSE}}, 255),
        ("bedrock-converse", {"guardContent": {"image": CONVERSE}}, 350),
        (
            "bedrock-converse",
            {"toolResult": {"toolUseId": "i", "type": "code_result", "content": [{"image": CONVERSE}]}},
            350,
        ),
    ],
)
def test_what_a_provider_fetched_drew_or_searched_has_its_price(format: str, wire: dict[str, Any], tokens: int) -> None:
    """Neither its base64, nor nothing."""
    if format in ("anthropic", "bedrock-converse"):
        wire = {"role": "assistant", "content": [wire]}
    elif format == "langchain":
        wire = {"type": "ai", "content": [wire]}
    message = FORMATS[format].decode(wire)
    counter = TokenCounter(media_rule=rule_of(format))
    assert counter.message(message) == pytest.approx(tokens, rel=0.05, abs=20)


MEASURED = [{"hour": hour, "degrees": hour * 1.5, "is_day": hour % 24 < 12} for hour in range(1_000)]


@pytest.mark.parametrize(
    ("format", "wire"),
    [
        ("gemini", {"role": "model", "parts": [{"toolResponse": {"toolType": "MAPS", "response": {"at": MEASURED}}}]}),
        ("langchain", {**RAN, "output": MEASURED}),
        (
            "bedrock-converse",
            {"toolResult": {"toolUseId": "i", "type": "result", "content": [{"text": "ok"}, {"json": MEASURED}]}},
        ),
        (
            "anthropic",
            {"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"type": "json", "say": "ok", "of": MEASURED}]},
        ),
        ("openai-responses", {"type": "mcp_call", "id": "m", "name": "weather", "arguments": "{}", "output": MEASURED}),
    ],
)
def test_numbers_that_a_tool_of_the_provider_gave_are_sized_with_their_names(format: str, wire: dict[str, Any]) -> None:
    """A model reads its JSON. Thousands of numbers were a few tokens, wherever one word stood beside them."""
    if format not in ("openai-responses", "gemini"):
        wire = {"content": [wire], **({"type": "ai"} if format == "langchain" else {"role": "assistant"})}
    message = FORMATS[format].decode(wire)
    assert isinstance(message.parts[0], Opaque)
    assert COUNTER.message(message) == pytest.approx(estimate(compact_json(MEASURED)), rel=0.1)


@pytest.mark.parametrize("spelled", ["inlineData", "inline_data", "object"])
def test_a_picture_in_a_thought_has_the_price_of_a_picture(spelled: str) -> None:
    content: Any = {
        "role": "model",
        "parts": [{"thought": True, "inlineData": {"mimeType": "image/png", "data": PIXELS}}],
    }
    if spelled == "inline_data":
        content["parts"] = [{"thought": True, "inline_data": {"mime_type": "image/png", "data": PIXELS}}]
    elif spelled == "object":
        content = pytest.importorskip("google.genai.types").Content.model_validate(content)
    (thought,) = FORMATS["gemini"].decode(content).parts
    assert isinstance(thought, Reasoning)
    assert COUNTER.part(thought) == COUNTER.part(Media("image", "image/png", PIXELS))


def test_a_page_that_the_provider_fetched_as_text_can_be_read() -> None:
    fetched = {"type": "web_fetch_tool_result", "content": {"source": {"type": "text", "data": LINES}}}
    message = FORMATS["anthropic"].decode({"role": "assistant", "content": [fetched]})
    assert any(isinstance(part, Opaque) and LINES in part.text for part in message.parts)


def test_the_same_opaque_block_has_the_same_size_twice() -> None:
    block = Opaque("x", source={"who": object()})
    assert COUNTER.part(block) == COUNTER.part(Opaque("x", source={"who": object()}))


class Arguments(BaseModel):
    path: str


class Tool:
    name = "read_file"
    description = "Reads a file."
    args_schema: Any = Arguments


class TypedTool(Tool):
    args_schema = Arguments.model_json_schema()


def look_up(word: str) -> str:
    """Looks a word up."""
    return word


def test_tools_of_every_shape_count_their_name_description_and_schema() -> None:
    chat = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    anthropic = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    assert LENGTHS.tools([chat]) == TOOL_OVERHEAD + len(
        '{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}'
    )
    assert LENGTHS.tools([chat, anthropic]) > LENGTHS.tools([chat]) > LENGTHS.tools([anthropic])
    assert LENGTHS.tools([Tool()]) == LENGTHS.tools([TypedTool()]) > 60
    assert LENGTHS.tools([Arguments]) > 40
    known = '{"name":"look_up","description":"Looks a word up.","parameters":{"word":"str"}}'
    assert LENGTHS.tools([look_up]) == TOOL_OVERHEAD + len(known)
    assert LENGTHS.tools([7]) > 0
    assert LENGTHS.tools(None) == LENGTHS.tools([]) == 0


def of_langchain() -> Any:
    return pytest.importorskip("langchain_core.tools").tool(look_up)


def of_langchain_from_before_schemas() -> Any:
    return pytest.importorskip("langchain_core.tools").Tool(
        name="look_up", func=look_up, description="Looks a word up."
    )


def of_google() -> Any:
    types = pytest.importorskip("google.genai.types")
    word = {"type": "OBJECT", "properties": {"word": {"type": "STRING"}}}
    return types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name="look_up", description="Looks a word up.", parameters=word)
        ]
    )


def of_agents() -> Any:
    return pytest.importorskip("agents").function_tool(look_up)


def of_strands() -> Any:
    return pytest.importorskip("strands").tool(look_up)


def of_mcp() -> Any:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    types = pytest.importorskip("mcp.types")
    return types.Tool(name="look_up", description="Looks a word up.", inputSchema=schema)


def of_pydantic_ai() -> Any:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tools = pytest.importorskip("pydantic_ai.tools")
    return tools.ToolDefinition(name="look_up", description="Looks a word up.", parameters_json_schema=schema)


@pytest.mark.parametrize(
    "make",
    [of_langchain, of_langchain_from_before_schemas, of_google, of_agents, of_strands, of_mcp, of_pydantic_ai],
)
def test_a_tool_of_a_framework_counts_about_what_is_sent_of_it(make: Any) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    sent = {"name": "look_up", "description": "Looks a word up.", "parameters": schema}
    assert 0.6 < LENGTHS.tools([make()]) / LENGTHS.tools([sent]) < 2.0


@pytest.mark.parametrize("value", [1.5, "3", None, -1, True])
def test_a_counter_that_returns_no_count_is_named_with_what_it_returned(value: Any) -> None:
    with pytest.raises(PolicyError, match="count_text returned") as error:
        TokenCounter(lambda text: value).text("abc")
    assert repr(value) in str(error.value)


def test_a_counter_that_raises_is_named_with_what_it_raised() -> None:
    def count(text: str) -> int:
        raise KeyError("vocabulary")

    with pytest.raises(PolicyError, match="count_text raised KeyError for a text of 3 characters") as error:
        TokenCounter(count).text("abc")
    assert isinstance(error.value.__cause__, KeyError)


def test_settings_that_are_not_allowed_are_refused_at_once() -> None:
    with pytest.raises(PolicyError, match="count_text must be a function"):
        TokenCounter("gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="media_rule is 'mistral'; allowed are 'openai', 'anthropic', 'google'"):
        TokenCounter(media_rule="mistral")  # type: ignore[arg-type]


CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]


def test_an_sdks_declaration_counts_as_its_json() -> None:
    """An object of a class counts as what it holds, and not as the schema of its class."""
    types = pytest.importorskip("google.genai.types")
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    held = {"description": "Looks a word up.", "name": "look_up", "parameters_json_schema": schema}
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(**held)])
    assert COUNTER.tools([tool]) == COUNTER.tools([{"function_declarations": [held]}])
    typed = types.Schema(type="OBJECT", properties={"word": types.Schema(type="STRING")})
    declared = {"name": "look_up", "description": "Looks a word up.", "parameters": typed.model_dump(exclude_none=True)}
    assert COUNTER.tools([types.FunctionDeclaration(**{**declared, "parameters": typed})]) == COUNTER.tools([declared])


def with_schema(n: int) -> dict[str, Any]:
    fields = {f"customer_{k}": {"type": "string", "enum": ["a", "b"], "maxLength": 40} for k in range(8)}
    return {
        "name": f"look_up_{n}",
        "description": "Looks it up.",
        "parameters": {"type": "object", "properties": fields},
    }


def test_a_tool_counts_where_the_model_reads_its_declaration() -> None:
    """One that is loaded later takes no room at first, however many there are; what loads it does."""
    declared = [with_schema(n) for n in range(100)]
    functions = [{"type": "function", **tool, "defer_loading": True} for tool in declared]
    nested = [{"type": "function", "function": tool, "defer_loading": True} for tool in declared]
    space = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": functions}
    anthropic = [
        {"name": tool["name"], "description": "d", "input_schema": tool["parameters"], "defer_loading": True}
        for tool in declared
    ]
    whole = COUNTER.tools(declared)
    assert whole > 10_000
    assert COUNTER.tools(anthropic) == 0
    assert COUNTER.tools([space]) < 60
    assert COUNTER.tools(functions) == COUNTER.tools(nested) < 0.25 * whole
    said = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    assert not contextfold.Compactor(window=8_000).compact(said, tools=anthropic, format="anthropic").changed

    for kind in ("mcp_list_tools", "tool_search_output"):
        item = {"type": kind, "id": "i", "call_id": None, "tools": functions}
        message = FORMATS["openai-responses"].decode(item)
        assert COUNTER.message(message) == pytest.approx(whole, rel=0.2)
    found = {"type": "tool_reference", "tool_name": "look_up_1"}
    gave = {"type": "tool_search_tool_search_result", "tool_references": [found, found]}
    searched = {"type": "tool_search_tool_result", "tool_use_id": "s", "content": gave}
    message = FORMATS["anthropic"].decode({"role": "assistant", "content": [searched]})
    assert COUNTER.message(message) == pytest.approx(2 * REFERENCED_TOOL, rel=0.1)


@pytest.mark.parametrize("framework", ["langchain", "openai-agents"])
def test_a_framework_says_in_its_own_way_which_tool_is_loaded_later(framework: str) -> None:
    def long(customer_name: str, customer_number: int, invoice_number: int, invoice_date: str, total: float) -> str:
        """Looks it up."""
        return customer_name

    def made(*, later: bool) -> Any:
        if framework == "langchain":
            tool = pytest.importorskip("langchain_core.tools").tool
            return tool(long, extras={"defer_loading": later})
        return pytest.importorskip("agents").function_tool(long, defer_loading=later)

    assert COUNTER.tools([made(later=True)]) < 0.5 * COUNTER.tools([made(later=False)])
    if framework == "langchain":
        sending = pytest.importorskip("contextfold.integrations.langchain.sending")
        late, soon = (COUNTER.tools(sending.declarations([made(later=later)])) for later in (True, False))
        assert late < 0.5 * soon


def test_count_tokens_adds_up_messages_and_tools() -> None:
    tools = [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]
    alone = count_tokens(CHAT)
    assert alone == 2 * MESSAGE_OVERHEAD + estimate("Be brief.") + estimate("hello there")
    assert count_tokens(CHAT, tools=tools) == alone + COUNTER.tools(tools)
    assert count_tokens([]) == 0


def test_count_tokens_falls_back_to_the_estimate_for_a_model_without_a_tokenizer() -> None:
    assert count_tokens(CHAT, "anthropic:claude-sonnet-4-5") == count_tokens(CHAT)


def test_images_in_anthropic_messages_have_anthropic_prices() -> None:
    block = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert count_tokens([{"role": "user", "content": [block]}]) == MESSAGE_OVERHEAD + 1600


def test_messages_in_no_format_are_an_input_error() -> None:
    with pytest.raises(contextfold.errors.InputError):
        count_tokens([42])
