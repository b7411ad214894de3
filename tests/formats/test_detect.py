"""Finding the format of a list, and the errors of a list that has none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from contextfold import formats
from contextfold.errors import FormatError, InputError
from contextfold.formats import FORMATS

PLAIN = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, "openai-chat"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]},
            "openai-chat",
        ),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "openai-responses"),
        ({"role": "user", "content": [{"type": "input_text", "text": "x"}]}, "openai-responses"),
        ({"type": "message", "role": "user", "content": "x"}, "openai-responses"),
        ({"type": "message", "role": "user", "content": []}, "openai-responses"),
        ({"type": "message", "role": "assistant", "content": [], "model": "claude-x"}, "openai-chat"),
        ({"type": "compaction", "encrypted_content": "x"}, "openai-responses"),
        ({"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}, "openai-responses"),
        (
            {"type": "mcp_approval_request", "id": "m", "server_label": "s", "name": "f", "arguments": "{}"},
            "openai-responses",
        ),
        ({"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}, "openai-responses"),
        ({"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "x"}, "openai-responses"),
        (
            {"type": "program_output", "id": "p", "call_id": "c", "result": "1", "status": "completed"},
            "openai-responses",
        ),
        ({"type": "tool_search_output", "tools": []}, "openai-responses"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "openai-responses"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}, "anthropic"),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a.b"}}]},
            "anthropic",
        ),
        ({"type": "message", "role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}, "anthropic"),
        ({"type": "human", "content": "x"}, "langchain"),
        ({"type": "ai", "data": {"content": "x"}}, "langchain"),
    ],
)
def test_the_first_entry_with_a_mark_names_the_format(entry: dict[str, Any], name: str) -> None:
    assert formats.detect([entry]).name == name
    assert formats.detect([PLAIN, entry]).name == name
    if "role" in entry:
        assert formats.detect([PLAIN, entry, PLAIN]).name == name


def test_roles_and_text_alone_are_chat_and_so_is_nothing() -> None:
    assert formats.detect([PLAIN, {"role": "assistant", "content": "hi"}]).name == "openai-chat"
    assert formats.detect([]).name == "openai-chat"


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ([PLAIN, 3], "message 1 is a number"),
        ([PLAIN, None], "message 1 is null"),
        ([{"content": "x"}], "message 0 has no role"),
        ([PLAIN, PLAIN, {"role": "boss", "content": "x"}], "message 2 has the role 'boss'"),
    ],
)
def test_a_list_of_no_format_is_refused_with_its_first_odd_entry_and_the_way_out(wire: list[Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        formats.detect(wire)
    assert words in str(error.value)
    assert "openai-chat, openai-responses, anthropic, langchain" in str(error.value)


def test_an_unknown_format_name_is_refused_with_the_names_there_are() -> None:
    assert formats.get("anthropic") is formats.FORMATS["anthropic"]
    with pytest.raises(InputError, match=r"'claude'.*openai-chat, openai-responses, anthropic, langchain"):
        formats.get("claude")


def test_dumps_are_read_and_written_without_importing_langchain() -> None:
    """The extra is needed only by callers that have message objects."""
    code = """
import sys
from contextfold import formats
known = formats.get("langchain")
wire = [{"type": "human", "content": "x"}, {"type": "ai", "data": {"content": "y", "tool_calls": []}}]
assert known.encode(formats.decode(wire, known)) == wire
known.encode(formats.decode([{"role": "user", "content": "x"}], formats.get("openai-chat")))
assert not [name for name in sys.modules if name.startswith("langchain")], "imported"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("key", ["parts", "text", "message"])
@pytest.mark.parametrize(
    "name", ["openai-chat", "openai-responses", "anthropic", "bedrock-converse", "gemini", "langchain"]
)
def test_words_under_a_key_that_is_not_read_are_refused_and_not_left_out_as_empty(
    name: str, key: str, role: str
) -> None:
    """Such as the AI SDK's messages of a page, which have ``parts`` of a type."""
    where, key = ("parts", "content" if key == "parts" else key) if name == "gemini" else ("content", key)
    value = [{"type": "text", "text": "hello"}] if key in ("parts", "content") else "hello"
    role = "model" if (name, role) == ("gemini", "assistant") else role
    speaker = {"type": "human" if role == "user" else "ai"} if name == "langchain" else {"role": role}
    with pytest.raises(FormatError, match=f"no '{where}', and '{key}' is not read"):
        FORMATS[name].decode({**speaker, key: value}, 0)


@pytest.mark.parametrize("kind", ["toolRequest", "toolResponse", "toolCall", "toolResult", "tool-call", "tool-result"])
@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
def test_calls_in_a_frameworks_own_blocks_are_refused_and_not_taken_for_words(name: str, kind: str) -> None:
    """As words a call and its result are parted from each other, as goose's were."""
    with pytest.raises(FormatError, match=f"a {kind} block is none of this format") as error:
        FORMATS[name].decode({"role": "assistant", "content": [{"type": kind, "id": "c"}]}, 3)
    assert error.value.index == 3
