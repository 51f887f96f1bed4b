"""From a client's bytes to those that are sent: `read` parses a request, and `plan` finds its session and compacts if due.

A request belongs to the session whose messages it continues. The session id that an agent sends narrows the search. Another
key, upstream, model or set of tools is another conversation, so users, sub-agents and requests for a title never mix.

Whatever fails, the plan is to send the client's bytes, with the reason in ``why``.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.to_thread
import attrs

from ..errors import InputError
from ..formats import for_comparison, keep_breakpoints, tool_names
from ..index import as_given
from ..session import BackgroundTasks, CompactionSession, OnEvent, SessionPool, unawaited_calls
from ..stores import SessionStore, SQLiteStore
from ..strategies import Lossless
from ..tokens import LengthRefusal, Usage, counter, is_quoted
from ..triggers import tokens_exceed
from .bodies import ModelRequest, Unreadable, decoded, read_request
from .economy import never_dearer
from .headers import session_of, tenant_of
from .recall import RECALL_FUNCTIONS, may_offer, offered
from .routes import ModelRoute
from .settings import GatewaySettings
from .upstream import UpstreamRefusal
from .windows import ModelWindows, ServedModel, UnknownWindow, known_prices

_AHEAD: Final = 0.8  # of the window: past it a model starts to write its summary in the background
_MOST_POOLS: Final = 64
_MOST_THREADS: Final = 8
_MOST_FORGOTTEN: Final = 1_000  # whose requests may still be running
_MOST_FIRST: Final = 4  # messages by which a conversation without a session id is recognized
_BYTES_OF_WINDOW: Final = 8  # of a refused request, for each token of the assumed window: half of what the request has
_T = TypeVar("_T")

LOCK_SECONDS: Final = 0.5
"""The most seconds that a request waits for a file."""


@attrs.frozen(kw_only=True, eq=False)
class ConversationRequest:
    """One request of a conversation: what its body, its headers and its address say."""

    route: ModelRoute
    original: bytes  # the client's bytes
    parsed: ModelRequest
    id: str | None  # the session id that the agent sends
    upstream: str  # its address
    is_long: bool = False  # whether a header asks for a window of a million tokens
    tenant: str = ""  # a digest of the keys that it is sent with

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

    @property
    def beginning(self) -> bytes:
        """The bytes that are the same in all requests of the conversation: the agent's session id, or its first messages.

        Only the messages before the first answer count, without instructions: some agents write the time into these. Empty for
        messages that cannot be read.
        """
        if self.id is not None:
            return self.id.encode()
        format, first = self.route.format, list[Any]()
        try:
            for raw in self.parsed.messages:
                message = format.read(raw)
                if message.role == "assistant" or len(first) == _MOST_FIRST:
                    break
                if not message.is_system:
                    first.append(raw)
            return json.dumps(for_comparison(first, format), sort_keys=True).encode()
        except Exception:  # such a request is passed on as it came
            return b""


@attrs.frozen(kw_only=True, eq=False)
class ConversationTurn:
    """The messages to send for one request."""

    request: ConversationRequest
    session: CompactionSession
    window: int  # in tokens
    messages: list[Any] = attrs.field(factory=list[Any])  # to send: the request's own objects, and what compaction wrote
    view: list[Any] = attrs.field(factory=list[Any])  # the same messages as the session returned them
    tokens: int = 0  # of the request to send, by our count and the provider's reports
    left_out: int = 0  # tokens of the conversation that are not sent
    failures: tuple[str, ...] = ()  # in words, without any text of the conversation
    fault: str = ""  # the failure, if the strategy raised an exception; the view is then as it was

    @property
    def is_changed(self) -> bool:
        """Whether the messages to send differ from those of the client's request."""
        return list(map(id, self.messages)) != list(map(id, self.request.parsed.messages))


@attrs.frozen(kw_only=True, eq=False)
class RequestPlan:
    """The bytes to send for a request."""

    body: bytes
    request: ConversationRequest | None = None  # none if it could not be read, or the provider keeps its history
    turn: ConversationTurn | None = None  # none if it was not compacted
    why: str = ""  # the reason for sending the client's bytes, other than that they fit
    fault: str = ""  # the failure of the gateway that is the reason
    bare: bytes = attrs.field(default=attrs.Factory(lambda self: self.body, takes_self=True))  # without the tools of recall

    @property
    def is_changed(self) -> bool:
        """Whether the bytes to send differ from the client's."""
        return self.request is not None and self.body is not self.request.original


def unchanged(request: ConversationRequest, why: str, turn: ConversationTurn | None = None) -> RequestPlan:
    """Return the plan to send the client's bytes."""
    return RequestPlan(body=request.original, request=request, why=why, turn=turn)


class ConversationInUse(Exception):
    """A conversation cannot be deleted while it is compacted."""


class GatewayConversations:
    """The conversations of a gateway. Holds state: a pool of sessions for each format and window, and which are left alone.

    The function ``on_event`` receives the events of all sessions.
    """

    def __init__(self, settings: GatewaySettings, on_event: OnEvent | None) -> None:
        self._settings = settings
        self._on_event = on_event
        self._counter = counter(settings.counter)
        self._pools: OrderedDict[tuple[str, int, float, int], SessionPool] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()
        self._tasks = BackgroundTasks()
        self._threads: anyio.CapacityLimiter  # made in the event loop that uses it
        self.forgotten: dict[str, None] = {}  # the conversations that `forget` removed, and that sent no request since
        self.left_alone: dict[str, None] = {}  # the conversations that are not compacted for now
        # of decisions; the windows have another file, because what is in this one is deleted with its conversation
        self.store = None if settings.store is None else SessionStore(settings.store, timeout_seconds=LOCK_SECONDS)
        learned = None if settings.store is None else SessionStore(f"{settings.store}.windows", timeout_seconds=LOCK_SECONDS)
        self.windows = ModelWindows(settings, learned)
        # what left, if the model may read it
        self.recalled = None if settings.recall is None else SQLiteStore(settings.recall, timeout_seconds=LOCK_SECONDS)
        self._recall_tokens = 0 if self.recalled is None else self._counter.count_text(json.dumps(RECALL_FUNCTIONS))

    async def __aenter__(self) -> Self:
        self._threads = anyio.CapacityLimiter(_MOST_THREADS)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._tasks.__aexit__(*exception)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Run work that uses the processor or waits for a file in a thread, so that other requests keep streaming."""
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    # ---------------------------------------------------------------- step 1: read

    async def read(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], query: bytes, upstream: str
    ) -> ConversationRequest | RequestPlan:
        """Parse the client's bytes; if they are not a request that can be compacted, return the plan to send them.

        A compressed body is read in a thread. Others are parsed here: a megabyte takes 0.4 ms, less than starting a thread.
        """

        def parse() -> ModelRequest:
            text = decoded(body, headers.get("content-encoding", ""), self._settings.max_body)
            return read_request(text, route.api.key)

        try:
            parsed = await self.in_thread(parse) if "content-encoding" in headers else parse()
            if why := _no_conversation(route, parsed, headers):
                return RequestPlan(body=body, why=why)
        except Unreadable as error:
            return RequestPlan(body=body, why=str(error))
        except Exception as error:
            return RequestPlan(body=body, why=type(error).__name__, fault=f"reading: {type(error).__name__}")
        return ConversationRequest(
            route=route,
            original=body,
            parsed=parsed,
            id=session_of(headers),
            upstream=upstream,
            is_long="context-1m" in headers.get("anthropic-beta", ""),
            tenant=tenant_of(headers, query),
        )

    # ---------------------------------------------------------------- step 2: plan

    async def plan(self, request: ConversationRequest) -> RequestPlan:
        """Compact a request that was read, and return the plan to send the result."""
        try:
            return await self._compacted(request)
        except UnknownWindow:
            return unchanged(request, "unknown window")
        except Exception as error:
            name = type(error).__name__
            return attrs.evolve(unchanged(request, name), fault=f"{request.route.name}: {name}")

    async def _compacted(self, request: ConversationRequest, refused: UpstreamRefusal | None = None) -> RequestPlan:
        """Compact in a thread, because it uses the processor, or in the event loop if the strategy may await a model."""
        if self._settings.awaits and not request.route.counts:
            return self._plan_of(await self.turn(request, refused=refused))
        turn = partial(self.turn, request, refused=refused, sync=True)
        return await self.in_thread(lambda: self._plan_of(unawaited_calls(turn())))

    def _plan_of(self, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn, with the tools of recall if they can be offered."""
        request = turn.request
        if self._settings.shadow:
            return unchanged(request, "shadow", turn)
        if turn.session.id in self.left_alone:
            return unchanged(request, "left alone", turn)
        if not turn.is_changed:
            return unchanged(request, "", turn)
        bare = body = request.parsed.with_messages(turn.messages)
        if self.recalled is not None and not request.route.counts:
            body = offered(bare, request.parsed, request.route.api)
        return RequestPlan(body=body, request=request, turn=turn, bare=bare)

    async def turn(
        self, request: ConversationRequest, *, refused: BaseException | None = None, sync: bool = False
    ) -> ConversationTurn:
        """Return the messages to send for a request: compacted if that is due, or further if it was ``refused`` as too long.

        If its route only counts tokens, no model is called and no decision is saved. With ``sync``, nothing is awaited.

        Raises:
            UnknownWindow: If the model's window is unknown.
            BudgetUnsatisfiable: If it was refused, and nothing more can be removed.
            Exception: If the messages cannot be read; the caller then sends the request unchanged.
        """
        given, format = request.parsed.messages, request.route.format
        window, compared = self.windows.of(request.served), for_comparison(given, format)
        pool, overhead = self._pool(request, window), self._counter.count_text(request.beside)
        call: contextlib.AbstractAsyncContextManager[CompactionSession]
        if request.route.counts:
            call = contextlib.nullcontext(pool.trial(compared, scope=request.scope, overhead_tokens=overhead))
        else:
            call = pool.call(compared, scope=request.scope, overhead_tokens=overhead, sync=sync)
        async with call as session:
            if not request.route.counts:
                self.forgotten.pop(session.id, None)
            failures, fault = tuple[str, ...](), ""
            if refused is not None:
                view = await session.compact_refused(refused, sync=sync)
            else:
                try:
                    result = await session.compact_due(sync=sync)
                    view, failed = result.messages, result.failures
                    failures = tuple([f"{each.strategy}: {type(each.error).__name__}; {each.policy}" for each in failed])
                except Exception as error:
                    fault = f"the strategy: {type(error).__name__}"
                    view, failures = session.index.messages(), (fault,)
            index = session.index
            shown = as_given(view, index.source, compared, given) if index.edit_count else list(given)
            return ConversationTurn(
                request=request,
                session=session,
                window=window,
                messages=keep_breakpoints(shown, given, compared, format),
                view=view,
                tokens=max(0, index.tokens),
                left_out=max(0, index.total.tokens - index.included.tokens),
                failures=failures,
                fault=fault,
            )

    def _pool(self, request: ConversationRequest, window: int) -> SessionPool:
        settings = self._settings
        reserved = self._recall_tokens if may_offer(request.route.api, request.parsed.fields) else 0
        key = (request.route.format.name, window, _cached_price(request.model), reserved)
        with self._lock:
            if key not in self._pools:
                while len(self._pools) >= _MOST_POOLS:
                    self._pools.popitem(last=False)
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
            self._pools.move_to_end(key)
            return self._pools[key]

    # ---------------------------------------------------------------- after the answer

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent.

        It raises an exception if nothing may be removed, the window is still unknown, or the gateway has a fault.
        """
        request = plan.request
        if request is None or request.route.counts or self._settings.shadow:
            return None
        if plan.turn is not None:
            self.left_alone.pop(plan.turn.session.id, None)
        await self.in_thread(partial(self._learn, plan, request, refused))
        shorter = await self._compacted(request, refused)
        return None if shorter.bare == plan.bare else shorter

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request, for all clients: but not from an error that quotes this one's words."""
        if is_quoted(refused, json.dumps(request.parsed.fields, ensure_ascii=False, default=str)):
            return  # only this conversation is shortened
        found = LengthRefusal.read(refused) or LengthRefusal()
        if found.window is None and plan.turn is None:  # no table has the model's window
            found = LengthRefusal(window=max(1, len(request.original) // _BYTES_OF_WINDOW))
        if found.window is None and refused.status_code == 413:
            return  # a limit of a proxy on the way, perhaps; only this conversation is shortened
        self.learn_window(plan.turn, request, found)

    def learn_window(self, turn: ConversationTurn | None, request: ConversationRequest, error: LengthRefusal) -> None:
        """Learn the window from the length error of a turn. If it changes, the conversation begins again with its strategy."""
        self.windows.refused(request.served, error, 0 if turn is None else turn.tokens)
        if turn is not None and self.windows.of(request.served) != turn.window:
            self._pool(request, turn.window).discard(turn.session.id)

    async def record_usage(self, turn: ConversationTurn, usage: Usage) -> None:
        """Give the provider's reported usage to the session; usage beyond the window corrects that."""

        def record() -> None:
            self.windows.accepted(turn.request.served, usage.prompt_tokens)
            if turn.session.id in self.forgotten:
                return
            with contextlib.suppress(InputError):
                turn.session.record_usage(usage, view=turn.view)

        await self.in_thread(record)

    def leave_alone(self, session: str) -> None:
        """Stop compacting a conversation until its next length error."""
        while len(self.left_alone) >= self._settings.most_conversations:
            del self.left_alone[next(iter(self.left_alone))]
        self.left_alone[session] = None

    # ---------------------------------------------------------------- what is in memory

    def forget(self, name: str) -> bool:
        """Remove a conversation from memory, and return whether it was there; its running request saves nothing of it.

        Raises:
            ConversationInUse: If it is compacted right now.
        """
        pools = [pool for pool in list(self._pools.values()) if name in pool]
        if not all(pool.discard(name) for pool in pools):
            raise ConversationInUse(name)
        self.left_alone.pop(name, None)
        self.forgotten[name] = None
        while len(self.forgotten) > _MOST_FORGOTTEN:
            del self.forgotten[next(iter(self.forgotten))]
        return bool(pools)

    def held(self) -> tuple[int, int]:
        """Return the number of conversations in memory, and the bytes of their messages."""
        pools: Iterable[SessionPool] = list(self._pools.values())
        return sum(map(len, pools)), sum(pool.bytes for pool in pools)


def _no_conversation(route: ModelRoute, parsed: ModelRequest, headers: Mapping[str, str]) -> str:
    """Return the reason why a request cannot be compacted, as far as it shows; empty if it can."""
    if headers.get("authorization", "").startswith("AWS4-"):  # no other body would be accepted
        return "signed"
    fields = parsed.fields
    return route.api.kept(fields) or route.api.shortened(fields) or ("" if parsed.messages else "no messages")


def _cached_price(model: str) -> float:
    """Return the price of a cached input token as a share of the full price; 0.1 if the model is unknown."""
    prices = known_prices(model)
    share = prices.cached / prices.input if prices is not None and prices.input else 0.1
    return round(min(1.0, max(0.01, share)), 3)
