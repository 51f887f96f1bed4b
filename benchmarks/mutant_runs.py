"""Which tests notice a mutant: tests are collected once, and each mutant lives in a fork of the process that holds them.

A fork puts the mutant's code into the functions that stand already, so nothing is imported or collected again, and runs the
tests that execute the mutant's line until one fails. A first fork runs every test under coverage to learn which those are. A
mutant outside functions acts on import alone: it runs in a copy of the tree, in a process of its own.
"""

from __future__ import annotations

import ast
import gc
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from types import FunctionType

import attrs
import pytest

from .forks import TIMERS, forked, put_in
from .mutants import Mutant, mutants, mutated

PLAIN = ("-q", "-s", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:benchmark", "-o", "timeout=0")
UNFIT = 3


@attrs.frozen
class Verdict:
    """What came of a mutant.

    Args:
        mutant: What was changed.
        outcome: ``"noticed"``, ``"survived"``, or ``"timed out"``: a test ran more than ten times as long as it does.
        by: The test that noticed; empty if none did, or if it was not said.
        tests: How many tests execute its statement; where none does once all is imported, how many execute the module.
    """

    mutant: Mutant
    outcome: str
    by: str
    tests: int


def run(modules: Sequence[Path], tests: Sequence[str], seconds: float, told: Callable[[Path, list[Verdict]], None]) -> None:
    """Run every mutant of these modules, and tell what came of them, module by module.

    Args:
        modules: Paths from the working directory, which is the root of the tree.
        tests: What pytest is given.
        seconds: Of the tests that execute a mutant's statement, the fastest run, for so long in sum: processor time.
        told: Called with each module when its mutants have run.

    Raises:
        SystemExit: The tests cannot be collected, or fail as the code stands.
    """
    with tempfile.TemporaryDirectory() as folder:
        plugin = _Forks(modules, seconds, told, Path(folder))
        if (code := pytest.main([*PLAIN, f"--basetemp={folder}/tests", *tests], plugins=[plugin])) or not plugin.items:
            raise SystemExit(f"pytest ended with {code!r}")


@attrs.define(eq=False)
class _Forks:
    """The plugin that takes the place of pytest's own loop over tests. Holds what it learned of them."""

    modules: Sequence[Path]
    seconds: float
    told: Callable[[Path, list[Verdict]], None]
    folder: Path
    items: list[pytest.Item] = attrs.field(factory=list)
    functions: list[FunctionType] = attrs.field(factory=list)
    took: list[float] = attrs.field(factory=list)
    lines: dict[str, dict[int, list[int]]] = attrs.field(factory=dict)
    kills: Counter[int] = attrs.field(factory=Counter)
    failed: bool = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        always = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
        phases = (Phase.explicit, Phase.generate)  # what failed need not be made small
        settings.register_profile("mutation", phases=phases, max_examples=50, **always)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self.items = session.items
        paths = {str(path.resolve()) for path in self.modules}
        functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
        self.functions = [each for each in functions if each.__code__.co_filename in paths]
        session.config.pluginmanager.unregister(name="terminalreporter")
        self._learn()
        gc.freeze()
        for module in self.modules:
            source = module.read_text(encoding="utf-8")
            self._check(module, source)
            self.told(module, [self._verdict(module, source, mutant) for mutant in mutants(source)])
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    # --- which test executes which line

    def _learn(self) -> None:
        """Run every test once, in a fork, and keep its time and the lines it executes."""
        learned = self.folder / "learned.json"
        status, _ = forked(lambda _: self._record(learned))
        if status:
            raise SystemExit(f"no mutant ran: the tests could not be measured (status {status})")
        found = json.loads(learned.read_text(encoding="utf-8"))
        if found["failed"]:
            raise SystemExit(f"no mutant ran: these tests fail as the code stands: {' '.join(found['failed'])}")
        self.took = found["took"]
        self.lines = {path: {int(line): tests for line, tests in lines.items()} for path, lines in found["lines"].items()}

    def _record(self, learned: Path) -> int:
        from coverage import Coverage

        measure = Coverage(data_file=None, include=[str(path.resolve()) for path in self.modules], config_file=False)
        took, failed = [], []
        measure.start()
        for number, item in enumerate(self.items):
            measure.switch_context(str(number))
            start = time.process_time()
            if not self._passes(item, self.items[number + 1 :]):
                failed.append(item.nodeid)
                self.failed = False
            took.append(time.process_time() - start)
        measure.stop()
        data = measure.get_data()
        lines = {
            path: {line: [int(test) for test in tests if test] for line, tests in data.contexts_by_lineno(path).items()}
            for path in data.measured_files()
        }
        learned.write_text(json.dumps({"took": took, "failed": failed, "lines": lines}), encoding="utf-8")
        return 0

    def _passes(self, item: pytest.Item, later: Sequence[pytest.Item]) -> bool:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=later[0] if later else None)
        return not self.failed

    def _chosen(self, module: Path, lines: tuple[int, int] | None = None) -> list[int]:
        """The tests that execute these lines, or any of the module: first what is fast, noticed others, and is no variant."""
        executed = self.lines.get(str(module.resolve()), {})
        first, last = lines or (0, max(executed, default=0))
        tests = {test for line in range(first, last + 1) for test in executed.get(line, ())}
        variants: Counter[str] = Counter()
        cost: dict[int, float] = {}
        for test in sorted(tests, key=self.took.__getitem__):
            name = self.items[test].nodeid.partition("[")[0]
            variants[name] += 1
            cost[test] = variants[name] * self.took[test] / (1 + self.kills[test])
        return sorted(tests, key=cost.__getitem__)

    # --- one mutant

    def _check(self, module: Path, source: str) -> None:
        """What is noticed has to be the change: the code as it stands passes in a fork, too."""
        tests = self._in_time(self._chosen(module))
        status, reached = forked(lambda tell: self._try(module, ast.parse(source), tests, tell))
        if status:
            raise SystemExit(f"{module}: nothing is changed, and {self.items[reached[-1]].nodeid} fails")

    def _verdict(self, module: Path, source: str, mutant: Mutant) -> Verdict:
        tree = mutated(source, mutant)
        tests = self._chosen(module, mutant.lines) if mutant.inside else []
        status, reached = UNFIT, list[int]()
        if tests:
            status, reached = forked(lambda tell: self._try(module, tree, self._in_time(tests), tell))
        if status == UNFIT:  # it acts on import, if at all
            every = self._chosen(module)
            return Verdict(mutant, self._apart(module, tree, self._in_time(every)), "", len(tests or every))
        if not status:
            return Verdict(mutant, "survived", "", len(tests))
        by = reached[-1:]
        self.kills.update(by)
        outcome = "timed out" if -status in TIMERS else "noticed"
        return Verdict(mutant, outcome, "".join(self.items[test].nodeid for test in by), len(tests))

    def _in_time(self, tests: Sequence[int]) -> list[int]:
        """The first of them, as many as there is time for; one at least."""
        spent = list(accumulate(self.took[test] for test in tests))
        return [test for test, seconds in zip(tests, spent, strict=True) if seconds <= max(self.seconds, spent[0])]

    def _try(self, module: Path, tree: ast.Module, tests: Sequence[int], tell: Callable[[int], None]) -> int:
        """In a fork: let the functions run the mutant's code, then run tests until one fails."""
        if not put_in(self.functions, compile(tree, str(module.resolve()), "exec", dont_inherit=True)):
            return UNFIT
        items = [self.items[test] for test in tests]
        for place, item in enumerate(items):
            tell(tests[place])
            signal.setitimer(signal.ITIMER_PROF, 2 + 10 * self.took[tests[place]])  # of work, however busy the machine
            signal.setitimer(signal.ITIMER_REAL, 60 + 100 * self.took[tests[place]])
            if not self._passes(item, items[place + 1 :]):
                return 1
        return 0

    def _apart(self, module: Path, tree: ast.Module, tests: Sequence[int]) -> str:
        """The same in a copy of the tree and a new process; no test at all notices nothing."""
        if not tests:
            return "survived"
        copied = self.folder / "tree"
        if not copied.exists():
            shutil.copytree(Path.cwd(), copied, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"), symlinks=True)
        original = (copied / module).read_text(encoding="utf-8")
        (copied / module).write_text(ast.unparse(tree), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", *PLAIN, *(self.items[test].nodeid for test in tests)]
        limit = 60 + 10 * sum(self.took[test] for test in tests)
        try:
            done = subprocess.run(command, cwd=copied, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            (copied / module).write_text(original, encoding="utf-8")
        return "noticed" if done.returncode else "survived"
