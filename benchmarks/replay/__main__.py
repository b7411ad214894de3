"""``python -m benchmarks.replay``, or ``python benchmarks/replay`` from anywhere."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if not __package__:  # run as a folder: the package must be found by its name, and its modules not by theirs
    sys.path[0] = str(ROOT)

if __name__ == "__main__":  # a process of the pool imports this file too
    from benchmarks.replay.cli import main

    sys.exit(main())
