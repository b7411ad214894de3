"""The faces of the engine, each driven the same way: a thread is told something, and a model answers what it is sent.

What belongs here: how each face is opened and told. What does not: what it promises (``test_promises``).

Everything is the real component; only the two chat models are scripted. ``main`` is the agent's model: what it was sent
are the views. ``writer`` is asked for summaries.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import anyio
import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
    messages_from_dict,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from openai import BadRequestError
from pydantic import Field, PrivateAttr

from contextfold import Compactor, ContextOverflow, Policy, formats
from contextfold.integrations.langgraph import CompactionState, Context, SessionContext
from contextfold.testing.dict_store import DictStore

SUMMARY = "SUMMARYTOKEN The user asks about rooms, and gets to know where each is described."
WINDOW = 32_000
TRIGGER = ("tokens", 3_000)
KEEP = ("messages", 6)


class Model(BaseChatModel):
    """``script(number)`` gives the answer to call ``number``, from 0; an exception is raised."""

    script: Callable[[int], Any] = Field(default=lambda number: "ok")
    profile: Any = None
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Model:
        return self

    def answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        with self._lock:
            number = len(self.sent)
            self.sent.append(list(messages))
        said = self.script(number)
        if isinstance(said, Exception):
            raise said
        return AIMessage(said)

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    async def _agenerate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        return self._generate(messages)


@dataclass(frozen=True)
class Setting:
    """What a thread is opened with; every face has its own names for it."""

    main: Model = field(default_factory=Model)
    writer: Model = field(default_factory=lambda: Model(script=lambda number: SUMMARY))
    trigger: Any = TRIGGER
    keep: Any = KEEP
    is_async: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """More settings, by name."""
    newest: int | None = None
    """Turns that a client sends again, where it has the conversation; None for all."""

    def but(self, **changes: Any) -> Setting:
        return replace(self, **changes)

    @property
    def views(self) -> list[list[BaseMessage]]:
        """What the agent's model was sent, without the system prompt."""
        return [[message for message in sent if message.type != "system"] for sent in self.main.sent]

    @property
    def read(self) -> str:
        """All that the summarizer was asked about."""
        return "\n".join(str(message.text) for sent in self.writer.sent for message in sent)

    def kept(self, history: list[Any]) -> list[Any]:
        """What the client sends again of a conversation, in messages of any kind: a turn begins with ``[q...]``."""
        if self.newest is None:
            return history
        starts = [n for n, message in enumerate(history) if re.match(r".{0,90}\[q\d+\]", str(message))]
        return history[starts[-self.newest] :] if len(starts) > self.newest else history

    def compactor(self) -> Compactor:
        policy = Policy(trigger=self.trigger, keep=self.keep, **self.extra)
        return Compactor(window=WINDOW, policy=policy, summarizer=self.writer)


Tell = Callable[[Sequence[BaseMessage]], None]
"""Tell a thread new messages; the model is sent a view and answers. Raises what the face raises."""


def ran(setting: Setting, blocking: Callable[[], Any], suspending: Callable[[], Any]) -> Any:
    """The result in the color of the setting."""
    return anyio.run(suspending) if setting.is_async else blocking()


def compact(setting: Setting) -> Tell:
    compactor, history, kept = setting.compactor(), list[BaseMessage](), [None]

    def tell(new: Sequence[BaseMessage]) -> None:
        told = [*history, *new]
        out = ran(
            setting,
            lambda: compactor.compact(told, kept[0]),
            lambda: compactor.acompact(told, kept[0]),
        )
        answer = setting.main.answer(out.messages)
        kept[0] = out.compaction
        history[:] = setting.kept([*told, answer])

    return tell


def call(setting: Setting) -> Tell:
    compactor, history, kept = setting.compactor(), list[BaseMessage](), [None]

    def tell(new: Sequence[BaseMessage]) -> None:
        told, results = [*history, *new], list[Any]()

        def send(view: list[Any]) -> Any:
            return setting.main.answer(view)

        async def asend(view: list[Any]) -> Any:
            return setting.main.answer(view)

        answer = ran(
            setting,
            lambda: compactor.call(send, told, kept[0], on_result=results.append),
            lambda: compactor.acall(asend, told, kept[0], on_result=results.append),
        )
        kept[0] = results[-1].compaction
        history[:] = setting.kept([*told, answer])

    return tell


def _agent(setting: Setting, agent: Any) -> Tell:
    config: Any = {"configurable": {"thread_id": "t"}}

    def dropped(messages: list[BaseMessage]) -> list[RemoveMessage]:
        return [RemoveMessage(str(one.id)) for one in messages[: len(messages) - len(setting.kept(messages))]]

    def tell(new: Sequence[BaseMessage]) -> None:
        told = {"messages": [*dropped(agent.get_state(config).values.get("messages", [])), *new]}

        async def later() -> Any:
            return await agent.ainvoke(told, config)

        ran(setting, lambda: agent.invoke(told, config), later)

    return tell


def middleware(setting: Setting) -> Tell:
    from langchain.agents import create_agent

    from contextfold.integrations.langchain import CompactionMiddleware

    policy = Policy(trigger=setting.trigger, keep=setting.keep, **setting.extra)
    made = CompactionMiddleware(window=WINDOW, policy=policy, summarizer=setting.writer)
    return _agent(setting, create_agent(setting.main, middleware=[made], checkpointer=InMemorySaver()))


def langchain(setting: Setting) -> Tell:
    from langchain.agents import create_agent

    from contextfold.integrations.langchain import SummarizationMiddleware

    made = SummarizationMiddleware(setting.writer, trigger=setting.trigger, keep=setting.keep, **setting.extra)
    return _agent(setting, create_agent(setting.main, middleware=[made], checkpointer=InMemorySaver()))


def deepagents(setting: Setting) -> Tell:
    from deepagents import create_deep_agent
    from deepagents.backends import StateBackend

    from contextfold.integrations.deepagents import SummarizationMiddleware

    backend = StateBackend()
    trigger = setting.trigger
    if trigger is not None and trigger[0] == "tokens":  # its tools and its system prompt take some 2,400 tokens
        trigger = ("tokens", trigger[1] + 2_400)
    made = SummarizationMiddleware(setting.writer, backend=backend, trigger=trigger, keep=setting.keep, **setting.extra)
    agent = create_deep_agent(setting.main, backend=backend, middleware=[made], checkpointer=InMemorySaver())
    return _agent(setting, agent)


def langgraph(setting: Setting) -> Tell:
    return _graph(setting, Context(setting.compactor()))


def langgraph_on_a_session(setting: Setting) -> Tell:
    compactor, store = setting.compactor(), DictStore()
    return _graph(setting, SessionContext(lambda thread_id: compactor.session(thread_id, store=store)))


def _graph(setting: Setting, context: Context) -> Tell:
    def node(state: Any) -> dict[str, Any]:
        prepared = context.prepare(state)
        return {"messages": [setting.main.answer(prepared.messages)], **prepared.update}

    async def anode(state: Any) -> dict[str, Any]:
        prepared = await context.aprepare(state)
        return {"messages": [setting.main.answer(prepared.messages)], **prepared.update}

    graph = StateGraph(CompactionState)
    graph.add_node("agent", anode if setting.is_async else node)
    graph.add_edge(START, "agent")
    return _agent(setting, graph.compile(checkpointer=InMemorySaver()))


def openai_sdk(setting: Setting) -> Tell:
    """The OpenAI SDK's own method, wrapped; its client talks to ``setting.main`` over a transport in this process."""
    from contextfold.integrations.openai import with_compaction

    return _chat(setting, lambda client: with_compaction(client.chat.completions.create, setting.compactor()), "m")


def _chat(setting: Setting, wrapped: Callable[[Any], Any], model: str) -> Tell:
    from openai import AsyncOpenAI, OpenAI

    def answered(request: httpx.Request) -> httpx.Response:
        messages = convert_to_messages(json.loads(request.content)["messages"])
        try:
            text = str(setting.main.answer(messages).content)
        except ContextOverflow:
            problem = {"message": f"maximum context length is {WINDOW} tokens", "code": "context_length_exceeded"}
            return httpx.Response(400, json={"error": problem})
        except ValueError as error:
            return httpx.Response(400, json={"error": {"message": str(error)}})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return httpx.Response(200, json=body)

    transport: Any = httpx.MockTransport(answered)
    options: dict[str, Any] = {"api_key": "any", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0}
    client: Any
    if setting.is_async:
        client = AsyncOpenAI(**options, http_client=httpx.AsyncClient(transport=transport))
    else:
        client = OpenAI(**options, http_client=httpx.Client(transport=transport))
    create = wrapped(client)
    history: list[Any] = []
    failed: list[tuple[Sequence[BaseMessage], list[Any]]] = []

    def tell(new: Sequence[BaseMessage]) -> None:
        again = next((wire for told, wire in failed if told is new), None)  # who tries again has the same objects
        wire = convert_to_openai_messages(list(new)) if again is None else again
        failed.append((new, wire))
        told = [*history, *wire]

        async def later() -> Any:
            return await create(model=model, messages=told)

        try:
            response = ran(setting, lambda: create(model=model, messages=told), later)
        except BadRequestError as error:
            raise ValueError(str(error)) from error
        answer = {"role": "assistant", "content": response.choices[0].message.content}
        history[:] = setting.kept([*told, answer])

    return tell


def _contents(messages: Sequence[BaseMessage]) -> list[Any]:
    """What a thread is told, as Gemini has it."""
    return formats.get("gemini").encode(formats.decode(messages, formats.get("langchain")))


def _from_contents(contents: Sequence[Any]) -> list[BaseMessage]:
    """What a Gemini model was sent, as the other faces' models see it: neighbors of one role share a content there."""
    apart: list[Any] = []
    for content in contents:
        plain = content if isinstance(content, dict) else content.model_dump(mode="json", exclude_none=True)
        apart += [{**plain, "parts": [part]} for part in plain["parts"]] if plain["role"] == "user" else [plain]
    messages = formats.decode(apart, formats.get("gemini"))
    dumps = [dump for message in messages for dump in formats.get("langchain").encode([message])]
    return messages_from_dict([{"type": dump["type"], "data": dump} for dump in dumps])


def google_genai(setting: Setting) -> Tell:
    """Google's SDK, wrapped; its client talks to ``setting.main`` over a transport in this process."""
    from google import genai
    from google.genai import errors

    from contextfold.integrations.google_genai import with_compaction

    def answered(request: httpx.Request) -> httpx.Response:
        def refused(message: str) -> httpx.Response:
            error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
            return httpx.Response(400, json={"error": error})

        try:
            text = str(setting.main.answer(_from_contents(json.loads(request.content)["contents"])).content)
        except ContextOverflow:
            return refused("The input token count exceeds the maximum number of tokens allowed.")
        except ValueError as error:
            return refused(str(error))
        content = {"role": "model", "parts": [{"text": text}]}
        return httpx.Response(200, json={"candidates": [{"content": content, "finishReason": "STOP"}]})

    transport: Any = httpx.MockTransport(answered)
    options: dict[str, Any] = {
        "base_url": "http://127.0.0.1:9",
        "httpx_client": httpx.Client(transport=transport),
        "httpx_async_client": httpx.AsyncClient(transport=transport),
    }
    client = genai.Client(api_key="any", http_options=options)
    wrapped = with_compaction(client, setting.compactor())
    history: list[Any] = []
    failed: list[tuple[Sequence[BaseMessage], list[Any]]] = []

    def tell(new: Sequence[BaseMessage]) -> None:
        again = next((contents for told, contents in failed if told is new), None)
        contents = _contents(new) if again is None else again
        failed.append((new, contents))
        told = [*history, *contents]

        async def later() -> Any:
            return await wrapped.aio.models.generate_content(model="m", contents=told)

        try:
            response = ran(setting, lambda: wrapped.models.generate_content(model="m", contents=told), later)
        except errors.ClientError as error:
            raise ValueError(str(error)) from error
        history[:] = setting.kept([*told, response.candidates[0].content])

    return tell


def google_adk(setting: Setting) -> Tell:
    """ADK's runner with the plugin, over a model class that asks ``setting.main``."""
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.events import Event
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    from contextfold.integrations.google_adk import CompactionPlugin

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            text = str(setting.main.answer(_from_contents(llm_request.contents)).content)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

    agent = LlmAgent(name="clerk", model=Scripted(model="m"))
    app = App(name="app", root_agent=agent, plugins=[CompactionPlugin(setting.compactor())])
    runner = Runner(app=app, session_service=InMemorySessionService())
    names: dict[str, Any] = {"app_name": "app", "user_id": "u"}
    session_id = anyio.run(lambda: runner.session_service.create_session(**names)).id
    appended: list[Sequence[BaseMessage]] = []

    async def append(contents: Sequence[Any]) -> None:
        session = await runner.session_service.get_session(**names, session_id=session_id)
        for content in contents:
            author = "clerk" if content.role == "model" else "user"
            event = Event(author=author, content=content, invocation_id=Event.new_id())
            await runner.session_service.append_event(session, event)

    def tell(new: Sequence[BaseMessage]) -> None:
        *before, last = [types.Content.model_validate(content) for message in [*new] for content in _told(message)]
        if new not in appended:  # what was told before the model failed is in the session
            anyio.run(append, before)
        appended.append(new)
        options: dict[str, Any] = {"user_id": "u", "session_id": session_id, "new_message": last}

        async def later() -> list[Any]:
            return [event async for event in runner.run_async(**options)]

        for event in ran(setting, lambda: list(runner.run(**options)), later):
            if event.error_message:
                raise ValueError(event.error_message)

    def _told(message: BaseMessage) -> list[Any]:
        """One content for each message, as a runner is told them; a result with the name of its function."""
        if isinstance(message, ToolMessage) and message.name is None:
            message = message.model_copy(update={"name": "look"})
        return _contents([message])

    return tell


def bedrock(setting: Setting) -> Tell:
    """boto3's own method, wrapped; the client's requests are answered by ``setting.main`` before they are sent."""
    import boto3
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config
    from botocore.exceptions import ClientError

    from contextfold.integrations.bedrock import with_compaction

    client = boto3.client(
        "bedrock-runtime",
        endpoint_url="http://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )

    def answered(request: Any, **_: Any) -> Any:
        try:
            said = setting.main.answer(from_converse(json.loads(request.body)["messages"]))
            status, body = 200, converse_body(str(said.content))
        except ContextOverflow:
            status, body = 400, {"__type": "ValidationException", "message": "Input is too long for requested model."}
        except ValueError as error:
            status, body = 400, {"__type": "ValidationException", "message": str(error)}
        return AWSResponse(request.url, status, {}, Raw(json.dumps(body).encode()))

    client.meta.events.register("before-send.bedrock-runtime.Converse", answered)
    converse: Any = with_compaction(client.converse, setting.compactor())
    history: list[Any] = []
    failed: list[tuple[Sequence[BaseMessage], list[Any]]] = []

    def tell(new: Sequence[BaseMessage]) -> None:
        again = next((wire for told, wire in failed if told is new), None)  # who tries again has the same objects
        wire = to_converse(new) if again is None else again
        failed.append((new, wire))
        told = [*history, *wire]

        async def later() -> Any:
            return await anyio.to_thread.run_sync(lambda: converse(modelId="m", messages=told))

        try:
            response = ran(setting, lambda: converse(modelId="m", messages=told), later)
        except ClientError as error:
            raise ValueError(str(error)) from error
        history[:] = setting.kept([*told, response["output"]["message"]])

    return tell


class Raw(io.BytesIO):
    """A body as botocore reads it."""

    def stream(self, **_: Any) -> Any:
        yield self.read()


def converse_body(text: str) -> dict[str, Any]:
    usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    message = {"role": "assistant", "content": [{"text": text}]}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


def to_converse(messages: Sequence[BaseMessage]) -> list[Any]:
    return formats.get("bedrock-converse").encode(formats.decode(messages, formats.get("langchain")))


def from_converse(wire: Sequence[Any]) -> list[BaseMessage]:
    chat = formats.get("openai-chat").encode(formats.decode(wire, formats.get("bedrock-converse")))
    return convert_to_messages(chat)


def strands(setting: Setting) -> Tell:
    """Strands' agent over boto3's streams, against the provider on loopback, which refuses what Bedrock refuses."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import ClientError
    from emulator import Fault, ProviderServer
    from strands import Agent, tool
    from strands.models import BedrockModel

    from contextfold.integrations.strands import CompactionManager

    @tool
    def look(room: int) -> str:
        """Look into a room."""
        return "dry"

    said: dict[int, str | Exception] = {}

    def answered(request: Any) -> str | Exception:
        if request.number not in said:
            try:
                said[request.number] = str(setting.main.answer(from_converse(request.body["messages"])).content)
            except (ContextOverflow, ValueError) as error:
                said[request.number] = error
        return said[request.number]

    manager = CompactionManager(**_policy(setting), summarizer=setting.writer)
    server = ProviderServer(answers=lambda request: str(answered(request))).start()
    server.faults.add(Fault.overflows("bedrock"), when=lambda request: isinstance(answered(request), ContextOverflow))
    server.faults.add(Fault.http_error(400), when=lambda request: isinstance(answered(request), ValueError))
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    session = boto3.Session(region_name="us-east-1", **keys)
    config = Config(retries={"total_max_attempts": 1})
    model = BedrockModel(boto_session=session, boto_client_config=config, endpoint_url=server.bedrock_url, model_id="m")
    agent = Agent(model=model, tools=[look], conversation_manager=manager, callback_handler=None)
    weakref.finalize(agent, _close, server, model.client)
    told: list[Sequence[BaseMessage]] = []

    def tell(new: Sequence[BaseMessage]) -> None:
        more = None if new in told else to_converse(new)  # what was told before the model failed is in the agent
        agent.messages[:] = setting.kept(agent.messages)
        told.append(new)

        async def later() -> Any:
            return await agent.invoke_async(more)

        try:
            ran(setting, lambda: agent(more), later)
        except ClientError as error:
            scripted = list(said.values())[-1]
            if isinstance(scripted, ValueError):
                raise scripted from error
            raise AssertionError(f"the provider refused the view: {error}") from error

    return tell


def _close(server: Any, client: Any) -> None:
    client.close()
    server.close()


def litellm_sdk(setting: Setting) -> Tell:
    """LiteLLM's own functions, wrapped; its provider's client talks to ``setting.main`` as in ``openai_sdk``."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched while it is imported
    import litellm

    from contextfold.integrations.litellm import with_compaction

    method = litellm.acompletion if setting.is_async else litellm.completion
    return _chat(
        setting, lambda client: with_compaction(partial(method, client=client), setting.compactor()), "openai/m"
    )


def session(setting: Setting) -> Tell:
    """A session in a database; ``call`` appends, sends and keeps."""
    folder = tempfile.mkdtemp()
    store, options = f"sqlite:///{folder}/sessions.db", {"background": False}
    opened = setting.compactor().session("t", store, options=options, format="langchain")
    weakref.finalize(opened, shutil.rmtree, folder, True)
    appended: list[Sequence[BaseMessage]] = []

    def kept(answer: Any) -> list[Any]:
        return [answer]

    def tell(new: Sequence[BaseMessage]) -> None:
        more = [] if new in appended else new  # what was appended before the model failed is there
        appended.append(new)

        async def asend(view: list[Any]) -> Any:
            return setting.main.answer(view)

        ran(
            setting,
            lambda: opened.call(setting.main.answer, more, answer=kept),
            lambda: opened.acall(asend, more, answer=kept),
        )

    return tell


def _crossed(messages: Sequence[Any], format: str, to: str) -> list[Any]:
    return formats.get(to).encode(formats.decode(messages, formats.get(format)))


class Told:
    """What a thread was told, in a face's own messages: who tries again has the same objects."""

    def __init__(self, to: str) -> None:
        self._to = to
        self._known: list[tuple[Sequence[BaseMessage], list[Any]]] = []

    def __call__(self, new: Sequence[BaseMessage]) -> list[Any]:
        found = next((theirs for told, theirs in self._known if told is new), None)
        if found is None:
            found = _crossed(new, "langchain", self._to)
            self._known.append((new, found))
        return found


def _answered(setting: Setting, view: Sequence[Any], format: str) -> str:
    """The script's answer to a view of any format."""
    return str(setting.main.answer(convert_to_messages(_crossed(view, format, "openai-chat"))).content)


def _policy(setting: Setting) -> dict[str, Any]:
    return {"window": WINDOW, "policy": Policy(trigger=setting.trigger, keep=setting.keep, **setting.extra)}


def pydantic_ai(setting: Setting) -> Tell:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from contextfold.formats.pydantic_ai import split
    from contextfold.integrations.pydantic_ai import Compaction

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        return ModelResponse([TextPart(_answered(setting, [p for m in messages for p in split(m)], "pydantic-ai"))])

    capability = Compaction(**_policy(setting), summarizer=setting.writer)
    agent = Agent(FunctionModel(answer), capabilities=[capability])
    history, told = list[Any](), Told("pydantic-ai")

    def tell(new: Sequence[BaseMessage]) -> None:
        asked = [*history, *told(new)]

        async def later() -> Any:
            return await agent.run(message_history=asked)

        ended = _run_blocking(setting, lambda: agent.run_sync(message_history=asked), later)
        history[:] = setting.kept(ended.all_messages())

    return tell


def _run_blocking(setting: Setting, blocking: Callable[[], Any], suspending: Callable[[], Any]) -> Any:
    """``ran`` for frameworks whose blocking runners take an event loop of the thread, and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return ran(setting, blocking, suspending)
    finally:
        loop.close()
        asyncio.set_event_loop(None)


def openai_agents(setting: Setting) -> Tell:
    return _openai_agents(setting, lambda made, provider: {"model_provider": made.provider(provider)})


def openai_agents_filter(setting: Setting) -> Tell:
    return _openai_agents(setting, lambda made, provider: {"model_provider": provider, "call_model_input_filter": made})


def _openai_agents(setting: Setting, config: Callable[[Any, Any], dict[str, Any]]) -> Tell:
    from agents import Agent, ModelProvider, ModelResponse, RunConfig, Runner, Usage
    from agents import Model as TheirModel
    from openai.types.responses import ResponseOutputMessage

    from contextfold.integrations.openai_agents import compaction

    class Scripted(TheirModel):
        async def get_response(self, *, input: Any, **options: Any) -> ModelResponse:  # type: ignore[override]
            said = _answered(setting, input, "openai-responses")
            content = [{"type": "output_text", "text": said, "annotations": []}]
            fields = {
                "id": f"msg_{uuid5(NAMESPACE_URL, str(len(setting.main.sent))).hex}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
            return ModelResponse([ResponseOutputMessage.model_validate(fields)], Usage(), None)

        def stream_response(self, *arguments: Any, **options: Any) -> Any:
            raise NotImplementedError

    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> TheirModel:
            return Scripted()

    made = compaction(**_policy(setting), summarizer=setting.writer)
    run_config = RunConfig(**config(made, Provider()), tracing_disabled=True)
    agent, items, told = Agent("any"), list[Any](), Told("openai-responses")

    def tell(new: Sequence[BaseMessage]) -> None:
        asked = [*items, *told(new)]

        async def later() -> Any:
            return await Runner.run(agent, asked, run_config=run_config)

        ended = _run_blocking(setting, lambda: Runner.run_sync(agent, asked, run_config=run_config), later)
        items[:] = setting.kept(ended.to_input_list())

    return tell


def haystack(setting: Setting) -> Tell:
    import warnings

    from haystack import component
    from haystack.components.agents import Agent
    from haystack.dataclasses import ChatMessage
    from haystack.hooks.compaction import CompactionHook

    from contextfold.integrations.haystack import ContextfoldCompactor

    @component
    class Scripted:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], tools: Any = None, **options: Any) -> dict[str, Any]:
            return {"replies": [ChatMessage.from_assistant(_answered(setting, messages, "haystack"))]}

        @component.output_types(replies=list[ChatMessage])
        async def run_async(self, messages: list[ChatMessage], tools: Any = None, **options: Any) -> dict[str, Any]:
            return self.run(messages)

    made = ContextfoldCompactor(window=WINDOW, keep=setting.keep, summarizer=setting.writer, **setting.extra)
    hooks: Any = {}
    if setting.trigger is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shares = {"compact_at": setting.trigger[1] / WINDOW, "compact_to": 0.6 * setting.trigger[1] / WINDOW}
            hooks = {"before_llm": [CompactionHook(compactor=made, context_window=WINDOW, **shares)]}
    agent = Agent(chat_generator=Scripted(), hooks=hooks)
    messages, told = list[Any](), Told("haystack")

    def tell(new: Sequence[BaseMessage]) -> None:
        asked = [*messages, *told(new)]

        async def later() -> Any:
            return await agent.run_async(messages=asked)

        messages[:] = setting.kept(ran(setting, lambda: agent.run(messages=asked), later)["messages"])

    return tell


FACES: dict[str, Callable[[Setting], Tell]] = {
    "compact": compact,
    "call": call,
    "SDK wrapper": openai_sdk,
    "google-genai": google_genai,
    "Google ADK": google_adk,
    "Bedrock": bedrock,
    "Strands": strands,
    "LiteLLM": litellm_sdk,
    "session": session,
    "CompactionMiddleware": middleware,
    "LangChain drop-in": langchain,
    "deepagents drop-in": deepagents,
    "LangGraph": langgraph,
    "LangGraph on a session": langgraph_on_a_session,
    "pydantic-ai": pydantic_ai,
    "OpenAI Agents filter": openai_agents_filter,
    "OpenAI Agents provider": openai_agents,
    "Haystack": haystack,
}
