"""The steps of a conversation, common to all wire formats: instructions, user messages, answers, results.

Several messages that form one answer are one step, and a message with results and text is two steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from compaction.formats.wire import kind_of
from compaction.messages import Message, Part, TextPart, ToolCallPart, ToolResultPart

Who: TypeAlias = Literal["system", "user", "assistant", "results"]


@attrs.frozen(eq=False)
class Piece:
    """A part and the position of its message.

    Args:
        index: The position of its message.
        part: The part; the id of a call or result is unique to that call.
        custom: Whether it is a call of a custom tool, whose input is plain text, or the result of one.
    """

    index: int
    part: Part
    custom: bool = False


@attrs.define(eq=False)
class ConversionStep:
    """Consecutive content of one side.

    Args:
        who: The side.
        role: The role of the first message it was read from.
        pieces: Its content, in order.
    """

    who: Who
    role: str
    pieces: list[Piece]

    @property
    def index(self) -> int:
        """Return the position of the first message it was read from."""
        return self.pieces[0].index


class _Ids:
    """Gives every call a unique id, and its result the same id. Holds state: the ids so far."""

    def __init__(self, allowed: Callable[[str], bool]) -> None:
        self._allowed = allowed
        self._taken: set[str] = set()
        self._open: dict[str, list[tuple[int, deque[tuple[str, bool]]]]] = {}

    def call(self, index: int, part: ToolCallPart) -> Piece:
        given = part.id
        if not given or given in self._taken or given.startswith("function:") or not self._allowed(given):
            given = f"call_{index}_{len(self._taken)}"
        self._taken.add(given)
        custom = kind_of(part.raw) == "custom"
        waiting = self._open.setdefault(part.id, [])
        if not waiting or waiting[-1][0] != index:
            waiting.append((index, deque()))
        waiting[-1][1].append((given, custom))
        return Piece(index, attrs.evolve(part, id=given), custom)

    def result(self, index: int, part: ToolResultPart) -> Piece:
        """Return the result with the id of the first open call, in the latest message with a call of the same original id."""
        waiting = self._open.get(part.call_id)
        if not waiting:
            return Piece(index, part)
        given, custom = waiting[-1][1].popleft()
        if not waiting[-1][1]:
            waiting.pop()
        return Piece(index, attrs.evolve(part, call_id=given), custom)


def steps_of(messages: Iterable[Message], *, allowed: Callable[[str], bool]) -> list[ConversionStep]:
    """Return the steps of a conversation; O(parts).

    Args:
        messages: The conversation, read.
        allowed: Returns whether the target format accepts the id of a call.
    """
    ids = _Ids(allowed)
    steps: list[ConversionStep] = []
    for index, message in enumerate(messages):
        for who, pieces in _taken_apart(index, message, ids):
            goes_on = steps and steps[-1].who == who and (who == "results" or message.continues)
            if goes_on:
                steps[-1].pieces.extend(pieces)
            else:
                steps.append(ConversionStep(who, message.role, pieces))
    return steps


def gathered(steps: Sequence[ConversionStep]) -> tuple[list[ConversionStep], list[Piece]]:
    """Return the steps with results directly after their calls, and the results that were moved there; O(parts)."""
    places = {
        piece.part.id: place
        for place, step in enumerate(steps)
        for piece in step.pieces
        if isinstance(piece.part, ToolCallPart)
    }
    early: dict[int, list[Piece]] = {}
    kept: list[list[Piece]] = []
    for place, step in enumerate(steps):
        kept.append([])
        for piece in step.pieces:
            made = places.get(piece.part.call_id, place - 1) if isinstance(piece.part, ToolResultPart) else place - 1
            if made < place - 1:
                early.setdefault(made, []).append(piece)
            else:
                kept[-1].append(piece)
    if not early:
        return list(steps), []
    made_steps: list[ConversionStep] = []
    for place, (step, pieces) in enumerate(zip(steps, kept, strict=True)):
        late = early.get(place - 1, []) if step.who == "results" else []
        if pieces or late:
            made_steps.append(attrs.evolve(step, pieces=[*pieces, *late]))
        after = steps[place + 1].who if place + 1 < len(steps) else ""
        if place in early and after != "results":
            made_steps.append(ConversionStep("results", "tool", early[place]))
    return made_steps, [piece for pieces in early.values() for piece in pieces]


def _taken_apart(index: int, message: Message, ids: _Ids) -> Iterator[tuple[Who, list[Piece]]]:
    """Yield the results of a message, then its other parts; an empty message becomes an empty text."""
    results = [ids.result(index, part) for part in message.parts if isinstance(part, ToolResultPart)]
    if results:
        yield "results", results
    rest = [part for part in message.parts if not isinstance(part, ToolResultPart)]
    if rest or not results:
        pieces = [_piece(index, message, part, ids) for part in rest or [TextPart("")]]
        yield _who(message.role), pieces


def _piece(index: int, message: Message, part: Part, ids: _Ids) -> Piece:
    if not isinstance(part, ToolCallPart):
        return Piece(index, part)
    piece = ids.call(index, part)
    return attrs.evolve(piece, custom=piece.custom or kind_of(message.raw) == "custom_tool_call")


def _who(role: str) -> Who:
    if role in ("system", "developer"):
        return "system"
    return "user" if role in ("user", "tool") else "assistant"
