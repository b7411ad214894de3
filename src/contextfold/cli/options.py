"""What several commands share: arguments, options, and how errors become exit codes.

What belongs here: what is typed in the same way everywhere. What does not: the commands (``app``, ``sessions``).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from contextfold.cli import files
from contextfold.cli.terminal import say
from contextfold.errors import CannotFit, ContextfoldError, InputError, PolicyError, SummaryFailed
from contextfold.observe import scrub

if TYPE_CHECKING:
    from contextfold.settings import Settings

BAD_INPUT = 2
CANNOT_FIT = 3
INTERRUPTED = 130
"""What shells say of a program that was ended by Ctrl-C."""


class ReportKind(StrEnum):
    """How a report is written."""

    text = "text"
    json = "json"


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers; its error repeats what was typed, which typer's own does not."""
    allowed = f"of at least {least}" if most is None else f"from {least} to {most}"

    def parsed(text: str) -> int:
        text = str(text)  # typer parses defaults, too
        if text.isascii() and text.isdigit() and int(text) >= least and (most is None or int(text) <= most):
            return int(text)
        raise typer.BadParameter(f"{text!r} is not a whole number {allowed}")

    return parsed


at_least_one = whole(1)


def above_zero(unit: str) -> Callable[[str], float]:
    """A parser of numbers above 0; its error repeats what was typed."""

    def parsed(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = 0.0
        if not 0 < found < math.inf:
            raise typer.BadParameter(f"{text!r} is not a number of {unit} above 0")
        return found

    return parsed


seconds = above_zero("seconds")


File = Annotated[str, typer.Argument(metavar="FILE", help="A conversation or session file; - is standard input.")]
FORMATS_SAID = "openai-chat, openai-responses, anthropic, langchain, gemini or bedrock-converse"


def format_name(text: str) -> str:
    """The name of a format, as it was typed."""
    from contextfold import formats

    try:
        formats.get(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return text


From = Annotated[
    str | None,
    typer.Option(
        "--from",
        parser=format_name,
        metavar="FORMAT",
        help=f"The format of FILE, if it is not to be detected: {FORMATS_SAID}.",
    ),
]
Pick = Annotated[
    int | None,
    typer.Option("--pick", parser=at_least_one, metavar="N", help="Which conversation, if FILE holds several; from 1."),
]
SummarizerName = Annotated[
    str | None,
    typer.Option(
        "--summarizer",
        metavar="NAME",
        help="extractive (needs no model), or PROVIDER:MODEL. Default: the model_name of --config, else extractive.",
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Where the summarizer's provider listens.")
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        parser=at_least_one,
        metavar="N",
        help="Input tokens that the receiving model takes. Default: as known of --model, else 64000.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The receiving model, to look up its window.")
]
Trigger = Annotated[
    str | None,
    typer.Option(
        "--trigger",
        metavar="SIZE",
        help="Compact from this size on. Default: fraction:0.8 of small windows, down to fraction:0.6 of large ones.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="SIZE",
        help="Where compaction must end, such as tokens:16000. Default: at most half of the window.",
    ),
]
Keep = Annotated[
    str | None, typer.Option("--keep", metavar="SIZE", help="The newest part that stays as it is, such as messages:20.")
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="YAML", help="A file with settings; options go before it.")
]
Report = Annotated[ReportKind, typer.Option("--report", help="For people, or one JSON object.")]


def load_settings(config: str | None, trigger: str | None, target: str | None, keep: str | None) -> Settings:
    """The settings of ``--config`` and the environment, under the sizes that were typed."""
    sizes = (("trigger", trigger), ("target", target), ("keep", keep))
    return load_under(config, {name: size for name, size in sizes if size is not None})


def load_under(config: str | None, given: Mapping[str, Any], places: Mapping[str, str] | None = None) -> Settings:
    """The settings of ``--config`` and the environment, under what was ``given``.

    Errors name an option as it was typed, not the argument that it becomes. ``places``: where one stood that has none
    of its own.
    """
    from contextfold.settings import load

    try:
        return load(config, **given)
    except PolicyError as error:
        said = str(error)
        for name in given:
            place = (places or {}).get(name, f"--{name}")
            said = place.join(re.split(rf"\bthe argument {re.escape(name)}\b", said))
        raise PolicyError(said, error.problems) from None


def sharing(values: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let typer see the parameters of ``values`` in the place of a command's ``**options``.

    So options that several commands have are written once; the command hands what was typed to ``values``.
    """

    def declared(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name])
            for function in (command, values)
            for hints in (get_type_hints(function, include_extras=True),)
            for one in inspect.signature(function).parameters.values()
            if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return declared


@contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """Errors made on purpose end the process with one line and their exit code. Others are bugs and stay visible."""
    try:
        yield
    except files.SeveralConversations as error:
        from contextfold.cli import screen

        complain(str(error))
        screen.show_conversations(screen.console(stderr=True), error.conversations)
        raise typer.Exit(BAD_INPUT) from None
    except (CannotFit, SummaryFailed) as error:
        complain(str(error), files.display_name(file))
        raise typer.Exit(CANNOT_FIT) from None
    except ContextfoldError as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None


def complain(problem: str, place: str | None = None) -> None:
    # what was typed is quoted, and may be an address with a password
    line = scrub(" ".join(problem.split()))
    say(f"contextfold: {place}: {line}" if place else f"contextfold: {line}", err=True)
