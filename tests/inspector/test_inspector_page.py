"""The page as a file: nothing in it but what we put there, and nothing that it would fetch."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from talks import document, tool_loop, unpacked

from contextfold import Compactor
from contextfold.inspector.page import MODULES, asset, live, report
from contextfold.inspector.replayed import Setting, replayed
from contextfold.transcripts import read_file

VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""uPlot 1.6.32 from the npm package ``uplot``, as it was published."""

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "{{STYLE}} /*SCRIPT*/ /*DOCUMENT*/",
    "]]></script></body></html>",
]


class Elements(HTMLParser):
    """The elements of a page, with the text of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._open.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.texts.append((self._open[-1], data))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass


def parsed(page: bytes) -> Elements:
    found = Elements()
    found.feed(page.decode())
    return found


@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_what_is_vendored_is_what_was_published(name: str, digest: str) -> None:
    assert hashlib.sha256(asset(f"vendor/uplot/{name}").encode()).hexdigest() == digest


def test_modules_share_no_name_that_they_declare() -> None:
    """They are put one behind the other, so two of one name would be an error, or worse, one of them."""
    declared = [
        name
        for module in MODULES
        for name in re.findall(
            r"^(?:export )?(?:async )?(?:const|let|class|function\*?) (\w+)", asset(f"{module}.js"), re.MULTILINE
        )
    ]
    assert [name for name, times in Counter(declared).items() if times > 1] == []


def test_each_module_imports_only_those_before_it() -> None:
    for place, module in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+)\.js"', asset(f"{module}.js"))
        assert set(imported) <= set(MODULES[:place]), module


def test_no_module_writes_markup_or_runs_text() -> None:
    for module in MODULES:
        text = asset(f"{module}.js")
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
        assert not re.findall(forbidden, text), module


def test_a_hostile_transcript_adds_no_element_to_the_page() -> None:
    messages = tool_loop(3)
    plain = parsed(report(document(messages)))
    messages[1]["content"] = "\n".join(HOSTILE)
    messages[3]["content"] = "\n".join(HOSTILE)
    page = report(document(messages))
    assert parsed(page).tags == plain.tags
    assert unpacked(page)["messages"][1]["parts"][0]["text"] == "\n".join(HOSTILE)


def test_a_hostile_name_of_a_session_adds_no_element_either() -> None:
    plain = document(tool_loop(2))
    hostile = {**plain, "source": {**plain["source"], "name": HOSTILE[0]}}
    assert parsed(report(hostile)).tags == parsed(report(plain)).tags
    config = {"mode": "live", "thread": HOSTILE[0], "store": HOSTILE[2]}
    assert parsed(live(HOSTILE[0], config)).tags == parsed(live("one", {"mode": "live"})).tags


def test_the_policy_names_the_very_scripts_and_styles_of_the_page() -> None:
    found = parsed(report(document(tool_loop(2))))
    policy = next(value for tag, name, value in found.attributes if tag == "meta" and value and "default-src" in value)
    running = [text for tag, text in found.texts if tag == "style" or "uPlot" in text]
    assert len(running) == 4
    for text in running:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "connect-src" not in policy, "a report asks no one for anything"


def test_no_address_of_another_host_is_in_a_tag() -> None:
    found = parsed(report(document(tool_loop(2))))
    addresses = [value for _, name, value in found.attributes if name in ("src", "href", "action", "data", "poster")]
    assert [value for value in addresses if not (value or "").startswith("data:")] == []
    assert len(addresses) == 1, "the icon"


@pytest.mark.strict
def test_a_report_is_smaller_than_one_and_a_half_times_its_session() -> None:
    messages: list[dict[str, Any]] = tool_loop(40, lines=300)
    size = len(json.dumps(messages))
    assert len(report(document(messages, 16_000))) < 1.5 * size


@pytest.mark.strict
def test_a_real_session_of_megabytes_makes_a_report_below_one_and_a_half_times_its_size(transcripts: Path) -> None:
    largest = max((transcripts / "entire-cli-claude-code").glob("*.jsonl"), key=lambda path: path.stat().st_size)
    (talk,) = read_file(largest)
    page = report(replayed(talk, [Setting("window=100000", Compactor(window=100_000))]))
    assert len(page) < 1.5 * largest.stat().st_size
