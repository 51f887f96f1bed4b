"""Forgetting: remove messages for good, with every edit that may contain something of them.

An edit used a message if it names the message's group, or a summary that replaced it, or if it wrote words that occur only in
the message: a summary may also quote messages that stay in the view.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ..errors import InputError
from ..formats import MessageFormat
from ..messages import Message
from .alignment import NEVER, digest_of
from .edits import Replace, named, renamed, written
from .fingerprints import fingerprint
from .journal import Applied, flat, inserted
from .marks import Marks, read_mark, text_digest
from .projection import Projection
from .state import Saved
from .sync import HostChanges, Plan, known_messages, read_before

_WORD: Final = re.compile(r"\w+")
_LEAST_CHARS: Final = 4  # of a word that counts as evidence if the words of the other messages are not known


@attrs.frozen(eq=False)
class Forgotten:
    """The messages and edits to remove, and the edits to keep.

    Args:
        count: The number of messages to forget.
        ordinals: Their places, and those of the messages removed with them, in order.
        kept: The edits that stay.
        undone: The edits that used the messages.
    """

    count: int
    ordinals: Sequence[int]
    kept: Sequence[Applied]
    undone: Sequence[Applied]

    def __bool__(self) -> bool:
        return bool(self.ordinals or self.undone)

    def plan(self, source: Sequence[Any]) -> Plan:
        """Return the plan for a host's list that lacks only the removed messages."""
        gone = set(self.ordinals)
        left = [ordinal for ordinal in range(len(source)) if ordinal not in gone]
        entries: list[tuple[Any, int | None]] = [(source[ordinal], ordinal) for ordinal in left]
        return Plan(entries, list(range(len(left))), set(), {}, len(left), HostChanges(removed=tuple(self.ordinals)))

    def marks(self, marks: Marks) -> Marks:
        """Return the marks without the undone summaries; they still end at the same message."""
        until = None if marks.until is None else _moved(marks.until, self.ordinals)
        return attrs.evolve(marks, until=until, known=marks.known - _digests(self.undone))


def forgotten(projection: Projection, journal: Sequence[Applied], given: Sequence[Any], format: MessageFormat) -> Forgotten:
    """Return the messages and edits to remove in order to forget these messages. O(contents).

    A group of which only a part is forgotten is removed whole if the rest would break more rules of the format.

    Args:
        projection: The conversation.
        journal: The edits that are currently applied.
        given: The messages.
        format: Decides which messages are the same.
    """
    wanted = {digest_of(raw, format, place) for place, raw in enumerate(given)}
    found = occurrences(projection, journal, given, format)
    source, groups = projection.source, {projection.grouping.group_of[ordinal] for ordinal in found}
    words = _words(source[ordinal] for ordinal in found)
    words -= _words(raw for ordinal, raw in enumerate(source) if ordinal not in found)

    def names(applied: Applied) -> bool:
        return not groups.isdisjoint(named(applied.edit))

    kept, undone = _judged(journal, names, wanted, words, start=min(found, default=0), format=format)
    whole = {ordinal for group in groups for ordinal in projection.ordinals(group)}
    goes = whole if whole != found and _breaks(source, found, format) > _breaks(source, whole, format) else found
    return Forgotten(len(found), sorted(goes), kept, undone)


def occurrences(projection: Projection, journal: Sequence[Applied], given: Sequence[Any], format: MessageFormat) -> set[int]:
    """Return the positions in the source of messages with the same content as these, in any version shown. O(contents)."""
    wanted = {digest_of(raw, format, place) for place, raw in enumerate(given)}
    known, _ = known_messages(projection, journal)
    return {each.position[0] for each in known if each.group >= 0 and _digest(each.raw, format) in wanted}


def saved_without(saved: Saved, given: Sequence[Any]) -> tuple[Saved, int]:
    """Return a state of fingerprints without these messages, and their number. O(state).

    The state does not contain the messages of a group or the words of the other messages. So more edits are removed than
    necessary: of those decided after a forgotten message was read, all that name a group which may contain it, or that wrote
    one of its words.
    """
    format = saved.format
    prints = {fingerprint(raw, format, place) for place, raw in enumerate(given)}
    gone = [ordinal for ordinal, each in enumerate(saved.fingerprints) if each in prints]
    ids = {id for applied in saved.journal for id in named(applied.edit)}
    firsts, others = ids.intersection(gone), [ordinal for ordinal in gone if ordinal not in ids]

    def may_name(applied: Applied) -> bool:
        groups = [id for id in named(applied.edit) if id >= 0]
        known = NEVER if applied.known is None else applied.known
        return not firsts.isdisjoint(groups) or any(min(groups, default=NEVER) <= ordinal < known for ordinal in others)

    words = {word for word in _words(given) if len(word) >= _LEAST_CHARS} if gone else set[str]()
    wanted = {digest_of(raw, format, place) for place, raw in enumerate(given)}
    kept, undone = _judged(saved.journal, may_name, wanted, words, start=min(gone, default=0), format=format)
    if not gone and not undone:
        return saved, 0
    new = {id: _moved(id, gone) for applied in kept for id in (*named(applied.edit), *inserted(applied))}
    lost = {*gone, *(id for applied in undone for id in inserted(applied))}
    return attrs.evolve(
        saved,
        fingerprints=[each for each in saved.fingerprints if each not in prints],
        journal=read_before(min(gone, default=NEVER), [_renamed(applied, new) for applied in kept]),
        pinned=[_moved(id, gone) for id in saved.pinned if id not in lost],
        believed_until=None if saved.believed_until is None else _moved(saved.believed_until, gone),
        known=saved.known - _digests(undone),
    ), len(gone)


def _judged(
    journal: Iterable[Applied],
    names: Callable[[Applied], bool],
    wanted: Collection[Any],
    words: set[str],
    *,
    start: int,
    format: MessageFormat,
) -> tuple[list[Applied], list[Applied]]:
    """Return the edits that stay and those that used a message, in order.

    Args:
        journal: The edits.
        names: Returns whether an edit names the group of such a message.
        wanted: Digests of the messages.
        words: Words that only these messages contain.
        start: The place of the first of them; an edit decided before it was read cannot contain its words.
        format: The format.
    """
    gone: set[int] = set()
    kept: list[Applied] = []
    undone: list[Applied] = []

    def quotes(applied: Applied) -> bool:
        messages = list(written(applied.edit))
        if any(_digest(message.raw, format) in wanted for message in messages):
            return True
        later = applied.known is None or applied.known > start
        return bool(words) and later and not words.isdisjoint(_words(map(_body, messages)))

    for applied in journal:
        if names(applied) or not gone.isdisjoint(named(applied.edit)) or quotes(applied):
            undone.append(applied)
            gone.update(inserted(applied))
        else:
            kept.append(applied)
    return kept, undone


def _body(message: Message) -> Any:
    """Return the content of a message, without its mark."""
    mark = read_mark(message)
    return message.raw if mark is None else mark.body


def _digest(raw: Any, format: MessageFormat) -> Any:
    """Return the hash of a message; ``None`` if it cannot be compared."""
    try:
        return digest_of(raw, format)
    except InputError:
        return None


def _breaks(source: Sequence[Any], gone: Collection[int], format: MessageFormat) -> int:
    return len(format.validate([raw for ordinal, raw in enumerate(source) if ordinal not in gone]))


def _words(raws: Iterable[Any]) -> set[str]:
    """Return the words in all texts of messages."""
    return {word for raw in raws for text in _texts(raw) for word in _WORD.findall(text.lower())}


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += cast("Sequence[Any]", one)
        elif one is not None and not isinstance(one, bool | int | float):
            yield repr(one)


def _renamed(applied: Applied, ids: Mapping[int, int]) -> Applied:
    edit = renamed(applied.edit, ids)
    assert edit is not None
    return attrs.evolve(applied, edit=edit, parts=tuple([_renamed(part, ids) for part in applied.parts]))


def _moved(place: int, gone: Sequence[int]) -> int:
    """Return a place, or a group's id, as it is after the messages at the places ``gone``, in order, were removed."""
    return place - bisect_left(gone, place) if place > 0 else place


def _digests(journal: Iterable[Applied]) -> set[str]:
    """Return the checksums of the summaries that edits wrote (see `Marks`)."""
    edits = [applied.edit for applied in flat(journal)]
    return {text_digest(message) for edit in edits if isinstance(edit, Replace) for message in edit.messages[:1]}
