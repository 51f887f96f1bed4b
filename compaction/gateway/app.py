"""The application: what the gateway itself answers, and everything else, which is passed on."""

from __future__ import annotations

import contextlib
import html
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

import anyio

from ..session import Event, OnEvent
from .conversations import GatewayConversations
from .exchange import GatewayServices, ProxyEndpoint
from .forgetting import UnusedConversations
from .guard import Guard
from .metrics import METRICS_TYPE, prometheus_text
from .plans import Planner
from .recording import SessionRecorder
from .settings import GatewaySettings
from .status import GatewaySnapshot, GatewayStatus
from .upstream import Upstreams

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def create_app(settings: GatewaySettings, *, on_event: OnEvent | None = None) -> ASGIApp:
    """Return the gateway as an ASGI application.

    Args:
        settings: Its settings.
        on_event: Receives the events of all conversations too, such as ``OpenTelemetryEvents()``.

    Raises:
        StateError: If the store cannot be used.
        OSError: If the folder of recordings cannot be made.

    >>> from compaction import presets
    >>> app = create_app(GatewaySettings(strategy=presets.adaptive))
    """
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    status = GatewayStatus(settings.clock, limit=settings.conversations, is_shadow=settings.shadow)
    conversations = GatewayConversations(settings, _both(status.told, on_event))
    status.held = conversations.held
    upstreams, unused = Upstreams(settings), UnusedConversations(settings, conversations, status)
    services = GatewayServices(
        settings=settings,
        upstreams=upstreams,
        conversations=conversations,
        planner=Planner(settings, conversations, status),
        status=status,
        unused=unused,
        recorder=None if settings.record is None else SessionRecorder(settings.record, settings.clock),
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with upstreams, conversations, anyio.create_task_group() as group:
            group.start_soon(unused.run)
            yield
            group.cancel_scope.cancel()

    pages = [
        Route("/", _page(status)),
        Route("/healthz", _health(status)),
        Route("/metrics", _metrics(status)),
    ]
    return Guard(Starlette(routes=[*pages, Mount("/", app=ProxyEndpoint(services))], lifespan=lifespan), settings)


def _both(first: OnEvent, second: OnEvent | None) -> OnEvent:
    def tell(event: Event) -> None:
        first(event)
        if second is not None:
            second(event)

    return tell


def _health(status: GatewayStatus) -> Callable[[Request], Response]:
    def health(request: Request) -> Response:
        """Whether it runs, and why requests are sent as they came."""
        from starlette.responses import JSONResponse

        found = status.snapshot()
        data = {
            "status": "ok",
            "seconds": round(found.at - found.started_at, 3),
            "shadow": found.is_shadow,
            "conversations": len(found.conversations),
            "in_memory": found.held,
            "bytes_in_memory": found.held_bytes,
            "passed_through": dict(found.passed_through),
            "failures": dict(found.failures),
            "retries": dict(found.retries),
        }
        return JSONResponse(data, headers={"cache-control": "no-store"})

    return health


def _metrics(status: GatewayStatus) -> Callable[[Request], Response]:
    def metrics(request: Request) -> Response:
        """The counters, for Prometheus."""
        from starlette.responses import Response

        return Response(prometheus_text(status.snapshot()), headers={"content-type": METRICS_TYPE})

    return metrics


def _page(status: GatewayStatus) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        """The conversations, as a table."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(_html(status.snapshot()), headers=_PAGE_HEADERS)

    return page


def _html(snapshot: GatewaySnapshot) -> str:
    """Return a page that runs nothing; every name on it is escaped."""
    columns = ("conversation", "model", "tokens", "window", "requests", "cuts", "saved", "lost")
    rows = [
        (
            each.id[-12:],
            each.model,
            each.tokens,
            each.window,
            each.requests,
            len(each.cuts),
            each.tokens_saved,
            each.tokens_lost,
        )
        for each in snapshot.conversations[:200]
    ]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    counts = {**snapshot.passed_through, **snapshot.failures}
    notes = "".join(f"<li>{html.escape(name)}: {count}</li>" for name, count in counts.items())
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>compaction gateway</title>"
        "<style>body{font:14px system-ui;margin:2em}td,th{padding:.2em .8em;text-align:right}</style>"
        f"<h1>compaction gateway</h1><table><tr>{head}</tr>{body}</table><ul>{notes}</ul></html>"
    )
