"""Work that no stream consumer sees: passes, and the summary calls in them.

What belongs here: hiding what runs inside a graph's node from LangGraph's streams and from ``astream_events``. What
does not: how a model is asked for a summary (``contextfold.summary.models``).

A call is streamed because callback handlers are inherited through a context variable. ``hidden_from_streams`` sets that
variable to the same configuration without the handlers that feed streams; tracers and usage counters stay, and see the
summary call as before. It reaches calls inside a user's own function too, and the user's model object is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langgraph.constants import TAG_NOSTREAM

SOURCE = {"lc_source": "summarization"}
"""The mark of LangChain's own summarization, in the metadata of the call and on the summary message."""


@contextmanager
def hidden_from_streams() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """What runs inside shows in traces, and in no stream. Gives a context in which things are as they were outside."""
    around = var_child_runnable_config.get()
    with _configured(hidden_config(around)):
        yield partial(_configured, around)


def hidden_config(around: RunnableConfig | None) -> RunnableConfig:
    """The configuration of the surrounding run, without the handlers that feed streams."""
    config: RunnableConfig = {**around} if around else {}
    config["callbacks"] = _without_streams(config.get("callbacks"))
    config["tags"] = [*(config.get("tags") or ()), TAG_NOSTREAM]
    config["metadata"] = {**(config.get("metadata") or {}), **SOURCE, **_internal_mark()}
    return config


@contextmanager
def _configured(config: RunnableConfig | None) -> Iterator[None]:
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _without_streams(callbacks: Any) -> Any:
    if isinstance(callbacks, BaseCallbackManager):
        silent = callbacks.copy()
        silent.handlers = _kept(silent.handlers)
        silent.inheritable_handlers = _kept(silent.inheritable_handlers)
        return silent
    return _kept(callbacks or ())


def _kept(handlers: Any) -> list[Any]:
    return [handler for handler in handlers if _StreamingCallbackHandler not in type(handler).__mro__]


def _internal_mark() -> dict[str, Any]:
    """What newer releases of LangChain want on a middleware's own calls."""
    try:
        from langchain.agents.middleware.internal_call_transformer import internal_call_metadata
    except ImportError:
        return {}
    return internal_call_metadata()


def hide(message: BaseMessage) -> None:
    """Keep a message that a node is about to write out of the ``messages`` stream.

    That stream shows every message it has not seen. LangGraph's handler keeps the ids it has seen in ``seen``.
    """
    message.id = message.id or str(uuid4())
    callbacks = (var_child_runnable_config.get() or {}).get("callbacks")
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks or ()
    for handler in handlers:
        if isinstance(seen := getattr(handler, "seen", None), set):
            seen.add(message.id)
