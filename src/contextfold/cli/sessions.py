"""``contextfold sessions`` and ``contextfold recall``: conversations in a store, from the command line.

What belongs here: these commands and their tables. What does not: what a session does (``store``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextfold.cli import files
from contextfold.cli.options import (
    BaseUrl,
    From,
    Pick,
    Report,
    ReportKind,
    above_zero,
    at_least_one,
    plain_errors,
    whole,
)
from contextfold.cli.summarizers import EXTRACTIVE, Named
from contextfold.cli.terminal import say
from contextfold.errors import InputError, one_line

if TYPE_CHECKING:
    from contextfold.observe import Event
    from contextfold.recall import Hit
    from contextfold.store import Session, SessionState
    from contextfold.store.sql import SQLStore
    from contextfold.transcripts import Conversation

DEFAULT_STORE = "sqlite:///contextfold.db"

app = typer.Typer(
    no_args_is_help=True, help="Conversations in a store: list, show, import, export, compact, undo, prune, recall."
)

Store = Annotated[
    str,
    typer.Option(
        "--store", metavar="URL", envvar="CONTEXTFOLD_STORE", help="sqlite:///FILE or postgresql+psycopg://..."
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", metavar="NAME", help="Whose threads; default: no namespace.")]
Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The id of a thread.")]
Window = Annotated[
    int | None, typer.Option("--window", parser=at_least_one, metavar="N", help="Input tokens that the model takes.")
]


@app.command("list")
def list_sessions(store: Store = DEFAULT_STORE, namespace: Namespace = "", report: Report = ReportKind.text) -> None:
    """Show all threads of a namespace, the one that was written to last first."""
    from contextfold.store import open_existing  # loads stores, which --help does not need
    from contextfold.store.addresses import shown

    with plain_errors(store):
        states = open_existing(store).sessions(namespace)
        if report is ReportKind.json:
            files.write_json([_row(state) for state in states])
            return
        columns = ("thread", "messages", "tokens", "summary up to", "last written")
        rows = [
            (
                state.thread.id,
                f"{state.message_count:,}",
                f"{state.token_count:,}",
                "" if state.summary_until_index is None else f"{state.summary_until_index:,}",
                state.damage or _when(state.updated_at),
            )
            for state in states
        ]
        within = f", namespace {namespace}" if namespace else ""
        _print_table(columns, rows, empty=f"no session in {shown(store)}{within}")


@app.command()
def show(
    thread: Thread, store: Store = DEFAULT_STORE, namespace: Namespace = "", report: Report = ReportKind.text
) -> None:
    """Show a thread: its messages by fate, and its summaries with what each took."""
    with plain_errors(thread):
        session = _existing(thread, store, namespace)
        state, summaries, counts = session.state(), session.summaries(), session.ledger().counts()
        if report is ReportKind.json:
            files.write_json(
                {**_row(state), "fates": dict(counts), "summaries": [_summary_row(one) for one in summaries]}
            )
            return
        say(f"{thread}: {state.message_count:,} messages, {state.token_count:,} tokens, {state.format}")
        say(", ".join(f"{count:,} {fate}" for fate, count in counts.items() if count))
        # Not by its id: what came back by itself stands in a row of its own, which then is the one in force.
        used = [one.id for one in summaries if one.used_at is not None and one.undone_at is None]
        in_force = used[-1] if used else None
        columns = ("summary", "made", "why", "by", "messages", "tokens", "calls", "state")
        rows = [
            (
                str(one.id),
                _when(one.created_at),
                one.trigger,
                one.model or one.algorithm,
                f"{one.message_count:,}",
                f"{one.original_tokens:,} to {one.tokens:,}",
                str(one.calls),
                _state_of(one, in_force),
            )
            for one in summaries
        ]
        _print_table(columns, rows, empty="never compacted")
        if state.summary_text:
            say(f"\n{state.summary_text}")


@app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A conversation or session file; - is standard input.")],
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Default: the conversation's name.")
    ] = None,
    source_format: From = None,
    pick: Pick = None,
    store: Store = DEFAULT_STORE,
    namespace: Namespace = "",
) -> None:
    """Put the conversations in FILE into a store, each as a thread of its own, or the one that --pick chooses.

    Of one that is there already, what came since is appended.
    """
    from contextfold.store import open_store

    with plain_errors(file):
        found, opened = files.load_all(file, format=source_format, pick=pick), open_store(store)
        for name, conversation in zip(_names_of_threads(found, file, thread), found, strict=True):
            place = conversation.name or files.display_name(file)
            session = _session(name, opened, namespace, format=conversation.format)
            if not conversation.messages:  # a thread begins with its first message
                say(f"{name}: no messages to import")
                continue
            there = session.history()
            known = session.state().format if there else conversation.format
            new = conversation.messages[_common(there, known, conversation, name, place) :]
            try:
                # What is there by now is refused, and nothing put behind it.
                session.append(new, at=len(there))
            except InputError as error:
                raise InputError(f"{place}: {error}") from error
            count = f"{name}: {len(conversation.messages):,} messages"
            say(f"{count}, {f'{len(new):,} of them new' if new else 'there already'}" if there else count)


def _names_of_threads(found: Sequence[Conversation], file: str, thread: str | None) -> list[str]:
    """A thread for each conversation: by what the file calls it, as the next export has new ones before it."""
    # A name that is empty, of a variable that a script never set, is refused and not replaced by another one.
    if thread is not None and (len(found) == 1 or not thread):
        return [thread] * len(found)
    ids = [one.id for one in found]
    if all(ids) and len(set(ids)) == len(ids):
        return [f"{thread}-{id}" if thread else f"{Path(file).name}#{id}" for id in ids]
    names = [thread or one.name or Path(file).stem for one in found]
    return [f"{name}-{number}" for number, name in enumerate(names, 1)] if len(found) > 1 else names


def _common(there: Sequence[Any], known: str | None, conversation: Conversation, name: str, place: str) -> int:
    """How many messages a thread has, all of which a conversation begins with: an import that broke off, or that is
    repeated once the conversation has grown, goes on there. Raises ``InputError`` where it went another way, or where
    the thread is in another format, ``known``."""
    messages = conversation.messages
    pairs = enumerate(zip(there, messages, strict=False))
    same = next((at for at, (held, given) in pairs if held != given), min(len(there), len(messages)))
    if same == len(there):
        return same
    if known != conversation.format:
        differs = f"has {conversation.format} messages, and {known} ones are in thread {name!r}"
    elif same == len(messages):
        differs = f"has {same:,} of the {len(there):,} messages in thread {name!r}, as after going back"
    else:
        why = "as after going back, or an import amid a turn"  # calls and results of one turn share a message
        differs = f"differs from message {same:,} on from what is in thread {name!r}, {why}"
    raise InputError(f"{place}: {differs}: import it as another thread, with --thread ID")


@app.command()
def export(
    thread: Thread,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Default: standard output.")] = "-",
    view: Annotated[bool, typer.Option("--view", help="What a model would get now, instead of everything.")] = False,
    window: Window = None,
    store: Store = DEFAULT_STORE,
    namespace: Namespace = "",
) -> None:
    """Write the messages of a thread as a JSON list."""
    from contextfold.store import payload

    with plain_errors(thread):
        files.check_writable(output, read=files.of_database(store))
        session = _existing(thread, store, namespace, window=window)
        messages: list[Any]
        if view:
            messages = shown = session.view()
            if shown.over_window:
                size, most = shown.result.tokens_after, shown.result.window
                say(f"the view takes {size:,} tokens, more than the window of {most:,}", err=True)
        else:
            messages = session.history()
        files.write_json([payload.plain(message) for message in messages], output)


@app.command()
def undo(thread: Thread, store: Store = DEFAULT_STORE, namespace: Namespace = "") -> None:
    """Bring back the view from before the last compaction."""
    with plain_errors(thread):
        undone = _existing(thread, store, namespace).undo()
        said = (
            "nothing to undo"
            if undone is None
            else f"summary {undone.id} is undone ({undone.message_count:,} messages)"
        )
        say(f"{thread}: {said}")


@app.command()
def prune(
    idle_days: Annotated[
        float,
        typer.Option(
            "--idle-days",
            parser=above_zero("days"),
            metavar="DAYS",
            help="Threads that were not written to for this many days.",
        ),
    ],
    delete: Annotated[bool, typer.Option("--delete", help="Delete them. Without this, they are only shown.")] = False,
    archive: Annotated[
        str | None, typer.Option("--archive", metavar="URL", help="Delete their files there as well: file:///FOLDER...")
    ] = None,
    store: Store = DEFAULT_STORE,
    namespace: Namespace = "",
    report: Report = ReportKind.text,
) -> None:
    """Show the threads of a namespace that have been idle for too long, or delete them for ever."""
    from contextfold.store import Retention, open_existing

    with plain_errors(store):
        if report is ReportKind.json:  # before anything is deleted that no one would be told of
            files.check_writable(files.STANDARD)
        retention, opened = Retention(idle_days * 24 * 3600), open_existing(store)
        place = None if archive is None else _open_archive(archive)
        found = retention.apply(opened, namespace, archive=place) if delete else retention.expired(opened, namespace)
        if report is ReportKind.json:
            files.write_json([{**_row(state), "deleted": delete} for state in found])
            return
        rows = [(state.thread.id, f"{state.message_count:,}", _when(state.updated_at)) for state in found]
        _print_table(("thread", "messages", "last written"), rows, empty=f"no session is idle for {idle_days:g} days")
        if found:
            say("deleted" if delete else "nothing is deleted yet: repeat it with --delete")


@app.command()
def compact(
    thread: Thread,
    instructions: Annotated[str, typer.Option("--instructions", metavar="TEXT", help="For the summarizer.")] = "",
    window: Window = None,
    summarizer: Annotated[
        str,
        typer.Option("--summarizer", metavar="NAME", help="extractive (needs no model), or PROVIDER:MODEL."),
    ] = EXTRACTIVE,
    base_url: BaseUrl = None,
    archive: Annotated[
        str | None,
        typer.Option("--archive", metavar="URL", help="Save originals there first: file:///FOLDER, s3://..."),
    ] = None,
    store: Store = DEFAULT_STORE,
    namespace: Namespace = "",
) -> None:
    """Summarize a thread now, whatever its size."""
    with plain_errors(thread):
        named = Named(summarizer, base_url).summarizer()
        options = {"window": window, "summarizer": named, "archive": archive, "on_event": _say_what_is_waited_for}
        result = _existing(thread, store, namespace, **options).compact(instructions)
        became = f"{result.tokens_before:,} tokens became {result.tokens_after:,}"
        say(f"{thread}: {became if result.changed else 'there is nothing to compact'}")


def _say_what_is_waited_for(event: Event) -> None:
    if event.data.get("waiting"):
        say(event.message, err=True)


class Order(StrEnum):
    best = "best"
    newest = "newest"


class Role(StrEnum):
    user = "user"
    assistant = "assistant"
    tool = "tool"
    system = "system"
    developer = "developer"


def _moment(text: str) -> datetime:
    """A date or time in ISO 8601; of UTC where it names no zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a date or time such as 2031-03-11 or 2031-03-11T09:05+01:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@app.command()
def recall(
    context: typer.Context,
    thread: Annotated[
        str, typer.Argument(metavar="THREAD|FILE", help="The id of a thread, or a conversation or session file.")
    ],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help='A question, or some words; "in quotes": they must occur in a row.')
    ],
    limit: Annotated[
        int | None, typer.Option("--limit", parser=at_least_one, metavar="N", help="The most hits; default 20.")
    ] = None,
    order: Annotated[Order, typer.Option("--order", help="What answers best first, or the last mention.")] = Order.best,
    role: Annotated[
        list[Role] | None, typer.Option("--role", help="Only what these said; may be repeated.", show_default=False)
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", parser=_moment, metavar="TIME", help="Only what was appended since.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", parser=_moment, metavar="TIME", help="Only what was appended before.")
    ] = None,
    neighbors: Annotated[
        int,
        typer.Option(
            "--neighbors", parser=whole(0), metavar="N", help="Also show as many messages before and after each."
        ),
    ] = 0,
    source_format: From = None,
    pick: Pick = None,
    store: Store = DEFAULT_STORE,
    namespace: Namespace = "",
    report: Report = ReportKind.text,
) -> None:
    """Search everything that a thread ever held, what was summarized included, or a file. The best come first."""
    with plain_errors(thread):
        options: dict[str, Any] = {"limit": limit or 20, "order": order.value, "neighbors": neighbors}
        options["roles"] = [one.value for one in role] if role else None
        # A store that the environment names is where threads are, and no wish to look there for a file.
        named = getattr(context.get_parameter_source("store"), "name", "") == "COMMANDLINE"
        if not named and not namespace and os.path.isfile(thread):
            if since or until:
                raise InputError("--since and --until are for threads of a store: a file does not say when it was said")
            hits = _searched_file(thread, source_format, pick, query, options)
        else:
            try:
                session = _existing(thread, store, namespace)
            except InputError as error:
                raise error if named or namespace else InputError(f"{thread} is no file here, and {error}") from None
            hits = session.search(query, since=since, until=until, **options)
        if report is ReportKind.json:
            files.write_json([_hit_row(hit) for hit in hits])
            return
        rows = [row for hit in hits for row in _hit_lines(hit)]
        _print_table(("message", "role", "where", "text"), rows, empty=f"no message of {thread} has {query!r}")


def _searched_file(
    file: str, source_format: str | None, pick: int | None, query: str, options: Mapping[str, Any]
) -> list[Hit]:
    from contextfold.recall import search

    conversation = files.load(file, format=source_format, pick=pick)
    return search(conversation.messages, query, format=conversation.format, **options)


def _hit_row(hit: Hit) -> dict[str, Any]:
    beside = [{"index": near.index, "role": near.role, "text": near.text} for near in hit.neighbors]
    row = {"index": hit.index, "role": hit.role, "evicted": hit.evicted, "score": hit.score, "snippet": hit.snippet}
    return {**row, "neighbors": beside} if beside else row


def _hit_lines(hit: Hit) -> list[tuple[str, str, str, str]]:
    """A hit as a row of the table, between the messages beside it."""
    lines = [(hit.index, (str(hit.index), hit.role, "summarized" if hit.evicted else "in view", hit.snippet))]
    lines += [(near.index, (str(near.index), near.role, "beside", one_line(near.text, 240))) for near in hit.neighbors]
    return [line for _, line in sorted(lines)]


# ---- sessions ----


def _open_archive(address: str) -> Any:
    from contextfold.archive import open_archive

    return open_archive(address)


def _session(thread: str, store: SQLStore, namespace: str, **options: Any) -> Session:
    from contextfold.compactor import Compactor
    from contextfold.store import SessionOptions

    names = ("window", "summarizer", "on_event")
    compactor = Compactor(**{name: options.pop(name, None) for name in names})
    # Looking at a thread, or exporting it, must not summarize it by the way.
    only_on_request = SessionOptions(enable_context_optimization=False)
    return compactor.session(thread, store, namespace=namespace, options=only_on_request, **options)


def _existing(thread: str, store: str, namespace: str, **options: Any) -> Session:
    from contextfold.store import open_existing

    session = _session(thread, open_existing(store), namespace, **options)
    if session.state().message_count == 0:
        raise files.no_thread(thread, store, namespace)
    return session


def _row(state: SessionState) -> dict[str, Any]:
    return {
        "thread": state.thread.id,
        "format": state.format,
        "messages": state.message_count,
        "tokens": state.token_count,
        "summary_until_index": state.summary_until_index,
        "summary_tokens": state.summary_tokens,
        "is_summarizing": state.is_summarizing,
        "updated_at": state.updated_at,
        **({"damage": state.damage} if state.damage else {}),
    }


def _summary_row(summary: Any) -> dict[str, Any]:
    names = ("id", "parent_id", "trigger", "reason", "algorithm", "model", "message_count", "original_tokens", "tokens")
    more = ("input_tokens", "output_tokens", "calls", "chunk_count", "max_depth", "truncated", "cost", "seconds")
    return {name: getattr(summary, name) for name in (*names, *more, "created_at", "used_at", "undone_at")}


def _state_of(summary: Any, in_force: int | None) -> str:
    if summary.id == in_force:
        return "in force"
    if summary.undone_at is not None:
        return "undone"
    return "superseded" if summary.used_at is not None else "not used"


# ---- output ----


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    if not rows:
        say(empty)
        return
    from rich.table import Table

    from contextfold.cli import screen

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")  # an id that is cut off names no thread
    for row in rows:
        table.add_row(*row)
    screen.console().print(table)


def _when(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
