"""One client request: sent to its upstream at most twice, and answered with the upstream's own bytes.

A second request is sent only after the upstream refused the first completely (a length error, or 400 for a changed request)
and before the client received a byte. Timeouts, broken connections, 429 and 5xx are never retried.

A request goes through three files: this one reads it, plans what to send, sends it and reports it; `conversations` finds its
session and compacts; `upstream` holds the connections to the providers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread
import attrs

from ..run import unawaited
from ..tokens import LengthError, Usage
from .bodies import READABLE, ModelRequest, TooLarge, Unreadable, decoded, read_request
from .client import AnswerStopped, ClientConnection, ClientGone, SlowBody
from .conversations import ConversationRequest, ConversationTurn, GatewayConversations
from .failures import REFUSALS, UpstreamRefusal, length_error, write_case
from .headers import as_mapping, asks_for_long_context, has_signature, request_headers, session_of, tenant_of
from .recall import offered
from .recording import SessionRecorder
from .routes import ModelRoute, looks_like_conversation, provider_of, route_of
from .settings import GatewaySettings
from .status import REPORTED_USAGE, GatewayStatus
from .upstream import NoAnswer, UnsentBody, Upstreams, WholeAnswer, read_whole
from .usage_reading import UsageReader
from .windows import UnknownWindow
from .workers import HANDED_OVER, Workers, binding

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from starlette.types import Receive, Scope, Send

_OTHER: Final = "other"
_UNKNOWN_PATH: Final = "unknown path"
_MOST_RECALLS: Final = 4
_LARGEST_ANSWER: Final = 16_777_216
_UNCOUNTED: Final = 2_000  # tokens: the gateway also counts tools and instructions
_TOO_MANY_BYTES: Final = 413
_BYTES_OF_WINDOW: Final = 8
"""The bytes of a refused request for each token of the window that is assumed if neither a table nor the refusal names it: half
of what the request has at four bytes a token."""
_T = TypeVar("_T")
_logger: Final = logging.getLogger("compaction.gateway")


@attrs.frozen(kw_only=True, eq=False)
class GatewayServices:
    """The parts of a gateway that every request uses.

    Args:
        settings: The gateway's settings.
        upstreams: Sends requests.
        conversations: The conversations.
        planner: Decides what is sent.
        status: Counts what happens.
        recorder: Records sessions, if that is enabled.
        workers: The processes that serve the same address, if there are several.
    """

    settings: GatewaySettings
    upstreams: Upstreams
    conversations: GatewayConversations
    planner: Planner
    status: GatewayStatus
    recorder: SessionRecorder | None = None
    workers: Workers | None = None


class ProxyEndpoint:
    """The ASGI application that forwards requests.

    Args:
        services: The parts of the gateway.
    """

    def __init__(self, services: GatewayServices) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client, status = ClientConnection(scope, receive, send), self._services.status
        route = route_of(client.method, client.path)
        served: _Passing | _ModelExchange = _Passing(self._services, client)
        if route is not None:
            served = _ModelExchange(self._services, client, route, is_owned=HANDED_OVER in scope)
        error = ""
        try:
            await served.run()
        except NoAnswer as failure:
            error = failure.why
            status.failed(f"upstream: {failure.why}")
            await client.refuse(failure.status, failure.says)
        except AnswerStopped as stopped:
            error = str(stopped)
            status.failed(f"upstream stopped: {stopped}")
            raise
        except ClientGone:
            error = "ClientGone"
        except SlowBody:
            error = "SlowBody"
            await client.refuse(408, "the body of the request came too slowly")
        finally:
            served.report(error)


async def _while_connected(client: ClientConnection, work: Callable[[], Awaitable[None]]) -> None:
    """Do work that ends if the client leaves."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_if_gone, client, group.cancel_scope)
        try:
            await work()
        except (NoAnswer, AnswerStopped, UnsentBody) as error:  # raised below, outside of the group
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _cancel_if_gone(client: ClientConnection, scope: anyio.CancelScope) -> None:
    await client.gone()
    scope.cancel()


@attrs.frozen
class _Passing:
    """One request without a conversation, which is forwarded as it came."""

    services: GatewayServices
    client: ClientConnection

    async def run(self) -> None:
        """Serve the request."""
        if not self._has_body:
            _ = [piece async for piece in self.client.pieces()]
        await _while_connected(self.client, self._answer)

    @property
    def _has_body(self) -> bool:
        return "content-length" in self.client.headers or "transfer-encoding" in self.client.headers

    async def _answer(self) -> None:
        client = self.client
        headers = request_headers(client.raw_headers, readable="", rewritten=False)
        if length := client.headers.get("content-length"):
            headers.append((b"content-length", length.encode("latin-1")))
        provider, target = provider_of(client.path, client.headers), (client.raw_path, client.query)
        body = client.pieces() if self._has_body else None
        await client.stream(await self.services.upstreams.send(client.method, provider, target, headers, body))
        await client.end()

    def report(self, error: str) -> None:
        """Count and log the request."""
        why = _UNKNOWN_PATH if looks_like_conversation(self.client.method, self.client.path) else ""
        if why:
            self.services.status.passed(why)
        status = self.client.status or 499
        self.services.status.answered(_OTHER, status)
        log_request(route=_OTHER, method=self.client.method, status=status, error=error, why=why)


class _ModelExchange:
    """One request to a model. Holds state: its plan, and figures for the log."""

    def __init__(self, services: GatewayServices, client: ClientConnection, route: ModelRoute, *, is_owned: bool) -> None:
        self._services = services
        self._workers = None if is_owned else services.workers
        self._is_elsewhere = False
        self._client = client
        self._route = route
        self._upstream = services.upstreams.name(route.provider)
        self._plan: RequestPlan | None = None
        self._began = anyio.current_time()
        self._added = 0.0
        self._retried = ""
        self._usage: Usage | None = None

    async def run(self) -> None:
        """Serve the request."""
        settings = self._services.settings
        body = await self._client.body(settings.max_body, settings.body_seconds)
        if body is None:
            most = f"{settings.max_body:,} bytes"
            await self._client.refuse(413, f"the body is larger than {most}; start the gateway with a larger --max-body")
            return
        await _while_connected(self._client, partial(self._served, body))

    async def _served(self, body: bytes) -> None:
        began = anyio.current_time()
        read = await self._services.planner.read(self._route, body, self._client.headers, self._upstream, self._client.query)
        if not await self._hand_over(read):
            await self._answer(read, began)

    async def _hand_over(self, read: RequestPlan) -> bool:
        """Let the worker serve the request to which its conversation belongs; return whether it did."""
        workers, client = self._workers, self._client
        if workers is None or read.request is None:
            return False
        conversation = binding(read.request)
        owner = workers.owner(conversation)
        self._is_elsewhere = owner != workers.number  # also if the client leaves now
        if self._is_elsewhere and not await client.hand_over(workers, owner, read.original):
            self._is_elsewhere = False
            workers.take_over(conversation)
        return self._is_elsewhere

    async def _answer(self, read: RequestPlan, began: float) -> None:
        """Send the plan and stream the answer."""
        self._plan = await self._services.planner.plan(read)
        self._added = anyio.current_time() - began
        response = await self._send(self._plan)
        whole = await read_whole(response) if response.status in REFUSALS and self._plan.request is not None else None
        again = None if whole is None else await self._second(self._plan, whole)
        if whole is not None and again is None:
            await self._client.send_whole(whole)
            return
        recalled = await self._recalled(self._plan, response if again is None else again)
        if isinstance(recalled, WholeAnswer):
            await self._give(recalled)
        else:
            await self._stream(recalled)

    async def _send(self, plan: RequestPlan) -> ClientResponse:
        client = self._client
        headers = request_headers(client.raw_headers, readable=READABLE, rewritten=plan.is_changed)
        target = (client.raw_path, client.query)
        return await self._services.upstreams.send(client.method, self._route.provider, target, headers, plan.body)

    async def _stream(self, response: ClientResponse) -> None:
        kind, encoding = response.headers.get("content-type", ""), response.headers.get("content-encoding", "")
        reader = UsageReader(kind, encoding)
        try:
            await self._client.stream(response, reader.feed)
        finally:
            self._usage = reader.read() if response.status < 300 else None
            with anyio.CancelScope(shield=True):
                await self._record()
        await self._client.end()

    # ---------------------------------------------------------------- recall

    async def _recalled(self, plan: RequestPlan, response: ClientResponse) -> WholeAnswer | ClientResponse:
        """Answer the model's calls of the tools of recall, and return the answer that is meant for the client."""
        services, body = self._services, plan.body
        answers = services.conversations.recall_answers(plan.turn)
        if answers is None or plan.without_recall is None or response.status >= 300:
            return response
        for _ in range(_MOST_RECALLS):
            whole = await read_whole(response, _LARGEST_ANSWER)
            if whole is None:
                return response
            headers = as_mapping(whole.headers)
            kind, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
            try:
                text = decoded(whole.body, encoding, _LARGEST_ANSWER)
                following = await services.conversations.in_thread(partial(answers.continued, body, text, kind))
            except Exception as error:
                services.status.failed(f"recall: {type(error).__name__}")
                return whole
            if following is None:
                return whole
            services.status.retried("recall")
            body = following
            response = await self._send(attrs.evolve(plan, body=body))
            if response.status >= 300:
                break
        response.close()
        return await self._send(attrs.evolve(plan, body=plan.without_recall))

    async def _give(self, whole: WholeAnswer) -> None:
        """Send a complete answer, and read its usage."""
        headers = as_mapping(whole.headers)
        reader = UsageReader(headers.get("content-type", ""), headers.get("content-encoding", ""))
        reader.feed(whole.body)
        self._usage = reader.read()
        await self._client.send_whole(whole)
        await self._record()

    # ---------------------------------------------------------------- the second request

    async def _second(self, plan: RequestPlan, refused: WholeAnswer) -> ClientResponse | None:
        """Send a second request if the contents of the first were refused.

        Returns:
            The answer to it; ``None`` if no second request was sent or answered.
        """
        too_long = length_error(refused)
        if too_long is not None:
            return await self._shorter(plan, too_long)
        if refused.status != 400 or not plan.is_changed:
            return None
        self._retried = "refused"
        self._services.status.retried("refused")
        original = attrs.evolve(plan, body=plan.original)
        response = await self._try(original)
        if response is not None and response.status < 300:
            self._plan = attrs.evolve(original, why="refused as it was compacted")
            await self._our_fault(plan, refused)
        return response

    async def _shorter(self, plan: RequestPlan, error: UpstreamRefusal) -> ClientResponse | None:
        shorter = await self._services.planner.shorter(plan, error)
        if shorter is None:
            return None
        self._retried, self._plan = "length", shorter
        self._services.status.retried("length")
        return await self._try(shorter)

    async def _try(self, plan: RequestPlan) -> ClientResponse | None:
        """Send a plan; return ``None`` if the upstream gives no answer, so that the client gets the first one."""
        try:
            return await self._send(plan)
        except NoAnswer as failure:
            self._services.status.failed(f"upstream: {failure.why}")
            return None

    async def _our_fault(self, plan: RequestPlan, refused: WholeAnswer) -> None:
        """Stop compacting a conversation whose compacted request alone was refused, and write the case."""
        self._services.status.failed("a compacted request was refused")
        if plan.turn is None or self._route.counts:
            return
        self._services.planner.leave_alone(plan.turn.session.id)
        folder = self._services.settings.cases
        if folder is None:
            return
        name = f"{self._route.name}-{int(self._services.settings.clock() * 1000)}"
        given, sent = plan.turn.request.messages, plan.turn.messages
        try:
            await anyio.to_thread.run_sync(partial(write_case, folder, name, given=given, sent=sent, answer=refused))
        except Exception as error:
            self._services.status.failed(f"writing a case: {type(error).__name__}")

    # ---------------------------------------------------------------- afterwards

    async def _record(self) -> None:
        """Give the reported usage to the session, and record the conversation if that is enabled; count failures."""
        plan, services = self._plan, self._services
        if plan is None or plan.turn is None or self._route.counts or not 200 <= self._client.status < 300:
            return
        try:
            if self._usage is not None and not plan.why:  # otherwise it is that of another request than the turn's
                if self._usage.is_plausible(plan.turn.tokens, beside=_UNCOUNTED):
                    await services.conversations.record_usage(plan.turn, self._usage)
                else:
                    services.status.passed("usage not believed")
            await services.conversations.used(plan.turn)
            if services.recorder is not None:
                format, messages = self._route.format, plan.turn.request.messages
                record = partial(services.recorder.record, plan.turn.session.id, format, messages)
                await anyio.to_thread.run_sync(record)
        except Exception as error:
            services.status.failed(f"recording: {type(error).__name__}")

    def report(self, error: str) -> None:
        """Count and log the request, unless another worker serves it."""
        if self._is_elsewhere:
            return
        status, plan = self._client.status or 499, self._plan
        self._services.status.answered(self._route.name, status)
        logged: dict[str, Any] = {}
        if plan is not None and plan.turn is not None:
            turn = plan.turn
            if not self._route.counts and status < 300:
                self._services.status.reported(turn, is_changed=plan.is_changed, seconds_added=self._added, usage=self._usage)
            logged = {name: getattr(turn, name) for name in ("window", "tokens", "left_out", "failures")}
            logged |= {"model": turn.request.model, "conversation": turn.session.id}
        if self._usage is not None:
            logged |= {name: getattr(self._usage, name) for name in REPORTED_USAGE}
        log_request(
            **logged,
            compacted=plan is not None and plan.is_changed,
            why=None if plan is None else plan.why,
            retried=self._retried,
            error=error,
            added_seconds=self._added,
            seconds=anyio.current_time() - self._began,
            route=self._route.name,
            status=status,
        )


# ------------------------------------------------------------------------ what to send


@attrs.frozen(kw_only=True, eq=False)
class RequestPlan:
    """The plan for one request.

    Args:
        body: The bytes to send.
        original: The client's bytes.
        asked: The parsed request; ``None`` if it could not be read, or the provider keeps its history.
        request: The same as a request of a conversation.
        turn: Its turn of the conversation; ``None`` without a conversation.
        why: The reason for sending the client's bytes, other than that they fit.
        without_recall: The bytes to send without the tools of recall, if those are offered.
    """

    body: bytes = attrs.field(repr=False)
    original: bytes = attrs.field(repr=False)
    asked: ModelRequest | None = attrs.field(default=None, repr=False)
    request: ConversationRequest | None = None
    turn: ConversationTurn | None = None
    why: str = ""
    without_recall: bytes | None = attrs.field(default=None, repr=False)

    @property
    def is_changed(self) -> bool:
        """Whether the bytes to send differ from the client's."""
        return self.body is not self.original


class Planner:
    """Makes the plans. Holds state: the conversations that are not compacted for now.

    If anything fails, the plan is to send the client's bytes.

    Args:
        settings: The gateway's settings.
        conversations: The gateway's conversations.
        status: Counts failures and reasons.
    """

    def __init__(self, settings: GatewaySettings, conversations: GatewayConversations, status: GatewayStatus) -> None:
        self._settings = settings
        self._conversations = conversations
        self._status = status
        self._alone: dict[str, None] = {}

    async def read(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes = b""
    ) -> RequestPlan:
        """Return the plan to send the client's bytes, with the parsed request if it belongs to a conversation.

        A compressed body is read in a thread. Others are parsed faster than a thread starts, for a megabyte in .4 ms.
        """
        read = partial(self._read, route, body, headers, upstream, query)
        return await self._apart(read, sync="content-encoding" not in headers)

    async def plan(self, read: RequestPlan) -> RequestPlan:
        """Return the plan of a request that was read."""
        request = read.request
        return read if request is None else await self._driven(lambda sync: self._decided(read, request, sync=sync))

    async def _driven(self, work: Callable[[bool], Coroutine[Any, Any, _T]]) -> _T:
        """Run work in a thread, because it uses the processor; in the event loop if the strategy may await a model."""
        if self._settings.awaits:
            return await work(False)
        return await self._conversations.in_thread(lambda: unawaited(work(True)))

    async def _apart(self, work: Callable[[], _T], *, sync: bool) -> _T:
        """Run a part that uses the processor in a thread; ``sync`` is within one already."""
        return work() if sync else await self._conversations.in_thread(work)

    def _read(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes = b""
    ) -> RequestPlan:
        """Return the plan to send the client's bytes, with the parsed request if it belongs to a conversation."""
        try:
            text = decoded(body, headers.get("content-encoding", ""), self._settings.max_body)
            asked = read_request(text, route.key)
            why = "signed" if has_signature(headers) else route.kept(asked.fields) or ("" if asked.messages else "no messages")
        except (Unreadable, TooLarge) as error:
            why = str(error) or "too large"
        except Exception as error:
            self._status.failed(f"reading: {type(error).__name__}")
            return RequestPlan(body=body, original=body, why=type(error).__name__)
        else:
            if not why:
                id, fields, messages = session_of(headers), asked.fields, asked.messages
                request = ConversationRequest(
                    route=route,
                    fields=fields,
                    messages=messages,
                    id=id,
                    upstream=upstream,
                    is_long=asks_for_long_context(headers),
                    tenant=tenant_of(headers, query),
                )
                return RequestPlan(body=body, original=body, asked=asked, request=request)
        self._status.passed(why)
        return RequestPlan(body=body, original=body, why=why)

    async def _decided(self, plan: RequestPlan, request: ConversationRequest, *, sync: bool) -> RequestPlan:
        try:
            if request.route.counts:
                turn = await self._apart(partial(self._conversations.trial, request), sync=sync)
            else:
                turn = await self._conversations.turn(request, sync=sync)
            return await self._apart(partial(self._with, plan, turn), sync=sync)
        except Exception as error:
            return self._failed(plan, error)

    def _with(self, plan: RequestPlan, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn."""
        if turn.result is None:  # the strategy raised; the failures in a result are events, which are counted as such
            for failure in turn.failures:
                self._status.failed(failure)
        if self._settings.shadow or turn.session.id in self._alone:
            why = "shadow" if self._settings.shadow else "left alone"
            self._status.passed(why)
            return attrs.evolve(plan, turn=turn, why=why)
        return self._offering(attrs.evolve(plan, turn=turn, body=_body(plan, turn)))

    def _failed(self, plan: RequestPlan, error: Exception) -> RequestPlan:
        """Return the plan to send the client's bytes, because the turn failed."""
        if isinstance(error, UnknownWindow):
            self._status.passed("unknown window")
            return attrs.evolve(plan, why="unknown window")
        name = "" if plan.request is None else f"{plan.request.route.name}: "
        self._status.failed(f"{name}{type(error).__name__}")
        return attrs.evolve(plan, why=type(error).__name__)

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent.

        Args:
            plan: The plan of the request that was too long.
            refused: The provider's error.
        """
        if plan.request is None or plan.request.route.counts or self._settings.shadow:
            return None
        try:
            request = plan.request
            await self._conversations.in_thread(partial(self._learn, plan, request, refused))
            turn = await self._driven(lambda sync: self._conversations.turn(request, refused=refused, sync=sync))
            body = await self._conversations.in_thread(partial(_body, plan, turn))
            shorter = attrs.evolve(plan, turn=turn, body=body, why="", without_recall=None)
        except Exception as error:  # nothing may be removed, the window is still unknown, or the gateway has a fault
            self._status.failed(f"compacting harder: {type(error).__name__}")
            return None
        if self._alone.pop(turn.session.id, self) is None:
            self._status.left_alone(turn.session.id, False)
        return None if shorter.body == (plan.without_recall or plan.body) else self._offering(shorter)

    def _offering(self, plan: RequestPlan) -> RequestPlan:
        return plan if self._conversations.recalled is None else _with_recall(plan)

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request."""
        found = LengthError.read(refused) or LengthError()
        if found.window is None and plan.turn is None:  # no table has the model's window
            found = LengthError(window=max(1, len(plan.original) // _BYTES_OF_WINDOW))
        if found.window is None and refused.status_code == _TOO_MANY_BYTES:
            return  # a limit of a proxy on the way, perhaps; only this conversation is shortened
        self._conversations.learn_window(plan.turn, request, found, 0 if plan.turn is None else plan.turn.tokens)

    def leave_alone(self, session: str) -> None:
        """Stop compacting a conversation until its next length error."""
        while len(self._alone) >= self._settings.conversations:
            del self._alone[next(iter(self._alone))]
        self._alone[session] = None
        self._status.left_alone(session, True)


def _body(plan: RequestPlan, turn: ConversationTurn) -> bytes:
    """Return the bytes to send for a turn; the client's if nothing changes."""
    assert plan.asked is not None
    return plan.asked.with_messages(turn.messages) if turn.is_changed else plan.original


def _with_recall(plan: RequestPlan) -> RequestPlan:
    """Return the plan with the tools of recall in its body, if they can be offered."""
    if plan.asked is None or plan.request is None or plan.request.route.counts or not plan.is_changed:
        return plan
    body = offered(plan.body, plan.asked, plan.request.route.name)
    return plan if body is plan.body else attrs.evolve(plan, body=body, without_recall=plan.body)


# ------------------------------------------------------------------------ the log


def log_request(**fields: Any) -> None:
    """Log a request. Fields that are ``None`` or empty are omitted, and seconds are rounded to a tenth of a millisecond."""
    if _logger.isEnabledFor(logging.INFO):
        shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}
        _logger.info(json.dumps({name: value for name, value in shown.items() if value not in (None, "", (), 0.0)}))
