"""Every pin has a wheel for every interpreter and machine that we name: ``wheels.py [CONSTRAINTS ...]``.

Asks the index, through uv, whether each pin of each constraints file can be installed without building anything, for
Python 3.11 to 3.13 on Linux (x86_64, aarch64), macOS (both chips) and Windows. Nothing is installed but uv itself, into
a temporary environment. Runs for minutes where the cache of uv is cold, so it is a step of ``.ci/run`` and no test.
"""

# ruff: noqa: T201 - it speaks to the log of the run

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INTERPRETERS = ("3.11", "3.12", "3.13")
WINDOWS = "x86_64-pc-windows-msvc"
MACHINES = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    WINDOWS,
)
CULPRIT = re.compile(r"Because ([\w.-]+)==(\S+) (?:has|depends|requires|needs|was|does)")
ABSENT = {
    ("ray", "x86_64-apple-darwin"): "the extra batch leaves it out on Intel Macs; the local pool needs none",
    ("uvloop", WINDOWS): "the extra gateway leaves it out there; uvicorn goes on without it",
}
"""(distribution, machine) -> why there is no wheel, and what users of that machine do."""


def pins_of(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {normal(line.partition("==")[0]): line for line in lines}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def without_wheel(uv: Path, pins: dict[str, str], interpreter: str, machine: str) -> dict[str, str]:
    """Pins that cannot be installed there, with what uv says: it names one at a time, so it is asked again."""
    rest, found = dict(pins), {}
    # uv would fetch an interpreter that is missing here, at every question, to build what nothing builds
    command = [uv, "pip", "compile", "--quiet", "--no-deps", "--no-python-downloads", "--only-binary", ":all:"]
    while True:
        done = subprocess.run(
            [*command, "--python-version", interpreter, "--python-platform", machine, "-"],
            input="\n".join(rest.values()),
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            return found
        said = " ".join(done.stderr.split())
        culprit = CULPRIT.search(said)
        if culprit is None or normal(culprit[1]) not in rest:
            raise SystemExit(f"FAILED: uv says what this script does not understand: {said}")
        found[rest.pop(normal(culprit[1]))] = said


def main() -> int:
    files = [Path(name) for name in sys.argv[1:]] or sorted(ROOT.glob("constraints*.txt"))
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "uv"], check=True
        )
        for file, machine, interpreter in product(files, MACHINES, INTERPRETERS):
            pins = pins_of(file)
            for pin, said in without_wheel(programs / "uv", pins, interpreter, machine).items():
                reason = ABSENT.get((normal(pin.partition("==")[0]), machine))
                problems += reason is None
                print(f"{file.name}: {pin} has no wheel for Python {interpreter} on {machine}: {reason or said}")
        count = len(files) * len(MACHINES) * len(INTERPRETERS)
    print(f"{sum(len(pins_of(file)) for file in files)} pins, {count} combinations, {problems} wheels missing")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
