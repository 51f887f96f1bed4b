"""Anthropic SDK: a middleware of the client, which compacts the messages of each request before it is sent.

The SDK calls a middleware for each attempt of each request, so it sees what the tool runner sends, streamed or not, and what a
plain loop sends. The runner keeps the whole conversation; only what goes out is shorter.

A message thread keeps the conversation at the server and sends what is new. There is nothing to compact in such a request, so
it is refused in the words by which the server says that it cannot keep a conversation. The tool runner, which uses a thread
unless told otherwise, then sends the whole conversation with each request, without an error.
"""

from __future__ import annotations

import contextlib
import json
import operator
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from ...formats import anthropic, fields_of
from ...stores import SessionStore
from ...strategies import StrategyLike
from ...tokens import counter
from ..conversation import FrameworkConversations, FrameworkTurn
from ..options import IntegrationOptions
from ..requirements import ANTHROPIC, framework_class, import_framework
from ..streamed_usage import StreamedUsage

if TYPE_CHECKING:
    _Middleware = object
else:
    _Middleware = framework_class("anthropic", "Middleware")

_PATH: Final = "/v1/messages"
_NO_THREADS: Final = (
    "RequestCompaction shortens the whole conversation, which a message thread leaves at the server: pass thread=False, or"
    ' unsupported_request_behavior="continue_unthreaded"'
)


class RequestCompaction(_Middleware):
    """A middleware of ``Anthropic`` and ``AsyncAnthropic`` that compacts the messages of each request.

    One middleware serves any number of conversations, one after the other or at once: each is found by its messages. Tools and
    the system prompt count. What the server reports, streamed or not, anchors the counts. A request that the server finds too
    long is compacted harder and sent once more. Holds state: the conversations.

    A client without ``await`` needs a strategy that awaits nothing. The model of a summarizer should have a client of its own.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the decisions, if anywhere; a process that starts again finds them by the messages.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the SDK is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Any) -> None:
        ANTHROPIC.check()
        self._options = IntegrationOptions(strategy=strategy, **options)
        self._counter = counter(self._options.counter)
        self._conversations = FrameworkConversations(self._options, anthropic, store=store)
        self._focus: ContextVar[str | None] = ContextVar("focus", default=None)

    def compact_next(self, focus: str = "") -> None:
        """Compact before the next request of this task or thread, whatever the trigger says; a tool may call it.

        Args:
            focus: A topic that a summary should give most room to.
        """
        self._focus.set(focus)

    def handle(self, request: Any, call_next: Any) -> Any:
        """Send one request of a client without ``await``."""
        body = _body(request)
        if body is None:
            return call_next(request)
        turn = self._conversations.turn_sync(body["messages"], **self._about(body))
        response = call_next(_with(request, body, turn.view))
        if _is_refused(response):
            response.http_response.read()
            again = turn.overflowed_sync(_error(response))
            if again is not None:
                response = call_next(_with(request, body, again))
        if _is_streamed(request, response):
            stream = response.parse()  # the same object for every caller
            stream._iterator = _observed(stream._iterator, turn)
        else:
            turn.record_usage(_usage(response))
        return response

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Send one request of a client with ``await``."""
        body = _body(request)
        if body is None:
            return await call_next(request)
        turn = await self._conversations.turn(body["messages"], **self._about(body))
        response = await call_next(_with(request, body, turn.view))
        if _is_refused(response):
            await response.http_response.aread()
            again = await turn.overflowed(_error(response))
            if again is not None:
                response = await call_next(_with(request, body, again))
        if _is_streamed(request, response):
            stream = await response.parse()
            stream._iterator = _observed_async(stream._iterator, turn)
        else:
            turn.record_usage(_usage(response))
        return response

    def _about(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a turn has to know about a request besides its messages."""
        outside = [part for part in (body.get("system"), body.get("tools")) if part]
        text = json.dumps(outside, default=str) if outside else ""
        focus = self._focus.get()
        if focus is not None:
            self._focus.set(None)
        return {"model": body.get("model"), "overhead_tokens": self._counter.count_text(text), "focus": focus}


def _body(request: Any) -> Mapping[str, Any] | None:
    """Return the body of a request whose messages are to be compacted, ``None`` for any other request.

    Raises:
        BadRequestError: The SDK's error, if the request asks the server to keep the conversation.
    """
    body = request.json
    if request.method.lower() != "post" or request.url.partition("?")[0] != _PATH or not isinstance(body, Mapping):
        return None
    fields = cast("Mapping[str, Any]", body)
    if isinstance(fields.get("thread"), Mapping):
        http = import_framework("httpx2")
        details = {"error_code": "thread_unsupported_request", "unsupported": ["compaction"]}
        raise import_framework("anthropic").BadRequestError(
            _NO_THREADS,
            response=http.Response(400, request=http.Request("POST", f"http://localhost{_PATH}")),
            body={"type": "error", "error": {"type": "invalid_request_error", "message": _NO_THREADS, "details": details}},
        )
    return fields if isinstance(fields.get("messages"), list) else None


def _with(request: Any, body: Mapping[str, Any], messages: list[Any]) -> Any:
    """Return the request with other messages; the same request if nothing changed, because a copy is O(contents)."""
    given = body["messages"]
    if len(given) == len(messages) and all(map(operator.is_, given, messages)):
        return request
    return request.copy(body={**body, "messages": messages})


def _is_refused(response: Any) -> bool:
    http = getattr(response, "http_response", None)  # another middleware may answer with something else
    return http is not None and not http.is_success


def _is_streamed(request: Any, response: Any) -> bool:
    return bool(request.stream) and getattr(response, "http_response", None) is not None and not _is_refused(response)


def _error(response: Any) -> Exception:
    """Return the error that the SDK would raise."""
    http = response.http_response
    error: Exception = import_framework("anthropic").APIStatusError(http.text, response=http, body=None)
    return error


def _usage(response: Any) -> Any:
    """Return the usage that a response reports, if its body has been read and is a message."""
    http = getattr(response, "http_response", None)
    if http is None or not http.is_closed:
        return None
    with contextlib.suppress(ValueError):
        return (fields_of(http.json()) or {}).get("usage")
    return None


def _observed(events: Iterator[Any], turn: FrameworkTurn) -> Iterator[Any]:
    """Yield the events of a stream, and record what they report once it ends."""
    usage = StreamedUsage()
    try:
        for event in events:
            usage.add(event)
            yield event
    finally:
        turn.record_usage(usage.read())


async def _observed_async(events: AsyncIterator[Any], turn: FrameworkTurn) -> AsyncIterator[Any]:
    """Yield the events of a stream, and record what they report once it ends."""
    usage = StreamedUsage()
    try:
        async for event in events:
            usage.add(event)
            yield event
    finally:
        turn.record_usage(usage.read())
