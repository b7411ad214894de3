"""A provider on loopback: the APIs of OpenAI (Chat Completions, Responses), Anthropic, Gemini and Bedrock (Converse).

It counts tokens with a real tokenizer, enforces a window per model, refuses what the real ones refuse in the words
that they use, reports usage with cached prefixes, and fails on demand. Not part of the package: it stands
beside the tests, and needs the extra ``test``.

    from emulator import Fault, ProviderServer

    with ProviderServer(windows={"small": 16_000}) as server:
        server.faults.add(Fault.rate_limit(retry_after=1), at=2)
        client = OpenAI(base_url=server.openai_url, api_key="any")
        ...
        assert [request.status for request in server.requests] == [200, 429, 200]

What belongs here: the test bench. What does not: anything that the engine needs; nothing imports this package.
"""

from importlib.util import find_spec

for _library in ("starlette", "tiktoken", "uvicorn"):
    if find_spec(_library) is None:
        raise ImportError(f"emulator needs {_library}, which is not installed: pip install -e '.[test]'")

from emulator.answers import Answer, ToolCall, Usage  # noqa: E402 - after the check
from emulator.faults import Fault, Faults  # noqa: E402
from emulator.requests import Request  # noqa: E402
from emulator.server import ProviderServer  # noqa: E402
from emulator.wording import WORDINGS, Wording  # noqa: E402

__all__ = [
    "WORDINGS",
    "Answer",
    "Fault",
    "Faults",
    "ProviderServer",
    "Request",
    "ToolCall",
    "Usage",
    "Wording",
]
