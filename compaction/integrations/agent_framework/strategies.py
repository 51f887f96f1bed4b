"""Adapters for strategies: ours in the framework's form, and the framework's strategies for our pipelines."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, Unpack

import attrs

from ...errors import StrategyError
from ...formats import same
from ...index import Drop, Edit, MessageGroup, MessageIndex, Replace, Request, as_given, marked
from ...strategies import StepBegan, StepEnded, Steps, Strategy, StrategyLike
from ...triggers import never
from ..conversation import FrameworkConversations, FrameworkTurn
from ..options import CommonOptions, IntegrationOptions
from ..requirements import import_framework
from .format import agent_framework, altered, unannotated, with_author

_Theirs: TypeAlias = Callable[[list[Any]], Awaitable[bool]]

_EXCLUDED: Final = "_excluded"
_NOT_IN_A_NAME: Final = re.compile(r"\W")


def is_excluded(message: Any) -> bool:
    """Return whether the framework hides a message from the model."""
    return bool(message.additional_properties.get(_EXCLUDED, False))


class FrameworkStrategy:
    """One of our strategies in the framework's form: ``async (messages: list[Message]) -> bool``.

    In the framework's list, it replaces messages that left the view with flagged copies, as its projection and
    ``skip_excluded`` expect them, and inserts the messages that the view adds. Messages that are flagged already are not read,
    and those of providers other than a history's are sent unchanged. Holds state: a pool of the sessions used last, so that
    edits are kept from call to call and from run to run.
    """

    def __init__(self, options: IntegrationOptions, agent_name: str | None = None) -> None:
        self._agent_name = agent_name
        self.conversations = FrameworkConversations(options, agent_framework)

    def __repr__(self) -> str:
        return f"as_framework_strategy({self.conversations.options.strategy!r})"

    @property
    def __name__(self) -> str:  # the framework logs it
        return self.conversations.options.strategy.name

    async def __call__(self, messages: list[Any]) -> bool:
        if self._agent_name is not None:
            messages[:] = [with_author(each, self._agent_name) for each in messages]
        before = list(messages)
        await self.compact(messages)
        return not same(before, messages)

    async def compact(self, messages: list[Any]) -> FrameworkTurn | None:
        """Compact the framework's list in place, and return the turn; ``None`` if there is nothing to compact."""
        others = _of_others(messages)
        ids = set(map(id, others))
        source = [each for each in messages if not (each.additional_properties.get(_EXCLUDED) or id(each) in ids)]
        if not source:
            return None
        turn = await self.conversations.turn(source, overhead_tokens=self.conversations.count_messages(others))
        if not same(turn.view, source):
            messages[:] = _written(messages, source, turn.view)
        return turn


def _written(messages: Sequence[Any], source: Sequence[Any], view: Sequence[Any]) -> list[Any]:
    """Return the framework's list with a view of some of its messages, the source.

    It has flagged copies of the messages that left, and copies of those that the view adds. The originals are not flagged,
    because they may be stored without the summary that stands for them.
    """
    shown = as_given(view, (), source, source, _is_same)
    in_source = set(map(id, source))
    gone = in_source - set(map(id, shown))

    def kept_or_flagged(message: Any) -> Any:
        flags = {**message.additional_properties, _EXCLUDED: True, "_exclude_reason": "compacted"}
        return altered(message, additional_properties=flags) if id(message) in gone else message

    written, rest = list[Any](), iter(messages)
    for shown_message in shown:
        if id(shown_message) not in in_source:
            written.append(unannotated(shown_message))
            continue
        for message in rest:  # up to the message that the view shows next
            written.append(kept_or_flagged(message))
            if message is shown_message:
                break
    return [*written, *map(kept_or_flagged, rest)]


def _is_same(one: Any, other: Any) -> bool:
    return one is other or bool(agent_framework.key(one) == agent_framework.key(other))


def _of_others(messages: Sequence[Any]) -> list[Any]:
    """Return the messages of providers other than a history's; they may be missing in the next run."""
    kinds: list[type] = [import_framework("agent_framework").HistoryProvider]
    for kind in kinds:
        kinds += kind.__subclasses__()
    histories, others = {kind.__name__ for kind in kinds}, list[Any]()  # with these names, it marks the messages they load
    for each in messages:
        noted = each.additional_properties.get("_attribution")
        if noted.__class__ is dict and noted.get("source_type") not in histories:
            others.append(each)
    return others


def as_framework_strategy(
    strategy: StrategyLike, *, agent_name: str | None = None, **options: Unpack[CommonOptions]
) -> FrameworkStrategy:
    """Return one of our strategies for ``compaction_strategy=`` of an agent or a client, or for the framework's provider.

    Args:
        strategy: A strategy, a pipeline, or a plain function.
        agent_name: The agent's name. The framework adds it to an agent's messages after a run; with this argument they have
            it from the start, so that requests do not change after a run.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Cost: O(messages) a call, mostly at C speed until something was compacted.

    >>> from compaction import presets
    >>> as_framework_strategy(presets.token_budget(8_000)).__name__
    'TokenBudgetComposed'
    """
    return FrameworkStrategy(IntegrationOptions(strategy=strategy, **options), agent_name)


@attrs.frozen
class _Awaited(Request):
    """A request to run the framework's strategy on copies of the messages; the answer is the framework's projection."""

    theirs: _Theirs
    messages: list[Any]

    def call(self) -> Any:
        return import_framework("agent_framework").apply_compaction(self.messages, strategy=self.theirs)


@attrs.frozen
class _FromFramework(Strategy):
    theirs: _Theirs

    @property
    def name(self) -> str:
        return getattr(self.theirs, "__name__", type(self.theirs).__name__)

    def __call__(self, index: MessageIndex) -> Steps:
        yield StepBegan(self, "the framework's strategy decides itself")
        copies = [
            (group, [unannotated(each.raw, contents=list(each.raw.contents)) for each in group.messages])
            for group in index.included_groups
        ]
        request = _Awaited(self.theirs, [each for _, group in copies for each in group])
        yield from self._edits(index, copies, (yield request))
        yield StepEnded(self, never, True)

    def _edits(
        self, index: MessageIndex, copies: Sequence[tuple[MessageGroup, list[Any]]], shown: Sequence[Any]
    ) -> Iterator[Edit]:
        """Yield the difference between the copies and the framework's projection of them, as edits."""
        ours, left = {id(each) for _, group in copies for each in group}, set(map(id, shown))
        gone = {group.id: (group, group_copies) for group, group_copies in copies if left.isdisjoint(map(id, group_copies))}
        for made in shown:
            stood_for = [group for group, own in gone.values() if id(made) not in ours and _links_to(own, made.message_id)]
            if stood_for:
                summary = marked(made.text, by=_NOT_IN_A_NAME.sub("_", self.name))
                yield Replace(stood_for, [index.format.new(made.role, summary)], f"summarized by {self.name}")
                for group in stood_for:
                    del gone[group.id]
        for group, _ in gone.values():
            yield Drop(group, f"excluded by {self.name}")


def from_framework_strategy(theirs: _Theirs) -> Strategy:
    """Return one of the framework's strategies for our pipelines; it runs on copies, so your messages are not annotated.

    Args:
        theirs: Any ``async (messages: list[Message]) -> bool``. Messages that it excludes are dropped. A message inserted
            with links replaces the linked messages. An edit that would break the conversation is refused.

    Raises:
        StrategyError: If it is not callable.
    """
    if not callable(theirs):
        raise StrategyError(
            f"from_framework_strategy: a strategy of the framework is an async callable of a list (got {theirs!r})"
        )
    return _FromFramework(theirs)


def _links_to(copies: Sequence[Any], summary_id: str | None) -> bool:
    links = [each.additional_properties.get("_group", {}).get("_summarized_by_summary_id") for each in copies]
    return summary_id is not None and summary_id in links
