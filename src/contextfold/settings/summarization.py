"""The section ``summarization`` of a DeerFlow ``config.yaml``, as settings of a ``Policy``.

    summarization:
      enabled: true                     # default: false
      model_name: null                  # null: the application's default model
      trigger:                          # one or a list (any of them); required when enabled
        - {type: tokens, value: 4000}   # type: tokens, messages or fraction (of the model's window)
      keep: {type: messages, value: 20} # the default
      trim_tokens_to_summarize: 4000    # the default; null: no limit
      summary_prompt: null              # null: the built-in prompts

Values are read as leniently as DeerFlow reads them: ``'4000'`` is a number, ``'yes'`` a switch. One meaning differs:
``trim_tokens_to_summarize`` is how much goes into one summary request. What is longer is cut into several requests and
merged, where LangChain leaves it out; and as a request needs some room, fewer than 512 count as 512. The prompt is one
for ``str.format``, where doubled braces stand for single ones. Settings of DeerFlow's own skill files (``ELSEWHERE``)
are passed over.

What belongs here: these names and what they mean. What does not: other sections of the file, which are not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contextfold.errors import PolicyError, shown
from contextfold.observe import logger
from contextfold.policy import UNITS, Policy, parse_size
from contextfold.settings.document import Document, Key
from contextfold.summary.options import SMALLEST_REQUEST

SECTION = "summarization"
NAMES = ("enabled", "model_name", "trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")
ELSEWHERE = (
    "preserve_recent_skill_count",
    "preserve_recent_skill_tokens",
    "preserve_recent_skill_tokens_per_skill",
    "skill_file_read_tool_names",
)
"""Names of later releases of DeerFlow that are about its skill files."""
# fmt: off
SECTIONS = frozenset((
    "channels", "checkpointer", "config_version", "database", "extensions", "log_level", "logging",
    "max_recursion_limit", "memory", "models", "sandbox", "skill_evolution", "skills", "stream_bridge", "subagents",
    "suggestions", "title", "token_budget", "token_usage", "tool_groups", "tool_search", "tools", "uploads",
))
# fmt: on
"""Other sections of a DeerFlow file. One that has only such, and not ours, has summarization switched off."""
DEFAULT_KEEP = ("messages", 20)
DEFAULT_TRIM = 4000
"""Tokens."""


@dataclass(frozen=True)
class Layer:
    """What one source sets; None where it says nothing."""

    policy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``Policy``."""
    sources: Mapping[str, str] = field(default_factory=dict)
    enabled: bool | None = None
    model: str | None = None

    def under(self, upper: Layer) -> Layer:
        """This layer with another over it, as far as they are no fields of ``Policy``."""
        return Layer(
            enabled=self.enabled if upper.enabled is None else upper.enabled,
            model=upper.model or self.model,
        )


def layer(document: Document) -> Layer:
    """The settings of the section. Raises ``PolicyError`` for a mistake, with file, line and key."""
    for name in document.values:
        # Not refused: the section may be an application's own.
        if name in Policy.model_fields:
            logger.warning(
                "%s: %s is not used: a file with a section %s sets only %s, in it",
                document.place((name,)),
                name,
                SECTION,
                ", ".join(NAMES),
            )
    section = document.values[SECTION] if document.values[SECTION] is not None else {}
    if not isinstance(section, Mapping):
        raise document.refuse((SECTION,), f"must be a mapping of {', '.join(NAMES)}, not {shown(section)}")
    for name in section:
        if name in ELSEWHERE:
            # Not refused: the same file is read by DeerFlow, which needs them.
            logger.info("%s: %s is a setting of DeerFlow's own, and is not used", document.place((SECTION, name)), name)
        elif name not in NAMES:
            raise document.refuse_unknown((SECTION, str(name)), NAMES)
    reader = _Reader(document, section)
    prompt = reader.text("summary_prompt")
    summary = {"input_tokens": reader.trim(), "prompt": None if prompt is None else from_format(prompt)}
    sources = {name: document.place((SECTION, name)) for name in section}
    return Layer(
        policy={
            "trigger": reader.trigger() or None,
            "keep": reader.keep(),
            "summary": {name: value for name, value in summary.items() if value is not None},
        },
        sources=sources,
        enabled=reader.flag("enabled"),
        model=reader.text("model_name"),
    )


_FILLED_IN = re.compile(r"\{\{(messages|previous|language|max_tokens|instructions)\}\}")


def from_format(prompt: str) -> str:
    """A prompt for ``str.format`` as one of ours, in which braces stand for themselves."""
    return prompt.replace("{{", "{").replace("}}", "}")


def to_format(prompt: str) -> str:
    """A prompt of ours as one for ``str.format``: all braces doubled but those around what is filled in."""
    doubled = prompt.replace("{", "{{").replace("}", "}}")
    return _FILLED_IN.sub(r"{\1}", doubled)


def has_none(document: Document) -> bool:
    """Whether this is a file of DeerFlow without the section: it has others of its sections, and nothing else."""
    return bool(document.values) and set(document.values) <= SECTIONS


def without_trigger(document: Document) -> PolicyError:
    """The error about a section that is switched on, here or elsewhere, where nothing says when to summarize."""
    key = (SECTION, "trigger")
    return document.refuse(
        key if key in document.lines else (SECTION,),
        "summarization is enabled and has no trigger: give at least one, such as {type: fraction, value: 0.8}",
    )


_SWITCHES = dict.fromkeys(("true", "yes", "on", "1", "t", "y"), True)
_SWITCHES |= dict.fromkeys(("false", "no", "off", "0", "f", "n"), False)


def _number(value: Any) -> Any:
    """A text that is a number as one; anything else as it is."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                found = kind(value)
                # ``nan`` and ``inf`` are numbers to Python alone.
                return found if math.isfinite(found) else value
            except (ValueError, OverflowError):  # no number, or one of hundreds of digits
                continue
    return value


@dataclass(frozen=True)
class _Reader:
    document: Document
    section: Mapping[str, Any]

    def flag(self, name: str) -> bool:
        value = self.section.get(name)
        if value is None:
            return False
        said = _SWITCHES.get(str(value).lower()) if isinstance(value, bool | int | str) else None
        if said is None:
            raise self.document.refuse((SECTION, name), f"must be true or false, not {shown(value)}")
        return said

    def text(self, name: str) -> str | None:
        value = self.section.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.document.refuse((SECTION, name), f"must be a text with words in it, or null, not {shown(value)}")
        return value

    def trigger(self) -> list[tuple[str, float]]:
        value = self.section.get("trigger")
        if value is None:
            return []
        if isinstance(value, list):
            return [self._size((SECTION, "trigger", n), entry) for n, entry in enumerate(value)]
        return [self._size((SECTION, "trigger"), value)]

    def keep(self) -> tuple[str, float]:
        value = self.section.get("keep")
        return DEFAULT_KEEP if value is None else self._size((SECTION, "keep"), value)

    def trim(self) -> int | None:
        """Tokens of one summary request; None for no limit."""
        name = "trim_tokens_to_summarize"
        value = self.section.get(name, DEFAULT_TRIM)
        if value is None:
            return None
        number = _number(value)
        is_size = isinstance(number, int | float) and not isinstance(number, bool) and 1 <= number < math.inf
        if not is_size or number != int(number):
            problem = "must be a whole number of tokens of at least 1, or null for no limit"
            raise self.document.refuse((SECTION, name), f"{problem}, not {shown(value)}")
        if number < SMALLEST_REQUEST:
            logger.warning(
                "%s: %s is %d tokens, too few for a summary request: %d are used",
                self.document.place((SECTION, name)),
                name,
                number,
                SMALLEST_REQUEST,
            )
        return max(int(number), SMALLEST_REQUEST)

    def _size(self, key: Key, value: Any) -> tuple[str, float]:
        """A mapping of ``type`` and ``value`` as the pair that ``Policy`` takes."""
        if not isinstance(value, Mapping):
            raise self.document.refuse(
                key, f"must be a mapping such as {{type: tokens, value: 4000}}, not {shown(value)}"
            )
        for name in value:
            if name not in ("type", "value"):
                raise self.document.refuse_unknown((*key, str(name)), ("type", "value"))
        for name in ("type", "value"):
            if name not in value:
                raise self.document.refuse(key, f"has no {name}: write {{type: tokens, value: 4000}}")
        if value["type"] not in UNITS:
            raise self.document.refuse((*key, "type"), f"must be one of {', '.join(UNITS)}, not {shown(value['type'])}")
        try:
            size = parse_size((value["type"], _number(value["value"])))
        except (ValueError, PolicyError) as error:
            raise self.document.refuse((*key, "value"), str(error)) from None
        return size.unit, size.value
