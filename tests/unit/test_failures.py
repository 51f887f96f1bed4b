"""Law 6: a failure anywhere leaves the index unchanged, and the caller gets the exception.

Failures are raised at every place of a run: each ``yield`` of each built-in strategy, each step's observer, each text that is
counted, each message that is read, each await, on both event loops.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import Any

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from compaction import Drop, Message, MessageIndex, Replace, Request, Rewrite, Together, run, run_sync
from compaction.errors import StrategyError
from compaction.formats import OpenAIChat, openai_chat
from compaction.selectors import last, nothing
from compaction.strategies import (
    Clear,
    ClearMedia,
    GrowingSummary,
    Strategy,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.testing import agent_session, sample_conversations
from compaction.triggers import as_trigger
from tests.support.chats import Chat
from tests.support.wires import STRATEGIES

Steps = Generator[Any, Any, None]

MIXED: Chat = [*agent_session(40), *itertools.chain.from_iterable(sample_conversations()[2:5])]


def handles_failures(strategy: Strategy) -> bool:
    return any(isinstance(part, GrowingSummary) or hasattr(part, "on_failure") for part in strategy.parts())


RAISING = [
    *(each for each in STRATEGIES if not handles_failures(each)),
    ToolResult(Clear(), keep=last(groups=1), at_least=500),
    Summarization(keep=last(groups=4), on_failure="raise"),
    TokenBudgetComposed([ClearMedia(), ToolResult(keep=nothing)], budget=200, early_stop=False),
]
"""Strategies that handle no failure of a summarizer or a store."""

each_strategy = pytest.mark.parametrize("strategy", RAISING, ids=lambda strategy: strategy.name)


class Wrong(Exception):
    """The exception that the tests raise."""


def indexed(messages: Iterable[Any] = MIXED, **options: Any) -> MessageIndex:
    """An index that counts one token for every four characters, after one edit."""
    index = MessageIndex(messages, **{"counter": "chars/4", **options})
    assert index.apply(Drop(next(group for group in index.included_groups if index.is_removable(group)), "before the run"))
    return index


def state(index: MessageIndex) -> Any:
    """All values that a failure must leave unchanged; messages are compared by identity."""
    groups = [(group.id, group.tokens, [id(message.raw) for message in group.messages]) for group in index.included_groups]
    return [id(raw) for raw in index.messages()], groups, index.included, index.total, index.edits, len(index.source)


@contextlib.contextmanager
def fails(index: MessageIndex, error: type[BaseException], match: str | None = None) -> Iterator[None]:
    """Expect an exception that leaves the index as it was."""
    before = state(index)
    with pytest.raises(error, match=match):
        yield
    assert state(index) == before


@attrs.frozen
class Interrupted(Strategy):
    """A strategy that throws ``error`` into another one at its ``at``-th yield."""

    inner: Strategy
    at: int
    error: BaseException
    reached: list[int] = attrs.field(factory=list)

    def __call__(self, index: MessageIndex) -> Steps:
        steps = self.inner(index)
        answer: Any = None
        for place in itertools.count():
            self.reached.append(place)
            try:
                item = steps.throw(self.error) if place == self.at else steps.send(answer)
            except StopIteration:
                return
            answer = yield item


# ------------------------------------------------------------------------ every yield, observer, count and read


@each_strategy
@pytest.mark.parametrize("error", [Wrong("no"), KeyboardInterrupt()], ids=["exception", "interrupt"])
def test_a_failure_at_any_yield_changes_nothing(strategy: Strategy, error: BaseException) -> None:
    index = indexed()
    whole = Interrupted(strategy, -1, Wrong())
    run_sync(indexed(), whole)
    for place in whole.reached[1:]:
        with fails(index, type(error)):
            run_sync(index, Interrupted(strategy, place, error))
    assert len(whole.reached) > 3


@each_strategy
def test_a_failing_observer_changes_nothing(strategy: Strategy) -> None:
    steps: list[object] = []
    run_sync(indexed(), strategy, on_step=steps.append)
    index = indexed()
    for place in range(len(steps)):
        with fails(index, Wrong):
            run_sync(index, strategy, on_step=raising_after(place))
    assert steps


def raising_after(calls: int, error: type[BaseException] = Wrong) -> Callable[[object], None]:
    """A callable that works for a number of calls, then raises."""
    left = iter(range(calls))

    def observe(_: object) -> None:
        if next(left, None) is None:
            raise error

    return observe


def test_an_observers_stop_iteration_is_an_error_too() -> None:
    """A ``StopIteration`` of an observer becomes a `RuntimeError`, so that it is not taken for the end of the strategy."""
    index = indexed()
    with fails(index, RuntimeError):
        run_sync(index, Truncation() >> Truncation(), on_step=raising_after(1, StopIteration))


class Failing:
    """A counter of words that fails after a number of texts. Holds state: how many are left."""

    name, exact = "failing", False

    def __init__(self) -> None:
        self.left: int | None = None
        self.counted = 0

    def count_text(self, text: str) -> int:
        """A third of the number of words, so that no count equals one that another counter has cached."""
        self.counted += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Wrong(text)
        return len(text.split()) // 3


@each_strategy
def test_a_failing_counter_changes_nothing(strategy: Strategy) -> None:
    """Every seventh text is tried, so that the places within edits differ."""
    for place in itertools.count(step=7):
        counter = Failing()
        index = indexed(counter=counter)
        before = state(index)
        counter.left = place
        try:
            run_sync(index, strategy)
        except Wrong:
            assert state(index) == before
        else:
            break
        assert place < 2_000


def rewritten(group: Any) -> Rewrite:
    return Rewrite(group, [each.evolve(text=f"{group.id} {place} short") for place, each in enumerate(group.messages)], "test")


def replaced(group: Any) -> Replace:
    return Replace(group, [openai_chat.new("user", f"instead of {group.id}")], "test")


def dropped_too(group: Any) -> Together:
    return Together(Drop(group.id - 1), rewritten(group))


@pytest.mark.parametrize("make", [rewritten, replaced, dropped_too])
def test_a_counter_that_fails_within_an_edit_changes_nothing(make: Callable[[Any], Any]) -> None:
    for place in itertools.count():
        counter = Failing()
        index = MessageIndex(agent_session(20), counter=counter)
        before = state(index)
        counter.left = place
        try:
            assert index.apply(make(index.group(2)))
        except Wrong:
            assert state(index) == before
        else:
            break
    assert place > 0


class Picky(OpenAIChat):
    """A format that raises its own exception for some messages."""

    def read(self, raw: Any, position: int = 0) -> Message:
        message = super().read(raw, position)
        refuse(message)
        return message


def refuse(message: Message) -> bool:
    """Pin nothing, and raise an exception for some messages."""
    if message.text == "poison":
        raise Wrong
    return False


@pytest.mark.parametrize("options", [{"format": Picky()}, {"pin": refuse}], ids=["a format", "a pin"])
@pytest.mark.parametrize("add", [MessageIndex.append, MessageIndex.sync])
def test_a_format_or_a_pin_that_fails_adds_nothing(add: Callable[[MessageIndex, Chat], None], options: dict[str, Any]) -> None:
    index = indexed(**options)
    with fails(index, Wrong):
        add(index, [*MIXED, *agent_session(3), {"role": "user", "content": "poison", "extra": True}])


def test_a_target_that_fails_at_the_end_changes_nothing() -> None:
    """If the target raises at any call, also at the last one, which determines the outcome, the index is unchanged."""
    for place in itertools.count():
        fail = raising_after(place)
        target = as_trigger(lambda index, fail=fail: bool(fail(index)))
        index = indexed()
        before = state(index)
        try:
            result = run_sync(index, Truncation(target=target, keep=last(groups=9)))
        except Wrong:
            assert state(index) == before
        else:
            break
    assert result.outcome == "over_target"
    assert place > 3


# ------------------------------------------------------------------------ every await


@attrs.frozen
class Ask(Request):
    answer: Callable[[], Awaitable[Any]]

    def call(self) -> Awaitable[Any]:
        return self.answer()


@attrs.frozen
class Asking(Strategy):
    """Drops groups one by one, with a request before each; ``fates`` lists the outcome of each request."""

    fates: tuple[str, ...]
    handles: bool = False
    at_close: str = ""
    seen: list[str] = attrs.field(factory=list)

    def __call__(self, index: MessageIndex) -> Steps:
        free = [group for group in index.included_groups if index.is_removable(group)]
        try:
            for fate, group in zip(self.fates, free, strict=False):
                try:
                    self.seen.append((yield Ask(lambda fate=fate: answered(fate))))
                except Wrong as error:
                    if not self.handles:
                        raise
                    self.seen.append(f"handled {error}")
                yield Drop(group, "asked")
        finally:
            if self.at_close == "yields":
                yield Drop(free[-1], "too late")
            elif self.at_close == "raises":
                raise Wrong("on closing")


async def answered(fate: str) -> str:
    """Return an answer, raise an error or wait forever, after one checkpoint of the event loop."""
    await checkpoint()
    if fate == "fails":
        raise Wrong(fate)
    if fate == "hangs":
        await anyio.sleep_forever()
    return fate


def fates(last: str) -> list[tuple[str, ...]]:
    """Lists of fates in which the first, second or third request has this fate and those before it are answered."""
    return [("ok",) * good + (last,) for good in range(3)]


@pytest.mark.parametrize("course", fates("fails"))
async def test_a_failure_at_any_await_changes_nothing(anyio_backend: str, course: tuple[str, ...]) -> None:
    index = indexed()
    with fails(index, Wrong, match="fails"):
        await run(index, Asking(course))


@pytest.mark.parametrize("at_close", ["", "yields", "raises"])
@pytest.mark.parametrize("course", fates("hangs"))
async def test_a_timeout_at_any_await_changes_nothing(anyio_backend: str, course: tuple[str, ...], at_close: str) -> None:
    index = indexed()
    with fails(index, TimeoutError), anyio.fail_after(0.01):
        await run(index, Asking(course, at_close=at_close))


@pytest.mark.parametrize("at_close", ["", "yields", "raises"])
@pytest.mark.parametrize("course", fates("hangs"))
async def test_a_cancellation_at_any_await_changes_nothing(anyio_backend: str, course: tuple[str, ...], at_close: str) -> None:
    """A cancelled run ends without a result and leaves the index unchanged; the strategy cannot handle the cancellation."""
    index = indexed()
    before = state(index)
    strategy = Asking(course, handles=True, at_close=at_close)
    ended: list[str] = []

    async def running() -> None:
        await run(index, strategy)
        ended.append("as if nothing were")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running)
        await anyio.wait_all_tasks_blocked()
        assert len(strategy.seen) == len(course) - 1
        tasks.cancel_scope.cancel()
    assert ended == []
    assert state(index) == before


@pytest.mark.parametrize("at_close", ["yields", "raises"])
@pytest.mark.parametrize("error", [Wrong, KeyboardInterrupt])
def test_a_strategy_that_misbehaves_on_close_hides_no_failure(at_close: str, error: type[BaseException]) -> None:
    """If an observer raises and the strategy yields or raises on closing, the caller still gets the observer's exception."""

    @attrs.frozen
    class Outer(Strategy):
        def __call__(self, index: MessageIndex) -> Steps:
            try:
                yield from Truncation(keep=last(groups=4))(index)
            finally:
                if at_close == "yields":
                    yield Drop(1, "too late")
                else:
                    raise ValueError("on closing")

    index = indexed()
    with fails(index, error):
        run_sync(index, Outer(), on_step=raising_after(0, error))


# ------------------------------------------------------------------------ custom strategies


def dropping(index: MessageIndex) -> Steps:
    for group in index.included_groups:
        if index.is_removable(group):
            yield Drop(group, "may go")


@pytest.mark.parametrize("item", [None, "drop it", 3, {"drop": 1}, Drop])
async def test_what_is_no_edit_is_an_error(anyio_backend: str, item: Any) -> None:
    def strategy(index: MessageIndex) -> Steps:
        yield from dropping(index)
        yield item

    index = indexed()
    with pytest.raises(StrategyError, match="a strategy must yield edits, requests or reports"):
        run_sync(index, strategy)
    with fails(index, StrategyError, match="strategy yielded"):
        await run(index, strategy)
