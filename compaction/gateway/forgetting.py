"""Forgetting conversations that nobody has continued for some time, in memory and in the store."""

from __future__ import annotations

from typing import Final

import anyio

from .conversations import ConversationTurn, GatewayConversations
from .settings import GatewaySettings
from .status import GatewayStatus

_CHECKS: Final = 20  # in the time after which a conversation is forgotten
_LONGEST_SECONDS: Final = 3_600.0


class UnusedConversations:
    """Forgets unused conversations. Holds state: when the use of each was last saved.

    Args:
        settings: The gateway's settings; without ``forget_after`` it does nothing.
        conversations: Its conversations.
        status: Its status.
    """

    def __init__(self, settings: GatewaySettings, conversations: GatewayConversations, status: GatewayStatus) -> None:
        self._after = settings.forget_after
        self._clock = settings.clock
        self._conversations = conversations
        self._status = status
        self._saved: dict[str, float] = {}

    async def used(self, turn: ConversationTurn) -> None:
        """Take note that a conversation was used; it is saved now and then."""
        if self._after is None:
            return
        now, name = self._clock(), turn.session.id
        if now - self._saved.get(name, float("-inf")) >= self._after / _CHECKS:
            self._saved[name] = now
            await self._conversations.note_use(turn, now)

    async def forget(self) -> None:
        """Forget what was not used for too long; a failure is counted, and it is tried again."""
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
        """Forget from time to time, until it is cancelled."""
        while self._after is not None:
            await self.forget()
            await anyio.sleep(min(_LONGEST_SECONDS, self._after / _CHECKS))
