"""A trigger that tries a strategy out: whether what it would save pays for the prompt cache it would break."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, cast

import attrs

from ..checks import above, count, share
from ..edits import Drop, Replace, Request, Rewrite, Together
from ..errors import ConfigurationError
from ..groups import MessageGroup
from ..index import MessageIndex
from .base import Trigger

__all__ = ["worth_it"]


@attrs.frozen
class _Outlook:
    """What a strategy would do: tokens saved in each request, tokens the cache would lose, and calls it is expected to last."""

    saved: int
    rewritten: int
    calls: float


@attrs.frozen(repr=False)
class _WorthIt(Trigger):
    strategy: Callable[[MessageIndex], Iterable[Any]]
    calls: int | None = attrs.field(kw_only=True, validator=attrs.validators.optional(count(1)))
    cached: float = attrs.field(kw_only=True, validator=share)
    ttl_seconds: float = attrs.field(kw_only=True, validator=above(0))

    def __call__(self, index: MessageIndex) -> bool:
        found = self._tried(index)
        return found.calls * self.cached * found.saved > (1 - self.cached) * found.rewritten

    def explain(self, index: MessageIndex) -> str:
        found = self._tried(index)
        return (
            f"it would save {found.saved:,} tokens in each of {found.calls:g} calls, "
            f"and write {found.rewritten:,} to the cache anew"
        )

    def _tried(self, index: MessageIndex) -> _Outlook:
        before, tokens = index.included_groups, index.included.tokens
        with index.trial():
            _apply_all(index, self.strategy(index))
            after = index.included_groups
            saved = tokens - index.included.tokens
        pairs = enumerate(zip(before, after, strict=False))
        shared = next((at for at, (one, other) in pairs if _differ(one, other)), len(after))
        rewritten = 0 if index.idle_seconds > self.ttl_seconds else sum(group.tokens for group in after[shared:])
        return _Outlook(saved, rewritten, _calls_in(before, after) / 2 if self.calls is None else self.calls)

    def __repr__(self) -> str:
        return f"worth_it({self.strategy!r}, calls={self.calls}, cached={self.cached!r}, ttl_seconds={self.ttl_seconds!r})"


def _apply_all(index: MessageIndex, steps: Iterable[Any]) -> None:
    """Run a strategy as a driver would, and let whatever it raises through."""
    running = cast("Generator[Any, Any, Any]", steps if isinstance(steps, Generator) else (step for step in steps))
    answer: Any = None
    try:
        while True:
            step = running.send(answer)
            answer = None
            if isinstance(step, Drop | Replace | Rewrite | Together):
                answer = index.apply(step, by="worth_it")
            elif isinstance(step, Request):
                answer = step.call()
                if inspect.isawaitable(answer):
                    getattr(answer, "close", lambda: None)()
                    raise ConfigurationError(
                        "worth_it: the strategy awaits an answer, which a trigger cannot; try out one that asks nobody, "
                        "such as the same with the default summarizer"
                    )
    except StopIteration:
        return
    finally:
        running.close()


def _calls_in(before: Sequence[MessageGroup], after: Sequence[MessageGroup]) -> int:
    """How many answers of the model stand in the groups that are taken out."""
    left = {group.id for group in after}
    return sum(message.role == "assistant" for group in before if group.id not in left for message in group.messages)


def _differ(one: MessageGroup, other: MessageGroup) -> bool:
    return one.id != other.id or any(a is not b for a, b in zip(one.messages, other.messages, strict=False))


def worth_it(
    strategy: Callable[[MessageIndex], Iterable[Any]],
    *,
    calls: int | None = None,
    cached: float = 0.1,
    ttl_seconds: float = 300.0,
) -> Trigger:
    """Fires when what a strategy would save over the coming calls is more than the prompt cache it would break.

    It runs the strategy, compares, and rolls back. What it saves is paid at the price of cached tokens in each of the calls;
    what follows its first change has to be written to the cache again, once. After a pause longer than the cache lives there
    is nothing to break, and any saving is worth it.

    Cost: that of the strategy, each time it is asked. Put a cheap trigger in front: ``tokens_exceed(60_000) & worth_it(...)``.

    Args:
        strategy: What to try; it must await nothing. Give it no trigger, or one that fires.
        calls: For how many calls the saving is expected to last, >= 1. By default half as many as it took to say what the
            strategy takes out: in a conversation that grows steadily, that makes cuts as rare as is cheapest, by the rule of
            the economic lot size (Harris, 1913).
        cached: Price of a cached input token as a share of one that is written, above 0 and at most 1.
        ttl_seconds: How long a prefix stays cached, by ``context.now``.

    Raises:
        ConfigurationError: If a figure is out of range; when asked, if the strategy awaits an answer.

    >>> def drop_the_second(index):
    ...     yield Drop([1], reason="an example")
    >>> chat = [{"role": "user", "content": "word " * size} for size in (10, 400, 40, 1)]
    >>> index = MessageIndex(chat, counter="chars/4")
    >>> worth_it(drop_the_second, calls=9)(index), worth_it(drop_the_second, calls=1)(index), len(index.messages())
    (True, False, 4)
    """
    return _WorthIt(strategy, calls=calls, cached=cached, ttl_seconds=ttl_seconds)
