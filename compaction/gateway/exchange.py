"""Sends a client's request to its upstream, at most twice (recalls not counted), and returns the upstream's bytes unchanged.

A second request is sent only after the upstream refused the first completely (a length error, or 400 for a changed request)
and before the client received a byte. Timeouts, broken connections, 429 and 5xx are never retried.

Three files decide about a request: this one, `plan` and `conversations`. The others carry it out::

    ProxyEndpoint                 exchange        finds the route by the path, and answers every failure
    ClientConnection.read_body    client
    Planner.read                  plan            decompresses and parses the body; finds the session id and the keys
    ConversationOwners.owner      owners          only with several workers: another one may serve the conversation
    Planner.plan                  plan            decides whether the client's bytes are sent, or others
    GatewayConversations.turn     conversations   finds the session, compacts, returns the messages to send
    ModelRequest.with_messages    bodies          replaces the messages in the client's bytes
    Upstreams.send                upstream        sends the bytes, with the client's headers
    ClientConnection.stream       client          sends the answer to the client, while its usage is read
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

from ..tokens import LengthRefusal, Usage
from .bodies import READABLE
from .cases import write_case
from .client import AnswerStopped, ClientConnection, ClientGone, SlowBody
from .conversations import GatewayConversations
from .deletion import ConversationDeletion
from .headers import request_headers
from .owners import conversation_key
from .plan import Planner, ReadRequest, RequestPlan
from .recall import next_request, recall_calls
from .recording import SessionRecorder
from .routes import ModelRoute, looks_like_conversation, provider_of, route_of
from .settings import GatewaySettings
from .status import REPORTED_USAGE, GatewayStatus
from .upstream import REFUSALS, NoAnswer, UnsentBody, UpstreamAnswer, UpstreamRefusal, Upstreams
from .usage_reading import UsageReader
from .workers import HANDED_OVER, Workers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_OTHER: Final = "other"
_UNKNOWN_PATH: Final = "unknown path"
_MOST_RECALLS: Final = 4
_TOO_MANY_REQUESTS: Final = 429
_LARGEST_ANSWER: Final = 16_777_216
_UNCOUNTED: Final = 2_000  # tokens: the gateway also counts tools and instructions
_logger: Final = logging.getLogger("compaction.gateway")


@attrs.frozen(kw_only=True, eq=False)
class ProxyEndpoint:
    """The ASGI application that forwards requests, made of the parts that every request uses. The last two are optional."""

    settings: GatewaySettings
    upstreams: Upstreams
    conversations: GatewayConversations
    planner: Planner
    deletion: ConversationDeletion
    status: GatewayStatus
    recorder: SessionRecorder | None = None
    workers: Workers | None = None

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
            await client.send_error(failure.status, failure.says)
        except AnswerStopped as stopped:
            error = str(stopped)
            status.failed(f"upstream stopped: {stopped}")
            raise
        except ClientGone:
            error = "ClientGone"
        except SlowBody:
            error = "SlowBody"
            await client.send_error(408, "the body of the request came too slowly")
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

    gateway: ProxyEndpoint
    client: ClientConnection

    async def run(self) -> None:
        """Serve the request."""
        if not self._has_body:  # its end is read here, because `gone` waits for it
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
        await client.stream(await self.gateway.upstreams.send(client.method, provider, target, headers, body))
        await client.end()

    def report(self, error: str) -> None:
        """Count and log the request."""
        why = _UNKNOWN_PATH if looks_like_conversation(self.client.method, self.client.path) else ""
        if why:
            self.gateway.status.passed(why)
        status = self.client.status or 499
        self.gateway.status.answered(_OTHER, status)
        log_request(route=_OTHER, method=self.client.method, status=status, error=error, why=why)


@attrs.define(eq=False)
class _ModelExchange:
    """One request to a model. Holds state: its plan, and figures for the log.

    Args:
        gateway: The parts that serve it.
        client: The client.
        route: Its route.
        workers: The workers, one of which may have to serve it instead; ``None`` if this one serves it.
    """

    gateway: ProxyEndpoint
    client: ClientConnection
    route: ModelRoute
    workers: Workers | None
    _is_elsewhere: bool = attrs.field(default=False, init=False)
    _plan: RequestPlan | None = attrs.field(default=None, init=False)  # of the request that was answered, or is under way
    _began: float = attrs.field(factory=anyio.current_time, init=False)
    _added_seconds: float = attrs.field(default=0.0, init=False)
    _retried: str = attrs.field(default="", init=False)
    _has_recalled: bool = attrs.field(default=False, init=False)  # so that another request than the plan's was answered
    _usage: Usage | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        """Serve the request."""
        settings = self.gateway.settings
        body = await self.client.read_body(settings.max_body, settings.body_seconds)
        if body is None:
            most = f"{settings.max_body:,} bytes"
            await self.client.send_error(413, f"the body is larger than {most}; start the gateway with a larger --max-body")
            return
        await _while_connected(self.client, partial(self._serve, body))

    async def _serve(self, body: bytes) -> None:
        began, planner, client = anyio.current_time(), self.gateway.planner, self.client
        upstream = self.gateway.upstreams.address(self.route.provider)
        read = await planner.read(self.route, body, client.headers, upstream, client.query)
        if await self._hand_over(read):
            return
        self._plan = plan = await planner.plan(read)
        self._added_seconds = anyio.current_time() - began
        answer = await self._send(plan)
        if read.request is not None and answer.status in REFUSALS and await answer.read():
            answer = await self._after_refusal(plan, answer)
        await self._stream(await self._recalled(self._plan, answer))

    async def _hand_over(self, read: ReadRequest) -> bool:
        """Let the worker serve the request to which its conversation belongs; return whether it did."""
        workers, client = self.workers, self.client
        if workers is None or read.request is None:
            return False
        conversation = conversation_key(read.request)
        owner = workers.owners.owner(conversation)
        self._is_elsewhere = owner != workers.number  # also if the client leaves now
        try:
            if self._is_elsewhere and not await client.hand_over(workers, owner, read.original):
                self._is_elsewhere = False
                workers.owners.take_over(conversation)
        except (NoAnswer, AnswerStopped):
            self._is_elsewhere = False  # that worker has ended, so this one logs the request
            raise
        return self._is_elsewhere

    async def _send(self, plan: RequestPlan) -> UpstreamAnswer:
        client = self.client
        headers = request_headers(client.raw_headers, readable=READABLE, rewritten=plan.is_changed)
        target = (client.raw_path, client.query)
        return await self.gateway.upstreams.send(client.method, self.route.provider, target, headers, plan.body)

    async def _stream(self, answer: UpstreamAnswer) -> None:
        """Send an answer to the client, read its usage, and record the conversation."""
        reader = UsageReader(answer.header("content-type"), answer.header("content-encoding"))
        try:
            await self.client.stream(answer, reader.feed)
        finally:
            self._usage = reader.read() if answer.status < 300 else None
            with anyio.CancelScope(shield=True):
                await self._record()
        await self.client.end()

    async def _recalled(self, plan: RequestPlan, answer: UpstreamAnswer) -> UpstreamAnswer:
        """Answer the model's calls of the tools of recall, and return the answer that is meant for the client.

        The last results are sent without the tools, so that the model answers with what it has. After a failure or a refusal,
        the request is sent as if there had been no tools. So the agent gets a call of one only in an answer that is too large
        to be read before it is sent.
        """
        conversations, turn, body, bare = self.gateway.conversations, plan.turn, plan.body, plan.without_recall
        store = conversations.recalled
        if store is None or turn is None or bare is None or answer.status >= 300:
            return answer
        request = partial(next_request, self.route.api, store=store, session=turn.session.id)
        try:
            for sends_left in range(_MOST_RECALLS, -1, -1):
                said = await self._recall_calls(answer)
                if not said:
                    return answer
                if not sends_left:
                    break
                body = await conversations.in_thread(partial(request, body, said, bare=bare if sends_left == 1 else None))
                self.gateway.status.retried("recall")
                answer = await self._instead(answer, attrs.evolve(plan, body=body))
                if answer.status >= 300:
                    if not await _is_refusal(answer):
                        return answer
                    break
        except NoAnswer:
            raise
        except Exception as error:
            self.gateway.status.failed(f"recall: {type(error).__name__}")
        return await self._instead(answer, attrs.evolve(plan, body=bare))

    async def _recall_calls(self, answer: UpstreamAnswer) -> list[Any]:
        """Return the messages of an answer that calls a tool of recall; none if it is the client's, or too large to be read."""
        if not await answer.read(_LARGEST_ANSWER):
            return []
        text, kind = answer.decoded(_LARGEST_ANSWER), answer.header("content-type")
        return await self.gateway.conversations.in_thread(partial(recall_calls, self.route.api, text, kind))

    async def _instead(self, answer: UpstreamAnswer, plan: RequestPlan) -> UpstreamAnswer:
        """Send another request, of recall, in place of the one that was answered."""
        self._has_recalled = True
        answer.close()
        return await self._send(plan)

    # ---------------------------------------------------------------- the second request

    async def _after_refusal(self, plan: RequestPlan, refused: UpstreamAnswer) -> UpstreamAnswer:
        """Send a second request if the contents of the first were refused; return the answer for the client.

        A shorter request is the plan as soon as it has an answer. The client's own messages are only if they are accepted: if
        they are refused like the compacted ones, compaction is not the reason.
        """
        refusal = refused.refusal()
        if LengthRefusal.read(refusal) is not None:
            shorter = await self.gateway.planner.shorter(plan, refusal)
            if shorter is None:
                return refused
            answer = await self._again("length", shorter, refused)
            if answer is not refused:
                self._plan = shorter
            return answer
        if refused.status != 400 or not plan.is_changed:
            return refused
        original = RequestPlan.unchanged(plan.read, "refused as it was compacted", plan.turn)
        answer = await self._again("refused", original, refused)
        if answer.status < 300:
            await self._note_bad_compaction(plan, refusal)
            self._plan = original
        return answer

    async def _again(self, why: str, plan: RequestPlan, refused: UpstreamAnswer) -> UpstreamAnswer:
        """Send a second request, and return its answer; the first answer if the upstream gives none."""
        self._retried = why
        self.gateway.status.retried(why)
        try:
            answer = await self._send(plan)
        except NoAnswer as failure:
            self.gateway.status.failed(f"upstream: {failure.why}")
            return refused
        refused.close()
        return answer

    async def _note_bad_compaction(self, plan: RequestPlan, refusal: UpstreamRefusal) -> None:
        """Stop compacting a conversation whose request was refused only in its compacted form, and write the case."""
        gateway, turn = self.gateway, plan.turn
        gateway.status.failed("a compacted request was refused")
        if turn is None or self.route.counts:
            return
        gateway.planner.leave_alone(turn.session.id)
        folder = gateway.settings.cases
        if folder is None:
            return
        name = f"{self.route.name}-{int(gateway.settings.clock() * 1000)}"
        write = partial(write_case, folder, name, given=turn.request.messages, sent=turn.messages, refusal=refusal)
        try:
            await gateway.conversations.in_thread(write)
        except Exception as error:
            gateway.status.failed(f"writing a case: {type(error).__name__}")

    # ---------------------------------------------------------------- afterwards

    async def _record(self) -> None:
        """Give the reported usage to the session, and record the conversation if that is enabled; count failures."""
        plan, gateway = self._plan, self.gateway
        if plan is None or plan.turn is None or self.route.counts or not 200 <= self.client.status < 300:
            return
        try:
            is_own = not plan.why and not self._has_recalled  # otherwise it is that of another request than the turn's
            if self._usage is not None and is_own:
                if self._usage.is_plausible(plan.turn.tokens, beside=_UNCOUNTED):
                    await gateway.conversations.record_usage(plan.turn, self._usage)
                else:
                    gateway.status.passed("usage not believed")
            await gateway.deletion.note_use(plan.turn)
            if gateway.recorder is not None:
                format, messages = self.route.format, plan.turn.request.messages
                record = partial(gateway.recorder.record, plan.turn.session.id, format, messages)
                await gateway.conversations.in_thread(record)
        except Exception as error:
            gateway.status.failed(f"recording: {type(error).__name__}")

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
    return answer.status < 500 and answer.status != _TOO_MANY_REQUESTS


# ------------------------------------------------------------------------ the log


def log_request(**fields: Any) -> None:
    """Log a request. Fields that are ``None`` or empty are omitted, and seconds are rounded to a tenth of a millisecond."""
    if _logger.isEnabledFor(logging.INFO):
        shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}
        _logger.info(json.dumps({name: value for name, value in shown.items() if value not in (None, "", (), 0.0)}))
