"""Conversations of a user with the agent: what the rest of the project calls."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from agent.models import AgentSession, DialogStyle
from agent.store import AsyncDjangoStore, DjangoStore
from contextfold import Compactor, Policy
from contextfold.store import Session

SYSTEM = {"role": "system", "content": "You are the assistant of this project. Answer briefly."}


@cache
def compactor() -> Compactor:
    """One for the process. Should all else fail, what is oldest leaves rather than the conversation end."""
    given = settings.AGENT
    policy = Policy(on_overflow="drop_oldest")
    return Compactor(window=given["window"], summarizer=given["summarizer"], policy=policy)


def get_optimization_config(user: Any) -> dict[str, Any] | None:
    """A user's own options, asked by each call: what a user changes holds from the next message on."""
    style = DialogStyle.objects.filter(user=user).first()
    if style is None:
        return None
    fields = {field.name: getattr(style, field.name) for field in DialogStyle._meta.get_fields()}
    return {name: value for name, value in fields.items() if name not in ("id", "user") and value is not None}


async def aget_optimization_config(user: Any) -> dict[str, Any] | None:
    """The same for async views, on the thread of Django's own async queries."""
    from asgiref.sync import sync_to_async

    return await sync_to_async(get_optimization_config)(user)


def session_for(user: Any, thread_id: str) -> Session:
    """A user's conversation. Two users' threads of one name have nothing in common."""
    return compactor().session(
        thread_id,
        DjangoStore(user),
        namespace=f"user-{user.pk}",
        user=user,
        get_optimization_config=get_optimization_config,
        format="openai-chat",
    )


def asession_for(user: Any, thread_id: str) -> Session:
    """``session_for`` for async views."""
    return compactor().session(
        thread_id,
        AsyncDjangoStore(user),
        namespace=f"user-{user.pk}",
        user=user,
        get_optimization_config=aget_optimization_config,
        format="openai-chat",
    )


def reply(user: Any, thread_id: str, text: str) -> str:
    """The agent's answer to what a user said.

    What the user said is saved with the title in one transaction. The model is asked outside of any: no row is locked
    while it thinks. ``call`` summarizes where that is due, sends, recovers from a refusal, and appends the answer.
    """
    session = session_for(user, thread_id)
    with transaction.atomic():
        opening = [] if session.state().message_count else [SYSTEM]
        session.append([*opening, {"role": "user", "content": text}])
        AgentSession.objects.filter(key=session.thread.key, title="").update(title=text[:200])
    response = session.call(import_string(settings.AGENT["send"]), answer=lambda response: [response])
    return str(response["content"])


async def areply(user: Any, thread_id: str, text: str) -> str:
    """``reply`` for async views. Django has no async transactions: what the user said is one by itself."""
    session = asession_for(user, thread_id)
    opening = [] if (await session.astate()).message_count else [SYSTEM]
    send = import_string(settings.AGENT["send"])
    said = [*opening, {"role": "user", "content": text}]
    response = await session.acall(send, said, answer=lambda response: [response])
    return str(response["content"])
