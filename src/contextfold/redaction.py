"""Secrets taken out of text: what keys, tokens and passwords look like, as one table.

What belongs here: the kinds, and replacing them. What does not: where that is done (all that is told passes
``observe.scrub``; what a summarizer is sent and what an archive gets, with ``Policy(redact=True)``).

The prefixes are those that the services document for their own keys; the rule sets of secret scanners (gitleaks,
detect-secrets) list them too. No scanner is used: they look for what may be a secret and leave judging to people, while
here a word of prose that is taken for one is lost. Every repetition has a limit, so that no text is read twice over.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from contextfold.errors import InputError, shown

REDACTED = "[key]"


class Kind(NamedTuple):
    """A kind of secret. ``pattern``: its group ``keep``, if there is one, stays. ``sample``: a text, and the secret."""

    name: str
    pattern: str
    sample: str
    secret: str


_NAMES = (
    r"(?:pass(?:word|wd|phrase)"
    r"|(?:secret|private|api|access|account|encryption|signing|master)[-_ ]?(?:access[-_ ]?)?key"
    r"|(?:access|auth|refresh|session|bot|api|id|csrf)[-_ ]?token|client[-_ ]?secret|secret|authorization|credential)"
)
_VALUE = r"[^\s'\"`,;}&<>]{4,500}"
_NO_SECRET = r"(?![\[$<{*(]|bearer\b|basic\b|[A-Za-z_]\w{0,60}[.(\[]|(?:none|null|true|false|required|optional)\b)"

KINDS: tuple[Kind, ...] = (
    Kind(
        "prefixed API keys (OpenAI, Anthropic, Groq, xAI, Hugging Face, NVIDIA, GitLab, ...)",
        r"\b(?:sk|rk|pk|gsk|xai|hf|nvapi|glpat|pplx|r8|csk|tvly|dop_v1|shpat|lin_api|PMAK)[-_](?=[\w.…-]{0,80}[\d*])"
        r"[\w*.…-]{6,300}",
        "key sk-ant-api03-AbC_dEf-12345 refused",
        "AbC_dEf-12345",
    ),
    Kind(
        "Hugging Face and Stripe keys",
        r"\bhf_[A-Za-z]{30,60}\b|\b(?:sk|rk|pk)_(?:live|test)_\w{16,200}",
        "token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "abcdefghijklmnopqrstuvwxyz",
    ),
    Kind(
        "AWS access key id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", "id AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"
    ),
    Kind(
        "GitHub token",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255})",
        "remote: ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "16C7e42F292c6912",
    ),
    Kind(
        "Slack token",
        r"\bxox[abeoprs](?:\.xox[bp])?-[\w-]{8,300}|\bxapp-\d-[\w-]{8,300}",
        "xoxb-1234-abcdefGHIJ",
        "abcdefGHIJ",
    ),
    Kind(
        "Slack webhook",
        r"(?P<keep>hooks\.slack\.com/(?:services|workflows)/)[\w/]{10,200}",
        "https://hooks.slack.com/services/T0001/B0001/XXXXyyyy1111",
        "XXXXyyyy1111",
    ),
    Kind(
        "Google API key",
        r"\bAIza[\w-]{20,100}|\bya29\.[\w-]{20,500}|\bGOCSPX-[\w-]{10,100}",
        "AIzaSyA-1234567890abcdefghijklm",
        "SyA-1234567890",
    ),
    Kind(
        "npm, PyPI and SendGrid token",
        r"\bnpm_[A-Za-z0-9]{20,100}|\bpypi-AgE[\w-]{20,500}|\bSG\.[\w-]{10,100}\.[\w-]{10,100}",
        "npm_abcdefghij0123456789abcdefghij012345",
        "abcdefghij0123456789",
    ),
    Kind(
        "Telegram bot token",
        r"\b\d{8,10}:AA[\w-]{30,40}\b",
        "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
        "HdqTcvCH1vGWJxf",
    ),
    Kind(
        "JSON web token",
        r"\beyJ[\w-]{10,1000}\.[\w-]{2,1000}\.[\w-]{0,1000}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "eyJzdWIiOiIxMjM0In0",
    ),
    Kind(
        "private key",
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*+"
        r"(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA",
    ),
    Kind(
        "Bearer credentials",
        r"(?P<keep>\b(?:[Bb]earer|BEARER)\s{1,4})[^\s'\",;}]{4,2000}",
        "Authorization: Bearer abcdef0123456789",
        "abcdef0123456789",
    ),
    Kind(
        "Basic credentials",
        r"(?P<keep>\b(?:[Bb]asic|BASIC)\s{1,4})(?=[A-Za-z0-9+/]{0,200}(?:[a-z][A-Z]|\d|=))[A-Za-z0-9+/]{8,500}={0,2}",
        "authorization: Basic dXNlcjpwYXNzd29yZA==",
        "dXNlcjpwYXNzd29yZA",
    ),
    Kind(
        "name and password in an address",
        # Some write each slash of an address in JSON behind a backslash.
        r"(?P<keep>:(?:\\{0,4}/){2})[^\s/@:'\"]{0,200}:[^\s/'\"]{1,300}(?=@)"
        r"|(?P<keep2>(?<!:)//)[^\s/@:'\"]{0,200}:[^\s/@'\"]{1,300}(?=@)",
        "postgresql://bob:S3cr3t!@host:54x32/db",
        "S3cr3t!",
    ),
    Kind(
        "token in an address",
        r"(?P<keep>:(?:\\{0,4}/){2})[\w.~+-]{20,300}(?=@)",
        "https://0123456789abcdefABCDEF@git.example.com/x",
        "0123456789abcdefABCDEF",
    ),
    Kind(
        "secret in a query",
        r"(?i:(?P<keep>[?&;](?:[\w.-]{0,40}(?:password|passwd|secret|token|signature|credential|api_?key)"
        r"|pwd|pass|key|sig|auth|code)"
        r"=))[^&\s#'\"<>]{3,1000}",
        "postgresql://host/db?user=bob&password=hunter2",
        "hunter2",
    ),
    Kind(
        "named secret in quotes",
        # Behind backslashes, too: a call that writes JSON has it as text inside of its own.
        rf"(?i:(?P<keep>{_NAMES}\\{{0,16}}[\"']?\s{{0,4}}[:=]\s{{0,4}}\\{{0,16}}[\"'])(?!bearer\b|basic\b)"
        r"(?:[^\"'\s\[\\]|\\++(?![\"'])){4,500})",
        '{"db_password": "hunterhunter"}',
        "hunterhunter",
    ),
    Kind(
        "named secret",
        rf"(?i:(?P<keep>{_NAMES}(?: provided)?[\"']?\s{{0,4}}"
        r"(?:=\s{0,4}|:(?=\s{0,4}[^\s'\"]{0,200}[^\sA-Za-z'\".,;]))\s{0,4})"
        rf"{_NO_SECRET}{_VALUE})",
        "export DB_PASSWORD=correcthorse",
        "correcthorse",
    ),
    Kind(
        "password named in another language",
        r"(?i:(?P<keep>(?:passwort|kennwort|contraseña|mot de passe|senha|пароль|密码|密碼|口令|パスワード|비밀번호)"
        r"[\"']?\s{0,4}[:=：]\s{0,4}[\"']?))"
        # A word of prose may follow, so a figure must be in it.
        r"(?=[!-~]{0,200}\d)(?:(?![\"'`,;}&<>\[\\])[!-~]){4,300}",
        "数据库密码：hunter2secret，谢谢",
        "hunter2secret",
    ),
    Kind(
        "cookie",
        # With all pairs of the header: which of them is the session's, its name does not say.
        r"(?P<keep>\b(?:[Ss]et-)?[Cc]ookie[\"']?:\s{0,4}[\"']?[\w.-]{1,80}=)"
        r"(?:[^\s;'\"\\]{8,2000}|[^\s;'\"\\]{0,7}(?=;\s?[\w.-]{1,80}=))(?:;\s?[\w.-]{1,80}=[^\s;'\"\\]{0,2000}){0,50}",
        "Cookie: session=abcdef0123456789; path=/",
        "abcdef0123456789",
    ),
    Kind(
        "name and password of a command",
        r"(?P<keep>\bcurl\s(?:[^\n|;&]{0,200}\s)?(?:-u|--user)[ =]?[\"']?[\w.@+-]{1,80}:)[^\s'\"]{3,300}"
        r"|(?P<keep2>\b(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n|;&]{0,200}\s)?-p)(?!\s|ort\b)[^\s'\"]{4,300}"
        r"|(?P<keep3>\b(?:docker|podman|helm)\s[^\n|;&]{0,80}\blogin\s(?:[^\n|;&]{0,200}\s)?-p\s)[^\s'\"]{4,300}",
        "curl -s -u bob:hunter2secret https://x",
        "hunter2secret",
    ),
    Kind(
        "password of a command",
        r"(?P<keep>(?:^|\s)--?(?:password|passwd|token|api-key|secret)[= ])(?![$<])[^\s'\"]{4,300}",
        "mysql --password hunter22 -u root",
        "hunter22",
    ),
)
"""Searched in this order. The tests hold each to its sample."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], bool], ...]:
    """Compiled when the first secret is looked for: most processes never do."""
    return tuple((re.compile(kind.pattern), "keep" in kind.pattern) for kind in KINDS)


def redact(text: str) -> str:
    """The text with ``[key]`` for every secret of a kind that is known."""
    if not isinstance(text, str):
        raise InputError(f"secrets are taken out of a text, not out of {shown(text)}")
    for pattern, keeps in _patterns():
        text = pattern.sub(_kept if keeps else REDACTED, text)
    return text


def _kept(found: re.Match[str]) -> str:
    return "".join(part or "" for part in found.groupdict().values()) + REDACTED
