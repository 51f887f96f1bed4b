"""Runs of tests against mutants: pytest collects the tests once, and each mutant runs in a fork of that process.

A fork replaces the code of the existing functions by the mutant's, so that nothing is imported or collected again, and runs the
tests that execute the mutant's line until one fails. A first fork runs every test under coverage to find these tests. A mutant
outside functions takes effect on import only: it runs in a copy of the tree, in a new process.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from types import FunctionType

import attrs
import pytest

from .forks import TIMERS, forked, put_in
from .mutants import Mutant, mutated

PLAIN = ("-q", "-s", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:benchmark", "-o", "timeout=0")
UNFIT = 3


@attrs.frozen
class Verdict:
    """The outcome of a mutant.

    Args:
        mutant: The mutant.
        outcome: ``"noticed"``, ``"survived"``, or ``"timed out"``: a test ran more than ten times as long as usual.
        by: The test that noticed; empty if no test did, or if it is not known.
        tests: Number of tests that execute its statement; if none does after import, that execute the module.
    """

    mutant: Mutant
    outcome: str
    by: str
    tests: int


def run(
    mutants: Mapping[Path, Sequence[Mutant]],
    tests: Sequence[str],
    seconds: float,
    told: Callable[[Path, list[Verdict]], None],
    minutes: float = math.inf,
) -> None:
    """Run these mutants in an arbitrary order, and then report the outcomes module by module.

    Args:
        mutants: The mutants of each module; its path is relative to the working directory, which is the root of the tree.
        tests: The arguments of pytest.
        seconds: CPU time of the tests of one mutant; of the tests that execute its statement, the fastest are run.
        told: Called with each module and its outcomes when the mutants have run.
        minutes: The time after which no further mutant is tried, from the collection of the tests on.

    Raises:
        SystemExit: The tests cannot be collected, or fail on the unchanged code.
    """
    with tempfile.TemporaryDirectory() as folder:
        plugin = _Forks(mutants, seconds, told, Path(folder), minutes)
        if (code := pytest.main([*PLAIN, f"--basetemp={folder}/tests", *tests], plugins=[plugin])) or not plugin.items:
            raise SystemExit(f"pytest ended with {code!r}")


@attrs.define(eq=False)
class _Forks:
    """The plugin that replaces pytest's loop over tests. Holds state: the time and lines of each test."""

    mutants: Mapping[Path, Sequence[Mutant]]
    seconds: float
    told: Callable[[Path, list[Verdict]], None]
    folder: Path
    minutes: float = math.inf
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
        phases = (Phase.explicit, Phase.generate)  # a failing example need not be shrunk
        settings.register_profile("mutation", phases=phases, max_examples=50, **always)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self.items = session.items
        paths = {str(path.resolve()) for path in self.mutants}
        for path in self.mutants:  # a module that a test would import later has no functions yet
            importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        gc.unfreeze()  # what is frozen is not among the objects
        functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
        self.functions = [each for each in functions if each.__code__.co_filename in paths]
        session.config.pluginmanager.unregister(name="terminalreporter")
        self._learn()
        gc.freeze()
        until = time.monotonic() + 60 * self.minutes
        every = [(module, mutant) for module, mutants in self.mutants.items() for mutant in mutants]
        verdicts: dict[Path, list[Verdict]] = {}
        for module, mutant in Random(0).sample(every, len(every)):
            if time.monotonic() > until:
                break
            source = module.read_text(encoding="utf-8")
            if module not in verdicts:
                self._check(module, source)
            verdicts.setdefault(module, []).append(self._verdict(module, source, mutant))
        for module in sorted(verdicts):
            self.told(module, sorted(verdicts[module], key=lambda verdict: verdict.mutant.line))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    # --- lines that each test executes

    def _learn(self) -> None:
        """Run every test once, in a fork, and record its time and the lines it executes."""
        learned = self.folder / "learned.json"
        status, _ = forked(lambda _: self._record(learned))
        if status:
            raise SystemExit(f"no mutant ran: the tests could not be measured (status {status})")
        found = json.loads(learned.read_text(encoding="utf-8"))
        if found["failed"]:
            raise SystemExit(f"no mutant ran: these tests fail on the unchanged code: {' '.join(found['failed'])}")
        self.took = found["took"]
        self.lines = {path: {int(line): tests for line, tests in lines.items()} for path, lines in found["lines"].items()}

    def _record(self, learned: Path) -> int:
        from coverage import Coverage

        measure = Coverage(data_file=None, include=[str(path.resolve()) for path in self.mutants], config_file=False)
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
        """Return the tests that execute these lines, or else the module; fast ones that noticed other mutants come first."""
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
        """Check that the tests pass on the unchanged code in a fork, so that a failure is due to a change."""
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
        if status == UNFIT:  # it takes effect on import, if at all
            every = self._chosen(module)
            return Verdict(mutant, self._apart(module, tree, self._in_time(every)), "", len(tests or every))
        if not status:
            return Verdict(mutant, "survived", "", len(tests))
        by = reached[-1:]
        self.kills.update(by)
        outcome = "timed out" if -status in TIMERS else "noticed"
        return Verdict(mutant, outcome, "".join(self.items[test].nodeid for test in by), len(tests))

    def _in_time(self, tests: Sequence[int]) -> list[int]:
        """Return the first tests that fit the time, at least one."""
        spent = list(accumulate(self.took[test] for test in tests))
        return [test for test, seconds in zip(tests, spent, strict=True) if seconds <= max(self.seconds, spent[0])]

    def _try(self, module: Path, tree: ast.Module, tests: Sequence[int], tell: Callable[[int], None]) -> int:
        """Replace the code of the functions by the mutant's, and run tests until one fails; called in a fork."""
        if not put_in(self.functions, compile(tree, str(module.resolve()), "exec", dont_inherit=True)):
            return UNFIT
        items = [self.items[test] for test in tests]
        for place, item in enumerate(items):
            tell(tests[place])
            signal.setitimer(signal.ITIMER_PROF, 2 + 10 * self.took[tests[place]])  # CPU time, however busy the machine is
            signal.setitimer(signal.ITIMER_REAL, 15 + 40 * self.took[tests[place]])  # for one that waits for ever
            if not self._passes(item, items[place + 1 :]):
                return 1
        return 0

    def _apart(self, module: Path, tree: ast.Module, tests: Sequence[int]) -> str:
        """Do the same in a copy of the tree and a new process; without tests, the mutant survives.

        No bytecode is stored. Otherwise Python would run that of an earlier mutant whose file has the same size and time.
        """
        if not tests:
            return "survived"
        copied = self.folder / "tree"
        if not copied.exists():
            shutil.copytree(Path.cwd(), copied, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"), symlinks=True)
        original = (copied / module).read_text(encoding="utf-8")
        (copied / module).write_text(ast.unparse(tree), encoding="utf-8")
        command = [sys.executable, "-B", "-m", "pytest", *PLAIN, *(self.items[test].nodeid for test in tests)]
        limit = 60 + 10 * sum(self.took[test] for test in tests)
        try:
            done = subprocess.run(command, cwd=copied, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            (copied / module).write_text(original, encoding="utf-8")
        return "noticed" if done.returncode else "survived"
