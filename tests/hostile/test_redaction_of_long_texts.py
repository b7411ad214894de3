"""Secrets of long texts: what is found some at a time is what is found in the whole, and others run meanwhile."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.hostile.pattern_facts import ENDLESS, looked_at, word_within
from tests.real_files import files

from contextfold import redaction
from contextfold.at_once import folded
from contextfold.redaction import KINDS, Kind, _kept, _patterns, redact

SAMPLES = [kind.sample for kind in KINDS]
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAA\n" * 12
LONG = [
    *(KEY, f"{KEY}-----END OPENSSH PRIVATE KEY-----", KEY.replace("\n", "\\n"), json.dumps(json.dumps(KEY))),
    *('"password": "', 'DB_PASSWORD="', "https://bob:", "@host", "?token=", "Cookie: sid=", "; theme=", "curl -u bob:"),
    *("hunter22", "aZ3kQ9xT7vB2nM5pL8rW" * 9, "\\" * 3, "\\" * 70, '"', "'", "\n", " ", ";", "x" * 400, "密码是", "。"),
    *(
        "log of build_7 went on\n",
        '{"a": {"b": [1, 2]}}',
        "İ",
        "\ud83d",
        "name: DB_TOKEN\n",
        "value: ",
        "Private-Lines: 9\n",
    ),
]


def in_whole(text: str) -> str:
    """What the patterns find where each searches the whole text."""
    for pattern in _patterns():
        text = pattern.sub(_kept, text)
    return text


def redacted_in_pieces(text: str, step: int, at_once: int) -> str:
    """With pieces of this size, and no kind reaching further than its pattern does."""
    tight = tuple(
        kind._replace(reach=looked_at(pattern.pattern)) for kind, pattern in zip(KINDS, _patterns(), strict=True)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "KINDS", tight)
        patch.setattr(redaction, "_STEP", step)
        patch.setattr(redaction, "_SEARCHED", at_once)
        return redact(text)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_match_looks_further_than_its_kind_says_and_has_its_word_near_its_beginning(kind: Kind) -> None:
    """Each word in its turn is needed, too: else it would only cost time."""
    pattern = _patterns()[KINDS.index(kind)].pattern
    assert looked_at(pattern) <= kind.reach
    if kind.words:
        assert word_within(kind.words, pattern) <= redaction._WORD_WITHIN
    if kind.begins:
        assert word_within(kind.words, pattern) == len(kind.words[0])
    # The others are searched as far as they reach, in each piece again.
    assert kind.begins or kind.reach <= 2 * redaction._SEARCHED
    for word in kind.words:
        assert word == folded(word)
        assert word_within([one for one in kind.words if one != word], pattern) == ENDLESS, word


@given(
    st.lists(st.sampled_from([*SAMPLES, *LONG]), max_size=40).map("".join),
    st.integers(1, 90),
    st.integers(1, 300),
)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_found_some_at_a_time_is_what_is_found_in_the_whole(text: str, step: int, at_once: int) -> None:
    assert redacted_in_pieces(text, step, at_once) == in_whole(text)


AS_LONG_AS_IS_READ = [
    *("AKIA" + "A" * 17, "github_pat_" + "a" * 256, "sk-" + "a1" * 152, "https://bob:" + "a" * 300 + "@host"),
    *("Bearer " + "a" * 2_001, "token=" + "a1" * 600, "DB_PASSWORD=" + "a1" * 260),
]
"""More of each would be another match, or none: what is searched must go on for as long behind its beginning."""


@pytest.mark.parametrize("behind", [0, 1, 2, 7, 20, 49, 63])
def test_what_begins_behind_a_piece_is_read_to_its_end(behind: int) -> None:
    for secret in AS_LONG_AS_IS_READ:
        text = " " * (64 + behind) + secret
        assert redacted_in_pieces(text, 64, 64) == in_whole(text)


def test_secrets_of_real_conversations_are_what_is_found_in_the_whole(transcripts: Path) -> None:
    planted = ["", *SAMPLES, KEY]
    for number, path in enumerate(files(transcripts, "*/*.json*")[::29]):
        text = path.read_text(encoding="utf-8", errors="replace")[:60_000]
        secret = planted[number % len(planted)]
        text = secret.join(text[at : at + 7_000] for at in range(0, len(text), 7_000))
        assert redact(text) == in_whole(text)


LENGTH = 300_000
LINE = '2026-03-01T12:00:01Z worker-7 GET /api/users/77?page=3 200 913ms {"id": 7}'
AT_MOST = 0.020
"""Seconds. A frame of a film."""
TRIES = 2
"""A thread may be slowed down by what runs beside it."""
FULL_OF_WORDS = 'took refreshUserToken 913ms, key: next, true, cookie "name": api_key, pass token\n'


LONG_TEXTS = {
    "log": lambda: f"{LINE}\n" * (LENGTH // 75),
    "one line": lambda: LINE * (LENGTH // 74),
    "full of words": lambda: FULL_OF_WORDS * (LENGTH // 80),
    "full of secrets": lambda: f"{LINE} DB_PASSWORD=hunter22 {SAMPLES[0]}\n" * (LENGTH // 140),
    "full of words in Chinese": lambda: (
        "刷新令牌 token 已过期，密码：请联系管理员，key 在配置里 cookie。\n" * (LENGTH // 40)
    ),
    "JSON": lambda: json.dumps({f"api_key_{n}": f"value of {n}" for n in range(LENGTH // 35)}),
    "a key without an end": lambda: f"-----BEGIN PRIVATE KEY-----\n{'aZ3kQ9xT' * (LENGTH // 8)}",
    "first lines of keys": lambda: "certs/w.pem:-----BEGIN RSA PRIVATE KEY-----\n" * (LENGTH // 45),
    "one word": lambda: "password" * (LENGTH // 8),
    "backslashes behind a name": lambda: 'password="' + "\\" * LENGTH,
    "letters": lambda: "a" * LENGTH,
}


def longest_hold(text: str) -> float:
    """Seconds of CPU time of the longest call of a function written in C: others run between two of them."""
    held, began = [0.0], [0.0]

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "c_call":
            began[0] = time.thread_time()
        elif event == "c_return":
            held[0] = max(held[0], time.thread_time() - began[0])

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(look)
    try:
        redact(text)
    finally:
        sys.setprofile(before)
        gc.enable()
    return held[0]


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_others_run_while_secrets_are_taken_out_of_a_long_text(name: str) -> None:
    redact("")  # compiles
    text = LONG_TEXTS[name]()
    assert min(longest_hold(text) for _ in range(TRIES)) <= AT_MOST
