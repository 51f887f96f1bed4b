"""The values that pass between a summarizer's generator and its driver: calls and waits out, replies and failures back.

The generator makes all decisions; two short drivers, one async and one sync, send what it yields.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, TypeAlias

import attrs

__all__ = ["ModelCall", "ModelFault", "ModelReply", "RetryWait", "SummarySteps"]


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


@attrs.frozen
class RetryWait:
    """A wait before the next request.

    Args:
        seconds: How long, above 0.
    """

    seconds: float


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
    """A request that got no reply.

    Args:
        kind: ``"transient"``: the same request may succeed later; ``"final"``: it will not; ``"too_long"``: a shorter one may.
        says: What went wrong, in a few words.
        wait_seconds: How long the server asks to wait, if it does.
        cause: The exception, if there was one.
    """

    kind: Literal["transient", "final", "too_long"]
    says: str
    wait_seconds: float | None = None
    cause: Exception | None = None


SummarySteps: TypeAlias = Generator[ModelCall | RetryWait, Any, str]
"""A generator that yields calls and waits, is sent a reply or a failure for each call, and returns the summary."""
