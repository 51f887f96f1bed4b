"""An index as JSON-ready data: its messages or their fingerprints, and its edits.

Edits name groups by id, and ids are ordinals, so the edits apply again to the same messages wherever they are. Inserted
messages are wire dictionaries. Nothing is evaluated or unpickled; what does not have the expected shape is a `StateError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ..errors import StateError
from ..formats import MessageFormat, resolve
from ..json_data import finite_number, natural_number, shown, too_deep
from ..messages import Message
from .alignment import Known, align
from .edits import Drop, Edit, Replace, Restore, Rewrite, Together
from .fingerprints import fingerprint
from .journal import Applied, inserted
from .projection import Projection

VERSION: Final = 1


def applied_to_dict(applied: Applied, format: MessageFormat) -> dict[str, Any]:
    """One entry of the journal."""
    entry = {"edit": _edit_to_dict(applied.edit, format), "by": applied.by, "turn": applied.turn, "known": applied.known}
    made = inserted(applied)
    return {**entry, "made": made} if made else entry


def _edit_to_dict(edit: Edit, format: MessageFormat) -> dict[str, Any]:
    def wire(message: Message | None) -> Any:
        return None if message is None else format.to_wire(message.raw)

    data: dict[str, Any] = {"type": type(edit).__name__.lower(), "reason": edit.reason}
    if isinstance(edit, Together):
        return {**data, "edits": [_edit_to_dict(part, format) for part in edit.edits]}
    if isinstance(edit, Rewrite):
        return {**data, "group": edit.group, "messages": [wire(message) for message in edit.messages]}
    data["groups"] = list(edit.groups)
    if isinstance(edit, Replace):
        data["messages"] = [wire(message) for message in edit.messages]
    if isinstance(edit, Drop) and edit.allow_system:
        data["allow_system"] = True
    return data


@attrs.frozen(kw_only=True)
class Saved:
    """What is saved of an index.

    Args:
        format: The wire format of its messages.
        messages: The messages, or ``None`` if only fingerprints are kept.
        fingerprints: One for each message, if the messages are not kept.
        journal: The edits.
        pinned: Ids of groups that were pinned by id.
        detects: Whether the format was detected, not named; then it may turn out to be another.
        seen_at: When messages last came, by the clock of the context; ``None`` without one.
        believed_until: The ordinal from which on marks are not believed, see `Marks`.
        known: Digests of the summaries that are believed anywhere, see `Marks`.
    """

    format: MessageFormat
    messages: Sequence[Any] | None
    fingerprints: Sequence[str]
    journal: Sequence[Applied]
    pinned: Sequence[int]
    detects: bool
    seen_at: float | None = None
    believed_until: int | None = None
    known: frozenset[str] = frozenset()

    def to_dict(self, *, seen_at: float | None) -> dict[str, Any]:
        """Return what `read` reads: JSON-ready data."""
        data: dict[str, Any] = {"version": VERSION, "format": self.format.name, "pinned": list(self.pinned)}
        if self.messages is None:
            data["fingerprints"] = list(self.fingerprints)
        else:
            data["messages"] = [_wire(raw, self.format, place) for place, raw in enumerate(self.messages)]
        data["journal"] = [applied_to_dict(applied, self.format) for applied in self.journal]
        marks = {"believed_until": self.believed_until, "known": sorted(self.known)}
        return {**data, "looks": self.detects, "seen_at": seen_at, **marks}

    @classmethod
    def read(cls, data: Mapping[str, Any], format: MessageFormat | None = None) -> Saved:
        """Read what `to_dict` made.

        Args:
            data: The saved index.
            format: A format that has no name here, such as a framework's, or what to take for one that was looked for; ``None``
                for the one the data names.

        Raises:
            StateError: If it is something else, from a newer version, or of messages in another format.
        """
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != VERSION:
            raise StateError(
                f"version={shown(version)}: this release reads version {VERSION}; upgrade, or compact the conversation anew"
            )
        try:
            if format is not None and data.get("looks") is True:
                return cls.read({**data, "looks": False}).in_format(format)
            format = resolve(str(data["format"])) if format is None else format
            if data["format"] != format.name:
                raise ValueError(f"messages of the format {data['format']}, not {format.name}")
            messages = data.get("messages")
            return cls(
                format=format,
                messages=None if messages is None else [format.from_wire(wire) for wire in _list(messages)],
                fingerprints=tuple(_text(each) for each in _list(data.get("fingerprints", []))),
                journal=tuple(_read_applied(entry, format) for entry in _list(data["journal"])),
                pinned=_ids(data.get("pinned", [])),
                detects=data.get("looks") is True,
                seen_at=None if (seen_at := data.get("seen_at")) is None else finite_number(seen_at),
                believed_until=None if (until := data.get("believed_until")) is None else natural_number(until),
                known=frozenset(_text(each) for each in _list(data.get("known", []))),
            )
        except Exception as error:  # a format of a framework may raise anything
            raise StateError(f"saved index: {error!r}; it is not what to_dict made, compact the conversation anew") from error

    def in_format(self, other: MessageFormat) -> Saved:
        """The same, of messages that turn out to be in another format."""
        if other is self.format:
            return self
        return attrs.evolve(self, format=other, journal=tuple(in_format(self.journal, self.format, other)))

    def beginning(self, count: int, messages: Sequence[Any]) -> Saved:
        """Return the part of this state that a conversation with the same first messages may take over.

        Args:
            count: How many messages they share.
            messages: Those messages.

        Returns:
            The messages, and the edits that were decided when nothing after them had been read.
        """
        journal = [each for each in self.journal if each.known is not None and each.known <= count]
        until = None if self.believed_until is None else min(self.believed_until, count)
        taken = attrs.evolve(self, messages=messages, fingerprints=(), journal=tuple(journal), pinned=())
        return attrs.evolve(taken, seen_at=None, believed_until=until)

    def places(self, given: Sequence[Any], format: MessageFormat) -> SavedPlaces | None:
        """Where the saved messages stand in a list that has them all up to the last one that is known again; else ``None``.

        O(contents). So a message that the host altered while no process ran, or put in, does not undo what was decided.
        """
        known = [Known((place, 0, 0), place, digest=digest) for place, digest in enumerate(self.fingerprints)]
        matches = align(known, given, format, digest=fingerprint)
        found = {match.known.group: place for place, match in enumerate(matches) if match is not None}
        if not found or len(found) <= max(found):
            return None
        altered = {match.known.group for match in matches if match is not None and match.altered}
        return SavedPlaces(found, altered, max(found.values()) + 1)

    def matching(self, given: Sequence[Any], format: MessageFormat) -> int:
        """How many first messages of a list are the saved ones, by fingerprint; O(saved)."""
        for place, (known, raw) in enumerate(zip(self.fingerprints, given, strict=False)):
            if known != fingerprint(raw, format, place):
                return place
        return min(len(self.fingerprints), len(given))


@attrs.frozen
class SavedPlaces:
    """Where saved messages stand in a list.

    Args:
        places: The place of each saved ordinal that is there.
        altered: The saved ordinals whose content changed.
        matched: How many messages of the list these are; the rest is new.
    """

    places: Mapping[int, int]
    altered: Collection[int]
    matched: int

    def groups(self, projection: Projection) -> dict[int, int]:
        """The new id of each saved group that has the same messages, changed or not."""
        known = set(self.places.values())
        groups: dict[int, int] = {}
        for ordinal, place in self.places.items():
            group = projection.grouping.group_of[place]
            members = [member for member in projection.ordinals(group) if member < self.matched]
            if members[0] == place and all(member in known for member in members):
                groups[ordinal] = group
        return groups

    def changed_in(self, places: Iterable[int]) -> bool:
        """Whether the content of a message at one of these places changed."""
        changed = {self.places[ordinal] for ordinal in self.altered}
        return not changed.isdisjoint(places)


def in_format(journal: Iterable[Applied], format: MessageFormat, other: MessageFormat) -> list[Applied]:
    """Journaled edits with the messages they show read in another format, of the same wire data."""
    return [_read_applied(applied_to_dict(applied, format), other) for applied in journal]


def _read_applied(entry: Mapping[str, Any], format: MessageFormat) -> Applied:
    by, turn = _text(entry["by"]), natural_number(entry["turn"])
    made = iter(_ids(entry.get("made", [])))

    def applied(edit: Edit) -> Applied:
        parts = edit.edits if isinstance(edit, Together) else ()
        own = next(made, None) if isinstance(edit, Replace) else None
        return Applied(edit, by, turn, made=own, parts=tuple([applied(part) for part in parts]))

    known = entry.get("known")
    read = applied(_read_edit(entry["edit"], format))
    return attrs.evolve(read, known=None if known is None else natural_number(known))


def _read_edit(data: Mapping[str, Any], format: MessageFormat) -> Edit:
    def message(wire: Any) -> Message | None:
        return None if wire is None else format.read(format.from_wire(wire))

    kind, reason = data["type"], _text(data["reason"])
    if kind == "together":
        parts = [_read_edit(part, format) for part in _list(data["edits"])]
        return Together(*[part for part in parts if isinstance(part, Drop | Replace | Rewrite)], reason=reason)
    if kind == "rewrite":
        return Rewrite(_id(data["group"]), [message(wire) for wire in _list(data["messages"])], reason)
    groups = _ids(data["groups"])
    if kind == "replace":
        return Replace(groups, [format.read(format.from_wire(wire)) for wire in _list(data["messages"])], reason)
    if kind == "drop":
        return Drop(groups, reason, allow_system=data.get("allow_system") is True)
    if kind == "restore":
        return Restore(groups, reason)
    raise ValueError(f"edit type {shown(kind)}")


def _wire(raw: Any, format: MessageFormat, place: int) -> Any:
    try:
        return format.to_wire(raw)
    except RecursionError:
        raise too_deep([raw], place) from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{shown(value)} is not a list")
    return list(cast("Sequence[Any]", value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is not a text")
    return value


def _id(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{shown(value)} is not the id of a group")
    return value


def _ids(value: object) -> tuple[int, ...]:
    return tuple([_id(each) for each in _list(value)])
