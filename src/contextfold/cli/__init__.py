"""The command line: ``contextfold compact FILE``, ``contextfold inspect FILE``, ``contextfold sessions ...``.

    app         the commands on files
    sessions    the commands on stores
    batch       the commands on conversations by the million
    options     what commands share, and how errors become exit codes
    summarizers, progress   the summary model that is named, and how far it is
    files       reading FILE or standard input, choosing a conversation, writing atomically
    report      what was done, as one JSON-ready mapping
    inspection  where the tokens are, as values
    charts      bars and plots as text
    screen      how a person sees all that

Nothing is imported before ``main`` runs, and ``rich`` not before something is shown.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line. Ends the process: 0 done, 2 usage or bad input, 3 cannot fit, 130 interrupted."""
    try:
        from contextfold.cli.app import run

        run()
    except KeyboardInterrupt:  # outside a command: while its modules are loaded, or as it ends
        raise SystemExit(130) from None
