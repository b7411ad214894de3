"""Our own settings file: a mapping of ``Policy`` fields.

What belongs here: telling a name that does not exist. What does not: whether a value is allowed (``policy``).
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel

from contextfold.policy import Policy
from contextfold.settings.document import Document, Key
from contextfold.settings.summarization import SECTION, Layer


def layer(document: Document) -> Layer:
    """The fields of a policy. Raises ``PolicyError`` for a name that is none, with its line and the closest one."""
    _check_names(document, document.values, Policy, ())
    sources = {name: document.place((name,)) for name in document.values}
    return Layer(policy=dict(document.values), sources=sources)


def _check_names(document: Document, values: Any, model: type[BaseModel], key: Key) -> None:
    """Every name in the mapping must be a field of ``model``; the sections in it are looked at likewise."""
    if not isinstance(values, dict):
        return
    for name, value in values.items():
        inner = (*key, str(name))
        if name not in model.model_fields:
            also = () if key else (SECTION,)
            raise document.refuse_unknown(inner, [*also, *model.model_fields])
        section = _section(model, name)
        if section is not None:
            _check_names(document, value, section, inner)


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The settings model that a field holds, if it holds one."""
    annotation = model.model_fields[name].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
