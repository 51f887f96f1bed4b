"""A conversation to send to the strict server."""

from __future__ import annotations

from typing import Any

from benchmarks.hosts.script import result_text, user_text


def asked(turns: int, *, conversation: str = "c0") -> list[Any]:
    """Return a conversation with this many turns, whose last message is the user's."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": user_text(conversation, turn)})
        messages.append({"role": "assistant", "content": result_text(f"{turn}")})
    return [*messages, {"role": "user", "content": user_text(conversation, turns)}]
