"""Growth of time with the length of a conversation, and the memory an index needs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import agent_framework as af

from compaction import MessageIndex, run_sync

from .conversation import conversation, peer_messages
from .cpu import fastest
from .growth_rows import ROWS
from .peer import COUNTER, PAIRS, compacted, our_tokens
from .tables import Claim, Section, spoken, table

FLOOR = "the floor: every text walked"
MOST_A_DECADE = 12
KEPT = 10_000


def growth_section(sizes: Sequence[int], say: Callable[[str], None]) -> Section:
    """Measure whole calls of every strategy and preset at each size, and the growth from size to size; collector on."""
    rows_of = {pair.name: pair.ours for pair in PAIRS} | ROWS
    took = {name: list[float]() for name in (FLOOR, *rows_of)}
    for size in sizes:
        say(f"growth, {size:,} messages")
        messages = conversation(size)
        tokens = our_tokens(messages)
        rounds = 5 if size < 100_000 else 3
        took[FLOOR].append(fastest(walked, messages, rounds=rounds, on=True))
        for name, configured in rows_of.items():
            strategy = configured(size, tokens)
            took[name].append(fastest(compacted, messages, strategy, rounds=rounds, on=True))
    rows: list[list[str]] = []
    claims: list[Claim] = []
    for name, times in took.items():
        growth = [later / earlier for earlier, later in pairwise(times)][-2:]
        rows.append([name, *map(spoken, times), *(f"{factor:.1f}x" for factor in growth)])
        if name != FLOOR:
            what = f"{name}: ten times the messages, up to {sizes[-1]:,}"
            claims.append(Claim(what, MOST_A_DECADE, max(growth), at_most=True))
    heads = ["strategy", *(f"{size:,}" for size in sizes), *(f"to {size:,}" for size in sizes[-2:])]
    return Section("growth", table(heads, rows), (max(claims, key=lambda claim: claim.measured),))


def walked(messages: Sequence[dict[str, Any]]) -> int:
    """Return the characters of a conversation: what any strategy has to look at."""
    size = 0
    for message in messages:
        size += len(message["role"]) + len(message.get("content") or "")
        for call in message.get("tool_calls", ()):
            size += len(call["function"]["arguments"])
    return size


def memory_section() -> Section:
    """Measure the bytes per message that each side keeps in addition to the caller's objects."""
    messages = conversation(KEPT)
    tokens = our_tokens(messages)
    half = PAIRS[1]
    index = MessageIndex(messages, counter="chars/4")
    read = _kept(lambda: MessageIndex(messages, counter="chars/4"))
    asked = _kept(lambda: index.included_groups)
    cut = _kept(lambda: run_sync(index, half.ours(KEPT, tokens)).after)
    made = peer_messages(messages)
    marked = _kept(lambda: af.annotate_message_groups(made, tokenizer=COUNTER))
    rows = [
        [
            "the messages themselves",
            f"{_kept(lambda: conversation(KEPT)):,.0f}",
            f"{_kept(lambda: peer_messages(messages)):,.0f}",
        ],
        ["read, grouped and counted", f"{read:,.0f}", f"{marked:,.0f}"],
        ["more, once a strategy asked for all groups", f"{asked:,.0f}", ""],
        ["more, after truncation to half", f"{cut:,.0f}", ""],
    ]
    return Section("memory", table(["bytes a message", "ours", "theirs"], rows))


def _kept(build: Callable[[], Any]) -> float:
    """Return the bytes per message that stay allocated after ``build``, including its result."""
    gc.collect()
    tracemalloc.start()
    kept = build()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size / KEPT
