"""Removes messages from everything that a session wrote, for requests to delete personal data.

    await session.forget([message])

After that, the view, the saved state and the stores of the strategy no longer contain these messages.
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
    """The methods of a session that forget messages. Holds state; `CompactionSession` explains the arguments."""

    async def forget(self, messages: Iterable[Any]) -> int:
        """Remove messages from everything that the session wrote.

        - Every message with the same content is removed from the session's copy of the conversation.
        - These edits are undone: edits of such a message, summaries that cover it, and edits whose text contains words found
          only in it. Other edits stay.
        - Prepared summaries and the last view are discarded.
        - Records of `Offload` and `Lossless` with these messages are deleted, with the notes that refer to them.
        - The state is saved, and the session's file is rewritten without the earlier content. Cost: O(file).

        Call it while the host's list still contains the messages, and pass the list without them afterwards. If the rest of a
        group would be invalid, such as a tool call without its result, the whole group is left out of the view until then.
        Quotes in other messages remain, and so does the file of a `CachedSummarizer`: delete that file.

        Args:
            messages: The messages, as they are in the conversation.

        Returns:
            The number of messages removed from the conversation.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget (see `ForgettingStore`). Nothing changes then.
            InputError: If a message cannot be read. Nothing changes then.
            StateError: If a store cannot be written. Call it again; repeating it is harmless.
        """
        return await self._forget(messages, sync=False)

    def forget_sync(self, messages: Iterable[Any]) -> int:
        """`forget` for stores whose methods are not async."""
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
        """Delete messages from the stores of the strategy; yield what each `ForgettingStore.forget` returns.

        Raises:
            Exception: As for `forget`, before any store is changed; later, any exception that a store raises.
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
        """Remove messages from the session itself, save it, and return their number.

        Raises:
            StateError: If it cannot be saved. The session in memory has then forgotten the messages.
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
    """Await the answers of stores that are awaitable.

    Raises:
        SyncDriverError: If an answer is awaitable and ``sync`` is true.
    """
    for answer in answers:
        if inspect.isawaitable(answer):
            if sync:
                refuse(answer, "the store is async; await the method without _sync instead")
            await answer


def _forgetting(strategy: Strategy) -> list[tuple[ForgettingStore, str | None, str | None]]:
    """Return the stores of a strategy, each with its configured session and salt."""
    found: list[tuple[ForgettingStore, str | None, str | None]] = []
    for each in storing(strategy):
        if not isinstance(each.store, ForgettingStore):
            kind = type(each.store).__name__
            raise ConfigurationError(
                f"forget: {kind} has no method forget(session, records), so the messages would stay in it; add that method"
            )
        found.append((each.store, each.session, each.salt))
    return found
