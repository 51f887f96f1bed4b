"""The plan for a request to a model: the client's bytes, or the same request with the messages of a compacted conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from ..run import unawaited
from ..tokens import LengthError, is_quoted
from .bodies import ModelRequest, TooLarge, Unreadable, decoded, read_request
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
_T = TypeVar("_T")


@attrs.frozen(kw_only=True, eq=False)
class RequestPlan:
    """The plan for one request.

    Args:
        body: The bytes to send.
        original: The client's bytes.
        asked: The parsed body; ``None`` if it could not be read, or the provider keeps its history.
        request: The same, with what headers and address say.
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
        except (Unreadable, TooLarge) as error:
            return self._passed(unchanged, str(error) or "too large")
        except Exception as error:
            self._status.failed(f"reading: {type(error).__name__}")
            return attrs.evolve(unchanged, why=type(error).__name__)
        if why:
            return self._passed(unchanged, why)
        request = ConversationRequest(
            route=route,
            fields=asked.fields,
            messages=asked.messages,
            id=session_of(headers),
            upstream=upstream,
            is_long=asks_for_long_context(headers),
            tenant=tenant_of(headers, query),
        )
        return attrs.evolve(unchanged, asked=asked, request=request)

    def _passed(self, plan: RequestPlan, why: str, turn: ConversationTurn | None = None) -> RequestPlan:
        """Return the plan to send the client's bytes, and count the reason."""
        self._status.passed(why)
        return attrs.evolve(plan, why=why, turn=turn)

    async def plan(self, read: RequestPlan) -> RequestPlan:
        """Return the plan of a request that was read."""
        request = read.request
        if request is None:
            return read
        return await self._driven(partial(self._planned, read, request), may_await=not request.route.counts)

    async def _driven(self, work: Callable[[bool], Coroutine[Any, Any, _T]], *, may_await: bool = True) -> _T:
        """Run work in a thread, because it uses the processor; in the event loop if the strategy may await a model.

        It is called with whether nothing may be awaited.
        """
        if self._settings.awaits and may_await:
            return await work(False)
        return await self._conversations.in_thread(lambda: unawaited(work(True)))

    async def _planned(self, plan: RequestPlan, request: ConversationRequest, sync: bool) -> RequestPlan:
        conversations = self._conversations
        try:
            turn = conversations.trial(request) if request.route.counts else await conversations.turn(request, sync=sync)
            if turn.result is None:  # the strategy raised; the failures in a result are events, which are counted as such
                for failure in turn.failures:
                    self._status.failed(failure)
            if self._settings.shadow or turn.session.id in self._alone:
                return self._passed(plan, "shadow" if self._settings.shadow else "left alone", turn)
            return self._sending(plan, request, turn)
        except UnknownWindow:
            return self._passed(plan, "unknown window")
        except Exception as error:
            self._status.failed(f"{request.route.name}: {type(error).__name__}")
            return attrs.evolve(plan, why=type(error).__name__)

    def _sending(self, plan: RequestPlan, request: ConversationRequest, turn: ConversationTurn) -> RequestPlan:
        """Return the plan to send the messages of a turn, with the tools of recall if they can be offered."""
        asked = plan.asked
        if asked is None or not turn.is_changed:
            return attrs.evolve(plan, turn=turn, body=plan.original, why="", without_recall=None)
        body = with_tools = asked.with_messages(turn.messages)
        if self._conversations.recalled is not None and not request.route.counts:
            with_tools = offered(body, asked, request.route.name)
        return attrs.evolve(plan, turn=turn, body=with_tools, why="", without_recall=None if with_tools is body else body)

    async def shorter(self, plan: RequestPlan, refused: UpstreamRefusal) -> RequestPlan | None:
        """Return the plan after a length error; ``None`` if nothing shorter can be sent."""
        request = plan.request
        if request is None or request.route.counts or self._settings.shadow:
            return None
        try:
            await self._conversations.in_thread(partial(self._learn, plan, request, refused))
            shorter = await self._driven(partial(self._shortened, plan, request, refused))
        except Exception as error:  # nothing may be removed, the window is still unknown, or the gateway has a fault
            self._status.failed(f"compacting harder: {type(error).__name__}")
            return None
        if shorter.turn is not None:
            self._alone.pop(shorter.turn.session.id, None)
        return None if shorter.bare == plan.bare else shorter

    async def _shortened(
        self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal, sync: bool
    ) -> RequestPlan:
        turn = await self._conversations.turn(request, refused=refused, sync=sync)
        return self._sending(plan, request, turn)

    def _learn(self, plan: RequestPlan, request: ConversationRequest, refused: UpstreamRefusal) -> None:
        """Learn the window of a refused request, for all clients: but not from an error that quotes this one's words."""
        if is_quoted(refused.body, json.dumps(request.fields, ensure_ascii=False, default=str)):
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
