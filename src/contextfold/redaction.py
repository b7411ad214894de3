"""Secrets taken out of text: what keys, tokens and passwords look like, as one table.

What belongs here: the kinds, and replacing them. What does not: where that is done (all that is told passes
``observe.scrub``; what a summarizer is sent and what an archive gets, with ``Policy(redact=True)``).

The prefixes are those that the services document for their own keys; the rule sets of secret scanners (gitleaks,
detect-secrets) list them too. No scanner is used: they look for what may be a secret and leave judging to people, while
here a word of prose that is taken for one is lost. Every repetition has a limit: no text is read twice over, and a long
one some at a time, since what a match looks at ends within the ``reach`` of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from contextfold import at_once
from contextfold.errors import InputError, shown

REDACTED = "[key]"


class Kind(NamedTuple):
    """A kind of secret. ``pattern``: its group ``keep``, if there is one, stays. ``sample``: a text, and the secret.
    ``words``: one of them stands near the beginning of each match, in lower case. The pattern searches only what is
    around them, since it takes far longer than to look for a word. ``reach``: the most characters that are looked at
    from the beginning of a match. The tests prove both of each pattern. ``begins``: each match begins with the word.
    Of a kind that reaches far it is tried there alone: to search as far as it reaches, piece by piece, would be to read
    a long text again for each of them.
    """

    name: str
    pattern: str
    sample: str
    secret: str
    words: tuple[str, ...] = ()
    reach: int = 2_100
    begins: bool = False


_NAMES = (
    # With one look at its letter most words are passed over.
    r"(?=[pcsaemrbivf])(?:pass(?:word|wd|phrase)|client-key-data"
    r"|(?:secret|private|api|access|account|encryption|signing|master|subscription|application|functions|auth)"
    r"[-_ ]?(?:access[-_ ]?)?key(?:[-_]?base)?"
    r"|(?:access|auth|refresh|session|bot|api|id|csrf|private|security|vault|subscription)[-_ ]?token"
    r"|client[-_ ]?secret|secret|authorization|credential)"
)
_NAME_WORDS = ("pass", "key", "token", "secret", "authorization", "credential")
"""One of these stands in each of the names."""
_ELSEWHERE = (
    *("passwort", "kennwort", "contraseña", "mot de passe", "senha", "пароль"),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호"),
)
"""What a password is called in other languages."""
_ESCAPED = r"\\(?!\\{0,64}[\"'])"
"""A backslash of a value. Those before a quote are how JSON writes it inside of a string: there the value ends."""
_VALUE = rf"(?:[^\s'\"`,;}}&<>\\]|{_ESCAPED}){{4,500}}"
_WORD = rf"(?:[^\s'\"\\]|{_ESCAPED})"
_OPEN = r"\\{0,16}[\"']?"
_PLACEHOLDER = r"(?i:your[-_](?:[a-z]{1,12}[-_]){0,3}(?:key|token|secret|password)(?:[-_]here)?(?![\w-]))"
"""What examples have in a secret's place."""
_NO_SECRET = (
    rf"(?!{_PLACEHOLDER}|"
    r"[\[$<{*(]|!(?:vault|secret|env\w{0,9}|ref|sub|getatt|importvalue)\b|bearer\b|basic\b"
    r"|[A-Za-z_]\w{0,60}(?:[(\[]|\.\w)|[A-Za-z_]{1,61}\.|\d{1,6}[→\t]"
    r"|(?:none|null|true|false|required|optional|undefined|await|str|string|bytes)\b)"
)

_PASSWORD = r"(?:pass(?:word|wd|phrase)|(?:db|smtp|e?mail|app|root|admin|user|ssh|gmail)[_-]?pass)"
_PROSE = (
    r"(?<![\w-])(?:the|an?|is|are|be|for|to|of|and|or|with|from|in|by|this|that|here|your?|we|not|no|can(?:not)?|must"
    r"|should|at least|characters?|required|please|enter|invalid|incorrect|wrong|missing|empty|optional|example|confirm"
    r"|repeat|forgot\w{0,8}|reset|change|new|current|password|passwords|passwort|das|die|der|ihr|dein|ist|bitte|muss"
    r"|zeichen|eingeben|neues|de|la|le|el|su|tu|mot|passe|senha|sua|wachtwoord|uw|je)(?![\w-])"
)
"""A word that sentences and labels have, and passphrases, whose words are drawn, hardly ever."""

_SIGN = r"[^\s'\"`,;}&<>()\[\]\\]"
_MIXED = rf"(?={_SIGN}{{0,200}}\d)(?={_SIGN}{{0,200}}[A-Za-z])"
"""A digit and a letter: words of prose and code that stand where a secret may stand seldom have both."""

_KEY = (
    r"(?=[A-Za-z]{0,200}[0-9])(?=[0-9]{0,200}[A-Za-z])"
    r"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z0-9]{16,300}+)"
    r"(?=[.,;:!?)\"'`]{0,3}(?:[^!-~]|\\|$))"
)
"""What a key in a sentence looks like: names of files, models and resources have dots, dashes or slashes in them."""

_NO_METHOD = r"(?!(?i:sha|md|base|bcrypt|argon|aes|utf|rsa)[-\d])"
"""Of a password a sentence may say how it is hashed, or written."""

_ASCII_SIGN = r"(?:(?![\"'`,;}&<>\[\\])[!-~])"

_BREAK = r"(?:\s|\\{1,16}[nr]|[>#|│-])"
"""Between the lines of a key: as they are, in JSON, in a quotation or a comparison."""

KINDS: tuple[Kind, ...] = (
    Kind(
        "prefixed API keys (OpenAI, Anthropic, Groq, xAI, Hugging Face, NVIDIA, GitLab, ...)",
        # pk_orders_2024 and sk_v6_rcv_saddr are names of databases and kernels.
        r"\b(?:(?:sk-|rk-|pk-|hf-|r8-|(?:gsk|xai|nvapi|glpat|pplx|csk|tvly|dop_v1|shpat|lin_api|PMAK)[-_])"
        r"(?=[\w.…-]{0,80}[\d*])[\w*.…-]{6,300}|(?:sk_|rk_|pk_|hf_|r8_)(?=\w{0,80}\d)\w{20,300})",
        "key sk-ant-api03-AbC_dEf-12345 refused",
        "AbC_dEf-12345",
        (
            *("sk-", "rk-", "pk-", "hf-", "r8-", "sk_", "rk_", "pk_", "hf_", "r8_", "xai", "nvapi", "glpat", "pplx"),
            *("tvly", "dop_v1", "shpat", "lin_api", "pmak"),
        ),
    ),
    Kind(
        "Hugging Face and Stripe keys",
        r"\bhf_[A-Za-z]{30,60}\b|\b[srp]k_(?:live|test)_\w{16,200}",
        "token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "abcdefghijklmnopqrstuvwxyz",
        ("hf_", "k_live_", "k_test_"),
    ),
    Kind(
        "keys of GitLab's runners, Atlassian, Bedrock, Databricks, Notion, Figma, Shopify, Supabase, Vault, ...",
        r"\b(?:gl(?:(?:ptt|rt|dt|cbt|ft|soat|imt|agent)-[\w.-]{20,300}|sa_\w{30,60}|c_eyJ[\w+/=-]{30,500})"
        r"|A(?:TATT3x[\w=-]{40,400}|TBB[A-Za-z0-9]{24,40}|BSK[A-Za-z0-9+/=]{40,400}|GE-SECRET-KEY-1[0-9A-Z]{50,60})"
        r"|d(?:api[0-9a-f]{32}|o[or]_v1_[0-9a-f]{64}|p\.(?:pt|st|ct|sa)\.[\w.]{30,100})|figd_[\w-]{30,100}"
        r"|s(?:hp(?:ss|ca|pa)_[0-9a-fA-F]{32}|ntry[su]_[\w+/=-]{30,500}|bp_[0-9a-f]{40}|b_secret_[\w-]{20,100}"
        r"|ecret_[A-Za-z0-9]{40,50}\b)|ntn_[A-Za-z0-9]{40,60}\b|hv[sb]\.(?=[\w-]{0,80}\d)[\w-]{24,300}"
        r"|whsec_[\w+/=-]{24,200}"
        r"|p(?:scale_(?:tkn|pw|oauth)_[\w.=-]{32,100}|ul-[0-9a-f]{40}|at[A-Za-z0-9]{14}\.[0-9a-f]{64})"
        r"|f(?:m[12]|o1)_[\w+/=-]{40,500}|HRKU-[\w-]{30,100}|NR(?:AK|II|RA)-[\w-]{20,60}|1//0[\w-]{30,200}"
        r"|ghs_\d{1,20}_eyJ[\w.-]{20,2000}"
        r"|dckr_(?:pat|oat)_[\w-]{24,60}|rubygems_[0-9a-f]{48}|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|pcsk_\w{50,100}"
        r"|tgp_v1_[\w-]{40,60}|e2b_[0-9a-f]{40}|(?<!-)fc-[0-9a-f]{32}\b|sgp_\w{40,80}|sq[apu]_[0-9a-f]{40}"
        r"|LTAI[A-Za-z0-9]{16,24}\b"
        r"|CCIP[AR]T_\w{40,100}|sq0(?:csp|atp)-[\w-]{22,60}|(?<!-)key-[0-9a-f]{32}\b|CLOJARS_[0-9a-f]{60}|(?:nfp"
        r"|vcp)_[\w-]{24,60}"
        r"|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,100}|[0-9a-f]{32}-us\d{1,2}\b|[\w~.-]{3}\dQ~[\w~.-]{31,34})",
        "runner glrt-t1_aZ3kQ9xT7vB2nM5pL8rW",
        "aZ3kQ9xT7vB2nM5pL8rW",
        (
            *("glptt-", "glrt-", "gldt-", "glcbt-", "glft-", "glsoat-", "glimt-", "glagent-", "glsa_", "glc_eyj"),
            *("atatt3x", "atbb", "absk", "dapi", "doo_v1_", "dor_v1_", "dp.pt.", "dp.st."),
            *("dp.ct.", "dp.sa.", "figd_", "shpss_", "shpca_", "shppa_", "sntrys_", "sntryu_", "sbp_", "secret_"),
            *("ntn_", "hvs.", "hvb.", "whsec_", "pscale_", "pul-", "pat", "fm1_", "fm2_", "fo1_", "hrku-", "nrak-"),
            *("nrii-", "nrra-", "1//0", "ghs_", "dckr_", "rubygems_", "lsv2_", "pcsk_", "tgp_v1_", "e2b_", "fc-"),
            *("sgp_", "sqa_", "sqp_", "squ_", "ltai", "ccipr", "sq0csp-", "sq0atp-", "key-", "clojars_", "nfp_"),
            *("vcp_", ".atlasv1.", "-us", "q~"),
        ),
    ),
    Kind(
        "keys of Fireworks, Jina, Tailscale, Vercel, Resend, PostHog, Neon, Mapbox, Voyage, Plaid, Matrix, ...",
        r"\b(?:A(?:Q\.Ab[\w-]{30,200}|TCTT3x[\w=-]{40,400}|KCp[A-Za-z0-9]{69})\b"
        r"|fw_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{22,40}\b|jina_[0-9a-f]{32}[\w-]{20,60}"
        r"|tskey-[a-z]{3,12}-[\w-]{20,120}|lin_oauth_[0-9a-f]{40,100}|dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"
        r"|[st]k\.eyJ[\w-]{20,500}\.[\w-]{20,40}|xkeysib-[0-9a-f]{64}-\w{16}"
        r"|pat-(?:na|eu|ap)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        r"|rpa_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{36,60}\b|napi_(?=[a-z]{0,60}\d)[a-z0-9]{40,80}\b"
        r"|vc[aikr]_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{24,80}\b|re_(?=\w{0,32}\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b"
        r"|ph[xs]_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{40,60}\b|ops_eyJ[\w+/=-]{100,2000}"
        r"|sha256~(?=[A-Za-z-]{0,40}[\d_])[\w-]{43}(?![\w-])|bedrock-api-key-[A-Za-z0-9+/=]{60,4000}"
        r"|GR1348941[\w-]{20,30}|wandb_v1_\w{40,120}|cf(?:ut|at|k)_(?=[A-Za-z_-]{0,60}\d)[\w-]{40,60}(?![\w-])"
        r"|CFPAT-[\w-]{43}|pnu_[A-Za-z0-9]{36}\b|oy2[a-z0-9]{43}\b"
        r"|(?<!-)pa-(?=[a-z\d_-]{0,40}[A-Z])(?=[A-Za-z_-]{0,40}\d)[\w-]{40,50}(?![\w-])"
        r"|tfp_[\w.=-]{40,64}|EZ[AT]K[A-Za-z0-9]{54}\b"
        r"|access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        r"|syt_[A-Za-z0-9+/=]{1,200}_[A-Za-z]{20}_[A-Za-z0-9]{6}\b|m[ac][tr]_[A-Za-z0-9]{30}_[A-Za-z0-9]{6}\b"
        # What stands so inside of encoded data is none.
        r"|(?<![/+=-])EAA(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{80,400}(?![\w/+=-])"
        r"|amzn\.mws\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|amzn1\.oa2-cs\.v1\.[0-9a-f]{64})",
        "fw_3ZaZ3kQ9xT7vB2nM5pL8rW1c",
        "aZ3kQ9xT7vB2nM5pL8rW",
        (
            *("aq.ab", "atctt3x", "akcp", "fw_", "jina_", "tskey-", "lin_oauth_", "dt0", "k.eyj", "xkeysib-"),
            *("pat-", "rpa_", "napi_", "vca_", "vci_", "vck_", "vcr_", "re_", "phx_", "phs_", "ops_eyj"),
            *(
                "sha256~",
                "bedrock-api-key-",
                "gr1348941",
                "wandb_v1_",
                "cfut_",
                "cfat_",
                "cfk_",
            ),
            *("pnu_", "oy2", "amzn.mws.", "amzn1.oa2-cs", "pa-", "tfp_", "ezak", "eztk", "syt_", "mat_", "mar_"),
            *("access-sandbox-", "access-development-", "access-production-", "mct_", "mcr_", "eaa"),
        ),
        4_100,
    ),
    Kind(
        "Discord bot token",
        r"\b(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5,6}[\w-]{2,4}\.[\w-]{6}\.[\w-]{27,45}\b",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.GhIjKl.aZ3kQ9xT7vB2nM5pL8rW0123456",
        "aZ3kQ9xT7vB2nM5pL8rW0123456",
    ),
    Kind(
        "AWS access key id",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        "id AKIAIOSFODNN7EXAMPLE",
        "IOSFODNN7EXAMPLE",
        ("akia", "asia", "abia", "acca"),
    ),
    Kind(
        "GitHub token",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255})",
        "remote: ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "16C7e42F292c6912",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    Kind(
        "Slack token",
        r"\bxox[abcdeoprs](?:\.xox[bp])?-[\w-]{8,300}|\bxapp-\d-[\w-]{8,300}",
        "xoxb-1234-abcdefGHIJ",
        "abcdefGHIJ",
        ("xox", "xapp-"),
    ),
    Kind(
        "Slack and Discord webhook",
        r"(?P<keep>hooks\.slack\.com/(?:services|workflows)/"
        r"|discord(?:app)?\.com/api/webhooks/\d{1,30}/)[\w/-]{10,200}",
        "https://hooks.slack.com/services/T0001/B0001/XXXXyyyy1111",
        "XXXXyyyy1111",
        ("hooks.slack.com/", "/api/webhooks/"),
    ),
    Kind(
        "Google API key",
        r"\bAIza[\w-]{20,100}|\bya29\.[\w-]{20,500}|\bGOCSPX-[\w-]{10,100}",
        "AIzaSyA-1234567890abcdefghijklm",
        "SyA-1234567890",
        ("aiza", "ya29.", "gocspx-"),
    ),
    Kind(
        "npm, PyPI and SendGrid token",
        r"\bnpm_[A-Za-z0-9]{20,100}|\bpypi-AgE[\w-]{20,500}|\bSG\.[\w-]{10,100}\.[\w-]{10,100}",
        "npm_abcdefghij0123456789abcdefghij012345",
        "abcdefghij0123456789",
        ("npm_", "pypi-age", "sg."),
    ),
    Kind(
        "Telegram bot token",
        r"(?<!\d)\d{8,10}:AA[\w-]{30,40}\b",
        "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
        "HdqTcvCH1vGWJxf",
        (":aa",),
    ),
    Kind(
        "JSON web token",
        r"\beyJ[\w-]{10,1000}\.[\w-]{2,1000}\.[\w-]{0,1000}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "eyJzdWIiOiIxMjM0In0",
        ("eyj",),
        3_100,
    ),
    Kind(
        "private key",
        # One that is cut off ends where its lines do: prose, logs and code that name its first line go on behind it.
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----)){0,20000}+-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        rf"|(?:{_BREAK}{{1,8}}[A-Z][\w-]{{2,20}}: [^\n\\]{{1,80}}){{0,4}}"
        # A path that follows ends in a dot or a colon; before a line may stand its file, number or time.
        rf"(?:{_BREAK}{{0,40}}+[A-Za-z0-9+/]{{16,10000}}+={{0,2}}(?![\w.:-])"
        r"|(?:\n|\\{1,16}n)(?:[^\n\\]|\\{1,16}(?:t|u[0-9a-f]{4})){0,80}?[A-Za-z0-9+/]{48,10000}+={0,2}){1,400}+)",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA",
        ("-----begin ",),
        4_700_000,
        begins=True,
    ),
    Kind(
        "private key in base64",
        # A certificate begins in the same way, and stays.
        r"LS0tLS1CRUdJTiB(?:QUklWQVRF|SU0EgUFJJ|FQyBQUklW|PUEVOU1NI|FTkNSWVBU|EU0EgUFJJ|QR1AgUFJJ)[\w+/=-]{16,20000}",
        "tls.key: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB",
        "NSUlFcEFJQkFBS0NBUUVB",
        ("ls0tls1crudjtib",),
        20_100,
        begins=True,
    ),
    Kind(
        "private key of PuTTY",
        rf"(?P<keep>Private-Lines: \d{{1,4}}){_BREAK}{{1,8}}"
        rf"(?:[A-Za-z0-9+/]{{16,10000}}+={{0,2}}{_BREAK}{{0,8}}+){{1,200}}",
        "Private-Lines: 14\nAAAAgQCT2HLZqOBSBwb0Dmm3",
        "AAAAgQCT2HLZqOBSBwb0Dmm3",
        ("private-lines: ",),
        2_100_000,
        begins=True,
    ),
    Kind(
        "Bearer credentials",
        rf"(?P<keep>\b(?:[Bb]earer|BEARER)\s{{1,4}})(?:[^\s'\",;}}\\]|{_ESCAPED}){{4,2000}}",
        "Authorization: Bearer abcdef0123456789",
        "abcdef0123456789",
        ("bearer",),
    ),
    Kind(
        "Basic credentials",
        r"(?P<keep>\b(?:[Bb]asic|BASIC)\s{1,4})(?=[A-Za-z0-9+/]{0,200}(?:[a-z][A-Z]|\d|=))[A-Za-z0-9+/]{8,500}={0,2}",
        "authorization: Basic dXNlcjpwYXNzd29yZA==",
        "dXNlcjpwYXNzd29yZA",
        ("basic",),
    ),
    Kind(
        "other credentials in a header",
        r"(?P<keep>\b[Aa]uthorization[\"']?\s{0,4}[:=]\s{0,4}\\{0,16}[\"']?"
        r"(?:[Tt]oken(?: token=[\"']?)?|[Aa]pi-?[Kk]ey|SSWS"
        rf"|Splunk|GenieKey|Bot|Key|OAuth)\s{{0,4}}(?<=[\s=\"'])){_MIXED}{_SIGN}{{8,2000}}"
        # The hash of a password and of what stands beside it, by which guesses can be tried.
        r"|(?P<keep2>\b[Dd]igest\s[^\n]{0,600}?\bresponse=\\{0,16}[\"']?)[0-9a-f]{32,128}\b",
        "Authorization: token 0123456789abcdef0123",
        "0123456789abcdef0123",
        ("authorization", "digest"),
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
        # & as Go writes it in JSON, and an address inside of an address.
        r"(?i:(?P<keep>(?:[?&;]|\\u0026|%(?:3f|26))(?:[\w.-]{0,40}(?:password|passwd|secret|token|signature"
        r"|credential|api_?key)"
        r"|pwd|pass|key|sig|auth|code)"
        rf"(?:=|%3d)))(?:(?!\\u0026|%26)(?:[^&\s#'\"<>\\]|{_ESCAPED})){{3,1000}}",
        "postgresql://host/db?user=bob&password=hunter2",
        "hunter2",
        ("pass", "pwd", "key", "sig", "auth", "code", "secret", "token", "credential"),
    ),
    Kind(
        "password of several words",
        # In quotes, unless it reads like what a form or a message says; and what Gmail calls an app password.
        rf"(?i:(?P<keep>{_PASSWORD}\\{{0,16}}[\"']?\s{{0,4}}[:=]\s{{0,4}}\\{{0,16}}[\"'])"
        rf"{_NO_SECRET}(?![^\"'\n]{{0,300}}{_PROSE}))"
        r"[!#-&(-;=?-\[\]-z|~]{2,60}(?: [!#-&(-;=?-\[\]-z|~]{1,60}){1,9}(?=\\{0,16}[\"'])"
        rf"|(?P<keep2>(?i:{_PASSWORD})[\"']?\s{{0,4}}[:=]\s{{0,4}})(?!{_PROSE})[a-z]{{4}}(?: [a-z]{{4}}){{3}}(?! ?\w)",
        'DB_PASSWORD="correct horse battery"',
        "correct horse battery",
        ("pass",),
    ),
    Kind(
        "named secret in quotes",
        # Behind backslashes, too: a call that writes JSON has it as text inside of its own.
        # What stands in double quotes ends neither with an apostrophe, nor with one of its own behind a backslash.
        rf"(?i:(?P<keep>{_NAMES}\\{{0,16}}[\"']?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}}(?:(\\{{0,16}}\")|\\{{0,16}}'))"
        rf"(?!bearer\b|basic\b|\[|{_PLACEHOLDER})"
        rf"(?:[^\"'\s\\]|{_ESCAPED}|(?(2)'|(?!))|(?<!\\)(?:\\(?=\")|\\\\(?=\\))\2){{4,500}})",
        '{"db_password": "hunterhunter"}',
        "hunterhunter",
        _NAME_WORDS,
        9_700,
    ),
    Kind(
        "secret of an environment",
        # Up to the blank, with all its signs.
        r"(?P<keep>(?:^|[\s\"']|\\n)[A-Z0-9_]{0,60}(?:PASS(?:WORD|WD|PHRASE)|_PASS|_PWD|SECRET|TOKEN"
        r"|(?:SECRET|PRIVATE|API|ACCESS|ACCOUNT|ENCRYPTION|SIGNING|MASTER)_?(?:ACCESS_)?KEY(?:_BASE)?)=)"
        r"(?![$<{(\[/~.]|[A-Za-z_][\w.]{0,60}[(\[])(?=[^\s\"'`\\]{0,200}\d)(?=[^\s\"'`\\]{0,200}[A-Za-z])"
        r"(?=[^\s\"'`\\]{0,200}[^\w\s\"'`\\])"
        rf"(?:[^\s\"'`\\]|{_ESCAPED}){{6,500}}",
        "\nDB_PASSWORD=p4,ss;w0rd&x",
        "p4,ss;w0rd&x",
        ("pass", "_pwd", "secret", "token", "key"),
    ),
    Kind(
        "named secret",
        rf"(?i:(?P<keep>{_NAMES}(?: provided)?\\{{0,16}}[\"']?\s{{0,4}}"
        r"(?:=\s{0,4}|:(?=\s{0,4}[^\s'\"]{0,200}[^\sA-Za-z'\".,;]))\s{0,4})"
        rf"{_NO_SECRET}{_VALUE})",
        "export DB_PASSWORD=correcthorse",
        "correcthorse",
        _NAME_WORDS,
    ),
    Kind(
        "token, or a short name of a password",
        r"(?P<keep>(?:TOKEN|_PWD|_PASS|_auth)[\"']?\s{0,4}[:=]\s{0,4}[\"']?|APP_KEY=(?:base64:)?"
        r"|(?i:token)\\{0,16}[\"']?\s{0,4}[:=]\s{0,4}\\{0,16}[\"']"
        r"(?=[^\s\"'\\]{20})|\btoken=(?=[^\s&]{20})|[\"'](?:pass|pwd|auth)\\{0,16}[\"']\s{0,4}:\s{0,4}\\{0,16}[\"'])"
        # Addresses of Ethereum name tokens, too, and oauth2 is a way to authenticate.
        rf"{_NO_SECRET}(?![/~.]|0x[0-9a-fA-F]{{40}}\b|(?i:oauth)){_MIXED}{_SIGN}{{6,1000}}",
        "export GITHUB_TOKEN=abc123def456",
        "abc123def456",
        ("token", "pwd", "pass", "auth", "app_key"),
    ),
    Kind(
        "short name of a password",
        rf"(?:(?P<keep>(?<![\w.$-])(?:(?i:pwd?)[\"']?\s?[:=]\s?|(?i:pass)=)[\"']?)"
        rf"|(?P<keep2>(?:^|\n|\\n)\s{{0,20}}(?:[-*]\s)?"
        # Names of tests that pass have no capitals, or say what they are.
        r"[Pp]ass:\s{1,4})(?!(?i:test|case|spec|suite))(?=[^\sA-Z]{0,60}[A-Z])"
        r"(?=[^\sa-z]{0,60}[a-z])(?=[^\s/:]{6,60}(?:\s|\\n|$)))"
        rf"{_NO_SECRET}(?![/~.]|[A-Za-z]:[\\/]){_MIXED}{_SIGN}{{6,200}}"
        # Beside the name of a user it needs no signs.
        r"|(?i:(?P<keep3>(?<![\w.$-])(?:user(?:[ _-]?(?:name|id))?|login|e-?mail)[\"']?\s?[:=]\s?[\"']?"
        r"[^\s\"'\\(){}<>]{1,100}[\"']?(?:[\s,;/|]|\\n){1,6}(?:[-*]\s)?(?:pass|pwd?)[\"']?\s?[:=]\s?[\"']?)"
        rf"{_NO_SECRET}(?![/~.]|[A-Za-z]:[\\/]|\d{{1,3}}\b)){_SIGN}{{4,200}}",
        "login: bob, pass: correcthorse",
        "correcthorse",
        ("pw", "pass"),
    ),
    Kind(
        "password in SQL, in Markdown and code, and of an account",
        # In prose a row is identified by its name.
        r"(?i:(?P<keep>(?:(?-i:\bIDENTIFIED)|(?:['\"`]|\b(?:create"
        r"|alter)\s{1,4}user\s{1,4}(?:if\s(?:not\s)?exists\s)?\S{1,100}"
        r"|\bon\s{1,4}\S{1,100}\s{1,4}to\s{1,4}\S{1,100})\s{1,4}identified)(?: with \w{1,60})? by(?: password)?\s{1,4}'"
        r"|\b(?:with|encrypted|login)\s{1,4}password\s{1,4}'))(?![$<%:{])[^\s'\\]{4,300}"
        # Words of prose may follow, too, so a figure must be in it.
        rf"|(?P<keep2>(?i:{_NAMES}|token)\*{{0,2}}(?:\s{{0,4}}[:=]\*{{0,2}}\s{{0,4}}`|[:：]\*{{2}}\s{{1,4}}"
        rf"|：\s{{0,4}}|(?:\s?[是为為は]\s?|\s(?:is|was)[\s:]{{1,3}})[「『“\"'`]?(?={_KEY}))"
        r"|(?i:(?<![a-z])(?:db|ssh|sudo|su|become|user|smtp|mail|root|admin|ftp|redis|mysql|pg)_?pass"
        r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?))"
        rf"(?!/|\d{{1,9}}\b){_NO_SECRET}(?:{_KEY}|{_MIXED}{_SIGN}{{6,300}})"
        rf"|(?P<keep3>\bauth=\([\"'][^\s\"']{{1,100}}[\"'],\s?[\"'])(?![$<]){_WORD}{{4,300}}"
        r"|(?P<keep4>(?:^|\s|\\n)token:\s)(?=[\w.~+/=-]{0,200}\d)(?=[\w.~+/=-]{0,200}[A-Za-z])"
        r"(?![a-z][a-z0-9]{0,20}[_./-])[\w.~+/=-]{32,2000}",
        "ALTER USER bob WITH PASSWORD 'correcthorse'",
        "correcthorse",
        (*_NAME_WORDS, "identified", "auth=("),
    ),
    Kind(
        "secret beside its name",
        # {"name": "DB_PASSWORD", "value": "..."} of HAR files and Kubernetes, <password>...</password>
        rf"(?i:(?P<keep>\b(?:name|key)\\{{0,16}}[\"']?\s{{0,4}}[:=]\s{{0,4}}\\{{0,16}}[\"']?[\w.-]{{0,60}}?"
        rf"(?:{_NAMES}|token(?!(?:\W|\\n){{0,60}}value\W{{1,40}}\d{{1,9}}\b))"
        r"\\{0,16}[\"']?,?(?:\s|\\n){0,40}\\{0,16}[\"']?value\\{0,16}[\"']?\s{0,4}[:=]\s{0,4}\\{0,16}[\"']?"
        rf"|<[\w:.-]{{0,40}}?{_NAMES}>))(?i:{_NO_SECRET})[^\s'\"`,;}}&<>\\]{{4,1000}}",
        '{"name": "DB_PASSWORD", "value": "correcthorse"}',
        "correcthorse",
        _NAME_WORDS,
    ),
    Kind(
        "secret behind its name in a call",
        # define('DB_PASSWORD', '...'), headers as pairs, and what a browser's agent types: fill("#password", "...")
        rf"(?i:(?P<keep>\(\s{{0,20}}b?\\{{0,16}}[\"'][\w.#-]{{0,60}}?{_NAMES}\\{{0,16}}[\"'],\s{{0,20}}b?\\{{0,16}}[\"']))"
        # A default of what is looked up by a name, or another name.
        rf"{_NO_METHOD}{_NO_SECRET}(?![/~.]|(?i:(?:[a-z]{{1,20}}[_.-]){{0,4}}(?:{_NAMES}|token|oauth)[_-]?\w{{0,3}}[\"'\\]))"
        rf"(?=[^\s\"'`\\]{{0,200}}\d)(?=[^\s\"'`\\]{{0,200}}[A-Za-z])(?:[^\s\"'`\\<>{{}}]|{_ESCAPED}){{6,500}}"
        r"(?=\\{0,16}[\"']\s{0,20}\))",
        "define('DB_PASSWORD', 'hunter2secret');",
        "hunter2secret",
        _NAME_WORDS,
    ),
    Kind(
        "hash of a password",
        r"\$(?:1|5|6|y|2[abxy]|apr1|argon2id?)\$[\w./$=,+-]{20,300}",
        "root:$6$saltsalt$aZ3kQ9xT7vB2nM5pL8rW:19000:0",
        "aZ3kQ9xT7vB2nM5pL8rW",
    ),
    Kind(
        "password named in another language",
        rf"(?i:(?P<keep>(?:{'|'.join(_ELSEWHERE)})"
        r"[\"']?\s{0,4}[:=：]\s{0,4}[\"'「『“]?))"
        # A word of prose may follow, so a figure must be in it.
        rf"(?=[!-~]{{0,200}}\d){_ASCII_SIGN}{{4,300}}",
        "数据库密码：hunter2secret，谢谢",
        "hunter2secret",
        _ELSEWHERE,
    ),
    Kind(
        "password or key in a sentence without blanks",
        r"(?P<keep>(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)(?:\s?(?:现在|現在)?[是为為はがを]\s?"
        r"|[은는이가]\s{0,2})?[「『“\"'`]?)"
        rf"{_NO_METHOD}(?=[!-~]{{0,200}}\d)"
        rf"(?:(?=[!-~]{{0,200}}[A-Za-z]){_ASCII_SIGN}{{6,300}}|\d{{6,20}}(?![!-~]))"
        r"|(?P<keep2>(?:密[钥鑰]|令牌|秘密鍵|(?:API|アクセス|シークレット)キー|シークレット|トークン|인증 ?키|API ?키"
        r"|토큰|токен)"
        r"(?:\s{0,4}[:=：]\s{0,4}|\s?[是为為は]\s?|[은는]\s{0,2})[「『“\"'`]?)"
        rf"(?i:{_NO_SECRET})(?=[!-~]{{0,200}}\d)(?=[!-~]{{0,200}}[A-Za-z]){_ASCII_SIGN}{{8,300}}",
        "登录密码是hunter2secret，谢谢",
        "hunter2secret",
        (
            *(
                "密码",
                "密碼",
                "密钥",
                "密鑰",
                "口令",
                "令牌",
                "秘密鍵",
                "キー",
                "パスワード",
                "シークレット",
                "トークン",
            ),
            *("暗証番号", "비밀번호", "암호", "키", "토큰", "токен"),
        ),
    ),
    Kind(
        "password in a sentence",
        r"(?P<keep>\b(?i:password|passwort|contraseña|mot de passe|senha|пароль)"
        r"\s(?:is|was|ist|lautet|es|est|é)[\s:]{1,3}[\"'`]?)"
        rf"{_NO_METHOD}{_MIXED}{_SIGN}{{6,200}}"
        r"|(?P<keep2>\b(?i:password|passwd)\s?[是为為は]\s?[「『“\"'`]?)"
        rf"{_NO_METHOD}(?=[!-~]{{0,200}}\d)(?=[!-~]{{0,200}}[A-Za-z]){_ASCII_SIGN}{{6,300}}",
        "The password is hunter22.",
        "hunter22",
        ("password", "passwd", "passwort", "contraseña", "mot de passe", "senha", "пароль"),
    ),
    Kind(
        "cookie",
        # With all pairs of the header: which of them is the session's, its name does not say.
        r"(?P<keep>\b(?:[Ss]et-)?[Cc]ookie\\{0,16}[\"']?:\s{0,4}(?:\[\s{0,4})?\\{0,16}[\"']?[\w.-]{1,80}="
        r"|\bcurl\s(?:[^\n|;&]{0,200}?\s)??(?:-b|--cookie)[ =]?\\{0,16}[\"']?[\w.-]{1,80}="
        # A line of a cookie jar, which has a path.
        r"|(?:\t|\\{1,16}t)/[^\s\\]{0,200}(?:\t|\\{1,16}t)(?:TRUE|FALSE)(?:\t|\\{1,16}t)\d{1,20}(?:\t"
        r"|\\{1,16}t)[\w.-]{1,80}(?:\t|\\{1,16}t))"
        r"(?:[^\s;'\"\\]{8,2000}|[^\s;'\"\\]{0,7}(?=;\s?[\w.-]{1,80}=))"
        r"(?:;(?=\s?[\w.-]{1,80}=)|(?<=;)\s|[^\s;'\"\\]){0,8000}",
        "Cookie: session=abcdef0123456789; path=/",
        "abcdef0123456789",
        ("cookie", "curl", "true", "false"),
        10_500,
    ),
    Kind(
        "name and password of a command",
        rf"(?P<keep>\bcurl\s(?:(?:[^\n|;&]|\\\n){{0,200}}?\s)??(?:-[a-zA-Z]{{0,4}}u"
        rf"|--user)[ =]?{_OPEN}[\w.@+-]{{1,80}}:)"
        rf"(?![$<]){_WORD}{{3,300}}"
        rf"|(?P<keep2>\b(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n|;&]{{0,200}}?\s)??-p{_OPEN})"
        rf"(?!\s|ort\b|[$<]){_WORD}{{4,300}}"
        r"|(?P<keep3>\b(?:docker|podman|helm)\s[^\n|;&]{0,80}?\blogin\s(?:[^\n|;&]{0,200}?\s)??-p\s"
        rf"{_OPEN}){_WORD}{{4,300}}"
        rf"|(?P<keep4>\b(?:sshpass\s{{1,4}}-p\s?{_OPEN}|redis-cli\s(?:[^\n|;&]{{0,200}}?\s)??-a\s{{1,4}}{_OPEN}"
        rf"|pass(?:in|out)\s{{1,4}}pass:|sqlplus\s{{1,4}}(?:-\w{{1,9}}\s)?{_OPEN}[\w.]{{1,60}}/|thin:[\w.]{{1,60}}/"
        rf"|login\s{{1,40}}\S{{1,100}}\s{{1,40}}password\s{{1,4}}))(?![$<\[])(?:[^\s'\"@\\]|{_ESCAPED}){{4,300}}",
        "curl -s -u bob:hunter2secret https://x",
        "hunter2secret",
        ("curl", "mysql", "mariadb", "login", "pass", "redis-cli", "sqlplus", "thin:"),
    ),
    Kind(
        "password of a command",
        r"(?P<keep2>(?:^|\s)(?:ENV|ARG|setx|set -g?x|configure set)\s{1,4}[\w.-]{0,60}?"
        rf"(?i:{_NAMES}|token)\s{{1,4}}{_OPEN})(?![$<\[=-]){_WORD}{{4,300}}"
        r"|(?P<keep>(?:^|\s)--?(?!no-)(?:token|(?:[a-z]{1,20}-){0,3}(?:password|passwd|passphrase|api-key"
        r"|secret(?:-key)?))"
        rf"[= ]{_OPEN})(?![$<\[-]){_WORD}{{4,300}}",
        "mysql --password hunter22 -u root",
        "hunter22",
        _NAME_WORDS,
    ),
)
"""Searched in this order. The tests hold each to its sample."""


_SIGNS_OF_SENTENCES = "，。；、！？」』”）】》"
_AMONG_SIGNS = re.compile(r"\\.|\[(?:\\.|[^\]\\])(?:\\.|[^\]\\]){0,200}\]", re.DOTALL)


def _among_signs(pattern: str) -> str:
    """A pattern that also finds what stands among signs of Chinese, Japanese or Korean without a blank, and takes in no
    sentence behind it: letters are those of ASCII, and where a value ends at a blank, a sign of these ends it.
    """

    def replaced(found: re.Match[str]) -> str:
        part = found.group()
        if part[0] == "[":
            part = part.replace("\\w", "A-Za-z0-9_")
            return part.replace("\\s", f"\\s{_SIGNS_OF_SENTENCES}") if part.startswith("[^") else part
        return f"(?a:{part})" if part in ("\\b", "\\w", "\\W") else part

    return _AMONG_SIGNS.sub(replaced, pattern)


_BARE = re.compile(r"(?<!\\)(\\{0,16}\"):\s{0,8}$")


_STEP = 2_048
"""Characters in which words are looked for at once."""
_SEARCHED = 8_192
"""Characters in which a pattern looks for matches at once. Some of them take a microsecond for each."""
_WORD_WITHIN = 320
"""Characters from the beginning of a match in which its kind's word stands."""


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Compiled when the first secret is looked for: most processes never do."""
    return tuple(re.compile(_among_signs(kind.pattern)) for kind in KINDS)


def is_compiled() -> bool:
    """Whether the next secret is looked for without compiling the patterns, which takes near a tenth of a second."""
    return _patterns.cache_info().currsize > 0


def redact(text: str) -> str:
    """The text with ``[key]`` for every secret of a kind that is known."""
    return _parted(text)[0]


def secrets_in(text: str) -> list[str]:
    """What ``redact`` takes out of a text: a part of it that stands alone may look like anything."""
    return _parted(text)[1]


def _parted(text: str) -> tuple[str, list[str]]:
    """The text without its secrets, and these."""
    if not isinstance(text, str):
        raise InputError(f"secrets are taken out of a text, not out of {shown(text)}")
    folded = at_once.folded(text)
    secrets: list[str] = []
    for kind, pattern in zip(KINDS, _patterns(), strict=True):
        parts: list[str] = []
        done = 0
        for start, end in _stretches(folded, kind.words):
            while found := _first(kind, pattern, text, folded, max(start, done), end):
                parts += (text[done : found.start()], _kept(found))
                secrets += _lost(found)
                done = found.end()
        if parts:
            text = "".join((*parts, text[done:]))
            folded = at_once.folded(text)
    return text, secrets


def _lost(found: re.Match[str]) -> Iterator[str]:
    """What of a match does not stay."""
    start, end = found.span()
    for first, last in (*sorted(found.span(name) for name, part in found.groupdict().items() if part), (end, end)):
        if first > start:
            yield found.string[start:first]
        start = last


def _first(kind: Kind, pattern: re.Pattern[str], text: str, folded: str, start: int, end: int) -> re.Match[str] | None:
    """The first match that begins in a stretch. Of what begins behind its end, not all that it looks at is seen."""
    if not kind.begins:
        found = pattern.search(text, start, end + kind.reach)
        return found if found and found.start() < end else None
    (word,) = kind.words
    while (start := folded.find(word, start, end + len(word) - 1)) >= 0:
        if found := pattern.match(text, start, start + kind.reach):
            return found
        start += 1
    return None


def _stretches(folded: str, words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where matches may begin: in front of a word."""
    start = end = 0
    for at in range(0, len(folded), _STEP):
        if not words or any(map(folded[at : at + _STEP + _WORD_WITHIN].__contains__, words)):
            if end < at or end - start >= _SEARCHED:
                if start < end:
                    yield start, end
                start = at
            end = at + _STEP
    if start < end:
        yield start, end


def _kept(found: re.Match[str]) -> str:
    """What stands for a match."""
    kept = "".join(part or "" for part in found.groupdict().values())
    # What stands bare behind a name in quotes is a number of JSON's. Its place takes nothing bare but that.
    bare = _BARE.search(kept)
    return f"{kept}{bare[1]}{REDACTED}{bare[1]}" if bare else kept + REDACTED
