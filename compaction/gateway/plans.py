"""The plan of a request: the bytes to send, and the reason if they are the client's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import attrs

from ..tokens import LengthError
from .bodies import ModelRequest, TooLarge, Unreadable, decoded, read_request
from .conversations import ConversationRequest, ConversationTurn, GatewayConversations
from .failures import UpstreamRefusal
from .headers import asks_for_long_context, has_signature, session_of, tenant_of
from .recall import offered
from .routes import ModelRoute
from .settings import GatewaySettings
from .status import GatewayStatus
from .windows import UnknownWindow

_T = TypeVar("_T")

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
        asked: The parsed request; ``None`` if it could not be read, or the provider keeps its history.
        request: The same as a request of a conversation.
        turn: Its turn of the conversation; ``None`` without a conversation.
        why: The reason for sending the client's bytes, other than that they fit.
        without_recall: The bytes to send without the tools of recall, if those are offered.
    """

    body: bytes = attrs.field(repr=False)
    original: bytes = attrs.field(repr=False)
    asked: ModelRequest | None = attrs.field(default=None, repr=False)
    request: ConversationRequest | None = None
    turn: ConversationTurn | None = None
    why: str = ""
    without_recall: bytes | None = attrs.field(default=None, repr=False)

    @property
    def is_changed(self) -> bool:
        """Whether the bytes to send differ from the client's."""
        return self.body is not self.original


class Planner:
    """Makes the plans. Holds state: the conversations that are not compacted for now.

    If anything fails, the plan is to send the client's bytes.

    Args:
        settings: The gateway's settings.
        conversations: The gateway's conversations.
        status: Counts failures and reasons.
    """

    def __init__(self, settings: GatewaySettings, conversations: GatewayConversations, status: GatewayStatus) -> None:
        self._settings = settings
        self._conversations = conversations
        self._status = status
        self._alone: dict[str, None] = {}

    async def plan(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes = b""
    ) -> RequestPlan:
        """Return the plan of a request."""
        given = (route, body, headers, upstream, query)
        if self._settings.awaits and not route.counts:
            plan = await self._in_thread(partial(self._asked, *given))
            return plan if plan.request is None else await self._decided(plan, plan.request)
        return await self._in_thread(partial(self._decided_sync, *given))

    def _asked(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes = b""
    ) -> RequestPlan:
        """Return the plan to send the client's bytes, with the parsed request if it belongs to a conversation."""
        try:
            text = decoded(body, headers.get("content-encoding", ""), self._settings.max_body)
            asked = read_request(text, route.key)
            why = "signed" if has_signature(headers) else route.kept(asked.fields) or ("" if asked.messages else "no messages")
        except (Unreadable, TooLarge) as error:
            why = str(error) or "too large"
        except Exception as error:
            self._status.failed(f"reading: {type(error).__name__}")
            return RequestPlan(body=body, original=body, why=type(error).__name__)
        else:
            if not why:
                id, fields, messages = session_of(headers), asked.fields, asked.messages
                request = ConversationRequest(
                    route=route,
                    fields=fields,
                    messages=messages,
                    id=id,
                    upstream=upstream,
                    is_long=asks_for_long_context(headers),
                    tenant=tenant_of(headers, query),
                )
                return RequestPlan(body=body, original=body, asked=asked, request=request)
        self._status.passed(why)
        return RequestPlan(body=body, original=body, why=why)

    def _decided_sync(
        self, route: ModelRoute, body: bytes, headers: Mapping[str, str], upstream: str, query: bytes = b""
    ) -> RequestPlan:
        plan = self._asked(route, body, headers, upstream, query)
        if plan.request is None:
            return plan
        try:
            decide = self._conversations.trial if route.counts else self._conversations.turn_sync
            return self._with(plan, decide(plan.request))
        except Exception as error:
            return self._failed(plan, error)

    async def _decided(self, plan: RequestPlan, request: ConversationRequest) -> RequestPlan:
        try:
            turn = await self._conversations.turn(request)
            return await self._in_thread(partial(self._with, plan, turn))
        except Exception as error:
            return self._failed(plan, error)

    def _with(self, plan: RequestPlan, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn."""
        for failure in turn.failures:
            self._status.failed(failure.partition(";")[0])
        if self._settings.shadow or turn.session.id in self._alone:
            why = "shadow" if self._settings.shadow else "left alone"
            self._status.passed(why)
            return attrs.evolve(plan, turn=turn, why=why)
        return self._offering(attrs.evolve(plan, turn=turn, body=_body(plan, turn)))

    def _failed(self, plan: RequestPlan, error: Exception) -> RequestPlan:
        """Return the plan to send the client's bytes, because the turn failed."""
        if isinstance(error, UnknownWindow):
            self._status.passed("unknown window")
            return attrs.evolve(plan, why="unknown window")
        name = "" if plan.request is None else f"{plan.request.route.name}: "
        self._status.failed(f"{name}{type(error).__name__}")
        return attrs.evolve(plan, why=type(error).__name__)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await self._conversations.in_thread(work)

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent.

        Args:
            plan: The plan of the request that was too long.
            refused: The provider's error.
        """
        if plan.request is None or plan.request.route.counts or self._settings.shadow:
            return None
        try:
            await self._in_thread(partial(self._learn, plan, plan.request, refused))
            if self._settings.awaits:
                turn = await self._conversations.turn(plan.request, refused=refused)
            else:
                turn = await self._in_thread(partial(self._conversations.turn_sync, plan.request, refused=refused))
            shorter = attrs.evolve(
                plan, turn=turn, body=await self._in_thread(partial(_body, plan, turn)), why="", without_recall=None
            )
        except Exception as error:  # nothing may be removed, the window is still unknown, or the gateway has a fault
            self._status.failed(f"compacting harder: {type(error).__name__}")
            return None
        if self._alone.pop(turn.session.id, self) is None:
            self._status.left_alone(turn.session.id, False)
        return None if shorter.body == (plan.without_recall or plan.body) else self._offering(shorter)

    def _offering(self, plan: RequestPlan) -> RequestPlan:
        return plan if self._conversations.recalled is None else _with_recall(plan)

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request."""
        found = LengthError.read(refused) or LengthError()
        if found.window is None and plan.turn is None:  # no table has the model's window
            found = LengthError(window=max(1, len(plan.original) // _BYTES_OF_WINDOW))
        if found.window is None and refused.status_code == _TOO_MANY_BYTES:
            return  # a limit of a proxy on the way, perhaps; only this conversation is shortened
        self._conversations.learn_window(plan.turn, request, found, 0 if plan.turn is None else plan.turn.tokens)

    def leave_alone(self, session: str) -> None:
        """Stop compacting a conversation until its next length error."""
        while len(self._alone) >= self._settings.conversations:
            del self._alone[next(iter(self._alone))]
        self._alone[session] = None
        self._status.left_alone(session, True)


def _body(plan: RequestPlan, turn: ConversationTurn) -> bytes:
    """Return the bytes to send for a turn; the client's if nothing changes."""
    assert plan.asked is not None
    return plan.asked.with_messages(turn.messages) if turn.is_changed else plan.original


def _with_recall(plan: RequestPlan) -> RequestPlan:
    """Return the plan with the tools of recall in its body, if they can be offered."""
    if plan.asked is None or plan.request is None or plan.request.route.counts or not plan.is_changed:
        return plan
    body = offered(plan.body, plan.asked, plan.request.route.name)
    return plan if body is plan.body else attrs.evolve(plan, body=body, without_recall=plan.body)
