"""The page in real browsers: what a reader does with it, and what a hostile transcript does not do to it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from talks import document, tool_loop

from contextfold.inspector.page import report

MESSAGES = tool_loop(24)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of one setting, as a file."""
    return written(tmp_path_factory.mktemp("page") / "one.html", document(MESSAGES))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("page") / "two.html", document(MESSAGES, 3_000, 6_000))


def written(path: Path, made: dict[str, Any]) -> str:
    path.write_bytes(report(made))
    return path.as_uri()


def visible_rows(browser: Browser, panel: str) -> list[int]:
    """The messages whose rows can be seen in a panel."""
    found: list[int] = browser.js(
        f"[...document.querySelectorAll('.panel.{panel} .row[data-index]')].filter((row) => {{"
        " const box = row.getBoundingClientRect(), outer = row.closest('.scroller').getBoundingClientRect();"
        " return box.bottom > outer.top + 1 && box.top < outer.bottom - 1; })"
        ".map((row) => Number(row.dataset.index)).sort((a, b) => a - b)"
    )
    return found


def test_a_report_opens_from_disk_and_asks_no_one_for_anything(browser: Browser, page: str) -> None:
    browser.open(page)
    assert "26 messages" not in browser.text(".facts")
    assert f"{len(MESSAGES)} messages" in browser.text(".facts")
    assert browser.text("h1") == "made.json"
    assert browser.count(".chart canvas") == 1
    assert [url for url in browser.requests if not url.startswith(("file:", "about:", "data:"))] == []
    assert browser.problems == []


def test_the_slider_chooses_the_moment_and_all_below_follows(browser: Browser, page: str) -> None:
    browser.open(page)
    made = browser.js("inspector.model.document.runs[0].requests.index")
    browser.js("document.querySelector('.slider input').focus()")
    browser.press("ArrowLeft", "ArrowLeft")
    moment = browser.js("inspector.moment")
    assert moment == len(made) - 3
    assert f"Request {moment + 1}" in browser.text(".moment")
    browser.js(
        "(() => { const slider = document.querySelector('.slider input'); slider.value = 0;"
        " slider.dispatchEvent(new Event('input')); })()"
    )
    browser.frame()
    assert browser.js("inspector.moment") == 0
    assert browser.js("inspector.views[0].items") == [0, 1], "before the first answer there are two messages"
    later = browser.js("document.querySelector('.panel.history .row[data-index=\"2\"]').className")
    assert "fate-later" in later
    assert "now" in later


def test_the_keyboard_goes_from_compaction_to_compaction(browser: Browser, page: str) -> None:
    browser.open(page)
    at = browser.js("inspector.run.compactions.map((found) => found.at)")
    browser.js("inspector.setMoment(0)")
    for expected in at[:3]:
        browser.press("n")
        assert browser.js("inspector.moment") == expected
    assert "Compaction 3" in browser.text(".moment")
    browser.press("p")
    assert browser.js("inspector.moment") == at[1]
    assert browser.count(".panel.view .row.summary") == 1


def test_each_message_says_its_fate_by_color_sign_and_word(browser: Browser, page: str) -> None:
    browser.open(page)
    fates = browser.js("inspector.state.fates.slice(0, inspector.until)")
    gone = next(index for index, fate in enumerate(fates) if fate == "summarized")
    browser.js(f"inspector.toMessage({gone})")
    browser.frame()
    row = f'.panel.history .row[data-index="{gone}"]'
    assert "≡" in browser.text(f"{row} .why")
    assert "summarized · covered by the summary" in browser.text(f"{row} .why")
    bar = browser.js(f"getComputedStyle(document.querySelector('{row} .bar')).backgroundColor")
    assert bar == "rgb(204, 121, 167)"
    counts = browser.js("inspector.run.counts(inspector.moment, inspector.until)")
    assert counts["summarized"] == fates.count("summarized")


def test_the_keyboard_goes_through_messages_of_a_fate(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.press("d")
    assert "No message is dropped" in browser.text(".status")
    browser.press("s")
    first = browser.js("inspector.selected")
    browser.press("s")
    assert browser.js("inspector.selected") > first
    assert browser.js("inspector.selected") in visible_rows(browser, "history")


def test_a_quoted_line_leads_to_its_origin_and_back(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.js("inspector.toCompaction(-1)")
    browser.js("(inspector.views[0].list.root.scrollTop = 0, inspector.toSummaryRow(5))")
    browser.frame()
    browser.js("document.querySelector('button.quote[data-place=\"5\"]').click()")
    browser.frame()
    origin = browser.js("inspector.model.line(inspector.state.summary.evidence[5]).origin")
    assert browser.js("inspector.selected") == origin
    browser.wait(f"[...document.querySelectorAll('.panel.history .row.selected')].length === 1 && {origin} !== null")
    assert origin in visible_rows(browser, "history")
    assert browser.count(f'.panel.history .row[data-index="{origin}"] .quoted') > 0
    browser.js(f"document.querySelector('.panel.history .row[data-index=\"{origin}\"] button.quotes').click()")
    browser.frame()
    quote = browser.js("inspector.quote.place")
    line = browser.wait(
        f"(() => {{ const box = document.querySelector('[data-place=\"{quote}\"]')?.getBoundingClientRect();"
        " return box && [box.top, box.bottom]; })()"
    )
    assert 0 < line[0] < 900, "the line is in sight again"


def test_search_finds_messages_and_summaries_and_goes_there(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.press("/")
    browser.type("module_017.py")
    browser.press("Enter")
    browser.wait("inspector.searching.hits.length && inspector.searching.current >= 0")
    hits = browser.js("inspector.searching.hits.map((hit) => hit.kind)")
    assert hits.count("message") >= 2
    index = browser.js("inspector.searching.hits[0].index")
    assert index in visible_rows(browser, "history")
    assert browser.count(f'.panel.history .row[data-index="{index}"] mark') > 0
    browser.press("Enter")
    assert browser.js("inspector.searching.current") == 1
    browser.press("Escape", "Escape")
    assert browser.js("inspector.searching.input.value") == ""
    assert browser.count("mark") == 0


def test_search_finds_what_only_a_summary_says(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.press("/")
    browser.type("tool results")
    browser.press("Enter")
    browser.wait("inspector.searching.hits.length && inspector.searching.current >= 0")
    assert browser.js("inspector.searching.hits[0].kind") == "prose"
    assert browser.js("inspector.moment") == browser.js("inspector.run.compactions[0].at")
    browser.press("Escape", "Escape")


def test_what_was_needed_and_gone_is_marked_where_it_was_used(browser: Browser, tmp_path: Path) -> None:
    made = document(MESSAGES)
    run = made["runs"][0]
    last = len(run["requests"]["index"]) - 2
    run["needs"] = [[last, "a-name-that-was-lost", 3, 4_000, "lost"]]
    run["needed"]["lost"] = 1
    browser.open(written(tmp_path / "lost.html", made))
    browser.js("inspector.setMoment(0)")
    browser.press("m")
    assert browser.js("inspector.moment") == last
    used = run["requests"]["index"][last]
    assert "a-name-that-was-lost" in browser.text(f'.panel.history .row[data-index="{used}"] .needs')
    browser.js(f"document.querySelector('.panel.history .row[data-index=\"{used}\"] .needs button').click()")
    browser.frame()
    assert "was needed again" in browser.text('.panel.history .row[data-index="3"] .needs')
    assert "needed name" in browser.text(".moment")


def test_tool_outputs_fold_and_unfold(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.js("inspector.toMessage(3)")
    browser.frame()
    row = '.panel.history .row[data-index="3"]'
    assert "handler_000_20" not in browser.text(row)
    browser.js(f"document.querySelector('{row} button.fold').click()")
    browser.frame()
    assert "handler_000_20" in browser.text(row)
    browser.press("f")
    assert browser.js("inspector.foldOutputs") is False
    browser.js("inspector.toMessage(5)")
    browser.frame()
    assert "handler_001_20" in browser.text('.panel.history .row[data-index="5"]')


def test_what_has_the_focus_keeps_it_where_its_row_is_rendered_again(browser: Browser, page: str) -> None:
    browser.open(page)
    focused = "document.activeElement.closest('.row')?.dataset.index"
    browser.js("document.querySelector('.panel.history .row button.fold').focus()")
    before = browser.js(focused)
    assert before is not None
    browser.js("document.activeElement.click()")
    browser.frame()
    assert browser.js(focused) == before
    # As a session that is followed does it.
    browser.js("inspector.update(inspector.model.document)")
    browser.frame()
    assert browser.js(focused) == before
    assert browser.js("document.activeElement.className") == "fold"


def test_a_conversation_of_a_hundred_thousand_requests_has_its_timeline(browser: Browser, tmp_path: Path) -> None:
    """A browser takes no so many arguments of a function."""
    made = document(tool_loop(2))
    (run,) = made["runs"]
    run["requests"] = {name: [*values, *values[-1:] * 100_000] for name, values in run["requests"].items()}
    for paid in run["money"].values():
        paid.update({name: [*values, *values[-1:] * 100_000] for name, values in paid.items()})
    browser.open(written(tmp_path / "long.html", made))
    assert browser.count(".chart canvas") == 1
    assert browser.problems == []


def test_two_settings_stand_side_by_side(browser: Browser, compared: str) -> None:
    browser.open(compared)
    assert browser.count(".panel.view") == 2
    browser.js("inspector.toCompaction(-1)")
    browser.frame()
    assert browser.text(".panel.view-0 h2").split() == ["A", "window=3000"]
    first, second = browser.js("inspector.views.map((view) => view.items.filter(Number.isInteger).length)")
    assert first != second
    sizes = browser.js("inspector.model.runs.map((run) => run.requests.view[inspector.moment])")
    assert f"{sizes[0]:,}" in browser.text(".stats")
    assert f"{sizes[1]:,}" in browser.text(".stats")
    browser.press("a")
    assert browser.js("inspector.run.name") == "window=6000"
    assert browser.count(".panel.history .row .bar:nth-child(2)") > 0
    browser.resize(1024, 768)
    assert browser.js("getComputedStyle(document.querySelector('.view-0')).display") == "none"
    browser.resize(1440, 900)


def test_buttons_without_room_for_their_words_have_them_for_a_screen_reader(browser: Browser, compared: str) -> None:
    """Beside a second setting, or in a narrow window, the fates' buttons showed a sign and a number."""
    for width in (1440, 1024, 390):
        browser.resize(width, 800)
        browser.open(compared)
        names = browser.js(
            "[...document.querySelectorAll('.fates button')].map((button) => [...button.children]"
            ".filter((one) => one.ariaHidden !== 'true' && one.checkVisibility())"
            ".map((one) => one.innerText).join(' '))"
        )
        assert [name.split()[0] for name in names] == ["kept", "pinned", "shortened", "summarized", "dropped"]
        assert browser.out_of_window() == []
    browser.resize(1440, 900)


def test_a_narrow_window_or_a_large_zoom_pushes_nothing_out_of_it(browser: Browser, page: str, compared: str) -> None:
    """320 pixels are those of a window of 1,280 at a zoom of 400 % (WCAG 2.2, 1.4.10)."""
    for address in (page, compared):
        browser.open(address)
        for width in (320, 390, 760):
            browser.resize(width, 900)
            browser.frame()
            assert browser.out_of_window() == [], width
    browser.resize(1440, 900)


def test_a_shortened_message_shows_its_cut_on_both_sides(browser: Browser, tmp_path: Path) -> None:
    long = tool_loop(8)
    long[3]["content"] = "\n".join(f"line {number} of a log that is long" for number in range(1_000))
    browser.open(written(tmp_path / "cut.html", document(long, 4_000)))
    browser.js("inspector.toCompaction(-1)")
    browser.js("inspector.setMoment(inspector.run.states.find((state) => state.changed.length).from)")
    browser.frame()
    index = browser.js("[...inspector.state.changes.keys()][0]")
    browser.js(f"(inspector.open.set('history:{index}:0', 50000), inspector.toMessage({index}))")
    browser.frame()
    assert browser.count(f'.panel.history .row[data-index="{index}"] .cut') > 0
    browser.js(f"(inspector.open.set('view0:{index}:0', 50000), inspector.views[0].list.refresh())")
    browser.frame()
    assert browser.count(f'.panel.view .row[data-index="{index}"] .instead') > 0


def test_what_was_recalled_stands_behind_the_message_that_asked(browser: Browser, tmp_path: Path) -> None:
    made = document(MESSAGES)
    state = made["runs"][0]["states"][-1]
    last, until = (made["runs"][0]["requests"][name][-1] for name in ("state", "index"))
    assert made["runs"][0]["states"][last] is state
    noted = {"after": until - 1, "text": "[tool] handler_003_total = 3", "indices": [9], "reason": "handler_003_total"}
    state["recalled"] = [{**noted, "request": len(made["runs"][0]["requests"]["index"]) - 1, "tokens": 12}]
    browser.open(written(tmp_path / "recalled.html", made))
    assert "handler_003_total = 3" in browser.text(".panel.view .row.recalled")
    browser.js("document.querySelector('.panel.view .row.recalled button.link').click()")
    assert browser.js("inspector.selected") == 9
    browser.press("ArrowLeft")
    assert browser.count(".panel.view .row.recalled") == 0, "it was not there before"


def test_both_color_schemes_are_readable(browser: Browser, page: str) -> None:
    """Contrast of text and its quieter kind against their card: at least 4.5, and 3 for signs."""
    browser.open(page)
    for theme in ("light", "dark"):
        browser.js(f"(inspector.theme = '{theme}', inspector.applyTheme())")
        ratios = browser.js(CONTRASTS)
        assert min(ratios["text"].values()) >= 4.5, (theme, ratios)
        assert min(ratios["signs"].values()) >= 3, (theme, ratios)
    browser.js("(inspector.theme = 'auto', inspector.applyTheme())")


CONTRASTS = """(() => {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return found;
  };
  const light = (name) => {
    const [r, g, b] = rgb(name).map((c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const against = (names, ground) =>
    Object.fromEntries(names.map((name) => [`${name} on ${ground}`, ratio(name, ground)]));
  return {
    text: {
      ...against(["text", "muted", "accent", "good", "bad"], "card"),
      ...against(["text", "muted"], "sunken"),
      ...against(["cut-text"], "cut"),
      ...against(["hit-text"], "hit"),
    },
    signs: against(["kept", "pinned", "shortened", "summarized", "dropped"], "card"),
  };
})()"""


def test_nothing_moves_for_those_who_asked_for_less_motion(page: str) -> None:
    held = Path(page.removeprefix("file://")).read_text(encoding="utf-8")
    assert "prefers-reduced-motion: reduce" in held


# ---- how fast it is ----


@pytest.mark.strict
def test_a_report_of_a_thousand_messages_is_there_within_a_second_and_scrolls(browser: Browser, tmp_path: Path) -> None:
    messages = tool_loop(498, lines=12)
    assert len(messages) == 1_000
    page = written(tmp_path / "thousand.html", document(messages, 16_000))
    browser.open(page)
    shown = shown_after(browser, page)
    assert shown[0] < 1_000, "milliseconds to the first paint"
    assert shown[1] < 1_000, "milliseconds until the conversation is there"
    frames = sorted(browser.js(SCROLLED))
    assert frames[len(frames) // 2] < 34, "two frames of a screen"
    assert browser.count(".panel.history .row") < 60, "only what can be seen is in the page"


def shown_after(browser: Browser, page: str) -> list[float]:
    """Milliseconds to the first paint, and until the conversation is there."""
    for patience in (5, 5, 15):  # on a busy machine, Firefox now and then forgets to note the paint
        browser.open(page)
        browser.wait("performance.getEntriesByName('contextfold-shown')[0]")
        with contextlib.suppress(AssertionError):
            browser.wait("performance.getEntriesByName('first-contentful-paint')[0]", patience)
            break
    return browser.js(
        "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
        " performance.getEntriesByName('contextfold-shown')[0].startTime]"
    )


SCROLLED = """(async () => {
  const list = inspector.history.root;
  list.scrollTop = 0;
  const times = [];
  for (let last = performance.now(), frame = 0; frame < 200; frame++) {
    list.scrollTop += 120;
    await new Promise((done) => requestAnimationFrame(done));
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
})()"""


# ---- hostile transcripts ----

MARKUP = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'><svg onload='window.hacked = 1'>",
    "<style>* { display: none !important }</style><link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<iframe src='http://127.0.0.1:9/'></iframe><base href='http://127.0.0.1:9/'>",
    "javascript:window.hacked=1 {{constructor.constructor('window.hacked=1')()}}",
]
BIDI = "safe \u202e\u2066 txt.exe \u2069 \u200f العربية עברית \u0007\u001b[31m"
ZALGO = "Z" + "\u0351\u0357\u0343" * 400


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", "‹U+202E›"),
        ("".join(chr(0xE0000 + ord(sign)) for sign in "run"), "‹U+E0072›‹U+E0075›‹U+E006E›"),
        ("\ufe01\ufe0f\U000e0101", "‹U+FE01›‹U+FE0F›‹U+E0101›"),
        ("\u200b\u200c\u200b\u200c", "‹U+200B›‹U+200C›‹U+200B›‹U+200C›"),
        ("\u3164\u2063", "‹U+3164›‹U+2063›"),
    ],
    ids=["reordered", "tags", "variation selectors", "joiners", "fillers"],
)
def test_what_would_be_read_by_a_model_and_seen_by_no_one_is_shown_by_its_signs_names(
    browser: Browser, tmp_path: Path, hidden: str, shown: str
) -> None:
    """In a text as in the names of tools and speakers, and emoji stay what they are."""
    messages = tool_loop(2)
    messages[1] |= {"content": f"see{hidden} ❤️ 👩‍💻", "name": f"ada{hidden}"}
    messages[2]["tool_calls"][0]["function"]["name"] = f"read{hidden}"
    browser.open(written(tmp_path / "hidden.html", document(messages, 12_000)))
    browser.js("inspector.toMessage(1)")
    browser.frame()
    row = browser.text('.panel.history .row[data-index="1"]')
    assert f"see{shown} ❤️ 👩‍💻" in row
    assert f"ada{shown}" in row
    assert f"read{shown}" in browser.text('.panel.history .row[data-index="2"]')


@pytest.mark.parametrize("longest", [300_000, pytest.param(10_000_000, marks=pytest.mark.strict)])
def test_a_hostile_transcript_runs_nothing_and_breaks_no_layout(browser: Browser, tmp_path: Path, longest: int) -> None:
    messages = tool_loop(16)
    nasty = "\n".join([*MARKUP, BIDI, ZALGO])
    messages[0]["content"] = nasty
    messages[1]["content"] = nasty
    messages[3]["content"] = "x" * longest
    for message in messages[4:]:
        if message["role"] == "tool":
            message["content"] = f"{nasty}\n{message['content']}"
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = "<b onmouseover=alert(1)>"
            call["function"]["arguments"] = json.dumps({"<script>": nasty})
    made = document(messages, 12_000)
    made["source"]["name"] = MARKUP[0]
    browser.open(written(tmp_path / "hostile.html", made))
    for index in (0, 1, 3, 5, len(messages) - 1):
        browser.js(f"inspector.toMessage({index})")
        browser.frame()
    browser.press("n", "p", "f")
    browser.press("/")
    browser.type("onerror")
    browser.press("Enter")
    browser.wait("inspector.searching.hits.length")
    browser.press("Escape", "Escape")
    assert browser.js("window.hacked ?? null") is None
    assert browser.count("#app script, #app img, #app iframe, #app link, #app base, #app style, #app svg") == 0
    assert [url for url in browser.requests if not url.startswith(("file:", "about:", "data:"))] == []
    assert browser.problems == []
    wide = browser.js("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], "nothing pushes the page wider than the window"
    overflowing = browser.js(
        "[...document.querySelectorAll('.row')].filter((row) => row.scrollWidth > row.clientWidth + 1).length"
    )
    assert overflowing == 0
    browser.js("inspector.toMessage(1)")
    browser.frame()
    shown = browser.text('.panel.history .row[data-index="1"]')
    assert "\u202e" not in shown
    browser.js("(inspector.open.set('history:1:0', 50000), inspector.history.refresh())")
    browser.frame()
    assert "‹U+202E›" in browser.text('.panel.history .row[data-index="1"]')
    kept = browser.js("Math.max(...[...document.querySelectorAll('.text')].map((text) => text.textContent.length))")
    assert kept < 60_000, "a line of 10 MB is shown page by page"
