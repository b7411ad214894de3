"""``POST threads/ID/messages`` with ``{"text": ...}``: the agent's answer."""

from __future__ import annotations

import json

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from agent.conversations import reply, session_for


@login_required
@require_POST
def messages(request: HttpRequest, thread_id: str) -> JsonResponse:
    """Say something, and get the answer with the state of the conversation."""
    answer = reply(request.user, thread_id, str(json.loads(request.body)["text"]))
    state = session_for(request.user, thread_id).state()
    return JsonResponse(
        {
            "answer": answer,
            "messages": state.message_count,
            "summary_until_index": state.summary_until_index,
            "summary_tokens": state.summary_tokens,
        }
    )
