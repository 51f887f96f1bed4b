"""Hosts: strategies for conversations that grow over many calls, and Hermes Agent, which asks its engine before each call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compaction import last
from compaction.strategies import Strategy, Summarization, ToolResult, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import tokens_below, tokens_exceed

from .chats import Chat, assistant, call, indexed, result, system, user
from .scripted import Scripted


def host_strategies(tokens: int, summary: Callable[[SummaryRequest], str]) -> dict[str, Callable[[], Strategy]]:
    """Return strategies that cut, shorten results or summarize, all of them above about this many tokens."""
    cut, less, more = int(0.6 * tokens), int(0.7 * tokens), int(1.3 * tokens)
    return {
        "cut": lambda: Truncation(trigger=tokens_exceed(tokens), target=tokens_below(cut), keep=last(groups=2)),
        "rewriting": lambda: (
            ToolResult(trigger=tokens_exceed(less), keep=last(groups=2))
            >> Truncation(trigger=tokens_exceed(more), target=tokens_below(less), keep=last(groups=2))
        ),
        "summaries": lambda: Summarization(Scripted(summary), trigger=tokens_exceed(tokens), keep=last(groups=3)),
    }


def tokens_of(messages: Chat) -> int:
    """Tokens of a list, by the estimator that the tests use."""
    return indexed(messages).tokens


RESULT_TOKENS: dict[str, Callable[[int], int]] = {
    "small": lambda _: 150,
    "1,400 tokens": lambda _: 1_400,
    "large": lambda _: 4_000,
    "mixed": lambda call: 4_000 if call % 7 == 0 else 40 + call * 131 % 760,
}
"""The tokens of the result of each call, by the name of the conversation."""


def calls_with(tokens: Callable[[int], int]) -> Chat:
    """Return 120 calls, with results of this many tokens, and a question after every twentieth."""
    chat = [system("You fix bugs."), user("Why does the request fail?")]
    for number in range(120):
        if number and number % 20 == 0:
            chat += [assistant(f"Part {number}."), user(f"Go on with {number}.")]
        chat.append(call(f"c{number}", name="read_file", arguments=json.dumps({"path": f"src/{number}.py"})))
        chat.append(result(f"c{number}", f"{number:03} " * tokens(number)))
    return [*chat, assistant("Done.")]


def cache_use(requests: Iterable[Chat]) -> tuple[int, int]:
    """Return how many requests do not begin with the whole previous one, and the tokens that a cached prefix does not hold."""
    cuts = uncached = 0
    before: Chat = []
    for request in requests:
        same = next(
            (at for at, (old, new) in enumerate(zip(before, request, strict=False)) if old != new),
            min(len(before), len(request)),
        )
        cuts += same < len(before)
        uncached += tokens_of(request[same:]) if same < len(request) else 0
        before = list(request)
    return cuts, uncached


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
