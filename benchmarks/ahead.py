"""Measures the share of summaries requested ahead of time that are used, and the requests they cost.

    python -m benchmarks.ahead --corpus ../shared/corpus/dev

Each recorded conversation grows call by call through two sessions, one with ``ahead=`` and one without. The model is a digest
that answers a number of calls later. A summary that is ready, or still being written, when its conversation ends was not due
yet: it counts neither as a prepared summary nor as a request.
"""

from __future__ import annotations

import argparse
import contextvars
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs

from compaction import last, presets
from compaction.session import CompactionSession
from compaction.strategies import Strategy, Summarization
from compaction.summarizers import DigestSummarizer, Summarizer, SummaryRequest
from compaction.triggers import tokens_exceed

_IN_A_TURN: contextvars.ContextVar[bool] = contextvars.ContextVar("in_a_turn", default=False)


@attrs.define(kw_only=True)
class Outcome:
    """The sums of a measurement: calls, requests to the model, and the use of those made ahead."""

    turns: int = 0
    requests: int = 0
    waited: int = 0
    prepared: int = 0
    used: int = 0
    cancelled: int = 0

    @property
    def used_share(self) -> float:
        """Prepared summaries that were used, of 100."""
        return 100 * self.used / self.prepared if self.prepared else 100.0


class SlowModel:
    """A digest that answers ``lag`` calls after its request in the background. Holds state: the calls, and its answers."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.call = anyio.Event()
        self.asked = self.waited = self.cancelled = self.cancelled_at_the_end = 0
        self.is_over = False
        self.ready: list[str] = []

    def pass_a_call(self) -> None:
        """Count another model call of the agent."""
        self.call.set()
        self.call = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> str:
        """Answer at once in a turn, which waits, and later in the background."""
        self.asked += 1
        digest = DigestSummarizer().summarize(attrs.evolve(request, originals=()))
        text = f"Summary {self.asked} of this conversation.\n\n{digest}"
        if _IN_A_TURN.get():
            self.waited += 1
            return text
        try:
            for _ in range(self.lag):
                await self.call.wait()
        except BaseException:
            self.cancelled += not self.is_over
            self.cancelled_at_the_end += self.is_over
            raise
        self.ready.append(f"Summary {self.asked} of this conversation.")
        return text


def _conversations(corpus: Path, files: Sequence[str] | None) -> Iterator[list[dict[str, Any]]]:
    for path in sorted(corpus.glob("*.jsonl.gz")):
        if files and path.name.removesuffix(".jsonl.gz") not in files:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["messages"] for line in lines)


async def _grown(messages: Sequence[Any], session: CompactionSession, model: SlowModel) -> tuple[int, set[str]]:
    """Let a conversation grow through a session; return the calls, and the prepared texts that were used."""
    calls = 0
    used: set[str] = set()
    async with session:
        for place, message in enumerate(messages):
            if message.get("role") != "assistant" or not place:
                continue
            token = _IN_A_TURN.set(True)
            view = await session.view(messages[:place])
            _IN_A_TURN.reset(token)
            calls += 1
            shown = "".join([str(each.get("content")) for each in view if "Summary " in str(each.get("content"))])
            used.update([text for text in model.ready if text in shown])
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            model.pass_a_call()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
        model.is_over = True
    return calls, used


async def measure(
    conversations: Sequence[Sequence[Any]],
    strategy: Callable[[Summarizer], Strategy],
    *,
    limit: int,
    share: float | None = None,
    lag: int = 1,
) -> Outcome:
    """Replay conversations, and return the sums of the requests.

    Args:
        conversations: Lists of messages.
        strategy: Makes the strategy for a model.
        limit: Tokens at which the strategy is due.
        share: The share of the limit past which a summary is asked for ahead; ``None`` for never.
        lag: Calls until the model answers.
    """
    sums = Outcome()
    ahead = None if share is None else tokens_exceed(int(limit * share))
    for messages in conversations:
        model = SlowModel(lag)
        session = CompactionSession(strategy(model), counter="chars/4", window=2 * limit, clock=lambda: 0.0, ahead=ahead)
        calls, used = await _grown(messages, session, model)
        waiting = int(len(model.ready) > len(used) and session.index.tokens <= limit)
        sums.turns += calls
        sums.requests += model.asked - waiting - model.cancelled_at_the_end
        sums.waited += model.waited
        sums.prepared += len(model.ready) - waiting
        sums.used += len(used)
        sums.cancelled += model.cancelled
    return sums


def _strategies(limit: int) -> dict[str, Callable[[Summarizer], Strategy]]:
    return {
        "Summarization, keep last(tokens=1/4)": lambda model: Summarization(
            model, trigger=tokens_exceed(limit), keep=last(tokens=limit // 4)
        ),
        "Summarization, keep last(groups=4)": lambda model: Summarization(
            model, trigger=tokens_exceed(limit), keep=last(groups=4)
        ),
        "presets.hermes": lambda model: presets.hermes(2 * limit, model),
        "presets.adaptive": lambda model: presets.adaptive(int(limit / 0.95), model),
    }


async def _report(given: argparse.Namespace) -> None:
    conversations = list(_conversations(given.corpus, given.files))
    heads = ("strategy", "due at", "ahead at", "answer after", "requests without", "with", "ratio", "prepared", "used")
    print(f"| {' | '.join((*heads, 'cancelled', 'turns that waited'))} |")
    print("|---" * (len(heads) + 2) + "|")
    for limit in given.limits:
        for name, strategy in _strategies(limit).items():
            plain = await measure(conversations, strategy, limit=limit)
            for share in given.shares:
                for lag in given.lags:
                    sums = await measure(conversations, strategy, limit=limit, share=share, lag=lag)
                    cells = (
                        name,
                        f"{limit:,}",
                        f"{share:.0%}",
                        f"{lag} calls",
                        plain.requests,
                        sums.requests,
                        f"{sums.requests / max(1, plain.requests):.2f}",
                        sums.prepared,
                        f"{sums.used_share:.0f} %",
                        sums.cancelled,
                        f"{sums.waited} of {plain.requests}",
                    )
                    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ahead", description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder of recorded conversations")
    parser.add_argument("--files", nargs="*", help="names of recordings, such as tau_long; all by default")
    parser.add_argument("--limits", type=int, nargs="+", default=[8_000, 16_000], help="tokens at which a strategy is due")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.8, 0.9, 0.95], help="shares of it for the ahead trigger")
    parser.add_argument("--lags", type=int, nargs="+", default=[1], help="calls until the model answers")
    given = parser.parse_args(arguments)
    anyio.run(_report, given)


if __name__ == "__main__":
    main()
