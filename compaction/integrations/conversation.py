"""Conversations inside a framework: found by a pool, followed on each request, and what happens when compacting fails.

Every integration passes the list its framework holds and sends what comes back::

    turn = await conversations.turn(messages, id=session_id)
    try:
        reply = await model(turn.view)
    except Exception as error:
        again = await turn.overflowed(error)          # None unless the provider found it too long
        if again is None:
            raise
        reply = await model(again)
    turn.record_usage(reply.usage)

Integrations differ in the format, in where the state is kept, and in whether the framework awaits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs

from ..errors import BudgetUnsatisfiable, ConfigurationError, InputError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..index import MessageIndex, Metrics
from ..result import CompactionResult
from ..run import unawaited
from ..session import Blocking, CompactionSession
from ..stores import SessionStore
from ..strategies import Failed
from ..tokens import LengthError
from .options import IntegrationOptions

_NOTHING: Final = Metrics(tokens=0, bytes=0, messages=0, groups=0, turns=0, tool_calls=0)


@attrs.define(eq=False)
class FrameworkTurn:
    """One request of a framework. Holds state: the view and the result, which `overflowed` replaces.

    Args:
        view: The messages to send.
        result: The result of the last run.
        session: The session; ``None`` if the list could not be followed, and is sent as it is.
        options: The integration's options.
    """

    view: list[Any]
    result: CompactionResult
    session: CompactionSession | None
    options: IntegrationOptions

    @property
    def index(self) -> MessageIndex | None:
        """The session's index: groups, edits, originals; ``None`` without a session."""
        return None if self.session is None else self.session.index

    def record_usage(self, usage: object) -> None:
        """Record the usage that the provider reported for the view; what cannot be read as usage is ignored."""
        if usage is None or self.session is None:
            return
        with contextlib.suppress(InputError):
            self.session.record_usage(usage, view=self.view)

    async def overflowed(self, error: BaseException) -> list[Any] | None:
        """Return the list to send once more, or ``None`` if the error does not say that the request was too long.

        Raises:
            BudgetUnsatisfiable: If nothing more may be removed, raised from the provider's error.
        """
        if self.session is None or LengthError.read(error) is None:
            return None
        try:
            self.view = await self.session.overflowed(error)
            self._note_last(self.session)
        except BudgetUnsatisfiable as failed:
            raise failed from error
        return self.view

    def overflowed_sync(self, error: BaseException) -> list[Any] | None:
        """`overflowed` for strategies that await nothing."""
        if self.session is None or LengthError.read(error) is None:
            return None
        try:
            self.view = self.session.overflowed_sync(error)
            self._note_last(self.session)
        except BudgetUnsatisfiable as failed:
            raise failed from error
        return self.view

    def _note_last(self, session: CompactionSession) -> None:
        """Take over the result of the run that the overflow made, and pass it on as that of any run."""
        self.result = session.last_result or self.result
        if self.options.on_result is not None:
            self.options.on_result(self.result)

    def state(self, saved: object = None) -> dict[str, Any] | None:
        """Return JSON-ready data for the framework to save, without messages; ``None`` if the saved data is still right.

        Args:
            saved: The data that the framework has; it is compared by its ``"revision"``.
        """
        if self.session is None or not (saved or self.session.has_decided):
            return None
        revision = self.session.revision
        if isinstance(saved, Mapping) and cast("Mapping[str, Any]", saved).get("revision") == revision:
            return None
        return {**self.session.to_dict(), "id": self.session.id, "revision": revision, "last": self.report()}

    def reports(self) -> dict[str, Any]:
        """Return the entries of `state` that change whenever the provider reports something, O(1)."""
        return {} if self.session is None else self.session.provider_reports

    def report(self) -> dict[str, Any]:
        """Return a report of the run as JSON-ready data."""
        result = self.result
        return {
            "outcome": result.outcome,
            "tokens_before": result.before.tokens,
            "tokens_after": result.after.tokens,
            "edits": len(result.edits),
            "failures": list(map(str, result.failures)),
        }


@attrs.frozen
class _Request:
    """The arguments of a turn."""

    messages: list[Any]
    id: str | None
    saved: object
    overhead_tokens: int
    focus: str | None
    window: int | None
    scope: str

    @property
    def options(self) -> dict[str, Any]:
        """Return the arguments of the pool's turn."""
        return {
            "id": self.id,
            "scope": self.scope,
            "saved": _mapping(self.saved),
            "overhead_tokens": self.overhead_tokens,
        }


class FrameworkConversations:
    """The conversations of one integration. Holds state: a pool of sessions.

    Args:
        options: The integration's options.
        format: The framework's message format.
        store: Where to save the sessions, if anywhere.
    """

    def __init__(self, options: IntegrationOptions, format: MessageFormat, *, store: SessionStore | None = None) -> None:
        self.options = options
        self._format = format
        self._pool = options.pool(format, store=store)

    async def turn(
        self,
        messages: Iterable[Any],
        *,
        id: str | None = None,
        saved: object = None,
        model: str | None = None,
        overhead_tokens: int = 0,
        focus: str | None = None,
        scope: str = "",
    ) -> FrameworkTurn:
        """Follow a framework's list, compact it if that is due, and return what to send.

        Args:
            messages: The whole conversation as the framework has it, or an earlier view with what came since.
            id: The framework's name for the conversation, if it has one.
            saved: What `FrameworkTurn.state` returned for it earlier, if the framework has it.
            model: The model's name, for ``window="auto"``.
            overhead_tokens: Tokens of this request outside these messages: tools, a system prompt, other messages.
            focus: Compact now, whatever the trigger says, and let a summary say most about this; ``""`` for no subject.
            scope: The name of what shares nothing with other scopes, such as a tenant.

        Raises:
            ConfigurationError: If an option is wrong, whatever ``on_failure`` says.
            Exception: Whatever the strategy raises, if ``on_failure`` is ``"raise"``.
        """
        request = _Request(list(messages), id, saved, overhead_tokens, focus, self.options.window_of(model), scope)
        return await self._turn(request, sync=False)

    async def _turn(self, request: _Request, *ignored: Failed, sync: bool) -> FrameworkTurn:
        followed: CompactionSession | None = None
        try:
            given, options, focus = request.messages, request.options, request.focus
            async with (
                Blocking(self._pool.turn_sync(given, **options)) if sync else self._pool.turn(given, **options) as session
            ):
                followed = session
                self._prepare(session, request.window)
                if sync:
                    result = session.compact_due_sync() if focus is None else session.compact_now_sync(focus)
                else:
                    result = await (session.compact_due() if focus is None else session.compact_now(focus))
        except Exception as error:
            if failure := self._ignored(error, request):
                return await self._turn(attrs.evolve(request, saved=None), failure, sync=sync)
            result = self._failed(request.messages, followed, error)
        return self._noted(result, followed, *ignored)

    def turn_sync(
        self,
        messages: Iterable[Any],
        *,
        id: str | None = None,
        saved: object = None,
        model: str | None = None,
        overhead_tokens: int = 0,
        focus: str | None = None,
        scope: str = "",
    ) -> FrameworkTurn:
        """`turn` for strategies that await nothing."""
        request = _Request(list(messages), id, saved, overhead_tokens, focus, self.options.window_of(model), scope)
        return unawaited(self._turn(request, sync=True))

    def _ignored(self, error: Exception, request: _Request) -> Failed | None:
        """Return the report that a saved state is ignored, if that is what to do."""
        if not request.saved or not isinstance(error, StateError) or self.options.on_failure == "raise":
            return None
        return Failed(self.options.strategy.name, error, "the saved state was ignored; the conversation is compacted again")

    def _prepare(self, session: CompactionSession, window: int | None) -> None:
        """Set the model's window, and record the usage that the reply to the last view carries, if it does."""
        session.use_window(window)
        reported = (self._format.reported_usage(raw) for raw in session.new_messages)
        reply: object = next((usage for usage in reported if usage), None)
        if reply is not None:
            with contextlib.suppress(InputError):
                session.record_usage(reply)

    def _failed(self, given: list[Any], session: CompactionSession | None, error: Exception) -> CompactionResult:
        """Return a result with the last good view and the error."""
        if self.options.on_failure == "raise" or isinstance(error, ConfigurationError | SyncDriverError):
            raise error
        sizes = _NOTHING if session is None else session.index.included
        return CompactionResult(
            messages=given if session is None else session.index.messages(),
            before=sizes,
            after=sizes,
            edits=(),
            refused=(),
            failures=(Failed(self.options.strategy.name, error, "the run continued with the unchanged view"),),
            outcome="degraded",
        )

    def _noted(self, result: CompactionResult, session: CompactionSession | None, *ignored: Failed) -> FrameworkTurn:
        if ignored:
            result = attrs.evolve(result, failures=(*result.failures, *ignored))
        if self.options.on_result is not None:
            self.options.on_result(result)
        return FrameworkTurn(result.messages, result, session, self.options)


def _mapping(saved: object) -> Mapping[str, Any] | None:
    """Return what a framework saved.

    Raises:
        StateError: If it is not a mapping.
    """
    if not saved:
        return None
    if not isinstance(saved, Mapping):
        raise StateError(f"saved state: {type(saved).__name__} is not what FrameworkTurn.state returned; start without it")
    return cast("Mapping[str, Any]", saved)
