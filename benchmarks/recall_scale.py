"""The time of grep and expand over a million stored messages, for rare and common words.

    python -m benchmarks.recall_scale --database recall.db                     # fills it first, about 1.1 GB
    python -m benchmarks.recall_scale --database recall.db --date "30 May 2026" --write docs/offload.md

An existing database is used again.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compaction.stores import SQLiteStore, StoredRecord
from compaction.stores.recall import compaction_expand, compaction_grep

from .tables import Section, table, written

SESSION = "scale"
BATCH = 5_000
WORDS = 60
VOCABULARY = 50_000
FREQUENCIES = (0.9, 0.1, 0.01, 0.001, 0.00001)


def records(count: int, start: int = 0) -> Iterator[StoredRecord]:
    """Yield messages of 60 words, drawn with frequencies as in text (the k-th word 1/k as often), and planted words."""
    draw = random.Random(start)
    vocabulary = [f"w{rank}" for rank in range(1, VOCABULARY + 1)]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    words = iter(draw.choices(vocabulary, weights, k=count * WORDS))
    for place in range(start, start + count):
        told = [word_of(share) for share in FREQUENCIES if draw.random() < share]
        text = " ".join([f"line{place}", *(next(words) for _ in range(WORDS)), *told])
        about = {"by": "Offload", "reason": "scale", "tokens": 80}
        yield StoredRecord.of_message({"role": "user", "content": text}, role="user", text=text, salt="s", **about)


def word_of(share: float) -> str:
    """Return the word that this share of the messages contains."""
    return f"told{round(share * 100_000)}"


def fill(store: SQLiteStore, messages: int) -> None:
    """Store messages until there are this many."""
    stored = sum(tally.messages for tally in store.describe(SESSION).tallies)
    began = time.perf_counter()
    for start in range(stored, messages, BATCH):
        store.put(SESSION, tuple(records(min(BATCH, messages - start), start)))
    if stored < messages:
        seconds = time.perf_counter() - began
        print(f"stored {messages - stored:,} messages in {seconds:.0f} s ({(messages - stored) / seconds:,.0f} a second)")


def milliseconds(run: Callable[[int], object], times: int) -> list[float]:
    """Return the milliseconds of each run."""
    taken: list[float] = []
    for turn in range(times):
        began = time.perf_counter()
        run(turn)
        taken.append((time.perf_counter() - began) * 1_000)
    return taken


def row(name: str, matches: str, taken: Sequence[float]) -> list[str]:
    """Return a row of the table."""
    p95 = statistics.quantiles(taken, n=20)[18]
    return [name, matches, f"{statistics.median(taken):.1f}", f"{p95:.1f}"]


def measured(store: SQLiteStore, messages: int, times: int) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for share in FREQUENCIES:
        answer = compaction_grep(store, SESSION, word_of(share))
        ranked = f"{answer['matches']:,}{' (the newest)' if 'ranked' in answer else ''}"
        taken = milliseconds(lambda _, share=share: compaction_grep(store, SESSION, word_of(share)), times)
        yield row(f"grep, a word in {share * 100:g} % of the messages", ranked, taken)
    both = f"{word_of(0.1)} {word_of(0.01)}"
    answer = compaction_grep(store, SESSION, both)
    taken = milliseconds(lambda _: compaction_grep(store, SESSION, both), times)
    yield row("grep, two words, of 10 % and 1 %", f"{answer['matches']:,}", taken)
    places = random.Random(7).choices(range(1, messages), k=times * 10)
    ids = [store.range(SESSION, place, 1)[0].id for place in places]
    yield row("expand, one id", "", milliseconds(lambda turn: compaction_expand(store, SESSION, ids[turn]), len(ids)))


def main() -> None:
    """Fill the store and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--database", type=Path, default=Path("/tmp/recall.db"))
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--date", default="", help="the date that the page shows")
    parser.add_argument("--write", type=Path, help="the page to write the table to")
    given = parser.parse_args()
    store = SQLiteStore(given.database, timeout_seconds=60)
    fill(store, given.messages)
    size = given.database.stat().st_size
    when = f"Measured on {given.date}" if given.date else "Measured"
    what = (
        f"{when} with Python {platform.python_version()} and SQLite {sqlite3.sqlite_version} on a shared machine with "
        f"{os.cpu_count()} cores: {given.messages:,} messages of {WORDS} words and more in {size / 1e9:.2f} GB, "
        f"{given.times} calls of each grep, {given.times * 10:,} of expand; wall time."
    )
    rows = table(["call", "matches ranked", "median ms", "95th percentile ms"], measured(store, given.messages, given.times))
    section = Section("recall", (what, "", *rows))
    print("\n".join(section.lines))
    if given.write:
        given.write.write_text(written(given.write.read_text("utf-8"), [section]), "utf-8")


if __name__ == "__main__":
    main()
