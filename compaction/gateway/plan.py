"""The two steps between a client's bytes and those that are sent: `Planner.read` parses them, and `Planner.plan` compacts.

Whatever fails, the plan is to send the client's bytes, with the reason in ``why``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from ..session import unawaited_calls
from ..tokens import LengthRefusal, is_quoted
from .bodies import ModelRequest, Unreadable, decoded, read_request
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
"""Bytes of a refused request for each token of the assumed window, if neither a table nor the refusal names the window. A
request has about 4 bytes a token, so the assumed window is half of it."""


@attrs.frozen(eq=False)
class ReadRequest:
    """A client's request, parsed.

    Args:
        original: The client's bytes.
        request: The request of a conversation; ``None`` if it could not be read, or the provider keeps its history.
        why: The reason if ``request`` is ``None``.
    """

    original: bytes = attrs.field(repr=False)
    request: ConversationRequest | None = None
    why: str = ""


@attrs.frozen(kw_only=True, eq=False)
class RequestPlan:
    """The bytes to send for a request.

    Args:
        read: The request.
        body: The bytes.
        turn: Its turn of the conversation; ``None`` if it was not compacted.
        why: The reason for sending the client's bytes, other than that they fit.
        without_recall: The bytes to send without the tools of recall, if ``body`` offers those.
    """

    read: ReadRequest = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    turn: ConversationTurn | None = None
    why: str = ""
    without_recall: bytes | None = attrs.field(default=None, repr=False)

    @classmethod
    def unchanged(cls, read: ReadRequest, why: str, turn: ConversationTurn | None = None) -> RequestPlan:
        """Return the plan to send the client's bytes."""
        return cls(read=read, body=read.original, turn=turn, why=why)

    @property
    def is_changed(self) -> bool:
        """Whether the bytes to send differ from the client's."""
        return self.body is not self.read.original

    @property
    def bare(self) -> bytes:
        """The bytes to send without the tools of recall."""
        return self.body if self.without_recall is None else self.without_recall


class Planner:
    """Reads requests and makes the plans. Holds state: the conversations that are not compacted for now."""

    def __init__(self, settings: GatewaySettings, conversations: GatewayConversations, status: GatewayStatus) -> None:
        self._settings = settings
        self._conversations = conversations
        self._status = status
        self._left_alone: dict[str, None] = {}

    # ---------------------------------------------------------------- step 1: read

    async def read(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes
    ) -> ReadRequest:
        """Parse the client's bytes.

        A compressed body is read in a thread. Others are parsed here: a megabyte takes 0.4 ms, less than starting a thread.
        """
        parse = partial(self._parsed, route, body, headers, upstream, query)
        return await self._conversations.in_thread(parse) if "content-encoding" in headers else parse()

    def _parsed(self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes) -> ReadRequest:
        try:
            parsed = read_request(decoded(body, headers.get("content-encoding", ""), self._settings.max_body), route.api.key)
            why = _no_conversation(route, parsed, headers)
        except Unreadable as error:
            parsed, why = None, str(error)
        except Exception as error:
            self._status.failed(f"reading: {type(error).__name__}")
            return ReadRequest(body, why=type(error).__name__)
        if parsed is None or why:
            self._status.passed(why)
            return ReadRequest(body, why=why)
        request = ConversationRequest(
            route=route,
            parsed=parsed,
            id=session_of(headers),
            upstream=upstream,
            is_long=asks_for_long_context(headers),
            tenant=tenant_of(headers, query),
        )
        return ReadRequest(body, request)

    # ---------------------------------------------------------------- step 2: plan

    async def plan(self, read: ReadRequest) -> RequestPlan:
        """Compact a request that was read, and return the plan to send the result."""
        request = read.request
        if request is None:
            return RequestPlan.unchanged(read, read.why)
        try:
            plan = await self._compacted(read, request)
        except UnknownWindow:
            return self._passed(read, "unknown window")
        except Exception as error:
            self._status.failed(f"{request.route.name}: {type(error).__name__}")
            return RequestPlan.unchanged(read, type(error).__name__)
        if plan.turn is not None and plan.turn.result is None:  # the strategy raised; other failures are counted as events
            for failure in plan.turn.failures:
                self._status.failed(failure)
        return plan

    def _passed(self, read: ReadRequest, why: str, turn: ConversationTurn | None = None) -> RequestPlan:
        """Return the plan to send the client's bytes, and count the reason."""
        self._status.passed(why)
        return RequestPlan.unchanged(read, why, turn)

    async def _compacted(
        self, read: ReadRequest, request: ConversationRequest, refused: UpstreamRefusal | None = None
    ) -> RequestPlan:
        """Compact, and return the plan.

        In a thread, because it uses the processor; in the event loop if the strategy may await a model.
        """

        async def compacted(*, sync: bool) -> RequestPlan:
            return self._plan_of(read, request, await self._conversations.turn(request, refused=refused, sync=sync))

        if self._settings.awaits and not request.route.counts:
            return await compacted(sync=False)
        return await self._conversations.in_thread(lambda: unawaited_calls(compacted(sync=True)))

    def _plan_of(self, read: ReadRequest, request: ConversationRequest, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn, with the tools of recall if they can be offered."""
        if self._settings.shadow:
            return self._passed(read, "shadow", turn)
        if turn.session.id in self._left_alone:
            return self._passed(read, "left alone", turn)
        if not turn.is_changed:
            return RequestPlan.unchanged(read, "", turn)
        bare = body = request.parsed.with_messages(turn.messages)
        if self._conversations.recalled is not None and not request.route.counts:
            body = offered(bare, request.parsed, request.route.api)
        return RequestPlan(read=read, body=body, turn=turn, without_recall=None if body is bare else bare)

    # ---------------------------------------------------------------- after a refusal

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent."""
        request = plan.read.request
        if request is None or request.route.counts or self._settings.shadow:
            return None
        if plan.turn is not None:
            self._left_alone.pop(plan.turn.session.id, None)
        try:
            await self._conversations.in_thread(partial(self._learn, plan, request, refused))
            shorter = await self._compacted(plan.read, request, refused)
        except Exception as error:  # nothing may be removed, the window is still unknown, or the gateway has a fault
            self._status.failed(f"compacting further: {type(error).__name__}")
            return None
        return None if shorter.bare == plan.bare else shorter

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request, for all clients: but not from an error that quotes this one's words."""
        if is_quoted(refused, json.dumps(request.parsed.fields, ensure_ascii=False, default=str)):
            return  # only this conversation is shortened
        found = LengthRefusal.read(refused) or LengthRefusal()
        if found.window is None and plan.turn is None:  # no table has the model's window
            found = LengthRefusal(window=max(1, len(plan.read.original) // _BYTES_OF_WINDOW))
        if found.window is None and refused.status_code == _TOO_MANY_BYTES:
            return  # a limit of a proxy on the way, perhaps; only this conversation is shortened
        self._conversations.learn_window(plan.turn, request, found)

    def leave_alone(self, session: str) -> None:
        """Stop compacting a conversation until its next length error."""
        while len(self._left_alone) >= self._settings.most_conversations:
            del self._left_alone[next(iter(self._left_alone))]
        self._left_alone[session] = None

    def left_alone(self) -> tuple[str, ...]:
        """Return the conversations that are not compacted for now."""
        return tuple(self._left_alone)


def _no_conversation(route: ModelRoute, parsed: ModelRequest, headers: Mapping[str, str]) -> str:
    """Return the reason why a request cannot be compacted, as far as it shows; empty if it can."""
    if has_signature(headers):
        return "signed"
    fields = parsed.fields
    return route.api.kept(fields) or route.api.shortened(fields) or ("" if parsed.messages else "no messages")
