"""The summary message of LangChain's ``SummarizationMiddleware``, written and read back.

What belongs here: its text, its mark, and what stands in it. What does not: making summaries.

    Here is a summary of the conversation to date:

    PROSE

    <evidence>
    Lines quoted word for word from those earlier messages:
    ...
    </evidence>

Beside the text, in the message's ``response_metadata``, which no provider is sent, stands the id of the newest
assistant message at the time: its reported usage is about messages that are gone, not about the present ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from contextfold import quoting
from contextfold.integrations.langchain.hidden import SOURCE
from contextfold.summary.message import EVIDENCE_CLOSE, EVIDENCE_OPEN, parse, summary_text

M = TypeVar("M", bound=BaseMessage)

PREFIX = "Here is a summary of the conversation to date:\n\n"


def is_summary(message: Any) -> bool:
    """Whether this is the message of an earlier summary, by us, by LangChain, or by a subclass that words its own."""
    is_input = isinstance(message, HumanMessage | SystemMessage)
    return is_input and message.additional_kwargs.get("lc_source") == SOURCE["lc_source"]


def summary_body(prose: str, lines: str, *, language: str) -> str:
    """What a summary says: prose, and lines of evidence below it."""
    text = quoting.without_marks(prose.strip())
    if not lines:
        return text
    framed = summary_text("", lines, language=language)
    return f"{text}\n\n{framed[framed.index(EVIDENCE_OPEN) : framed.index(EVIDENCE_CLOSE) + len(EVIDENCE_CLOSE)]}"


def without_prefix(said: str) -> str:
    """What a summarizer said, without the first line of the earlier summary that it read: repeated at each pass, it
    would make up a summary at last.
    """
    said = said.strip()
    while (shorter := said.removeprefix(PREFIX.strip()).strip()) != said:
        said = shorter
    return said


def summary_message(prose: str, lines: str, *, language: str, usage_until: str | None) -> HumanMessage:
    """The message that takes the place of what was summarized."""
    message = HumanMessage(PREFIX + summary_body(prose, lines, language=language))
    return marked(message, usage_until)


def marked(message: M, usage_until: str | None) -> M:
    """The message with the marks of a summary message."""
    noted = {"contextfold": {"usage_until": usage_until}} if usage_until else {}
    return message.model_copy(
        update={
            "additional_kwargs": {**message.additional_kwargs, **SOURCE},
            "response_metadata": {**message.response_metadata, **noted},
        }
    )


def usage_until(messages: Sequence[AnyMessage]) -> str | None:
    """The assistant message whose usage is out of date, by the newest summary message that names one."""
    noted = (
        message.response_metadata.get("contextfold") or {} for message in reversed(messages) if is_summary(message)
    )
    return next((until for one in noted if (until := one.get("usage_until"))), None)


def as_history(message: AnyMessage) -> AnyMessage:
    """The message as the engine reads it: one of an earlier summary in the engine's own frame, which it knows."""
    if not is_summary(message):
        return message
    prose, quoted = _parts(str(message.text))
    return marked(HumanMessage(summary_text(prose, quoted), id=message.id), None)


def evidence_of(message: AnyMessage) -> str:
    """The lines that a message of an earlier summary quotes; empty for any other message."""
    return _parts(str(message.text))[1] if is_summary(message) else ""


def without_evidence(message: AnyMessage) -> AnyMessage:
    """The message of an earlier summary with its prose alone; the same one where it quotes nothing."""
    prose, quoted = _parts(str(message.text))
    return message.model_copy(update={"content": PREFIX + prose}) if quoted else message


def newest_assistant(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """The newest assistant message."""
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def _parts(text: str) -> tuple[str, str]:
    """(prose, evidence) of a summary's text, in this layout or in the engine's own."""
    if (own := parse(text)) is not None:
        return own
    text = text.removeprefix(PREFIX)
    prose, found, quoted = text.rstrip().partition(f"\n\n{EVIDENCE_OPEN}\n")
    if not found or not quoted.endswith(f"\n{EVIDENCE_CLOSE}"):
        return text, ""
    return prose, quoted.partition("\n")[2].removesuffix(EVIDENCE_CLOSE).removesuffix("\n")
