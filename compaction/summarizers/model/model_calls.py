"""The values that pass between a summarizer's generator and its driver: calls out, replies and failures back.

The generator makes all decisions; two short drivers, one async and one sync, send what it yields.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class ModelCall:
    """One request to a model.

    Args:
        model: Its name.
        messages: Role and text of each message.
        max_tokens: Tokens the reply may have.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    max_tokens: int


@attrs.frozen(kw_only=True)
class ModelReply:
    """A model's reply.

    Args:
        text: Its text; may be empty.
        finish: The server's finish reason; empty if there is none.
        refusal: The text of a refusal that the server marked as one.
        prompt_tokens: Tokens the server reports as read; ``None`` if it does not report them.
    """

    text: str
    finish: str = ""
    refusal: str = ""
    prompt_tokens: int | None = None


@attrs.frozen(kw_only=True)
class ModelFault:
    """A call without a reply, or a reply that cannot be used.

    Args:
        says: What went wrong, in words that follow the model's name.
        again: The instruction for a second try, or an empty text to send the same once more; ``None`` if a second try is of no
            use.
        too_long: Whether a shorter request may succeed.
        cause: The exception, if there was one.
    """

    says: str
    again: str | None = None
    too_long: bool = False
    cause: Exception | None = None


SummarySteps: TypeAlias = Generator[ModelCall, ModelReply | ModelFault, str]
"""A generator that yields calls, is sent a reply or a failure for each, and returns the summary."""


async def drive(steps: SummarySteps, send: Callable[[ModelCall], Awaitable[ModelReply | ModelFault]]) -> str:
    """Send the calls until the summary is complete, and return it."""
    with contextlib.closing(steps):
        try:
            call = next(steps)
            while True:
                call = steps.send(await send(call))
        except StopIteration as done:
            return str(done.value)


def drive_sync(steps: SummarySteps, send: Callable[[ModelCall], ModelReply | ModelFault]) -> str:
    """Send the calls until the summary is complete, and return it."""
    with contextlib.closing(steps):
        try:
            call = next(steps)
            while True:
                call = steps.send(send(call))
        except StopIteration as done:
            return str(done.value)
