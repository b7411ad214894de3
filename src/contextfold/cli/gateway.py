"""``contextfold gateway`` and ``contextfold run``: the gateway from the command line.

What belongs here: these commands and their options. What does not: what the gateway does (``gateway``).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from contextfold.cli import files
from contextfold.cli.options import (
    BaseUrl,
    Config,
    Keep,
    Target,
    Trigger,
    at_least_one,
    load_settings,
    plain_errors,
    seconds,
    sharing,
    whole,
)
from contextfold.cli.summarizers import EXTRACTIVE, Named
from contextfold.errors import PolicyError


def _host(text: str) -> str:
    """An address of IPv6 may come in the brackets that it has in a URL."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


Host = Annotated[
    str, typer.Option("--host", parser=_host, metavar="HOST", help="Where to listen; only this machine by default.")
]
Port = Annotated[int, typer.Option("--port", parser=whole(0, 65_535), metavar="PORT", help="0: any free one.")]
Upstreams = Annotated[
    list[str] | None,
    typer.Option(
        "--upstream",
        metavar="NAME=URL",
        help="Where requests go: openai=URL, anthropic=URL, or any NAME, reached as /NAME/v1/...; may be repeated.",
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        parser=at_least_one,
        metavar="N",
        help="Input tokens that the models take; default: looked up by the model's name, and learned from refusals.",
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="CONTEXTFOLD_GATEWAY_STORE",
        help="sqlite:///FILE or postgresql+psycopg://...; default: a file in the user's state folder.",
    ),
]
Summarizer = Annotated[
    str | None,
    typer.Option(
        "--summarizer",
        metavar="NAME",
        help="extractive (needs no model), same (the caller's own model and credential), or PROVIDER:MODEL. Default: "
        "the model_name of --config, else extractive.",
    ),
]
Shadow = Annotated[bool, typer.Option("--shadow", help="Change nothing, and tell what would have been saved.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a request where contextfold fails, instead of sending the original.")
]
Usage = Annotated[
    str,
    typer.Option(
        "--usage",
        metavar="provider|history",
        help="Tell input tokens as the provider counted, or of the whole history.",
    ),
]
MaxBody = Annotated[int, typer.Option("--max-body", parser=at_least_one, metavar="BYTES", help="The largest request.")]
MaxRequests = Annotated[
    int, typer.Option("--max-requests", parser=at_least_one, metavar="N", help="Requests at a time, per worker.")
]
FirstByte = Annotated[
    float,
    typer.Option("--first-byte-timeout", parser=seconds, metavar="SECONDS", help="How long an upstream may be silent."),
]
ClientTimeout = Annotated[
    float,
    typer.Option(
        "--client-timeout",
        parser=seconds,
        metavar="SECONDS",
        help="How long a client may be silent, or take nothing.",
    ),
]
Log = Annotated[str, typer.Option("--log", metavar="text|json|none", help="One line per request, without content.")]


def _values(
    upstream: Upstreams = None,
    window: Window = None,
    store: Store = "",
    summarizer: Summarizer = None,
    base_url: BaseUrl = None,
    trigger: Trigger = None,
    target: Target = None,
    keep: Keep = None,
    config: Config = None,
    shadow: Shadow = False,
    strict: Strict = False,
    usage: Usage = "provider",
    max_body: MaxBody = 64 * 1024 * 1024,
    max_requests: MaxRequests = 512,
    first_byte_timeout: FirstByte = 600.0,
    client_timeout: ClientTimeout = 60.0,
) -> dict[str, Any]:
    """The options of both commands, as fields of ``GatewaySettings``."""
    found = load_settings(config, trigger, target, keep)
    named = Named.of(summarizer, found, base_url)
    if summarizer is None and named.name != EXTRACTIVE:
        named.summarizer()  # says where a name stands that cannot be asked
    return {
        "upstreams": _upstreams(upstream),
        "window": window,
        "store": store,
        "summarizer": named.name,
        "base_url": base_url,
        "policy": found.policy,
        "shadow": shadow,
        "strict": strict,
        "usage": usage,
        "max_body": max_body,
        "max_requests": max_requests,
        "first_byte_seconds": first_byte_timeout,
        "client_seconds": client_timeout,
    }


@sharing(_values)
def gateway(
    host: Host = "127.0.0.1",
    port: Port = 8642,
    workers: Annotated[
        int, typer.Option("--workers", parser=at_least_one, metavar="N", help="Processes that share one port.")
    ] = 1,
    shutdown_timeout: Annotated[
        float,
        typer.Option(
            "--shutdown-timeout", parser=seconds, metavar="SECONDS", help="How long streams may go on at the end."
        ),
    ] = 60.0,
    log: Log = "text",
    print_config: Annotated[
        str | None,
        typer.Option("--print-config", metavar="CLIENT", help="Print what claude, codex, openai, ... need, and end."),
    ] = None,
    **options: Any,
) -> None:
    """Stand between any client and its provider, and keep each conversation inside the window."""
    with plain_errors("gateway"):
        if print_config is not None:
            files.check_writable(files.STANDARD)
            typer.echo(_client_config(print_config, host, port), nl=False)
            return
        own = {"host": host, "port": port, "workers": workers, "shutdown_seconds": shutdown_timeout, "log": log}
        settings = _settings({**_values(**options), **own})
        from contextfold.gateway.serve import serve

        raise typer.Exit(serve(settings))


@sharing(_values)
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="What to run, behind the gateway.")],
    host: Annotated[str, typer.Option("--host", hidden=True)] = "127.0.0.1",
    port: Port = 0,
    log: Log = "none",
    **options: Any,
) -> None:
    """Run COMMAND with a gateway of its own: its base URLs are set, its exit code is returned, nothing stays behind."""
    with plain_errors("run"):
        if host not in ("127.0.0.1", "localhost"):
            raise PolicyError(f"--host {host}: a gateway for one command listens on loopback only; leave it out")
        settings = _settings({**_values(**options), "port": port, "log": log}, command=command)
        from contextfold.gateway.run import run as run_command

        raise typer.Exit(run_command(command, settings))


def _settings(values: dict[str, Any], *, command: list[str] | None = None) -> Any:
    """``command``: of a run."""
    from contextfold.gateway import check_installed

    check_installed()
    from contextfold.gateway.settings import GatewaySettings

    if command is not None:
        from contextfold.gateway.run import settings_from

        values["upstreams"] = settings_from(os.environ, values["upstreams"], command)
    settings = GatewaySettings(**values)
    _check(settings)
    return settings


def _check(settings: Any) -> None:
    from contextfold.gateway.settings import EXTRACTIVE, SAME
    from contextfold.limits import Limits
    from contextfold.store.database import resolved

    # What would only fail at the first request fails here, in one line.
    if settings.window is not None:
        Limits.of(settings.policy, settings.window)
    if settings.summarizer not in (EXTRACTIVE, SAME):
        Named(settings.summarizer, settings.base_url, others=(EXTRACTIVE, SAME)).summarizer()
    elif settings.base_url is not None:
        raise PolicyError(f"--base-url {settings.base_url}: the summarizer {settings.summarizer} has no address")
    resolved(settings.store_url)


def _upstreams(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given or ():
        name, mark, url = one.partition("=")
        if not mark or not name.strip() or "/" in name:
            raise PolicyError(f"--upstream {one}: write NAME=URL, such as openai=https://api.openai.com/v1")
        if name in found:
            raise PolicyError(f"--upstream {one}: {name} was given before, as {found[name]}")
        found[name] = url
    return found


def _client_config(client: str, host: str, port: int) -> str:
    from contextfold.gateway.clients import CLIENTS

    if client not in CLIENTS:
        raise PolicyError(f"--print-config {client}: there are {', '.join(CLIENTS)}")
    # These say where to listen; no client can connect to them.
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return CLIENTS[client](f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}")
