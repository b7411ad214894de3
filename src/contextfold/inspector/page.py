"""The page as one HTML file: style, scripts and, for a report, the document, with nothing left to fetch.

The page's modules are plain files that a browser could load as they are. Here they are put one behind the other without
their ``import`` lines, so that one file is all there is; a test holds their names apart. The content security policy
names the very scripts and styles of the file by their hashes, so nothing else runs, whatever a transcript holds.

What belongs here: putting files together. What does not: what is in the document, and serving pages (``server``).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from contextfold.inspector.document import as_json

MODULES = ("dom", "model", "list", "text", "rows", "chart", "search", "app", "live", "main")
"""Each behind those that it imports."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|class|function|async)", re.MULTILINE)
_SLOT = re.compile(r"/\*([A-Z_]+)\*/")
_BREAKS_OUT = re.compile(r"<(?=[/!]|script)", re.IGNORECASE)


def report(document: Mapping[str, Any]) -> bytes:
    """One self-contained file that shows a document: from disk, offline, out of a mail."""
    name = document["source"]["name"]
    return _page(f"{name} · contextfold", {"mode": "report"}, packed(document), connects=False)


def packed(document: Mapping[str, Any]) -> str:
    """The document inside a report: gzipped, in base64. A third of its size, and nothing of it looks like markup."""
    return base64.b64encode(gzip.compress(as_json(document), compresslevel=6, mtime=0)).decode()


def live(title: str, config: Mapping[str, Any]) -> bytes:
    """The same page for a server on loopback: it asks that server, and no other, for its document."""
    return _page(f"{title} · contextfold", config, "", connects=True)


def _page(title: str, config: Mapping[str, Any], document: str, *, connects: bool) -> bytes:
    filled = {
        "TITLE": escape(title),
        "POLICY": policy(connects=connects),
        "CONFIG": inside_script(json.dumps(config, ensure_ascii=False)),
        "DOCUMENT": document,
        **_parts(),
    }
    page = _SLOT.sub(lambda slot: filled[slot[1]], asset("page.html"))
    return page.encode("utf-8", "replace")


def policy(*, connects: bool) -> str:
    """The content security policy of a page: these scripts, these styles, and nothing else."""
    parts = _parts()
    sources = {
        "default-src": ["'none'"],
        "script-src": [_hash(parts["CHART"]), _hash(parts["SCRIPT"])],
        "style-src": [_hash(parts["CHART_STYLE"]), _hash(parts["STYLE"])],
        "img-src": ["data:"],  # the icon of the page
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        **({"connect-src": ["'self'"]} if connects else {}),
    }
    return "; ".join(f"{name} {' '.join(values)}" for name, values in sources.items())


def inside_script(text: str) -> str:
    """JSON that can stand in a script element: nothing in it looks like markup, and it means the same."""
    return _BREAKS_OUT.sub(r"\\u003c", text)


def asset(name: str) -> str:
    """The text of one of the page's files."""
    return resources.files("contextfold.inspector").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


@cache
def _parts() -> Mapping[str, str]:
    return {
        "STYLE": asset("page.css"),
        "CHART_STYLE": asset("vendor/uplot/uPlot.min.css"),
        "CHART": asset("vendor/uplot/uPlot.iife.min.js"),
        "SCRIPT": "\n".join(_EXPORT.sub("", _IMPORT.sub("", asset(f"{name}.js"))) for name in MODULES),
    }


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
