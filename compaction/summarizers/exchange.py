"""What passes between the logic of a summarizer and the driver that sends: calls and waits out, replies and faults back.

With these between them, one generator holds all there is to decide, and two short drivers, one that awaits and one that does
not, send what it asks for.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, TypeAlias

import attrs

__all__ = ["Call", "Exchange", "Fault", "Reply", "Wait"]


@attrs.frozen(kw_only=True)
class Call:
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
class Wait:
    """Wait before the next request.

    Args:
        seconds: How long, above 0.
    """

    seconds: float


@attrs.frozen(kw_only=True)
class Reply:
    """What a model answered.

    Args:
        text: Its words; may be empty.
        finish: Why it ended, in the server's word; empty if it did not say.
        refusal: The words of a refusal that was marked as one.
        prompt_tokens: Tokens the server says it read; ``None`` if it does not say.
    """

    text: str
    finish: str = ""
    refusal: str = ""
    prompt_tokens: int | None = None


@attrs.frozen(kw_only=True)
class Fault:
    """A request that got no answer.

    Args:
        kind: ``"transient"``: the same request may succeed later; ``"final"``: it will not; ``"too_long"``: a shorter one may.
        says: What went wrong, in a few words.
        wait_seconds: How long the server asks to wait, if it does.
        cause: What was raised.
    """

    kind: Literal["transient", "final", "too_long"]
    says: str
    wait_seconds: float | None = None
    cause: Exception | None = None


Exchange: TypeAlias = Generator[Call | Wait, Any, str]
"""A summary in the making: it yields calls and waits, is sent a reply or a fault for each call, and returns the summary."""
