"""Write steps in a wire format, and report what it cannot express.

One class for each format writes its instructions, user messages, answers and results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compaction.errors import UnknownFormat
from compaction.formats import MessageFormat, Problem, anthropic
from compaction.messages import TextPart, ToolCallPart

from .steps import ConversionStep, Piece, gathered
from .write_bedrock import BedrockWriter
from .writer import StepWriter, calls_in, results_in


def write_steps(steps: Sequence[ConversionStep], target: MessageFormat) -> tuple[list[Any], list[Problem]]:
    """Return the messages of a conversation in the target's format, and what is lost; O(parts).

    Raises:
        UnknownFormat: If the target is a custom format.
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


class _Chat(StepWriter):
    """Writes OpenAI chat completions."""

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def instructions(self, place: int, step: ConversionStep) -> None:
        self.messages.append({"role": step.role, "content": self.content(step.pieces)})

    def words(self, step: ConversionStep) -> None:
        self.messages.append({"role": "user", "content": self.content(step.pieces)})

    def answer(self, step: ConversionStep) -> None:
        calls = [self.call(piece, call) for piece, call in calls_in(step)]
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
        for piece, result in results_in(step):
            self.failed(piece, result)
            for media in result.media:
                self.lose(piece.index, "media", f"{media.kind} in a result, which holds text alone")
            self.messages.append({"role": "tool", "tool_call_id": result.call_id, "content": result.text})


class _Responses(StepWriter):
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
        calls = calls_in(step)
        if content or not calls:
            self.say("assistant", content)
        for piece, call in calls:
            kind, name = ("custom_tool_call", "input") if piece.custom else ("function_call", "arguments")
            self.messages.append({"type": kind, "call_id": call.id, "name": call.name, name: call.arguments})

    def results(self, step: ConversionStep) -> None:
        for piece, result in results_in(step):
            self.failed(piece, result)
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            output = [self.text(result.text, said=False), *media] if media else result.text
            kind = "custom_tool_call_output" if piece.custom else "function_call_output"
            self.messages.append({"type": kind, "call_id": result.call_id, "output": output})


def _is_said(piece: Piece) -> bool:
    """Return whether the piece is a call or a text that is not blank."""
    return isinstance(piece.part, ToolCallPart) or (isinstance(piece.part, TextPart) and bool(piece.part.text.strip()))


class _Anthropic(StepWriter):
    """Writes Anthropic Messages. Holds state: also the position of the last message that was written."""

    said = 0

    def end(self) -> None:
        super().end()
        given = [message for message in self.messages[-1:] if message["role"] == "assistant"]
        without_trailing_space = anthropic.repair(given).messages
        if without_trailing_space and without_trailing_space[0] is not given[0]:
            self.messages[-1:] = without_trailing_space
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
            for piece, call in calls_in(step)
        ]
        self.say(step, "assistant", [*self.blocks(step, said=True), *calls])

    def results(self, step: ConversionStep) -> None:
        blocks: list[Any] = []
        for piece, result in results_in(step):
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            words = [self.text(result.text, said=False)] if result.text.strip() else []
            failed = {"is_error": True} if result.failed else {}
            content = [*words, *media] if media else result.text
            blocks.append({"type": "tool_result", "tool_use_id": result.call_id, "content": content, **failed})
        self.messages.append({"role": "user", "content": blocks})


class _Gemini(StepWriter):
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
        if not self.messages and calls_in(step):
            self.lose(step.index, "first-call", "that nobody said anything before the first call: somebody has to here")
        for piece, call in calls_in(step):
            self.names[call.id] = call.name
            parts.append({"functionCall": {"id": call.id, "name": call.name, "args": self.arguments(piece, call)}})
        self.say(step, "model", parts)

    def results(self, step: ConversionStep) -> None:
        parts: list[Any] = []
        for piece, result in results_in(step):
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


_WRITERS: Final[Mapping[str, type[StepWriter]]] = {
    "openai-chat": _Chat,
    "openai-responses": _Responses,
    "anthropic": _Anthropic,
    "gemini": _Gemini,
    "bedrock": BedrockWriter,
}
