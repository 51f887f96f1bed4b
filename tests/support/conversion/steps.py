"""The steps of a conversation that every wire format has: instructions, the user's words, an answer, results.

What one format writes as several messages is one step here, and what it mixes in one message is two.
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
    """A part and the place of its message.

    Args:
        index: The place of its message.
        part: The part; a call or result has an id that no other call of the conversation has.
        custom: Whether it is a call of a custom tool, whose input is plain text, or the result of one.
    """

    index: int
    part: Part
    custom: bool = False


@attrs.define(eq=False)
class ConversionStep:
    """Everything one side says at once.

    Args:
        who: Who says it.
        role: The role of the first message it was read from.
        pieces: What it is made of, in order.
    """

    who: Who
    role: str
    pieces: list[Piece]

    @property
    def index(self) -> int:
        """The place of the first message it was read from."""
        return self.pieces[0].index


class _Ids:
    """Gives every call an id of its own, and every result that of its call. Holds state: the ids so far."""

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
        """Return the result with the id of the first open call of the latest message that made one of its name."""
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
        allowed: Whether a call may keep its id in the format that the steps are written in.
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
    """Return the steps with results directly after their calls, and the results that came later; O(parts)."""
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
    """Yield the results of a message, then what else it says; an empty message is an empty text."""
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
