"""Hermes Agent as the host of a context engine; it calls the engine up to three times before each request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compaction import MessageIndex

Chat = list[dict[str, Any]]


def tokens_of(messages: Chat) -> int:
    """Tokens of a list, by the estimator that the tests use."""
    return MessageIndex(messages, counter="chars/4").tokens


def requests(engine: Any, conversation: Chat, tokens: Callable[[Chat], int] = tokens_of) -> Iterator[Chat]:
    """Yield each request of a conversation: the messages that Hermes has when the assistant is to answer.

    Args:
        engine: A context engine.
        conversation: All messages; before each answer, the new ones are added to the engine's list.
        tokens: The provider's count of a request.
    """
    view: Chat = []
    read = 0
    for end in (place for place, message in enumerate(conversation) if message["role"] == "assistant"):
        view = [*view, *conversation[read:end]]
        read = end
        for _ in range(3):
            before = tokens(view)
            if not engine.should_compress(before):
                break
            view = engine.compress(view, current_tokens=before)
            if tokens(view) > 0.95 * before:
                break
        sent = tokens(view)
        engine.update_from_response({"prompt_tokens": sent, "completion_tokens": 9, "total_tokens": sent + 9})
        yield view
