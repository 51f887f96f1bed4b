"""The state of a gateway as frozen snapshots, for the page at ``/``, ``/metrics`` and ``/healthz``.

It contains no texts but the newest summary of each conversation, and that only if nobody else uses the gateway.

>>> from compaction import presets
>>> status = GatewayStatus(GatewaySettings(strategy=presets.adaptive))
>>> status.passed("not JSON")
>>> status.snapshot(held=(0, 0), windows={}, left_alone=()).passed_through
{'not JSON': 1}
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from ..index import Replace, simple_edits
from ..result import CompactionResult
from ..session import CacheBroken, Compacted, Event, Evicted, Overflowed, SaveFailed, StepFailed
from ..tokens import Usage
from .settings import GatewaySettings
from .windows import known_prices

if TYPE_CHECKING:
    from .conversations import ConversationTurn

_MOST_CUTS: Final = 50
_MOST_KINDS: Final = 20
_MOST_REASONS: Final = 100
_SUMMARY_CHARS: Final = 8_000

_LEAVING: Final = ("messages", "turns", "tool_calls")
_COUNTED: Final = ("requests", "passed_through", "failures", "retries")
REPORTED_USAGE: Final = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""The figures of a provider's usage that are summed up and logged."""


def _figure(meaning: str) -> Any:
    """Return the field of a figure; ``/metrics`` shows its meaning."""
    return attrs.field(default=0, metadata={"meaning": meaning})


@attrs.frozen(kw_only=True)
class RequestFigures:
    """Figures of requests, added up for each conversation and for all. Dollars are 0 if no table has the model's prices."""

    tokens_saved: int = _figure("Tokens of messages that were not sent")
    tokens_lost: int = _figure("Tokens that a provider had cached and had to read again after a cut")
    dollars_saved: float = _figure("Price of the tokens that were not sent, as cached tokens")
    dollars_lost: float = _figure("Price of the tokens that were read again after a cut, less that of cached ones")
    prompt_tokens: int = _figure("Tokens of requests, as the providers reported them")
    cached_tokens: int = _figure("Tokens of requests that were read from the providers' caches")
    completion_tokens: int = _figure("Tokens of answers, as the providers reported them")
    seconds_total: float = _figure("Seconds that the gateway took before it sent requests")

    def plus(self, more: RequestFigures) -> Self:
        """Return the object with the figures of further requests added."""
        return attrs.evolve(self, **{name: getattr(self, name) + value for name, value in attrs.asdict(more).items()})


TOTALS: Final[Mapping[str, str]] = {
    "cuts": "Compactions that changed a request",
    **{field.name: field.metadata["meaning"] for field in attrs.fields(RequestFigures)},
}
"""The totals that ``/metrics`` shows, with their meanings."""


@attrs.frozen(kw_only=True)
class Cut:
    """One compaction that changed the request of a conversation."""

    at: float  # in seconds since 1970
    tokens_before: int  # of the messages
    tokens_after: int
    edits: Mapping[str, int]  # the number of edits of each kind, by kind and reason
    left: Mapping[str, int] = attrs.field(factory=dict[str, int])  # how many messages, turns and tool calls left the request
    summary: str = ""  # what was sent instead; only of the newest cut, and only if texts may be shown
    tokens_lost: int = 0  # that the provider had cached and had to read again


@attrs.frozen(kw_only=True)
class ConversationStatus(RequestFigures):
    """The state of one conversation, with the figures of all its requests."""

    id: str  # the name of its session
    route: str = ""  # of its last request, as are the next five
    model: str = ""  # that the request named
    upstream: str = ""  # its address
    window: int = 0  # in tokens
    tokens: int = 0
    last_at: float = 0.0  # in seconds since 1970
    first_at: float = 0.0  # the time of the first request
    requests: int = 0
    cuts: tuple[Cut, ...] = ()  # the last ones
    most_seconds: float = 0.0  # between reading a request and sending it on
    failures: Mapping[str, int] = attrs.field(factory=dict[str, int])  # by kind
    is_left_alone: bool = False  # not compacted for now, because a compacted request was refused


@attrs.frozen(kw_only=True)
class GatewaySnapshot:
    """The state of a gateway at one moment."""

    started_at: float  # in seconds since 1970
    at: float  # the moment
    is_shadow: bool = False  # whether every request is sent unchanged
    # requests by route and the client's status
    requests: Mapping[tuple[str, int], int] = attrs.field(factory=dict[tuple[str, int], int])
    passed_through: Mapping[str, int] = attrs.field(factory=dict[str, int])  # requests to a model sent unchanged, by reason
    failures: Mapping[str, int] = attrs.field(factory=dict[str, int])  # by kind; the client got an answer, or the upstream's
    retries: Mapping[str, int] = attrs.field(factory=dict[str, int])  # further requests: ``length``, ``refused`` or ``recall``
    totals: Mapping[str, float] = attrs.field(factory=dict[str, float])  # of requests, cuts and the fields of `RequestFigures`
    conversations: tuple[ConversationStatus, ...] = ()  # the most recently used first
    held: int = 0  # conversations in memory
    held_bytes: int = 0  # of their messages
    windows: Mapping[str, int] = attrs.field(factory=dict[str, int])  # that providers corrected, by model and upstream

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON-ready data."""
        data = attrs.asdict(self)
        rows = self.requests.items()
        data["requests"] = [{"route": route, "status": status, "count": count} for (route, status), count in rows]
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
    """Counts what happens. Holds state: counts, and as many conversations as the settings allow. Thread-safe."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._started_at = settings.clock()
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Any]] = {name: Counter() for name in _COUNTED}
        self._figures = RequestFigures()  # of all requests of conversations, as are the next two
        self._request_count = self._cut_count = 0
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

    @contextlib.contextmanager
    def counting_failures(self, of: str) -> Generator[None]:
        """Run a block; if it raises, count that, and continue after it."""
        try:
            yield
        except Exception as error:
            self.failed(f"{of}: {type(error).__name__}")

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
        replaced = [part for edit in result.edits for part in simple_edits(edit) if isinstance(part, Replace)]
        summaries = [message.text for part in replaced for message in part.messages]
        cut = Cut(
            at=self._settings.clock(),
            tokens_before=result.before.tokens,
            tokens_after=result.after.tokens,
            edits=dict(kinds.most_common(_MOST_KINDS)),
            left={
                name: count for name in _LEAVING if (count := getattr(result.before, name) - getattr(result.after, name)) > 0
            },
            # all users of a token see the page
            summary="\n\n".join(summaries)[:_SUMMARY_CHARS] if self._settings.token is None else "",
        )
        self._cut_count += 1
        cuts = self._cuts.setdefault(session, deque(maxlen=_MOST_CUTS))
        if cuts:
            cuts[-1] = attrs.evolve(cuts[-1], summary="")
        cuts.append(cut)

    def note_request(self, turn: ConversationTurn, *, is_changed: bool, seconds: float, usage: Usage | None) -> None:
        """Note a request after its answer has ended: its turn, whether that was sent, and the seconds before it was sent."""
        session = turn.session.id
        with self._lock:
            now = self._settings.clock()
            known = self._conversations.get(session) or ConversationStatus(id=session, first_at=now)
            lost = self._broken.pop(session, 0)
            if usage is not None:
                lost = min(lost, max(0, usage.prompt_tokens - usage.cached_tokens))
            if lost and (cuts := self._cuts.get(session)):
                cuts[-1] = attrs.evolve(cuts[-1], tokens_lost=lost)
            added = _figures_of(turn.request.model, turn.left_out if is_changed else 0, lost, seconds, usage)
            self._request_count += 1
            self._figures = self._figures.plus(added)
            self._conversations[session] = attrs.evolve(
                known.plus(added),
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
            while len(self._conversations) > self._settings.most_conversations:
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
        """Return the current state, given what `GatewayConversations` has in memory; O(conversations)."""
        alone = set(left_alone)
        with self._lock:
            newest_first = reversed(self._conversations.values())
            return GatewaySnapshot(
                held=held[0],
                held_bytes=held[1],
                windows=dict(windows),
                started_at=self._started_at,
                at=self._settings.clock(),
                is_shadow=self._settings.shadow,
                totals={"cuts": self._cut_count, **attrs.asdict(self._figures), "requests": self._request_count},
                conversations=tuple([attrs.evolve(each, is_left_alone=each.id in alone) for each in newest_first]),
                **{name: dict(counts) for name, counts in self._counts.items()},
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
