"""The stored state of an index as JSON-ready data: its messages or their fingerprints, and its edits.

Edits name groups by id, and ids are ordinals, so the edits can be applied to the same messages in another process. Messages
that edits wrote are stored as wire dictionaries. Reading never executes code; data of any other form raises a `StateError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ..errors import StateError
from ..formats import MessageFormat, resolve
from ..json_data import finite_number, natural_number, shown, too_deep
from ..messages import Message
from .edits import Applied, Drop, Edit, Replace, Restore, Rewrite, Together

VERSION: Final = 2


def applied_to_dict(applied: Applied, format: MessageFormat) -> dict[str, Any]:
    """Return an entry of the journal as JSON-ready data."""
    edit = _edit_to_dict(applied.edit, format)
    entry: dict[str, Any] = {"edit": edit, "by": applied.by, "turn": applied.turn, "seen": applied.seen}
    if made := applied.inserted_ids:
        entry["made"] = made
    return {**entry, "lost": sorted(applied.lost)} if applied.lost else entry


def _edit_to_dict(edit: Edit, format: MessageFormat) -> dict[str, Any]:
    data: dict[str, Any] = {"type": type(edit).__name__.lower(), "reason": edit.reason}
    for field in attrs.fields(type(edit)):
        value = getattr(edit, field.name)
        if field.name == "messages":
            value = [None if message is None else format.to_wire(message.raw) for message in value]
        elif field.name == "edits":
            value = [_edit_to_dict(part, format) for part in value]
        if value != field.default:
            data[field.name] = list(value) if field.name in ("groups", "read") else value
    return data


@attrs.frozen(kw_only=True)
class Saved:
    """The stored state of an index."""

    format: MessageFormat  # the wire format of its messages
    messages: Sequence[Any] | None  # the messages, or ``None`` if only their fingerprints are stored
    fingerprints: Sequence[str]  # one for each message, if the messages are not stored
    journal: Sequence[Applied]  # the edits
    pinned: Sequence[int]  # ids of groups that were pinned by id
    detects: bool  # whether the format was detected, not named; later messages may then show that it is another
    seen_at: float | None = None  # when messages last arrived, by the clock of the context; ``None`` without one
    believed_until: int | None = None  # marks at this position or later are not believed (see `Marks`)
    own: frozenset[str] = frozenset()  # checksums of the summaries that a session wrote (see `Marks`)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-ready data, which `read` reads."""
        data: dict[str, Any] = {"version": VERSION, "format": self.format.name, "pinned": list(self.pinned)}
        if self.messages is None:
            data["fingerprints"] = list(self.fingerprints)
        else:
            try:
                data["messages"] = [self.format.to_wire(raw) for raw in self.messages]
            except RecursionError:
                raise too_deep(self.messages) from None
        data["journal"] = [applied_to_dict(applied, self.format) for applied in self.journal]
        marks = {"believed_until": self.believed_until, "own": sorted(self.own)}
        return {**data, "detects": self.detects, "seen_at": self.seen_at, **marks}

    @classmethod
    def read(cls, data: Mapping[str, Any], format: MessageFormat | None = None) -> Saved:
        """Return the state that `to_dict` stored.

        Args:
            data: The stored state.
            format: The format, if it is not a built-in one, such as a framework's, or if it replaces a detected one; ``None``
                for the format that the data names.

        Raises:
            StateError: If the data is not such a state, is from another version, or contains messages in another format.
        """
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != VERSION:
            remedy = "it is not what to_dict made; compact" if version is None else "upgrade, or compact"
            rule = f"this release reads version {VERSION}; {remedy} from scratch"
            raise StateError(f"saved index: version={shown(version)}: {rule}")
        try:
            if format is not None and data.get("detects") is True:
                return cls.read({**data, "detects": False}).in_format(format)
            format = resolve(str(data["format"])) if format is None else format
            if data["format"] != format.name:
                rule = f"its messages are of the format {shown(data['format'])}; pass this format, not {format.name!r}"
                raise StateError(f"saved index: {rule}")
            messages = data.get("messages")
            return cls(
                format=format,
                messages=None if messages is None else [format.from_wire(wire) for wire in _list(messages)],
                fingerprints=tuple(_text(each) for each in _list(data.get("fingerprints", []))),
                journal=tuple(_read_applied(entry, format) for entry in _list(data["journal"])),
                pinned=_ids(data.get("pinned", [])),
                detects=data.get("detects") is True,
                seen_at=None if (seen_at := data.get("seen_at")) is None else finite_number(seen_at),
                believed_until=None if (until := data.get("believed_until")) is None else natural_number(until),
                own=frozenset(_text(each) for each in _list(data.get("own", []))),
            )
        except StateError:
            raise
        except Exception as error:  # a format of a framework may raise anything
            raise StateError(f"saved index: {error!r}; it is not what to_dict made; compact from scratch") from error

    def in_format(self, other: MessageFormat) -> Saved:
        """Return the state for the same messages read in another format."""
        if other is self.format:
            return self
        return attrs.evolve(self, format=other, journal=tuple(in_format(self.journal, self.format, other)))

    def beginning(self, count: int, messages: Sequence[Any]) -> Saved:
        """Return the part that a conversation which shares the first ``count`` messages can reuse.

        It has these messages, and the edits that were decided before any later one was read.
        """
        journal = [each for each in self.journal if each.seen is not None and each.seen <= count]
        until = None if self.believed_until is None else min(self.believed_until, count)
        taken = attrs.evolve(self, messages=messages, fingerprints=(), journal=tuple(journal), pinned=())
        return attrs.evolve(taken, seen_at=None, believed_until=until)


def in_format(journal: Iterable[Applied], format: MessageFormat, other: MessageFormat) -> list[Applied]:
    """Return journaled edits with the messages that they wrote, read in another format."""
    return [_read_applied(applied_to_dict(applied, format), other) for applied in journal]


def _read_applied(entry: Mapping[str, Any], format: MessageFormat) -> Applied:
    by, turn = _text(entry["by"]), natural_number(entry["turn"])
    made = iter(_ids(entry.get("made", [])))

    def applied(edit: Edit) -> Applied:
        parts = edit.edits if isinstance(edit, Together) else ()
        own = next(made, None) if isinstance(edit, Replace) else None
        return Applied(edit, by, turn, made=own, parts=tuple([applied(part) for part in parts]))

    seen = entry.get("seen")
    read = applied(_read_edit(entry["edit"], format))
    lost = frozenset(_text(each) for each in _list(entry.get("lost", [])))
    return attrs.evolve(read, seen=None if seen is None else natural_number(seen), lost=lost)


def _read_edit(data: Mapping[str, Any], format: MessageFormat) -> Edit:
    def messages(wires: object) -> list[Message | None]:
        return [None if wire is None else format.read(format.from_wire(wire)) for wire in _list(wires)]

    kind, reason = data["type"], _text(data["reason"])
    if kind == "together":
        return Together(*[cast("Drop", _read_edit(part, format)) for part in _list(data["edits"])], reason=reason)
    if kind == "rewrite":
        return Rewrite(_ids([data["group"]])[0], messages(data["messages"]), reason, read=_ids(data.get("read", [])))
    groups = _ids(data["groups"])
    if kind == "replace":
        written = cast("list[Message]", messages(data["messages"]))
        return Replace(groups, written, reason, read=None if (read := data.get("read")) is None else _ids(read))
    if kind == "drop":
        return Drop(groups, reason, allow_system=data.get("allow_system") is True)
    if kind == "restore":
        return Restore(groups, reason)
    raise ValueError(f"edit type {shown(kind)}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{shown(value)} is not a list")
    return list(cast("Sequence[Any]", value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is not a text")
    return value


def _ids(value: object) -> tuple[int, ...]:
    ids = tuple(_list(value))
    for id in ids:
        if type(id) is not int:
            raise TypeError(f"{shown(id)} is not the id of a group")
    return ids
