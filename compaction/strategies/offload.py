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
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..checks import made, one_of
from ..errors import ConfigurationError, NoProgress, StateError, SyncDriverError
from ..index import (
    PASS_ON,
    Edit,
    MarkCeiling,
    MessageGroup,
    MessageIndex,
    Replace,
    Rewrite,
    Together,
    named,
    read_mark,
    relay,
    signature,
)
from ..messages import Message
from ..selectors import Selector, as_selector, last
from ..stores import Store, StoredRecord, StoreRequest
from ..triggers import always, never
from .base import CompactionStrategy, Failed, StepBegan, StepEnded, Steps, Wrapper
from .offload_styles import OFFLOADED_BY, OffloadStyle, StubResults, is_writable, placeholder_of, records_of

OnStoreFailure: TypeAlias = Literal["keep", "raise"]
"""The reaction to a failed store: ``keep`` the messages in the view and report it, or ``raise``, which undoes the run."""

_STUBS: Final = MarkCeiling(tokens=4_000, messages=40)
"""The size limits of the stubs that are recognized in a list; a stub of groups has about 40 tokens."""

_ON_FAILURE: Final = one_of("keep", "raise")
_STORE: Final = made("a store")


@attrs.frozen
class Offload(CompactionStrategy):
    """Moves old content to a store, oldest first, and leaves stubs, until ``target`` holds.

    Each step moves twice as many groups as the one before, and the target is evaluated before each step. So at most about twice
    as many groups are moved as necessary, with few writes. Cost: O(messages), and one write for each step.

    Args:
        store: The store.
        session: The name of the conversation in the store; by default the id of the `CompactionSession`, else ``"default"``.
        salt: The salt of the records' ids, which must be the same in every process; by default the session's name.
        style: The content that is moved: large tool results (`StubResults`) or whole groups (`StubGroups`).
        trigger: When to run.
        target: When to stop.
        keep: The groups that do not change; by default the last 2, as for `ToolResult`.
        on_failure: The reaction if the store fails.
    """

    store: Store = attrs.field(validator=_STORE)
    session: str | None = attrs.field(default=None, kw_only=True)
    salt: str | None = attrs.field(default=None, kw_only=True)
    style: OffloadStyle = attrs.field(factory=StubResults, kw_only=True, validator=made("a style"))
    keep: Selector = attrs.field(default=last(groups=2), converter=as_selector, kw_only=True)
    on_failure: OnStoreFailure = attrs.field(default="keep", validator=_ON_FAILURE, kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        return {OFFLOADED_BY: _STUBS}

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "target": never}

    def edits(self, index: MessageIndex) -> Steps:
        if self.is_paused(index):
            return
        steps = self.style(index, self.candidates(index), _salt(self, index))
        while not self.target(index):
            try:
                records, edits = next(steps)
            except StopIteration:
                return
            except StateError as error:  # a message cannot be written as JSON: it stays, the others are moved
                yield _failed(self.name, error, self.on_failure)
                free = [group for group in self.candidates(index) if is_writable(index, group)]
                steps = self.style(index, free, _salt(self, index))
                continue
            with self.failures(index) as failed:
                yield StoreRequest(store=self.store, session=_session(self, index), records=tuple(records))
            if failed:
                yield _failed(self.name, failed[0], self.on_failure)
                return
            yield from (edit for edit in edits)


@attrs.frozen
class Lossless(Wrapper):
    """Runs any strategy, but stores the original messages before each edit that drops, replaces or rewrites them.

    ``compaction_expand`` returns the originals of a summary by the id in its first line. Messages that cannot be stored stay in
    the view: their edit is refused.

    Args:
        strategy: The strategy to run.
        store: The store for the originals.
        session: As for `Offload`.
        salt: As for `Offload`.
        on_failure: The reaction if the store fails.
    """

    store: Store = attrs.field(validator=_STORE)
    session: str | None = attrs.field(default=None, kw_only=True)
    salt: str | None = attrs.field(default=None, kw_only=True)
    on_failure: OnStoreFailure = attrs.field(default="keep", validator=_ON_FAILURE, kw_only=True)

    def __call__(self, index: MessageIndex) -> Steps:
        running = [self.strategy.name]
        failed: set[object] = set()
        begun = 0

        def answered(item: object) -> Any:
            nonlocal begun
            if isinstance(item, Edit):
                return self._stored(index, item, running[-1], begun, failed)
            if isinstance(item, StepBegan):
                begun += 1
                running.append(item.strategy.name)
            elif isinstance(item, StepEnded) and len(running) > 1:
                running.pop()
            return PASS_ON

        with contextlib.closing(self.strategy(index)) as steps:
            yield from relay(steps, answered)

    def _stored(self, index: MessageIndex, edit: Edit, by: str, begun: int, failed: set[object]) -> Generator[Any, Any, bool]:
        """Store the messages that the edit removes, then yield the edit; return whether it was applied.

        If a message cannot be written as JSON, its edit is refused. After the store has failed, every edit is refused; a
        strategy that yields the same refused edit twice is stopped. ``begun`` counts the strategies that have begun.
        """
        try:
            records = None if _DOWN in failed else _leaving(index, edit, salt=_salt(self, index), by=by)
        except StateError as error:
            records = None
            yield _failed(by, error, self.on_failure)
        if records is not None:
            try:
                yield StoreRequest(store=self.store, session=_session(self, index), records=records)
            except (ConfigurationError, SyncDriverError):
                raise
            except Exception as error:
                failed.add(_DOWN)
                yield _failed(by, error, self.on_failure)
            else:
                return bool((yield edit))
        asked = (begun, signature(edit))
        if asked in failed:
            raise NoProgress(f"{by} yielded an edit again that was refused because the store failed; skip refused edits")
        failed.add(asked)
        return False


_DOWN: Final = "the store"


def _session(strategy: Offload | Lossless, index: MessageIndex) -> str:
    return (index.context.origin or "default") if strategy.session is None else strategy.session


def _salt(strategy: Offload | Lossless, index: MessageIndex) -> str:
    return _session(strategy, index) if strategy.salt is None else strategy.salt


def _failed(name: str, error: Exception, policy: OnStoreFailure) -> Failed:
    """Return the report of a failed store, or raise the failure if the policy is ``raise``."""
    if policy == "raise":
        raise error
    return Failed(name, error, "messages that could not be stored stay in the view")


def _leaving(index: MessageIndex, edit: Edit, **names: str) -> tuple[StoredRecord, ...]:
    """Return the records of the messages that an edit removes, and links from the summaries that it adds."""
    records: list[StoredRecord] = []
    for part in edit.edits if isinstance(edit, Together) else (edit,):
        about: dict[str, Any] = {**names, "reason": part.reason, "at": index.context.now}
        children: list[str] = []
        groups = [index.group(id) for id in named(part) if index.is_included(id)]
        for group in groups:
            sources = index.read_originals(group)
            if isinstance(part, Rewrite):
                sources = _rewritten(group, part, sources)
            leaving = records_of(index, group, sources, **about)
            children += [record.id for record in leaving]
            records += leaving
        if isinstance(part, Replace) and part.messages and (mark := read_mark(part.messages[0])) is not None:
            tokens = sum(group.tokens for group in groups)
            records.append(StoredRecord.of_summary(children, id=mark.id, tokens=tokens, **about))
            records.append(placeholder_of(index, part.messages[0], mark.id, **about))
    return tuple(records)


def _rewritten(group: MessageGroup, edit: Rewrite, sources: list[Message]) -> list[Message]:
    """Return the source messages that a rewrite changes; all of the group if one of them was changed before."""
    changed = [old for old, new in zip(group.messages, edit.messages, strict=False) if old is not new]
    return changed if all(any(old is source for source in sources) for old in changed) else sources
