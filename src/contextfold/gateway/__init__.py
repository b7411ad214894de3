"""The gateway: any agent, in any language, keeps inside its window by one environment variable.

    contextfold run -- COMMAND
    contextfold gateway --upstream openai=http://localhost:8000/v1

It speaks OpenAI Chat, OpenAI Responses, Anthropic Messages and Gemini. Requests that need nothing go on as the bytes
that came; where a conversation nears its window, the engine's view goes out, made of the original bytes of every
message that stays. Needs the extra ``contextfold[gateway]``.

What belongs here: one more face on the engine. What does not: any decision about a message.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from contextfold.errors import PolicyError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from contextfold.gateway.settings import GatewaySettings

__all__ = ["GatewaySettings", "check_installed", "make_app"]

_LIBRARIES = ("aiohttp", "httptools", "orjson", "sqlalchemy", "starlette", "uvicorn")


def check_installed() -> None:
    """Raises ``PolicyError`` that says what to install."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise PolicyError(f"the gateway needs {', '.join(missing)}: pip install 'contextfold[gateway]'")


def make_app(settings: GatewaySettings) -> Starlette:
    """The gateway as an ASGI application, for a server of your own."""
    check_installed()
    from contextfold.gateway.app import make_app as make

    return make(settings)


def __getattr__(name: str) -> Any:
    if name == "GatewaySettings":
        from contextfold.gateway.settings import GatewaySettings

        return GatewaySettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
