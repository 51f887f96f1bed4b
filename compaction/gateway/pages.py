"""The gateway's own pages: the live page at ``/`` with its data, ``/healthz`` and ``/metrics``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from .conversations import ConversationInUse
from .status import TOTALS, GatewaySnapshot

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

PAGE_PATHS: Final = frozenset(("/", "/status.json", "/healthz", "/metrics"))
"""The paths that the gateway answers itself."""

_ICONS: Final = ("/favicon.ico", "/apple-touch-icon.png", "/apple-touch-icon-precomposed.png", "/robots.txt")
"""Paths that browsers request by themselves; no provider has them, and they are sent to none."""

_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HEADERS: Final = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store"}


def page_routes(snapshot: Callable[[], Awaitable[GatewaySnapshot]], forget: Callable[[str], Awaitable[bool]]) -> list[Route]:
    """Return the routes of the gateway's own pages, and of deletion, which returns whether there was such a conversation."""
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    answers: Mapping[str, Callable[[GatewaySnapshot], Response]] = {
        "/": lambda _: HTMLResponse(_page()[0], headers={**_HEADERS, "content-security-policy": _page()[1]}),
        "/status.json": lambda now: JSONResponse(now.to_dict(), headers=_HEADERS),
        "/healthz": lambda now: JSONResponse(_health(now), headers=_HEADERS),
        "/metrics": lambda now: Response(prometheus_text(now), headers={**_HEADERS, "content-type": _METRICS_TYPE}),
    }

    async def shown(answer: Callable[[GatewaySnapshot], Response], request: Request) -> Response:
        return answer(await snapshot())

    async def deleted(request: Request) -> Response:
        try:
            return Response(status_code=204 if await forget(request.path_params["name"]) else 404)
        except ConversationInUse:
            return Response("the conversation is compacted right now; try again\n", status_code=409)

    def unknown(request: Request) -> Response:
        return Response(status_code=404)

    others = [Route(path, unknown) for path in _ICONS]
    others.append(Route("/conversations/{name:path}", deleted, methods=["DELETE"]))
    return [*(Route(path, partial(shown, answers[path])) for path in sorted(PAGE_PATHS)), *others]


def _health(snapshot: GatewaySnapshot) -> dict[str, object]:
    return {
        "status": "ok",
        "seconds": round(snapshot.at - snapshot.started_at, 3),
        "shadow": snapshot.is_shadow,
        "conversations": len(snapshot.conversations),
        "in_memory": snapshot.held,
        "bytes_in_memory": snapshot.held_bytes,
        "passed_through": dict(snapshot.passed_through),
        "failures": dict(snapshot.failures),
        "retries": dict(snapshot.retries),
    }


@cache
def _page() -> tuple[str, str]:
    """Return the page and its content security policy, which allows its own style and script and requests to the gateway."""
    style, script = _asset("style.css"), _asset("page.js")
    page = _asset("page.html").replace("/* style */", style).replace("/* script */", script)
    own = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; connect-src 'self'"
    return page, f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _asset(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# ------------------------------------------------------------------------ /metrics


def prometheus_text(snapshot: GatewaySnapshot) -> str:
    """Return the state in the text format of Prometheus. Conversations are summed up, so that labels have few values.

    >>> print(prometheus_text(GatewaySnapshot(started_at=0.0, at=9.0, passed_through={"not JSON": 2})).splitlines()[-1])
    compaction_gateway_conversation_bytes 0
    """
    lines: list[str] = []

    def add(name: str, help: str, counts: Mapping[Any, float] | float, *labels: str) -> None:
        full = f"compaction_gateway_{name}"
        lines.extend((f"# HELP {full} {help}", f"# TYPE {full} {'counter' if name.endswith('_total') else 'gauge'}"))
        if not isinstance(counts, Mapping):
            lines.append(f"{full} {counts:.15g}")
            return
        for key, count in counts.items():
            values = (str(each).translate(_ESCAPES) for each in (key if len(labels) > 1 else (key,)))
            named = ",".join(f'{label}="{value}"' for label, value in zip(labels, values, strict=True))
            lines.append(f"{full}{{{named}}} {count:.15g}")

    add("requests_total", "Answers by route and status", snapshot.requests, "route", "status")
    add("passed_through_total", "Requests to a model that were sent unchanged", snapshot.passed_through, "reason")
    add("failures_total", "Failures by kind", snapshot.failures, "kind")
    add("retries_total", "Second requests by reason", snapshot.retries, "reason")
    for name, help in TOTALS.items():
        add(f"{name.removesuffix('_total')}_total", help, snapshot.totals.get(name, 0))
    add("conversations", "Conversations in memory", snapshot.held)
    add("conversation_bytes", "Bytes of the messages of conversations in memory", snapshot.held_bytes)
    return "\n".join(lines) + "\n"
