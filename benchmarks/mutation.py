"""Mutation testing: the code is broken at one place at a time, and the tests must notice; ``docs/validity.md`` has the totals.

    python -m benchmarks.mutation compaction/index/*.py --write docs/validity.md
    python -m benchmarks.mutation compaction/formats/detect.py --tests tests/formats/test_detect.py --seconds 5
    python -m benchmarks.mutation compaction/session --sample 300 --minutes 10 --tests tests/unit/session
    .venv-frameworks/bin/python -m benchmarks.mutation compaction/integrations/strands --tests tests/frameworks/test_strands.py

An integration is measured in the environment that has its framework: ``.venv-frameworks``, or ``.venv-frameworks-apart`` for
LiteLLM, both made by ``make test-frameworks``, with ``coverage`` installed there. The engine for Hermes Agent is measured in
the usual one, where ``tests/unit/integrations/hermes`` test it.

A folder stands for all its modules, and its own tests (``tests/unit/session``) run too. ``--sample`` tries so many mutants,
drawn evenly from all of them, and ``--minutes`` stops after this time, wherever it is: they run in an arbitrary order.

Mutants that no test notices are printed with their line. ``survivors.toml`` explains why a mutant makes no difference; entries
name the text of the line and the change, so they stay correct when lines move. All other survivors are unexplained.
"""

from __future__ import annotations

import argparse
import json
import operator
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from random import Random

import attrs

from .mutant_runs import Verdict, run
from .mutants import Mutant, mutants
from .tables import Section, written

EXPLAINED = Path(__file__).with_name("survivors.toml")
SLOW = ("batch", "cli", "config", "integrations", "replay", "stores", "summarizers/extractive/test_digest.py")
TESTS = ("compaction", "tests/formats", "tests/unit", "-m", "not slow")
SECTION = "mutation"

Explained = Mapping[tuple[str, str, str], str]
"""The explanations why mutants make no difference, by module, text of the line, and change."""


def read_explained(path: Path) -> Explained:
    """Return the explanations in ``survivors.toml``.

    Raises:
        SystemExit: A mutant is explained twice.
    """
    found: dict[tuple[str, str, str], str] = {}
    for module, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for entry in entries:
            for text, change in entry["at"]:
                if (module, text, change) in found:
                    raise SystemExit(f"{path.name}: explained twice: {module}: {text}: {change}")
                found[module, text, change] = entry["why"]
    return found


@attrs.frozen
class Figures:
    """The number of mutants, and their outcomes.

    Args:
        mutants: All mutants.
        noticed: Those noticed by a test or a time limit.
        explained: Those not noticed, with an explanation why they make no difference.
        modules: The number of their modules.
        made: The number of mutants that could be made of them; more than ``mutants`` for a sample.
    """

    mutants: int = 0
    noticed: int = 0
    explained: int = 0
    modules: int = 0
    made: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(*map(operator.add, attrs.astuple(self), attrs.astuple(other)))

    @property
    def unexplained(self) -> int:
        return self.mutants - self.noticed - self.explained

    def told(self, name: str, date: str) -> str:
        """Return a line of the page."""
        modules = f"{self.modules} module{'s' * (self.modules != 1)}"
        shares = f"{self.noticed / self.mutants:.1%} noticed, {self.explained} explained, {self.unexplained} unexplained"
        tried = f"{self.mutants:,} of {self.made:,}" if self.mutants < self.made else f"{self.mutants:,}"
        return f"- `{name}`: {tried} mutants of {modules}, {shares} ({date})"


def figures_of(module: str, verdicts: Sequence[Verdict], explained: Explained, made: int) -> Figures:
    """Return the outcomes of the mutants of a module, of which ``made`` could be made."""
    survived = [verdict.mutant for verdict in verdicts if verdict.outcome == "survived"]
    known = sum((module, mutant.text, mutant.change) in explained for mutant in survived)
    return Figures(len(verdicts), len(verdicts) - len(survived), known, 1, made)


def merged(page: str, name: str, line: str) -> str:
    """Return the page with the line of this folder replaced."""
    section = page.partition(f"<!-- {SECTION} -->")[2].partition(f"<!-- /{SECTION} -->")[0]
    others = [other for other in section.splitlines() if other.startswith("- ") and not other.startswith(f"- `{name}`:")]
    lines = sorted([*others, line], key=lambda each: each.split("`")[1])
    return written(page, [Section(SECTION, ("", *lines, ""))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "modules", type=Path, nargs="+", help="the modules or folders to mutate, relative to the root of the tree"
    )
    parser.add_argument(
        "--tests", nargs="+", help="the tests to run; by default the fast tests of the lower floors, and those of the folders"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants, drawn evenly from all; by default every one")
    parser.add_argument("--minutes", type=float, default=inf, help="try no further mutant after this time; by default all")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample")
    parser.add_argument("--seconds", type=float, default=5, help="CPU time for the tests of one mutant")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="the page to write the totals of these modules to, by folder"
    )
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="the date that the page shows")
    arguments = parser.parse_args()
    explained = read_explained(EXPLAINED)
    folders: defaultdict[str, Figures] = defaultdict(Figures)
    given: list[Path] = arguments.modules
    modules = [module for path in given for module in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    made = {module: mutants(module.read_text(encoding="utf-8")) for module in modules}
    tried = sampled(made, arguments.sample, arguments.seed)

    def told(path: Path, verdicts: list[Verdict]) -> None:
        module = path.relative_to("compaction").as_posix()
        folder = next((each for each in given if each in path.parents), path.parent).as_posix()
        _print_news(module, verdicts, explained)
        figures = figures_of(module, verdicts, explained, len(made[path]))
        folders[folder] += figures
        print(figures.told(module, arguments.date), flush=True)
        if arguments.write:
            line = folders[folder].told(folder, arguments.date)
            arguments.write.write_text(merged(arguments.write.read_text(encoding="utf-8"), folder, line), encoding="utf-8")

    run(tried, arguments.tests or tests_of(given), arguments.seconds, told, arguments.minutes)
    total = sum(folders.values(), Figures())
    if total.mutants:
        print(total.told("all of them", arguments.date))


def sampled(made: Mapping[Path, Sequence[Mutant]], count: int | None, seed: int) -> dict[Path, list[Mutant]]:
    """Return ``count`` of these mutants, drawn evenly from all modules, in their order; all of them for ``None``."""
    every = [(module, mutant) for module, mutants in made.items() for mutant in mutants]
    chosen = range(len(every)) if count is None else sorted(Random(seed).sample(range(len(every)), min(count, len(every))))
    found: defaultdict[Path, list[Mutant]] = defaultdict(list)
    for place in chosen:
        module, mutant = every[place]
        found[module].append(mutant)
    return found


def tests_of(given: Sequence[Path]) -> list[str]:
    """Return the arguments of pytest for these modules: the fast tests of the lower floors, and each folder's own.

    >>> "--ignore=tests/unit/batch" in tests_of([Path("compaction/session")])
    True
    >>> "--ignore=tests/unit/batch" in tests_of([Path("compaction/batch")])
    False
    """
    own = {path.relative_to("compaction").as_posix() for path in given if path.is_dir()}
    return [*TESTS, *(f"--ignore=tests/unit/{part}" for part in SLOW if part not in own)]


def _print_news(module: str, verdicts: Sequence[Verdict], explained: Explained) -> None:
    """Print unexplained survivors, and explanations of mutants that a test now notices, in the form of ``survivors.toml``."""
    for verdict in verdicts:
        key = (verdict.mutant.text, verdict.mutant.change)
        survived = verdict.outcome == "survived"
        if survived != ((module, *key) in explained):
            what = "not noticed" if survived else "noticed, though explained"
            print(f"{module}:{verdict.mutant.line}: {what}, of {verdict.tests} tests: {json.dumps(key)}")


if __name__ == "__main__":
    main()
