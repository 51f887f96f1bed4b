"""A hundred turns of a framework on the strict server beside a plain loop, and a conversation to send there."""

from __future__ import annotations

from typing import Any

from benchmarks.hosts.measure import Case, measure
from benchmarks.hosts.script import result_text, user_text


def check_100_turns(case: Case) -> None:
    """A hundred turns of a case need no more than the plain loop's figures, and its history is cut at least once."""
    row = measure(case, turns=100)
    assert row.problems == []
    assert row.host.turns == 100
    assert row.host.breaks > 0


def asked(turns: int, *, conversation: str = "c0") -> list[Any]:
    """A conversation with so many turns, whose last word is the user's."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": user_text(conversation, turn)})
        messages.append({"role": "assistant", "content": result_text(f"{turn}")})
    return [*messages, {"role": "user", "content": user_text(conversation, turns)}]
