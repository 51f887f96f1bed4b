"""Forgetting messages for good: which edits knew them, and what stays of a conversation without them.

An edit knew a message if it names the message's group or a summary that stands for it, or if it wrote words that only the
message says: a summary may quote what stays in the view beside it.
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
_LEAST_CHARS: Final = 4  # of a word that betrays a message, where nobody knows which words the others have


@attrs.frozen(eq=False)
class Forgotten:
    """The messages and edits that go, and those that stay.

    Args:
        count: The number of messages that are forgotten.
        ordinals: Their places, and those of the messages that leave with them, in order.
        kept: The edits that may stay.
        undone: The edits that knew them.
    """

    count: int
    ordinals: Sequence[int]
    kept: Sequence[Applied]
    undone: Sequence[Applied]

    def __bool__(self) -> bool:
        return bool(self.ordinals or self.undone)

    def plan(self, source: Sequence[Any]) -> Plan:
        """Return the plan of a host's list that lacks only what goes."""
        gone = set(self.ordinals)
        left = [ordinal for ordinal in range(len(source)) if ordinal not in gone]
        entries: list[tuple[Any, int | None]] = [(source[ordinal], ordinal) for ordinal in left]
        return Plan(entries, list(range(len(left))), set(), {}, len(left), HostChanges(removed=tuple(self.ordinals)))

    def marks(self, marks: Marks) -> Marks:
        """Return marks that know no summary which is undone, and end at the same message as before."""
        until = None if marks.until is None else _moved(marks.until, self.ordinals)
        return attrs.evolve(marks, until=until, known=marks.known - _digests(self.undone))


def forgotten(projection: Projection, journal: Sequence[Applied], given: Sequence[Any], format: MessageFormat) -> Forgotten:
    """Return what goes with these messages. O(contents).

    A group of which only a part goes leaves whole if the rest would break more rules of the format.

    Args:
        projection: The conversation.
        journal: The edits in force.
        given: The messages.
        format: Says which messages are the same.
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
    """Return the places in the source of the messages that say the same as these, now or in the view. O(contents)."""
    wanted = {digest_of(raw, format, place) for place, raw in enumerate(given)}
    known, _ = known_messages(projection, journal)
    return {each.position[0] for each in known if each.group >= 0 and _digest(each.raw, format) in wanted}


def saved_without(saved: Saved, given: Sequence[Any]) -> tuple[Saved, int]:
    """Return a state of fingerprints without these messages, and how many they are. O(state).

    Nobody knows which messages a saved group has, or which words the others have. So more edits go than need to: of those that
    were decided after one of the messages was read, all that name a group which may have it, or that wrote a word of it.
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
    new = {id: _moved(id, gone) for id in _ids(kept)}
    lost = {*gone, *_made(undone)}
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
    """Return the edits that may stay, and those that knew a message, in order.

    Args:
        journal: The edits.
        names: Whether an edit names the group of a message.
        wanted: Digests of the messages.
        words: Words that betray them.
        start: The place of the first of them; what was decided before that was read cannot have their words.
        format: The format.
    """
    gone: set[int] = set()
    kept: list[Applied] = []
    undone: list[Applied] = []

    def betrays(applied: Applied) -> bool:
        messages = list(written(applied.edit))
        if any(_digest(message.raw, format) in wanted for message in messages):
            return True
        later = applied.known is None or applied.known > start
        return bool(words) and later and not words.isdisjoint(_words(map(_body, messages)))

    for applied in journal:
        if names(applied) or not gone.isdisjoint(named(applied.edit)) or betrays(applied):
            undone.append(applied)
            gone.update(inserted(applied))
        else:
            kept.append(applied)
    return kept, undone


def _body(message: Message) -> Any:
    """Return what a message says, without its mark."""
    mark = read_mark(message)
    return message.raw if mark is None else mark.body


def _digest(raw: Any, format: MessageFormat) -> Any:
    """Return the digest of a message; ``None`` if it cannot be compared, and so is not one that was given."""
    try:
        return digest_of(raw, format)
    except InputError:
        return None


def _breaks(source: Sequence[Any], gone: Collection[int], format: MessageFormat) -> int:
    return len(format.validate([raw for ordinal, raw in enumerate(source) if ordinal not in gone]))


def _words(raws: Iterable[Any]) -> set[str]:
    """Return the words that messages have anywhere."""
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


def _ids(journal: Iterable[Applied]) -> set[int]:
    return {id for applied in journal for id in (*named(applied.edit), *inserted(applied))}


def _made(journal: Iterable[Applied]) -> list[int]:
    return [id for applied in journal for id in inserted(applied)]


def _renamed(applied: Applied, ids: Mapping[int, int]) -> Applied:
    edit = renamed(applied.edit, ids)
    assert edit is not None
    return attrs.evolve(applied, edit=edit, parts=tuple([_renamed(part, ids) for part in applied.parts]))


def _moved(place: int, gone: Sequence[int]) -> int:
    """Return a place, or a group's id, once the messages at these places, in order, are gone."""
    return place - bisect_left(gone, place) if place > 0 else place


def _digests(journal: Iterable[Applied]) -> set[str]:
    """Return the digests by which the summaries of edits are believed, see `Marks`."""
    edits = [applied.edit for applied in flat(journal)]
    return {text_digest(message) for edit in edits if isinstance(edit, Replace) for message in edit.messages[:1]}
