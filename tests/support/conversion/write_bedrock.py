"""Write steps as messages of Amazon Bedrock's Converse API, in which user and model alternate."""

from __future__ import annotations

from typing import Any

from compaction.formats.wire import string

from .steps import ConversionStep
from .writer import StepWriter, calls_in, results_in


class BedrockWriter(StepWriter):
    """Writes Converse messages; consecutive messages of one side become one message."""

    def text(self, text: str, *, said: bool) -> dict[str, Any]:
        return {"text": text}

    def say(self, step: ConversionStep, role: str, blocks: list[Any]) -> None:
        """Add blocks to the previous message if it has the same role, else as a new message."""
        blocks = [block for block in blocks if string(block.get("text", "x")).strip()]
        if not blocks:
            self.lose(step.index, "empty", "a message that says nothing, which has no place")
        elif self.messages and self.messages[-1]["role"] == role:
            joined = [*self.messages[-1]["content"], *blocks]
            self.messages[-1]["content"] = sorted(joined, key=_place)
        else:
            self.messages.append({"role": role, "content": blocks})

    def instructions(self, place: int, step: ConversionStep) -> None:
        self.lose_others(step.pieces)
        self.lose(step.index, "system", "the instruction, which stands outside the messages")

    def words(self, step: ConversionStep) -> None:
        blocks = self.parts(step.pieces)
        if not any(string(block.get("text")).strip() for block in blocks):
            for _ in [block for block in blocks if "document" in block]:
                self.lose(step.index, "media", "a document without words beside it")
            blocks = [block for block in blocks if "document" not in block]
        self.say(step, "user", blocks)

    def answer(self, step: ConversionStep) -> None:
        if not self.messages:
            self.lose(step.index, "first-answer", "that nobody said anything before the answer: somebody has to here")
        calls = [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": self.arguments(piece, call)}}
            for piece, call in calls_in(step)
        ]
        self.say(step, "assistant", [*self.parts(step.pieces, said=True), *calls])

    def results(self, step: ConversionStep) -> None:
        blocks: list[Any] = []
        for piece, result in results_in(step):
            media = [part for each in result.media if (part := self.media(piece.index, each)) is not None]
            for _ in [part for part in media if "audio" in part]:
                self.lose(piece.index, "media", "a sound in a result, which has no place there")
            media = [part for part in media if "audio" not in part]
            content = [*([self.text(result.text, said=False)] if result.text.strip() else []), *media]
            failed = {"status": "error"} if result.failed and content else {}
            blocks.append({"toolResult": {"toolUseId": result.call_id, "content": content, **failed}})
        self.say(step, "user", blocks)


def _place(block: dict[str, Any]) -> int:
    """Return the sort key of a block: results come first in a message, calls last."""
    return -1 if "toolResult" in block else int("toolUse" in block)
