"""What an index answers: sizes, groups, the projection, the journal. Reading changes nothing but caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .context import RunContext
from .edits import Edit, Refusal, Restore
from .errors import InputError
from .groups import GroupRecord, MessageGroup
from .journal import Applied
from .laws import protection, rewritable
from .messages import Message
from .metrics import Metrics
from .projection import Projection
from .refusals import Refusals

__all__ = ["COOLDOWNS_SECONDS", "IndexView"]

COOLDOWNS_SECONDS: Final = (60.0, 300.0, 900.0)
"""How long a strategy rests after one, two, and three or more failures in a row; the figures are Hermes Agent's."""


class IndexView:
    """The reading half of `MessageIndex`: all that triggers, selectors and strategies ask.

    Args:
        context: What surrounds the conversation; replace it at any time.
    """

    def __init__(self, context: RunContext | None = None) -> None:
        self.context = RunContext() if context is None else context
        self._seen_at: float | None = None
        self._gap_seconds = 0.0
        self._failures: dict[str, tuple[int, float]] = {}
        self._start()

    def _start(self) -> None:
        self._projection = Projection()
        self._journal: list[Applied] = []
        self._refusals = Refusals()
        self._view: list[Any] | None = []
        self._groups: tuple[MessageGroup, ...] | None = None

    def _note_time(self) -> None:
        now = self.context.now
        if now is None or now == self._seen_at:
            return
        self._gap_seconds = 0.0 if self._seen_at is None else max(0.0, now - self._seen_at)
        self._seen_at = now

    @property
    def included(self) -> Metrics:
        """Sizes of what the view shows."""
        return self._projection.included.metrics()

    @property
    def total(self) -> Metrics:
        """Sizes of the source, whatever was edited."""
        return self._projection.total.metrics()

    @property
    def tokens(self) -> int:
        """Tokens a request would send: the included messages and the context's overhead. What token triggers compare."""
        return self._projection.included.tokens + self.context.overhead_tokens

    @property
    def included_groups(self) -> tuple[MessageGroup, ...]:
        """The groups the view shows, in order: a snapshot, safe to edit while walking it. O(groups) after a change."""
        if self._groups is None:
            snapshot = self._projection.snapshot
            self._groups = tuple([record.snapshot or snapshot(record) for record in self._projection.records()])
        return self._groups

    def group(self, id: int) -> MessageGroup:
        """The group with that id, in the view or not.

        Raises:
            InputError: If there is none.
        """
        return self._projection.snapshot(self._record(id))

    def is_included(self, group: MessageGroup | int) -> bool:
        """Whether the view shows the group."""
        record = self._projection.by_id.get(group if isinstance(group, int) else group.id)
        return record is not None and not record.excluded

    def is_removable(self, group: MessageGroup) -> bool:
        """Whether `apply` would let the group leave: it is not system, pinned, pending, the newest or the last user's. O(1)."""
        return protection(self._projection, group.id) is None

    def protection(self, group: MessageGroup) -> str | None:
        """The law for which `apply` would not let the group leave by itself; ``None`` if it would. O(1)."""
        return protection(self._projection, group.id)

    def is_rewritable(self, group: MessageGroup) -> bool:
        """Whether `apply` would let the group's content be shortened: it is not pinned, pending or a summary of ours. O(1)."""
        return rewritable(self._projection, group.id)

    def messages(self) -> list[Any]:
        """The view: the caller's own objects where nothing changed, in message order; a new list each time.

        Built at most once after a change; appending extends it.
        """
        if self._view is None:
            self._view = [message.raw for message, _, _ in self._projection.messages()]
        return self._view.copy()

    def placed(self) -> list[tuple[Message, int]]:
        """Every message of the view with the id of its group, in message order; groups may interleave. O(messages)."""
        return [(message, record.id) for message, record, _ in self._projection.messages()]

    @property
    def source(self) -> Sequence[Any]:
        """Every message ever appended, as it was passed in."""
        return tuple(self._projection.source)

    @property
    def journal(self) -> tuple[Applied, ...]:
        """The edits in force, in order, each with the strategy that asked for it."""
        return tuple(self._journal)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in force, in order."""
        return self.edits_since(0)

    def edits_since(self, mark: int) -> tuple[Edit, ...]:
        """The edits made since the journal had ``mark`` entries and still in force, in order. O(their number)."""
        return tuple([applied.edit for applied in self._journal[mark:]])

    @property
    def edit_count(self) -> int:
        """How many edits are in force. O(1)."""
        return len(self._journal)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """What was not allowed since the last `mark`, with which a run begins, in order."""
        return tuple(self._refusals.noted)

    @property
    def turns_since_edit(self) -> int:
        """User turns that began since the last edit a strategy made; all of them if there was none."""
        turn = self._projection.grouping.turn
        edited = next((applied.turn for applied in reversed(self._journal) if not isinstance(applied.edit, Restore)), 0)
        return turn - edited

    @property
    def idle_seconds(self) -> float:
        """Seconds between the last two appends, or since the last one if that is longer; 0 without a clock."""
        now = self.context.now
        since = 0.0 if now is None or self._seen_at is None else now - self._seen_at
        return max(self._gap_seconds, since)

    def ordinals(self, group: MessageGroup | int) -> list[int]:
        """The places in the source, from 0, of the messages that a group stands for, through any number of rounds.

        Raises:
            InputError: If there is no such group.
        """
        return sorted(self._projection.stands_for(self._record(group if isinstance(group, int) else group.id)))

    def read_originals(self, group: MessageGroup | int) -> list[Message]:
        """What `originals` returns, as read."""
        return [self._projection.read[ordinal] for ordinal in self.ordinals(group)]

    def is_cooling(self, by: str) -> bool:
        """Whether a strategy failed so recently, by ``context.now``, that it should rest; never without a clock."""
        failed = self._failures.get(by)
        if failed is None or self.context.now is None:
            return False
        times, since = failed
        return self.context.now - since < COOLDOWNS_SECONDS[min(times, len(COOLDOWNS_SECONDS)) - 1]

    def note_failure(self, by: str) -> None:
        """Remember that a strategy failed now; each time in a row it rests longer."""
        if self.context.now is not None:
            times, _ = self._failures.get(by, (0, 0.0))
            self._failures[by] = (times + 1, self.context.now)

    def note_success(self, by: str) -> None:
        """Forget a strategy's failures."""
        self._failures.pop(by, None)

    def originals(self, group: MessageGroup | int) -> list[Any]:
        """The caller's messages that a group stands for, through any number of rounds; its own where nothing replaced them.

        Raises:
            InputError: If there is no such group.
        """
        return [self._projection.source[ordinal] for ordinal in self.ordinals(group)]

    def _record(self, id: int) -> GroupRecord:
        record = self._projection.by_id.get(id)
        if record is None:
            raise InputError(f"group {id}: there is no such group; take ids from included_groups or edits")
        return record
