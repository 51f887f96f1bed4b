"""Compaction by the provider: the `ProviderCompaction` strategy asks for it.

OpenAI's endpoint ``/responses/compact`` takes a list of Responses items, and returns the user's messages and one *compaction
item*: encrypted history that only its provider can read. ``docs/hooks.md`` shows how a server compacts within a request.

Sources: the type definitions of the package openai 3.54, and https://developers.openai.com/api/docs/guides/compaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

import attrs

from .. import summarizers
from ..checks import above, count, share
from ..errors import ConfigurationError, SummaryFailed
from ..index import GroupKind, MessageGroup, MessageIndex, Replace, Request, unawaited
from ..json_data import member_of
from ..messages import Message
from ..selectors import Selector, as_selector, last
from ..triggers import always, never
from .base import CompactionStrategy, Failed, Steps, Strategy, as_strategy, group_tokens
from .summaries import is_content

_FORMAT: Final = "openai-responses"


@attrs.frozen
class ProviderCompaction(CompactionStrategy):
    """Replaces old groups with the compaction item that OpenAI's ``responses.compact`` returns; only for Responses items.

    What the user said stays, word for word, as in the endpoint's own answer: calls, results, reasoning and answers go. The item
    is encrypted, and counts as a few tokens until the provider reports usage. A later round replaces it with a new one. Other
    strategies keep it, like every newest item of a provider. The whole list up to the last old group is sent, unredacted, to
    the provider.

    Cost: O(messages), and one request.

    Args:
        model: The model that will read the item.
        client: An ``openai.OpenAI``, which also works with the ``_sync`` functions, or an ``openai.AsyncOpenAI``. By default
            each request makes an ``AsyncOpenAI``, configured by its environment variables, and closes it.
        trigger: When to run.
        target: If it holds before the request, nothing is requested.
        keep: The groups that stay; by default the last 4.
        fallback: The strategy to run if the request fails, such as a `Summarization` without a trigger; ``None`` changes
            nothing then. For 1, 5 or 15 minutes after one, two or more failures in a row, only the fallback runs.
        instructions: The ``instructions`` of the request, if they are not among the messages.
        least_share: Nothing is requested unless the groups since the last item have this share of the view's tokens, > 0.
        timeout: Seconds for the request, > 0.
        max_retries: How often the client sends a request again after a temporary failure.

    Raises:
        ConfigurationError: If an argument is out of range or ``client`` is of another kind; when it runs, if the messages are
            in another format, or the installed ``openai`` has no such method.

    >>> from compaction.strategies import ClearReasoning
    >>> print(ProviderCompaction("gpt-5.5", keep=last(turns=2), fallback=ClearReasoning()))
    ProviderCompaction(model='gpt-5.5', keep=last(turns=2), fallback=ClearReasoning())
    """

    runs: ClassVar[str] = "fallback"

    model: str
    client: Any = attrs.field(default=None, repr=False, kw_only=True)
    keep: Selector = attrs.field(default=last(groups=4), converter=as_selector, kw_only=True)
    fallback: Strategy | None = attrs.field(default=None, converter=attrs.converters.optional(as_strategy), kw_only=True)
    instructions: str | None = attrs.field(default=None, kw_only=True)
    least_share: float = attrs.field(default=0.1, validator=share, kw_only=True)
    timeout: float = attrs.field(default=120.0, validator=above(0), kw_only=True)
    max_retries: int = attrs.field(default=2, validator=count(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise ConfigurationError(f"ProviderCompaction: 'model' must be a name (got {self.model!r})")
        if self.client is not None:
            summarizers.is_sync_client(self.client, self.name)

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        fallback = None if self.fallback is None else self.fallback.forced(focus)
        return {"trigger": always, "target": never, "fallback": fallback}

    def waiting(self, index: MessageIndex) -> Iterator[str]:
        # not the fallback: it is not due, whether this strategy runs or waits
        yield from attrs.evolve(self, fallback=None).waiting(index) if self.fallback is not None else super().waiting(index)

    def edits(self, index: MessageIndex) -> Steps:
        if index.format.name != _FORMAT:
            raise ConfigurationError(
                f"ProviderCompaction needs Responses items, and these messages are in the format {index.format.name};"
                " use Summarization(OpenAISummarizer(...)) for other formats"
            )
        replaced = self._replaced(index)
        if not replaced or self.target(index):
            return
        if self.is_paused(index):
            yield from self._fall_back(index)
            return
        items: list[Message] = []
        with self.failures(index) as failed:
            items = [_compaction_item(index, (yield _CompactRequest(self, _wires_up_to(index, replaced))))]
        if items:
            yield Replace(replaced, items, "compacted by the provider")
        for error in failed:
            policy = "nothing was compacted" if self.fallback is None else f"{self.fallback.name} ran instead"
            yield Failed(self.name, error, policy)
            yield from self._fall_back(index)

    def _fall_back(self, index: MessageIndex) -> Steps:
        if self.fallback is not None:
            yield from self.fallback(index)

    def _replaced(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups that the item will replace, in order; none if too little is new since the last item."""
        own = {part.name for part in self.parts()}
        going = index.replaceable([group for group in self._may_go(index) if is_content(group) or group.made_by in own])
        since_item = {group.id for group in _after_last_item(index.included_groups)}
        new = group_tokens(group for group in going if group.id in since_item and group.made_by not in own)
        return going if new and new >= self.least_share * index.included.tokens else []

    def _may_go(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups that may leave, except the user's; also the last item, because a newer one replaces it."""
        ids, item = set(self.free(index)), index.columns.grouping.newest.history
        if item is not None and item not in self.keep(index) | index.columns.pinned:
            ids.add(item)
        return [group for group in index.included_groups if group.id in ids and group.kind is not GroupKind.USER]


def _after_last_item(groups: Sequence[MessageGroup]) -> Sequence[MessageGroup]:
    """Return the groups after the last one with a provider's compaction item; all of them if there is none."""
    items = [place for place, group in enumerate(groups) if any(message.holds_history for message in group.messages)]
    return groups[max(items, default=-1) + 1 :]


def _wires_up_to(index: MessageIndex, replaced: Sequence[MessageGroup]) -> list[Any]:
    """Return the messages of the view up to the last of these groups, as JSON-ready data; a list may hold one object twice."""
    groups, ids = index.included_groups, {group.id for group in replaced}
    end = max(place for place, group in enumerate(groups) if group.id in ids)
    left = Counter(id(message.raw) for group in groups[: end + 1] for message in group.messages)
    wires: list[Any] = []
    for raw in index.messages():
        if left[id(raw)]:
            left[id(raw)] -= 1
            wires.append(index.format.to_wire(raw))
    return wires


def _compaction_item(index: MessageIndex, response: object) -> Message:
    output: object = member_of(response, "output")
    items = list(cast("Iterable[Any]", output)) if isinstance(output, list) else []
    others = [item for item in items if member_of(item, "role") != "user"]
    kinds = [str(member_of(item, "type")) for item in others]
    if kinds != ["compaction"]:
        raise SummaryFailed(f"the provider answered with {', '.join(kinds) or 'no items'}, not with one compaction item")
    message = index.format.read(others[0].to_dict())  # the fields that the server sent
    problem = index.format.acceptable(message)
    if problem is not None or not message.raw["encrypted_content"]:
        raise SummaryFailed(f"the provider's compaction item cannot be used: {problem or 'it is empty'}")
    return message


@attrs.frozen
class _CompactRequest(Request):
    """A request to ``responses.compact``."""

    strategy: ProviderCompaction
    items: list[Any]

    def call(self) -> Any:
        by = self.strategy
        is_sync = by.client is not None and summarizers.is_sync_client(by.client, by.name)
        return unawaited(self._sent()) if is_sync else self._sent()

    async def _sent(self) -> object:
        """Return what the endpoint answers; with a synchronous client, this awaits nothing."""
        by = self.strategy
        more = {} if by.instructions is None else {"instructions": by.instructions}
        opened = summarizers.opened_client(by.client, by.name, timeout=by.timeout, max_retries=by.max_retries)
        async with opened as client:
            compact = getattr(client.responses, "compact", None)
            if compact is None:
                raise ConfigurationError("ProviderCompaction: this version of openai has no responses.compact; update it")
            try:
                return await summarizers.in_time(compact(model=by.model, input=self.items, **more), by.timeout)
            except Exception as error:
                fault = summarizers.read_error(error, timeout_seconds=by.timeout, redact=summarizers.redact)
                raise SummaryFailed(f"{by.model} {fault.says}") from error
