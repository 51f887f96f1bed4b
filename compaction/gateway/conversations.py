"""The conversations of a gateway: finds the session of each request, compacts if that is due, and returns what to send.

A request belongs to the session whose messages it continues. The session id that an agent sends narrows the search. Another
key, upstream, model or set of tools is another conversation, so users, sub-agents and requests for a title never mix.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.to_thread
import attrs

from ..errors import InputError
from ..formats import for_comparison, keep_breakpoints, tool_names
from ..index import as_given
from ..result import CompactionResult
from ..session import BackgroundTasks, CompactionSession, OnEvent, SessionPool
from ..stores import SessionStore, SQLiteStore
from ..strategies import Failed, Lossless
from ..tokens import LengthRefusal, Usage, counter
from ..triggers import tokens_exceed
from .bodies import ModelRequest
from .economy import never_dearer
from .recall import RECALL_FUNCTIONS, may_offer
from .routes import ModelRoute
from .settings import GatewaySettings
from .windows import ModelWindows, ServedModel, known_prices

_AHEAD: Final = 0.8  # of the window: past it a model starts to write its summary in the background
_MOST_POOLS: Final = 64
_MOST_THREADS: Final = 8
_MOST_FORGOTTEN: Final = 1_000  # whose requests may still be running
_T = TypeVar("_T")

LOCK_SECONDS: Final = 0.5
"""The most seconds that a request waits for a file."""


@attrs.frozen(kw_only=True, eq=False)
class ConversationRequest:
    """One request of a conversation: what its body, its headers and its address say.

    Args:
        route: Its route.
        parsed: Its body.
        id: The session id that the agent sends, if any.
        upstream: The address of the upstream.
        is_long: Whether a header asks for a window of a million tokens.
        tenant: A digest of the keys that it is sent with.
    """

    route: ModelRoute
    parsed: ModelRequest
    id: str | None
    upstream: str
    is_long: bool = False
    tenant: str = ""

    @property
    def messages(self) -> list[Any]:
        """The messages of the client."""
        return self.parsed.messages

    @property
    def model(self) -> str:
        """The model that the request names."""
        return self.route.model_of(self.parsed.fields)

    @property
    def served(self) -> ServedModel:
        """The model, at its upstream."""
        return ServedModel(self.upstream, self.model, self.is_long)

    @property
    def scope(self) -> str:
        """The scope of the conversation: one key, one upstream, one model, one set of tools, one session of the agent.

        The agent's session id is part of the scope, not the pool's ``id``, so that messages which an agent removes from its own
        list do not come back.
        """
        return json.dumps([self.tenant, self.upstream, self.model, sorted(tool_names(self.parsed.fields)), self.id])

    @property
    def beside(self) -> str:
        """The fields besides the messages that the model reads, as JSON."""
        found = self.route.api.beside(self.parsed.fields)
        return json.dumps(found) if found else ""


@attrs.define(eq=False, kw_only=True)
class ConversationTurn:
    """The messages to send for one request. Holds state: ``messages`` and ``view``, which a length error replaces.

    Args:
        request: The request.
        session: Its session.
        window: The context window, in tokens.
        messages: The messages to send: the request's own objects, and messages that compaction wrote.
        view: The same messages as the session returned them.
        result: The result of the run; ``None`` after a length error.
        tokens: Tokens of the request to send, by our count and the provider's reports.
        left_out: Tokens of the conversation that are not sent.
        failures: Failures in words, without any text of the conversation.
    """

    request: ConversationRequest
    session: CompactionSession
    window: int
    messages: list[Any] = attrs.field(factory=list[Any])
    view: list[Any] = attrs.field(factory=list[Any])
    result: CompactionResult | None = None
    tokens: int = 0
    left_out: int = 0
    failures: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the messages to send differ from those of the client's request."""
        return list(map(id, self.messages)) != list(map(id, self.request.messages))

    def show(self, view: list[Any], compared: Sequence[Any]) -> None:
        """Set the messages to send: a view of the session, with the request's own objects wherever it shows them."""
        given, index = self.request.messages, self.session.index
        self.view = view
        shown = as_given(view, index.source, compared, given) if index.edit_count else list(given)
        self.messages = keep_breakpoints(shown, given, compared, self.request.route.format)
        self.tokens = max(0, index.tokens)
        self.left_out = max(0, index.total.tokens - index.included.tokens)


class ConversationInUse(Exception):
    """A conversation cannot be deleted while it is compacted."""


class GatewayConversations:
    """The conversations of a gateway. Holds state: a pool of sessions for each format and window.

    Args:
        settings: The gateway's settings.
        on_event: Receives the events of all sessions.

    Attributes:
        windows: The windows of models.
        store: The store of decisions, if they are saved.
        recalled: The store of what left, if the model may read it.
    """

    def __init__(self, settings: GatewaySettings, on_event: OnEvent | None) -> None:
        self._settings = settings
        self._on_event = on_event
        self._counter = counter(settings.counter)
        self._pools: dict[tuple[str, int, float, int], SessionPool] = {}
        self._lock = threading.Lock()
        self._tasks = BackgroundTasks()
        self._threads: anyio.CapacityLimiter  # made in the event loop that uses it
        self.store = None if settings.store is None else SessionStore(settings.store, timeout_seconds=LOCK_SECONDS)
        self._forgotten: dict[str, None] = {}
        # a file of its own, because what is in the other one is deleted with its conversation or after a time
        learned = None if settings.store is None else SessionStore(f"{settings.store}.windows", timeout_seconds=LOCK_SECONDS)
        self.windows = ModelWindows(settings, learned)
        self.recalled = None if settings.recall is None else SQLiteStore(settings.recall, timeout_seconds=LOCK_SECONDS)
        self._recall_tokens = 0 if self.recalled is None else self._counter.count_text(json.dumps(RECALL_FUNCTIONS))

    async def __aenter__(self) -> Self:
        self._threads = anyio.CapacityLimiter(_MOST_THREADS)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._tasks.__aexit__(*exception)

    # ---------------------------------------------------------------- pools

    def _pool(self, request: ConversationRequest, window: int) -> SessionPool:
        settings = self._settings
        reserved = self._recall_tokens if may_offer(request.route.api, request.parsed.fields) else 0
        key = (request.route.format.name, window, _cached_price(request.model), reserved)
        with self._lock:
            if key not in self._pools:
                while len(self._pools) >= _MOST_POOLS:
                    del self._pools[next(iter(self._pools))]
                room = max(1, window - reserved)
                strategy = never_dearer(settings.strategy(room), room, cached=key[2])
                background: dict[str, Any] = {"ahead": tokens_exceed(int(window * _AHEAD)), "tasks": self._tasks}
                self._pools[key] = SessionPool(
                    strategy if self.recalled is None else Lossless(strategy, self.recalled),
                    store=self.store,
                    limit=settings.most_conversations,
                    max_bytes=settings.conversation_bytes,
                    on_event=self._on_event,
                    counter=self._counter,
                    format=request.route.format,
                    window=window,
                    clock=settings.clock,
                    key=settings.keys or None,
                    **(background if settings.awaits else {}),
                )
            return self._pools[key]

    # ---------------------------------------------------------------- turns

    async def turn(
        self, request: ConversationRequest, *, refused: BaseException | None = None, sync: bool = False
    ) -> ConversationTurn:
        """Return what to send for a request: compacted if that is due.

        Args:
            request: The request. If its route only counts tokens, no model is called and no decision is saved.
            refused: The provider's length error, if the request was sent and was too long; it is then compacted further.
            sync: Whether nothing is awaited; drive it with `unawaited` in a thread, because it uses the processor.

        Raises:
            UnknownWindow: If the model's window is unknown.
            BudgetUnsatisfiable: If it was refused, and nothing more can be removed.
            Exception: If the messages cannot be read; the caller then sends the request unchanged.
        """
        window, compared = self.windows.of(request.served), for_comparison(request.messages, request.route.format)
        pool, overhead = self._pool(request, window), self._counter.count_text(request.beside)
        call: contextlib.AbstractAsyncContextManager[CompactionSession]
        if request.route.counts:
            call = contextlib.nullcontext(pool.trial(compared, scope=request.scope, overhead_tokens=overhead))
        else:
            call = pool.call(compared, scope=request.scope, overhead_tokens=overhead, sync=sync)
        async with call as session:
            if not request.route.counts:
                self._forgotten.pop(session.id, None)
            turn = ConversationTurn(request=request, session=session, window=window)
            if refused is not None:
                turn.show(await session.compact_refused(refused, sync=sync), compared)
                return turn
            try:
                turn.result = await session.compact_due(sync=sync)
            except Exception as error:  # the session's view is as it was
                turn.failures = (f"the strategy: {type(error).__name__}",)
                turn.show(session.index.messages(), compared)
            else:
                turn.failures = tuple(map(_words, turn.result.failures))
                turn.show(turn.result.messages, compared)
            return turn

    def learn_window(self, turn: ConversationTurn | None, request: ConversationRequest, error: LengthRefusal) -> None:
        """Learn the window from a length error. If it changes, the conversation begins again with a strategy of its size.

        The turn is the one that was refused, if the window was known.
        """
        self.windows.refused(request.served, error, 0 if turn is None else turn.tokens)
        if turn is not None and self.windows.of(request.served) != turn.window:
            self._pool(request, turn.window).discard(turn.session.id)

    async def record_usage(self, turn: ConversationTurn, usage: Usage) -> None:
        """Give the provider's reported usage to the session; usage beyond the window corrects that."""

        def record() -> None:
            self.windows.accepted(turn.request.served, usage.prompt_tokens)
            if self.is_forgotten(turn.session.id):
                return
            with contextlib.suppress(InputError):
                turn.session.record_usage(usage, view=turn.view)

        await self.in_thread(record)

    def forget(self, name: str) -> bool:
        """Remove a conversation from memory, and return whether it was there; its running request saves nothing of it.

        Raises:
            ConversationInUse: If it is compacted right now.
        """
        pools = [pool for pool in list(self._pools.values()) if name in pool]
        if not all(pool.discard(name) for pool in pools):
            raise ConversationInUse(name)
        self._forgotten[name] = None
        while len(self._forgotten) > _MOST_FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]
        return bool(pools)

    def is_forgotten(self, name: str) -> bool:
        """Whether a conversation was removed by `forget`, and has sent no request since."""
        return name in self._forgotten

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Run work that uses the processor or waits for a file in a thread, so that other requests keep streaming."""
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    def held(self) -> tuple[int, int]:
        """Return the number of conversations in memory, and the bytes of their messages."""
        pools: Iterable[SessionPool] = list(self._pools.values())
        return sum(map(len, pools)), sum(pool.bytes for pool in pools)


def _cached_price(model: str) -> float:
    """Return the price of a cached input token as a share of the full price; 0.1 if the model is unknown."""
    prices = known_prices(model)
    share = prices.cached / prices.input if prices is not None and prices.input else 0.1
    return round(min(1.0, max(0.01, share)), 3)


def _words(failure: Failed) -> str:
    """Return a failure in words: the type of its error alone, because the error's text may quote a message."""
    return f"{failure.strategy}: {type(failure.error).__name__}; {failure.policy}"
