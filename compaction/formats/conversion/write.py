"""Write steps in a wire format, and note what it cannot carry.

One class for each format says how it writes instructions, words, answers and results; what they have in common is in the first.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import UnknownFormat
from ...messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..anthropic import repair_neighbours
from ..base import MessageFormat, Problem
from ..wire import Changes, json_object
from .media import read_media, write_media
from .steps import ConversionStep, Piece, gathered

__all__ = ["write_steps"]

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
    "moved-result": "nothing has to be done: it says what it said",
}


def write_steps(steps: Sequence[ConversionStep], target: MessageFormat) -> tuple[list[Any], list[Problem]]:
    """Return the messages of a conversation in the target's format, and what is lost; O(parts).

    Raises:
        UnknownFormat: If it is a format of somebody else's.
    """
    if target.name not in _WRITERS:
        raise UnknownFormat(f"convert: nothing here writes {target.name!r}; use one of {', '.join(sorted(_WRITERS))}")
    moved: list[Piece] = []
    if target.name != "openai-responses":
        steps, moved = gathered(steps)
    writer = _WRITERS[target.name](target, steps)
    for piece in moved:
        writer.lose(piece.index, "moved-result", "a result that came later than the next message; it follows its call now")
    for place, step in enumerate(steps):
        writer.step(place, step)
    writer.end()
    return writer.messages, writer.lost


class _Writer(abc.ABC):
    """Writes steps one after the other. Holds state: the messages so far, and what was lost."""

    def __init__(self, target: MessageFormat, steps: Sequence[ConversionStep]) -> None:
        self.target = target
        self.steps = steps
        self.leading = next((place for place, step in enumerate(steps) if step.who != "system"), len(steps))
        self.messages: list[Any] = []
        self.lost: list[Problem] = []

    def lose(self, index: int, rule: str, text: str) -> None:
        """Note that something of the message at that place is not in the new list."""
        self.lost.append(Problem(f"messages[{index}]", rule, text, _REMEDIES[rule]))

    def end(self) -> None:
        """Note the calls without a result that nothing can answer any more: chat completions take one of the older kind."""
        answered = {result.call_id for step in self.steps for _, result in _results(step)}
        last = next((place for place in range(len(self.steps), 0, -1) if self.steps[place - 1].who != "results"), 0)
        for step in self.steps[: max(0, last - 1)]:
            for piece, call in _calls(step):
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
    def instructions(self, place: int, step: ConversionStep) -> None: ...

    @abc.abstractmethod
    def words(self, step: ConversionStep) -> None: ...

    @abc.abstractmethod
    def answer(self, step: ConversionStep) -> None: ...

    @abc.abstractmethod
    def results(self, step: ConversionStep) -> None: ...

    @abc.abstractmethod
    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        """Return a part with words; ``said`` by the model."""

    def parts(self, pieces: Sequence[Piece], *, said: bool = False) -> list[Any]:
        """Return words and media as parts; the rest is lost."""
        made: list[Any] = []
        for piece in pieces:
            if isinstance(piece.part, TextPart):
                made.append(self.text(piece.part.text, said=said))
            elif isinstance(piece.part, MediaPart) and (part := self.media(piece.index, piece.part, said=said)) is not None:
                made.append(part)
        self.lose_others(pieces)
        return made

    def media(self, index: int, part: MediaPart, *, said: bool = False) -> dict[str, Any] | None:
        source = read_media(part.raw)
        made = None if source is None or said else write_media(part.kind, source, self.target)
        if made is None:
            self.lose(index, "media", f"{part.kind} that {self.target.name} has no place for here")
        return made

    def lose_others(self, pieces: Sequence[Piece]) -> None:
        thinking = {piece.index for piece in pieces if isinstance(piece.part, ReasoningPart)}
        for index in sorted(thinking):
            self.lose(index, "reasoning", "its thoughts")
        for piece in pieces:
            if isinstance(piece.part, OtherPart):
                self.lose(piece.index, "part", f"a part that only its own format knows: {piece.part.text[:80]}")

    def content(self, pieces: Sequence[Piece], *, said: bool = False) -> Any:
        """Return words and media as a content: a string if they are one text."""
        parts = self.parts(pieces, said=said)
        texts = [piece.part.text for piece in pieces if isinstance(piece.part, TextPart)]
        return texts[0] if len(parts) == len(texts) == 1 else parts or ""

    def arguments(self, piece: Piece, call: ToolCallPart) -> dict[str, Any]:
        """Return a call's arguments as an object; text that does not describe one becomes an argument itself."""
        value = None if piece.custom else json_object(call.arguments)
        if value is not None:
            return value
        self.lose(piece.index, "arguments", f"the arguments of {call.name!r} are no JSON object; they became 'input'")
        return {"input": call.arguments}

    def failed(self, piece: Piece, result: ToolResultPart) -> None:
        if result.failed:
            self.lose(piece.index, "failed", "the mark that the tool failed")


def _calls(step: ConversionStep) -> list[tuple[Piece, ToolCallPart]]:
    return [(piece, piece.part) for piece in step.pieces if isinstance(piece.part, ToolCallPart)]


def _results(step: ConversionStep) -> list[tuple[Piece, ToolResultPart]]:
    return [(piece, piece.part) for piece in step.pieces if isinstance(piece.part, ToolResultPart)]


class _Chat(_Writer):
    """Writes OpenAI chat completions."""

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def instructions(self, place: int, step: ConversionStep) -> None:
        self.messages.append({"role": step.role, "content": self.content(step.pieces)})

    def words(self, step: ConversionStep) -> None:
        self.messages.append({"role": "user", "content": self.content(step.pieces)})

    def answer(self, step: ConversionStep) -> None:
        calls = [self.call(piece, call) for piece, call in _calls(step)]
        content = self.content(step.pieces, said=True)
        if not calls:
            self.messages.append({"role": "assistant", "content": content})
            return
        self.messages.append({"role": "assistant", "content": content or None, "tool_calls": calls})

    def call(self, piece: Piece, call: ToolCallPart) -> dict[str, Any]:
        if piece.custom:
            return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}

    def results(self, step: ConversionStep) -> None:
        for piece, result in _results(step):
            self.failed(piece, result)
            for media in result.media:
                self.lose(piece.index, "media", f"{media.kind} in a result, which holds text alone")
            self.messages.append({"role": "tool", "tool_call_id": result.call_id, "content": result.text})


class _Responses(_Writer):
    """Writes OpenAI Responses."""

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"type": "output_text" if said else "input_text", "text": text}

    def say(self, role: str, content: Any) -> None:
        self.messages.append({"type": "message", "role": role, "content": content})

    def instructions(self, place: int, step: ConversionStep) -> None:
        self.say(step.role, self.content(step.pieces))

    def words(self, step: ConversionStep) -> None:
        self.say("user", self.content(step.pieces))

    def answer(self, step: ConversionStep) -> None:
        content = self.content(step.pieces, said=True)
        calls = _calls(step)
        if content or not calls:
            self.say("assistant", content)
        for piece, call in calls:
            kind, name = ("custom_tool_call", "input") if piece.custom else ("function_call", "arguments")
            self.messages.append({"type": kind, "call_id": call.id, "name": call.name, name: call.arguments})

    def results(self, step: ConversionStep) -> None:
        for piece, result in _results(step):
            self.failed(piece, result)
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            output = [self.text(result.text, said=False), *media] if media else result.text
            kind = "custom_tool_call_output" if piece.custom else "function_call_output"
            self.messages.append({"type": kind, "call_id": result.call_id, "output": output})


def _is_said(piece: Piece) -> bool:
    """Whether something of an answer is left where empty words and what a model shows have no place."""
    return isinstance(piece.part, ToolCallPart) or (isinstance(piece.part, TextPart) and bool(piece.part.text.strip()))


class _Anthropic(_Writer):
    """Writes Anthropic Messages. Holds state: also the place of the last message that says something."""

    said = 0

    def end(self) -> None:
        super().end()
        given = self.messages[-1:]
        without_trailing_space = repair_neighbours([(self.said, message) for message in given], Changes())
        if without_trailing_space and without_trailing_space[0][1] is not given[0]:
            self.messages[-1] = without_trailing_space[0][1]
            self.lose(self.said, "blanks", "the blanks that end the last answer")

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def blocks(self, step: ConversionStep, *, said: bool = False) -> list[Any]:
        return [block for block in self.parts(step.pieces, said=said) if block["type"] != "text" or block["text"].strip()]

    def say(self, step: ConversionStep, role: str, blocks: list[Any]) -> None:
        if not blocks:
            self.lose(step.index, "empty", "a message that says nothing, which has no place")
            return
        self.said = step.index
        alone = len(blocks) == 1 and blocks[0]["type"] == "text"
        self.messages.append({"role": role, "content": blocks[0]["text"] if alone else blocks})

    def instructions(self, place: int, step: ConversionStep) -> None:
        after = self.steps[place + 1] if place + 1 < len(self.steps) else None
        follows = after is None or (after.who == "assistant" and any(_is_said(piece) for piece in after.pieces))
        if place < self.leading or (follows and self.messages and self.messages[-1]["role"] == "user"):
            self.say(step, "system", self.blocks(step))
            return
        self.lose(step.index, "moved-system", "an instruction where none may stand; the user says it")
        self.say(step, "user", self.blocks(step))

    def words(self, step: ConversionStep) -> None:
        self.say(step, "user", self.blocks(step))

    def answer(self, step: ConversionStep) -> None:
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": self.arguments(piece, call)}
            for piece, call in _calls(step)
        ]
        self.say(step, "assistant", [*self.blocks(step, said=True), *calls])

    def results(self, step: ConversionStep) -> None:
        blocks: list[Any] = []
        for piece, result in _results(step):
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            words = [self.text(result.text, said=False)] if result.text.strip() else []
            failed = {"is_error": True} if result.failed else {}
            content = [*words, *media] if media else result.text
            blocks.append({"type": "tool_result", "tool_use_id": result.call_id, "content": content, **failed})
        self.messages.append({"role": "user", "content": blocks})


class _Gemini(_Writer):
    """Writes Gemini contents; calls and responses are paired by name."""

    def __init__(self, target: MessageFormat, steps: Sequence[ConversionStep]) -> None:
        super().__init__(target, steps)
        self.names: dict[str, str] = {}

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"text": text}

    def say(self, step: ConversionStep, role: str, parts: list[Any]) -> None:
        parts = [part for part in parts if part.get("text") != ""]
        if not parts:
            self.lose(step.index, "empty", "a message that says nothing, which has no place")
        elif role == "model" and self.messages and self.messages[-1]["role"] == "model":
            self.messages[-1]["parts"].extend(parts)
        else:
            self.messages.append({"role": role, "parts": parts})

    def instructions(self, place: int, step: ConversionStep) -> None:
        self.lose_others(step.pieces)
        self.lose(step.index, "system", "the instruction, which stands outside the contents")

    def words(self, step: ConversionStep) -> None:
        self.say(step, "user", self.parts(step.pieces))

    def answer(self, step: ConversionStep) -> None:
        parts = self.parts(step.pieces, said=True)
        if not self.messages and _calls(step):
            self.lose(step.index, "first-call", "that nobody said anything before the first call: somebody has to here")
        for piece, call in _calls(step):
            self.names[call.id] = call.name
            parts.append({"functionCall": {"id": call.id, "name": call.name, "args": self.arguments(piece, call)}})
        self.say(step, "model", parts)

    def results(self, step: ConversionStep) -> None:
        parts: list[Any] = []
        for piece, result in _results(step):
            name = self.names.get(result.call_id)
            if name is None:
                self.lose(piece.index, "orphan", "a result of no call, which has no name to go by")
                continue
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            response = {"error" if result.failed else "result": result.text}
            body = {"id": result.call_id, "name": name, "response": response, **({"parts": media} if media else {})}
            parts.append({"functionResponse": body})
        if parts:
            self.messages.append({"role": "user", "parts": parts})


_WRITERS: Final[Mapping[str, type[_Writer]]] = {
    "openai-chat": _Chat,
    "openai-responses": _Responses,
    "anthropic": _Anthropic,
    "gemini": _Gemini,
}
