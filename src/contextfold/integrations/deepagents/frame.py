"""The text of the summary message, as deepagents words it, and reading it back.

What belongs here: the words around a summary. What does not: the summary itself (``langchain.folding``), and when there
is a path to name (``history``).

    You are in the middle of a conversation that has been summarized.        only with a path; else one line:
    The full conversation history has been saved to PATH ...                 Here is a summary of the conversation ...
    <summary>
    PROSE, and evidence below it
    </summary>

    <user_message> ... </user_message>      ours: the newest user message, word for word, where it stands before the
                                            summarized part and so could not stay as a message of its own

The last part is in the message because deepagents' event knows one cutoff and nothing beside it: code that reads the
event, deepagents itself or a forked sub-agent, has the user's words.
"""

from __future__ import annotations

import re
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from contextfold.integrations.langchain import layout

_WITH_PATH = (
    "You are in the middle of a conversation that has been summarized.\n\n"
    "The full conversation history has been saved to {path} should you need to refer back to it for details.\n\n"
    "A condensed summary follows:\n\n<summary>\n"
)
_CLOSE = "\n</summary>"
_QUOTE_OPEN = (
    "\n\nThe newest message of the user is older than what was kept. It says, word for word:\n\n<user_message>\n"
)
_QUOTE_CLOSE = "\n</user_message>"
_SUMMARY = re.compile(r"\A(?:(?!<summary>\n).)*<summary>\n(?P<said>.*)\n</summary>", re.DOTALL)

NOTES = "contextfold"
"""Our key in the message's ``response_metadata``, which no provider is sent."""


def framed(summary: HumanMessage, path: str | None, quoted: AnyMessage | None) -> HumanMessage:
    """The summary message of an event, from one in LangChain's layout."""
    said = str(summary.text).removeprefix(layout.PREFIX)
    opening = layout.PREFIX if path is None else _WITH_PATH.format(path=path)
    text = opening + said + ("" if path is None else _CLOSE)
    notes = {**(summary.response_metadata.get(NOTES) or {}), "span": [len(opening), len(opening) + len(said)]}
    return summary.model_copy(
        update={
            "content": _with_quote(text, quoted),
            "response_metadata": {**summary.response_metadata, NOTES: notes},
        }
    )


def unframed(message: HumanMessage, *, with_quote: bool = False) -> HumanMessage:
    """The message in LangChain's layout again, no matter who made it.

    ``with_quote``: the user's words that it quotes stay in it, for a message whose history is out of reach.
    """
    text = str(message.text)
    span = (message.response_metadata.get(NOTES) or {}).get("span")
    if span is not None:
        said = text[span[0] : span[1]]
    else:
        found = _SUMMARY.match(text)
        said = found["said"] if found else text.removeprefix(layout.PREFIX)
    if with_quote and span is not None and _QUOTE_OPEN in text[span[1] :]:
        said = text[span[1] :].removeprefix(_CLOSE).lstrip("\n") + "\n\n" + said
    return message.model_copy(update={"content": layout.PREFIX + said})


def _with_quote(text: str, quoted: AnyMessage | None) -> Any:
    if quoted is None:
        return text
    if isinstance(quoted.content, str):
        return text + _QUOTE_OPEN + quoted.content + _QUOTE_CLOSE
    return [{"type": "text", "text": text + _QUOTE_OPEN}, *quoted.content, {"type": "text", "text": _QUOTE_CLOSE}]
