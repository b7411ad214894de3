"""What tools that a provider runs gave is read with its numbers, wherever it is searched or crosses formats."""

from typing import Any

import pytest

from contextfold import Compactor
from contextfold.recall.history import search

FAR = {"name": "Cafe", "distance_km": 412.5, "near": [17.25, {"open": True}]}
TOLD = ("412.5", "17.25", "true")

GAVE: dict[str, dict[str, Any]] = {
    "gemini": {"role": "model", "parts": [{"toolResponse": {"id": "t", "toolType": "MAPS", "response": FAR}}]},
    "langchain": {
        "type": "ai",
        "content": [{"type": "server_tool_result", "tool_call_id": "t", "status": "success", "output": FAR}],
    },
    "bedrock-converse": {
        "role": "assistant",
        "content": [{"toolResult": {"toolUseId": "t", "type": "result", "content": [{"json": FAR}]}}],
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "code_execution_tool_result", "tool_use_id": "t", "content": {"stdout": "ok", "of": FAR}}],
    },
    "openai-responses": {"type": "file_search_call", "id": "t", "status": "completed", "results": [FAR]},
}


@pytest.mark.parametrize("format", GAVE)
def test_numbers_that_a_tool_of_the_provider_gave_are_found_and_cross_formats(format: str) -> None:
    """Words alone were read of such a result: what it measured was in no summary, search or view of another format."""
    asked = {
        "gemini": {"role": "user", "parts": [{"text": "How far?"}]},
        "langchain": {"type": "human", "content": "How far?"},
    }
    usual = {"role": "user", "content": [{"text": "How far?"}] if format == "bedrock-converse" else "How far?"}
    messages = [asked.get(format, usual), GAVE[format]]
    for number in TOLD:
        assert [hit.index for hit in search(messages, f'"{number}"', format=format)] == [1]
    crossed = Compactor(window=8_000).compact(messages, format=format, to="openai-chat").messages
    assert all(number in str(crossed[-1]["content"]) for number in TOLD)
