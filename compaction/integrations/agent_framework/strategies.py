"""Adapters for strategies: ours for the framework's tool loop and provider, and the framework's for our pipelines."""

from __future__ import annotations

import copy
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ...errors import StrategyError
from ...index import Drop, Edit, MessageGroup, MessageIndex, Replace, Request, marked
from ...result import CompactionResult
from ...strategies import StepBegan, StepEnded, Steps, Strategy, StrategyLike
from ...triggers import never
from ..options import IntegrationOptions
from ..requirements import import_framework
from .format import without_annotations
from .live_list import LiveList, is_excluded

__all__ = ["FrameworkStrategy", "as_framework_strategy", "from_framework_strategy"]

_Theirs: TypeAlias = Callable[[list[Any]], Awaitable[bool]]

_REMEMBERED: Final = 32
_NOT_IN_A_NAME: Final = re.compile(r"\W")


class FrameworkStrategy:
    """One of our strategies in the framework's form: ``async (messages: list[Message]) -> bool``.

    Excluded messages keep their place and get the framework's flags, for its projection and ``skip_excluded``. Holds state:
    the conversations used last, so that edits stay in force from call to call and from run to run.

    Args:
        options: The integration's options.
    """

    def __init__(self, options: IntegrationOptions) -> None:
        self.options = options
        self.last: CompactionResult | None = None
        self.report: dict[str, Any] | None = None
        self._lists: OrderedDict[int, LiveList] = OrderedDict()

    def __repr__(self) -> str:
        return f"as_framework_strategy({self.options.strategy!r})"

    @property
    def __name__(self) -> str:  # the framework logs it
        return self.options.strategy.name

    async def __call__(self, messages: list[Any]) -> bool:
        if not messages:
            return False
        live = self._live(messages)  # removed until it is done, so that no other call uses it; dropped if it fails
        changed = await live.compact(messages)
        self._lists[id(messages)] = live
        while len(self._lists) > _REMEMBERED:
            self._lists.popitem(last=False)
        self.last, self.report = live.conversation.last, live.conversation.report()
        return changed

    def _live(self, messages: list[Any]) -> LiveList:
        """Return the state of this list: its own, that of an earlier list which it continues, or a new one."""
        known = self._lists.pop(id(messages), None)
        if known is None or not known.is_of(messages):
            known = self._continued([each for each in messages if not is_excluded(each)])
        return known

    def _continued(self, included: list[Any]) -> LiveList:
        for key, each in reversed(self._lists.items()):
            if each.continues(included):
                return self._lists.pop(key)
        return LiveList(self.options)


def as_framework_strategy(strategy: StrategyLike, **options: Any) -> FrameworkStrategy:
    """Return one of our strategies for ``compaction_strategy=`` of an agent or a client, or for the framework's provider.

    Args:
        strategy: A strategy, a pipeline, or a plain function.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Cost: O(messages) a call, at C speed if nothing changed.

    >>> from compaction import presets
    >>> as_framework_strategy(presets.token_budget(8_000)).__name__
    'TokenBudgetComposed'
    """
    return FrameworkStrategy(IntegrationOptions(strategy=strategy, **options))


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
    """Return one of the framework's strategies for our pipelines; it works on copies, so your messages are not annotated.

    Args:
        theirs: Any ``async (messages: list[Message]) -> bool``. Messages it excludes are dropped; a message it inserts with
            links replaces those it links to. An edit that would break the conversation is refused.

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
    """Yield the changes that a strategy of the framework made to copies, as edits."""
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
