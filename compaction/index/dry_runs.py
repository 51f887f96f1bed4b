"""Dry runs: what a strategy would do to a conversation, and whether a cut is worth what it costs.

`dry_run` is the only place, besides the drivers in `compaction.run`, that applies what a strategy yields. Triggers, background
summaries and the gateway use it.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import takewhile
from typing import Any, cast

import attrs

from ..errors import ConfigurationError
from .edits import EDITS, Edit
from .groups import MessageGroup
from .message_index import MessageIndex
from .relay import Request, RunReport, StepReport, relay, steps_of, unknown


def answer_now(request: Request) -> Any:
    """Return the answer to a request, without an event loop; raise a `ConfigurationError` if it has to be awaited."""
    answer = request.call()
    if inspect.isawaitable(answer):
        getattr(answer, "close", lambda: None)()
        raise ConfigurationError(
            "the strategy awaits an answer, which a dry run cannot; try one that asks nobody, "
            "such as the same with the default summarizer"
        )
    return answer


@attrs.frozen(kw_only=True)
class CutWorth:
    """The sizes that decide whether a cut is worth it. The overhead of requests makes no difference, if all sizes have it."""

    before: int  # tokens of a request without the cut
    after: int  # tokens of a request with it
    kept: int  # tokens before the first change: what a prompt cache still covers after the cut

    @property
    def saved(self) -> int:
        """The tokens that each request saves."""
        return self.before - self.after

    def pays(self, *, calls: float, cached: float, in_cache: int) -> bool:
        """Return whether the cut saves more than it costs.

        An unchanged request costs the cached price for the tokens in the cache, and the full price for the others. After a cut,
        the next request costs the full price for everything behind the first change. Each later request then costs less.

        Args:
            calls: Requests after the next one that the saving is expected to last.
            cached: Price of a cached input token as a share of one that is written, above 0 and at most 1.
            in_cache: Tokens of the request without the cut that the cache covers; 0 if it has expired.
        """
        reused = min(self.kept, in_cache)
        now = cached * in_cache + (self.before - in_cache)
        then = cached * reused + (self.after - reused)
        return self.saved > 0 and calls * cached * self.saved > then - now


@attrs.define(eq=False)
class DryRun:
    """A dry run, while its edits are applied. Holds state: the index."""

    # the conversation, with the edits of the strategy. ``index.running`` is the step at which the run stopped
    index: MessageIndex
    before: Sequence[MessageGroup]  # the groups of the view before the run
    tokens: int  # tokens of a request before the run
    request: Request | None = None  # the request at which the run stopped; ``None`` if it ended

    def cut(self, after: Sequence[MessageGroup] | None = None, *, added: int = 0) -> CutWorth:
        """Return the sizes of the cut that the run made; ``added`` are tokens to come, such as those of a summary.

        The groups that remain (``after``) are by default those of the view now.
        """
        overhead = self.index.context.overhead_tokens
        left = self.index.included_groups if after is None else after
        tokens = self.index.tokens if after is None else sum(group.tokens for group in left) + overhead
        kept = sum(group.tokens for group in self.before[: unchanged_groups(self.before, left)])
        return CutWorth(before=self.tokens, after=tokens + added, kept=kept + overhead)


def unchanged_groups(before: Iterable[MessageGroup], after: Iterable[MessageGroup]) -> int:
    """Return how many groups at the start of two views are the same, with the same message objects. O(messages in these).

    A provider's prompt cache still covers these groups when the second view is sent after the first.
    """
    same = (
        one.id == other.id and len(one.messages) == len(other.messages) and all(map(operator.is_, one.messages, other.messages))
        for one, other in zip(before, after, strict=False)
    )
    return sum(takewhile(bool, same))


@contextlib.contextmanager
def dry_run(
    strategy: Callable[[MessageIndex], Iterable[Any]],
    index: MessageIndex,
    *,
    until_request: Callable[[Request], bool] = lambda request: False,
    answer: Callable[[Request], Any] = answer_now,
) -> Generator[DryRun]:
    """Run a strategy, and undo its edits at the end of the ``with`` block.

    Args:
        strategy: The strategy, or a plain function.
        index: The conversation. It is unchanged after the block.
        until_request: Whether to stop at a request, which is then not answered.
        answer: Returns the answer to any other request.

    Raises:
        StrategyError: If the strategy yields something else than edits, requests and reports.
        Exception: Any exception that the strategy, or ``answer``, raises.

    >>> from .edits import Drop
    >>> index = MessageIndex([{"role": "user", "content": "word " * 40}, {"role": "user", "content": "hi"}], counter="chars/4")
    >>> with dry_run(lambda index: [Drop(0)], index) as dry:
    ...     dry.cut().saved, len(index.messages())
    (54, 1)
    >>> len(index.messages())
    2
    """
    if not callable(strategy):
        raise ConfigurationError(f"a dry run needs a strategy, or a function of an index (got {strategy!r})")
    name = str(getattr(strategy, "name", "") or getattr(strategy, "__name__", type(strategy).__name__))
    running = steps_of(strategy, index, name)
    dry = DryRun(index, index.included_groups, index.tokens)

    def answered(item: object) -> Any:
        if isinstance(item, EDITS):
            return index.apply(cast("Edit", item))
        if isinstance(item, StepReport) and item.is_end:
            index.end_step(item.strategy)
        elif isinstance(item, StepReport):
            index.begin_step(item.strategy)
        elif isinstance(item, Request):
            if not until_request(item):
                return answer(item)
            dry.request = item
        elif not isinstance(item, RunReport):
            raise unknown(item, index.running_name or name)
        return None

    with index.trial():
        with contextlib.closing(running):
            deque(relay(running, answered, until=lambda _: dry.request is not None), maxlen=0)
        yield dry
