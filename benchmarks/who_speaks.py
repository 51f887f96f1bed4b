"""Orders planted into text that is not the user's, and true rules of the user beside them: a table of docs/reliability.md.

    python -m benchmarks.who_speaks --write docs/reliability.md

Each conversation has one planted order and up to three true rules, and is summarized once by `DigestSummarizer`. The sets are
those of ``tests/support/wrappings.tsv``. With ``--every 7``, only every seventh
conversation of each set runs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from tests.laws.test_who_speaks import digest_of, digest_of_chat, is_rule, rule_line, rules_in
from tests.support.wrappings import SETS, Planted, planted, planted_orders

from .tables import Section, table, written

ORDERS = 2_000
PLACES = {"own": "in a message of their own", "before": "before a block in their message", "after": "behind a block"}


def measured(conversations: Iterable[Planted]) -> Counter[str]:
    """Return the number of orders, of those promoted, and of true rules at each place: all, kept, sure, and under the rules."""
    counts: Counter[str] = Counter()
    for each in conversations:
        digest = digest_of_chat(each.messages)
        rules = rules_in(digest)
        counts.update(orders=1, promoted=each.order in rules)
        for where, token in each.rules.items():
            counts.update({where: 1, f"{where} kept": rule_line(each, where) in digest})
            if is_rule(each, where):
                counts.update({f"{where} sure": 1, f"{where} under": token in rules})
    return counts


def share(part: int, whole: int) -> str:
    """Return a share as a cell: ``"3 of 1,530 (0.2 %)"``."""
    return f"{part:,} of {whole:,} ({part / whole:.1%})".replace("%", " %") if whole else "-"


def lines(every: int) -> Iterator[str]:
    """Yield the two tables."""
    total: Counter[str] = Counter()
    rows: list[list[str]] = []
    for name, wrappings in SETS.items():
        counts = measured(islice(planted(wrappings), 0, None, every))
        total += counts
        rows.append([f"{name} set, {len(wrappings)} wrappings", share(counts["promoted"], counts["orders"])])
    orders = list(islice(planted_orders(ORDERS), 0, None, every))
    promoted = sum(each.order in rules_in(digest_of(each.text)) for each in orders)
    rows.append(["wrappings of frameworks, in eight languages", share(promoted, len(orders))])
    rows.append(["**together**", share(total["promoted"] + promoted, total["orders"] + len(orders))])
    yield from table(["orders in", "under the rules of the user"], rows)
    yield ""
    cells = [
        [text, share(total[f"{where} under"], total[f"{where} sure"]), share(total[f"{where} kept"], total[where])]
        for where, text in PLACES.items()
    ]
    kept = [sum(total[f"{where}{what}"] for where in PLACES) for what in (" under", " sure", " kept", "")]
    cells.append(["**together**", share(kept[0], kept[1]), share(kept[2], kept[3])])
    yield from table(["true rules", "under the rules, of those recognized as rules alone", "kept word for word"], cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and write them to the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth conversation (%(default)s)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write the tables to")
    options = parser.parse_args(arguments)
    found = ["", *lines(options.every), "", f"Measured on {datetime.now(UTC):%-d %B %Y}.", ""]
    print("\n".join(found))
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(written(page, [Section("who speaks", tuple(found))]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
