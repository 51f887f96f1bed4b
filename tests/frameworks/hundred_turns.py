"""A check of 100 turns of a framework beside a plain loop, on the strict server, and a conversation to send there."""

from __future__ import annotations

from typing import Any

from benchmarks.hosts.measure import Case, measure
from benchmarks.hosts.script import result_text, user_text


def check_100_turns(case: Case) -> None:
    """Check that 100 turns of a case reach the plain loop's figures and compact the history at least once."""
    row = measure(case, turns=100)
    assert row.problems == []
    assert row.host.turns == 100
    assert row.host.breaks > 0


def asked(turns: int, *, conversation: str = "c0") -> list[Any]:
    """Return a conversation with this many turns, whose last message is the user's."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": user_text(conversation, turn)})
        messages.append({"role": "assistant", "content": result_text(f"{turn}")})
    return [*messages, {"role": "user", "content": user_text(conversation, turns)}]
