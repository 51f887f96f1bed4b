"""The ASGI application: the gateway's own pages, and the endpoint that forwards everything else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import attrs

from ..session import Event, OnEvent
from .conversations import ConversationInUse, GatewayConversations
from .exchange import GatewayServices, ProxyEndpoint
from .guard import Guard
from .pages import page_routes
from .plan import Planner
from .recording import SessionRecorder
from .settings import GatewaySettings
from .status import GatewaySnapshot, GatewayStatus, merged
from .upstream import Upstreams
from .workers import Workers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp


def create_app(settings: GatewaySettings, *, on_event: OnEvent | None = None, workers: Workers | None = None) -> ASGIApp:
    """Return the gateway as an ASGI application.

    Args:
        settings: The gateway's settings.
        on_event: Also receives the events of all conversations, such as ``OpenTelemetryEvents()``.
        workers: The processes that serve the same address, if there are several.

    Raises:
        StateError: If the store cannot be used.
        OSError: If the folder of recordings cannot be made.

    >>> from compaction import presets
    >>> app = create_app(GatewaySettings(strategy=presets.adaptive))
    """
    from starlette.applications import Starlette
    from starlette.routing import Mount

    alone = settings.token is None  # all users of a token see the page
    status = GatewayStatus(settings.clock, limit=settings.conversations, is_shadow=settings.shadow, shows_texts=alone)
    conversations = GatewayConversations(settings, _both(status.told, on_event))
    status.held, status.windows = conversations.held, conversations.windows.learned
    upstreams = Upstreams(settings)
    services = GatewayServices(
        settings=settings,
        upstreams=upstreams,
        conversations=conversations,
        planner=Planner(settings, conversations, status),
        status=status,
        recorder=None if settings.record is None else SessionRecorder(settings.record, settings.clock),
        workers=workers,
    )
    endpoint, deletion = ProxyEndpoint(services), _Deletion(services)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in (upstreams, conversations):
                await stack.enter_async_context(each)
            if workers is not None:
                answers: dict[str, Callable[[Any], Any]] = {
                    "status": lambda _: status.snapshot(),
                    "windows": conversations.windows.learn_from,
                    "forget": deletion.in_memory,
                }
                conversations.windows.publish = partial(anyio.from_thread.run, partial(workers.ask, "windows", answer=bool))
                await stack.enter_async_context(workers.listening(endpoint, answers))
            group = await stack.enter_async_context(anyio.create_task_group())
            group.start_soon(conversations.forgetting, status.forget, status.failed)
            yield
            group.cancel_scope.cancel()

    async def snapshot() -> GatewaySnapshot:
        others = [] if workers is None else await workers.ask("status", answer=GatewaySnapshot)
        return merged([status.snapshot(), *others])

    routes = [*page_routes(snapshot, deletion.everywhere), Mount("/", app=endpoint)]
    return Guard(Starlette(routes=routes, lifespan=lifespan), settings)


@attrs.frozen
class _Deletion:
    """Deletes one conversation.

    Args:
        parts: The parts of the gateway.
    """

    parts: GatewayServices

    def in_memory(self, name: str) -> str:
        """Delete it from the memory of this process; return ``"deleted"``, ``"unknown"`` or ``"in use"``."""
        try:
            is_deleted = self.parts.conversations.forget_in_memory(name) | self.parts.status.forget(name)
        except ConversationInUse:
            return "in use"
        return "deleted" if is_deleted else "unknown"

    async def everywhere(self, name: str) -> bool:
        """Delete it from all workers and files, and return whether anything of it was there."""
        parts, found = self.parts, [self.in_memory(name)]
        if parts.workers is not None:
            found += await parts.workers.ask("forget", name, answer=str)
        if "in use" in found:
            raise ConversationInUse(name)
        is_deleted = ["deleted" in found, await parts.conversations.forget(name)]
        if parts.recorder is not None:
            is_deleted.append(await parts.conversations.in_thread(partial(parts.recorder.forget, name)))
        return any(is_deleted)


def _both(first: OnEvent, second: OnEvent | None) -> OnEvent:
    def tell(event: Event) -> None:
        first(event)
        if second is not None:
            second(event)

    return tell
