"""Summaries by a framework's client or your own: the prompts and checks of `OpenAISummarizer`, sent by that client.

Secrets are removed, a conversation longer than the window is read in parts, and an answer must be able to stand for the
conversation. The client makes its own retries; only a rejected answer is asked for again here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias

import anyio
import attrs

from ...checks import above, count
from ...tokens import is_too_long
from ..base import TIMEOUT_SECONDS, SummaryRequest
from .chunked import ChunkedSummarization
from .model_calls import ModelCall, ModelFault, ModelReply
from .retries import RetryPolicy, SummaryAttempts

__all__ = ["SendCall", "SendCallSync", "SummaryOptions"]


def _secrets_redaction() -> Callable[[str], str]:
    from ..redaction import redact  # its patterns take longer to compile than the rest of this folder

    return redact


SendCall: TypeAlias = Callable[[ModelCall], Awaitable[ModelReply]]
"""A function that sends one call and awaits its reply."""

SendCallSync: TypeAlias = Callable[[ModelCall], ModelReply]
"""A function that sends one call and returns its reply."""


@attrs.frozen(kw_only=True)
class SummaryOptions:
    """The options of a summary by a framework's model or your own, the same for every client.

    Args:
        window: Tokens of the model's context window; ``None`` if it is not known: then everything is sent in one request.
        headroom: Tokens a reply may have, as a multiple of the summary's budget, > 0.
        max_parts: The largest number of parts to read a conversation in, >= 1.
        timeout_seconds: How long one call of the model may take, > 0. A sync call cannot be interrupted: it is passed to a
            LangChain model that has an option ``timeout``, and elsewhere the client needs a timeout of its own.
        redact: Removes the secrets from a text.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    headroom: float = attrs.field(default=1.5, validator=above(0))
    max_parts: int = attrs.field(default=100, validator=count(1))
    timeout_seconds: float = attrs.field(default=TIMEOUT_SECONDS, validator=above(0))
    redact: Callable[[str], str] = attrs.field(factory=_secrets_redaction, repr=False)

    async def summary(self, request: SummaryRequest, model: str, ask: SendCall) -> str:
        """Await the summary.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        with contextlib.closing(self._calls(request, model)) as calls:
            try:
                call = next(calls)
                while True:
                    call = calls.send(await self._answer(ask, call))
            except StopIteration as done:
                return str(done.value)

    def summary_sync(self, request: SummaryRequest, model: str, ask: SendCallSync) -> str:
        """Return the summary; errors as for `summary`."""
        with contextlib.closing(self._calls(request, model)) as calls:
            try:
                call = next(calls)
                while True:
                    call = calls.send(_answer_sync(ask, call))
            except StopIteration as done:
                return str(done.value)

    async def _answer(self, ask: SendCall, call: ModelCall) -> ModelReply | ModelFault:
        try:
            with anyio.move_on_after(self.timeout_seconds):
                return await ask(call)
        except Exception as error:
            return _fault(error)
        return ModelFault(kind="final", says=f"did not answer within {self.timeout_seconds:g} s", cause=None)

    def _calls(self, request: SummaryRequest, model: str) -> Generator[ModelCall, ModelReply | ModelFault, str]:
        """Return the generator of calls, which returns the summary; waits are skipped, because the client makes its own."""
        chunked = ChunkedSummarization(
            window=self.window, headroom=self.headroom, max_parts=self.max_parts, rules_role="system", redact=self.redact
        )
        retries = RetryPolicy(times=0, backoff_seconds=1.0, max_wait_seconds=1.0)
        steps = chunked.summarize(request, SummaryAttempts(models=[model], retries=retries, least_read=0.0))
        with contextlib.closing(steps):
            answer: ModelReply | ModelFault | None = None
            while True:
                try:
                    step = steps.send(answer)
                except StopIteration as done:
                    return str(done.value)
                answer = (yield step) if isinstance(step, ModelCall) else None


def _answer_sync(ask: SendCallSync, call: ModelCall) -> ModelReply | ModelFault:
    try:
        return ask(call)
    except Exception as error:
        return _fault(error)


def _fault(error: Exception) -> ModelFault:
    """Return the failure that an exception of a model's client stands for."""
    says = " ".join(_secrets_redaction()(str(error)[:1_200]).split())[:300] or type(error).__name__
    return ModelFault(kind="too_long" if is_too_long(0, says) else "final", says=f"could not be called ({says})", cause=error)
