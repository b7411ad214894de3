"""Figures of the structure, from the syntax trees: ``python benchmarks/structure.py [CHECKOUT ...]``, a column each.

Lines count everything in a file. What ``import contextfold`` and a ``compact`` reach is asked of a fresh process.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

IMPORTED = "import contextfold"
COMPACTED = """
from contextfold import Compactor
messages = [{"role": ("user", "assistant")[n % 2], "content": f"line {n} of /a/b/c{n}.py " * 40} for n in range(60)]
Compactor(window=4_000).compact(messages)
"""
ASK = "\nimport sys\nprint(*sorted(n for n in sys.modules if n.partition('.')[0] == 'contextfold'))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).resolve().parents[1]])
    columns = [figures(checkout / "src" / "contextfold") for checkout in parser.parse_args().checkouts]
    width = max(len(name) for name in columns[0])
    for name in columns[0]:
        print(name.ljust(width), *(str(column[name]).rjust(12) for column in columns))


def figures(source: Path) -> dict[str, object]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in trees}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    public = [len(parameters(node)) for node in functions if not node.name.startswith("_")]
    imported, compacted = (reached(source, code) for code in (IMPORTED, COMPACTED))
    return {
        "files": len(trees),
        "lines": sum(lines.values()),
        "lines of a file, median": int(statistics.median(lines.values())),
        "modules and packages at the top": len({path.relative_to(source).parts[0] for path in trees}),
        "functions": len(functions),
        "lines of a function, median": int(statistics.median(lengths)),
        "functions over 20 lines, %": round(100 * sum(length > 20 for length in lengths) / len(lengths), 1),
        "parameters of a public function, most": max(public),
        "classes": sum(isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree)),
        "class names that stand twice": len(namesakes(trees)),
        "modules that import contextfold reaches": len(imported),
        "lines that it reaches": sum(lines_of(source, imported, lines)),
        "modules that a compact reaches": len(compacted),
        "lines that it reaches, too": sum(lines_of(source, compacted, lines)),
    }


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [one for one in every if one.arg not in ("self", "cls")]


def namesakes(trees: dict[Path, ast.Module]) -> list[str]:
    places: dict[str, int] = defaultdict(int)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name] += 1
    return [name for name, count in places.items() if count > 1]


def reached(source: Path, code: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(source.parent)}
    return subprocess.check_output([sys.executable, "-c", code + ASK], env=environment, text=True).split()


def lines_of(source: Path, modules: list[str], lines: dict[Path, int]) -> list[int]:
    paths = []
    for name in modules:
        place = source.joinpath(*name.split(".")[1:])
        paths.append(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    return [lines[path] for path in paths if path in lines]


if __name__ == "__main__":
    main()
