"""Write an example session: an agent finds out why a billing service refuses invoices, and mends it.

    python examples/make_session.py build/session.json

The file is one OpenAI chat request: ``{"model": ..., "tools": [...], "messages": [...]}``, about 80,000 tokens in
83 messages. The story is told in ``tell``. What the tools answer is made up from the small word lists and templates
above it, with a seeded generator, so that every run writes the same bytes.

Why it makes a good example: what is said in the first minutes is needed in the last ones. The user forbids to write to
``ledger_entries``, the staging database listens on port 55432, invoice INV-2031-118731 is the one that fails, and the
agent decides to round each line half to even. The user asks for all of that at the end, when the messages that said so
lie some 60,000 tokens back, under listings, logs, tables and test runs.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOUNS = ["invoice", "line", "total", "tax", "discount", "customer", "payment", "credit", "period", "currency", "batch"]
VERBS = ["load", "resolve", "collect", "apply", "check", "merge", "round", "split", "render", "publish", "reconcile"]
CITIES = ["Lisbon", "Turku", "Graz", "Nantes", "Leeds", "Osaka", "Bergen", "Porto", "Ghent", "Malmo", "Trieste"]
TRADES = ["Optics", "Timber", "Foods", "Logistics", "Ceramics", "Marine", "Textiles", "Robotics", "Paper", "Seeds"]
GOODS = ["pallet", "crate", "sample", "hour"]
STATES = ["issued", "paid", "paid", "paid", "overdue", "draft", "issued"]
WORKERS = ["web-1", "web-2", "worker-a", "worker-b", "scheduler"]
ROUTES = ["/v2/invoices", "/v2/invoices/preview", "/v2/credit-notes", "/v2/customers", "/internal/batches", "/health"]

FAILING = "INV-2031-118731"
SYSTEM = """You are a software engineer with access to one repository and its staging environment through tools.
Read before you write. Run the tests after each change. Say what you found in a sentence or two, then go on.
Never print secrets. When the user states a constraint, hold it until the user lifts it."""

BODIES = [
    """    rows = [row for row in {a} if row.state != "draft"]
    if not rows:
        raise Empty{B}Error(f"no {b} for {{{a}!r}}")
    return {B}(rows=tuple(rows), created=clock.now())""",
    """    grouped: dict[str, list[{B}]] = defaultdict(list)
    for item in {a}:
        grouped[item.{b}_id].append(item)
    return {{key: merge_{b}(items) for key, items in sorted(grouped.items())}}""",
    """    amount = Decimal({a}.net) * {a}.rate / Decimal(100)
    if amount.is_signed() and not {a}.is_credit:
        log.warning("negative {b} on %s: %s", {a}.id, amount)
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)""",
    """    with session.begin() as transaction:
        {b} = transaction.get({B}, {a}.{b}_id, with_for_update=True)
        {b}.version += 1
        transaction.flush()
    bus.publish("{b}.changed", id={b}.id, version={b}.version)
    return {b}""",
    """    try:
        response = client.get(f"/{b}s/{{{a}.id}}", timeout=settings.{b}_timeout)
        response.raise_for_status()
    except httpx.TimeoutException as error:
        raise {B}Unavailable({a}.id) from error
    return {B}.model_validate(response.json())""",
]


class Session:
    """The messages so far, and the two ways in which they grow."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self._calls = 0

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def say(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def act(self, thought: str, *steps: tuple[str, dict[str, Any], str]) -> None:
        """One assistant message that makes the calls of ``steps`` (name, arguments, output) side by side."""
        calls, results = [], []
        for name, arguments, output in steps:
            self._calls += 1
            call_id = f"call_{self._calls:04d}"
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls.append({"id": call_id, "type": "function", "function": function})
            results.append({"role": "tool", "tool_call_id": call_id, "content": output})
        self.messages += [{"role": "assistant", "content": thought, "tool_calls": calls}, *results]


class Tools:
    """What the tools of the story answer. ``seed`` decides every made-up detail."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def clock(self, seconds: int) -> str:
        """The time of day, ``seconds`` after nine o'clock of the morning in question."""
        milliseconds = self._random.randrange(1000)
        return f"2031-03-11T{9 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}Z"

    def customer(self) -> str:
        return f"{self._random.choice(CITIES)} {self._random.choice(TRADES)}"

    def hexadecimal(self, digits: int = 12) -> str:
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def source(self, path: str, functions: int = 9, inject: str = "") -> str:
        """A Python module with numbered lines, as a reading tool shows it."""
        lines = [f'"""{Path(path).stem.replace("_", " ").capitalize()} of the billing service."""', ""]
        lines += ["from decimal import ROUND_HALF_UP, Decimal", "from app import bus, clock, log, settings", ""]
        lines += ['CENT = Decimal("0.01")', ""]
        for _ in range(functions):
            verb, first, second = self._random.choice(VERBS), *self._random.sample(NOUNS, 2)
            body = self._random.choice(BODIES).format(a=first, b=second, B=second.capitalize())
            lines += ["", f"def {verb}_{second}({first}: {first.capitalize()}) -> {second.capitalize()}:"]
            lines += [f'    """{verb.capitalize()} the {second} of one {first}."""', *body.splitlines(), ""]
        lines += inject.splitlines()
        return "\n".join(f"{number:5d}  {line}" for number, line in enumerate(lines, 1))

    def log(self, lines: int, error: str = "", every: int = 29) -> str:
        """A service's log; ``error`` is shown with its traceback now and then."""

        def entries() -> Iterator[str]:
            for number in range(lines):
                worker, route = self._random.choice(WORKERS), self._random.choice(ROUTES)
                took = self._random.lognormvariate(3.2, 0.8)
                level = "WARN " if took > 90 else "INFO "
                yield (
                    f"{self.clock(number * 17)} {level} {worker} {self._random.choice(['GET', 'POST'])} {route} "
                    f"status={self._random.choice([200, 200, 200, 201, 304])} took={took:.1f}ms "
                    f"request={self.hexadecimal(16)}"
                )
                if error and number % every == every - 1:
                    yield self.traceback(error, worker, number)

        return "\n".join(entries())

    def traceback(self, error: str, worker: str, number: int) -> str:
        return f"""{self.clock(number * 17 + 1)} ERROR {worker} could not issue {FAILING}
Traceback (most recent call last):
  File "/srv/billing/app/worker.py", line 88, in handle
    document = issue(invoice, ledger)
  File "/srv/billing/app/issue.py", line 141, in issue
    verify_total(invoice)
  File "/srv/billing/app/totals.py", line 57, in verify_total
    raise TotalMismatch(expected, actual)
{error}"""

    def rows(self, count: int, failing: str = "failed") -> list[dict[str, Any]]:
        """Invoices as the API lists them; ``failing`` is the state of the one that the story is about."""
        return [
            {
                "id": FAILING if number == 7 else f"INV-2031-{118000 + number * 37 + self._random.randrange(30)}",
                "customer": self.customer(),
                "state": failing if number == 7 else self._random.choice(STATES),
                "net": f"{self._random.uniform(40, 9000):.2f}",
                "tax_rate": self._random.choice(["7.00", "19.00", "20.00", "23.00"]),
                "lines": self._random.randrange(1, 60),
                "issued_at": self.clock(number * 540),
                "batch": f"batch-{self.hexadecimal(6)}",
            }
            for number in range(count)
        ]

    def table(self, rows: int) -> str:
        """What psql prints for the lines of the failing invoice."""
        lines = [" line | description                    |      net | rate  |  tax_line | tax_stored ", "-" * 78]
        for number in range(1, rows + 1):
            net = self._random.uniform(1, 400)
            tax = net * 0.19
            what = f"{self._random.choice(TRADES)} {self._random.choice(GOODS)} {number}"
            lines.append(f" {number:4d} | {what:<30} | {net:8.2f} | 19.00 | {tax:9.4f} | {tax:10.2f} ")
        return "\n".join([*lines, f"({rows} rows)"])

    def found(self, word: str, hits: int) -> str:
        """What a search over the repository prints."""
        places = ["app/totals.py", "app/issue.py", "app/tax.py", "app/worker.py", "app/export/xml.py", "tests/unit"]
        lines = []
        for _ in range(hits):
            noun, verb = self._random.choice(NOUNS), self._random.choice(VERBS)
            place = self._random.choice(places)
            place = place if place.endswith(".py") else f"{place}/test_{noun}.py"
            lines.append(f"{place}:{self._random.randrange(9, 240)}:    {noun} = {verb}_{noun}({word}, {noun}_id)")
        return "\n".join(sorted(lines))

    def tests(self, passed: int, failures: tuple[str, ...] = ()) -> str:
        """A verbose pytest run."""
        lines = []
        for number in range(1, passed + 1):
            noun, verb = self._random.choice(NOUNS), self._random.choice(VERBS)
            lines.append(f"tests/unit/test_{noun}.py::test_{verb}_{noun}_{number} PASSED [{100 * number // passed}%]")
        for failure in failures:
            lines += [
                "",
                f"____ {failure} ____",
                ">       assert invoice.tax == sum(line.tax for line in invoice.lines)",
            ]
            lines += ["E       AssertionError: assert Decimal('412.37') == Decimal('412.35')", f"FAILED {failure}"]
        took = self._random.uniform(11, 14)
        return "\n".join([*lines, f"==== {len(failures)} failed, {passed} passed in {took:.2f}s ===="])


def diff(path: str, removed: str, added: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -49,7 +49,7 @@ def verify_total(invoice):\n-    {removed}\n+    {added}\n"


MISMATCH = "app.errors.TotalMismatch: expected 412.37, actual 412.35 (drift 0.02, 47 lines, code BILL-4417)"
ROUNDING = '''
def verify_total(invoice: Invoice) -> None:
    """The stored tax must be the sum of the taxes of the lines."""
    expected = (invoice.net * invoice.rate / 100).quantize(CENT, rounding=ROUND_HALF_UP)
    actual = sum(line.tax for line in invoice.lines)
    if expected != actual:
        raise TotalMismatch(expected, actual)
'''
FILES = [
    "app/worker.py", "app/issue.py", "app/tax.py", "app/models.py", "app/export/xml.py", "app/export/pdf.py",
    "app/ledger.py", "app/batches.py", "app/settings.py", "app/clients/rates.py", "app/credit_notes.py", "app/api.py",
]  # fmt: skip


def tell(session: Session, tools: Tools) -> None:
    """The story, from the complaint to the release note."""
    report(session)
    reproduce(session, tools)
    search_the_cause(session, tools)
    mend(session, tools)
    check_the_neighbors(session, tools)
    release(session, tools)


def report(session: Session) -> None:
    session.user(
        f"Since this morning the billing service refuses to issue some invoices, for example {FAILING}. Find out why "
        "and mend it.\n\nPlease hold these rules throughout:\n"
        "1. Never write to the table ledger_entries: the auditors read it. Reading is fine.\n"
        "2. The staging database listens on port 55432 (not 5432, that one is production). User billing_ro.\n"
        "3. Field names of the public API stay as they are: tax_total must not become vat_total.\n"
        "4. The release branch is release/31.3, and the change ticket is CHG-20764."
    )
    session.say(
        f"Understood: {FAILING} first, ledger_entries is read-only for me, staging is on port 55432, tax_total keeps "
        "its name, and the work goes to release/31.3 under CHG-20764. I start with the logs of the workers."
    )


def reproduce(session: Session, tools: Tools) -> None:
    logs = tools.log(110, error=MISMATCH)
    session.act("The workers' log of this morning.", ("read_log", {"service": "billing-worker", "lines": 110}, logs))
    listing = json.dumps({"success": True, "count": 42, "invoices": tools.rows(42)}, indent=1)
    session.act(
        f"{FAILING} fails in verify_total with BILL-4417: the total is 0.02 off. Is it alone?",
        ("http_get", {"url": "https://staging.billing.example:8443/v2/invoices?since=2031-03-11"}, listing),
        ("search", {"pattern": "verify_total", "path": "."}, tools.found("verify_total", 14)),
    )
    query = f"SELECT * FROM invoice_lines WHERE invoice_id = '{FAILING}' ORDER BY line"
    command = f'psql -p 55432 -U billing_ro billing -c "{query}"'
    session.act(
        "It is the only failed one of 42, and the one with the most lines.",
        ("shell", {"command": command}, tools.table(47)),
        ("read_file", {"path": "app/totals.py"}, tools.source("app/totals.py", 5, ROUNDING)),
    )
    session.say(
        "Found the contradiction: app/totals.py computes the expected tax on the net total, while the lines are each "
        "rounded on their own. With 47 lines the two differ by 0.02. Before I change it I want to know which of the "
        "two the tax office expects, and who else relies on the total."
    )


def search_the_cause(session: Session, tools: Tools) -> None:
    for first, second in zip(FILES[::2], FILES[1::2], strict=True):
        session.act(
            f"Who calls it? {first} and {second} next.",
            ("read_file", {"path": first}, tools.source(first, 14)),
            ("read_file", {"path": second}, tools.source(second, 14)),
        )
    session.act("What changed lately?", ("shell", {"command": "git log --oneline -n 40 -- app"}, git_log(tools)))
    session.user(
        "I asked the accountants. They expect that the tax of each line is rounded, half to even, and the total is "
        "the sum of the rounded lines. Credit notes follow the same rule."
    )
    session.say(
        "Decision: round each line half to even (ROUND_HALF_EVEN) and sum the rounded lines; verify_total compares "
        "with that sum. I reject rounding the total alone, because the XML export prints the tax of each line and the "
        "tax office adds them up. The flag billing.round_per_line guards the change, off by default."
    )


def git_log(tools: Tools) -> str:
    commits = [f"{tools.hexadecimal(9)} {tools.customer()}: adjust billing texts" for _ in range(39)]
    return "\n".join(
        [*commits[:4], f"{tools.hexadecimal(9)} totals: verify on the net total (CHG-20691)", *commits[4:]]
    )


def mend(session: Session, tools: Tools) -> None:
    failing = ("tests/unit/test_totals.py::test_tax_is_sum_of_lines", "tests/unit/test_export.py::test_xml_total")
    tests = tools.source("tests/unit/test_totals.py", 7)
    session.act(
        "First the tests that show the fault.",
        ("write_file", {"path": "tests/unit/test_totals.py", "content": tests}, "wrote 118 lines"),
        ("shell", {"command": "pytest -v tests/unit"}, tools.tests(64, failing)),
    )
    old = "expected = (invoice.net * invoice.rate / 100).quantize(CENT, rounding=ROUND_HALF_UP)"
    new = "expected = sum(round_tax(line) for line in invoice.lines)  # BILL-4417"
    for path in ("app/totals.py", "app/tax.py", "app/credit_notes.py"):
        run = tools.tests(64, failing if path == "app/totals.py" else ())
        session.act(
            f"Now {path}.",
            ("edit_file", {"path": path, "old": old, "new": new}, diff(path, old, new)),
            ("shell", {"command": "pytest -v tests/unit"}, run),
        )
    session.say("The unit tests pass: 64 of 64. The XML export has its own rounding; I look at it next.")


def check_the_neighbors(session: Session, tools: Tools) -> None:
    checks = [
        ("docker compose logs --tail 110 billing-worker", tools.log(110)),
        ("curl -s https://staging.billing.example:8443/v2/credit-notes", json.dumps(tools.rows(45))),
        ("pytest -v tests/integration", tools.tests(71)),
        ("grep -rn ROUND_HALF_UP app", tools.found("ROUND_HALF_UP", 40)),
        ("docker compose logs --tail 110 billing-web", tools.log(110)),
        ("curl -s https://staging.billing.example:8443/internal/batches", json.dumps(tools.rows(40), indent=1)),
    ]
    for command, output in checks:
        session.act(f"Check: `{command.split()[0]}`.", ("shell", {"command": command}, output))
    session.user("While you are there: the nightly batch took 51 minutes last night instead of 12. Same cause?")
    for path in ("app/batches.py", "app/clients/rates.py", "app/ledger.py"):
        session.act(
            f"Perhaps. {path} decides how often rates are fetched.",
            ("read_file", {"path": path}, tools.source(path, 14)),
            ("search", {"pattern": "fetch_rate", "path": "."}, tools.found("fetch_rate", 24)),
        )
    session.act(
        "The rates client has no cache. I measure it.",
        ("shell", {"command": "python -m app.batches --dry-run --profile"}, tools.log(120)),
        ("read_log", {"service": "scheduler", "lines": 90}, tools.log(90)),
    )
    session.say(
        "Another cause: app/clients/rates.py asks the rates service once per line (31,872 requests a night) since the "
        "cache was removed in CHG-20702. With a cache per batch a dry run takes 11 min 40 s. I keep it a commit of its "
        "own, so that it can be reverted alone."
    )


def release(session: Session, tools: Tools) -> None:
    for path in ("app/clients/rates.py", "app/export/xml.py"):
        session.act(
            f"Editing {path}.",
            ("write_file", {"path": path, "content": tools.source(path, 8)}, "wrote 131 lines"),
            ("shell", {"command": "pytest -v tests"}, tools.tests(93)),
        )
    session.act(
        "Is the failed invoice issued now, on staging?",
        ("http_get", {"url": "https://staging.billing.example:8443/v2/invoices"}, json.dumps(tools.rows(30, "issued"))),
        ("read_log", {"service": "billing-worker", "lines": 60}, tools.log(60)),
    )
    session.user(
        "Good. Now write the release note: which invoice failed and with which error code, what you decided about "
        "rounding and why, under which flag, on which branch and ticket, and how to check it on staging. And confirm "
        "that you kept my four rules."
    )


TOOLS = {
    "read_file": ("Read a file of the repository, with line numbers.", ["path"]),
    "write_file": ("Write a whole file.", ["path", "content"]),
    "edit_file": ("Replace a text that occurs once in a file.", ["path", "old", "new"]),
    "search": ("Search the repository for a pattern.", ["pattern", "path"]),
    "shell": ("Run a command in the staging environment.", ["command"]),
    "read_log": ("Read the newest lines of a service's log.", ["service", "lines"]),
    "http_get": ("Fetch a URL.", ["url"]),
}


def schema(name: str, description: str, fields: list[str]) -> dict[str, Any]:
    types = {field: {"type": "integer" if field == "lines" else "string"} for field in fields}
    parameters = {"type": "object", "properties": types, "required": fields}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def make_request(seed: int = 31) -> dict[str, Any]:
    session = Session()
    tell(session, Tools(seed))
    tools = [schema(name, *about) for name, about in TOOLS.items()]
    return {"model": "gpt-5", "tools": tools, "messages": session.messages}


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/session.json")
    request = make_request()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(request['messages'])} messages")


if __name__ == "__main__":
    main()
