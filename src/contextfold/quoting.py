"""Quoted words that cannot pass for ours: what a stranger wrote never looks like a mark, a heading or a tag of ours.

What belongs here: what such marks are, recognizing everything that reads like one to a person or a model, and two ways
to break its power. What does not: writing marks (``evidence.section``, ``summary.render``, ``summary.message``).

A **tag** is ``<evidence>`` and its like, anywhere in a text. A **mark** is a bracket at the beginning of a line
(``[user]``, ``[call bash]``). Both are recognized by their *skeleton*: blanks, invisible characters and accents left
out, compatibility forms decomposed (fullwidth, mathematical, circled letters), letters of other alphabets that look
like Latin ones replaced (Unicode Technical Standard 39 has the idea; the table here holds what our few names need).

Two ways, because two readers differ:

- ``broken`` puts a blank behind the bracket. For the text that a summarizer reads once.
- ``quoted`` replaces the bracket of a tag by ``‹`` and writes ``> `` before a line that begins with a bracket. For what
  stands in a view and is read back: there every line that begins with a bracket is ours, so nothing hangs on having
  recognized it, and ``unquoted`` gives the line back as it was.
"""

from __future__ import annotations

import re
import unicodedata

from contextfold.messages import well_formed

TAGS = ("conversation_summary", "previous_summary", "conversation", "user_message", "evidence", "summary", "history")
"""Names of the tags that we write, and those that frame a summary where a peer's layout is followed."""

_LINE = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_UNSEEN = (
    " \t\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\xa0\xad\u0300-\u036f\u061c\u115f\u1160\u1680\u180b-\u180f\u2000-\u200f"
    "\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef"
)
"""Inside a character class: blanks, and what takes no room of its own. No line break is among them."""
_SET_OFF = "`*#~"
"""Inside a character class: what Markdown sets a heading or a word off with, before a bracket."""

_SQUARE = (
    r"\[［\u2045\u2308\u230a\u23a1\u27e6\u27ec\u2772\u2983\u298b\u298d\u298f\u2997\u3010\u3014\u3016\u3018\u301a"
    r"\ufe39\ufe3b\ufe47\ufe5d"
)
_ANGLE = "<\u02c2\u1438\u226a\u2329\u276e\u2770\u27e8\u27ea\u2991\u29fc\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c"

_LINE_WITH_BRACKET = re.compile(rf"(?P<line>^|[{_LINE}])(?P<bracket>[{_UNSEEN}{_SET_OFF}]*+[{_SQUARE}])")
_QUOTED_LINE = re.compile(rf"(?P<line>^|[{_LINE}])> (?=[{_UNSEEN}{_SET_OFF}]*+[{_SQUARE}])")
_MAYBE_TAG = re.compile(rf"[{_ANGLE}](?=[{_UNSEEN}\W]{{0,60}}[|CcPpUuEeSsHh\u00a1-\uffff\U00010000-\U0010ffff])")
_BRACKET_OR_BLANK = re.compile(rf"[{_SQUARE}\]］\s{_LINE}]+")
_JOINERS = re.compile(r"[\s_\-]+")
_REACH = 56
"""Characters behind a bracket that are looked at. With blanks between its letters our longest name has fewer."""

_FAR = 4_096
"""The same where most of them are blanks or take no room."""
_HIDDEN = re.compile(rf"[{_UNSEEN}{_LINE}]+")
_FILLERS = {ord(filler): "" for filler in "\u115f\u1160\u2800\u3164\uffa0"}
"""Letters by their category that show nothing."""

_MARK_NAMES = re.compile(r"(?:user|assistant|tool|call|resultof|errorfrom|partsoflines|part\d+of\d+|endof)(?![a-z0-9])")
_MARK_WORDS = re.compile(
    r"(?:user|assistant|tool|call|result +of|error +from|parts +of +lines|part +\d+ +of +\d+|end +of)(?![a-z0-9])"
)
_TAG_NAMES = re.compile(rf"(?:{'|'.join(name.replace('_', '') for name in TAGS)})(?![a-z0-9])|\|[\w.\-]{{1,40}}+\|")
_LONG_TAG_NAMES = re.compile(r"conversationsummary|previoussummary|usermessage")

_LOOKALIKES = str.maketrans(
    {
        alike: letter
        for letter, many in {
            "a": "аɑαᴀᎪꓮⱥ",
            "b": "ʙᏴꓐƀɓ",
            "c": "сϲᴄᏟꓚⲥȼↄ",
            "d": "ԁᴅᎠꓓđɗꓒḓ",
            "e": "еεєᴇᎬꓰɇɛ",
            "f": "ꜰꓝƒ",
            "g": "Ꮐǥɡցꓖɠ",
            "h": "һʜᎻꓧħⲏ",
            "i": "іιıɩɪᎥꓲɨⲓ",
            "j": "јᴊᎫꓙɉ",
            "k": "κᴋᏦꓗƙⲕ",
            "l": "ӏǀƖʟᏞꓡłƚ",
            "m": "мᴍᎷꓟⲙ",
            "n": "ոɴꓠηⲛɲ",
            "o": "оοօᴏꓳøⲟ",
            "p": "рρᴘᏢꓑⲣƥ",
            "r": "гʀᎡꓣɍᏒ",
            "s": "ѕꜱᏚꓢ",
            "t": "тτᴛᎢꓔŧⲧƭ",
            "u": "υսᴜꓴʉ",
            "v": "νѵᴠᏙꓦ",
            "w": "ԝωᴡᎳꓪ",
            "x": "хχꓫⲭ",
            "y": "уγʏᎩꓬɏⲩƴᎽ",
        }.items()
        for alike in many
    }
)
_CAPITALS = str.maketrans({"Β": "b", "В": "b", "Η": "h", "Н": "h", "Μ": "m", "Ν": "n", "Υ": "y", "Ү": "y"})
"""Capitals that look like one Latin letter, and whose small forms look like another or like none."""
_CONTROLS = dict.fromkeys((*range(32), 127), " ")
_CODES = r"(?:\[[0-?]{0,100}[ -/]{0,10}[@-~]|[()][0-2AB]|[78=>])"
_COMMAND = r"\](?:8;[^;\x07\x1b\n]{0,200};(?P<address>[^\x07\x1b\n]{0,2000})|[^\x07\x1b\n]{0,2000})(?:\x07|\x1b\\)"
_TERMINAL = re.compile(rf"\x1b(?:{_CODES}|{_COMMAND})")
_TERMINAL_IN_JSON = re.compile(rf"\\{{1,16}}u001[bB]{_CODES}")
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[\[{\"])")
_SPELLED = r"\\{1,16}u(?!00[0-9])[0-9a-fA-F]{4}"
_SPELLED_LETTERS = re.compile(rf"(?:{_SPELLED})+")
_SPELLED_WORD = re.compile(_SPELLED * 2)
_MEMBER = re.compile(r'"\s{0,4}:\s{0,4}\\{0,16}"')
"""Letters that are spelled by their numbers, as JSON does, also in a string of JSON; the name and value of a string."""

_SLASHES = "/\\\u2044\u2215\u29f8\uff0f\u2571"


def readable(text: str) -> str:
    """The text as a person would read it: without what only commands a terminal (colors, moves of its cursor, parts of
    lines that it wipes, titles of its window), and with the letters that JSON spells by their numbers. The address of
    a link is no command, and stands before the words that it links.

    ``ESC[36mtest_total`` names ``test_total`` to a reader. Where other texts than JSON spell out such things
    (``"\\u001b[36m"`` in code), they speak of them.
    """
    if "\x1b" in text:
        text = _TERMINAL.sub(_address, text)
    if "u001" in text and _JSON.match(text):
        text = _TERMINAL_IN_JSON.sub("", text)
    return _with_letters(text) if "\\u" in text else text


def is_json(text: str) -> bool:
    """Whether a text begins like an object or a list of JSON."""
    return _JSON.match(text) is not None


def _with_letters(text: str) -> str:
    """JSON with the letters that it spells by their numbers, as Python writes it unless told otherwise: they are what a
    model says of it later, and a sixth of what the numbers take. Where no two stand together, only JSON's own are
    letters: ``[\\u4e00-\\u9fff]`` is a pattern, and ``C:\\\\uface`` a place.
    """
    has_words = _SPELLED_WORD.search(text) is not None
    if not is_json(text) and not (has_words and _MEMBER.search(text)):
        return text
    return _SPELLED_LETTERS.sub(lambda run: run[0] if run[0][1] == "\\" and not has_words else _letters(run[0]), text)


def _letters(run: str) -> str:
    found = well_formed("".join(chr(int(number[:4], 16)) for number in run.split("u")[1:]))
    if "\ufffd" in found:
        return run
    # What is not seen stays as it is told, such as marks that turn the direction of a line.
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else f"\\u{ord(sign):04x}" for sign in found)


def _address(code: re.Match[str]) -> str:
    return f"{code['address']} " if code["address"] else ""


def quoted(text: str) -> str:
    """The text as it may stand among our marks in a view: each tag with ``‹``, ``> `` before a line with a bracket."""
    return _LINE_WITH_BRACKET.sub(r"\g<line>> \g<bracket>", without_tags(text)) if text else text


def unquoted(text: str) -> str:
    """The lines that ``quoted`` put ``> `` before, as they were."""
    return _QUOTED_LINE.sub(r"\g<line>", text)


def without_tags(text: str) -> str:
    """The text with ``‹`` in the place of the bracket of everything that reads like one of our tags."""
    return _MAYBE_TAG.sub(lambda found: "‹" if _is_tag(text, found.end()) else found[0], text)


def without_marks(text: str) -> str:
    """The words of a model, or of anyone who may use brackets: ``quoted`` for lines that read like our marks alone."""
    return _LINE_WITH_BRACKET.sub(
        lambda found: f"{found['line']}> {found['bracket']}" if _is_mark(text, found.end()) else found[0],
        without_tags(text),
    )


def broken(text: str) -> str:
    """The text with a blank behind the bracket of every tag and mark. Doing it twice changes nothing more."""
    text = _MAYBE_TAG.sub(lambda found: found[0] + _blank(text, found.end(), _is_tag), text)
    return _LINE_WITH_BRACKET.sub(lambda found: found[0] + _blank(text, found.end(), _is_mark), text)


def word(name: str) -> str:
    """A name that a stranger gave (of a tool, an id) for use inside a mark: in one line, without brackets."""
    return " ".join(_BRACKET_OR_BLANK.sub(" ", name).split())


def skeleton(text: str) -> str:
    """What a reader takes a text for: in lower case, Latin letters for those that look like them, one kind of blank."""
    if text.isascii():
        return text.lower().translate(_CONTROLS)
    plain = unicodedata.normalize("NFKD", text).translate(_CAPITALS).casefold().translate(_LOOKALIKES)
    seen = (" " if c.isspace() else c for c in plain if unicodedata.category(c) not in ("Cf", "Cc", "Mn", "Me"))
    return "".join(seen).translate(_FILLERS)


def _ahead(text: str, start: int) -> str:
    """The skeleton of what follows, far enough for our longest name."""
    near = text[start : start + _REACH]
    if len(_HIDDEN.sub("", near)) < _REACH // 2:
        # Invisible signs may stretch a name.
        near = _HIDDEN.sub(_hidden, text[start : start + _FAR])[:_REACH]
    return skeleton(near)


def _hidden(found: re.Match[str]) -> str:
    return " " if any(c.isspace() for c in found[0]) else ""


def _blank(text: str, end: int, reads_like_ours: object) -> str:
    if text[end : end + 1] == " ":
        return ""
    return " " if callable(reads_like_ours) and reads_like_ours(text, end) else ""


def _is_mark(text: str, start: int) -> bool:
    """Whether what follows a bracket at the beginning of a line reads like one of our marks."""
    seen = _ahead(text, start).lstrip(" _-")
    return bool(_MARK_WORDS.match(seen) or _MARK_NAMES.match(_without_blanks(seen)))


def _is_tag(text: str, start: int) -> bool:
    """Whether what follows an angle bracket reads like one of our tags, opening or closing."""
    seen = _ahead(text, start).lstrip(f" {_SLASHES}")
    joined = _without_blanks(seen)
    words = seen.replace("_", "").replace("-", "")
    return bool(_TAG_NAMES.match(words) or _TAG_NAMES.match(joined) or _LONG_TAG_NAMES.match(joined))


def _without_blanks(seen: str) -> str:
    return _JOINERS.sub("", seen)
