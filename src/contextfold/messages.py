"""Messages and their parts: the values that everything else works on.

One wire object (one entry of the list that a caller sends to a provider) becomes exactly one ``Message``,
so an index into the history means the same thing everywhere: in the ledger, in an error, in a record.
Messages are frozen. Each keeps a reference to the wire object that it was decoded from (``source``), and each
part to its own block of it, so that what did not change is handed back untouched.

What belongs here: the values, and questions that can be answered by looking at one message alone.
What does not: wire shapes (``formats``), sizes (``tokens``), what stands or falls together (``groups``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

from contextfold.at_once import encoded, without_halves

Role = Literal["system", "developer", "user", "assistant", "tool"]
MediaKind = Literal["image", "document", "audio", "video"]


def well_formed(text: str) -> str:
    """The text without halves of surrogate pairs, which plain JSON can hold and no file, database or request can.

    Two halves that belong together become their character, one that stands alone becomes U+FFFD.
    """
    if text.isascii():
        return text
    try:
        for _ in encoded(text, errors="strict"):
            pass
    except UnicodeEncodeError:
        return without_halves(text)
    return text


class _WellFormed:
    """Strings of a part are text that can be written anywhere, whatever the wire object holds.

    Here and not in the formats, because a part is made in a hundred places and read in as many: each of them would
    have to think of it. A part whose own words changed on the way is ``edited``, so that what is sent can be read too.
    """

    __slots__ = ()
    _strings: ClassVar[tuple[str, ...]] = ("text",)

    def __post_init__(self) -> None:
        for name in self._strings:
            value = getattr(self, name)
            if isinstance(value, str) and (mended := well_formed(value)) is not value:
                object.__setattr__(self, name, mended)
                if "edited" in self.__dataclass_fields__:  # type: ignore[attr-defined]
                    object.__setattr__(self, "edited", True)


class _NoMetadata(Mapping[str, Any]):
    """Empty, and never anything else. A ``MappingProxyType`` can be neither copied nor sent to another process."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __reduce__(self) -> str:
        return "NO_METADATA"


NO_METADATA: Mapping[str, Any] = _NoMetadata()


@dataclass(frozen=True, slots=True)
class Text(_WellFormed):
    """Words. ``edited`` says that ``text`` differs from what ``source`` holds."""

    text: str
    source: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Media(_WellFormed):
    """An image, a document, audio or video: base64 ``data``, or a ``url`` or file id that points to it.

    ``name``: what the caller calls it, such as a file's name. Mostly nothing else says later which of several it was.
    """

    _strings: ClassVar[tuple[str, ...]] = ("media_type", "data", "url", "name")
    kind: MediaKind
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None
    name: str | None = None
    source: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall(_WellFormed):
    """A call the assistant made. ``arguments`` is JSON text for a function, free text for a custom tool.

    ``local``: the wire type of a call to a tool that the API has built in and the caller runs (OpenAI's shell, patch,
    computer), whose result has a type of its own.
    """

    _strings: ClassVar[tuple[str, ...]] = ("id", "name", "arguments")
    id: str
    name: str
    arguments: str
    custom: bool = False
    local: str | None = field(default=None, compare=False)
    unnamed: bool = field(default=False, compare=False, repr=False)
    """The wire gave it no id, as Gemini's need none: ``id`` only says which function is called."""
    source: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)

    @property
    def is_async(self) -> bool:
        """Whether the model goes on while the caller is at work on it (OpenAI's ``async``): its result comes in any
        later turn, and until then it waits for it, whatever is said.
        """
        return isinstance(self.source, Mapping) and (self.source.get("async") or self.source.get("async_")) is True


def is_signed(block: Mapping[str, Any]) -> bool:
    """Whether a block of thinking has a signature: Anthropic's API, Bedrock, LangChain, Haystack, OpenRouter."""
    kind = block.get("type")
    if kind == "non_standard" and isinstance(handed_on := block.get("value"), Mapping):
        return is_signed(handed_on)
    for whole, inner, *redacted in (
        ("reasoningContent", "reasoningText", "redactedContent"),
        ("reasoning_content", "reasoning_text", "redacted_content", "redacted_thinking"),
    ):
        if isinstance(held := block.get(whole), Mapping):
            said = held.get(inner, held)
            return any(key in held for key in redacted) or (isinstance(said, Mapping) and bool(said.get("signature")))
    if kind == "reasoning" and isinstance(extras := block.get("extras"), Mapping):
        return bool(extras.get("signature"))
    if isinstance(kind, str) and kind.startswith("reasoning."):  # OpenRouter says whose it is
        return "anthropic" in str(block.get("format")) and bool(block.get("signature") or block.get("data"))
    return kind == "redacted_thinking" or (kind == "thinking" and bool(block.get("signature")))


@dataclass(frozen=True, slots=True)
class Reasoning(_WellFormed):
    """Hidden thinking of a model. Handed through byte for byte or removed whole; never summarized.

    ``text`` is what can be read of it, and may be empty when only a signature or ciphertext is there.
    """

    text: str
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def is_bound(self) -> bool:
        """Whether it may be signed together with everything that stood before it, as Anthropic's newer models do: with
        another prefix, such as a summary's, it is refused.
        """
        held = getattr(self.source, "value", self.source)  # a key of the message itself
        blocks = held if isinstance(held, list | tuple) else (held,)
        return bool(getattr(self.source, "is_bound", False)) or any(
            is_signed(block) for block in blocks if isinstance(block, Mapping)
        )


_OUTPUTS = (
    "_result",
    "_output",
    "_list_tools",
    "-return",
    "executionresult",
    "searchresult",
    "toolresult",
    "toolresponse",
)
"""How the types of blocks end that hold what a tool gave: Anthropic, LangChain, pydantic-ai, Gemini, Bedrock. Those of
OpenAI Responses end with ``_call``, since one item holds a call and what it gave.
"""


@dataclass(frozen=True, slots=True)
class Opaque(_WellFormed):
    """A block that we do not interpret. ``label`` is its wire type; ``text`` is what can be read of it."""

    _strings: ClassVar[tuple[str, ...]] = ("label", "text")
    label: str
    text: str = ""
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def is_output(self) -> bool:
        """Whether it holds what a tool gave, though it stands in a message of the assistant's: a page that was fetched,
        the output of code. The provider ran the tool, and no one said what it gave.
        """
        label = self.label.lower()
        return label.endswith(_OUTPUTS) or (label.endswith("_call") and isinstance(self.source, Mapping))

    @property
    def is_compaction(self) -> bool:
        """Whether it is a provider's own compaction, which stands for all before it."""
        return self.label == "compaction"

    @property
    def is_approval(self) -> bool:
        """Whether it answers a provider that asked whether its tool may run: no words, and nothing without the request
        (OpenAI's, which in LangChain stands in a message of the user's).
        """
        return self.label == "mcp_approval_response"

    @property
    def is_mark(self) -> bool:
        """Whether it only marks a place for the provider's cache (Bedrock's ``cachePoint``), and says nothing."""
        return isinstance(self.source, Mapping) and self.source.keys() == {"cachePoint"}


@dataclass(frozen=True, slots=True)
class ToolResult(_WellFormed):
    """What a tool answered to the call with ``call_id``. ``custom``: on the wire, it is marked as a custom tool's.

    ``local``: the wire type of the call that it answers, if that is one to a built-in tool. ``called``: of a result
    that no client made, the wire object of the call, some of whose fields a result has to repeat.
    """

    _strings: ClassVar[tuple[str, ...]] = ("call_id", "name")
    call_id: str
    content: tuple[Text | Media | Opaque, ...]
    name: str | None = None
    is_error: bool = False
    custom: bool = False
    local: str | None = field(default=None, compare=False)
    source: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)
    called: Any = field(default=None, compare=False, repr=False)

    @property
    def is_unnamed(self) -> bool:
        """Whether its id only says which function answers, because the wire gave it none (Gemini's need none)."""
        name = self.name or ""
        return bool(name) and self.call_id.startswith(name) and self.call_id[len(name) :].strip("#0123456789") == ""

    @property
    def text(self) -> str:
        """All readable text of the result."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part: TypeAlias = Text | Media | ToolCall | ToolResult | Reasoning | Opaque


@dataclass(frozen=True, slots=True)
class Message(_WellFormed):
    """One entry of a conversation.

    ``split`` marks an entry of a wire format that spreads one assistant turn over several entries
    (OpenAI Responses: reasoning, calls and text are items of their own): consecutive split assistant
    entries are one turn. ``metadata`` is the caller's own (LangChain's ``additional_kwargs``), for pins.
    ``edited`` says that the parts differ from what ``source`` holds. ``answers`` says that it stands in a user's name
    and tells what came of what the message before it did.
    """

    _strings: ClassVar[tuple[str, ...]] = ("id", "name")
    role: Role
    parts: tuple[Part, ...]
    id: str | None = None
    name: str | None = None
    split: bool = False
    metadata: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA, compare=False)
    source: Any = field(default=None, compare=False, repr=False)
    source_format: str | None = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)
    answers: bool = field(default=False, compare=False, repr=False)

    @property
    def text(self) -> str:
        """What was said in words, without tool calls, results and reasoning."""
        return "\n".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])

    @property
    def is_instruction(self) -> bool:
        """A system or developer message: word for word in every view, though not as often as a client repeats it."""
        return self.role in ("system", "developer")

    @property
    def is_user_turn(self) -> bool:
        """Something a person (or the caller for a person) said: a user message that is more than tool results."""
        return self.role == "user" and any(
            (isinstance(part, Text) and part.text.strip())
            or isinstance(part, Media)
            or (isinstance(part, Opaque) and not part.is_mark and not part.is_approval)
            for part in self.parts
        )

    @property
    def is_empty(self) -> bool:
        """Nothing in it that a provider or a reader could use."""
        return not any(part.text.strip() if isinstance(part, Text) else not is_mark(part) for part in self.parts)

    @property
    def is_bound(self) -> bool:
        """Whether it holds thinking that is bound to what stands before it."""
        return any(isinstance(part, Reasoning) and part.is_bound for part in self.parts)

    def unbound(self) -> Message:
        """The message without such thinking; itself if it has none."""
        if not self.is_bound:
            return self
        return self.with_parts(tuple(p for p in self.parts if not (isinstance(p, Reasoning) and p.is_bound)))

    def with_changed(self, parts: tuple[Part, ...]) -> Message:
        """With these parts; the message itself where they are its own."""
        same = len(parts) == len(self.parts) and all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if same else self.with_parts(parts)

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """A copy with other parts that still knows its source."""
        return replace(self, parts=parts, edited=True)


def is_mark(part: Part) -> bool:
    """``Opaque.is_mark``, of any part."""
    return isinstance(part, Opaque) and part.is_mark


def texts(part: Part) -> Iterator[str]:
    """Every readable string of a part, tool arguments included and reasoning left out."""
    if isinstance(part, ToolCall):
        yield part.arguments
    elif isinstance(part, ToolResult):
        for inner in part.content:
            yield from texts(inner)
    elif isinstance(part, Text | Opaque):
        yield part.text
