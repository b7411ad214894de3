"""What several commands share: arguments, options, and how errors become exit codes.

What belongs here: what is typed in the same way everywhere. What does not: the commands (``app``, ``sessions``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from contextfold.cli import files
from contextfold.errors import CannotFit, ContextfoldError, SummaryFailed

BAD_INPUT = 2
CANNOT_FIT = 3
INTERRUPTED = 130
"""What shells say of a program that was ended by Ctrl-C."""


class ReportKind(StrEnum):
    """How a report is written."""

    text = "text"
    json = "json"


def at_least_one(text: str) -> int:
    """A whole number of at least 1, or an error that repeats what was typed."""
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise typer.BadParameter(f"{text!r} is not a whole number of at least 1")


File = Annotated[str, typer.Argument(metavar="FILE", help="A conversation or session file; - is standard input.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help="The format of FILE, if it is not to be detected."),
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
Report = Annotated[ReportKind, typer.Option("--report", help="For people, or one JSON object.")]


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
    line = " ".join(problem.split())
    typer.echo(f"contextfold: {place}: {line}" if place else f"contextfold: {line}", err=True)
