"""The subjects of the measurement: each is given a session request by request, as an agent would, and returns what to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from compaction import CompactionResult, CompactionSession, MessageIndex, last, presets, run_sync
from compaction.gateway.bodies import ModelRequest
from compaction.gateway.conversations import ConversationRequest, GatewayConversations
from compaction.gateway.routes import route_of
from compaction.gateway.settings import GatewaySettings
from compaction.run import unawaited
from compaction.strategies import Strategy, Truncation
from compaction.tokens import TokenCounter
from compaction.triggers import tokens_below, tokens_exceed

from .sessions import Session

_ONE_SHOT: Final = (0.25, 0.5, 0.75, 1.0)  # of the requests: a one-shot call reads the whole list each time
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Runs {name} in the repository and returns its output.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "command": {"type": "string"}}},
        },
    }
    for name in ("read", "grep", "edit", "bash")
]


@attrs.frozen(eq=False)
class Sent:
    """One request.

    Args:
        messages: Number of the conversation's messages that it has or replaces.
        view: What is sent.
        index: The index behind it.
        result: The run that made it.
    """

    messages: int
    view: list[Any]
    index: MessageIndex
    result: CompactionResult | None


Subject: TypeAlias = Callable[[Session, TokenCounter], Iterator[Sent]]


def _in_session(make: Callable[[int], Strategy], session: Session, counter: TokenCounter) -> Iterator[Sent]:
    """Yield the requests of a `CompactionSession`."""
    window = session.case.window
    compacted = CompactionSession(make(window), counter=counter, window=window)
    for count in session.requests:
        view = compacted.view_sync(session.messages[:count])
        yield Sent(count, view, compacted.index, compacted.last_result)


def _at_once(make: Callable[[int], Strategy], session: Session, counter: TokenCounter) -> Iterator[Sent]:
    """Yield some of the requests, each compacted from the whole list."""
    requests = session.requests
    for share in _ONE_SHOT:
        count = requests[max(0, int(len(requests) * share) - 1)]
        index = MessageIndex(list(session.messages[:count]), counter=counter)
        result = run_sync(index, make(session.case.window))
        yield Sent(count, result.messages, index, result)


def _through_gateway(session: Session, counter: TokenCounter) -> Iterator[Sent]:
    """Yield the requests that `compaction serve` would forward for a client that sends the whole list each time."""
    from compaction.cli.serve import DEFAULT_PRESET

    settings = GatewaySettings(strategy=presets.PRESETS[DEFAULT_PRESET].make, window=session.case.window, counter=counter)
    conversations, route = GatewayConversations(settings, None), route_of("POST", "/v1/chat/completions")
    assert route is not None
    fields = {"model": "gpt-5", "tools": _TOOLS}
    for count in session.requests:
        messages = list(session.messages[:count])
        parsed = ModelRequest(b"", fields, route.api.key, messages)
        request = ConversationRequest(route=route, original=b"", parsed=parsed, id="one", upstream="http://localhost")
        turn = unawaited(conversations.turn(request, sync=True))
        yield Sent(count, turn.messages, turn.session.index, turn.session.last_result)


def _truncation(window: int) -> Strategy:
    return Truncation(trigger=tokens_exceed(int(window * 0.95)), target=tokens_below(int(window * 0.5)), keep=last(groups=1))


SUBJECTS: Final[Mapping[str, Subject]] = {
    "adaptive": partial(_in_session, presets.adaptive),
    "gateway": _through_gateway,
    "hermes": partial(_in_session, presets.hermes),
    "context_window": partial(_in_session, presets.context_window),
    "truncation": partial(_in_session, _truncation),
    "token_budget": partial(_at_once, presets.token_budget),
}
"""Every subject by its name; `token_budget` reads the whole list at four requests of each session, the others at all."""
