"""The values that pass between a summarizer's generator and its driver: calls out, replies and failures back.

The generator makes all decisions; a short driver sends what it yields.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Final, TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class ModelCall:
    """One request to a model."""

    model: str  # its name
    messages: tuple[tuple[str, str], ...]  # the role and the text of each
    max_tokens: int  # tokens the reply may have


@attrs.frozen(kw_only=True)
class ModelReply:
    """A model's reply."""

    text: str  # may be empty
    finish: str = ""  # the server's finish reason
    refusal: str = ""  # the text of a refusal that the server marked as one
    prompt_tokens: int | None = None  # tokens that the server reports as read


@attrs.frozen(kw_only=True)
class ModelFault:
    """A call without a reply, or a reply that cannot be used."""

    says: str  # what went wrong, in words that follow the model's name
    retry: bool = False  # whether a second try may succeed
    advice: str = ""  # what to add to the prompt of the second try
    too_long: bool = False  # whether a shorter request may succeed
    cause: Exception | None = None


_READ_CHARS: Final = 20_000


def brief(text: str, redact: Callable[[str], str], *, chars: int = 300) -> str:
    """Return the beginning of what a model or a client said, on one line, for `ModelFault.says`; redacted before it is cut."""
    read = text[:_READ_CHARS]
    if len(text) > _READ_CHARS:  # the last word may be half a secret
        read = read[: max(read.rfind(" "), read.rfind("\n")) + 1] or read
    line = " ".join(redact(read).split())
    return line if len(line) <= chars else line[: chars - 3] + "..."


SummarySteps: TypeAlias = Generator[ModelCall, ModelReply | ModelFault, str]
"""A generator that yields calls, is sent a reply or a failure for each, and returns the summary."""


async def drive(steps: SummarySteps, send: Callable[[ModelCall], Awaitable[ModelReply | ModelFault]]) -> str:
    """Send the calls until the summary is complete, and return it; this awaits only what ``send`` does."""
    with contextlib.closing(steps):
        try:
            call = next(steps)
            while True:
                call = steps.send(await send(call))
        except StopIteration as done:
            return str(done.value)
