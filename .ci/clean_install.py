"""Look at an installed wheel from inside its own environment: ``clean_install.py SECONDS``.

Importing must take less than SECONDS of CPU (the best of several fresh processes), must load nothing slow, and the
environment must hold no optional dependency.
"""

# ruff: noqa: T201 - it speaks to the log of the run

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

OPTIONAL = ["anthropic", "hypothesis", "langchain", "langchain_core", "litellm", "openai", "pytest", "tiktoken"]
SLOW = [*OPTIONAL, "genai_prices", "rich", "typer", "yaml"]
RUNS = 7
PROBE = """
import json, sys, time
start = time.process_time()
import contextfold
print(json.dumps([time.process_time() - start, contextfold.__file__, sorted(sys.modules)]))
"""


def main() -> int:
    limit = float(sys.argv[1])
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", PROBE])) for _ in range(RUNS)]
    best = min(seconds for seconds, _, _ in runs)
    _, place, modules = runs[0]
    problems = [f"{name} is installed, and is optional" for name in OPTIONAL if importlib.util.find_spec(name)]
    problems += [f"import contextfold loads {name}" for name in SLOW if name in modules]
    if "site-packages" not in place:
        problems.append(f"contextfold came from {place}, not from the wheel")
    if best >= limit:
        problems.append(f"import contextfold takes {best:.3f} s, and {limit} s are allowed")
    print(f"import contextfold: {best:.3f} s of CPU (best of {RUNS}), {len(modules)} modules")
    print("\n".join(f"FAILED: {problem}" for problem in problems) or "nothing optional or slow in it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
