"""Data exports of ChatGPT and of Claude's apps: what a model had, in its order, with the branch that goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from contextfold.errors import InputError
from transcripts.files import one, rows, several


def node(id: str, parent: str | None, role: str | None = None, said: Any = "", **more: Any) -> dict[str, Any]:
    """A node of ChatGPT's tree; ``said`` is its text, or its whole content."""
    content = said if isinstance(said, dict) else {"content_type": "text", "parts": [said]}
    author = {"role": role, "name": more.pop("name", None)}
    message = None if role is None else {"id": id, "author": author, "content": content, "recipient": "all", **more}
    return {"id": id, "parent": parent, "children": [], "message": message}


def chatgpt(*nodes: dict[str, Any], title: str = "Ports") -> dict[str, Any]:
    return {"title": title, "mapping": {one["id"]: one for one in nodes}, "current_node": nodes[-1]["id"]}


def code(text: str) -> dict[str, Any]:
    return {"content_type": "code", "language": "unknown", "text": text}


def output(text: str) -> dict[str, Any]:
    return {"content_type": "execution_output", "text": text}


TREE = chatgpt(
    node("root", None),
    node("s", "root", "system"),
    node("p", "s", "user", {"content_type": "user_editable_context", "user_profile": "I run shops.", "parts": None}),
    node("f", "p", "tool", "plan.txt: port 8000", name="myfiles_browser"),
    node(
        "u1", "f", "user", {"content_type": "multimodal_text", "parts": ["Which port?", {"asset_pointer": "file://7"}]}
    ),
    node("old", "u1", "assistant", "Port 80."),
    node(
        "t", "u1", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Look first."}]}
    ),
    node("r", "t", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 s"}),
    node("c1", "r", "assistant", code('{"path": "plan.txt"}'), recipient="file_search"),
    node("o1", "c1", "tool", output("port 8000"), name="file_search"),
    node(
        "o2",
        "o1",
        "tool",
        {"content_type": "tether_quote", "title": "plan", "text": "table orders"},
        name="file_search",
    ),
    node("c2", "o2", "assistant", code("print(8000 + 1)"), recipient="python"),
    node("o3", "c2", "tool", output("8001"), name="python"),
    node("a", "o3", "assistant", "Port 8000."),
)


def test_an_export_of_chatgpt_is_what_its_model_had_with_each_result_behind_its_call() -> None:
    found = one([TREE])
    assert (found.format, found.kind) == ("openai-chat", "chatgpt")
    user, own, spoke, question, thought, first, second, ran, answer = found.messages
    assert (user["role"], user["content"]) == ("user", "I run shops.")
    assert own["tool_calls"][0]["function"]["name"] == "myfiles_browser"  # it was read before anything was asked
    assert spoke["content"] == "plan.txt: port 8000"
    assert question["content"].startswith("Which port?\n")
    assert "file://7" in question["content"]
    assert thought["reasoning_content"] == "Look first."
    assert thought["tool_calls"][0]["function"] == {"name": "file_search", "arguments": '{"path": "plan.txt"}'}
    assert first["content"] == "port 8000\nplan\ntable orders"
    assert second["tool_calls"][0]["function"]["name"] == "python"
    assert "print(8000 + 1)" in second["tool_calls"][0]["function"]["arguments"]
    assert (ran["role"], ran["content"]) == ("tool", "8001")
    assert (answer["role"], answer["content"]) == ("assistant", "Port 8000.")
    assert "Port 80." not in str([message.get("content") for message in found.messages[:-1]])
    assert found.left_out[0].endswith("something else: 1")


def claude(*messages: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of Claude's apps, of (sender, text or blocks)."""
    written: list[dict[str, Any]] = [
        {"uuid": str(number), "sender": sender}
        | ({"text": said} if isinstance(said, str) else {"text": "", "content": said})
        for number, (sender, said) in enumerate(messages)
    ]
    return {"uuid": "u", "name": "Ports", "chat_messages": written, **more}


@pytest.mark.parametrize("ids", [True, False], ids=["with ids", "from before there were ids"])
def test_an_export_of_claudes_apps_has_each_result_behind_its_call(ids: bool) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Look first."},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "read", "input": {"path": "a"}} | ({"id": "x"} if ids else {}),
        {"type": "tool_use", "name": "read", "input": {"path": "b"}} | ({"id": "y"} if ids else {}),
        {"type": "tool_result", "name": "read", "content": [{"type": "text", "text": "port 1"}]}
        | ({"tool_use_id": "x"} if ids else {}),
        {"type": "tool_result", "name": "read", "content": [{"type": "knowledge", "title": "port 2"}]}
        | ({"tool_use_id": "y"} if ids else {}),
        {"type": "text", "text": "Two ports."},
    ]
    asked = claude(("human", "Which ports?"), ("assistant", blocks))
    asked["chat_messages"][0] |= {
        "attachments": [{"file_name": "n.txt", "extracted_content": "note"}],
        "files": [{"file_name": "p.png"}],
    }
    found = one([asked])
    assert (found.format, found.kind, found.left_out) == ("openai-chat", "claude-apps", ())
    question, calls, first, second, answer = found.messages
    assert [block["text"] for block in question["content"]] == ["Which ports?", "[file: n.txt]\nnote", "[file: p.png]"]
    assert (calls["content"], calls["reasoning_content"]) == ("I look.", "Look first.")
    assert [call["id"] for call in calls["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert (first["content"], "port 2" in second["content"]) == ("port 1", True)
    assert answer["content"] == "Two ports."


def test_what_was_said_otherwise_again_in_claudes_apps_is_left_out_and_told() -> None:
    talk = claude(("human", "Port?"), ("assistant", "80."), ("human", "The port?"), ("assistant", "8000."))
    for message, before in zip(talk["chat_messages"], ("none", "0", "none", "2"), strict=True):
        message["parent_message_uuid"] = before
    found = one([talk])
    assert [message["content"] for message in found.messages] == ["The port?", "8000."]
    assert found.left_out[0].endswith("something else: 2")


@pytest.mark.parametrize(
    ("talk", "empty"),
    [(TREE, chatgpt(node("root", None))), (claude(("human", "hi"), ("assistant", "hello")), claude())],
    ids=["chatgpt", "claude"],
)
def test_each_talk_of_an_export_is_a_conversation_and_an_empty_one_is_none(talk: Any, empty: Any) -> None:
    assert [found.name for found in several(rows(talk, empty, talk))] == ["talk#0", "talk#1"]
    with pytest.raises(InputError, match="nothing was said"):
        several([empty])


def test_time_to_read_an_export_grows_with_what_a_tool_said_and_not_with_its_square() -> None:
    """Each text of a call in a row was put behind a copy of all before it."""

    def seconds(count: int) -> float:
        nodes = [node("c", None, "assistant", code("run()"), recipient="python")]
        for n in range(count):
            nodes.append(node(f"o{n}", nodes[-1]["id"], "tool", output("x" * 400), name="python"))
        data = rows(chatgpt(*nodes))
        began = time.process_time()
        messages = one(data).messages
        assert len(messages[1]["content"]) == 401 * count - 1
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(2)) for count in (500, 8_000))
    assert many < 40 * few


@pytest.mark.parametrize("newest", [None, "none", 3])
def test_an_export_of_chatgpt_that_names_no_newest_message_is_the_talk_to_its_newest_leaf(newest: Any) -> None:
    """It was left out without a word, or refused as one in which nothing was said."""
    nodes = [
        node("q", None, "user", "Which port?"),
        node("new", "q", "assistant", "Port 8000.", create_time=2.5),
        node("old", "q", "assistant", "Port 80.", create_time=1),
    ]
    found = one(rows({**chatgpt(*nodes), "current_node": newest}))
    assert [message["content"] for message in found.messages] == ["Which port?", "Port 8000."]
    assert found.left_out == ("messages left out, as the person went back and said something else: 1",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"content_type": "citable_code_output", "output_str": "8001"}, "8001"),
        ({"content_type": "of_next_year", "words": "8001", "more": None}, '{"words": "8001"}'),
        ({"content_type": "of_next_year", "words": ""}, ""),
        ({"content_type": "code", "language": "unknown", "text": ""}, ""),
    ],
)
def test_a_content_of_a_kind_that_came_later_is_told_whole(content: Any, told: str) -> None:
    nodes = [node("c", None, "assistant", code("run()"), recipient="python"), node("o", "c", "tool", content)]
    assert one(rows(chatgpt(*nodes))).messages[1]["content"] == told


def test_what_was_spoken_and_plain_texts_of_results_are_read_of_claudes_apps() -> None:
    said = claude(("human", ""), ("assistant", ""))
    said["chat_messages"][0]["content"] = [{"type": "voice_note", "title": "n", "text": "Look."}]
    used = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
    given = {"type": "tool_result", "tool_use_id": "x", "content": ["a", {"type": "text", "text": "b"}, 3]}
    said["chat_messages"][1]["content"] = [used, given]
    assert [message["content"] for message in one(rows(said)).messages] == ["Look.", "", "a\nb\n3"]


def test_what_was_found_on_a_page_is_told_with_its_title_and_its_address() -> None:
    """An agent that is asked where it read something had the words alone."""
    found = {"title": "Ports", "url": "https://example.org/ports", "text": "table ports"}
    page = "Ports\nhttps://example.org/ports\ntable ports"
    result = {"type": "tool_result", "name": "web_search", "content": [{"type": "knowledge", **found}]}
    said = [{"uuid": "1", "sender": "assistant", "content": [{"type": "tool_use", "name": "web_search"}, result]}]
    assert one([{"uuid": "c", "chat_messages": said}]).messages[1]["content"] == page
    asked = node("a", None, "assistant", code("search"), recipient="web")
    quoted = node("b", "a", "tool", {"content_type": "tether_quote", **found}, name="web")
    assert one([chatgpt(asked, quoted)]).messages[1]["content"] == page
