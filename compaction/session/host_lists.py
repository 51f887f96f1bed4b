"""The lists that a host may send next for one conversation, and how much of one a given list contains.

After a compaction, some hosts go on with their own list, and others with the view that was sent for it::

    source   u1 a1 u2 a2 u3             the host's own list
    view     [summary]   a2 u3          what the last compaction sent; it stands for all five messages

    next     u1 a1 u2 a2 u3 | a3 u4     continues the source
    next     [summary]   a2 u3 | a3 u4  continues the view
    next     u1 a1 u9                   shares two messages with the source: a fork

So a conversation is known by its source and its last few views. Each is a `HostList`, which grows with the source. A list is
looked up by its end: by the digests of its newest messages, or by one digest of all its messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import attrs

from ..formats import MessageFormat, same
from ..index import MessageIndex, Saved, known_key, lookup_key

NEWEST: Final = 3
"""The number of newest messages by which the end of a list is looked up."""

_MOST_VIEWS: Final = 4


@attrs.frozen
class ListEnd:
    """The end of a list, by which it is looked up."""

    newest: tuple[str, ...] = ()  # the digests of its newest messages
    whole: str = ""  # one digest of all its messages

    def then(self, digest: str) -> ListEnd:
        """Return the end of the list with one more message."""
        return ListEnd((*self.newest, digest)[-NEWEST:], lookup_key(self.whole, digest))

    def keys(self, space: str) -> tuple[Hashable, Hashable]:
        """Return its two keys in the directory of a pool, for a scope and format. They are not saved, so not hashed."""
        return (space, self.newest), (space, self.whole)


@attrs.frozen(eq=False, kw_only=True)
class HostList:
    """A list that a host may continue: the source, or a view with the source's later messages."""

    view: Sequence[Any] = ()  # empty for the source
    replaced: int = 0  # the number of source messages that the view stands for
    end: ListEnd = ListEnd()
    before: ListEnd = ListEnd()  # the end without the newest message
    is_specific: bool = True  # whether no other conversation can begin with this list

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> HostList:
        """Return the list of a new view; O(contents).

        A view that has no message of ours, such as the instructions and the last message, may also begin another conversation,
        unless three of its messages follow the beginning that it shares with the source.
        """
        own = set(map(id, source))
        has_ours = any(id(raw) not in own for raw in view)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False)))
        empty = cls(view=view, replaced=len(source), is_specific=has_ours or len(view) - shared >= NEWEST)
        return empty.followed_by(known_key(raw, format) for raw in view)

    def followed_by(self, digests: Iterable[str]) -> HostList:
        """Return the list with more messages, which have these digests, at its end."""
        before, end = self.before, self.end
        for digest in digests:
            before, end = end, end.then(digest)
        return attrs.evolve(self, before=before, end=end)

    def overlap(self, source: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> Overlap:
        """Return how much of this list, of a conversation with this source, a given list has from its beginning; O(that)."""
        if not self.view:
            shared = format.common_prefix(source, given)
            return Overlap(shared, shared)
        size = len(self.view)
        if len(given) < size or format.common_prefix(self.view, given) < size:
            return Overlap(0, 0)
        later = format.common_prefix(source[self.replaced :], given[size:])
        return Overlap(size + later, self.replaced + later, is_with_view=True)


@attrs.frozen
class Overlap:
    """The beginning that a given list shares with a list of a known conversation."""

    given: int  # the number of its messages
    sources: int  # the number of source messages that it contains, or that a view in it stands for
    is_with_view: bool = False


@attrs.frozen(eq=False, kw_only=True)
class KnownConversation:
    """A conversation as it was after the last call. Immutable, so the pool can read it while another call runs."""

    source: Sequence[Any]  # its messages. A running call may append to this list
    count: int  # the number of messages that belong to this record
    format: MessageFormat
    is_named: bool  # whether the host names the conversation by an id
    host_lists: tuple[HostList, ...]  # the source, and then the last few views
    saved: Saved | None = None  # the messages and edits; ``None`` before the first call

    def followed(self, index: MessageIndex) -> KnownConversation:
        """Return the record of an index as it is now. Cost: O(new messages), and O(view) after a compaction."""
        source, saved, format = index.columns.source, index.snapshot, index.format
        has_same_edits = self.saved is not None and same(self.saved.journal, saved.journal)
        only_grew = source is self.source or (
            not index.changes and format.common_prefix(self.source[: self.count], source) == self.count
        )
        known, start = (self.host_lists, self.count) if only_grew else ((HostList(),), 0)
        digests = [known_key(raw, format) for raw in source[start:]]
        own, *views = [each.followed_by(digests) for each in known]
        if saved.journal and not (only_grew and has_same_edits):
            views.append(HostList.of_view(index.messages(), source, format))
        lists = (own, *views[-_MOST_VIEWS:])
        return attrs.evolve(self, source=source, count=len(source), format=format, host_lists=lists, saved=saved)

    @property
    def specific_lists(self) -> list[HostList]:
        """The lists that only this conversation has: one that continues them belongs to it."""
        return [each for each in self.host_lists if each.is_specific or self.is_named]

    def overlap(self, given: Sequence[Any]) -> Overlap:
        """Return the overlap of a given list with one of the specific lists, the one that has most of the source."""
        source = self.source[: self.count]  # a copy, to which no running call appends
        found = [each.overlap(source, given, self.format) for each in self.specific_lists]
        return max(found, key=lambda each: each.sources)
