"""The turns of conversations inside a framework; every integration runs on them.

An integration passes the list that its framework holds and sends the view::

    turn = await conversations.turn(messages, id=session_id)
    reply = await turn.send(model)          # sent once more if the provider finds it too long
    turn.record_usage(reply.usage)

Integrations differ in the message format, in the place of the saved state, and in whether the framework awaits. For a framework
that does not, pass ``sync=True`` and drive the coroutine with `unawaited_calls`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import attrs

from ..errors import ConfigurationError, StateError, SyncDriverError
from ..formats import MessageFormat, fields_of, same
from ..index import MessageIndex, Metrics
from ..result import CompactionResult
from ..session import CompactionSession, SessionPool
from ..stores import SessionStore
from ..strategies import Failed
from ..tokens import LengthRefusal, MessageMeter, Usage
from .options import IntegrationOptions

KEPT_BY_SERVICE: Final = "the service keeps this conversation: there is nothing here to compact"
"""The reason for doing nothing that integrations report for a conversation that is stored elsewhere."""

# the tool with which a model asks for compaction
TOOL_NAME: Final = "compact_conversation"
TOOL_DESCRIPTION: Final = (
    "Replace the older part of this conversation by a summary, to make room. Call it when a task is done and its details are "
    "no longer needed. `focus` names what the summary should say most about; leave it empty for no subject."
)
TOOL_RESULT: Final = "The conversation is compacted before your next answer."

_P = ParamSpec("_P")
_T = TypeVar("_T")


@attrs.define(eq=False)
class FrameworkTurn:
    """One request of a framework. Holds state: the view and the result, which `overflowed` replaces."""

    view: list[Any]  # the messages to send
    result: CompactionResult  # of the last run
    session: CompactionSession | None  # ``None`` if the list could not be followed and is sent unchanged
    options: IntegrationOptions
    was_refused: bool = False  # whether the provider found the first view too long, so that this is a shorter one

    @property
    def index(self) -> MessageIndex | None:
        """The session's index: groups, edits, originals; ``None`` without a session."""
        return None if self.session is None else self.session.index

    def record_usage(self, usage: object) -> None:
        """Record the usage that the provider reported for the view; zeros, and what cannot be read as usage, are ignored."""
        reported = Usage.read_or_none(usage)
        if self.session is not None and reported is not None:
            self.session.record_usage(reported, view=self.view)

    async def send(self, call: Callable[[list[Any]], Awaitable[_T]], *, sync: bool = False) -> _T:
        """Send the view with ``call``, and once more with a shorter one if the provider found the request too long.

        Raises:
            Exception: The model's error, if it is not a length error or the second request failed.
            BudgetUnsatisfiable: If nothing more may be removed, raised from the provider's error.
        """
        try:
            return await call(self.view)
        except Exception as error:
            if await self.overflowed(error, sync=sync) is None:
                raise
        return await call(self.view)

    async def stream(
        self,
        call: Callable[[list[Any]], Awaitable[AsyncIterable[_T]]],
        *,
        as_length_error: Callable[[Exception], Exception] = lambda error: error,
    ) -> AsyncGenerator[_T]:
        """Yield the events of the stream that ``call`` returns, as `send`; nothing is repeated after the first event.

        Args:
            call: Sends a list of messages, and returns the stream.
            as_length_error: Returns an error in words that `LengthRefusal` reads, for a framework with words of its own.
        """
        while True:
            events: AsyncIterable[_T] | None = None
            has_begun = False
            try:
                events = await call(self.view)
                async for event in events:
                    has_begun = True
                    yield event
                return
            except Exception as error:
                if has_begun or await self.overflowed(as_length_error(error)) is None:
                    raise
            finally:
                close = getattr(events, "aclose", None) or getattr(events, "close", None)
                if close is not None and inspect.isawaitable(closing := close()):
                    await closing

    async def overflowed(self, error: BaseException, *, sync: bool = False) -> list[Any] | None:
        """Return a shorter view to send; ``None`` if the error is not a length error, or not the first one.

        Raises:
            BudgetUnsatisfiable: If nothing more may be removed, raised from the provider's error.
        """
        if self.session is None or self.was_refused or LengthRefusal.read(error) is None:
            return None
        self.view = await self.session.overflowed(error, sync=sync)
        self.was_refused, self.result = True, self.session.last_result or self.result
        if self.options.on_result is not None:
            self.options.on_result(self.result)
        return self.view

    def state(self, saved: object = None, *, always: bool = False) -> dict[str, Any] | None:
        """Return JSON-ready data for the framework to save, without messages; ``None`` if the saved data is up to date.

        Before the first decision there is nothing to save, unless something is saved or data is wanted ``always``.
        """
        if self.session is None or not (saved or always or self.session.has_decided):
            return None
        is_up_to_date = (fields_of(saved) or {}).get("revision") == self.session.revision
        return None if is_up_to_date else {**self.session.to_dict(), "last": self.report()}

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


class FrameworkConversations:
    """The conversations of one integration, which has them as its attribute ``conversations``.

    Holds state: a pool of sessions, saved in the store if there is one, and the requests of `compact_next`.

    Attributes:
        last: The last turn of any conversation, for a program that has one; ``None`` before the first, and after a deletion.
    """

    def __init__(self, options: IntegrationOptions, format: MessageFormat, *, store: SessionStore | None = None) -> None:
        self.options = options
        self._format, self._store = format, store
        of_sessions = attrs.asdict(options, recurse=False, filter=attrs.filters.exclude("on_failure", "on_result", "window"))
        self._pool = SessionPool(format=format, store=store, window=options.window_of(None), **of_sessions)
        self._meter = MessageMeter(options.counter)
        self._tools: tuple[Sequence[object], int] = ((), 0)
        self._asked: dict[object, str] = {}
        self.last: FrameworkTurn | None = None

    def __reduce__(self) -> tuple[Callable[..., FrameworkConversations], tuple[object, ...]]:
        """Copy and pickle the configuration: a copy starts without conversations, and finds those that are saved."""
        return partial(FrameworkConversations, store=self._store), (self.options, self._format)

    def count(self, *sent: object) -> int:
        """Return the tokens of what is sent besides the messages: texts as they are, anything else as JSON."""
        shown = [each if isinstance(each, str) else json.dumps(each, default=str) for each in sent if each]
        return self._meter.counter.count_text("\n".join(shown))

    def count_messages(self, raws: Iterable[Any]) -> int:
        """Return the tokens of messages that are sent besides the conversation."""
        return sum(self._meter.measure(self._format.read(raw))[0] for raw in raws)

    def count_tools(self, tools: Sequence[object], schema: Callable[[Any], object]) -> int:
        """Return the tokens of the schemas of tools, which are made again only if the tools change."""
        known, tokens = self._tools
        if not same(known, tools):
            tokens = self.count(list(map(schema, tools)))
            self._tools = (tuple(tools), tokens)
        return tokens

    def compact_next(self, focus: str = "", key: object = None) -> None:
        """Compact at the next turn with this key, whatever the trigger says; a summary gives most room to ``focus``."""
        self._asked[key] = focus

    async def forget(self, messages: Iterable[Any], scope: str = "") -> int:
        """Remove messages from every conversation and from what was made of them; return their number.

        See `SessionPool.forget`. Call it before the framework deletes them. A state that the framework saves is replaced at the
        conversation's next turn; delete it as well if there may be none in this process.
        """
        self.last = None
        return await self._pool.forget(messages, scope)

    def forget_sync(self, messages: Iterable[Any], scope: str = "") -> int:
        """`forget` for a host that does not await."""
        self.last = None
        return self._pool.forget_sync(messages, scope)

    async def delete(self, id: str | None, scope: str = "") -> int:
        """Delete a conversation, or all of the scope, and everything stored about it; see `SessionPool.delete`.

        Returns:
            The number of conversations deleted; a forked conversation counts as several.
        """
        self.last = None
        return await self._pool.delete(id, scope)

    def delete_sync(self, id: str | None, scope: str = "") -> int:
        """`delete` for a host that does not await."""
        self.last = None
        return self._pool.delete_sync(id, scope)

    async def turn(
        self,
        messages: Iterable[Any],
        *,
        id: str | None = None,
        saved: object = None,
        model: str | None = None,
        overhead_tokens: int = 0,
        focus: str | None = None,
        key: object = None,
        scope: str = "",
        usages: Sequence[object] | None = None,
        sync: bool = False,
    ) -> FrameworkTurn:
        """Follow a framework's list, compact it if that is due, and return the messages to send.

        Args:
            messages: The whole conversation as the framework has it, or an earlier view with newer messages behind it.
            id: The framework's name for the conversation, if it has one.
            saved: The data that `FrameworkTurn.state` returned earlier, if the framework has it.
            model: The model's name, for ``window="auto"``.
            overhead_tokens: Tokens of this request outside these messages: tools, a system prompt, other messages.
            focus: Compact now, whatever the trigger says, with a summary that gives most room to this topic; ``""`` for none.
            key: The key under which `compact_next` was called for this conversation.
            scope: A name, such as a tenant's; conversations in different scopes share nothing.
            usages: The usage that the framework kept with each message, ``None`` for a message without usage; by default what
                the format finds in the messages. A new process corrects its counts with it.
            sync: Whether nothing may be awaited, so that `unawaited_calls` can drive the coroutine.

        Raises:
            ConfigurationError: If an option is wrong, whatever ``on_failure`` says.
            Exception: Whatever the strategy raises, if ``on_failure`` is ``"raise"``.
        """
        asked = self._asked.pop(key, None)
        focus = focus if asked is None else asked
        given, window = list(messages), self.options.window_of(model)
        find = partial(self._pool.call, given, id=id, scope=scope, overhead_tokens=overhead_tokens, sync=sync)
        ignored: list[Failed] = []
        while True:
            followed: CompactionSession | None = None
            try:
                if saved and not fields_of(saved):
                    what = f"{type(saved).__name__} is not what FrameworkTurn.state returned; start without it"
                    raise StateError(f"saved state: {what}")
                async with find(saved=fields_of(saved) or None) as session:
                    followed = session
                    self._prepare(session, window, usages)
                    due = session.compact_due(sync=sync) if focus is None else session.compact_now(focus, sync=sync)
                    result = await due
                break
            except Exception as error:
                # an error after the session was found is not about the saved state: a store of the strategy has failed
                is_about_state = saved and followed is None and isinstance(error, StateError)
                if not is_about_state or self.options.on_failure == "raise":
                    result = self._failed(given, followed, error)
                    break
                policy = "the saved state was ignored; the conversation is compacted again"
                ignored.append(Failed(self.options.strategy.name, error, policy))
                saved = None
        result = result.with_failures(*ignored)
        if self.options.on_result is not None:
            self.options.on_result(result)
        self.last = FrameworkTurn(result.messages, result, followed, self.options)
        return self.last

    def _prepare(self, session: CompactionSession, window: int | None, usages: Sequence[object] | None) -> None:
        """Set the model's window, and record the usage that the reply to the last view carries, or the history, if any."""
        if window is not None:
            session.use_window(window)
        if session.last_result is None:
            known = map(self._format.reported_usage, session.index.source) if usages is None else usages
            session.recall_usage(list(map(Usage.read_or_none, known)))
            return
        reported = (Usage.read_or_none(self._format.reported_usage(raw)) for raw in session.new_messages)
        if (usage := next((usage for usage in reported if usage), None)) is not None:
            session.record_usage(usage)

    def _failed(self, given: list[Any], session: CompactionSession | None, error: Exception) -> CompactionResult:
        if self.options.on_failure == "raise" or isinstance(error, ConfigurationError | SyncDriverError):
            raise error
        sizes = Metrics() if session is None else session.index.included
        return CompactionResult(
            messages=given if session is None else session.index.messages(),
            before=sizes,
            after=sizes,
            edits=(),
            refused=(),
            failures=(Failed(self.options.strategy.name, error, "the run continued with the unchanged view"),),
            outcome="degraded",
        )


def as_async(call: Callable[_P, _T]) -> Callable[_P, Awaitable[_T]]:
    """Return a function that awaits nothing as one that can be awaited, for code that serves both."""

    async def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return call(*args, **kwargs)

    return called
