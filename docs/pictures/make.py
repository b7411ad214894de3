"""Make the pictures of docs/inspector.md: ``make pictures``. Needs Chromium (``make install-browser``).

The first comes from the example session. The others come from real sessions under MIT and Apache-2.0, which are no
part of the project: without a folder of them (CONTEXTFOLD_TRANSCRIPTS, or ../shared/transcripts) they are left as they
are. ``--keep FOLDER`` keeps the reports that the pictures show.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "inspector")]

from browser import Browser  # noqa: E402
from PIL import Image  # noqa: E402  (matplotlib brings it)

from contextfold import Compactor, transcripts  # noqa: E402
from contextfold.inspector.page import report  # noqa: E402
from contextfold.inspector.replayed import Setting, replayed  # noqa: E402


@dataclass(frozen=True)
class Picture:
    """A picture: of which session, in which windows, and what is done on the page before it is taken."""

    name: str
    source: str
    """A file below the folder of transcripts; empty: the example session."""
    windows: tuple[int, ...]
    steps: tuple[str, ...] = ()
    size: tuple[int, int] = (1440, 900)


LAST_COMPACTION = "inspector.setMoment(inspector.run.compactions.at(-1).at)"
LIGHT, DARK = (
    f"(inspector.theme = '{theme}', inspector.applyTheme(), inspector.timeline.draw())" for theme in ("light", "dark")
)
PICTURES = (
    Picture("inspector", "", (16_000,), (LIGHT, "inspector.setMoment(inspector.run.compactions.at(7).at)")),
    Picture("inspector-pi", "pi-mono/large-session.jsonl", (64_000,), (LIGHT, LAST_COMPACTION)),
    Picture(
        "inspector-compare",
        "openhands-codeact/django__django-11149.json",
        (16_000, 32_000),
        (LIGHT, "inspector.setChart('money')", LAST_COMPACTION),
    ),
    Picture(
        "inspector-dark",
        "kimi-cli-claude-code-zh/629b7931.jsonl",
        (32_000,),
        (DARK, "inspector.setChart('cache')", LAST_COMPACTION),
        (1024, 768),
    ),
)


def folder() -> Path | None:
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    found = Path(named) if named else ROOT.parent / "shared" / "transcripts"
    return found if found.is_dir() else None


def session(picture: Picture) -> transcripts.Conversation | None:
    if not picture.source:
        request = runpy.run_path(str(ROOT / "examples" / "make_session.py"))["make_request"]()
        return transcripts.read(json.dumps(request).encode(), name="session.json")[0]
    data = folder()
    return transcripts.read_file(data / picture.source)[0] if data else None


def take(browser: Browser, picture: Picture, kept: Path, say: Callable[[str], object]) -> None:
    talk = session(picture)
    if talk is None:
        say(f"{picture.name}: no real sessions here, the picture stays as it is")
        return
    settings = [Setting(f"window={window}", Compactor(window=window)) for window in picture.windows]
    page = kept / f"{picture.name}.html"
    page.write_bytes(report(replayed(talk, settings)))
    browser.resize(*picture.size)
    browser.open(page.as_uri())
    for step in picture.steps:
        browser.js(f"({step}, 1)")
        browser.frame()
    browser.js("new Promise((done) => setTimeout(done, 600))")
    file = HERE / f"{picture.name}.png"
    browser.screenshot(file)
    Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    say(f"{picture.name}.png: {len(talk.messages):,} messages, report of {page.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the reports there")
    parser.add_argument("--only", metavar="NAME", help="this picture alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.keep or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        browser = Browser("chromium")
        try:
            for picture in PICTURES:
                if options.only in (None, picture.name):
                    take(browser, picture, kept, lambda line: print(line))  # noqa: T201
        finally:
            browser.close()


if __name__ == "__main__":
    main()
