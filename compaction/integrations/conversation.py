"""A conversation inside a framework: a session that follows the framework's list, and what happens when compacting fails.

Every integration passes the list its framework holds and sends what comes back. They differ in the format, in where the state
is kept, and in whether the framework awaits.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, cast

import attrs

from ..errors import ConfigurationError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..index import MessageIndex
from ..result import CompactionResult
from ..strategies import Failed
from .options import IntegrationOptions

__all__ = ["FrameworkConversation", "RecentConversations"]


class FrameworkConversation:
    """One conversation of a framework. Holds state: its session, the last result, and whether there is something to save.

    Args:
        options: The integration's options.
        format: The framework's message format.
        saved: What `to_dict` returned earlier, if anything.

    Raises:
        StateError: If ``saved`` is of another version or corrupt and ``options.on_failure`` is ``"raise"``; otherwise a new
            session starts, and the first result reports the failure.
    """

    def __init__(self, options: IntegrationOptions, format: MessageFormat, saved: object = None) -> None:
        self.options = options
        self.last: CompactionResult | None = None
        self.unsaved = False
        self._refused_state: StateError | None = None
        try:
            self._session = options.session(format, cast("Mapping[str, Any] | None", saved or None))
        except StateError as error:
            if options.on_failure == "raise":
                raise
            self._refused_state = error
            self._session = options.session(format)

    @property
    def index(self) -> MessageIndex:
        """The session's index: groups, edits, originals."""
        return self._session.index

    async def view(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> list[Any]:
        """Return the messages to send for this conversation now.

        Args:
            messages: The whole conversation as the framework has it, or the last view with what came since.
            overhead_tokens: Tokens of this request outside these messages: tools, a system prompt, other messages.

        Raises:
            ConfigurationError: If an option is wrong, whatever ``on_failure`` says.
            Exception: Whatever the strategy raises, if ``on_failure`` is ``"raise"``.
        """
        given = list(messages)
        async with self._session.lock.task:
            try:
                self._session.follow(given, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            return await self._compacted()

    async def view_more(self, messages: list[Any], since: int, *, total: int, overhead_tokens: int = 0) -> list[Any]:
        """`view` for a caller that knows which messages are new; O(new) besides a copy of the view.

        Args:
            messages: The whole conversation.
            since: The place of the first new message.
            total: The number of messages in the index after the last call; if it differs now, the whole list is compared.
            overhead_tokens: As for `view`.

        Raises:
            Exception: As for `view`.
        """
        async with self._session.lock.task:
            try:
                if self.index.total.messages == total:
                    self._session.follow_more(messages[since:], overhead_tokens=overhead_tokens)
                else:
                    self._session.follow(messages, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(list(messages), error)
            return await self._compacted()

    async def _compacted(self) -> list[Any]:
        try:
            result = await self._session.compact_due()
        except Exception as error:
            return self._failed(self.index.messages(), error)
        return self._noted(result)

    def view_sync(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> list[Any]:
        """`view` for strategies that await nothing."""
        given = list(messages)
        with self._session.lock.thread:
            try:
                self._session.follow(given, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            try:
                result = self._session.compact_due_sync()
            except Exception as error:
                return self._failed(self.index.messages(), error)
            return self._noted(result)

    def _noted(self, result: CompactionResult) -> list[Any]:
        if self._refused_state is not None:
            result = attrs.evolve(result, failures=(*result.failures, self._ignored_state(self._refused_state)))
            self._refused_state = None
        self.last = result
        self.unsaved = self.unsaved or bool(result.edits or result.failures)
        if self.options.on_result is not None:
            self.options.on_result(result)
        return result.messages

    def _ignored_state(self, error: StateError) -> Failed:
        return Failed(self.options.strategy.name, error, "the saved state was ignored; the conversation is compacted again")

    def _failed(self, messages: list[Any], error: Exception) -> list[Any]:
        """Return these messages unchanged, and record a result with the error."""
        if self.options.on_failure == "raise" or isinstance(error, ConfigurationError | SyncDriverError):
            raise error
        sizes = self.index.included
        return self._noted(
            CompactionResult(
                messages=messages,
                before=sizes,
                after=sizes,
                edits=(),
                refused=(),
                failures=(Failed(self.options.strategy.name, error, "the run continued with the unchanged view"),),
                outcome="degraded",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: edits and fingerprints, without messages, and a report of the last run; O(messages)."""
        self.unsaved = False
        return {**self._session.to_dict(), "last": self.report()}

    def report(self) -> dict[str, Any] | None:
        """Return a report of the last run as JSON-ready data; ``None`` before the first."""
        last = self.last
        if last is None:
            return None
        return {
            "outcome": last.outcome,
            "tokens_before": last.before.tokens,
            "tokens_after": last.after.tokens,
            "edits": len(last.edits),
            "failures": [f"{each.strategy}: {each.error!r}; {each.policy}" for each in last.failures],
        }


class RecentConversations:
    """Finds the conversation of a list, for frameworks that pass no id. Holds state: the conversations used last.

    Args:
        options: The integration's options.
        format: The framework's message format.
        remembered: The number of conversations kept, >= 1.
    """

    def __init__(self, options: IntegrationOptions, format: MessageFormat, *, remembered: int = 32) -> None:
        self.options = options
        self._format = format
        self._remembered = remembered
        self._lock = threading.Lock()
        self._known: list[FrameworkConversation] = []

    def of(self, messages: list[Any]) -> FrameworkConversation:
        """Return the newest conversation that this list continues, or a new one; O(conversations), and O(messages) for one."""
        with self._lock:
            found = next((each for each in reversed(self._known) if self._continues(messages, each.index)), None)
            if found is None:
                found = FrameworkConversation(self.options, self._format)
            else:
                self._known.remove(found)
            self._known.append(found)
            del self._known[: -self._remembered]
            return found

    def _continues(self, messages: list[Any], index: MessageIndex) -> bool:
        source = index.source
        return bool(source) and self._format.common_prefix(source, messages) == len(source)
