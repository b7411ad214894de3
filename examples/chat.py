"""A chat in the terminal that never runs out of window: ``python examples/chat.py``.

With ``OPENAI_API_KEY`` set it asks OpenAI, otherwise a provider on loopback with a window of 4,000 tokens. An empty
line ends it; ``/where`` shows where every message went. ``Compactor`` and ``with_compaction`` are contextfold's.
"""

from __future__ import annotations

import sys

from provider import client

from contextfold import Compactor
from contextfold.integrations.openai import with_compaction


def main() -> None:
    with client() as (openai, model, window):
        create = with_compaction(openai.chat.completions.create, Compactor(window=window))
        history = [{"role": "system", "content": "You are a helpful assistant."}]
        print("Say something; an empty line ends the chat.")
        for line in iter(lambda: input("> ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n"), ""):
            if line == "/where":
                print(create.result.ledger.counts() if create.result else "nothing was sent yet")
                continue
            history.append({"role": "user", "content": line})
            answer = create(model=model, messages=history).choices[0].message.content
            history.append({"role": "assistant", "content": answer})
            print(answer)
            if create.result is not None and create.result.changed:
                before, after = create.result.tokens_before, create.result.tokens_after
                print(f"  (compacted: {before:,} tokens became {after:,}; your {len(history)} messages are all here)")


if __name__ == "__main__":
    main()
