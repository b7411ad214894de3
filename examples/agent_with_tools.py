"""An agent with tools whose outputs would fill any window: ``python examples/agent_with_tools.py``.

It reads files until it has found what it looks for. Each output is large, and after a few the window would be full;
``with_compaction`` sends a view that fits. With ``OPENAI_API_KEY`` set a real model drives it, otherwise a provider on
loopback with a window of 4,000 tokens and a scripted mind: it asks for one file after the other.
"""

from __future__ import annotations

import json
import re
from typing import Any

from provider import client

from contextfold import Compactor
from contextfold.integrations.openai import with_compaction

FILES = {f"log/worker_{n}.txt": f"worker {n}: {'all quiet. ' * 150}" for n in range(8)}
FILES["log/worker_5.txt"] += "ERROR E-4417: rate table missing for currency CHF"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": f"Read one of {', '.join(FILES)}.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
TASK = "One of the workers failed. Read the logs and tell me the error code."


def scripted(request: Any) -> Any:
    """The mind of the provider on loopback: the next file, until an error code is in sight."""
    from emulator import Answer, ToolCall

    found = re.search(r"E-\d+", request.messages_text)
    read = sum(path in request.messages_text for path in FILES)
    if found and read >= len(FILES):
        return f"The error is {found[0]}."
    path = next((path for path in FILES if f'"{path}"' not in request.messages_text), list(FILES)[-1])
    return Answer(tool_calls=(ToolCall("read_file", {"path": path}, id=f"call_{request.number}"),))


def main() -> None:
    with client(scripted) as (openai, model, window):
        create = with_compaction(openai.chat.completions.create, Compactor(window=window))
        history: list[Any] = [{"role": "user", "content": TASK}]
        for _ in range(30):
            message = create(model=model, messages=history, tools=TOOLS).choices[0].message
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                print(message.content)
                break
            for call in message.tool_calls:
                path = json.loads(call.function.arguments)["path"]
                print(f"reads {path}")
                output = FILES.get(path, f"there is no file {path}")
                history.append({"role": "tool", "tool_call_id": call.id, "content": output})
        result = create.result
        assert result is not None
        print(f"{len(history)} messages; the last request had {result.tokens_after:,} of {window:,} tokens")
        print(f"where they went: {result.ledger.counts()}")


if __name__ == "__main__":
    main()
