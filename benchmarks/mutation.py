"""Breaks the code, one place at a time, and asks the tests whether they notice; ``docs/validity.md`` shows what came of it.

    python -m benchmarks.mutation compaction/index/groups.py compaction/formats/*_rules.py --write docs/validity.md
    python -m benchmarks.mutation compaction/formats/detect.py --tests tests/formats/test_detect.py --seconds 5

What no test notices is printed with its line. Why it makes no difference stands in ``survivors.toml``, by the text of the line
and the change, so that it stays true when lines move; what is not in there is called unexplained.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .mutant_runs import Verdict, run
from .mutants import Mutant
from .tables import Section, table, written

__all__ = ["Explained", "lines_of", "merged", "read_explained"]

EXPLAINED = Path(__file__).with_name("survivors.toml")
SLOW = ("batch", "cli", "config", "integrations", "replay", "stores", "summarizers/extractive/test_digest.py")
TESTS = ("compaction", "tests/formats", "tests/unit", "-m", "not slow", *(f"--ignore=tests/unit/{part}" for part in SLOW))
SECTION = "mutation"
HEADS = ("module", "mutants", "noticed", "by a time limit", "not noticed, explained", "unexplained", "run on")
UNEXPLAINED = "**unexplained**"

Explained = Mapping[tuple[str, str, str], str]
"""Why a mutant makes no difference, by module, text of the line and change."""


def read_explained(path: Path) -> Explained:
    """The sentences kept by hand.

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


def lines_of(module: str, verdicts: Sequence[Verdict], explained: Explained, date: str) -> tuple[str, ...]:
    """A module's row, and a line for each reason why something in it was not noticed."""
    reasons: dict[str, list[Mutant]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome == "survived":
            key = (module, verdict.mutant.text, verdict.mutant.change)
            reasons[explained.get(key, UNEXPLAINED)].append(verdict.mutant)
    counted = Counter(verdict.outcome for verdict in verdicts)
    left = len(reasons.get(UNEXPLAINED, ()))
    figures = len(verdicts), counted["noticed"], counted["timed out"], counted["survived"] - left, left
    row = f"| `{module}` | {' | '.join(map(str, figures))} | {date} |"
    return row, *(f"- `{module}`: {', '.join(map(_shown, found))}: {why}" for why, found in sorted(reasons.items()))


def _shown(mutant: Mutant) -> str:
    change = mutant.change.replace("`", "'")
    return f"line {mutant.line} `{change if len(change) <= 72 else f'{change[:70]}...'}`"


def merged(page: str, made: Iterable[str], by: str) -> str:
    """The page with these lines in place of those of the same modules."""
    section = page.partition(f"<!-- {SECTION} -->")[2].partition(f"<!-- /{SECTION} -->")[0]
    made = list(made)
    new = {_module(line) for line in made}
    every = sorted([*made, *(line for line in section.splitlines() if _module(line) and _module(line) not in new)], key=_module)
    heads = table(HEADS, ())
    rows, reasons = ([line for line in every if line.startswith(mark)] for mark in "|-")
    return written(page, [Section(SECTION, ("", by, "", *heads, *rows, "", *reasons, ""))])


def _module(line: str) -> str:
    return line.split("`")[1] if line.startswith(("| `", "- `")) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", type=Path, nargs="+", help="the modules to break, from the root of the tree")
    parser.add_argument(
        "--tests",
        nargs="+",
        default=TESTS,
        help="what may notice; if not said, the tests of the lower floors that are not slow",
    )
    parser.add_argument("--seconds", type=float, default=5, help="of processor time, for the tests of one mutant")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page whose table gets the rows of these modules")
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="what the table calls today")
    arguments = parser.parse_args()
    explained = read_explained(EXPLAINED)
    by = f"Made by `make mutation`: of the tests that execute the statement, the fastest {arguments.seconds:g} seconds."

    def told(path: Path, verdicts: list[Verdict]) -> None:
        module = path.relative_to("compaction").as_posix()
        _print_news(module, verdicts, explained)
        lines = lines_of(module, verdicts, explained, arguments.date)
        print(lines[0], flush=True)
        if arguments.write:
            page = merged(arguments.write.read_text(encoding="utf-8"), lines, by)
            arguments.write.write_text(page, encoding="utf-8")

    run(arguments.modules, arguments.tests, arguments.seconds, told)


def _print_news(module: str, verdicts: Sequence[Verdict], explained: Explained) -> None:
    """Survivors without a sentence, and sentences about what a test notices by now; as ``survivors.toml`` writes them."""
    for verdict in verdicts:
        key = (verdict.mutant.text, verdict.mutant.change)
        survived = verdict.outcome == "survived"
        if survived != ((module, *key) in explained):
            what = "not noticed" if survived else "noticed, though explained"
            print(f"{module}:{verdict.mutant.line}: {what}, of {verdict.tests} tests: {json.dumps(key)}")


if __name__ == "__main__":
    main()
