"""`BeforeCall`, to which a session returns if a call is interrupted, at whatever point."""

from __future__ import annotations

import attrs

from ..formats import same
from ..index import MessageIndex, Saved, UselessRuns
from ..result import CompactionResult
from .events import LastSent


@attrs.frozen(kw_only=True, eq=False)
class SessionState:
    """The state of a session besides its index. Only a call replaces it by another one."""

    revisions: tuple[str, ...]
    seen: int = 0  # the number of messages that the conversation had at the last view
    sent_tokens: int = 0  # tokens of the last view by our count, without overhead
    compactions: int = 0
    last: CompactionResult | None = None  # of the last run; ``None`` again after messages were forgotten


@attrs.frozen(eq=False)
class BeforeCall:
    """A session before a call."""

    saved: Saved  # of the index; its list of messages may have grown since
    count: int  # the number of messages
    state: SessionState
    useless: UselessRuns  # apart from the state, because `CompactionSession.reconfigure` replaces it too
    last_sent: LastSent

    @property
    def snapshot(self) -> Saved:
        """Its messages and edits, in a list of its own. O(messages)."""
        messages = self.saved.messages
        return attrs.evolve(self.saved, messages=None if messages is None else messages[: self.count])

    def has_index(self, index: MessageIndex) -> bool:
        """Whether an index has the messages, edits, pins and marks of before the call. O(edits).

        Most exceptions leave the index as it was: messages are read before they are added, and a failed run undoes its edits.
        """
        now, then = index.snapshot, self.saved
        has_its_messages = now.messages is then.messages and len(index.columns.source) == self.count
        has_its_marks = (now.pinned, now.believed_until, now.own) == (then.pinned, then.believed_until, then.own)
        return has_its_messages and has_its_marks and same(now.journal, then.journal)
