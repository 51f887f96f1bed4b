"""The strategies `Offload` and `Lossless`, which store messages before they are removed from the view.

Each first asks the driver to store the messages, and yields the edit when the store has answered. So a store that fails leaves
the conversation unchanged, and a process that is killed in between leaves the messages in both places. An agent reads stored
messages back with the tools in `compaction.stores.recall`.

    >>> from compaction import compact_sync, last
    >>> from compaction.stores import SQLiteStore
    >>> from compaction.strategies import Truncation
    >>> from compaction.triggers import tokens_exceed
    >>> def lossless(path):
    ...     store = SQLiteStore(path)
    ...     return Offload(store, trigger=tokens_exceed(60_000)) >> Lossless(Truncation(trigger=tokens_exceed(90_000)), store)

A *stub* is the text that `Offload` leaves in place of a result. It names the id of a stored record::

    [compaction 4b1d22f0 by Offload round 1]
    12,345 characters of read_file(path=a.py) are stored: compaction_expand(id="79bc75dfc3e94de3")
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypedDict

import attrs

from ..checks import count, made, one_of
from ..errors import ConfigurationError, StateError, SyncDriverError
from ..index import (
    PASS_ON,
    Edit,
    GroupKind,
    MessageGroup,
    MessageIndex,
    Refusals,
    Replace,
    Rewrite,
    marked,
    named,
    read_mark,
    relay,
    simple_edits,
)
from ..messages import Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..selectors import Selector, as_selector, last
from ..stores import TOOLS, ForgettingStore, Store, StoredRecord, StoreRequest
from ..triggers import always, never
from .base import CompactionStrategy, Failed, StepBegan, Steps, Strategy, as_strategy, gain, group_tokens
from .tool_styles import brief_call, calls_by_id

OnStoreFailure: TypeAlias = Literal["keep", "raise"]
"""The reaction to a failed store: ``keep`` the messages in the view and report it, or ``raise``, which undoes the run."""

_ON_FAILURE: Final = one_of("keep", "raise")
_STORE: Final = made("a store", Store)
_LEAST_CHARS: Final = 250  # of a result that is stored: every stub is shorter
_CALL_CHARS: Final = 40
_WHAT_CHARS: Final = 60
_LARGE: Final = "a large tool result"


class _About(TypedDict):
    """The facts that the records of one edit share."""

    salt: str
    by: str
    reason: str
    at: float | None


@attrs.frozen
class Offload(CompactionStrategy):
    """Moves large tool results to a store, oldest first, and leaves stubs, until ``target`` holds; other messages stay.

    Each step moves twice as many groups as the one before, and the target is evaluated before each step. So at most about twice
    as many groups are moved as necessary, with few writes. Cost: O(messages), and one write for each step. To store whole
    groups, put `Lossless` around a strategy that drops or summarizes them.

    Args:
        store: The store.
        session: The name of the conversation in the store; by default the id of the `CompactionSession`, else ``"default"``.
            The ids of records depend on it.
        min_chars: Results of fewer characters stay, >= 1, and so do results of fewer than 250; a stub has about 150. Results
            with images or files are always replaced.
        trigger: When to run.
        target: When to stop.
        keep: The groups that do not change; by default the last 2, as for `ToolResult`.
        on_failure: The reaction if the store fails.
    """

    store: Store = attrs.field(validator=_STORE)
    session: str | None = attrs.field(default=None, kw_only=True)
    min_chars: int = attrs.field(default=2_000, validator=count(1), kw_only=True)
    keep: Selector = attrs.field(default=last(groups=2), converter=as_selector, kw_only=True)
    on_failure: OnStoreFailure = attrs.field(default="keep", validator=_ON_FAILURE, kw_only=True)

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "target": never}

    def edits(self, index: MessageIndex) -> Steps:
        if self.is_paused(index):
            return
        size = 1
        free = self.candidates(index)
        waiting = [group for group in free if group.kind is GroupKind.TOOL_CALL and index.is_rewritable(group)]
        while waiting and not self.target(index):
            records, edits = yield from self._batch(index, waiting, size)
            if not edits:
                return
            size *= 2
            with self.failures(index) as failed:
                yield StoreRequest(store=self.store, session=_session(self, index), records=tuple(records))
            if failed:
                yield _failed(self.name, failed[0], self.on_failure)
                return
            yield from (edit for edit in edits)

    def _batch(
        self, index: MessageIndex, waiting: list[MessageGroup], size: int
    ) -> Generator[Any, Any, tuple[list[StoredRecord], list[Rewrite]]]:
        """Take up to ``size`` groups that can be moved from ``waiting``; return their records and the stub edits."""
        records: list[StoredRecord] = []
        edits: list[Rewrite] = []
        while waiting and len(edits) < size:
            try:
                stubbed = self._stubbed(index, waiting.pop(0))
            except StateError as error:  # a message cannot be written as JSON: it stays, the others are moved
                yield _failed(self.name, error, self.on_failure)
                continue
            if stubbed is not None:
                records += stubbed[0]
                edits.append(stubbed[1])
        return records, edits

    def _stubbed(self, index: MessageIndex, group: MessageGroup) -> tuple[list[StoredRecord], Rewrite] | None:
        """Return the records of the large results, and the edit that replaces them; ``None`` if it would save nothing."""
        about = _About(salt=_session(self, index), by=self.name, reason=_LARGE, at=index.context.now)
        # a rewrite before this one kept the number and the order of the messages with results
        originals = iter([each for each in index.read_originals(group) if any(each.tool_results())])
        calls = calls_by_id(group)
        records: list[StoredRecord] = []
        messages: list[Message] = []
        for message in group.messages:
            original = next(originals) if any(message.tool_results()) else message
            shortened = message
            if any(map(self._is_large, message.tool_results())):
                [record] = _records_of(index, group, [original], about)
                parts = [self._shortened(part, calls, record.id) for part in message.parts]
                shortened = message.evolve(parts=parts)
                records += [record, _placeholder_of(index, shortened, record.id, about)]
            messages.append(shortened)
        return (records, Rewrite(group, messages, f"{_LARGE}, stored")) if gain(index, [group], messages) > 0 else None

    def _shortened(self, part: Part, calls: Mapping[str, ToolCallPart], id: str) -> Part:
        """Return the stub of a large result, or any other part unchanged."""
        if not isinstance(part, ToolResultPart) or not self._is_large(part):
            return part
        call = calls.get(part.call_id)
        what = "a tool result" if call is None else brief_call(call, _CALL_CHARS)[:_WHAT_CHARS]
        media = "".join(f" and its {each.kind}" for each in part.media[:1])
        body = f'{len(part.text):,} characters of {what}{media} are stored: compaction_expand(id="{id}")'
        return attrs.evolve(part, text=marked(" ".join(body.split()), by=self.name), media=())

    def _is_large(self, result: ToolResultPart) -> bool:
        return len(result.text) >= max(self.min_chars, _LEAST_CHARS) or bool(result.media)


@attrs.frozen
class Lossless(Strategy):
    """Runs any strategy, but stores the original messages before each edit that drops, replaces or rewrites them.

    ``compaction_expand`` returns the originals of a summary by the id in its first line. Messages that cannot be stored stay in
    the view: their edit is refused.

    Args:
        strategy: The strategy to run.
        store: The store for the originals.
        session: As for `Offload`.
        on_failure: The reaction if the store fails.
    """

    runs: ClassVar[str] = "strategy"

    strategy: Strategy = attrs.field(converter=as_strategy)
    store: Store = attrs.field(validator=_STORE)
    session: str | None = attrs.field(default=None, kw_only=True)
    on_failure: OnStoreFailure = attrs.field(default="keep", validator=_ON_FAILURE, kw_only=True)

    @property
    def name(self) -> str:
        return self.strategy.name

    def __call__(self, index: MessageIndex) -> Steps:
        refusals, down = Refusals(), list[Exception]()

        def answered(item: object) -> Any:
            if isinstance(item, Edit):
                return self._applied(index, item, index.running_name or self.name, refusals, down)
            if isinstance(item, StepBegan):
                refusals.changed()
            return PASS_ON

        with contextlib.closing(self.strategy(index)) as steps:
            yield from relay(steps, answered)

    def _applied(
        self, index: MessageIndex, edit: Edit, by: str, refusals: Refusals, down: list[Exception]
    ) -> Generator[Any, Any, bool]:
        """Store the messages that an edit removes, then yield the edit; return whether it was applied.

        If they cannot be stored, the edit is refused. After the store has failed, every edit is.
        """
        if down or not (yield from self._stored(index, edit, by, down)):
            refusals.note(edit, "its messages could not be stored", by)
            return False
        applied = bool((yield edit))
        if applied:
            refusals.changed()
        return applied

    def _stored(self, index: MessageIndex, edit: Edit, by: str, down: list[Exception]) -> Generator[Any, Any, bool]:
        """Store the messages that an edit removes; return whether they were. A failure of the store is added to ``down``."""
        session = _session(self, index)
        try:
            records = _leaving(index, edit, session, by)
        except StateError as error:  # a message cannot be written as JSON
            yield _failed(by, error, self.on_failure)
            return False
        try:
            yield StoreRequest(store=self.store, session=session, records=records)
        except (ConfigurationError, SyncDriverError):
            raise
        except Exception as error:
            down.append(error)
            yield _failed(by, error, self.on_failure)
            return False
        return True


def _session(strategy: Offload | Lossless, index: MessageIndex) -> str:
    return (index.context.origin or "default") if strategy.session is None else strategy.session


def _failed(name: str, error: Exception, policy: OnStoreFailure) -> Failed:
    """Return the report of a failed store, or raise the failure if the policy is ``raise``."""
    if policy == "raise":
        raise error
    return Failed(name, error, "messages that could not be stored stay in the view")


def _leaving(index: MessageIndex, edit: Edit, session: str, by: str) -> tuple[StoredRecord, ...]:
    """Return the records of the messages that an edit removes, and links from the summaries that it adds."""
    records: list[StoredRecord] = []
    for part in simple_edits(edit):
        about = _About(salt=session, by=by, reason=part.reason, at=index.context.now)
        children: list[str] = []
        groups = [index.group(id) for id in named(part) if index.is_included(id)]
        for group in groups:
            sources = index.read_originals(group)
            if isinstance(part, Rewrite):
                sources = _rewritten(group, part, sources)
            leaving = _records_of(index, group, sources, about)
            children += [record.id for record in leaving]
            records += leaving
        if isinstance(part, Replace) and part.messages and (mark := read_mark(part.messages[0])) is not None:
            records.append(StoredRecord.of_summary(children, id=mark.id, tokens=group_tokens(groups), **about))
            records.append(_placeholder_of(index, part.messages[0], mark.id, about))
    return tuple(records)


def _rewritten(group: MessageGroup, edit: Rewrite, sources: list[Message]) -> list[Message]:
    """Return the source messages that a rewrite changes; all of the group if one of them was changed before."""
    changed = [old for old, new in zip(group.messages, edit.messages, strict=False) if old is not new]
    return changed if all(any(old is source for source in sources) for old in changed) else sources


def _records_of(index: MessageIndex, group: MessageGroup, messages: Sequence[Message], about: _About) -> list[StoredRecord]:
    """Return the records of some messages of a group, searchable by their texts, calls, reasoning and results.

    Every message is stored, even if its text looks like a stub. If an edit of this package wrote the message, the store already
    has a placeholder of the same id, and keeps it (see `_placeholder_of`). So only the store decides what is a stub, never a
    text. The results of the recall tools are not searchable, so that a search finds the original only.
    """
    calls = calls_by_id(group)
    records: list[StoredRecord] = []
    for message in messages:
        text = "\n".join(filter(None, [_searchable(part, calls) for part in message.parts]))
        wire, facts = _read_for_store(index, message)
        records.append(StoredRecord.of_message(wire, text=text, **facts, **about))
    return records


def _placeholder_of(index: MessageIndex, message: Message, stands_for: str, about: _About) -> StoredRecord:
    """Return the record of a message that an edit writes, with the record it stands for as its child."""
    wire, facts = _read_for_store(index, message)
    return StoredRecord.of_placeholder(wire, [stands_for], **facts, **about)


def _read_for_store(index: MessageIndex, message: Message) -> tuple[Any, dict[str, Any]]:
    """Return a message as JSON-ready data, and its role and tokens."""
    try:
        return index.format.to_wire(message.raw), {"role": message.role, "tokens": index.measure(message)[0]}
    except RecursionError as error:
        raise StateError("a message is nested too deeply to be stored as JSON; it stays in the view") from error


def _searchable(part: object, calls: dict[str, ToolCallPart]) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.name}({part.arguments})"
    if isinstance(part, ToolResultPart):
        call = calls.get(part.call_id)
        return "" if call is not None and call.name in TOOLS else part.text
    return part.text if isinstance(part, TextPart | ReasoningPart) else ""


def storing_parts(strategy: Strategy) -> list[Offload | Lossless]:
    """Return the parts of a strategy that store messages, outermost first."""
    return [part for part in strategy.parts() if isinstance(part, Offload | Lossless)]


def forgetting_stores(strategy: Strategy) -> list[tuple[ForgettingStore, str | None]]:
    """Return the stores of a strategy, each with its configured session; raise an error if one of them cannot forget."""
    found: list[tuple[ForgettingStore, str | None]] = []
    for each in storing_parts(strategy):
        if not isinstance(each.store, ForgettingStore):
            kind = type(each.store).__name__
            raise ConfigurationError(
                f"forget: {kind} has no method forget(session, records), so the messages would stay in it; add that method"
            )
        found.append((each.store, each.session))
    return found
