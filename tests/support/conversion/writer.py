"""The base class of the writers of all wire formats: parts, media and arguments of steps, and the list of losses."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Final

from compaction.formats.base import MessageFormat, Problem
from compaction.formats.wire import json_object, json_text
from compaction.messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

from .media import read_media, write_media
from .steps import ConversionStep, Piece

_REMEDIES: Final[Mapping[str, str]] = {
    "reasoning": "nothing can be done: thoughts are signed for the provider that wrote them",
    "media": "send it by other means, or describe it in the text",
    "part": "say what it says in a text",
    "system": "pass it as the system instruction of the request",
    "moved-system": "pass it as the system parameter of the request, if it has to be an instruction",
    "arguments": "give the tool an argument of that name",
    "failed": "say in the result that the tool failed",
    "empty": "nothing has to be done: it said nothing",
    "orphan": "keep the call with its result",
    "unanswered": "add its result",
    "blanks": "nothing has to be done: they said nothing",
    "first-call": "put what the user said before it",
    "first-answer": "put what the user said before it",
    "moved-result": "nothing has to be done: it says what it said",
}


class StepWriter(abc.ABC):
    """Writes steps in order. Holds state: the messages so far, and what was lost."""

    def __init__(self, target: MessageFormat, steps: Sequence[ConversionStep]) -> None:
        self.target = target
        self.steps = steps
        self.leading = next((place for place, step in enumerate(steps) if step.who != "system"), len(steps))
        self.messages: list[Any] = []
        self.lost: list[Problem] = []

    def lose(self, index: int, rule: str, text: str) -> None:
        """Record that content of the message at this position is not in the new list."""
        self.lost.append(Problem(f"messages[{index}]", rule, text, _REMEDIES[rule]))

    def end(self) -> None:
        """Record the calls without a result that can no longer get one; only legacy chat-completions calls may lack one."""
        answered = {result.call_id for step in self.steps for _, result in results_in(step)}
        last = next((place for place in range(len(self.steps), 0, -1) if self.steps[place - 1].who != "results"), 0)
        for step in self.steps[: max(0, last - 1)]:
            for piece, call in calls_in(step):
                if call.id not in answered:
                    self.lose(piece.index, "unanswered", f"the result of {call.name!r}, which has none and needs one here")

    def step(self, place: int, step: ConversionStep) -> None:
        """Write one step."""
        if step.who == "system":
            self.instructions(place, step)
        elif step.who == "user":
            self.words(step)
        elif step.who == "assistant":
            self.answer(step)
        else:
            self.results(step)

    @abc.abstractmethod
    def instructions(self, place: int, step: ConversionStep) -> None:
        """Write instructions, including leading ones."""

    @abc.abstractmethod
    def words(self, step: ConversionStep) -> None:
        """Write the user's words."""

    @abc.abstractmethod
    def answer(self, step: ConversionStep) -> None:
        """Write the model's words and calls."""

    @abc.abstractmethod
    def results(self, step: ConversionStep) -> None:
        """Write the results of calls."""

    @abc.abstractmethod
    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        """Return a part with this text; ``said`` is true for the model's text."""

    def parts(self, pieces: Sequence[Piece], *, said: bool = False) -> list[Any]:
        """Return text and media as parts, and record other content as lost."""
        made: list[Any] = []
        for piece in pieces:
            if isinstance(piece.part, TextPart):
                made.append(self.text(piece.part.text, said=said))
            elif isinstance(piece.part, MediaPart) and (part := self.media(piece.index, piece.part, said=said)) is not None:
                made.append(part)
        self.lose_others(pieces)
        return made

    def media(self, index: int, part: MediaPart, *, said: bool = False) -> dict[str, Any] | None:
        """Return media as a part, or ``None`` if they are lost."""
        source = read_media(part.raw)
        made = None if source is None or said else write_media(part.kind, source, self.target)
        if made is None:
            self.lose(index, "media", f"{part.kind} that {self.target.name} has no place for here")
        return made

    def lose_others(self, pieces: Sequence[Piece]) -> None:
        """Record reasoning and parts of unknown kinds as lost."""
        thinking = {piece.index for piece in pieces if isinstance(piece.part, ReasoningPart)}
        for index in sorted(thinking):
            self.lose(index, "reasoning", "its thoughts")
        for piece in pieces:
            if isinstance(piece.part, OtherPart):
                self.lose(piece.index, "part", f"a part that only its own format knows: {json_text(piece.part.raw)[:80]}")

    def content(self, pieces: Sequence[Piece], *, said: bool = False) -> Any:
        """Return text and media as a content: a string if they are a single text."""
        parts = self.parts(pieces, said=said)
        texts = [piece.part.text for piece in pieces if isinstance(piece.part, TextPart)]
        return texts[0] if len(parts) == len(texts) == 1 else parts or ""

    def arguments(self, piece: Piece, call: ToolCallPart) -> dict[str, Any]:
        """Return a call's arguments as an object; text that is not a JSON object becomes the argument ``input``."""
        value = None if piece.custom else json_object(call.arguments)
        if value is not None:
            return value
        self.lose(piece.index, "arguments", f"the arguments of {call.name!r} are no JSON object; they became 'input'")
        return {"input": call.arguments}

    def failed(self, piece: Piece, result: ToolResultPart) -> None:
        """Record that the mark of a failed tool is lost, as the format has none."""
        if result.failed:
            self.lose(piece.index, "failed", "the mark that the tool failed")


def calls_in(step: ConversionStep) -> list[tuple[Piece, ToolCallPart]]:
    """Return the calls of a step, each with its piece."""
    return [(piece, piece.part) for piece in step.pieces if isinstance(piece.part, ToolCallPart)]


def results_in(step: ConversionStep) -> list[tuple[Piece, ToolResultPart]]:
    """Return the results of a step, each with its piece."""
    return [(piece, piece.part) for piece in step.pieces if isinstance(piece.part, ToolResultPart)]
