"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def transcripts_folder() -> Path | None:
    """The folder of real conversations, or None where there is none: it is not part of the project."""
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def transcripts() -> Path:
    folder = transcripts_folder()
    if folder is None:
        pytest.skip("no real conversations here: set CONTEXTFOLD_TRANSCRIPTS to a folder of transcripts")
    return folder
