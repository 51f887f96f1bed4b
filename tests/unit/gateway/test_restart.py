"""A gateway that is killed and restarted sends the same bytes, tested with real processes."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest

from tests.support.gateways import CHAT, GatewayProcess, ScriptedUpstream, body_of, chat_reply, tool_chat

pytestmark = pytest.mark.slow
MESSAGES = tool_chat(20)
COUNTS = range(1, len(MESSAGES) + 1, 2)


class Gateway(GatewayProcess):
    """A gateway process to which conversations are sent."""

    def send(self, count: int) -> None:
        """Send the first messages, and wait until the gateway has counted the answer."""
        before = self.answered()
        assert self.client.post(CHAT, content=body_of(MESSAGES[:count])).status_code == 200
        while self.answered() == before:
            time.sleep(0.005)

    def answered(self) -> int:
        return sum(each["count"] for each in self.client.get("/status.json").json()["requests"])


def gateway(upstream: ScriptedUpstream, folder: Path) -> Gateway:
    return Gateway(upstream.url, folder, window=1_800)


def replies(folder: Path, restarts: set[int]) -> list[bytes]:
    """Return the requests that the upstream receives for a growing conversation, with restarts before some of them."""
    folder.mkdir()
    with ScriptedUpstream(chat_reply()) as upstream, contextlib.ExitStack() as stack:
        serving = stack.enter_context(gateway(upstream, folder))
        for place, count in enumerate(COUNTS):
            if place in restarts:
                serving.kill()
                serving = stack.enter_context(gateway(upstream, folder))
            serving.send(count)
        return [got.body for got in upstream.got]


def test_the_same_bytes_after_a_restart(tmp_path: Path) -> None:
    """A gateway killed before, at and after requests that are cut sends the same bytes as one that kept running."""
    expected = replies(tmp_path / "whole", set())
    sizes = [len(json.loads(body)["messages"]) for body in expected]
    cuts = [place for place in range(1, len(sizes)) if sizes[place] < sizes[place - 1]]
    assert len(cuts) >= 2
    assert replies(tmp_path / "killed", {cuts[0], cuts[0] + 1, cuts[1] + 1}) == expected
