"""Deletion of conversations that have not been used for some time, from memory and the store."""

from __future__ import annotations

from typing import Final

import anyio

from .conversations import ConversationTurn, GatewayConversations
from .settings import GatewaySettings
from .status import GatewayStatus

_CHECKS: Final = 20  # in the time after which a conversation is deleted
_LONGEST_SECONDS: Final = 3_600.0


class UnusedConversations:
    """Deletes unused conversations. Holds state: the time at which the use of each was last saved.

    Args:
        settings: The gateway's settings; without ``forget_after`` nothing is deleted.
        conversations: The gateway's conversations.
        status: The gateway's status.
    """

    def __init__(self, settings: GatewaySettings, conversations: GatewayConversations, status: GatewayStatus) -> None:
        self._after = settings.forget_after
        self._clock = settings.clock
        self._conversations = conversations
        self._status = status
        self._saved: dict[str, float] = {}

    async def used(self, turn: ConversationTurn) -> None:
        """Note the use of a conversation; the time is saved now and then."""
        if self._after is None:
            return
        now, name = self._clock(), turn.session.id
        if now - self._saved.get(name, float("-inf")) >= self._after / _CHECKS:
            self._saved[name] = now
            await self._conversations.note_use(turn, now)

    async def forget(self) -> None:
        """Delete conversations that were unused for too long. A failure is counted, and the next call tries again."""
        if self._after is None:
            return
        now = self._clock()
        before = now - self._after
        unused = [each.id for each in self._status.snapshot().conversations if each.last_at < before]
        try:
            gone = await self._conversations.forget(unused, before, now)
        except Exception as error:
            self._status.failed(f"forgetting: {type(error).__name__}")
            return
        for name in gone:
            self._saved.pop(name, None)
            self._status.forget(name)

    async def run(self) -> None:
        """Delete unused conversations from time to time, until cancelled."""
        while self._after is not None:
            await self.forget()
            await anyio.sleep(min(_LONGEST_SECONDS, self._after / _CHECKS))
