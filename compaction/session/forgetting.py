"""Forgetting messages for good, in everything that a session wrote: for requests to delete what somebody said.

    await session.forget([message])

The view, the saved state and the stores of the strategy then hold nothing of these messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import ConfigurationError
from ..formats import as_list, fits, resolve
from ..index import occurrences
from ..run import refuse, unawaited
from ..stores import ForgettingStore, StoredRecord
from ..strategies import Strategy
from .grants import storing
from .steps import SessionSteps


class SessionForgetting(SessionSteps):
    """The part of a session that forgets messages. Holds state; the arguments are those of `CompactionSession`."""

    async def forget(self, messages: Iterable[Any]) -> int:
        """Remove messages from everything that the session wrote, and return how many of its messages they were.

        All messages that say the same leave the source. Every edit that names one of them, or a summary that stands for it, or
        that wrote words which only they say, is undone; the other edits stay. Prepared summaries and the last view are dropped.
        The records of `Offload` and `Lossless` that hold them are deleted, with the stubs that stand for those; then the state
        is saved, and the session's file written again without what it held before, which is O(file).

        Call it before the host's list lacks the messages, as the session still knows then what stands for them, and pass the
        list without them from then on: what the list has is a message of the conversation. If a tool call goes without its
        result, the whole group leaves the view until then. What other messages say of them stays; so do the answers that a
        `CachedSummarizer` keeps, which are nobody's: delete its file.

        Args:
            messages: The messages, as the conversation has them.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget, see `ForgettingStore`; nothing changes then.
            InputError: If one of them cannot be read; nothing changes then.
            StateError: If a store cannot be written. Call it again: what is forgotten already does no harm.
        """
        return await self._forget(messages, sync=False)

    def forget_sync(self, messages: Iterable[Any]) -> int:
        """`forget` for stores that are not awaited."""
        return unawaited(self._forget(messages, sync=True))

    async def _forget(self, messages: Iterable[Any], *, sync: bool) -> int:
        given = as_list(messages)
        async with self.lock.held(sync=sync):
            await settled(self.forget_stored(given), sync=sync)
            count = self.forget_known(given)
            if self._saver.store is not None:
                self._saver.store.scrub()
            return count

    # ---------------------------------------------------------------- under the session's lock

    def forget_stored(self, given: Sequence[Any]) -> Iterator[Any]:
        """Delete what the stores of the strategy hold of messages; yields what each `ForgettingStore.forget` returned.

        Raises:
            Exception: As for `forget`, before the first one is asked; later whatever a store raises.
        """
        index = self._index
        stores = _forgetting(self._strategy)
        format = index.format if self._named or fits(given, index.format) else resolve(None, given)
        for place, raw in enumerate(given):
            format.read(raw, place)
        same = [index.source[ordinal] for ordinal in occurrences(index.columns, index.journal, given, format)]
        for store, session, salt in stores:
            name = self._id if session is None else session
            records = [
                StoredRecord.of_message(format.to_wire(raw), role="", text="", salt=name if salt is None else salt)
                for raw in (*given, *same)
            ]
            yield store.forget(name, records)

    def forget_known(self, given: Sequence[Any]) -> int:
        """Forget messages in the session itself, and save it; returns how many they were.

        Raises:
            StateError: If it cannot be saved; the session itself has forgotten them then.
        """
        index = self._index
        source, edits = index.source, len(index.snapshot.journal)
        count = index.forget(given)
        if count or len(index.snapshot.journal) != edits:
            self._ahead.drop()
            self._guard.clear()
            self._last = None
            self._revise("forgot", len(source), count)
            self._marks = index.marks or self._marks
            left = set(map(id, index.source))
            self._reports.forgot(sum(id(raw) in left for raw in source[: self._reports.messages]))
            self._reporter.forgot(index)
            self._saver.unsaved = True
        self._saver.save()
        if self._saver.failure is not None:
            raise self._saver.failure.error
        return count


async def settled(answers: Iterable[Any], *, sync: bool) -> None:
    """Await those answers of stores that have to be awaited.

    Raises:
        SyncDriverError: If one has to be, and ``sync`` forbids it.
    """
    for answer in answers:
        if inspect.isawaitable(answer):
            if sync:
                refuse(answer, "the store is awaited; use the method without _sync, and await it")
            await answer


def _forgetting(strategy: Strategy) -> list[tuple[ForgettingStore, str | None, str | None]]:
    """Return the stores of a strategy that hold messages, each with the session and the salt that are named, if any."""
    found: list[tuple[ForgettingStore, str | None, str | None]] = []
    for each in storing(strategy):
        if not isinstance(each.store, ForgettingStore):
            kind = type(each.store).__name__
            raise ConfigurationError(
                f"forget: {kind} has no method forget(session, records), so it would keep the messages; add it"
            )
        found.append((each.store, each.session, each.salt))
    return found
