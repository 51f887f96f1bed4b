"""Sends a client's request to its upstream, at most twice (recalls not counted), and returns the upstream's bytes unchanged.

A second request is sent only after the upstream refused the first completely (a length error, or 400 for a changed request)
and before the client received a byte. Timeouts, broken connections, 429 and 5xx are never retried.

Three files serve a request: this one, `conversations` and `upstream`::

    ProxyEndpoint                   finds the route by the path, and answers every failure
    ClientConnection.read_body
    GatewayConversations.read       conversations   decompresses and parses the body; finds the session id and the keys
    Workers.hand_over               workers         only with several: another one may serve the conversation
    GatewayConversations.plan       conversations   finds the session, compacts, decides which bytes are sent
    Upstreams.send                  upstream        sends the bytes, with the client's headers
    ClientConnection.stream                         sends the answer to the client, while its usage is read
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

from ..tokens import LengthRefusal, Usage
from .bodies import READABLE, UsageReader
from .cases import write_case
from .conversations import ConversationRequest, GatewayConversations, RequestPlan, unchanged
from .deletion import ConversationDeletion
from .headers import answer_headers, as_mapping, request_headers, send_error
from .recall import next_request, recall_calls
from .recording import SessionRecorder
from .routes import ModelRoute, looks_like_conversation, normalized, provider_of, route_of
from .settings import GatewaySettings
from .status import REPORTED_USAGE, GatewayStatus
from .upstream import REFUSALS, AnswerStopped, NoAnswer, UnsentBody, UpstreamAnswer, UpstreamRefusal, Upstreams
from .workers import HANDED_OVER, Workers

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

_OTHER: Final = "other"
_IDLE_SECONDS: Final = 60.0
_MOST_RECALLS: Final = 4
_LARGEST_ANSWER: Final = 16_777_216
_UNCOUNTED: Final = 2_000  # tokens: the gateway also counts tools and instructions
_logger: Final = logging.getLogger("compaction.gateway")


class ClientGone(UnsentBody):
    """The client closed its connection before the end of its body."""


class SlowBody(UnsentBody):
    """The client sent its body too slowly."""


class ClientConnection:
    """One request of a client, with its path normalized: decoded and raw. Holds state: the status that was sent, 0 before."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = normalized(scope["path"])
        self.raw_path = normalized((scope.get("raw_path") or self.path.encode()).decode("latin-1")).encode("latin-1")
        self.query: bytes = scope.get("query_string", b"")
        self.raw_headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.headers = as_mapping(self.raw_headers)
        self.status = 0
        self._was_read = anyio.Event()

    async def read_body(self, limit: int, seconds: float) -> bytes | None:
        """Read the body and return it; ``None`` if it is larger than the limit. It is a `SlowBody` after these seconds."""
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return None
        body, more = bytearray(), True
        with anyio.move_on_after(seconds):
            while more:
                piece, more = await self._piece()
                body += piece
                if len(body) > limit:
                    return None
            return bytes(body)
        raise SlowBody

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces as they arrive. It is a `SlowBody` if nothing comes for a minute."""
        more = True
        while more:
            try:
                with anyio.fail_after(_IDLE_SECONDS):
                    piece, more = await self._piece()
            except TimeoutError as error:
                raise SlowBody from error
            if piece:
                yield piece

    async def _piece(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether more follows."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more: bool = message.get("more_body", False)
        if not more:
            self._was_read.set()
        return message.get("body", b""), more

    async def while_connected(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do work that ends if the client disconnects after its body was read."""
        failure: Exception | None = None

        async def cancel_if_gone() -> None:
            await self._was_read.wait()
            while (await self._receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(cancel_if_gone)
            try:
                await work()
            except (NoAnswer, AnswerStopped, UnsentBody) as error:  # raised below, outside of the group
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def send(self, message: Message) -> None:
        """Send a part of an answer."""
        self.status = message.get("status", self.status)
        await self._send(message)

    async def stream(self, answer: UpstreamAnswer, usage: UsageReader | None = None) -> None:
        """Send an upstream's answer chunk by chunk, then close it; `end` ends it for the client. ``usage`` reads the chunks."""
        try:
            await self.send({"type": "http.response.start", "status": answer.status, "headers": answer_headers(answer.headers)})
            async for chunk in answer.chunks():
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
                if usage is not None:
                    usage.feed(chunk)
        except NoAnswer as stopped:
            raise AnswerStopped(stopped.why) from stopped
        finally:
            answer.close()

    async def end(self) -> None:
        """End an answer that was sent with `stream`."""
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


@attrs.frozen(eq=False)
class ProxyEndpoint:
    """The ASGI application that forwards requests, made of the parts that every request uses."""

    settings: GatewaySettings
    upstreams: Upstreams
    conversations: GatewayConversations
    deletion: ConversationDeletion
    status: GatewayStatus
    recorder: SessionRecorder | None
    workers: Workers | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client, status = ClientConnection(scope, receive, send), self.status
        served: _Passing | _ModelExchange = _Passing(self, client)
        if (route := route_of(client.method, client.path)) is not None:
            served = _ModelExchange(self, client, route, None if HANDED_OVER in scope else self.workers)
        error = ""
        try:
            await served.run()
        except NoAnswer as failure:
            error = failure.why
            status.failed(f"upstream: {failure.why}")
            await send_error(client.send, failure.status, failure.says)
        except AnswerStopped as stopped:
            error = str(stopped)
            status.failed(f"upstream stopped: {stopped}")
            raise
        except ClientGone:
            error = "ClientGone"
        except SlowBody:
            error = "SlowBody"
            await send_error(client.send, 408, "the body of the request came too slowly")
        finally:
            served.report(error)


@attrs.frozen
class _Passing:
    """One request without a conversation, which is forwarded as it came."""

    gateway: ProxyEndpoint
    client: ClientConnection

    async def run(self) -> None:
        """Serve the request."""
        has_body = not {"content-length", "transfer-encoding"}.isdisjoint(self.client.headers)
        if not has_body:  # its end is read here, because `while_connected` waits for it
            _ = [piece async for piece in self.client.pieces()]
        await self.client.while_connected(partial(self._answer, self.client.pieces() if has_body else None))

    async def _answer(self, body: AsyncIterator[bytes] | None) -> None:
        client = self.client
        headers = request_headers(client.raw_headers, readable="", rewritten=False)
        if length := client.headers.get("content-length"):
            headers.append((b"content-length", length.encode("latin-1")))
        provider, target = provider_of(client.path, client.headers), (client.raw_path, client.query)
        await client.stream(await self.gateway.upstreams.send(client.method, provider, target, headers, body))
        await client.end()

    def report(self, error: str) -> None:
        """Count and log the request."""
        client, counts = self.client, self.gateway.status
        why, status = "", client.status or 499
        if looks_like_conversation(client.method, client.path):
            counts.passed(why := "unknown path")
        counts.answered(_OTHER, status)
        log_request(route=_OTHER, method=client.method, status=status, error=error, why=why)


@attrs.define(eq=False)
class _ModelExchange:
    """One request to a model. Holds state: its plan, and figures for the log."""

    gateway: ProxyEndpoint
    client: ClientConnection
    route: ModelRoute
    workers: Workers | None  # one of which may have to serve it instead; none if this one serves it
    _is_elsewhere: bool = attrs.field(default=False, init=False)
    _plan: RequestPlan | None = attrs.field(default=None, init=False)  # of the request that was answered, or is under way
    _began: float = attrs.field(factory=anyio.current_time, init=False)
    _added_seconds: float = attrs.field(default=0.0, init=False)
    _retried: str = attrs.field(default="", init=False)
    _has_recalled: bool = attrs.field(default=False, init=False)  # so that another request than the plan's was answered
    _usage: Usage | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        """Serve the request."""
        client, most = self.client, self.gateway.settings.max_body
        body = await client.read_body(most, self.gateway.settings.body_seconds)
        if body is None:
            why = f"the body is larger than {most:,} bytes; start the gateway with a larger --max-body"
            await send_error(client.send, 413, why)
        else:
            await client.while_connected(partial(self._serve, body))

    async def _serve(self, body: bytes) -> None:
        began, client, conversations = anyio.current_time(), self.client, self.gateway.conversations
        upstream = self.gateway.upstreams.address(self.route.provider)
        read = await conversations.read(self.route, body, client.headers, client.query, upstream)
        if isinstance(read, RequestPlan):
            self._plan = plan = read
        elif await self._hand_over(read):
            return
        else:
            self._plan = plan = await conversations.plan(read)
        self._count(plan)
        self._added_seconds = anyio.current_time() - began
        answer = await self._send(plan)
        if plan.request is not None and answer.status in REFUSALS and await answer.read():
            answer = await self._after_refusal(plan, answer)
        await self._stream(await self._recalled(self._plan, answer))

    async def _hand_over(self, request: ConversationRequest) -> bool:
        """Let the worker serve the request to which its conversation belongs; return whether it did."""
        workers, client = self.workers, self.client
        if workers is None:
            return False
        conversation = request.beginning
        owner = workers.owner(conversation)
        self._is_elsewhere = owner != workers.number  # also if the client leaves now
        try:
            if self._is_elsewhere and await workers.hand_over(owner, client.scope, request.original, client.send) is None:
                self._is_elsewhere = False
                workers.take_over(conversation)
        except (NoAnswer, AnswerStopped):
            self._is_elsewhere = False  # that worker has ended, so this one logs the request
            raise
        return self._is_elsewhere

    def _count(self, plan: RequestPlan) -> None:
        """Count why the client's bytes are sent, and the failures of a strategy that raised; others are counted as events."""
        status, turn = self.gateway.status, plan.turn
        if plan.fault:
            status.failed(plan.fault)
        elif plan.why:
            status.passed(plan.why)
        if turn is not None and turn.fault:
            status.failed(turn.fault)

    async def _send(self, plan: RequestPlan) -> UpstreamAnswer:
        client = self.client
        headers = request_headers(client.raw_headers, readable=READABLE, rewritten=plan.is_changed)
        target = (client.raw_path, client.query)
        return await self.gateway.upstreams.send(client.method, self.route.provider, target, headers, plan.body)

    async def _stream(self, answer: UpstreamAnswer) -> None:
        """Send an answer to the client, read its usage, and record the conversation."""
        usage = UsageReader(answer.header("content-type"), answer.header("content-encoding"))
        try:
            await self.client.stream(answer, usage)
        finally:
            self._usage = usage.read() if answer.status < 300 else None
            with anyio.CancelScope(shield=True):
                await self._record()
        await self.client.end()

    # ---------------------------------------------------------------- recall

    async def _recalled(self, plan: RequestPlan, answer: UpstreamAnswer) -> UpstreamAnswer:
        """Answer the model's calls of the tools of recall, and return the answer that is meant for the client.

        The last results are sent without the tools, so that the model answers with what it has. If it calls one nevertheless,
        and after a failure or a refusal, the request is sent as if there had been no tools. So the agent gets a call of one
        only in an answer that is too large to be read before it is sent.
        """
        conversations, turn, body = self.gateway.conversations, plan.turn, plan.body
        store = conversations.recalled
        if store is None or turn is None or plan.bare is body or answer.status >= 300:
            return answer
        request = partial(next_request, self.route.api, store=store, session=turn.session.id)
        try:
            for number in range(1, _MOST_RECALLS + 2):
                if not await answer.read(_LARGEST_ANSWER):
                    return answer
                text, kind = answer.decoded(_LARGEST_ANSWER), answer.header("content-type")
                said = await conversations.in_thread(partial(recall_calls, self.route.api, text, kind))
                if not said:
                    return answer
                if number > _MOST_RECALLS:
                    break
                bare = plan.bare if number == _MOST_RECALLS else None
                body = await conversations.in_thread(partial(request, body, said, bare=bare))
                self.gateway.status.retried("recall")
                answer = await self._instead(answer, plan, body)
                if answer.status >= 300:
                    if not await _is_refusal(answer):
                        return answer
                    break
        except NoAnswer:
            raise
        except Exception as error:
            self.gateway.status.failed(f"recall: {type(error).__name__}")
        return await self._instead(answer, plan, plan.bare)

    async def _instead(self, answer: UpstreamAnswer, plan: RequestPlan, body: bytes) -> UpstreamAnswer:
        self._has_recalled = True
        answer.close()
        return await self._send(attrs.evolve(plan, body=body))

    # ---------------------------------------------------------------- the second request

    async def _after_refusal(self, plan: RequestPlan, refused: UpstreamAnswer) -> UpstreamAnswer:
        """Send a second request if the contents of the first were refused; return the answer for the client.

        A shorter request is the plan as soon as it has an answer. The client's own messages are only if they are accepted: if
        they are refused like the compacted ones, compaction is not the reason.
        """
        status, refusal = self.gateway.status, refused.refusal()
        is_too_long, second = LengthRefusal.read(refusal) is not None, None
        if is_too_long:
            with status.counting_failures("compacting further"):
                second = await self.gateway.conversations.shorter(plan, refusal)
        elif plan.request is not None and plan.is_changed and refusal.status_code == 400:
            second = unchanged(plan.request, "refused as it was compacted", plan.turn)
        if second is None:
            return refused
        self._retried = "length" if is_too_long else "refused"
        status.retried(self._retried)
        try:
            answer = await self._send(second)
        except NoAnswer as failure:
            status.failed(f"upstream: {failure.why}")
            return refused
        refused.close()
        if is_too_long or answer.status < 300:
            self._plan = second
        if not is_too_long and answer.status < 300:
            await self._note_bad_compaction(plan, refusal)
        return answer

    async def _note_bad_compaction(self, plan: RequestPlan, refusal: UpstreamRefusal) -> None:
        """Stop compacting a conversation whose request was refused only in its compacted form, and write the case."""
        gateway, turn, folder = self.gateway, plan.turn, self.gateway.settings.cases
        gateway.status.failed("a compacted request was refused")
        if turn is None or self.route.counts:
            return
        gateway.conversations.leave_alone(turn.session.id)
        if folder is None:
            return
        name = f"{self.route.name}-{int(gateway.settings.clock() * 1000)}"
        parsed = turn.request.parsed
        beside = {name: value for name, value in parsed.fields.items() if name not in ("model", parsed.key)}
        texts = {"given": parsed.messages, "sent": turn.messages, "beside": beside}
        with gateway.status.counting_failures("writing a case"):
            await gateway.conversations.in_thread(partial(write_case, folder, name, **texts, refusal=refusal))

    # ---------------------------------------------------------------- afterwards

    async def _record(self) -> None:
        """Give the reported usage to the session, and record the conversation if that is enabled; count failures."""
        plan, gateway = self._plan, self.gateway
        if plan is None or plan.turn is None or self.route.counts or not 200 <= self.client.status < 300:
            return
        with gateway.status.counting_failures("recording"):
            is_own = not plan.why and not self._has_recalled  # otherwise it is that of another request than the turn's
            if self._usage is not None and is_own:
                if self._usage.is_plausible(plan.turn.tokens, beside=_UNCOUNTED):
                    await gateway.conversations.record_usage(plan.turn, self._usage)
                else:
                    gateway.status.passed("usage not believed")
            await gateway.deletion.note_use(plan.turn)
            if gateway.recorder is not None:
                format, messages = self.route.format, plan.turn.request.parsed.messages
                record = partial(gateway.recorder.record, plan.turn.session.id, format, messages)
                await gateway.conversations.in_thread(record)

    def report(self, error: str) -> None:
        """Count and log the request, unless another worker serves it."""
        if self._is_elsewhere:
            return
        status, plan, counts = self.client.status or 499, self._plan, self.gateway.status
        counts.answered(self.route.name, status)
        logged: dict[str, Any] = {}
        if plan is not None and plan.turn is not None:
            turn = plan.turn
            if not self.route.counts and status < 300:
                counts.note_request(turn, is_changed=plan.is_changed, seconds=self._added_seconds, usage=self._usage)
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
            added_seconds=self._added_seconds,
            seconds=anyio.current_time() - self._began,
            route=self.route.name,
            status=status,
        )


async def _is_refusal(answer: UpstreamAnswer) -> bool:
    """Whether an upstream refused a request for its contents: not if it is busy or has a fault, except for a length error."""
    if answer.status in REFUSALS and await answer.read() and LengthRefusal.read(answer.refusal()) is not None:
        return True
    return answer.status < 500 and answer.status != 429


def log_request(**fields: Any) -> None:
    """Log a request. Fields that are ``None`` or empty are omitted, and seconds are rounded to a tenth of a millisecond."""
    if _logger.isEnabledFor(logging.INFO):
        shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}
        _logger.info(json.dumps({name: value for name, value in shown.items() if value not in (None, "", (), 0.0)}))
