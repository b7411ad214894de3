"""The shapes in which a LangChain message may arrive, behind one small set of functions.

A message is an object of ``langchain_core``, or one of three dumps of it: flat (``model_dump``, LangGraph's API),
``{"type", "data"}`` (``message_to_dict``), or a constructor (``dumpd``). All hold the same fields, so that the
format in ``langchain`` works on type and fields and never needs to know which shape it has before it.

``langchain_core`` is imported only to build new objects. An object cannot exist unless it is loaded already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from contextfold.errors import FormatError
from contextfold.formats.values import is_instance, kind_of

Shape: TypeAlias = Literal["object", "flat", "data", "constructor"]

CLASSES = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
    "function": "FunctionMessage",
}
TYPES = ("human", "ai", "system", "tool", "function", "chat", "developer")
_TYPES_BY_CLASS = {
    f"{kind.capitalize() if kind != 'ai' else 'AI'}Message{ending}": kind for kind in TYPES for ending in ("", "Chunk")
}


def shape_of(wire: Any) -> Shape | None:
    """The shape of a LangChain message, or None if it is none."""
    if is_object(wire):
        return "object"
    if not isinstance(wire, dict):
        return None
    if wire.get("lc") == 1 and wire.get("type") == "constructor":
        return "constructor" if isinstance(wire.get("kwargs"), dict) and _class_name(wire) in _TYPES_BY_CLASS else None
    kind = _plain_type(wire.get("type"))
    # Other formats have a role; of LangChain's messages ``ChatMessage`` alone.
    if kind is None or (wire.get("role") is not None and kind != "chat"):
        return None
    return "data" if isinstance(wire.get("data"), dict) else "flat"


def is_object(wire: Any) -> bool:
    """Whether this is a message object of langchain_core."""
    return is_instance(wire, "langchain_core.messages", "BaseMessage")


def type_and_fields(wire: Any, index: int | None) -> tuple[str, Mapping[str, Any]]:
    """The type (``human``, ``ai``, ...) and the fields of a message in any shape."""
    shape = shape_of(wire)
    if shape == "object":
        kind = _plain_type(wire.type)
        if kind is None:
            raise FormatError(f"a {type(wire).__name__} is not part of a conversation: apply it first", index=index)
        return kind, wire.__dict__
    if shape == "constructor":
        return _TYPES_BY_CLASS[_class_name(wire)], wire["kwargs"]
    if shape == "data":
        return _plain_type(wire["type"]) or "", wire["data"]
    if shape == "flat":
        return _plain_type(wire["type"]) or "", wire
    found = f"type {wire.get('type')!r}" if isinstance(wire, dict) else kind_of(wire)
    raise FormatError(f"not a LangChain message: {found}; types are {', '.join(TYPES)}", index=index)


def with_fields(wire: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with other values for some fields; everything else is as it was."""
    shape = shape_of(wire)
    if shape == "object":
        return wire.model_copy(update=dict(changes))
    if shape == "constructor":
        return {**wire, "kwargs": {**wire["kwargs"], **changes}}
    if shape == "data":
        return {**wire, "data": {**wire["data"], **changes}}
    return {**wire, **changes}


def new_message(shape: Shape, kind: str, fields: Mapping[str, Any]) -> Any:
    """A new message of the given type in the given shape."""
    if shape == "object":
        import langchain_core.messages

        return getattr(langchain_core.messages, CLASSES[kind])(**fields)
    if shape == "constructor":
        name = ["langchain", "schema", "messages", CLASSES[kind]]
        return {"lc": 1, "type": "constructor", "id": name, "kwargs": {**fields, "type": kind}}
    if shape == "data":
        return {"type": kind, "data": {**fields, "type": kind}}
    return {"type": kind, **fields}


def _plain_type(kind: Any) -> str | None:
    if not isinstance(kind, str):
        return None
    # ``AIMessageChunk`` and its like carry their class name as their type.
    return kind if kind in TYPES else _TYPES_BY_CLASS.get(kind)


def _class_name(wire: Mapping[str, Any]) -> str:
    path = wire.get("id")
    return str(path[-1]) if isinstance(path, list) and path else ""
