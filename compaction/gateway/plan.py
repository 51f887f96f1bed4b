"""The plan for a request to a model: the client's bytes, or the same request with the messages of a compacted conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from ..run import unawaited
from ..tokens import LengthError, is_quoted
from .bodies import Unreadable, decoded, read_request
from .conversations import ConversationRequest, ConversationTurn, GatewayConversations
from .headers import asks_for_long_context, has_signature, session_of, tenant_of
from .recall import offered
from .routes import ModelRoute
from .settings import GatewaySettings
from .status import GatewayStatus
from .upstream import UpstreamRefusal
from .windows import UnknownWindow

_TOO_MANY_BYTES: Final = 413
_BYTES_OF_WINDOW: Final = 8
"""The bytes of a refused request for each token of the window that is assumed if neither a table nor the refusal names it: half
of what the request has at four bytes a token."""


@attrs.frozen(kw_only=True, eq=False)
class RequestPlan:
    """The plan for one request.

    Args:
        body: The bytes to send.
        original: The client's bytes.
        request: The request of a conversation; ``None`` if it could not be read, or the provider keeps its history.
        turn: Its turn of the conversation; ``None`` before it is planned.
        why: The reason for sending the client's bytes, other than that they fit.
        without_recall: The bytes to send without the tools of recall, if those are offered.
    """

    body: bytes = attrs.field(repr=False)
    original: bytes = attrs.field(repr=False)
    request: ConversationRequest | None = None
    turn: ConversationTurn | None = None
    why: str = ""
    without_recall: bytes | None = attrs.field(default=None, repr=False)

    @property
    def is_changed(self) -> bool:
        """Whether the bytes to send differ from the client's."""
        return self.body is not self.original

    @property
    def bare(self) -> bytes:
        """The bytes to send without the tools of recall."""
        return self.body if self.without_recall is None else self.without_recall


class Planner:
    """Makes the plans. Holds state: the conversations that are not compacted for now.

    If anything fails, the plan is to send the client's bytes.
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

        A compressed body is read in a thread. Others are parsed here: a megabyte takes 0.4 ms, less than starting a thread.
        """
        read = partial(self._read, route, body, headers, upstream, query)
        return await self._conversations.in_thread(read) if "content-encoding" in headers else read()

    def _read(self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes) -> RequestPlan:
        unchanged = RequestPlan(body=body, original=body)
        try:
            asked = read_request(decoded(body, headers.get("content-encoding", ""), self._settings.max_body), route.key)
            why = "signed" if has_signature(headers) else route.kept(asked.fields) or ("" if asked.messages else "no messages")
        except Unreadable as error:
            return self._passed(unchanged, str(error))
        except Exception as error:
            self._status.failed(f"reading: {type(error).__name__}")
            return attrs.evolve(unchanged, why=type(error).__name__)
        if why:
            return self._passed(unchanged, why)
        request = ConversationRequest(
            route=route,
            body=asked,
            id=session_of(headers),
            upstream=upstream,
            is_long=asks_for_long_context(headers),
            tenant=tenant_of(headers, query),
        )
        return attrs.evolve(unchanged, request=request)

    def _passed(self, plan: RequestPlan, why: str) -> RequestPlan:
        """Return the plan with the reason for sending the client's bytes, which is counted."""
        self._status.passed(why)
        return attrs.evolve(plan, why=why)

    async def plan(self, read: RequestPlan) -> RequestPlan:
        """Return the plan of a request that was read."""
        request = read.request
        if request is None:
            return read
        try:
            plan = await self._planned(read, request)
        except UnknownWindow:
            return self._passed(read, "unknown window")
        except Exception as error:
            self._status.failed(f"{request.route.name}: {type(error).__name__}")
            return attrs.evolve(read, why=type(error).__name__)
        if plan.turn is not None and plan.turn.result is None:  # the strategy raised; other failures are counted as events
            for failure in plan.turn.failures:
                self._status.failed(failure)
        return plan

    async def _planned(
        self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal | None = None
    ) -> RequestPlan:
        """Compact, and return the plan to send the result.

        In a thread, because it uses the processor; in the event loop if the strategy may await a model.
        """

        async def planned(sync: bool) -> RequestPlan:
            return self._sending(plan, request, await self._conversations.turn(request, refused=refused, sync=sync))

        if self._settings.awaits and not request.route.counts:
            return await planned(False)
        return await self._conversations.in_thread(lambda: unawaited(planned(True)))

    def _sending(self, plan: RequestPlan, request: ConversationRequest, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn, with the tools of recall if they can be offered."""
        plan = attrs.evolve(plan, turn=turn, body=plan.original, why="", without_recall=None)
        if self._settings.shadow or turn.session.id in self._alone:
            return self._passed(plan, "shadow" if self._settings.shadow else "left alone")
        if not turn.is_changed:
            return plan
        body = with_tools = request.body.with_messages(turn.messages)
        if self._conversations.recalled is not None and not request.route.counts:
            with_tools = offered(body, request.body, request.route.name)
        return attrs.evolve(plan, body=with_tools, without_recall=None if with_tools is body else body)

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent."""
        request = plan.request
        if request is None or request.route.counts or self._settings.shadow:
            return None
        if plan.turn is not None:
            self._alone.pop(plan.turn.session.id, None)
        try:
            await self._conversations.in_thread(partial(self._learn, plan, request, refused))
            shorter = await self._planned(plan, request, refused)
        except Exception as error:  # nothing may be removed, the window is still unknown, or the gateway has a fault
            self._status.failed(f"compacting harder: {type(error).__name__}")
            return None
        return None if shorter.bare == plan.bare else shorter

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request, for all clients: but not from an error that quotes this one's words."""
        if is_quoted(refused.body, json.dumps(request.body.fields, ensure_ascii=False, default=str)):
            return  # only this conversation is shortened
        found = LengthError.read(refused) or LengthError()
        if found.window is None and plan.turn is None:  # no table has the model's window
            found = LengthError(window=max(1, len(plan.original) // _BYTES_OF_WINDOW))
        if found.window is None and refused.status_code == _TOO_MANY_BYTES:
            return  # a limit of a proxy on the way, perhaps; only this conversation is shortened
        self._conversations.learn_window(plan.turn, request, found)

    def leave_alone(self, session: str) -> None:
        """Stop compacting a conversation until its next length error."""
        while len(self._alone) >= self._settings.conversations:
            del self._alone[next(iter(self._alone))]
        self._alone[session] = None

    def left_alone(self) -> tuple[str, ...]:
        """Return the conversations that are not compacted for now."""
        return tuple(self._alone)
