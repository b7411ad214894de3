"""The commands on stores, on both databases."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conversations import said
from typer.testing import CliRunner

from contextfold.cli.app import app
from contextfold.store import open_store

COMMANDS = (
    ("sessions import talk.json --thread t --store URL", "t: 40 messages, there already"),
    ("sessions list --store URL", "40"),
    ("sessions show t --store URL", "40"),
    ("sessions compact t --window 4000 --store URL", "tokens became"),
    ("sessions export t --output out.json --store URL", ""),
    ("sessions undo t --store URL", "is undone"),
    ("sessions prune --idle-days 1 --store URL", "no session is idle"),
    ("recall t words --store URL", "message"),
    ("view t --out page.html --store URL", ""),
    ("batch check URL --workers 0 --window 4000 --output checked.jsonl", "1 conversation, 0 failed"),
)


def test_every_command_reads_a_store_of_either_kind(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a folder happens to be called like the database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    Path("talk.json").write_text(json.dumps(said(40, 120)))

    def run(command: str) -> str:
        done = CliRunner().invoke(app, [url if word == "URL" else word for word in command.split()])
        assert done.exit_code == 0, f"{command}: {done.output}"
        return done.output

    assert "t: 40 messages" in run("sessions import talk.json --thread t --store URL")
    for command, words in COMMANDS:
        assert words in run(command), command
    assert json.loads(Path("out.json").read_text()) == said(40, 120)
    assert "view" in Path("page.html").read_text()
    opened = open_store(url)
    if opened.database.dialect == "postgresql":
        os.mkdir(str(opened.database.url.database))
        assert "40" in run("sessions list --store URL")
        os.rmdir(str(opened.database.url.database))
        assert "40" in run("sessions list --store URL")
    opened.close()
