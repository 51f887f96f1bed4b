"""Deletion of conversations: on request, and of those that were unused for a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Final

import anyio
import anyio.from_thread
import attrs

from ..stores import SessionStore
from .conversations import LOCK_SECONDS, ConversationInUse, ConversationTurn, GatewayConversations
from .recording import SessionRecorder
from .settings import GatewaySettings
from .status import GatewayStatus
from .workers import Workers

_PAGE: Final = 500
_CHECKS: Final = 20  # in the time after which a conversation is deleted
_LONGEST_SECONDS: Final = 3_600.0


@attrs.define(eq=False)
class ConversationDeletion:
    """Deletes conversations from memory, the page, the files and all workers. Holds state: when each was used."""

    _settings: GatewaySettings
    _conversations: GatewayConversations
    _status: GatewayStatus
    _recorder: SessionRecorder | None
    _workers: Workers | None
    _last_use: dict[str, float] = attrs.field(factory=dict[str, float], init=False)  # in seconds since 1970
    _last_saved_use: dict[str, float] = attrs.field(factory=dict[str, float], init=False)
    _uses: SessionStore | None = attrs.field(init=False)  # the file of these times: that of decisions, or one for recall

    def __attrs_post_init__(self) -> None:
        self._uses, settings = self._conversations.store, self._settings
        if self._uses is None and settings.recall is not None and settings.forget_after is not None:
            self._uses = SessionStore(f"{settings.recall}.uses", timeout_seconds=LOCK_SECONDS)

    def in_memory(self, name: str, before: float = math.inf) -> str:
        """Delete a conversation from the memory of this process, unless it is compacted now or was used since a time.

        Return ``"deleted"``, ``"unknown"`` or ``"in use"``.
        """
        if self._last_use.get(name, -math.inf) >= before:
            return "in use"
        try:
            is_deleted = self._conversations.forget(name) | self._status.forget(name)
        except ConversationInUse:
            return "in use"
        for times in (self._last_use, self._last_saved_use):
            times.pop(name, None)
        return "deleted" if is_deleted else "unknown"

    def in_own_memory(self, names: Iterable[str], before: float = math.inf) -> dict[str, str]:
        """Delete conversations from the memory of this process; return the answer of `in_memory` for each."""
        return {name: self.in_memory(name, before) for name in names}

    async def everywhere(self, name: str) -> bool:
        """Delete a conversation from all workers and files, and return whether anything of it was there.

        It raises `ConversationInUse` if it is compacted right now, and a `StateError` if a file cannot be written.

        Raises:
            ConversationInUse: If it is compacted right now.
            StateError: If a file cannot be written.
        """
        found = (await self._in_memories([name]))[name]
        if "in use" in found:
            raise ConversationInUse(name)
        return await self._conversations.in_thread(partial(self._in_files, name)) or "deleted" in found

    async def _in_memories(self, names: Iterable[str], before: float = math.inf) -> dict[str, set[str]]:
        """Delete conversations from the memory of all workers; return the answers of `in_memory` for each.

        A worker that runs but does not answer may use all of them.
        """
        found = {name: {answer} for name, answer in self.in_own_memory(names, before).items()}
        others = [name for name, answers in found.items() if answers != {"in use"}]
        if self._workers is not None and others:
            silent = dict.fromkeys(others, "in use")
            for answers in await self._workers.ask("forget", (others, before), answer=dict[str, str], silent=silent):
                for name, answer in answers.items():
                    found[name].add(answer)
        return found

    def _in_files(self, name: str) -> bool:
        """Delete a conversation from the files, and return whether it was there."""
        found = self._delete_recalled(name)
        if self._uses is not None:
            found |= self._uses.load(name) is not None
            self._uses.delete(name)
            self._uses.scrub()
        return found | (self._recorder is not None and self._recorder.forget(name))

    def _delete_recalled(self, name: str) -> bool:
        """Delete what left the requests of a conversation, and return whether something of it was stored."""
        store, found = self._conversations.recalled, False
        if store is None:
            return False
        while page := store.range(name, 1, _PAGE):
            store.forget(name, page)
            found = True
        if not found:
            store.forget(name, ())  # an earlier call may have deleted the records, but not their bytes
        return found

    # ---------------------------------------------------------------- of those that are unused

    async def note_use(self, turn: ConversationTurn) -> None:
        """Note the use of a conversation, if unused ones are deleted; the file gets the time now and then."""
        after, now, name = self._settings.forget_after, self._settings.clock(), turn.session.id
        if after is None or name in self._conversations.forgotten:
            return
        self._last_use[name] = now
        if self._uses is not None and now - self._last_saved_use.get(name, -math.inf) >= after / _CHECKS:
            self._last_saved_use[name] = now
            await self._conversations.in_thread(partial(self._uses.note_use, name, now))

    async def delete_unused(self, after: float) -> list[str]:
        """Delete conversations that were unused for this many seconds, except from recordings, and return their names.

        After any failure the next call finds the same names and completes the work, because the times are deleted last:

        1. find the names whose time of use is too old (``find_and_delete``);
        2. delete them from the memory of all workers, except those that one compacts right now or has used since (``unused``);
        3. delete their decisions from the file, and what left their requests (``delete``);
        4. delete their times from the file.

        Raises:
            StateError: If a file cannot be written.
        """
        now, uses = self._settings.clock(), self._uses
        before = now - after

        def unused(names: Iterable[str]) -> list[str]:  # the times in the file are up to a twentieth too old
            found = anyio.from_thread.run(self._in_memories, names, before)
            return [name for name, answers in found.items() if "in use" not in answers]

        def delete(names: Iterable[str]) -> list[str]:  # the file calls it after it has deleted the decisions
            deleted: list[str] = []
            for name in names:
                if self._last_use.get(name, -math.inf) < before:  # the deletion of those before it took a while
                    self._delete_recalled(name)
                    deleted.append(name)
            return deleted

        def find_and_delete() -> list[str]:
            if uses is not None:
                return uses.delete_unused(before, now, only=unused, also=delete)
            return delete(unused([name for name, at in self._last_use.items() if at < before]))

        return sorted(await self._conversations.in_thread(find_and_delete))

    async def keep_deleting(self) -> None:
        """Delete unused conversations from time to time, until cancelled; after a failure, the next time tries again."""
        while (after := self._settings.forget_after) is not None:
            with self._status.counting_failures("forgetting"):
                await self.delete_unused(after)
            await anyio.sleep(min(_LONGEST_SECONDS, after / _CHECKS))
