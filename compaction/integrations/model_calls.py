"""A framework's own chat model as a summarizer: what is asked and what is accepted is ours, the sending is the framework's.

The logic is that of `OpenAISummarizer`: secrets are taken out, what is longer than the window is read in parts, an answer
counts only if it can stand for the conversation. The framework's client retries as it was told to; nothing is retried here but
an answer that will not do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias

import attrs

from ..checks import above, count
from ..summarizers import SummaryRequest
from ..summarizers.asking import Asking, Retries
from ..summarizers.exchange import Call, Fault, Reply
from ..summarizers.folding import Folding
from ..summarizers.openai_wire import is_too_long
from ..summarizers.redaction import redact as redact_secrets

__all__ = ["Ask", "AskSync", "Asked", "fault_of"]

Ask: TypeAlias = Callable[[Call], Awaitable[Reply]]
"""Sends one request and awaits its reply."""

AskSync: TypeAlias = Callable[[Call], Reply]
"""Sends one request."""


@attrs.frozen(kw_only=True)
class Asked:
    """What a summary by a framework's model takes, whichever the framework.

    Args:
        window: Tokens of the model's window; ``None`` if not known: then all is sent at once.
        headroom: Tokens a reply may have, as a multiple of the summary's budget, > 0.
        max_parts: How many parts a conversation may be read in, >= 1.
        redact: Takes the secrets out of a text.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    headroom: float = attrs.field(default=1.5, validator=above(0))
    max_parts: int = attrs.field(default=100, validator=count(1))
    redact: Callable[[str], str] = attrs.field(default=redact_secrets, repr=False)

    async def summary(self, request: SummaryRequest, model: str, ask: Ask) -> str:
        """The summary, awaited.

        Raises:
            SummaryFailed: If the model gave none that can stand for the conversation.
        """
        with contextlib.closing(self._calls(request, model)) as calls:
            try:
                call = next(calls)
                while True:
                    call = calls.send(await _answer(ask, call))
            except StopIteration as done:
                return str(done.value)

    def summary_sync(self, request: SummaryRequest, model: str, ask: AskSync) -> str:
        """The summary, at once; errors as for `summary`."""
        with contextlib.closing(self._calls(request, model)) as calls:
            try:
                call = next(calls)
                while True:
                    call = calls.send(_answer_sync(ask, call))
            except StopIteration as done:
                return str(done.value)

    def _calls(self, request: SummaryRequest, model: str) -> Generator[Call, Reply | Fault, str]:
        """The summary in the making: all decisions, nothing sent; a wait passes at once, as the framework's client waits."""
        folding = Folding(
            window=self.window, headroom=self.headroom, max_parts=self.max_parts, rules_role="system", redact=self.redact
        )
        retries = Retries(times=0, backoff_seconds=1.0, max_wait_seconds=1.0)
        exchange = folding.summarize(request, Asking(models=[model], retries=retries, least_read=0.0))
        with contextlib.closing(exchange):
            answer: Reply | Fault | None = None
            while True:
                try:
                    step = exchange.send(answer)
                except StopIteration as done:
                    return str(done.value)
                answer = (yield step) if isinstance(step, Call) else None


async def _answer(ask: Ask, call: Call) -> Reply | Fault:
    try:
        return await ask(call)
    except Exception as error:
        return fault_of(error)


def _answer_sync(ask: AskSync, call: Call) -> Reply | Fault:
    try:
        return ask(call)
    except Exception as error:
        return fault_of(error)


def fault_of(error: Exception) -> Fault:
    """What may be done about what a framework's client raised: a shorter request, or nothing."""
    says = " ".join(redact_secrets(str(error)[:1_200]).split())[:300] or type(error).__name__
    return Fault(kind="too_long" if is_too_long(0, says) else "final", says=f"could not be asked ({says})", cause=error)
