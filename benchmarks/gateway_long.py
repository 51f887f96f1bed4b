"""A long task with reminders in every wire: ``python -m benchmarks.gateway_long --calls 800 --window 40000``.

A scripted client makes the calls in three turns of its user, and adds an instruction before every tenth call. The model is
strict, and prices requests. ``tests/unit/gateway/test_wires.py`` runs a tenth of it.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from typing import Any, Final

import anyio
import attrs

from compaction.models import prices_of
from compaction.tokens import counter
from tests.support.clients import AGENTS, Recorder, run
from tests.support.gateways import client_of, lifespan, settings_of

from .hosts.script import Asked, Call, Reply, user_text
from .priced_provider import PricedProvider

MODELS: Final = {
    "openai-chat": "gpt-5.4",
    "openai-responses": "gpt-5.4",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-2.5-pro",
}
USER_TURNS: Final = 3


class LongTurns:
    """The model's part: each turn has the same number of calls. Holds state: the number of replies.

    Args:
        calls: The calls of each turn.
    """

    def __init__(self, calls: int) -> None:
        self.replies = 0
        self._calls = calls

    def __call__(self, asked: Asked, id: str) -> Reply:
        """Return the next call, or the end of the turn; a request without the tool asks for a summary."""
        if "look" not in asked.tools:
            return Reply(id=id, text="The user wants prices; several items were looked up.")
        turn, place = divmod(self.replies, self._calls + 1)
        self.replies += 1
        if place == self._calls:
            return Reply(id=id, text=f"Turn {turn} is done.")
        return Reply(id=id, calls=(Call(f"call_{id}", "look", {"item": f"alpha/{turn}/{place}/0"}),))


@attrs.frozen(kw_only=True)
class LongRun:
    """The outcome of a run.

    Args:
        requests: Requests of the client.
        refused: Requests that the model refused.
        lost: Requests without a message of the user.
        reminders: The most reminders in one request.
        floors: The tokens that each cut left.
        bill: The price through the gateway for a dollar of direct traffic.
    """

    requests: int
    refused: int
    lost: int
    reminders: int
    floors: list[int]
    bill: float


async def long_run(name: str, calls: int, window: int) -> LongRun:
    """Run the task in one wire."""
    agent, task = AGENTS[name], LongTurns(calls // USER_TURNS)
    said = [user_text("alpha", turn) for turn in range(USER_TURNS)]
    given: list[bytes] = []
    with Recorder(window=window, play=task) as model:
        async with lifespan(settings_of(model.address, window=window, timeout=60.0)) as app, client_of(app) as client:
            await run(agent, client, "alpha", turns=USER_TURNS, reminders=name != "gemini", on_request=given.append)
    turn_of = [min(USER_TURNS - 1, place // (calls // USER_TURNS + 1)) for place in range(len(model.bodies))]
    texts = [json.dumps(body) for body in model.bodies]
    through, direct = (PricedProvider(prices_of(MODELS[name]), agent.key, counter("chars/4")) for _ in range(2))
    charges = [through.send(text.encode()) for text in texts]
    sizes = [charge.tokens for charge in charges]
    return LongRun(
        requests=len(given),
        refused=len(model.bodies) - len(given) + model.ledger.total("invalid") + model.ledger.total("over"),
        lost=sum(each not in text for text, turn in zip(texts, turn_of, strict=True) for each in said[: turn + 1]),
        reminders=max(text.count("Reminder") for text in texts),
        floors=[size for before, size in pairwise(sizes) if size < before],
        bill=sum(charge.dollars for charge in charges) / sum(direct.send(body).dollars for body in given),
    )


def main() -> None:
    """Run the task in each wire, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=800)
    parser.add_argument("--window", type=int, default=40_000)
    parser.add_argument("--wires", nargs="+", default=list(AGENTS), choices=list(AGENTS))
    arguments = parser.parse_args()
    for name in arguments.wires:
        found: Any = attrs.asdict(anyio.run(long_run, name, arguments.calls, arguments.window))
        print(name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
