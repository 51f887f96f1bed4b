"""Breaks the code, one place at a time, and asks the tests whether they notice: a small mutation run, sampled.

    python -m benchmarks.mutation compaction/formats/gemini_rules.py tests/test_gemini_rules.py tests/test_gemini.py --sample 40

A mutant turns a comparison or a condition round, swaps ``and`` and ``or``, moves a number by one, or drops what a function
returns. Each runs in a copy of the tree; the working tree is not touched. What no test notices is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["mutants"]

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Every mutant of a module: its line, what was done there, and the whole text."""
    tree = ast.parse(source)
    for place, node in enumerate(ast.walk(tree)):
        for what in _changes(node):
            other = copy.deepcopy(tree)
            changed = next(each for number, each in enumerate(ast.walk(other)) if number == place)
            _change(changed, what)
            yield getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(other))


def _changes(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare):
        return ["comparison turned"]
    if isinstance(node, ast.BoolOp):
        return ["and and or swapped"]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return ["condition always", "condition never"]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ["number plus one"]
    if isinstance(node, ast.Return) and node.value is not None:
        return ["returns nothing"]
    return []


def _change(node: ast.AST, what: str) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = _TURNED[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.Constant(what == "condition always")
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)


def survives(tree: Path, module: Path, text: str, tests: list[str]) -> bool:
    """Whether all tests pass with this text in place of the module."""
    (tree / module).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:benchmark", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, cwd=tree, capture_output=True, timeout=SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path, help="the module to break, from the root of the tree")
    parser.add_argument("tests", nargs="+", help="the tests that should notice")
    parser.add_argument("--sample", type=int, default=30, help="how many mutants, chosen with a fixed seed")
    arguments = parser.parse_args()
    source = (ROOT / arguments.module).read_text(encoding="utf-8")
    every = list(mutants(source))
    chosen = sorted(random.Random(7).sample(every, min(arguments.sample, len(every))))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv*", "build", "__pycache__"), symlinks=True)
        left = [(line, what) for line, what, text in chosen if survives(tree, arguments.module, text, arguments.tests)]
    print(f"{arguments.module}: {len(chosen) - len(left)} of {len(chosen)} noticed, of {len(every)} there are")
    for line, what in left:
        print(f"  line {line}: {what}: {source.splitlines()[line - 1].strip()}")


if __name__ == "__main__":
    main()
