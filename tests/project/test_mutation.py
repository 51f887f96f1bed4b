"""The mutation run: the mutants it makes, how it decides whether tests notice them, and the page it writes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutant_runs import Verdict
from benchmarks.mutants import mutants, mutated
from benchmarks.mutation import EXPLAINED, Figures, figures_of, read_explained

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; from benchmarks.mutation import main; sys.exit(main())"


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(source)]


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("a < b", "a < b -> a <= b"),
        ("a is not b", "a is not b -> a is b"),
        ("a in b", "a in b -> a not in b"),
        ("a and b", "a and b -> a or b"),
        ("not a", "not a -> a"),
        ("a + b", "a + b -> a - b"),
        ("n -= a", "n -= a -> n += a"),
        ("4", "4 -> 5"),
        ("True", "True -> False"),
        ("call()", "call() -> pass"),
        ("del a", "del a -> pass"),
        ("raise a", "raise a -> pass"),
        ("a.b = c", "a.b = c -> pass"),
        ("a[b] = c", "a[b] = c -> pass"),
    ],
)
def test_what_is_changed(source: str, change: str) -> None:
    assert changes(source) == [change]


def test_conditions_are_decided_both_ways() -> None:
    """A condition is replaced by ``True`` and by ``False``, in ``if``, ``while`` and conditional expressions."""
    assert changes("if a: break") == ["if a -> if True", "if a -> if False", "break -> continue"]
    assert changes("while a: continue") == ["while a -> while True", "while a -> while False", "continue -> break"]
    assert changes("b if a else c") == ["b if a else c -> b if True else c", "b if a else c -> b if False else c"]


def test_what_never_runs_is_left_alone() -> None:
    """Docstrings, annotations, decorators and imports for type checkers have no mutants."""
    source = '''
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    call()
@attrs.frozen(slots=True)
class A:
    """Says nothing."""
    field: Literal[1]
def f(a: Literal[2]) -> Literal[3]: ...
'''
    assert changes(source) == []


def test_a_mutant_differs_in_one_place() -> None:
    """A mutated module differs from the original in one line, and keeps its line numbers."""
    source = "def f(a):\n    if a > 1:\n        return 2\n    return 3\n"
    for mutant in mutants(source):
        tree = mutated(source, mutant)
        before, after = (ast.unparse(each).splitlines() for each in (ast.parse(source), tree))
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
        assert {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)} == {3, 4}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, "compaction/counting.py", "--tests", "tests", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a module and tests that notice some of its possible mutants."""
    (tmp_path / "compaction").mkdir()
    (tmp_path / "compaction" / "__init__.py").touch()
    (tmp_path / "compaction" / "counting.py").write_text(COUNTING)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_counting.py").write_text(
        "from compaction.counting import down, few\n"
        "def test_few(): assert few(2) is True and few(5) is False\n"
        "def test_down(): assert down(2) == 0\n"
    )
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


COUNTING = """\
LIMIT = 3
def few(n):
    return n < LIMIT
def down(n):
    while n > 0:
        n -= 1
    return n
def unused(n):
    return not n
"""
PAGE = """\
Before.
<!-- mutation -->
- `compaction`: old
- `compaction/others`: kept
<!-- /mutation -->
After.
"""


def test_what_tests_notice_and_what_they_do_not(project: Path) -> None:
    """The run counts noticed and unnoticed mutants, updates only its own lines of the page, and leaves the code unchanged."""
    done = run(project, "--write", "page.md", "--date", "today")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (project / "page.md").read_text().splitlines()
    assert (page[0], page[-1]) == ("Before.", "After.")
    assert [line for line in page if line.startswith("- `")] == [
        "- `compaction`: 12 mutants of 1 module, 58.3% noticed, 0 explained, 5 unexplained (today)",
        "- `compaction/others`: kept",
    ]
    told = [line.partition(" not noticed")[0] for line in done.stdout.splitlines() if "not noticed" in line]
    assert told == [f"counting.py:{line}:" for line in (1, 3, 6, 9, 9)]
    assert "- `counting.py`: 12 mutants" in done.stdout
    assert (project / "compaction" / "counting.py").read_text() == COUNTING


def test_tests_that_fail_anyway_are_no_judges(project: Path) -> None:
    """If a test fails without any mutant, the run ends with an error that names the test, and no mutant runs."""
    (project / "tests" / "test_broken.py").write_text("def test_broken(): assert False\n")
    done = run(project)
    assert done.returncode != 0
    assert "tests/test_broken.py::test_broken" in done.stdout + done.stderr


def test_an_explanation_goes_by_the_text_of_the_line() -> None:
    """An explanation applies to the mutant with the same module, line text and change, and to no other mutant."""
    known, other = mutants("a = 1\nb = 1")
    verdicts = [Verdict(mutant, "survived", "", 3) for mutant in (known, other)]
    figures = figures_of("m.py", verdicts, {("m.py", "a = 1", "1 -> 2"): "Nobody reads it."}, 3)
    assert figures == Figures(mutants=2, noticed=0, explained=1, modules=1, made=3)
    assert figures.unexplained == 1


def test_explanations_are_of_what_can_be_changed() -> None:
    """Each entry of ``survivors.toml`` refers to an existing mutant, and explains it in a sentence."""
    explained = read_explained(EXPLAINED)
    assert [why for why in explained.values() if not why.endswith(".")] == []
    sources = {module: (ROOT / "compaction" / module).read_text(encoding="utf-8") for module, _, _ in explained}
    made = {(module, mutant.text, mutant.change) for module, source in sources.items() for mutant in mutants(source)}
    assert explained.keys() - made == set()
