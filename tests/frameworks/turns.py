"""A conversation to send to the strict server, and the last turn of an integration."""

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


def turn_of(made: Any) -> Any:
    """Return the last turn of an integration's conversations, or of the given ones."""
    turn = getattr(made, "conversations", made).last
    assert turn is not None
    assert turn.session is not None
    return turn


def status_of(made: Any) -> Any:
    return turn_of(made).session.status()
