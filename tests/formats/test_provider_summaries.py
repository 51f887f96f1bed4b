"""Summaries that the provider wrote: the newest is kept, as only it represents the history before it."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import compact_sync, last, presets
from compaction.strategies import SlidingWindow, Strategy, Summarization, Truncation
from tests.support.wires import STRATEGIES, Brief

OLD, NEW = "gAAAAB-old", "gAAAAB-new"


def responses() -> list[Any]:
    """Return a conversation with two compaction items."""
    said = [{"type": "message", "role": "user", "content": f"Question {n}. " * 20} for n in range(12)]
    items: list[Any] = [{"type": "compaction", "id": f"cmp_{data}", "encrypted_content": data} for data in (OLD, NEW)]
    return [*said[:3], items[0], *said[3:6], items[1], *said[6:]]


def anthropic() -> list[Any]:
    """Return a similar conversation with compaction blocks, of which a third one reports a failure."""
    said = [{"role": role, "content": f"Message {n}. " * 20} for n, role in enumerate(["user", "assistant"] * 6)]
    for place, data in ((1, OLD), (5, NEW), (9, None)):
        block = {"type": "compaction", "content": data}
        said[place] = {"role": "assistant", "content": [block, {"type": "text", "text": "Going on. " * 20}]}
    return [*said, {"role": "user", "content": "now?"}]


CONVERSATIONS: dict[str, list[Any]] = {"openai-responses": responses(), "anthropic": anthropic()}
each_format = pytest.mark.parametrize("format", CONVERSATIONS)


@each_format
@pytest.mark.parametrize(
    "strategy",
    [
        Truncation(keep=last(groups=1)),
        SlidingWindow(keep=last(groups=1)),
        presets.token_budget(200),
        presets.adaptive(600),
        Truncation(keep=last(groups=2)) >> Summarization(Brief(), keep=last(groups=1)),
    ],
    ids=lambda strategy: repr(strategy)[:30],
)
def test_the_newest_stays_and_older_ones_go(strategy: Strategy, format: str) -> None:
    messages = CONVERSATIONS[format]
    left = compact_sync(messages, strategy, counter="chars/4", format=format).messages
    newest = next(raw for raw in messages if NEW in repr(raw))
    assert any(raw is newest for raw in left)
    assert OLD not in repr(left)
    assert len(left) < len(messages)


@each_format
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: repr(strategy)[:30])
def test_no_strategy_takes_it_out(strategy: Strategy, format: str) -> None:
    assert NEW in repr(compact_sync(CONVERSATIONS[format], strategy, counter="chars/4", format=format).messages)
