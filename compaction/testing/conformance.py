"""The checks that a strategy keeps every law and a trigger its contract, by running them on conversations.

    >>> from compaction.strategies import Truncation
    >>> from compaction.triggers import has_tool_calls, tokens_exceed
    >>> print(check_strategy(Truncation(trigger=tokens_exceed(500))))
    Truncation fired on 6 of 14 conversations and made 33 edits
    >>> print(check_trigger(tokens_exceed(500) & ~has_tool_calls))
    tokens_exceed(500) & ~has_tool_calls fired on 1 of 15 conversations

Messages are compared by identity, and sizes are counted again from the view; only the groups are taken from the index. A
trigger returns a bool, always the same, and changes nothing.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import anyio
import attrs

from ..checks import checked_count, warn_caller
from ..formats import MessageFormat, openai_chat
from ..index import GroupKind, Marks, MessageIndex, RunContext
from ..messages import Message
from ..result import CompactionResult, Observer, Step
from ..run import run
from ..strategies import StrategyLike, as_strategy
from ..tokens import TokenCounter
from ..triggers import Trigger, TriggerLike, as_trigger
from .laws import CheckedRun, LawBroken, broken_law, described
from .samples import sample_conversations

_RUNS_TO_SETTLE: Final = 4  # the minimum number of runs allowed to settle if an edit may have changed how the rest is grouped


@attrs.frozen(kw_only=True)
class CheckReport:
    """The number of conversations on which a check ran, and of those on which the checked strategy or trigger fired.

    Args:
        name: The strategy or trigger.
        conversations: The number of conversations.
        fired: The number of conversations on which it fired. A plain function used as a strategy always fires.
        edits: The number of edits that the strategy made; ``None`` for a trigger.
    """

    name: str
    conversations: int
    fired: int
    edits: int | None = None

    @property
    def did_nothing(self) -> bool:
        """Whether the trigger never fired, or the strategy made no edit."""
        return not self.fired or self.edits == 0

    def __str__(self) -> str:
        fired = f"fired on {self.fired:,} of" if self.fired else "never fired on"
        made = f" and made {self.edits or 'no'} edits" if self.fired and self.edits is not None else ""
        remedy = "; this checks little: pass messages= on which it does something" if self.did_nothing else ""
        return f"{self.name} {fired} {self.conversations:,} conversations{made}{remedy}"


def check_strategy(
    strategy: StrategyLike,
    *,
    messages: Iterable[Any] | None = None,
    counter: TokenCounter | str = "chars/4",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    settles_in: int = 1,
    words: bool = False,
    backend: Literal["asyncio", "trio"] = "asyncio",
) -> CheckReport:
    """Check that a strategy, sync or async, keeps every law; it is run five times for each conversation.

    A strategy that calls a model needs one that always gives the same answer. ``docs/own-strategies.md`` has an example.

    Args:
        strategy: A strategy, a pipeline or a plain function.
        messages: One conversation, for instance from `conversations`; ``None`` for all of `sample_conversations`.
        counter: A token counter or the name of one.
        format: The wire format of ``messages`` or of the samples; ``None`` to detect it, and OpenAI chat for the samples.
        context: The run context, such as the window.
        pin: Returns whether a message pins its group.
        settles_in: Number of further runs after which nothing may change, >= 1. One is the strictest; a pipeline whose steps
            work against each other may need a few.
        words: Whether to check also that nothing a person said is lost without a summary (law 11). All presets keep this law; a
            strategy that drops user messages on purpose, such as `Truncation`, does not.
        backend: The event loop to run it in; no event loop may be running.

    Returns:
        How often it fired: a strategy that does nothing keeps every law. If it makes no edit on the samples, there is also a
        warning.

    Raises:
        LawBroken: If the strategy breaks a law.
        ConfigurationError: If ``settles_in`` is below 1.
        Exception: Whatever the strategy raises.
    """
    checked_count("settles_in", settles_in, 1)

    def read(given: Sequence[Any]) -> MessageIndex:
        marks = Marks.of(as_strategy(strategy).mark_ceilings, context or RunContext())
        return MessageIndex(given, counter=counter, format=format, context=context, pin=pin, marks=marks)

    given = sample_conversations(format or openai_chat) if messages is None else [list(messages)]
    check = partial(_check_laws, strategy, read, settles_in=settles_in, words=words)
    fired = made = 0
    for conversation in given:
        steps: list[Step] = []
        edits = anyio.run(partial(check, on_step=steps.append), conversation, backend=backend)
        fired += bool(steps or edits)
        made += edits
    report = CheckReport(name=as_strategy(strategy).name, conversations=len(given), fired=fired, edits=made)
    if messages is None and report.did_nothing:
        warn_caller(str(report))
    return report


_Read: TypeAlias = Callable[[Sequence[Any]], MessageIndex]


async def _check_laws(
    strategy: StrategyLike, read: _Read, messages: list[Any], *, settles_in: int, words: bool, on_step: Observer
) -> int:
    """Run a strategy on a conversation, raise an error for the first law that it breaks, and return the number of its edits."""
    original = copy.deepcopy(messages)
    index = read(messages)
    to_wire = index.format.to_wire  # to compare data: a framework's objects with equal contents may not be equal
    data = list(map(to_wire, original))
    before = index.included_groups
    result = await run(index, strategy, on_step=on_step)
    outcome = CheckedRun(list(messages), before, index, result, read)
    if list(map(to_wire, messages)) != data:
        raise LawBroken(7, "it changed the caller's messages", messages)
    if broken := broken_law(outcome, words=words):
        raise LawBroken(*broken, messages)
    await _check_settling(strategy, outcome, settles_in)
    await _check_repeating(strategy, outcome, original)
    _check_rollback(outcome)
    return len(result.edits)


async def _check_settling(strategy: StrategyLike, outcome: CheckedRun, settles_in: int) -> None:
    """Check law 5; in a few more runs if the list is invalid, or if its view is read in other groups than it was written."""
    if outcome.result.failures:
        return
    index, more_runs = outcome.index, max(settles_in, _RUNS_TO_SETTLE)
    is_valid = all(problem.rule == "pending-call" for problem in index.format.validate(outcome.source))
    runs = settles_in if is_valid else more_runs
    if more := await _edits_after(strategy, lambda _: index, outcome.result, runs):
        raise LawBroken(5, f"run again on the same index, it made more edits: {more}", outcome.source)
    kept = [group for group in index.included_groups if group.id >= 0]  # also what was rewritten: it may lose its mark
    source = {*map(id, outcome.source), *(id(message.raw) for group in kept for message in group.messages)}
    is_regrouped = _groups_in_view(outcome.read(outcome.result.messages), source) != _groups_in_view(index, source)
    if more := await _edits_after(strategy, outcome.read, outcome.result, more_runs if is_regrouped else runs):
        raise LawBroken(5, f"run on its own output, it made more edits: {more}", outcome.source)


async def _edits_after(strategy: StrategyLike, index_of: _Read, result: CompactionResult, runs: int) -> list[str]:
    """Return the edits of the last of several further runs; none as soon as a run makes none."""
    for _ in range(runs):
        result = await run(index_of(result.messages), strategy)
        if not result.edits:
            break
    return described(result.edits)


def _groups_in_view(index: MessageIndex, source: Collection[int]) -> list[tuple[bool, list[int]]]:
    """Return, of each group in the view, whether it is a summary of the source, and the identities of its messages."""
    groups = [(group.kind, [id(message.raw) for message in group.messages]) for group in index.included_groups]
    return [(kind is GroupKind.SUMMARY and identities[0] in source, identities) for kind, identities in groups]


async def _check_repeating(strategy: StrategyLike, outcome: CheckedRun, original: list[Any]) -> None:
    """Check law 7."""
    first, second = outcome.result, await run(outcome.read(original), strategy)
    to_wire = outcome.index.format.to_wire
    edits = described(first.edits), described(second.edits)
    if edits[0] != edits[1]:
        raise LawBroken(7, f"on equal messages it made the edits {edits[0]}, then {edits[1]}", outcome.source)
    if list(map(to_wire, second.messages)) != list(map(to_wire, first.messages)):
        raise LawBroken(7, f"on equal messages it gave {first.messages!r}, then {second.messages!r}", outcome.source)


def _check_rollback(outcome: CheckedRun) -> None:
    """Check law 9."""
    index, source = outcome.index, outcome.source
    index.rollback(0)
    view = index.messages()
    if len(view) != len(source) or any(one is not other for one, other in zip(view, source, strict=True)):
        what = f"after the rollback the view has {len(view)} messages, not the same {len(source)} as before"
        raise LawBroken(9, what, source)
    fresh = outcome.read(source).included
    if not index.included == index.total == fresh:
        raise LawBroken(9, f"after the rollback the metrics are {index.included} of {index.total}, not {fresh}", source)


def check_trigger(
    trigger: TriggerLike,
    *,
    messages: Iterable[Any] | None = None,
    counter: TokenCounter | str = "chars/4",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
) -> CheckReport:
    """Check that a trigger, or a plain function used as one, is a pure condition on an index; its cost is not checked.

    Called with an index it must return the same bool each time and not change the index, and ``~`` must negate it. A
    `Trigger` must also equal its unpickled copy, have the same ``repr`` as it, and explain itself.

    Args:
        trigger: A trigger or a plain function.
        messages: One conversation; ``None`` for all of `sample_conversations` and the empty one.
        counter: A token counter or the name of one.
        format: The wire format of ``messages`` or of the samples; ``None`` to detect it, and OpenAI chat for the samples.
        context: The run context; by default a window of 8,000 tokens and a time.

    Returns:
        How often it fired. If it never fires on the samples, there is also a warning.

    Raises:
        LawBroken: If the trigger breaks the contract.
        Exception: Whatever the trigger raises.
    """
    context = RunContext(window=8_000, now=0.0) if context is None else context
    given = [[], *sample_conversations(format or openai_chat)] if messages is None else [list(messages)]
    fired = 0
    for conversation in given:
        index = MessageIndex(conversation, counter=counter, format=format, context=context)
        if what := _wrong_answer(trigger, index):
            raise LawBroken(0, f"{trigger!r} {what}", conversation)
        fired += trigger(index)
        if isinstance(trigger, Trigger) and (what := _wrong_value(trigger, index)):
            raise LawBroken(0, f"{trigger!r} {what}", conversation)
    report = CheckReport(name=repr(as_trigger(trigger)), conversations=len(given), fired=fired)
    if messages is None and report.did_nothing:
        warn_caller(str(report))
    return report


def _wrong_answer(trigger: TriggerLike, index: MessageIndex) -> str | None:
    before = _state(index)
    answer: object = trigger(index)
    if not isinstance(answer, bool):
        return f"returns {answer!r}, which is not a bool"
    if trigger(index) != answer:
        return f"returns {answer}, then something else for the same index"
    if (~as_trigger(trigger))(index) == answer:
        return f"returns {answer}, and so does its negation"
    if _state(index) != before:
        return "changes the index"
    return None


def _state(index: MessageIndex) -> object:
    return index.to_dict(), index.included_groups, index.included, index.total, index.refused, index.context


def _wrong_value(trigger: Trigger, index: MessageIndex) -> str | None:
    try:
        twin = pickle.loads(pickle.dumps(trigger))  # pickled in this line, not foreign data
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"cannot be pickled ({error}); build it from classes and functions at the top of a module"
    if twin != trigger or hash(twin) != hash(trigger):
        return "is not equal to its unpickled copy; make it a frozen value"
    if repr(twin) != repr(trigger):
        return f"has another repr after pickling: {twin!r}"
    if twin(index) != trigger(index):
        return "returns something else after pickling"
    words: object = trigger.explain(index)
    if not isinstance(words, str) or not words:
        return f"explains itself with {words!r}, which is not a non-empty text"
    return None
