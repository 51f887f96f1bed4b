"""A benchmark of a strategy: its CPU time on conversations of several sizes, as a table, without a pass mark."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import anyio
import attrs

from ..checks import checked_count
from ..formats import MessageFormat, openai_chat
from ..index import MessageIndex, RunContext
from ..run import run
from ..strategies import StrategyLike, as_strategy
from ..tokens import TokenCounter
from .samples import agent_session


@attrs.frozen(kw_only=True)
class BenchmarkRow:
    """The measurements for one conversation size."""

    messages: int
    tokens_before: int
    tokens_after: int
    edits: int
    read_seconds: float  # CPU time to read the conversation into an index
    run_seconds: float  # CPU time of the run itself
    # how many times longer the run takes with ten times the messages, estimated from the previous size; 10 is linear.
    # ``None`` for the first size, and if a time was too short to measure
    growth: float | None = None


@attrs.frozen
class Benchmark:
    """The measurements of `benchmark_strategy`, one row per size in the order given; ``str()`` shows them as a table."""

    strategy: str
    rows: tuple[BenchmarkRow, ...]

    def __str__(self) -> str:
        head = f"{'messages':>10}{'tokens':>14}{'after':>14}{'edits':>10}{'read ms':>12}{'run ms':>12}{'x10':>8}"
        rows = [
            f"{row.messages:>10,}{row.tokens_before:>14,}{row.tokens_after:>14,}{row.edits:>10,}"
            f"{row.read_seconds * 1_000:>12,.2f}{row.run_seconds * 1_000:>12,.2f}"
            f"{'' if row.growth is None else f'{row.growth:.1f}':>8}"
            for row in self.rows
        ]
        return "\n".join([self.strategy, head, *rows])


def benchmark_strategy(
    strategy: StrategyLike,
    sizes: Sequence[int] = (100, 1_000, 10_000),
    *,
    conversation: Callable[[int], Sequence[Any]] | None = None,
    format: MessageFormat | str | None = None,
    counter: TokenCounter | str = "chars/4",
    context: RunContext | None = None,
    repeats: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> Benchmark:
    """Measure a strategy, sync or async, on conversations of several sizes.

    Each size shows the fastest of a few runs. A strategy whose trigger does not fire costs nothing; the tokens and edits show
    whether it did anything.

    Args:
        strategy: A strategy, a pipeline or a plain function.
        sizes: Numbers of messages, each > 0.
        conversation: Returns a conversation of a given number of messages; ``None`` for `agent_session`.
        format: The wire format of these conversations; ``None`` to detect it, and OpenAI chat for `agent_session`.
        counter: A token counter or the name of one; the default is very fast.
        context: The run context, such as the window.
        repeats: Runs per size, >= 1, each on a new index.
        clock: Returns seconds; by default the CPU time of this process.

    Raises:
        ConfigurationError: If a size or ``repeats`` is out of range.

    >>> from compaction.strategies import Truncation
    >>> table = benchmark_strategy(Truncation(), sizes=[100, 500], repeats=1)
    >>> [row.tokens_after < row.tokens_before for row in table.rows]
    [True, True]
    """
    checked_count("repeats", repeats, 1)
    for size in sizes:
        checked_count("sizes: each", size, 1)

    async def timed(messages: Sequence[Any]) -> BenchmarkRow:
        start = clock()
        index = MessageIndex(messages, counter=counter, format=format, context=context)
        read_at = clock()
        result = await run(index, strategy)
        return BenchmarkRow(
            messages=len(messages),
            tokens_before=result.before.tokens,
            tokens_after=result.after.tokens,
            edits=len(result.edits),
            read_seconds=read_at - start,
            run_seconds=clock() - read_at,
        )

    rows: list[BenchmarkRow] = []
    for size in sizes:
        messages = agent_session(size, format=format or openai_chat) if conversation is None else conversation(size)
        best = min([anyio.run(timed, messages) for _ in range(repeats)], key=attrgetter("run_seconds"))
        rows.append(attrs.evolve(best, growth=_growth(rows[-1], best) if rows else None))
    return Benchmark(as_strategy(strategy).name, tuple(rows))


def _growth(smaller: BenchmarkRow, larger: BenchmarkRow) -> float | None:
    """Return the factor for ten times the messages, extrapolated from the factor between two sizes."""
    if larger.messages <= smaller.messages or not smaller.run_seconds > 0 or not larger.run_seconds > 0:
        return None
    decades = math.log10(larger.messages / smaller.messages)
    return float((larger.run_seconds / smaller.run_seconds) ** (1 / decades))
