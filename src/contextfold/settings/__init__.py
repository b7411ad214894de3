"""Settings from a YAML file and from the environment, as a ``Policy``, a ``Compactor`` or a ready middleware.

What belongs here: which source wins, and what the settings of other systems mean here. Two kinds of file are read: our
own (a mapping of ``Policy`` fields) and one that has a section ``summarization``, as DeerFlow writes it. What does not:
whether a value is allowed for a policy (``policy`` says so).

Where a setting is given more than once, this order decides: the arguments of ``load``, then the environment, then the
file, then the defaults of ``Policy``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from contextfold.compactor import Compactor, CompactorSettings
from contextfold.errors import PolicyError, text_of
from contextfold.policy import Policy, PolicyFields
from contextfold.settings import environment, outputs, own, summarization
from contextfold.settings.document import Document, Key, read
from contextfold.summary.summarizer import as_summarizer

if TYPE_CHECKING:
    from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
    from contextfold.integrations.langchain.compaction import MiddlewareOptions
    from contextfold.integrations.langchain.constructor import DropInOptions

__all__ = ["Settings", "load"]


@dataclass(frozen=True)
class Settings:
    """What was asked for, from all sources."""

    policy: Policy
    """With ``enabled=False`` (nothing by itself, on no face) where the settings are switched off."""
    enabled: bool = True
    model: str | None = None
    """The name of the summary model as the file gives it; None: the caller's default model."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Setting -> where it was set, such as ``"config.yaml, line 7"`` or ``"SUMMARY_KEEP_LAST_N"``."""

    def compactor(self, **options: Unpack[CompactorSettings]) -> Compactor:
        """A ``Compactor`` under this policy, and so are its sessions. ``options`` are those of ``Compactor``, such as
        ``window`` and ``summarizer``. Where the settings are switched off, no model of the file is made ready.

        Raises ``PolicyError`` for a ``model_name`` that no SDK here can ask, with its place.
        """
        chosen: dict[str, Any] = {"policy": self.policy, **options}
        if "summarizer" in options or self.model is None or not self.enabled:
            return Compactor(**chosen)
        with outputs.at(self.place("model_name"), f"model_name {self.model!r}"):
            summarizer = as_summarizer(self.summary_model)
        return Compactor(**chosen, summarizer=summarizer)

    def summarization_middleware(
        self, default_model: Any = None, **options: Unpack[DropInOptions]
    ) -> SummarizationMiddleware | None:
        """The drop-in for LangChain's middleware under these settings; None where they are switched off.

        ``default_model`` sums up where no ``model_name`` is set. ``options`` are those of the middleware. Needs the
        extra ``langchain``. Raises ``PolicyError`` where there is no model to ask, or where a setting is not one that
        LangChain's class could have, with its place.
        """
        from contextfold.integrations.langchain import SummarizationMiddleware

        model = self.model or default_model
        if not self.enabled:
            return None
        if model is None:
            raise PolicyError("no summary model: set model_name, or give the application's default_model")
        arguments = outputs.drop_in_arguments(SummarizationMiddleware, self.policy, self.place)
        return SummarizationMiddleware(self._chat_model() or model, **{**arguments, **options})

    def compaction_middleware(
        self, default_model: Any = None, **options: Unpack[MiddlewareOptions]
    ) -> CompactionMiddleware | None:
        """Our own middleware, which leaves the thread whole; None where the settings are switched off.

        Without ``model_name`` and ``default_model`` the built-in summarizer is used, which asks no model. ``options``
        are those of the middleware. Needs the extra ``langchain``. Raises ``PolicyError`` for a ``model_name`` that
        LangChain does not know, with its place.
        """
        from contextfold.integrations.langchain import CompactionMiddleware

        if not self.enabled:
            return None
        chosen: dict[str, Any] = {"policy": self.policy, **options}
        if "summarizer" not in options:
            chosen["summarizer"] = self._chat_model() or default_model
        return CompactionMiddleware(**chosen)

    @property
    def summary_model(self) -> str | None:
        """``model`` as ``Compactor`` takes it: with its provider, as far as the name says whose it is."""
        return None if self.model is None else outputs.qualified(self.model)

    def place(self, name: str) -> str | None:
        """Where a setting was set, such as ``"config.yaml, line 7"``; None for a default."""
        return self.sources.get(name)

    def _chat_model(self) -> Any:
        """The chat model of LangChain that ``model_name`` names, as LangChain reads names; None where none is set."""
        if self.model is None:
            return None
        from langchain.chat_models import init_chat_model

        with outputs.at(self.place("model_name"), f"model_name {self.model!r}"):
            try:
                return init_chat_model(self.model)
            except (ValueError, ImportError):
                raise
            except Exception as error:  # of the provider's SDK, such as a key that is missing
                raise PolicyError(text_of(error)) from error


def load(
    file: str | Path | None = None, *, environ: Mapping[str, str] | None = None, **options: Unpack[PolicyFields]
) -> Settings:
    """The settings of a file and of the environment.

    Args:
        file: a YAML file; None for the environment alone.
        environ: the environment to read; ``os.environ`` if not given, ``{}`` to read none.
        options: fields of ``Policy`` that win over both.

    Raises ``InputError`` for a file that cannot be read or is no YAML mapping, and ``PolicyError`` for a setting that
    does not exist or a value that is not allowed, with key and line, or with the name of the variable.
    """
    document = read(file) if file is not None else None
    layers = [_from_file(document)] if document is not None else []
    layers.append(environment.read(os.environ if environ is None else environ))
    fields: dict[str, Any] = {}
    sources: dict[str, str] = {}
    merged = summarization.Layer()
    for layer in layers:
        fields = _merged(fields, layer.policy)
        sources |= layer.sources
        merged = merged.under(layer)
    fields = _merged(fields, options)
    sources |= {name: _argument(name) for name in options}
    if merged.enabled is not None and "enabled" not in options:
        fields["enabled"] = merged.enabled
    enabled = fields.get("enabled") is not False
    has_trigger = fields.get("trigger") or "trigger" in options
    if enabled and document is not None and _is_section(document) and not has_trigger:
        raise summarization.without_trigger(document)
    return Settings(
        policy=_policy(fields, sources, document),
        enabled=enabled,
        model=merged.model,
        sources=sources,
    )


def _from_file(document: Document) -> summarization.Layer:
    if summarization.has_none(document):
        return summarization.Layer(enabled=False)
    return summarization.layer(document) if _is_section(document) else own.layer(document)


def _is_section(document: Document) -> bool:
    return summarization.SECTION in document.values


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of both, ``upper`` winning; sections are merged setting by setting."""
    result = dict(lower)
    for name, value in upper.items():
        below = result.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping) and name == "summary"
        result[name] = {**below, **value} if both else value  # type: ignore[dict-item]
    return result


def _policy(fields: Mapping[str, Any], sources: Mapping[str, str], document: Document | None) -> Policy:
    """The policy of all layers. A mistake in it is told with the places where it was made."""
    try:
        return Policy(**fields)
    except PolicyError as error:
        told = [_told(key, problem, sources, document) for key, problem in error.problems or [((), str(error))]]
        raise PolicyError("; ".join(told), error.problems) from None


def _told(key: Key, problem: str, sources: Mapping[str, str], document: Document | None) -> str:
    """A problem with its setting, and where that was set. One between several settings names the place of each."""
    if key:
        dotted = ".".join(map(str, key))
        place = _place(key, sources, document)
        return (
            f"{place}: {problem}" if place == _argument(dotted) else ": ".join(filter(None, (place, dotted, problem)))
        )
    found = {name: re.search(rf"\b{re.escape(name)}\b", problem) for name in sources}
    named = sorted((match.start(), sources[name]) for name, match in found.items() if match)
    return f"{' and '.join(place for _, place in named)}: {problem}" if named else problem


def _argument(name: str) -> str:
    """The place of a setting that the caller of ``load`` gives."""
    return f"the argument {name}"


def _place(key: Key, sources: Mapping[str, str], document: Document | None) -> str | None:
    """Where a setting was set: the argument, the variable, or the line; None if that cannot be told."""
    for length in range(len(key), 0, -1):
        place = sources.get(".".join(map(str, key[:length])))
        if place is not None:
            is_in_file = document is not None and place.startswith(f"{document.name}, line ") and key in document.lines
            return document.place(key) if is_in_file and document is not None else place
    return None
