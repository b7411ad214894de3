"""The commands, their options, and how errors become exit codes.

What belongs here: what a user can type, and in which order things happen then. What does not: reading and writing
(``files``), what a report holds (``report``, ``inspection``), how it looks (``screen``).

Exit codes: 0 done, 2 usage or bad input, 3 cannot fit, 130 interrupted. Errors are one line on standard error.
"""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextfold.cli import batch, files, gateway, sessions
from contextfold.cli.options import (
    BAD_INPUT,
    INTERRUPTED,
    BaseUrl,
    Config,
    File,
    From,
    Keep,
    Model,
    Pick,
    Report,
    ReportKind,
    SummarizerName,
    Target,
    Trigger,
    Window,
    at_least_one,
    complain,
    format_name,
    load_settings,
    plain_errors,
)
from contextfold.cli.summarizers import EXTRACTIVE, Named
from contextfold.cli.view import view
from contextfold.errors import ContextfoldError, SummaryFailed

if TYPE_CHECKING:
    from contextfold.compactor import CompactionResult, Compactor
    from contextfold.observe import Event
    from contextfold.policy import Policy
    from contextfold.summary.models import SummaryModel

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What all wrong usage raises. Typer exports no name for it, only for this one kind of it."""

app = typer.Typer(
    name="contextfold",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def run() -> None:
    """Run the command line. Warnings of the library are part of the report, so they are not logged as well."""
    logging.getLogger("contextfold").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not end the program
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = files.guarded(sys.stdout), files.guarded(sys.stderr, notes=True)  # None where closed
    try:
        code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except ContextfoldError as error:  # printed without an input at hand: a help text, say, on a full disk
        complain(str(error))
        code = BAD_INPUT
    except UsageError as error:
        said = error.format_message()  # type: ignore[attr-defined]  # str() leaves out which option it is
        if said.strip():  # a group without a command has shown its help, and says nothing more
            complain(said.replace("Value error, ", ""))  # pydantic's, by which newer releases of typer parse
        code = BAD_INPUT
    except typer.Abort:
        complain("interrupted; nothing was written")
        code = INTERRUPTED
    sys.exit(code)


def _show_version(asked: bool) -> None:
    if asked:
        from contextfold import __version__

        typer.echo(f"contextfold {__version__}")
        raise typer.Exit


@app.callback()
def contextfold(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Keeps a long agent conversation inside a model's context window and accounts for every message."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(BAD_INPUT)


@app.command()
def compact(
    file: File,
    source_format: From = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            parser=format_name,
            metavar="FORMAT",
            help="The format of the view, as of --from; default: that of FILE.",
        ),
    ] = None,
    pick: Pick = None,
    window: Window = None,
    model: Model = None,
    trigger: Trigger = None,
    target: Target = None,
    keep: Keep = None,
    summarizer: SummarizerName = None,
    base_url: BaseUrl = None,
    summary_api: Annotated[
        str | None, typer.Option("--summary-api", metavar="API", help="Of OpenAI: chat (default) or responses.")
    ] = None,
    summary_window: Annotated[
        int | None,
        typer.Option(
            "--summary-window",
            parser=at_least_one,
            metavar="N",
            help="Tokens that the summarizer takes, answer included.",
        ),
    ] = None,
    summary_fallback: Annotated[
        list[str] | None,
        typer.Option("--summary-fallback", metavar="NAME", help="Ask this PROVIDER:MODEL next; may be repeated."),
    ] = None,
    config: Config = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="VIEW.json", help="Write the view there; - is standard output."),
    ] = None,
    report: Report = ReportKind.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report.")] = False,
) -> None:
    """Make the conversation in FILE fit, and say what became of every message.

    A SIZE is tokens:N, messages:N or fraction:F of the window. FILE itself is never changed, unless it is the output.

    For example: contextfold compact session.jsonl --window 64000 --output view.json
    """
    with plain_errors(file):
        settings = load_settings(config, trigger, target, keep)
        options = {"api": summary_api, "window": summary_window, "fallbacks": summary_fallback or ()}
        named = Named.of(summarizer, settings, base_url, **options)
        model_of_summary = named.summarizer()
        policy = settings.policy
        # Before the work: a view that cannot be written would have been paid for in vain.
        if output is not None:
            files.check_writable(output)
        if report is ReportKind.json and not quiet:
            files.check_writable(files.STANDARD)
        conversation = files.load(file, format=source_format, pick=pick)
        started = time.perf_counter()
        with _live_progress(named.name, quiet) as hooks, _failures_told(named.name) as on_event:
            compactor = _compactor(window, model, policy, model_of_summary, {**hooks, "on_event": on_event})
            result = compactor.compact(
                conversation.messages, format=conversation.format, to=to, tools=conversation.tools
            )
        seconds = time.perf_counter() - started
        if output is not None:
            files.write_json(result.messages, output)
        if not quiet and report is ReportKind.json:
            _show_json(result, seconds, beside_view=output == files.STANDARD)
        elif not quiet:
            _show_text(file, result, compactor.window.source, model, seconds, output)


@app.command()
def inspect(file: File, source_format: From = None, pick: Pick = None, report: Report = ReportKind.text) -> None:
    """Show where the tokens of FILE are: by role, by tool, the largest messages, groups, broken pairs, and a plot."""
    with plain_errors(file):
        conversation = files.load(file, format=source_format, pick=pick)
        from contextfold.cli.inspection import inspect_conversation

        found = inspect_conversation(conversation)
        if report is ReportKind.json:
            files.write_json(found.to_dict())
        else:
            from contextfold.cli import screen

            screen.show_inspection(screen.console(), files.display_name(file), found)


def _compactor(
    window: int | None, model: str | None, policy: Policy, summarizer: SummaryModel | None, hooks: Mapping[str, Any]
) -> Compactor:
    from contextfold.compactor import Compactor

    return Compactor(window=window, model=model, policy=policy, summarizer=summarizer, **hooks)


app.add_typer(sessions.app, name="sessions")
app.add_typer(batch.app, name="batch")
app.command()(sessions.recall)
app.command()(view)
app.command()(gateway.gateway)
app.command(context_settings={"allow_interspersed_args": False})(gateway.run)


@contextmanager
def _live_progress(summarizer: str, quiet: bool) -> Iterator[Mapping[str, Any]]:
    """Hooks that draw how far a summary by a model is. The built-in one is done before there is anything to see."""
    if quiet or summarizer == EXTRACTIVE:
        yield {}
        return
    from contextfold.cli import screen
    from contextfold.cli.progress import LiveProgress

    with LiveProgress(screen.console(stderr=True), summarizer) as progress:
        yield progress.hooks


@contextmanager
def _failures_told(summarizer: str) -> Iterator[Callable[[Event], None]]:
    """A hook, and the summarizer's own error, which ``on_failure: raise`` lets through, as one of ours."""
    failed: list[Event] = []
    try:
        yield lambda event: failed.append(event) if event.name == "summary_failed" else None
    except ContextfoldError:
        raise
    except Exception as error:
        if not failed:  # a bug stays visible
            raise
        raise SummaryFailed(f"the summary by {summarizer} failed: {failed[-1].message}") from error


def _show_json(result: CompactionResult, seconds: float, *, beside_view: bool) -> None:
    """Print the report; to standard error where standard output carries the view."""
    from contextfold.cli.report import compaction_report, json_bytes

    typer.echo(json_bytes(compaction_report(result, seconds)), nl=False, err=beside_view)


def _show_text(
    file: str, result: CompactionResult, window_source: str, model: str | None, seconds: float, output: str | None
) -> None:
    from contextfold.cli import screen

    beside_view = output == files.STANDARD
    target = None if beside_view else output
    is_kept = file != files.STANDARD and (target is None or not files.is_same(file, target))
    done = screen.Done(result, files.display_name(file), target, window_source, seconds, model, is_kept)
    screen.show_compaction(screen.console(stderr=beside_view), done)
