"""The state of a gateway as frozen snapshots, for the page at ``/``, ``/metrics`` and ``/healthz``.

It contains no texts but the newest summary of each conversation, and that only if nobody else uses the gateway.

>>> status = GatewayStatus(lambda: 0.0)
>>> status.passed("not JSON")
>>> status.snapshot().passed_through
{'not JSON': 1}
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..index import Edit, Replace, Together
from ..result import CompactionResult
from ..session import CacheBroken, Compacted, Event, Evicted, Overflowed, SaveFailed, StepFailed
from ..tokens import Usage
from .windows import known_prices

if TYPE_CHECKING:
    from .conversations import ConversationTurn

_MOST_CUTS: Final = 50
_MOST_REASONS: Final = 100
_SUMMARY_CHARS: Final = 8_000

SUMMED: Final[Mapping[str, str]] = {
    "cuts": "Compactions that changed a request",
    "tokens_saved": "Tokens of messages that were not sent",
    "tokens_lost": "Tokens that a provider had cached and had to read again after a cut",
    "dollars_saved": "Price of the tokens that were not sent, as cached tokens",
    "dollars_lost": "Price of the tokens that were read again after a cut, less that of cached ones",
    "prompt_tokens": "Tokens of requests, as the providers reported them",
    "cached_tokens": "Tokens of requests that were read from the providers' caches",
    "completion_tokens": "Tokens of answers, as the providers reported them",
    "seconds_total": "Seconds that the gateway took before it sent requests",
}
"""The figures that are summed up over all conversations, with their meanings."""

_COUNTED: Final = ("requests", "passed_through", "failures", "retries")
REPORTED_USAGE: Final = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""The figures of a provider's usage that are summed up and logged."""


@attrs.frozen(kw_only=True)
class Cut:
    """One compaction that changed the request of a conversation.

    Args:
        at: The time, in seconds since 1970.
        tokens_before: Tokens of the messages before.
        tokens_after: Tokens of the messages after.
        edits: The number of edits of each kind, by kind and reason.
        left: How many messages, turns and tool calls left the request.
        summary: What was sent instead; only of the newest cut, and only if texts may be shown.
        tokens_lost: Tokens that the provider had cached and had to read again.
    """

    at: float
    tokens_before: int
    tokens_after: int
    edits: Mapping[str, int]
    left: Mapping[str, int] = attrs.field(factory=dict[str, int])
    summary: str = ""
    tokens_lost: int = 0


@attrs.frozen(kw_only=True)
class ConversationStatus:
    """The state of one conversation.

    Args:
        id: The name of its session.
        route: The route of its last request.
        model: The model that the request named.
        upstream: The address of its upstream.
        window: The context window, in tokens.
        tokens: Tokens of the last request.
        requests: The number of requests.
        first_at: The time of the first request, in seconds since 1970.
        last_at: The time of the last one.
        cuts: The last compactions that changed a request.
        tokens_saved: Tokens of messages that were not sent, over all requests.
        tokens_lost: Tokens that the provider had cached and had to read again after a cut.
        dollars_saved: The price of the tokens that were not sent, as if the provider's cache had held them.
        dollars_lost: The price of reading tokens again, less that of cached ones; 0 if no table has the model's prices.
        prompt_tokens: Tokens of all requests, as the provider reported them.
        cached_tokens: Those of them that were read from its cache.
        completion_tokens: Tokens of all answers, as the provider reported them.
        seconds_added: The longest time between reading a request and sending it on.
        seconds_total: The sum of these times over all requests.
        failures: The number of failures of each kind.
        is_left_alone: Whether it is not compacted for now, because a compacted request was refused.
    """

    id: str
    route: str = ""
    model: str = ""
    upstream: str = ""
    window: int = 0
    tokens: int = 0
    requests: int = 0
    first_at: float = 0.0
    last_at: float = 0.0
    cuts: tuple[Cut, ...] = ()
    tokens_saved: int = 0
    tokens_lost: int = 0
    dollars_saved: float = 0.0
    dollars_lost: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds_added: float = 0.0
    seconds_total: float = 0.0
    failures: Mapping[str, int] = attrs.field(factory=dict[str, int])
    is_left_alone: bool = False


@attrs.frozen(kw_only=True)
class GatewaySnapshot:
    """The state of a gateway at one moment.

    Args:
        started_at: When it started, in seconds since 1970.
        at: The moment.
        is_shadow: Whether every request is sent unchanged.
        requests: Requests by route and the status that the client received.
        passed_through: Requests to a model that were sent unchanged, by reason.
        failures: Failures by kind; each such request was sent unchanged, or answered with the upstream's answer.
        retries: Further requests by reason: ``length``, ``refused`` or ``recall``.
        totals: Sums over all conversations since the start, by the name of the field of `ConversationStatus`.
        conversations: The conversations, the most recently used first.
        held: The number of conversations in memory.
        held_bytes: Bytes of their messages.
        windows: The windows that providers' reports corrected, in tokens, by model and upstream.
    """

    started_at: float
    at: float
    is_shadow: bool = False
    requests: Mapping[tuple[str, int], int] = attrs.field(factory=dict[tuple[str, int], int])
    passed_through: Mapping[str, int] = attrs.field(factory=dict[str, int])
    failures: Mapping[str, int] = attrs.field(factory=dict[str, int])
    retries: Mapping[str, int] = attrs.field(factory=dict[str, int])
    totals: Mapping[str, float] = attrs.field(factory=dict[str, float])
    conversations: tuple[ConversationStatus, ...] = ()
    held: int = 0
    held_bytes: int = 0
    windows: Mapping[str, int] = attrs.field(factory=dict[str, int])

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON-ready data."""
        data = attrs.asdict(self)
        data["requests"] = [
            {"route": route, "status": status, "count": count} for (route, status), count in self.requests.items()
        ]
        return data


def merged(snapshots: Sequence[GatewaySnapshot]) -> GatewaySnapshot:
    """Return the state of all workers as one; their conversations are different ones.

    >>> found = merged([GatewaySnapshot(started_at=0.0, at=9.0, held=2), GatewaySnapshot(started_at=1.0, at=9.0, held=3)])
    >>> found.held, found.started_at
    (5, 0.0)
    """
    first, *others = snapshots
    if not others:
        return first
    counts: dict[str, Any] = {name: Counter[Any]() for name in (*_COUNTED, "totals")}
    for name, count in counts.items():
        for each in snapshots:
            count.update(getattr(each, name))
    conversations = [conversation for each in snapshots for conversation in each.conversations]
    return attrs.evolve(
        first,
        **counts,
        started_at=min(each.started_at for each in snapshots),
        conversations=tuple(sorted(conversations, key=lambda each: -each.last_at)),
        held=sum(each.held for each in snapshots),
        held_bytes=sum(each.held_bytes for each in snapshots),
        windows={name: window for each in snapshots for name, window in each.windows.items()},
    )


class GatewayStatus:
    """Counts what happens. Holds state: counts, and up to ``limit`` conversations. Thread-safe.

    Args:
        clock: Returns seconds since 1970.
        limit: The most conversations to keep, >= 1.
        is_shadow: Whether every request is sent unchanged.
        shows_texts: Whether the summaries of cuts may be shown.

    Attributes:
        held: Returns the number of conversations in memory, and the bytes of their messages.
        windows: Returns the windows that were learned.
        left_alone: Returns the conversations that are not compacted for now.
    """

    def __init__(
        self, clock: Callable[[], float], *, limit: int = 1_000, is_shadow: bool = False, shows_texts: bool = False
    ) -> None:
        self._clock = clock
        self._shows_texts = shows_texts
        self._limit = limit
        self._is_shadow = is_shadow
        self._started_at = clock()
        self.held: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.windows: Callable[[], Mapping[str, int]] = dict
        self.left_alone: Callable[[], Collection[str]] = tuple
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Any]] = {name: Counter() for name in _COUNTED}
        self._totals: dict[str, float] = dict.fromkeys((*SUMMED, "requests"), 0)
        self._conversations: OrderedDict[str, ConversationStatus] = OrderedDict()
        self._cuts: dict[str, deque[Cut]] = {}
        self._broken: dict[str, int] = {}

    # ---------------------------------------------------------------- counting

    def answered(self, route: str, status: int) -> None:
        """Count an answer by its route and status."""
        with self._lock:
            self._counts["requests"][route, status] += 1

    def passed(self, why: str) -> None:
        """Count a request that was sent unchanged."""
        self._count("passed_through", why)

    def failed(self, what: str) -> None:
        """Count a failure."""
        self._count("failures", what)

    def retried(self, why: str) -> None:
        """Count a second request."""
        self._count("retries", why)

    def _count(self, what: str, name: str) -> None:
        """Count a name; past a hundred different names, count ``other``."""
        with self._lock:
            counts = self._counts[what]
            counts[name if name in counts or len(counts) < _MOST_REASONS else "other"] += 1

    def told(self, event: Event) -> None:
        """Note an event of a session; pass this method as ``on_event=``."""
        if isinstance(event, StepFailed | SaveFailed):
            self.failed(f"{event.failure.strategy}: {type(event.failure.error).__name__}")
        elif isinstance(event, Overflowed):
            self.failed("too long for the upstream")
        with self._lock:
            if isinstance(event, Compacted):
                result = event.result
                kinds = Counter(f"{type(edit).__name__}: {edit.reason}" for edit in result.edits)
                cut = Cut(
                    at=self._clock(),
                    tokens_before=result.before.tokens,
                    tokens_after=result.after.tokens,
                    edits=dict(kinds.most_common(20)),
                    left=_left(result),
                    summary="\n\n".join(_summaries(result.edits))[:_SUMMARY_CHARS] if self._shows_texts else "",
                )
                self._totals["cuts"] += 1
                cuts = self._cuts.setdefault(event.session, deque(maxlen=_MOST_CUTS))
                if cuts:
                    cuts[-1] = attrs.evolve(cuts[-1], summary="")
                cuts.append(cut)
            elif isinstance(event, CacheBroken):
                self._broken[event.session] = event.tokens
            elif isinstance(event, Evicted):
                for kept in (self._cuts, self._broken):
                    kept.pop(event.session, None)

    def reported(self, turn: ConversationTurn, *, is_changed: bool, seconds_added: float, usage: Usage | None) -> None:
        """Note a request of a conversation after its answer has ended.

        Args:
            turn: Its turn of the conversation.
            is_changed: Whether the turn's messages were sent, and not the client's.
            seconds_added: Seconds between reading the request and sending it on.
            usage: The usage that the provider reported, if any.
        """
        session, model = turn.session.id, turn.request.model
        with self._lock:
            now = self._clock()
            found = self._conversations.get(session) or ConversationStatus(id=session, first_at=now)
            lost = self._broken.pop(session, 0)
            if usage is not None:
                lost = min(lost, max(0, usage.prompt_tokens - usage.cached_tokens))
            if lost and (cuts := self._cuts.get(session)):
                cuts[-1] = attrs.evolve(cuts[-1], tokens_lost=lost)
            prices = known_prices(model)
            cached, written = (0.0, 0.0) if prices is None else (prices.cached, prices.write)
            saved = turn.left_out if is_changed else 0
            added: dict[str, float] = {
                "tokens_saved": saved,
                "tokens_lost": lost,
                "dollars_saved": saved * cached / 1_000_000,
                "dollars_lost": lost * max(0.0, written - cached) / 1_000_000,
                "seconds_total": seconds_added,
                **{name: 0 if usage is None else getattr(usage, name) for name in REPORTED_USAGE},
            }
            self._totals["requests"] += 1
            for name, value in added.items():
                self._totals[name] += value
            self._conversations[session] = attrs.evolve(
                found,
                **{name: getattr(found, name) + value for name, value in added.items()},
                route=turn.request.route.name,
                model=model,
                upstream=turn.request.upstream,
                window=turn.window,
                tokens=turn.tokens if usage is None else usage.prompt_tokens,
                requests=found.requests + 1,
                last_at=now,
                cuts=tuple(self._cuts.get(session, ())),
                seconds_added=max(found.seconds_added, seconds_added),
                failures=dict(Counter(found.failures) + Counter(turn.failures)),
            )
            self._conversations.move_to_end(session)
            while len(self._conversations) > self._limit:
                gone, _ = self._conversations.popitem(last=False)
                self._cuts.pop(gone, None)

    def forget(self, session: str) -> bool:
        """Remove a conversation, and return whether it was there."""
        with self._lock:
            found = session in self._conversations
            for kept in (self._conversations, self._cuts, self._broken):
                kept.pop(session, None)
        return found

    # ---------------------------------------------------------------- reading

    def snapshot(self) -> GatewaySnapshot:
        """Return the current state; O(conversations)."""
        (held, held_bytes), alone = self.held(), set(self.left_alone())
        with self._lock:
            return GatewaySnapshot(
                held=held,
                held_bytes=held_bytes,
                windows=dict(self.windows()),
                started_at=self._started_at,
                at=self._clock(),
                is_shadow=self._is_shadow,
                totals=dict(self._totals),
                **{name: dict(counts) for name, counts in self._counts.items()},
                conversations=tuple(
                    [attrs.evolve(each, is_left_alone=each.id in alone) for each in reversed(self._conversations.values())]
                ),
            )


def _left(result: CompactionResult) -> dict[str, int]:
    """Return how many messages, turns and tool calls left the request."""
    names = ("messages", "turns", "tool_calls")
    left = {name: getattr(result.before, name) - getattr(result.after, name) for name in names}
    return {name: count for name, count in left.items() if count > 0}


def _summaries(edits: Iterable[Edit]) -> Iterator[str]:
    """Yield the texts of the summaries that edits inserted."""
    for edit in edits:
        if isinstance(edit, Together):
            yield from _summaries(edit.edits)
        elif isinstance(edit, Replace):
            yield from (message.text for message in edit.messages)
