"""The share of calls whose view does not continue the previous one, so that the provider's prompt cache is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from compaction import last
from compaction.session import CompactionSession
from compaction.strategies import Truncation
from compaction.triggers import tokens_below, tokens_exceed

from .batch import Lines
from .tables import Claim, Section, table

FROM, TO = 16_000, 8_000
MOST_CHANGED = 8.0


def sticky_section(files: Sequence[tuple[str, Lines]]) -> Section:
    """Replay recorded coding sessions, call by call, in a session that cuts from 16,000 tokens to 8,000."""
    lines = next((lines for name, lines in files if name == "coding_long"), ())
    rows: list[list[str]] = []
    calls = changed = 0
    for line in lines:
        recording = json.loads(line)
        made, broke = _replay(recording["messages"])
        rows.append([recording["id"], f"{len(recording['messages']):,}", f"{made:,}", str(broke), f"{broke / made:.1%}"])
        calls, changed = calls + made, changed + broke
    if not calls:
        return Section("sticky", ("Not measured: it needs the recorded sessions `coding_long`, see `--corpus`.",))
    rows.append(["**all**", "", f"{calls:,}", str(changed), f"{changed / calls:.1%}"])
    share = 100 * changed / calls
    claim = Claim(
        "calls of 100 that change more than the end of the view, 16k to 8k", MOST_CHANGED, share, unit="calls", at_most=True
    )
    return Section("sticky", table(["session", "messages", "calls", "changed", "share"], rows), (claim,))


def _replay(messages: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the number of calls (one before each assistant message), and of those that do not continue the previous view."""
    strategy = Truncation(trigger=tokens_exceed(FROM), target=tokens_below(TO), keep=last(groups=2))
    session = CompactionSession(strategy, counter="chars/4", clock=lambda: 0.0)
    before: list[Any] = []
    calls = changed = 0
    for place, message in enumerate(messages):
        if message["role"] == "assistant" and place:
            view = session.view_sync(messages[:place])
            changed += view[: len(before)] != before
            calls += 1
            before = view
    return calls, changed
