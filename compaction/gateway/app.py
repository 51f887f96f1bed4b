"""The ASGI application: the gateway's own pages, and the endpoint that forwards everything else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread

from ..session import Event, OnEvent
from .conversations import GatewayConversations
from .deletion import ConversationDeletion
from .exchange import ProxyEndpoint
from .guard import Guard
from .pages import page_routes
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

    status = GatewayStatus(settings)

    def note_event(event: Event) -> None:
        status.note_event(event)
        if on_event is not None:
            on_event(event)

    conversations = GatewayConversations(settings, note_event)
    upstreams = Upstreams(settings)
    recorder = None if settings.record is None else SessionRecorder(settings.record, settings.clock)
    deletion = ConversationDeletion(settings, conversations, status, recorder, workers)
    endpoint = ProxyEndpoint(settings, upstreams, conversations, deletion, status, recorder, workers)

    def own_snapshot() -> GatewaySnapshot:
        windows = conversations.windows.learned()
        return status.snapshot(held=conversations.held(), windows=windows, left_alone=conversations.left_alone)

    async def snapshot() -> GatewaySnapshot:
        others = [] if workers is None else await workers.ask("status", answer=GatewaySnapshot)
        return merged([own_snapshot(), *others])

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in (upstreams, conversations):
                await stack.enter_async_context(each)
            if workers is not None:
                answers: dict[str, Callable[[Any], Any]] = {
                    "status": lambda _: own_snapshot(),
                    "windows": conversations.windows.learn_from,
                    "forget": lambda about: deletion.in_own_memory(*about),
                }
                tell_others = partial(workers.ask, "windows", answer=bool)
                conversations.windows.publish = partial(anyio.from_thread.run, tell_others)  # it is called in a thread
                await stack.enter_async_context(workers.listening(endpoint, answers))
            group = await stack.enter_async_context(anyio.create_task_group())
            group.start_soon(deletion.keep_deleting)
            yield
            group.cancel_scope.cancel()

    routes = [*page_routes(snapshot, deletion.everywhere), Mount("/", app=endpoint)]
    return Guard(Starlette(routes=routes, lifespan=lifespan), settings)
