"""Responses items: what each becomes, what an edit leaves alone, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from emulator.wires.responses_rules import responses_problem

from contextfold import Compactor, formats
from contextfold.errors import FormatError
from contextfold.formats.openai_responses import OpenAIResponses
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from contextfold.record.view import ViewItem, ready
from contextfold.tiers.tool_arguments import ToolArgumentsTier
from contextfold.tokens import TokenCounter
from formats.reading import decoded

RESPONSES = OpenAIResponses()
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": '{"a": "long"}'}
PATCH = {"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": "*** Begin", "status": "completed"}
SHELL = {"type": "local_shell_call", "call_id": "s", "action": {"type": "exec", "command": ["ls"]}}


@pytest.mark.parametrize(
    ("item", "role", "parts"),
    [
        ({"role": "user", "content": "hi"}, "user", (Text("hi"),)),
        ({"type": "message", "role": "developer", "content": "rules"}, "developer", (Text("rules"),)),
        (
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"},
                    {"type": "input_image", "file_id": "file-1"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,BBBB"},
                    {"type": "input_file"},
                    {"type": "input_image"},
                    {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "wav"}},
                ],
            },
            "user",
            (
                Text("look"),
                Media("image", "image/png", data="AAAA", detail="high"),
                Media("image", url="file-1"),
                Media("document", "application/pdf", data="BBBB"),
                Opaque("input_file"),
                Opaque("input_image"),
                Media("audio", "audio/wav", data="CCCC"),
            ),
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            "assistant",
            (Opaque("refusal", "no"),),
        ),
        (
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "zzz"},
            "assistant",
            (Reasoning("hm"),),
        ),
        (CALL, "assistant", (ToolCall("c", "f", '{"a": "long"}'),)),
        (PATCH, "assistant", (ToolCall("p", "patch", "*** Begin", custom=True),)),
        (SHELL, "assistant", (ToolCall("s", "local_shell", '{"type": "exec", "command": ["ls"]}'),)),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, "tool", (ToolResult("c", (Text("x"),)),)),
        (
            {"type": "custom_tool_call_output", "call_id": "p", "output": [{"type": "input_text", "text": "x"}]},
            "tool",
            (ToolResult("p", (Text("x"),), custom=True),),
        ),
        (
            {
                "type": "computer_call_output",
                "call_id": "k",
                "status": "failed",
                "output": {"type": "computer_screenshot", "image_url": "https://a.b"},
            },
            "tool",
            (ToolResult("k", (Media("image", url="https://a.b"),), is_error=True),),
        ),
        ({"type": "compaction", "id": "x", "encrypted_content": "zzz"}, "assistant", (Opaque("compaction"),)),
        ({"type": "compaction_summary", "summary": "so far"}, "assistant", (Opaque("compaction", "so far"),)),
        (
            {"type": "web_search_call", "id": "ws", "action": {"query": "q"}},
            "assistant",
            (Opaque("web_search_call", "q"),),
        ),
        ({"type": "item_reference", "id": "x"}, "assistant", (Opaque("item_reference"),)),
        ({"id": "x"}, "assistant", (Opaque("item_reference"),)),
        (
            {"type": "configuration_update", "reasoning": {"effort": "high"}},
            "developer",
            (Opaque("configuration_update"),),
        ),
    ],
)
def test_every_item_becomes_its_message(item: dict[str, Any], role: str, parts: tuple[Any, ...]) -> None:
    message = RESPONSES.decode(item)
    assert (message.role, message.parts, message.split) == (role, parts, role == "assistant")
    assert message.id == item.get("id")


@pytest.mark.parametrize(
    ("item", "arguments", "changed"),
    [
        (CALL, "{}", {"arguments": "{}"}),
        (PATCH, "short", {"input": "short"}),
        (SHELL, '{"type": "exec"}', {"action": {"type": "exec"}}),
    ],
)
def test_edited_arguments_go_where_they_were_and_ids_stay(
    item: dict[str, Any], arguments: str, changed: dict[str, Any]
) -> None:
    message = RESPONSES.decode(item)
    call = replace(message.tool_calls[0], arguments=arguments, edited=True)
    assert RESPONSES.encode([message.with_parts((call,))]) == [{**item, **changed}]
    assert RESPONSES.encode([replace(message, parts=(call,))]) == [{**item, **changed}]


def test_several_actions_of_a_computer_are_what_it_was_called_with() -> None:
    """Newer models name several actions in one call, and the SDK's types hold the older field beside them, empty."""
    actions = [{"type": "click", "x": n, "y": 2, "button": "left"} for n in range(20)]
    actions.append({"type": "type", "text": "the ticket is TCK-0042 " * 40})
    item = {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": None, "actions": actions}
    message = RESPONSES.decode({**item, "status": "completed", "pending_safety_checks": []})
    (call,) = message.tool_calls
    assert "TCK-0042" in call.arguments
    assert TokenCounter().part(call) > 300
    shorter = ToolArgumentsTier().reduce(call, 64)
    assert shorter is not call
    (sent,) = RESPONSES.encode([message.with_parts((shorter,))])
    assert all(action["type"] in ("click", "type") for action in sent["actions"])
    assert sent["action"] is None
    assert len(sent["actions"][-1]["text"]) < 100
    assert RESPONSES.encode([message]) == [message.source]


def test_edited_outputs_and_messages_keep_their_shape_and_other_keys() -> None:
    output = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "long"}
    (result,) = RESPONSES.decode(output).tool_results
    shorter = replace(result, content=(Text("s", edited=True),), edited=True)
    assert RESPONSES.encode([RESPONSES.decode(output).with_parts((shorter,))]) == [{**output, "output": "s"}]

    image = {"type": "input_image", "image_url": "https://a.b"}
    words = {"type": "input_text", "text": "long", "extra": 1}
    item = {"role": "user", "content": [words, image], "id": "m"}
    message = RESPONSES.decode(item)
    text = message.parts[0]
    assert isinstance(text, Text)
    edited = message.with_parts((replace(text, text="s", edited=True), Text("[image]")))
    assert RESPONSES.encode([edited]) == [
        {**item, "content": [{**words, "text": "s"}, {"type": "input_text", "text": "[image]"}]}
    ]
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}], "id": "m2"}
    edited = RESPONSES.decode(answer).with_parts((Text("b"), Media("image", url="https://a.b")))
    (entry,) = RESPONSES.encode([edited])
    assert entry["content"][0] == {"type": "output_text", "text": "b"}
    assert entry["id"] == "m2"


def test_an_item_that_is_all_reasoning_goes_whole_or_is_replaced_by_words() -> None:
    """Reasoning is the same object or gone."""
    item = {"type": "reasoning", "summary": [], "encrypted_content": "zzz", "id": "r"}
    message = RESPONSES.decode(item)
    assert RESPONSES.encode([message.with_parts(message.parts)])[0] is item
    assert RESPONSES.encode([message.with_parts(())]) == []
    assert RESPONSES.encode([message.with_parts((Text("gone"),))]) == [
        {"type": "message", "role": "assistant", "content": "gone"}
    ]


def test_an_assistant_turn_of_another_format_becomes_items_in_its_order() -> None:
    parts = (
        Reasoning("hidden"),
        Text("first"),
        ToolCall("a", "f", ""),
        Text("then"),
        ToolCall("b", "sh", "ls", custom=True),
    )
    results = (
        ToolResult("a", (Text("x"), Media("image", "image/png", data="AAAA"))),
        ToolResult("b", (Text("y"),)),
    )
    turn = [Message("assistant", parts), Message("user", (*results, Text("go on")))]
    assert RESPONSES.encode(turn) == [
        {"type": "message", "role": "assistant", "content": "first"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": "then"},
        {"type": "custom_tool_call", "call_id": "b", "name": "sh", "input": "ls"},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
            ],
        },
        {"type": "custom_tool_call_output", "call_id": "b", "output": "y"},
        {"type": "message", "role": "user", "content": "go on"},
    ]


def test_media_is_carried_or_noted() -> None:
    parts = (
        Media("document", "application/pdf", data="AAAA"),
        Media("document", url="https://a.b/c"),
        Media("video", url="https://a.b/v"),
    )
    (entry,) = RESPONSES.encode([Message("user", parts)])
    assert entry["content"] == [
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "input_file", "file_url": "https://a.b/c"},
        {"type": "input_text", "text": "[video: https://a.b/v]"},
    ]
    (said,) = RESPONSES.encode([Message("assistant", parts[2:])])
    assert said["content"] == "[video: https://a.b/v]"


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "langchain"])
def test_the_items_of_one_turn_become_one_assistant_message(target: str) -> None:
    items = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "summary": [], "encrypted_content": "zzz"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "both"}]},
        CALL,
        {**CALL, "call_id": "d"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"type": "function_call_output", "call_id": "d", "output": "2"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    known = formats.get(target)
    crossed = formats.decode(known.encode(decoded(items, "openai-responses")), known)
    answers = [message for message in crossed if message.role == "assistant"]
    assert [(answer.text, [call.id for call in answer.tool_calls]) for answer in answers] == [
        ("both", ["c", "d"]),
        ("done", []),
    ]


def test_messages_of_one_role_are_joined_and_other_items_are_not() -> None:
    one = {"role": "user", "content": "a", "id": "m"}
    joined = RESPONSES.join(one, {"role": "user", "content": [{"type": "input_text", "text": "b"}]})
    assert joined["content"] == [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    answer = {"role": "assistant", "content": "a"}
    assert RESPONSES.join(answer, {"role": "assistant", "content": ""})["content"] == [
        {"type": "output_text", "text": "a"}
    ]
    assert RESPONSES.join(one, answer) is None
    assert RESPONSES.join(CALL, CALL) is None


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ([], "a Responses item is a JSON object, and this is a list"),
        ({"content": "x"}, "neither a 'type' nor a 'role'"),
        ({"role": "tool", "content": "x"}, "unknown role 'tool'; allowed are system, developer, user, assistant"),
        ({"type": "message", "content": "x"}, "it has no role"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "a function_call item: 'call_id' is missing"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "a function_call item: 'name' is missing"),
        ({**CALL, "arguments": [1]}, "has a list for its arguments, not a string of JSON"),
        ({"type": "function_call_output", "output": "x"}, "a function_call_output item has no 'call_id'"),
        ({"type": "function_call_output", "call_id": 3, "output": "x"}, "'call_id' is a number"),
        ({"type": "function_call_output", "call_id": "c", "output": 3}, "output is a string or a list of blocks"),
    ],
)
def test_what_is_no_item_is_refused_in_words_with_its_index(wire: Any, words: str) -> None:
    with pytest.raises(FormatError) as error:
        RESPONSES.decode(wire, 2)
    assert words in str(error.value)
    assert str(error.value).startswith("message 2: ")


@pytest.mark.parametrize("call_id", [{}, {"call_id": None}], ids=["left out", "null"])
def test_an_output_that_names_its_tool_and_no_call_goes_through_as_it_is(call_id: dict[str, Any]) -> None:
    """The API wants no call for it, and one that waits gets no answer by it."""
    news = {"type": "function_call_output", "name": "inbox", "output": "Ada wrote: ship on Friday", **call_id}
    answer = {"type": "function_call_output", "call_id": "c", "output": "done"}
    items = [{"role": "user", "content": "go"}, CALL, news, answer, {"role": "user", "content": "on"}]
    assert Compactor(window=8_000).compact(items).messages == items
    old = [items[0], news, *({"role": "user", "content": f"step {n} " + "x " * 400} for n in range(3))]
    old += [{"role": "assistant", "content": f"note {n} " + "y " * 400} for n in range(30)]
    view = Compactor(window=8_000).compact([*old, {"role": "user", "content": "on"}]).messages
    assert news not in view
    assert "Ada wrote: ship on Friday" in str(view)


TOOLS = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "function", "name": "grep", "parameters": {}}],
}
EFFORT = {"type": "configuration_update", "reasoning": {"effort": "high"}}


@pytest.mark.parametrize("setting", [EFFORT, TOOLS], ids=["effort", "tools"])
def test_what_sets_effort_or_tools_for_later_answers_stays_in_every_view(setting: dict[str, Any]) -> None:
    """Summed up, it would be undone: the model would think as little as before, or have no such tool any more."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    updates = []
    compactor, record, passes = Compactor(window=8_000), None, 0
    for turn in range(40):
        if turn in (2, 3, 15):
            updates.append({**setting, "id": f"set_{turn}"})
            items.append(updates[-1])
        items.append({"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"})
        lines = (f"m{turn}.py:{at}: value_{turn * at} = {at}" for at in range(60))
        items.append({"type": "function_call_output", "call_id": f"c{turn}", "output": "\n".join(lines)})
        result = compactor.compact(items, record)
        record, passes = result.compaction, passes + result.changed
        assert [item for item in result.messages if item.get("type") == setting["type"]] == updates
    assert passes > 3


@pytest.mark.parametrize("calls", [1, 3])
def test_a_program_its_calls_and_its_output_are_never_parted(calls: int) -> None:
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    compactor, record, passes = Compactor(window=6_000), None, 0
    for turn in range(60):
        program = {"type": "program", "call_id": f"p{turn}"}
        items.append({**program, "id": f"a{turn}", "code": f"read(m{turn}.py)", "fingerprint": "x"})
        for at in range(calls):
            call = {"call_id": f"c{turn}_{at}", "caller": {"type": "program", "caller_id": f"p{turn}"}}
            items.append({"type": "function_call", "name": "read", "arguments": "{}", **call})
            items.append({"type": "function_call_output", "output": LINES.format(turn), **call})
        items.append({**program, "type": "program_output", "id": f"o{turn}", "result": LINES, "status": "completed"})
        items.append({"role": "user", "content": "Go on."})
        result = compactor.compact(items, record)
        record, passes = result.compaction, passes + result.changed
        assert responses_problem({"input": result.messages}) is None
    assert passes > 3


def test_an_approval_is_never_parted_from_what_it_approves() -> None:
    """Beside a call of the caller's, its result stands between the two."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    compactor, record, passes = Compactor(window=6_000), None, 0
    for turn in range(60):
        asked = {"id": f"r{turn}", "server_label": "s", "name": "read", "arguments": "{}"}
        items += [
            {"type": "mcp_approval_request", **asked},
            {"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{turn}", "output": LINES},
            {"type": "mcp_approval_response", "approval_request_id": f"r{turn}", "approve": True},
            {"type": "mcp_call", **asked, "id": f"m{turn}", "approval_request_id": f"r{turn}", "output": LINES},
            {"role": "user", "content": "Go on."},
        ]
        result = compactor.compact(items, record)
        record, passes = result.compaction, passes + result.changed
        assert responses_problem({"input": result.messages}) is None
    assert passes > 3


@pytest.mark.parametrize("late", [3, 25, 60])
def test_a_call_that_the_model_does_not_wait_for_stays_until_its_result_is_there(late: int) -> None:
    """Told that it was never answered, the model would call once more."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "Start the slow lookup, and read all modules."},
        {"type": "function_call", "call_id": "slow", "name": "lookup", "arguments": "{}", "async": True},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reading meanwhile."}]},
    ]
    compactor, record, passes, before = Compactor(window=6_000), None, 0, list[Any]()
    for turn in range(50):
        items.append({"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{turn}", "output": LINES})
        if turn == late:
            items.append({"type": "function_call_output", "call_id": "slow", "output": "It is 4711."})
        result = compactor.compact(items, record)
        record, passes = result.compaction, passes + result.changed
        assert responses_problem({"input": result.messages}) is None
        assert (items[1] in result.messages) or turn > late
        assert "never answered" not in str(result.messages)
        assert result.changed or result.messages[: len(before)] == before
        assert turn < late or "4711" in str(result.messages)
        if turn == late:
            assert result.messages[-1] is items[-1]
        before = list(result.messages)
    assert passes > 1


def test_elsewhere_a_call_that_the_model_does_not_wait_for_has_a_result_that_says_so() -> None:
    call = {"type": "function_call", "call_id": "slow", "name": "lookup", "arguments": "{}", "async": True}
    items = [{"role": "user", "content": "Go."}, call, {"role": "user", "content": "And?"}]
    chat = formats.get("openai-chat")
    view = ready([ViewItem(RESPONSES.decode(item), index) for index, item in enumerate(items)], chat)
    assert [item.message.role for item in view] == ["user", "assistant", "tool", "user"]


LINES = "\n".join(f"m{{0}}.py:{at}: value_{at * 7} = {at}" for at in range(12))
