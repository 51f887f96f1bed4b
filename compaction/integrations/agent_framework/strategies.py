"""Adapters for strategies: ours in the framework's form, and the framework's strategies for our pipelines."""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, Unpack

import attrs

from ...errors import StrategyError
from ...index import Drop, Edit, MessageGroup, MessageIndex, Replace, Request, marked
from ...strategies import StepBegan, StepEnded, Steps, Strategy, StrategyLike
from ...triggers import never
from ..conversation import FrameworkConversations, FrameworkTurn
from ..options import CommonOptions, IntegrationOptions
from ..requirements import import_framework
from .format import agent_framework, without_annotations
from .live_list import LiveLists, is_excluded
from .model_calls import with_author

_Theirs: TypeAlias = Callable[[list[Any]], Awaitable[bool]]

_NOT_IN_A_NAME: Final = re.compile(r"\W")


class FrameworkStrategy:
    """One of our strategies in the framework's form: ``async (messages: list[Message]) -> bool``.

    It replaces messages that were removed from the view with copies that have the framework's flags, for its projection and
    ``skip_excluded``.
    Messages of providers other than a history's are sent unchanged. Holds state: a pool of the sessions used last, so that
    edits are kept from call to call and from run to run.

    Attributes:
        turn: The last turn, with its result; ``None`` before the first.

    Args:
        options: The integration's options.
        agent_name: As for `as_framework_strategy`.
    """

    def __init__(self, options: IntegrationOptions, agent_name: str | None = None) -> None:
        self.options = options
        self._agent_name = agent_name
        self.turn: FrameworkTurn | None = None
        self._conversations = FrameworkConversations(options, agent_framework)
        self._lists = LiveLists()

    def __reduce__(self) -> tuple[type[FrameworkStrategy], tuple[IntegrationOptions, str | None]]:
        """Copy and pickle the configuration: a copy starts without conversations."""
        return FrameworkStrategy, (self.options, self._agent_name)

    def __repr__(self) -> str:
        return f"as_framework_strategy({self.options.strategy!r})"

    @property
    def __name__(self) -> str:  # the framework logs it
        return self.options.strategy.name

    async def __call__(self, messages: list[Any]) -> bool:
        if self._agent_name is not None:
            messages[:] = [with_author(each, self._agent_name) for each in messages]
        source = self._lists.source(messages)
        if others := _of_others(source):
            ids = set(map(id, others))
            source = [each for each in source if id(each) not in ids]
        if not source:
            return False
        turn = self.turn = await self._conversations.turn(source, overhead_tokens=self._conversations.count_messages(others))
        return turn.index is not None and self._lists.write(messages, source, turn.index)


def _histories() -> set[str]:
    """Return the class names of history providers, with which the framework marks the messages they load."""
    kinds: list[type] = [import_framework("agent_framework").HistoryProvider]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.__name__ for kind in kinds}


def _of_others(messages: Sequence[Any]) -> list[Any]:
    """Return the messages of providers other than a history's; they may be missing in the next run."""
    histories, others = _histories(), list[Any]()
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
    """A request to run the framework's strategy on copies of the messages."""

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
        groups = index.included_groups
        copies = {group.id: [_copied(message.raw) for message in group.messages] for group in groups}
        messages = [each for group in groups for each in copies[group.id]]
        yield _Awaited(self.theirs, messages)
        yield from _as_edits(index, groups, copies, messages, self.name)
        yield StepEnded(self, never, True)


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


def _copied(raw: Any) -> Any:
    made = copy.copy(raw)
    made.contents = list(raw.contents)
    made.additional_properties = without_annotations(raw.additional_properties)
    return made


def _as_edits(
    index: MessageIndex,
    groups: Sequence[MessageGroup],
    copies: dict[int, list[Any]],
    messages: Sequence[Any],
    name: str,
) -> Iterator[Edit]:
    """Yield the changes that a framework's strategy made to the copies, as edits."""
    mine = {id(each) for lives in copies.values() for each in lives}
    left = {id(each) for each in messages}
    gone = [group for group in groups if all(is_excluded(each) or id(each) not in left for each in copies[group.id])]
    by = _NOT_IN_A_NAME.sub("_", name)
    replaced: set[int] = set()
    for made in messages:
        if id(made) in mine or is_excluded(made):
            continue
        stood_for = [group for group in gone if _links_to(copies[group.id], made.message_id)]
        if stood_for:
            replaced.update(group.id for group in stood_for)
            yield Replace(stood_for, [index.format.new(made.role, marked(made.text, by=by))], f"summarized by {name}")
    for group in gone:
        if group.id not in replaced:
            reason = copies[group.id][0].additional_properties.get("_exclude_reason") or f"excluded by {name}"
            yield Drop(group, str(reason))


def _links_to(lives: Sequence[Any], summary_id: str | None) -> bool:
    links = [each.additional_properties.get("_group", {}).get("_summarized_by_summary_id") for each in lives]
    return summary_id is not None and summary_id in links
