"""Recorded conversations: the messages of an agent's session, with their times, as a replay takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import attrs

from ..errors import InvalidMessage
from ..formats import MessageFormat, resolve
from ..json_data import finite_number

_TIME_FIELDS: Final = ("timestamp", "created_at", "created", "time")
_MILLISECONDS: Final = 1e11


def _time_of(message: Any) -> float | None:
    if not isinstance(message, Mapping):
        return None
    fields = cast("Mapping[str, Any]", message)
    return next((seconds for name in _TIME_FIELDS if (seconds := seconds_of(fields.get(name))) is not None), None)


_AS_WRITTEN: Any = attrs.Factory(lambda recording: tuple(map(_time_of, recording.messages)), takes_self=True)


@attrs.frozen(kw_only=True, eq=False)
class Recording:
    """One conversation to replay.

    Args:
        id: Its name in the output; made unique within a replay.
        messages: The messages, oldest first, in one wire format.
        times: When each message was written, in seconds of any one clock; ``None`` if unknown. By default the times in the
            messages themselves; empty if no time is known.
        format: Their wire format, or its name; ``None`` for the replay's format, or else to detect it.
        where: The file, and the line if it contains several conversations.
        notes: Problems of the log, in words, for the output.

    >>> Recording(id="7", messages=[{"role": "user", "content": "hi", "timestamp": "2026-01-05T10:00:00Z"}]).times
    (1767607200.0,)
    """

    id: str
    messages: Sequence[Any] = attrs.field(repr=False)
    times: Sequence[float | None] = attrs.field(default=_AS_WRITTEN, repr=False)
    format: MessageFormat | None = attrs.field(default=None, converter=attrs.converters.optional(resolve))
    where: str = ""
    notes: tuple[str, ...] = ()


def seconds_of(value: Any) -> float | None:
    """Return a log's time (ISO 8601, or seconds or milliseconds since 1970) in seconds; ``None`` if it is not a time.

    >>> seconds_of("1970-01-01T00:01:00Z"), seconds_of(1_700_000_000_000), seconds_of("yesterday")
    (60.0, 1700000000.0, None)
    """
    try:
        if not isinstance(value, str):
            seconds = finite_number(value)
            return seconds / 1_000 if seconds > _MILLISECONDS else seconds
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def without_unreadable(recording: Recording, format: MessageFormat | str | None = None) -> Recording:
    """Return the recording without unreadable messages and with times that never go back; both are noted.

    If neither it nor the replay has a format, it is detected, see `compaction.formats.resolve`.
    """
    format = resolve(recording.format or format, recording.messages)
    read = format.read
    messages: list[Any] = []
    times: list[float | None] = []
    notes = list(recording.notes)
    latest, backwards = -math.inf, 0
    for place, message in enumerate(recording.messages):
        try:
            read(message, place)
        except (InvalidMessage, RecursionError) as error:
            deep = f"messages[{place}]: nested too deeply to be read"
            why = f"{error.where}: {error.rule}" if isinstance(error, InvalidMessage) else deep
            notes.append(f"{why}; the message is skipped")
            continue
        time = recording.times[place] if place < len(recording.times) else None
        if time is not None:
            backwards += time < latest
            latest = time = max(time, latest)
        messages.append(message)
        times.append(time)
    if backwards:
        notes.append(f"the time goes backwards at {backwards} messages; they get the time of the message before")
    return attrs.evolve(recording, messages=messages, times=times, format=format, notes=tuple(notes))
