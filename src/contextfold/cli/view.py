"""``contextfold view``: where every message went, in a browser or as one file.

What belongs here: this command, its options, and what they mean together. What does not: the replay, the document and
the page (``inspector``).
"""

from __future__ import annotations

import difflib
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextfold.cli import files
from contextfold.cli.options import (
    BaseUrl,
    Config,
    From,
    Keep,
    Model,
    Pick,
    SummarizerName,
    Target,
    Trigger,
    Window,
    load_under,
    plain_errors,
    whole,
)
from contextfold.cli.summarizers import Named
from contextfold.cli.terminal import say
from contextfold.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from contextfold.compactor import Compactor
    from contextfold.inspector.replayed import Setting
    from contextfold.store import Thread
    from contextfold.transcripts import Conversation

EXTRA = "the page on loopback needs the extra view: pip install 'contextfold[view]'; --out FILE.html works without"


def view(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|THREAD]",
            show_default=False,
            help="A session file; with --store, the id of a thread (none: the list of all).",
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="sqlite:///FILE or postgresql+psycopg://...")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", metavar="NAME", help="Whose threads.")] = "",
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="REPORT.html", help="Write one self-contained file and end; NAME.json: the document."
        ),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", metavar="A B", help="Two settings side by side, each NAME=VALUE[,NAME=VALUE]: window=32000."
        ),
    ] = None,
    window: Window = None,
    model: Model = None,
    trigger: Trigger = None,
    target: Target = None,
    keep: Keep = None,
    config: Config = None,
    summarizer: SummarizerName = None,
    base_url: BaseUrl = None,
    source_format: From = None,
    pick: Pick = None,
    port: Annotated[int, typer.Option("--port", parser=whole(0, 65_535), help="Of loopback; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="With --store: undo and compact from the page.")
    ] = False,
) -> None:
    """See where every message went: a session file replayed turn by turn, or the sessions of a store as they run.

    The page is served on loopback, under an address with a token, until Ctrl-C. --out writes it as one file instead.
    """
    with plain_errors(file or store or ""):
        options = {"window": window, "model": model, "trigger": trigger, "target": target, "keep": keep}
        given = {name: value for name, value in options.items() if value is not None}
        asked = _Asked(given, config, summarizer, base_url)
        # Before the replay, which may take a while.
        if out is not None:
            files.check_writable(out, "--out", read=file if store is None else files.of_database(store))
        if store is not None and out is None and compare is None:
            _serve(_live(store, file, namespace, asked, allow_changes), port, no_open)
            return
        if store is None:
            conversation = _loaded(file, source_format, pick, allow_changes)
            document = _replayed(conversation, _settings(compare, asked))
        elif file is None:
            raise InputError("--out and --compare show one session: name its thread")
        else:
            from contextfold.store import open_existing

            opened = open_existing(store)
            thread = _thread(opened, store, file, namespace)
            document = _of_store(opened, thread, compare, asked)
        if out is not None:
            _write(document, out)
        else:
            _serve(_report(document), port, no_open)


# ---- settings ----


@dataclass(frozen=True, slots=True)
class _Asked:
    """The setting that was typed: options by name, the file of ``--config``, and who summarizes."""

    given: Mapping[str, Any]
    config: str | None
    summarizer: str | None
    base_url: str | None

    def compactor(self, differing: Mapping[str, Any] | None = None, name: str = "") -> Compactor:
        """A compactor with it. ``differing``: what one of the compared settings, ``name``, says instead."""
        from contextfold.compactor import Compactor

        given = {**self.given, **(differing or {})}
        of_policy = {key: value for key, value in given.items() if key not in ("window", "model")}
        found = load_under(self.config, of_policy, dict.fromkeys(differing or (), f"--compare {name!r}"))
        return Compactor(
            window=given.get("window"),
            model=given.get("model"),
            policy=found.policy,
            summarizer=Named.of(self.summarizer, found, self.base_url).summarizer(),
        )


def _settings(compare: tuple[str, str] | None, asked: _Asked) -> list[Setting]:
    """The one setting of the options, or two that each say what differs from it."""
    if compare is None:
        return [_setting(_shown(asked.given), asked, {})]
    both = [_parsed(text) for text in compare]
    return [_setting(text, asked, differing) for text, differing in zip(compare, both, strict=True)]


def _parsed(text: str) -> dict[str, Any]:
    """``window=32000,keep=fraction:0.2`` as names and values; ``budgets.usage=0.6`` as a section."""
    import yaml

    from contextfold.policy import Policy

    known = ("window", "model", *Policy.model_fields)
    found: dict[str, Any] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"--compare {text!r}: {pair!r} is not NAME=VALUE, such as window=32000")
        with suppress(yaml.YAMLError):  # then it is a text
            value = yaml.safe_load(value)
        section, _, field = name.strip().replace("-", "_").partition(".")
        if section not in known:
            close = difflib.get_close_matches(section, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise InputError(f"--compare {text!r}: there is no setting {section!r}; {hint}")
        fields = found.get(section)
        found[section] = {**(fields if isinstance(fields, dict) else {}), field: value} if field else value
    if "window" in found and (not isinstance(found["window"], int) or found["window"] < 1):
        raise InputError(f"--compare {text!r}: the window is a whole number of at least 1, not {found['window']!r}")
    return found


def _setting(name: str, asked: _Asked, differing: Mapping[str, Any]) -> Setting:
    from contextfold.inspector.replayed import Setting

    shown = {key: str(value) for key, value in {**asked.given, **differing}.items()}
    return Setting(name, asked.compactor(differing, name), shown)


def _shown(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items()) or "default settings"


# ---- documents ----


def _loaded(file: str | None, source_format: str | None, pick: int | None, allow_changes: bool) -> Conversation:
    if file is None:
        raise InputError("give a session file, or --store URL for the sessions of a store")
    if allow_changes:
        raise InputError("--allow-changes is for --store: a file is only read")
    return files.load(file, format=source_format, pick=pick)


def _replayed(conversation: Conversation, settings: Sequence[Setting]) -> dict[str, Any]:
    from contextfold.inspector.replayed import replayed

    with _progress() as progress:
        return replayed(conversation, settings, progress=progress)


def _of_store(
    opened: Any,
    thread: Thread,
    compare: tuple[str, str] | None,
    asked: _Asked,
) -> dict[str, Any]:
    """What was recorded of a thread; or its history replayed, where settings are compared."""
    from contextfold.inspector import records
    from contextfold.inspector.stored import stored

    if thread.namespace == records.THROUGH_GATEWAY:
        line = records.find(opened.database, thread.id)
        if compare is not None or line is None:
            raise InputError("--compare replays messages, and a gateway keeps none: name a session of the store")
        return records.recorded(line)
    if compare is None:
        return stored(opened, thread)
    from contextfold.transcripts import Conversation

    state = opened.load(thread)
    wire = [found.wire for found in opened.read_messages(thread, [range(state.message_count)])]
    talk = Conversation(thread.id, state.format or "openai-chat", wire, "session")
    return _replayed(talk, _settings(compare, asked))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object] | None]:
    """A line on standard error while a replay goes on, where a person is looking."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from contextfold.cli import screen

    with screen.console(stderr=True).status("replaying") as status:
        yield lambda done, of: status.update(f"replaying: request {done:,} of {of:,}")


# ---- stores ----


def _thread(opened: Any, store: str, name: str, namespace: str) -> Thread:
    """The session that is named, or else the conversation that went through a gateway."""
    from contextfold.inspector import records
    from contextfold.store import Thread

    thread = Thread(namespace, name)
    if opened.load(thread).message_count:
        return thread
    if namespace in ("", records.THROUGH_GATEWAY) and records.find(opened.database, name) is not None:
        return Thread(records.THROUGH_GATEWAY, name)
    raise files.no_thread(name, store, namespace)


def _live(
    store: str, name: str | None, namespace: str, asked: _Asked, allow_changes: bool
) -> Callable[[str], Starlette]:
    from contextfold.store import open_existing

    opened = open_existing(store)
    thread = None if name is None else _thread(opened, store, name, namespace)
    with _extra():
        from contextfold.inspector import records, server
    shown = opened.database.name
    sessions = server.Store(opened, shown, namespace)
    source: server.Source = sessions
    if namespace in ("", records.THROUGH_GATEWAY) and records.has_records(opened.database):
        source = server.Together(sessions, server.GatewayRecords(opened.database, shown))
    changes = _changes(sessions, asked) if allow_changes else {}
    return lambda token: server.live_app(server.Live(source, thread, changes), token)


def _changes(source: Any, asked: _Asked) -> dict[str, Callable[[Thread], str]]:
    """What the page may do to a session where that was allowed."""
    from contextfold.errors import ContextfoldError
    from contextfold.store import Session, SessionOptions

    asked.compactor()  # what is wrong with it is said before the page is served

    def session(thread: Thread) -> Session:
        only_on_request = SessionOptions(enable_context_optimization=False)
        return asked.compactor().session(thread.id, source.store, namespace=thread.namespace, options=only_on_request)

    def compact(thread: Thread) -> str:
        result = session(thread).compact()
        if not result.changed:
            return "There is nothing to compact."
        return f"Compacted: {result.tokens_before:,} tokens became {result.tokens_after:,}."

    def undo(thread: Thread) -> str:
        undone = session(thread).undo()
        return "Nothing was in force." if undone is None else "Undone: the view from before is in force again."

    def noted(change: Callable[[Thread], str]) -> Callable[[Thread], str]:
        def do(asked: Thread) -> str:
            thread = source.named(asked)
            try:
                said = change(thread)
            except ContextfoldError as error:
                # Shown in the list of sessions as well.
                source.errors[thread.key] = str(error)
                raise
            source.errors.pop(thread.key, None)
            return said

        return do

    return {"compact": noted(compact), "undo": noted(undo)}


# ---- showing ----


def _write(document: Mapping[str, Any], out: str) -> None:
    from contextfold.inspector.document import as_json
    from contextfold.inspector.page import report

    data = as_json(document) if out.endswith(".json") else report(document)
    if out == files.STANDARD:
        typer.echo(data, nl=False)
    else:
        files.write_atomically(out, data, "--out")
        hint = "" if out.endswith(".json") else "; open it in a browser, no network is needed"
        say(f"{out}: {len(data):,} bytes{hint}", err=True)


def _report(document: Mapping[str, Any]) -> Callable[[str], Starlette]:
    with _extra():
        from contextfold.inspector import server
    return lambda token: server.report_app(document, token)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(EXTRA) from error


def _serve(app: Callable[[str], Starlette], port: int, no_open: bool) -> None:
    from contextfold.inspector import server

    token = server.new_token()

    def opened(bound: int) -> None:
        address = f"http://{server.HOST}:{bound}/?token={token}"
        typer.echo(address)
        typer.echo("Ctrl-C ends it.", err=True)
        if not no_open:
            webbrowser.open(address)

    try:
        server.serve(app(token), port, opened)
    except OSError as error:
        raise InputError(f"port {port} of loopback cannot be used: {error.strerror or error}") from None
