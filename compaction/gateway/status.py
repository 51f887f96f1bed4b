"""The state of a gateway as frozen snapshots, for the page at ``/``, ``/metrics`` and ``/healthz``.

It contains no texts but the newest summary of each conversation, and that only if nobody else uses the gateway.

>>> status = GatewayStatus(lambda: 0.0, limit=10, is_shadow=False, shows_texts=True)
>>> status.passed("not JSON")
>>> status.snapshot(held=(0, 0), windows={}, left_alone=()).passed_through
{'not JSON': 1}
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..index import Edit, Replace, simple_edits
from ..result import CompactionResult
from ..session import CacheBroken, Compacted, Event, Evicted, Overflowed, SaveFailed, StepFailed
from ..tokens import Usage
from .windows import known_prices

if TYPE_CHECKING:
    from .conversations import ConversationTurn

_MOST_CUTS: Final = 50
_MOST_KINDS: Final = 20
_MOST_REASONS: Final = 100
_SUMMARY_CHARS: Final = 8_000

_COUNTED: Final = ("requests", "passed_through", "failures", "retries")
REPORTED_USAGE: Final = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""The figures of a provider's usage that are summed up and logged."""


def _figure(meaning: str) -> Any:
    """Return the field of a figure; ``/metrics`` shows its meaning."""
    return attrs.field(default=0, metadata={"meaning": meaning})


@attrs.frozen(kw_only=True)
class RequestFigures:
    """Figures of requests, added up for each conversation and for all.

    Dollars are 0 if no table has the model's prices.
    """

    tokens_saved: int = _figure("Tokens of messages that were not sent")
    tokens_lost: int = _figure("Tokens that a provider had cached and had to read again after a cut")
    dollars_saved: float = _figure("Price of the tokens that were not sent, as cached tokens")
    dollars_lost: float = _figure("Price of the tokens that were read again after a cut, less that of cached ones")
    prompt_tokens: int = _figure("Tokens of requests, as the providers reported them")
    cached_tokens: int = _figure("Tokens of requests that were read from the providers' caches")
    completion_tokens: int = _figure("Tokens of answers, as the providers reported them")
    seconds_total: float = _figure("Seconds that the gateway took before it sent requests")

    def plus(self, more: RequestFigures) -> dict[str, Any]:
        """Return the sums of these figures and others, by name."""
        return {field.name: getattr(self, field.name) + getattr(more, field.name) for field in attrs.fields(RequestFigures)}


TOTALS: Final[Mapping[str, str]] = {
    "cuts": "Compactions that changed a request",
    **{field.name: field.metadata["meaning"] for field in attrs.fields(RequestFigures)},
}
"""The totals that ``/metrics`` shows, with their meanings."""


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
class ConversationStatus(RequestFigures):
    """The state of one conversation, with the figures of all its requests.

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
        most_seconds: The longest time between reading a request and sending it on.
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
    most_seconds: float = 0.0
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
        totals: Sums since the start: the number of requests and of cuts, and the fields of `RequestFigures`.
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
    """

    def __init__(self, clock: Callable[[], float], *, limit: int, is_shadow: bool, shows_texts: bool) -> None:
        self._clock = clock
        self._shows_texts = shows_texts
        self._limit = limit
        self._is_shadow = is_shadow
        self._started_at = clock()
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Any]] = {name: Counter() for name in _COUNTED}
        self._requests = self._cut_count = 0
        self._figures = RequestFigures()  # of all requests
        self._conversations: OrderedDict[str, ConversationStatus] = OrderedDict()
        self._cuts: dict[str, deque[Cut]] = {}  # by conversation, the last ones
        self._broken: dict[str, int] = {}  # tokens that left the cache with the newest cut, until the next request is noted

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

    def note_event(self, event: Event) -> None:
        """Note an event of a session; pass this method as ``on_event=``."""
        if isinstance(event, StepFailed | SaveFailed):
            self.failed(f"{event.failure.strategy}: {type(event.failure.error).__name__}")
        elif isinstance(event, Overflowed):
            self.failed("too long for the upstream")
        with self._lock:
            if isinstance(event, Compacted):
                self._note_cut(event.session, event.result)
            elif isinstance(event, CacheBroken):
                self._broken[event.session] = event.tokens
            elif isinstance(event, Evicted):
                for kept in (self._cuts, self._broken):
                    kept.pop(event.session, None)

    def _note_cut(self, session: str, result: CompactionResult) -> None:
        kinds = Counter(f"{type(edit).__name__}: {edit.reason}" for edit in result.edits)
        cut = Cut(
            at=self._clock(),
            tokens_before=result.before.tokens,
            tokens_after=result.after.tokens,
            edits=dict(kinds.most_common(_MOST_KINDS)),
            left=_left(result),
            summary="\n\n".join(_summaries(result.edits))[:_SUMMARY_CHARS] if self._shows_texts else "",
        )
        self._cut_count += 1
        cuts = self._cuts.setdefault(session, deque(maxlen=_MOST_CUTS))
        if cuts:
            cuts[-1] = attrs.evolve(cuts[-1], summary="")
        cuts.append(cut)

    def note_request(self, turn: ConversationTurn, *, is_changed: bool, seconds: float, usage: Usage | None) -> None:
        """Note a request of a conversation after its answer has ended.

        Args:
            turn: Its turn of the conversation.
            is_changed: Whether the turn's messages were sent, and not the client's.
            seconds: Seconds between reading the request and sending it on.
            usage: The usage that the provider reported, if any.
        """
        session = turn.session.id
        with self._lock:
            now = self._clock()
            known = self._conversations.get(session) or ConversationStatus(id=session, first_at=now)
            lost = self._broken.pop(session, 0)
            if usage is not None:
                lost = min(lost, max(0, usage.prompt_tokens - usage.cached_tokens))
            if lost and (cuts := self._cuts.get(session)):
                cuts[-1] = attrs.evolve(cuts[-1], tokens_lost=lost)
            added = _figures_of(turn.request.model, turn.left_out if is_changed else 0, lost, seconds, usage)
            self._requests += 1
            self._figures = RequestFigures(**self._figures.plus(added))
            self._conversations[session] = attrs.evolve(
                known,
                **known.plus(added),
                route=turn.request.route.name,
                model=turn.request.model,
                upstream=turn.request.upstream,
                window=turn.window,
                tokens=turn.tokens if usage is None else usage.prompt_tokens,
                requests=known.requests + 1,
                last_at=now,
                cuts=tuple(self._cuts.get(session, ())),
                most_seconds=max(known.most_seconds, seconds),
                failures=dict(Counter(known.failures) + Counter(turn.failures)),
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

    def snapshot(self, *, held: tuple[int, int], windows: Mapping[str, int], left_alone: Collection[str]) -> GatewaySnapshot:
        """Return the current state; O(conversations).

        Args:
            held: The number of conversations in memory, and the bytes of their messages.
            windows: The windows that were learned.
            left_alone: The conversations that are not compacted for now.
        """
        alone = set(left_alone)
        with self._lock:
            return GatewaySnapshot(
                held=held[0],
                held_bytes=held[1],
                windows=dict(windows),
                started_at=self._started_at,
                at=self._clock(),
                is_shadow=self._is_shadow,
                totals={"cuts": self._cut_count, **attrs.asdict(self._figures), "requests": self._requests},
                **{name: dict(counts) for name, counts in self._counts.items()},
                conversations=tuple(
                    [attrs.evolve(each, is_left_alone=each.id in alone) for each in reversed(self._conversations.values())]
                ),
            )


def _figures_of(model: str, saved: int, lost: int, seconds: float, usage: Usage | None) -> RequestFigures:
    """Return the figures of one request: tokens saved and lost, their prices, and what its provider reported."""
    prices = known_prices(model)
    cached, written = (0.0, 0.0) if prices is None else (prices.cached, prices.write)
    return RequestFigures(
        tokens_saved=saved,
        tokens_lost=lost,
        dollars_saved=saved * cached / 1_000_000,
        dollars_lost=lost * max(0.0, written - cached) / 1_000_000,
        seconds_total=seconds,
        **{name: 0 if usage is None else getattr(usage, name) for name in REPORTED_USAGE},
    )


def _left(result: CompactionResult) -> dict[str, int]:
    """Return how many messages, turns and tool calls left the request."""
    names = ("messages", "turns", "tool_calls")
    left = {name: getattr(result.before, name) - getattr(result.after, name) for name in names}
    return {name: count for name, count in left.items() if count > 0}


def _summaries(edits: Iterable[Edit]) -> Iterator[str]:
    """Yield the texts of the summaries that edits inserted."""
    for part in (part for edit in edits for part in simple_edits(edit)):
        if isinstance(part, Replace):
            yield from (message.text for message in part.messages)
