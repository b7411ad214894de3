"""deepagents' ``SummarizationMiddleware``: a private event, the history offloaded to files, recovery from overflow.

The handler plays the provider: it refuses a request over the window with the error that deepagents knows how to
recover from. Truncation of arguments is on, but by design only touches tools called write_file and edit_file.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy, split_system
from benchmarks.replay.strategies.bridge import Bridge, stub_model
from benchmarks.replay.strategies.masking_langchain import model_request

SESSION = "session_00000000000000000000000000000000"
"""In place of a random one, of the same length: it stands in the view, and figures must not differ from run to run."""


class Summarization(Strategy):
    """As an agent of deepagents runs it."""

    packages: tuple[str, ...] = ("deepagents", "langchain", "langchain-core")
    middleware: type[Any] = SummarizationMiddleware

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._bridge = Bridge()
        self._model = stub_model(window)
        self._folder = tempfile.mkdtemp(prefix="replay-deepagents-")
        self._state: dict[str, Any] = {"messages": [], "_summarization_session_id": SESSION}
        self._replaced: dict[str, BaseMessage] = {}  # message id -> message, from offloaded tool results
        self._middleware = self.middleware(
            model=self._model,
            backend=FilesystemBackend(root_dir=self._folder, virtual_mode=True),
            trigger=("tokens", self.trigger),
            keep=("tokens", self.keep),
            trim_tokens_to_summarize=None,
            truncate_args_settings={"trigger": ("tokens", self.trigger), "keep": ("tokens", self.keep)},
            summarizer=lambda messages: self.summarizer(messages),
        )

    def archive(self) -> dict[str, str]:
        folder = Path(self._folder)
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".md", ".txt"))
        return {f"/{path.relative_to(folder)}": path.read_text(encoding="utf-8") for path in files}

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            system, rest = split_system(messages)
            history = [self._replaced.get(message.id or "", message) for message in self._bridge.incoming(rest)]
            instructions = self._bridge.incoming(system)
            self._state["messages"] = history
        sent: list[BaseMessage] = []

        def handler(request: Any) -> ModelResponse:
            with self.outside():
                sent[:] = request.messages
                size = self._bridge.tokens(instructions + sent)
                if size > self.window:
                    raise ContextOverflowError(f"prompt is too long: {size} tokens > {self.window} maximum")
            return ModelResponse(result=[AIMessage("ok")])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            request = model_request(self._model, instructions, history, self._state)
            response = self._middleware.wrap_model_call(request, handler)
        with self.outside():
            self._remember(response)
            return system + self._bridge.outgoing(sent)

    def _remember(self, response: Any) -> None:
        """Take over what the middleware wants to have in the agent's state."""
        if isinstance(response, ExtendedModelResponse) and response.command:
            update: dict[str, Any] = dict(response.command.update or {})
            self._replaced |= {message.id: message for message in update.pop("messages", ())}
            self._state |= update
