"""The model that answers."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings


@cache
def client() -> Any:
    """OpenAI's client, or that of any server which speaks its API: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``."""
    from openai import OpenAI

    return OpenAI(max_retries=2)


def send(view: list[Any]) -> dict[str, Any]:
    """The answer to a view, as a message."""
    response = client().chat.completions.create(model=settings.AGENT["model"], messages=view)
    return {"role": "assistant", "content": response.choices[0].message.content or ""}
