"""Anthropic SDK: a client whose requests are compacted, for its tool runner and for every other call of ``messages``.

    client = Anthropic(middleware=[RequestCompaction(presets.context_window(200_000))])
    runner = client.beta.messages.tool_runner(model=model, max_tokens=1_000, tools=[look_up_price], messages=messages)

A whole program is ``examples/anthropic_tool_runner.py``. The SDK calls a middleware for each attempt of each request, so the
middleware sees the requests of the tool runner and of a plain loop, streamed or not. The runner keeps the whole conversation;
only its requests are shorter.

A message thread keeps the conversation at the server, and its requests contain only new messages, which leaves nothing to
compact. The middleware answers such a request with the error of a server that does not support threads. The tool runner, which
uses a thread by default, then sends the whole conversation with each request and raises no error.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, Unpack, cast

from ..formats import StreamedUsage, anthropic, fields_of, same
from ..session import unawaited_calls
from ..stores import SessionStore
from ..strategies import StrategyLike
from .conversation import FrameworkConversations, FrameworkTurn, as_async
from .options import CommonOptions, IntegrationOptions
from .requirements import ANTHROPIC, framework_class, import_framework

__all__ = ["RequestCompaction"]

_Middleware: Any = framework_class("anthropic", "Middleware")
_PATH: Final = "/v1/messages"
_asked: Final[ContextVar[Mapping[int, str]]] = ContextVar("compaction_asked", default={})  # noqa: B039 (never changed)
"""The requests of `RequestCompaction.compact_next` in this task or thread, by the middleware."""
_NO_THREADS: Final = (
    "RequestCompaction shortens the whole conversation, which a message thread leaves at the server: pass thread=False, or"
    ' unsupported_request_behavior="continue_unthreaded"'
)


class RequestCompaction(_Middleware):
    """A middleware of ``Anthropic`` and ``AsyncAnthropic`` that compacts the messages of each request.

    One middleware serves any number of conversations, also at the same time, and finds each by its messages. Tools and the
    system prompt count. The usage that the server reports, streamed or not, corrects the counts. A request that the server
    finds too long is compacted further and sent once more. Holds state: its ``conversations``.

    A client without ``await`` needs a strategy that awaits nothing. Give a summarizer's model another client.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the edits, if anywhere; a new process finds them by the messages.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]) -> None:
        ANTHROPIC.check()
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), anthropic, store=store)

    def compact_next(self, focus: str = "") -> None:
        """Compact before the next request of this task or thread; a summary gives most room to ``focus``. Tools may call it."""
        _asked.set({**_asked.get(), id(self): focus})

    def handle(self, request: Any, call_next: Any) -> Any:
        """Send one request of a client without ``await``."""
        return unawaited_calls(self._handle(request, as_async(call_next), sync=True))

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Send one request of a client with ``await``."""
        return await self._handle(request, call_next, sync=False)

    async def _handle(self, request: Any, call_next: Callable[[Any], Awaitable[Any]], *, sync: bool) -> Any:
        body = _body(request)
        if body is None:
            return await call_next(request)
        overhead = self.conversations.count(body.get("system"), body.get("tools"))
        asked = dict(_asked.get())
        focus = asked.pop(id(self), None)
        _asked.set(asked)
        turn = await self.conversations.turn(
            body["messages"], model=body.get("model"), overhead_tokens=overhead, focus=focus, sync=sync
        )

        def shown() -> Any:  # the same request if nothing changed, because a copy is O(contents)
            return request if same(body["messages"], turn.view) else request.copy(body={**body, "messages": turn.view})

        response = await call_next(shown())
        http = getattr(response, "http_response", None)  # another middleware may answer with something else
        if http is not None and not http.is_success:
            _ = http.read() if sync else await http.aread()
            error = import_framework("anthropic").APIStatusError(http.text, response=http, body=None)  # as the SDK raises it
            if await turn.overflowed(error, sync=sync) is not None:
                response = await call_next(shown())
                http = getattr(response, "http_response", None)
        if request.stream and http is not None and http.is_success:
            stream = response.parse() if sync else await response.parse()  # the same object for every caller
            stream._iterator = (_observed if sync else _observed_async)(stream._iterator, turn)
        else:
            turn.record_usage(_usage(response))
        return response


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


def _usage(response: Any) -> Any:
    """Return the usage that a response reports, if its body has been read and is a message."""
    http = getattr(response, "http_response", None)
    if http is None or not http.is_closed:
        return None
    with contextlib.suppress(ValueError):
        return (fields_of(http.json()) or {}).get("usage")
    return None


@contextlib.contextmanager
def _recorded(turn: FrameworkTurn) -> Generator[StreamedUsage]:
    """Collect the usage of a stream, and record it at the end, however the stream ends."""
    usage = StreamedUsage()
    try:
        yield usage
    finally:
        turn.record_usage(usage.read())


def _observed(events: Iterator[Any], turn: FrameworkTurn) -> Iterator[Any]:
    with _recorded(turn) as usage:
        for event in events:
            usage.add(event)
            yield event


async def _observed_async(events: AsyncIterator[Any], turn: FrameworkTurn) -> AsyncIterator[Any]:
    with _recorded(turn) as usage:
        async for event in events:
            usage.add(event)
            yield event
