"""The prompts of the summary call, composed from the files in ``prompts``.

What belongs here: which file says what, and how the caller's own prompt and instructions reach every path.
What does not: the words themselves (``prompts/*.md``), and what is put into them (``render``, ``bisect``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from contextfold.quoting import broken

Kind = Literal["summarize", "chunk", "update", "merge", "shorten", "same"]
"""``chunk``: as ``summarize``, in few words, for requests that are mostly prompt otherwise. ``same``: an instruction
behind the messages themselves."""

_PLACEHOLDER = re.compile(r"\{(messages|previous|language|max_tokens|instructions|rules|reason)\}")


@dataclass(frozen=True, slots=True)
class Wording:
    """How the caller wants it said. ``language`` is a name such as ``English``; no ``prompt``: the built-in ones."""

    language: str
    prompt: str | None = None
    instructions: str = ""

    def compose(self, kind: Kind, material: Sequence[str], *, max_tokens: int, previous: str = "") -> str:
        """One prompt.

        ``material`` is the rendered conversation (one text), or for ``merge`` and ``shorten`` the summaries, oldest
        first. ``previous`` is the summary to update. The answer is asked to stay within ``max_tokens``.
        """
        values = {
            "language": self.language,
            "max_tokens": f"{max_tokens}",
            "instructions": self.instructions.strip(),
            "previous": broken(previous),
            "messages": _summaries(material) if kind in ("merge", "shorten") else "\n\n".join(material),
        }
        if self.prompt is None:
            return _fill(_tidy(kind, values), {**values, "rules": _fill(_tidy("rules", values), values)})
        return self._own("summarize" if kind == "chunk" else kind, values)

    def _own(self, kind: Kind, values: Mapping[str, str]) -> str:
        """The caller's prompt with the material in its place; the task is said beside the material where it differs."""
        own = str(self.prompt)
        task, layout = _file(kind).split("{rules}\n", 1)
        body = _fill(layout.strip() if kind == "summarize" else f"{task.strip()}\n{layout.rstrip()}", values)
        if "{messages}" not in own:
            own = f"{own.rstrip()}\n\n{{messages}}"
        if "{max_tokens}" not in own or (values["instructions"] and "{instructions}" not in own):
            own = f"{own.rstrip()}\n\n{_tidy('limits', values).strip()}"
        return _fill(own, {**values, "messages": body})


def again(prompt: str, reason: str, *, max_tokens: int) -> str:
    """The same request after an answer that could not be used."""
    return _fill(_file("retry"), {"messages": prompt, "reason": reason, "max_tokens": f"{max_tokens}"})


def _summaries(texts: Sequence[str]) -> str:
    return "\n\n".join(f"<summary>\n{broken(text)}\n</summary>" for text in texts)


def _tidy(name: str, values: Mapping[str, str]) -> str:
    """A file of rules, without the line for instructions where there are none."""
    text = _file(name)
    return (text if values["instructions"] else text.replace("{instructions}\n", "")).rstrip()


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Placeholders replaced in one go, so that braces inside what is put in stay what they are."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template).rstrip("\n")


def _read() -> Mapping[str, str]:
    """All prompts, read when this is imported: a request may be composed on an event loop."""
    files = resources.files("contextfold.summary") / "prompts"
    return {file.name.removesuffix(".md"): file.read_text(encoding="utf-8") for file in files.iterdir()}


_FILES = _read()


def _file(name: str) -> str:
    return _FILES[name]
