"""One client request: sent to its upstream at most twice, and answered with the upstream's own bytes.

A second request is sent only after the upstream refused the first completely (a length error, or 400 for a changed request)
and before the client received a byte. Timeouts, broken connections, 429 and 5xx are never retried.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import attrs

from ..tokens import Usage
from .bodies import READABLE, decoded
from .client import AnswerStopped, ClientConnection, ClientGone, SlowBody
from .conversations import GatewayConversations
from .failures import REFUSALS, UpstreamRefusal, length_error, write_case
from .forgetting import UnusedConversations
from .headers import as_mapping, request_headers
from .plans import Planner, RequestPlan
from .recording import SessionRecorder
from .request_log import log_request
from .routes import ModelRoute, looks_like_conversation, provider_of, route_of
from .settings import GatewaySettings
from .status import GatewayStatus, RequestReport
from .upstream import NoAnswer, Upstreams, WholeAnswer, read_whole
from .usage_reading import UsageReader
from .workers import HANDED_OVER, Workers, binding

if TYPE_CHECKING:
    import httpx
    from starlette.types import Receive, Scope, Send

_OTHER: Final = "other"
_UNKNOWN_PATH: Final = "unknown path"
_MOST_RECALLS: Final = 4
_LARGEST_ANSWER: Final = 16_777_216
_UNCOUNTED: Final = 2_000  # tokens: the gateway also counts tools and instructions


@attrs.frozen(kw_only=True, eq=False)
class GatewayServices:
    """The parts of a gateway that every request uses.

    Args:
        settings: The gateway's settings.
        upstreams: Sends requests.
        conversations: The conversations.
        planner: Decides what is sent.
        status: Counts what happens.
        unused: Deletes unused conversations.
        recorder: Records sessions, if that is enabled.
        workers: The processes that serve the same address, if there are several.
    """

    settings: GatewaySettings
    upstreams: Upstreams
    conversations: GatewayConversations
    planner: Planner
    status: GatewayStatus
    unused: UnusedConversations
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
        client = ClientConnection(scope, receive, send)
        route = route_of(client.method, client.path)
        error: BaseException | None = None
        try:
            if route is None:
                await _pass_through(self._services, client)
            else:
                await _ModelExchange(self._services, client, route, is_owned=HANDED_OVER in scope).run()
        except NoAnswer as failure:
            error = failure
            self._services.status.failed(f"upstream: {failure.why}")
            await client.refuse(failure.status, failure.says)
        except ClientGone as gone:
            error = gone
        except SlowBody as slow:
            error = slow
            await client.refuse(408, "the body of the request came too slowly")
        finally:
            if route is None:
                why = _UNKNOWN_PATH if looks_like_conversation(client.method, client.path) else None
                if why is not None:
                    self._services.status.passed(why)
                self._services.status.answered(_OTHER, client.status or 499)
                log_request(route=_OTHER, method=client.method, status=client.status or 499, error=_name(error), why=why)


async def _pass_through(services: GatewayServices, client: ClientConnection) -> None:
    """Forward a request without a conversation, and stream the answer."""
    provider = provider_of(client.path, client.headers)
    has_body = "content-length" in client.headers or "transfer-encoding" in client.headers
    headers = request_headers(client.raw_headers, readable="", rewritten=False)
    if length := client.headers.get("content-length"):
        headers.append((b"content-length", length.encode("latin-1")))
    url = services.upstreams.url(provider, client.raw_path, client.query)
    if not has_body:
        _ = [piece async for piece in client.pieces()]
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_if_gone, client, group.cancel_scope)
        try:
            response = await services.upstreams.send(client.method, url, headers, client.pieces() if has_body else None)
            await client.stream(response)
            await client.end()
        except (NoAnswer, ClientGone, SlowBody) as error:  # raised below, outside of the group
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _cancel_if_gone(client: ClientConnection, scope: anyio.CancelScope) -> None:
    await client.gone()
    scope.cancel()


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
        self._error: str | None = None
        self._usage: Usage | None = None

    async def run(self) -> None:
        """Serve the request, and log it in any case."""
        try:
            body = await self._client.body(self._services.settings.max_body, self._services.settings.body_seconds)
            if body is None:
                most = f"{self._services.settings.max_body:,} bytes"
                await self._client.refuse(413, f"the body is larger than {most}; start the gateway with a larger --max-body")
                return
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_if_gone, self._client, group.cancel_scope)
                if not await self._hand_over(body):
                    await self._answer(body)
                group.cancel_scope.cancel()
        finally:
            if not self._is_elsewhere:
                self._report()

    async def _hand_over(self, body: bytes) -> bool:
        """Let the worker serve the request to which its conversation belongs; return whether it did."""
        workers, client = self._workers, self._client
        if workers is None:
            return False
        conversation = binding(self._route, body, client.headers, self._services.settings.max_body)
        owner = workers.owner(conversation)
        self._is_elsewhere = owner != workers.number  # also if the client leaves now
        if self._is_elsewhere and not await client.hand_over(workers, owner, body):
            self._is_elsewhere = False
            workers.take_over(conversation)
        return self._is_elsewhere

    async def _answer(self, body: bytes) -> None:
        """Send the plan and stream the answer; 502 or 504 if the upstream gives none."""
        try:
            began = anyio.current_time()
            self._plan = await self._services.planner.plan(
                self._route, body, self._client.headers, self._upstream, self._client.query
            )
            self._added = anyio.current_time() - began
            response = await self._send(self._plan)
            whole = await read_whole(response) if response.status_code in REFUSALS and self._plan.request is not None else None
            again = None if whole is None else await self._second(self._plan, whole)
            if whole is not None and again is None:
                await self._client.send_whole(whole)
                return
            response = response if again is None else again
            recalled = await self._recalled(self._plan, response)
            if isinstance(recalled, WholeAnswer):
                await self._give(recalled)
            else:
                await self._stream(recalled)
        except NoAnswer as failure:
            self._error = failure.why
            self._services.status.failed(f"upstream: {failure.why}")
            await self._client.refuse(failure.status, failure.says)
        except AnswerStopped as stopped:
            self._error = str(stopped)
            self._services.status.failed(f"upstream stopped: {stopped}")
            raise

    async def _send(self, plan: RequestPlan) -> httpx.Response:
        client = self._client
        url = self._services.upstreams.url(self._route.provider, client.raw_path, client.query)
        headers = request_headers(client.raw_headers, readable=READABLE, rewritten=plan.is_changed)
        return await self._services.upstreams.send(client.method, url, headers, plan.body)

    async def _stream(self, response: httpx.Response) -> None:
        kind, encoding = response.headers.get("content-type", ""), response.headers.get("content-encoding", "")
        reader = UsageReader(kind, encoding)
        try:
            await self._client.stream(response, reader.feed)
        finally:
            self._usage = reader.read() if response.status_code < 300 else None
            with anyio.CancelScope(shield=True):
                await self._record()
        await self._client.end()

    # ---------------------------------------------------------------- recall

    async def _recalled(self, plan: RequestPlan, response: httpx.Response) -> WholeAnswer | httpx.Response:
        """Answer the model's calls of the tools of recall, and return the answer that is meant for the client."""
        services, body = self._services, plan.body
        answers = services.conversations.recall_answers(plan.turn)
        if answers is None or plan.without_recall is None or response.status_code >= 300:
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
            if response.status_code >= 300:
                break
        await response.aclose()
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

    async def _second(self, plan: RequestPlan, refused: WholeAnswer) -> httpx.Response | None:
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
        if response is not None and response.status_code < 300:
            self._plan = attrs.evolve(original, why="refused as it was compacted")
            await self._our_fault(plan, refused)
        return response

    async def _shorter(self, plan: RequestPlan, error: UpstreamRefusal) -> httpx.Response | None:
        shorter = await self._services.planner.shorter(plan, error)
        if shorter is None:
            return None
        self._retried, self._plan = "length", shorter
        self._services.status.retried("length")
        return await self._try(shorter)

    async def _try(self, plan: RequestPlan) -> httpx.Response | None:
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
            if self._usage is not None and not self._usage.is_plausible(plan.turn.tokens, beside=_UNCOUNTED):
                services.status.passed("usage not believed")
            elif self._usage is not None and not plan.why:
                await services.conversations.record_usage(plan.turn, self._usage)
            await services.unused.used(plan.turn)
            if services.recorder is not None:
                format, messages = self._route.format, plan.turn.request.messages
                record = partial(services.recorder.record, plan.turn.session.id, format, messages)
                await anyio.to_thread.run_sync(record)
        except Exception as error:
            services.status.failed(f"recording: {type(error).__name__}")

    def _report(self) -> None:
        """Count and log the request."""
        status, plan, turn = self._client.status or 499, self._plan, None if self._plan is None else self._plan.turn
        self._services.status.answered(self._route.name, status)
        if turn is not None and not self._route.counts and status < 300:
            self._services.status.reported(
                RequestReport(
                    session=turn.session.id,
                    route=self._route.name,
                    model=turn.request.model,
                    upstream=self._upstream,
                    window=turn.window,
                    tokens=turn.tokens,
                    left_out=turn.left_out if plan is not None and plan.is_changed else 0,
                    seconds_added=self._added,
                    usage=self._usage,
                    failures=turn.failures,
                )
            )
        log_request(**_fields(self._usage), **self._logged(plan), route=self._route.name, status=status)

    def _logged(self, plan: RequestPlan | None) -> dict[str, Any]:
        turn = None if plan is None else plan.turn
        return {
            "conversation": None if turn is None else turn.session.id[-12:],
            "model": None if turn is None else turn.request.model,
            "window": None if turn is None else turn.window,
            "tokens": None if turn is None else turn.tokens,
            "left_out": None if turn is None else turn.left_out,
            "compacted": plan is not None and plan.is_changed,
            "why": None if plan is None else plan.why,
            "retried": self._retried,
            "error": self._error,
            "failures": () if turn is None else turn.failures,
            "added_seconds": self._added,
            "seconds": anyio.current_time() - self._began,
        }


def _fields(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    return {name: getattr(usage, name) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")}


def _name(error: BaseException | None) -> str | None:
    return None if error is None else type(error).__name__
