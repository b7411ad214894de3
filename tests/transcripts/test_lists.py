"""Lists of messages, bare and wrapped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextfold.errors import InputError
from contextfold.transcripts import requests
from transcripts.files import one, rows, several

TALK = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]
RULES = {"role": "system", "content": "rules"}


@pytest.mark.parametrize(
    "data",
    [
        TALK,
        rows(*TALK),
        b"\xef\xbb\xbf" + rows(*TALK),
        rows(*TALK).replace(b"\n", b"\r\n\r\n"),
        {"messages": TALK},
        *({key: json.dumps(TALK), "task": "x"} for key in ("messages", "conversation", "conversations", "trajectory")),
        {"input": json.dumps(TALK[:1]), "output": json.dumps(TALK[1])},
        {"model": "m", "input": json.dumps({"messages": TALK[:1]}), "output": "done"},
        {"history": TALK, "trajectory": [{"action": "x"}]},
        {"request": {"messages": TALK}},
        {"simulations": [{"messages": TALK}]},
        {"values": {"messages": TALK}},
        {"traj": TALK, "info": {"task": {"messages": []}}},
        {"samples": [{"messages": TALK, "input": "x"}]},
        {"data": {"deep": [{"of_some_name": TALK}]}},
        [TALK],
        rows({"messages": TALK}),
    ],
)
def test_a_list_of_messages_is_found_wherever_it_is(data: Any) -> None:
    found = one(data)
    assert (found.kind, found.format, found.name) == ("messages", "openai-chat", "talk")
    assert found.messages == TALK


@pytest.mark.parametrize("data", [json.dumps({"messages": TALK}, ensure_ascii=False).encode(), rows(*TALK)])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_file_that_names_its_encoding_by_a_byte_order_mark_is_read_in_it(data: bytes, encoding: str) -> None:
    """``>`` in PowerShell writes UTF-16, so what people of Windows made of another command's output was refused."""
    text = data.decode().replace("done", "Größe 完成 👍")
    assert one(text.encode(encoding) if "sig" in encoding else f"\ufeff{text}".encode(encoding)).messages == [
        TALK[0],
        {**TALK[1], "content": "Größe 完成 👍"},
    ]


def test_several_lists_are_several_conversations_with_numbered_names() -> None:
    for data in ({"simulations": [{"messages": TALK}] * 2}, rows({"messages": TALK}, {"messages": TALK}), [TALK, TALK]):
        assert [found.name for found in several(data)] == ["talk#0", "talk#1"]


@pytest.mark.parametrize(
    ("value", "format", "messages"),
    [
        ({"model": "m", "system": "rules", "messages": TALK}, "anthropic", [RULES, *TALK]),
        (
            {"model": "m", "system": [{"type": "text", "text": "rules"}], "messages": TALK},
            "anthropic",
            [{"role": "system", "content": [{"type": "text", "text": "rules"}]}, *TALK],
        ),
        ({"model": "m", "instructions": "rules", "input": TALK}, "openai-responses", [RULES, *TALK]),
        ({"model": "m", "instructions": "rules", "input": "go"}, "openai-responses", [RULES, TALK[0]]),
        ({"model": "m", "input": json.dumps(TALK)}, "openai-responses", TALK),
        ({"model": "m", "input": '{"a": 1}'}, "openai-responses", [{"role": "user", "content": '{"a": 1}'}]),
        ({"system_prompt": "rules", "messages": TALK}, "openai-chat", [RULES, *TALK]),
        ({"system_prompt": "rules", "messages": [RULES, *TALK]}, "openai-chat", [RULES, *TALK]),
        (
            {"instructions": "rules", "messages": [{"type": "human", "content": "go"}]},
            "langchain",
            [{"type": "system", "content": "rules"}, {"type": "human", "content": "go"}],
        ),
    ],
)
def test_what_stands_beside_the_messages_of_a_request_leads_them(
    value: dict[str, Any], format: str, messages: list[Any]
) -> None:
    found = one(value)
    assert (found.format, found.messages) == (format, messages)


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": TALK[1]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}], "id": "m"},
        {"output": [{"type": "message", "role": "assistant", "content": "done"}]},
        {"output": {"message": {"role": "assistant", "content": [{"text": "done"}]}}},
        {"message": TALK[1], "done": True},
        {"status_code": 200, "body": {"choices": [{"message": TALK[1]}]}},
    ],
)
def test_the_answer_to_a_recorded_request_is_its_last_message(response: dict[str, Any]) -> None:
    found = one({"messages": TALK[:1], "response": response})
    assert len(found.messages) == 2
    assert found.messages[1]["role"] == "assistant"
    assert len(one({"request": {"messages": TALK[:1]}, "response": response}).messages) == 2


LANGCHAIN = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": {"content": "go"}}
    for name in ("HumanMessage", "AIMessage")
]
CALLING = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]}
REFUSING = {"role": "assistant", "content": None, "refusal": "I will not."}
LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ({"inputs": {"messages": TALK[:1]}, "outputs": {"choices": [{"message": TALK[1]}]}}, TALK),
        (
            {"inputs": {"messages": [LANGCHAIN[:1]]}, "outputs": {"generations": [[{"message": LANGCHAIN[1]}]]}},
            LANGCHAIN,
        ),
        ({"inputs": {"messages": TALK[:1]}, "output": {"choices": [{"message": TALK[1]}]}}, TALK),
        ({"input": TALK[:1], "output": TALK[1]}, TALK),
        ({"model": "m", "input": TALK[:1], "output": CALLING}, [TALK[0], CALLING]),
        (
            {"input": {"inputBodyJson": {"messages": TALK[:1]}}, "output": {"outputBodyJson": {"message": TALK[1]}}},
            TALK,
        ),
        ({"full_request": {"messages": TALK[:1]}, "full_response": {"choices": [{"message": TALK[1]}]}}, TALK),
        ({"messages": TALK, "response": {"choices": [{"message": {**TALK[1], "refusal": None}}]}}, TALK),
        ({"model": "m", "messages": TALK[:1], "choices": [{"message": TALK[1]}], "usage": {}}, TALK),
        ({"messages": TALK[:1], "output": TALK[1]}, TALK),
        ({"spans": [{"meta": {"input": {"messages": TALK[:1]}, "output": {"messages": TALK[1:]}}}]}, TALK),
        ({"messages": TALK[:1], "response": "done"}, TALK),
        ({"messages": TALK[:1], "response": json.dumps({"choices": [{"message": TALK[1]}]})}, TALK),
        ({"input": TALK[:1], "output": "done"}, TALK),
        ({"messages": TALK, "response": "200 OK"}, TALK),
        ({"messages": TALK[:1], "response": {"choices": [{"message": REFUSING}]}}, [TALK[0], REFUSING]),
        ({"messages": TALK[:1], "response": {"choices": [{"message": LEGACY}]}}, [TALK[0], LEGACY]),
    ],
)
def test_an_answer_is_found_wherever_logs_have_it_and_read_once(value: dict[str, Any], messages: list[Any]) -> None:
    found = one(value)
    assert found.messages == messages
    assert found.format == ("langchain" if messages is LANGCHAIN else "openai-chat")


HELD = [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "done"}]


@pytest.mark.parametrize("output", [HELD, {"content": HELD}, json.dumps(HELD), json.dumps({"content": HELD})])
def test_an_answer_of_which_its_blocks_alone_are_recorded_is_read(output: Any) -> None:
    """Opik keeps nothing but the content of Anthropic's answers: the last message of each conversation was lost."""
    answered = [*TALK[:1], {"role": "assistant", "content": HELD}]
    assert one({"input": {"messages": TALK[:1]}, "output": output}).messages == answered
    assert one({"input": {"messages": TALK}, "output": output}).messages == TALK


ASKING = {"role": "user", "content": "go"}


@pytest.mark.parametrize(
    ("asked", "format"),
    [
        ([ASKING, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f"}]}], "anthropic"),
        ([{"role": "user", "parts": [{"text": "go"}]}], "gemini"),
        ([{"type": "human", "content": "go"}], "langchain"),
        ([{"role": "user", "content": [{"text": "go"}]}], "bedrock-converse"),
        ([ASKING, CALLING], "openai-chat"),
        ([ASKING, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}], "openai-responses"),
        ([ASKING], "openai-responses"),
    ],
)
def test_a_record_of_a_call_that_names_its_model_holds_messages_of_any_format(asked: Any, format: str) -> None:
    """Langfuse has them under ``input``, as requests to Responses have: LangChain's and Anthropic's lost their calls,
    and Gemini's were refused.
    """
    found = one({"model": "m", "input": asked, "output": "done"})
    assert (found.format, found.messages[: len(asked)]) == (format, asked)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (lambda text: {"request": {"method": "POST", "body": text}}, lambda text: {"response": {"body": text}}),
        (lambda text: {"request": text}, lambda text: {"response": text}),
        (lambda text: {"request_body": text}, lambda text: {"response_body": text}),
        (lambda text: {"requestBody": text}, lambda text: {"responseBody": text}),
        (lambda text: {"full_request": text}, lambda text: {"full_response": text}),
    ],
)
def test_bodies_of_requests_that_a_log_holds_as_texts_are_read(asked: Any, answer: Any) -> None:
    """Logs of proxies and rows of tables hold the body as it was sent: they were refused."""
    request, response = json.dumps({"messages": TALK[:1]}), json.dumps({"choices": [{"message": TALK[1]}]})
    assert one(rows({**asked(request), **answer(response)})).messages == TALK
    assert one({**asked(request), **answer("")}).messages == TALK[:1]
    with pytest.raises(InputError):
        one({**asked('{"name": "x"}'), **answer(response)})


@pytest.mark.parametrize(
    "row",
    [
        {"messages": TALK, "tools": [{"name": "f"}]},
        {"messages": TALK, "tools": json.dumps([{"name": "f"}])},
        {"messages": TALK, "functions": [{"name": "f"}]},
        {"messages": [{"role": "user", "content": [{"text": "go"}]}], "toolConfig": {"tools": [{"name": "f"}]}},
        {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "config": {"tools": [{"name": "f"}]}},
        *(
            {"messages": TALK, key: {"tools": [{"name": "f"}]}}
            for key in ("kwargs", "model_parameters", "modelParameters", "optional_params", "invocation_params")
        ),
        {"inputs": {"messages": TALK}, "extra": {"invocation_params": {"tools": [{"name": "f"}]}}},
    ],
)
def test_the_tools_of_a_request_are_read_wherever_it_has_them(row: dict[str, Any]) -> None:
    """Those of Converse, old requests, data sets and traces took no room in the window."""
    assert one(row).tools == ({"name": "f"},)
    nothing = dict.fromkeys((*requests.HOLDING_TOOLS, "extra", "tools", "functions"), "none")
    assert one({**row, **nothing}).tools == ()


@pytest.mark.parametrize("given", [TALK[:1], {"messages": TALK[:1]}])
def test_a_trace_is_the_requests_in_it_and_the_state_that_it_left_too(given: Any) -> None:
    """Beside the input of the whole run, as Langfuse and Opik have it, the rest of a trace was not looked at."""
    asked = [TALK[0], CALLING, {"role": "tool", "tool_call_id": "c", "content": "4"}]
    for key in ("observations", "spans"):
        trace = {"input": given, "output": TALK[1], key: [{"input": asked, "output": TALK[1]}, {"input": "x"}]}
        assert [found.messages for found in several(trace)] == [TALK, [*asked, TALK[1]]]
    of_graph = {"input": given, "output": {"messages": [*asked, TALK[1]]}, "observations": ["id"]}
    assert [found.messages for found in several(of_graph)] == [TALK[:1], [*asked, TALK[1]]]


def test_a_prompt_and_its_completion_are_one_conversation() -> None:
    """Each row of such a data set was two, with the answer alone in the second."""
    row = {"completion": TALK[1:], "prompt": [RULES, *TALK[:1]], "split": "train"}
    assert [found.messages for found in several(rows(row, row))] == [[RULES, *TALK]] * 2
    sampled = {"type": "sampling", "data": {"prompt": [RULES, *TALK[:1]], "sampled": ["done"]}}
    assert one(rows({"spec": {}}, sampled)).messages == [RULES, *TALK]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": TALK[:1], "chosen": TALK[1:], "rejected": [REFUSING]},
        {"prompt": TALK[:1], "chosen": TALK, "rejected": [TALK[0], REFUSING]},
        {"prompt": "go", "messages": TALK, "chosen": TALK, "rejected": [TALK[0], REFUSING]},
        {"chosen": TALK, "rejected": [TALK[0], REFUSING]},
        {"input": {"messages": TALK[:1]}, "preferred_output": TALK[1:], "non_preferred_output": [REFUSING]},
    ],
)
def test_each_of_two_answers_of_which_one_is_preferred_is_a_conversation_with_what_was_asked(row: Any) -> None:
    """Answers stood alone, apart from what was asked, or were left out."""
    assert [found.messages for found in several(rows(row, row))] == [TALK, [TALK[0], REFUSING]] * 2
    assert all(found.tools for found in several({**row, "tools": [{"type": "function"}]}))


def test_an_answer_that_its_messages_hold_under_its_id_is_read_once() -> None:
    """Inspect's logs hold the answer as it came beside messages in which a tool's submission took its place."""
    answer = {"id": "m3", "role": "assistant", "content": "done\n\n3", "tool_calls": []}
    call = {"id": "c", "function": "submit", "arguments": {"answer": "3"}, "type": "function"}
    sample = {"messages": [TALK[0], answer], "output": {"choices": [{"message": {**answer, "tool_calls": [call]}}]}}
    assert one({"samples": [sample]}).messages == [TALK[0], answer]


def event(number: int, key: str, **fields: Any) -> dict[str, Any]:
    kind = "content_block_start" if key == "content_block" else "content_block_delta"
    return {"type": kind, "index": number, key: fields}


def test_an_answer_that_bedrock_logged_as_the_events_of_its_stream_is_put_together() -> None:
    """In its place stood an empty message; and of batches of Bedrock's, answers were left out."""
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        event(0, "content_block", type="thinking", thinking="", signature=""),
        *(event(0, "delta", type="thinking_delta", thinking=text) for text in ("so", " be it")),
        event(0, "delta", type="signature_delta", signature="s"),
        {"type": "content_block_stop", "index": 0},
        *(event(1, "content_block", type="text", text=""), event(1, "delta", type="text_delta", text="I look.")),
        event(2, "content_block", type="tool_use", id="c", name="f", input={}),
        *(event(2, "delta", type="input_json_delta", partial_json=text) for text in ("", '{"path": ', '"a"}')),
        event(3, "content_block", type="tool_use", id="d", name="g", input={}),
        event(4, "content_block", type="tool_use", id="e", name="g", input={}),
        event(4, "delta", type="input_json_delta", partial_json='{"cut'),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    request = {"anthropic_version": "bedrock-2023-05-31", "system": "rules", "messages": TALK[:1]}
    found = one({"input": {"inputBodyJson": request}, "output": {"outputBodyJson": events}})
    answer = [
        {"type": "thinking", "thinking": "so be it", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"path": "a"}},
        {"type": "tool_use", "id": "d", "name": "g", "input": {}},
        {"type": "tool_use", "id": "e", "name": "g", "input": {"": '{"cut'}},
    ]
    assert found.format == "anthropic"
    assert found.messages == [RULES, TALK[0], {"role": "assistant", "content": answer}]
    assert one({"input": request, "output": events[:1]}).messages == [RULES, TALK[0]]
    answered = {"type": "message", "model": "m", "role": "assistant", "content": answer, "usage": {}}
    assert one({"recordId": "r", "modelInput": request, "modelOutput": answered}).messages == found.messages


def _streamed(*events: Any) -> str:
    return "".join(f"event: x\ndata: {json.dumps(one)}\n\n" for one in events) + 'data: {"cut'


def test_an_answer_that_was_logged_as_the_text_of_its_stream_is_put_together() -> None:
    """What claude-trace and proxies log of a stream: its answer was left out, or its events stood as words."""
    asked = {"model": "m", "max_tokens": 9, "system": "rules", "messages": TALK[:1]}
    events = (
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        event(0, "content_block", type="text", text=""),
        *(event(0, "delta", type="text_delta", text=text) for text in ("do", "ne")),
        {"type": "message_stop"},
    )
    answer = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    traced = {"request": {"body": asked}, "response": {"status_code": 200, "body_raw": _streamed(*events)}}
    assert one(traced).messages == [RULES, TALK[0], answer]
    assert one({"request_body": asked, "response_body": _streamed(*events)}).messages == [RULES, TALK[0], answer]

    def chunk(**delta: Any) -> dict[str, Any]:
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}

    named = [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]
    pieces = [[{"index": 0, "function": {"arguments": text}}] for text in ('{"a"', ": 1}")]
    chunks = [chunk(role="assistant", content="I "), chunk(content="look."), chunk(tool_calls=named)]
    chunks += [chunk(tool_calls=piece) for piece in pieces] + [{"object": "chat.completion.chunk", "choices": []}]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    answer = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    for response in (_streamed(*chunks) + "\ndata: [DONE]", chunks):
        assert one({"messages": TALK[:1], "response": response}).messages == [TALK[0], answer]
    items = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}]
    last = {"type": "response.completed", "response": {"output": items}}
    found = one({"model": "m", "input": "go", "response": _streamed({"type": "response.created"}, last)})
    assert found.messages == [TALK[0], *items]


@pytest.mark.parametrize("place", [{}, {"index": 0}])
def test_calls_of_a_stream_that_are_not_counted_are_told_apart_by_their_ids(place: dict[str, int]) -> None:
    """Two calls became one with both names and inputs, and the second result had no call."""

    def piece(id: str, text: str) -> dict[str, Any]:
        call = {**place, "id": id, "type": "function", "function": {"name": "f", "arguments": text}}
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    chunks = [piece("c", '{"a"'), piece("c", ": 1}"), piece("d", '{"a": 2}')]
    found = one({"messages": TALK[:1], "response": chunks}).messages[-1]["tool_calls"]
    assert [(call["id"], call["function"]) for call in found] == [
        (id, {"name": "f", "arguments": text}) for id, text in (("c", '{"a": 1}'), ("d", '{"a": 2}'))
    ]


@pytest.mark.parametrize("name", ["f", None])
def test_pieces_of_one_call_that_each_have_an_id_stay_one_call(name: str | None) -> None:
    """As vLLM's streams had them, which count their calls. Each piece became a call of its own."""

    def piece(number: int, name: str | None, text: str) -> dict[str, Any]:
        call = {"index": 0, "id": f"id{number}", "type": "function", "function": {"name": name, "arguments": text}}
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    texts = ['{"a":', ' {"b": 1}', ", ", '"c": 2', "}"]
    chunks = [piece(number, name if number else "f", text) for number, text in enumerate(texts)]
    found = one({"messages": TALK[:1], "response": chunks}).messages[-1]["tool_calls"]
    assert [(call["id"], call["function"]) for call in found] == [("id0", {"name": "f", "arguments": "".join(texts)})]


@pytest.mark.parametrize("text", ["data: three rows\ndata: [1, 2]", "event: a deploy at nine", '{"rows": 3}', "[1, 2]"])
def test_an_answer_that_is_a_text_of_another_kind_is_that_text(text: str) -> None:
    """It was read as the events of a stream, or as a response, and was in no message."""
    answer = {"role": "assistant", "content": text}
    assert one({"prompt": TALK[:1], "sampled": [text]}).messages == [TALK[0], answer]
    assert one({"messages": TALK[:1], "response": text}).messages == [TALK[0], answer]


def test_an_answer_in_blocks_keeps_the_calls_beside_them() -> None:
    """They were left out, and what the agent did last was in no conversation."""
    answer = {**CALLING, "content": [{"type": "text", "text": "I look."}]}
    assert one({"messages": TALK[:1], "response": {"choices": [{"message": answer}]}}).messages[1] == answer


def test_an_answer_that_is_several_messages_keeps_all_that_they_hold() -> None:
    """Of those in blocks, results lost their calls, and the file was refused; answers lost their reasoning."""
    blocks = [{"type": "text", "text": "I look."}]
    result = {"role": "tool", "tool_call_id": CALLING["tool_calls"][0]["id"], "content": blocks}
    last = {"role": "assistant", "content": blocks, "reasoning_content": "so"}
    answer = [{**CALLING, "content": blocks}, result, last]
    assert one({"input": TALK[:1], "output": answer}).messages == [*TALK[:1], *answer]


@pytest.mark.parametrize("response", [None, {}, {"choices": []}, {"choices": ["x"]}, {"choices": [{"message": None}]}])
def test_a_request_without_an_answer_is_its_messages(response: Any) -> None:
    assert one({"messages": TALK, "response": response}).messages == TALK


def test_an_answer_that_is_nothing_but_text_is_written_as_the_messages_are() -> None:
    contents = [{"role": "user", "parts": [{"text": "go"}]}]
    assert one({"contents": contents, "response": "done"}).messages[1] == {"role": "model", "parts": [{"text": "done"}]}
    found = one({"messages": [{"type": "human", "content": "go"}], "output": "done"})
    assert (found.format, found.messages[1]) == ("langchain", {"type": "ai", "content": "done"})


def test_entries_that_only_the_recorder_added_are_left_out() -> None:
    own = {"role": "tool", "id": "c", "content": "x", "requestor": "user"}
    act = {"role": "user", "content": None, "tool_calls": [{"id": "c", "name": "f", "arguments": {}}]}
    end = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}
    assert one([*TALK, act, own, {**act, "content": "said"}, end]).messages == [*TALK, {**act, "content": "said"}]


def test_entries_that_stand_for_several_messages_are_these() -> None:
    """What mini-swe-agent keeps of the Responses API was refused, and so were AG2's results of calls."""
    items = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    result = {"type": "function_call_output", "call_id": "c", "output": "x"}
    whole = {"id": "resp", "object": "response", "output": items, "extra": {"cost": 1}}
    found = one({"messages": [RULES, TALK[0], whole, result], "info": {}})
    assert (found.format, found.messages) == ("openai-responses", [RULES, TALK[0], *items, result])
    results = [{"role": "tool", "tool_call_id": id, "content": id} for id in ("c", "d")]
    calling = {**CALLING, "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ("c", "d")]}
    joined = {"role": "tool", "name": "executor", "content": "c\n\nd", "tool_responses": results}
    assert one([TALK[0], calling, joined, TALK[1]]).messages == [TALK[0], calling, *results, TALK[1]]
    for odd in ([], None, [3], "x"):
        assert one([TALK[0], {**TALK[1], "tool_responses": odd}]).messages[1]["tool_responses"] == odd


@pytest.mark.parametrize(("own", "of"), [("condenseId", "condenseParent"), ("truncationId", "truncationParent")])
def test_what_roo_codes_own_compaction_put_in_the_place_of_messages_is_left_out_where_they_are(
    own: str, of: str
) -> None:
    """Its summary stood among the words of the user, beside all that it is of."""
    summary = {"role": "user", "content": "It is done.", "isSummary": True, own: "s"}
    told = [{**message, of: "s"} for message in TALK]
    newest = {"role": "user", "content": "And now?"}
    assert one([*told, summary, newest]).messages == [*told, newest]
    assert one([{**summary, of: 3}, newest]).messages == [{**summary, of: 3}, newest]


def test_rows_of_kimi_cli_about_its_context_are_left_out_and_its_prompt_is_the_system_prompt() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    talk = [
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": [{"type": "think", "think": "hm", "encrypted": None}], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "main.py"}]},
    ]
    beside = [{"role": "_checkpoint", "id": 0}, {"role": "_usage", "token_count": 12}]
    found = one(rows(beside[0], {"role": "_system_prompt", "content": "Be brief."}, *talk, beside[1]))
    assert found.format == "openai-chat"
    assert found.messages == [{"role": "system", "content": "Be brief."}, *talk]
    assert one(rows(beside[0], talk[0], beside[1])).messages == talk[:1]


def test_an_empty_list_is_an_empty_conversation() -> None:
    assert one([]).messages == []
    assert one({"messages": []}).messages == []


def test_a_named_format_is_taken_instead_of_a_detected_one() -> None:
    assert one(TALK, format="anthropic").format == "anthropic"


def test_dumps_in_every_shape_are_found() -> None:
    shapes = [
        [{"type": "human", "content": "go"}],
        [{"type": "human", "data": {"content": "go"}}],
        [{"lc": 1, "type": "constructor", "id": ["a", "HumanMessage"], "kwargs": {"content": "go"}}],
    ]
    for wire in shapes:
        found = one({"values": {"messages": wire}})
        assert (found.format, found.messages) == ("langchain", wire)
    items = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]
    assert one(items).format == "openai-responses"


def test_lists_that_only_look_like_messages_are_no_conversation() -> None:
    """Tool definitions and the like have types too."""
    tools = [{"type": "tool", "name": "f"}, {"type": "function", "name": "g"}]
    found = one({"tools": tools, "kwargs": {"log": [*TALK]}})
    assert found.messages == TALK


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"id": "1", "role": "assistant", "parts": [{"type": "reasoning", "text": "hm"}]}]},
        {"messages": [{"versions": [{"role": "user", "content": "go"}]}, {"versions": [{"steps": []}]}]},
        {"messages": [{"info": {"role": "user"}, "parts": [{"type": "compaction", "auto": True}]}]},
        {"messages": [{"sender": "bot", "content": [{"type": "tool_call", "id": "c", "tool_call": {"name": "f"}}]}]},
        [{"type": "tool_call", "id": "1", "name": "ls", "args": {}}, {"type": "tool_result", "output": "a"}],
        [{"type": "user_call", "time": 1}],
        [{"type": "human", "data": {"text": "go"}}, {"type": "ai", "data": {"answer": "done"}}],
    ],
)
def test_pieces_of_messages_and_events_of_logs_are_no_messages(value: Any) -> None:
    """They were read as items that no one had sent, or as messages without a word."""
    with pytest.raises(InputError, match=r"no list of messages|no message|it looks like"):
        several(value)


def test_requests_in_a_log_of_events_are_its_conversations() -> None:
    found = several(rows(*({"type": "llm_call", "id": "1", "messages": TALK[:count]} for count in (1, 2))))
    assert [conversation.messages for conversation in found] == [TALK[:1], TALK]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ([{"error": "timeout"}], ("line 3: left out, as it holds no messages",)),
        ([7, {"id": "x"}, {"messages": []}, None], ("lines 3-4, 6: left out, as they hold no messages",)),
        ([{"messages": []}], ()),
        (
            [{"id": "x"}, {"messages": TALK}] * 9,
            ("lines 3, 5, 7, 9, 11, 13 and 3 more places: left out, as they hold no messages",),
        ),
    ],
)
def test_rows_without_messages_beside_others_are_told_with_their_places(rest: list[Any], said: tuple[str, ...]) -> None:
    """They were skipped without a word, so that the third line was the second conversation."""
    for conversation in several(rows({"messages": TALK[:1]}, {"request": {"messages": TALK}}, *rest)):
        assert conversation.left_out == said
    assert one(rows(*TALK, {"role": "user", "content": "on"})).left_out == ()


GEMINI_TALK = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "hello"}]}]
GEMINI_RULES = {"role": "system", "parts": [{"text": "rules"}]}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        (GEMINI_TALK, GEMINI_TALK),
        ({"contents": GEMINI_TALK}, GEMINI_TALK),
        ({"contents": GEMINI_TALK, "systemInstruction": {"parts": [{"text": "rules"}]}}, [GEMINI_RULES, *GEMINI_TALK]),
        ({"contents": GEMINI_TALK, "config": {"system_instruction": "rules"}}, [GEMINI_RULES, *GEMINI_TALK]),
        (
            {"request": {"contents": GEMINI_TALK[:1]}, "response": {"candidates": [{"content": GEMINI_TALK[1]}]}},
            GEMINI_TALK,
        ),
    ],
)
def test_gemini_conversations_and_recorded_requests_are_read(value: Any, messages: list[Any]) -> None:
    found = one(value)
    assert (found.format, found.messages) == ("gemini", messages)


def _item(number: int, role: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    said = [{"type": kind, "text": f"words {number}"}]
    return {"id": f"msg_{number}", "type": "message", "role": role, "content": said, **fields}


ITEMS = [_item(1, "user"), _item(2, "assistant")]
CALLED = [
    _item(1, "user"),
    {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"id": "fco_1", "type": "function_call_output", "call_id": "c1", "output": "sunny"},
    _item(2, "user"),
]
"""Both ends are the user's."""
OF_THREAD = [
    {
        "id": f"msg_{number}",
        "object": "thread.message",
        "created_at": 1_700_000_000 + number,
        "role": "user",
        "content": [{"type": "text", "text": {"value": f"words {number}", "annotations": []}}],
    }
    for number in range(3)
]


@pytest.mark.parametrize("said", [ITEMS, CALLED, OF_THREAD])
@pytest.mark.parametrize("is_newest_first", [True, False])
def test_what_openai_lists_is_read_oldest_first(said: list[Any], is_newest_first: bool) -> None:
    """Items of a conversation and messages of a thread come newest first unless another order was asked for."""
    listed = said[::-1] if is_newest_first else said
    page = {"object": "list", "data": listed, "first_id": "a", "last_id": "b", "has_more": False}
    assert (one(page).messages, one(page).left_out) == (said, ())
    (missing,) = one({**page, "has_more": True}).left_out
    assert "missing" in missing
    assert [found.messages for found in several([page, page])] == [said, said]
    if said is OF_THREAD:
        assert one(listed).messages == said


def test_a_list_that_may_be_in_either_order_is_taken_to_be_in_the_one_that_openai_has_by_itself() -> None:
    asked = [_item(1, "user"), _item(2, "assistant"), _item(3, "user")]
    assert one({"object": "list", "data": asked[::-1]}).messages == asked
    stored = [{"id": f"c-{n}", "role": role, "content": "x"} for n, role in enumerate(("user", "assistant", "user"))]
    assert one({"object": "list", "data": stored}).messages == stored


@pytest.mark.parametrize("role", ["developer", "system"])
def test_what_an_application_says_first_tells_the_order_of_a_page(role: str) -> None:
    """Listed oldest first, it was turned round: the rules stood behind the words of the user."""
    said = [_item(0, role), _item(1, "user"), _item(2, "assistant"), _item(3, "user")]
    for listed in (said, said[::-1]):
        assert one({"object": "list", "data": listed}).messages == said


def test_a_bare_list_is_turned_round_where_all_of_it_says_so() -> None:
    answered = [*CALLED[:-1], _item(2, "assistant")]
    assert one(answered[::-1]).messages == answered
    for unclear in (ITEMS[::-1], CALLED[::-1], answered):
        assert one(unclear).messages == unclear
