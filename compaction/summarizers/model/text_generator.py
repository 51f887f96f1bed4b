"""Summaries by a framework's client or your own: the prompts and checks of `OpenAISummarizer`, sent by that client.

Secrets are removed, a conversation longer than the window is read in parts, and an answer must be able to stand for the
conversation. The client makes its own retries; only a rejected answer is asked for again here. Any object with
``generate(prompt)`` is such a client.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import anyio
import attrs

from ...checks import above, count, refuse_uncalled
from ...errors import ConfigurationError
from ...tokens import is_too_long
from ..base import TIMEOUT_SECONDS, Summarizer, SummaryRequest
from .attempts import SummaryAttempts
from .chunked import ChunkedSummarization
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps, drive, drive_sync


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
        return await drive(self._steps(request, model), partial(self._answer, ask))

    def summary_sync(self, request: SummaryRequest, model: str, ask: SendCallSync) -> str:
        """Return the summary; errors as for `summary`."""
        return drive_sync(self._steps(request, model), partial(_answer_sync, ask))

    async def _answer(self, ask: SendCall, call: ModelCall) -> ModelReply | ModelFault:
        try:
            with anyio.move_on_after(self.timeout_seconds):
                return await ask(call)
        except Exception as error:
            return _fault(error)
        return ModelFault(says=f"did not answer within {self.timeout_seconds:g} s")

    def _steps(self, request: SummaryRequest, model: str) -> SummarySteps:
        chunked = ChunkedSummarization(
            window=self.window, headroom=self.headroom, max_parts=self.max_parts, rules_role="system", redact=self.redact
        )
        return chunked.summarize(request, SummaryAttempts(models=[model], least_read=0.0))


def _answer_sync(ask: SendCallSync, call: ModelCall) -> ModelReply | ModelFault:
    try:
        return ask(call)
    except Exception as error:
        return _fault(error)


def _fault(error: Exception) -> ModelFault:
    """Return the failure that an exception of a model's client stands for."""
    says = " ".join(_secrets_redaction()(str(error)[:1_200]).split())[:300] or type(error).__name__
    return ModelFault(says=f"could not be called ({says})", too_long=is_too_long(0, says), cause=error)


@runtime_checkable
class TextGenerator(Protocol):
    """A language model behind one method."""

    def generate(self, prompt: str, /) -> str | Awaitable[str]:
        """Return the model's answer to a prompt."""
        ...


SummarizerLike: TypeAlias = Summarizer | TextGenerator
"""A summarizer, or an object that can be one."""


def as_summarizer(summarizer: SummarizerLike) -> Summarizer:
    """Return a summarizer as it is, or an object with ``generate(prompt) -> str`` as a summarizer.

    Raises:
        ConfigurationError: If it is neither.

    >>> class Model:
    ...     def generate(self, prompt):
    ...         return "The user wants tea."
    >>> as_summarizer(Model()).summarize.__name__
    'summarize'
    """
    refuse_uncalled(summarizer, "a summarizer")
    if isinstance(summarizer, Summarizer):
        return summarizer
    if hasattr(summarizer, "invoke"):
        raise ConfigurationError(
            f"a summarizer has summarize(request) or generate(prompt) (got {type(summarizer).__name__}, which looks like a chat"
            " model of LangChain); pass compaction.integrations.langchain.ChatModelSummarizer(model)"
        )
    if not isinstance(summarizer, TextGenerator):
        remedy = f"; for a model's name, write OpenAISummarizer({summarizer!r})" if isinstance(summarizer, str) else ""
        raise ConfigurationError(f"a summarizer has summarize(request) or generate(prompt) (got {summarizer!r}){remedy}")
    return GeneratedSummary(summarizer)


@attrs.frozen
class GeneratedSummary:
    """A summarizer that has an object with ``generate(prompt) -> str`` write the summary, sync or async.

    Such an object does not say why an answer ended, so one that was cut off at the length limit is not detected: let it allow
    longer answers than ``budget``.

    Args:
        model: The object.
        options: The model's window, and the limits of the summary.
    """

    timeout_seconds: ClassVar[None] = None  # each call of the model has one, in ``options``
    model: TextGenerator
    options: SummaryOptions = attrs.field(factory=SummaryOptions, kw_only=True)

    @property
    def cache_key(self) -> str:
        """The model's own ``cache_key``, for `CachedSummarizer`."""
        return str(getattr(self.model, "cache_key"))  # noqa: B009 (an AttributeError says that there is none)

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the summary, or an awaitable of it if ``generate`` is an async function.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        name = type(self.model).__name__
        if inspect.iscoroutinefunction(inspect.unwrap(self.model.generate)):
            return self.options.summary(request, name, self._ask)
        return self.options.summary_sync(request, name, self._ask_sync)

    async def _ask(self, call: ModelCall) -> ModelReply:
        answer = self.model.generate(_prompt(call))
        return _reply(await answer if inspect.isawaitable(answer) else answer)

    def _ask_sync(self, call: ModelCall) -> ModelReply:
        answer = self.model.generate(_prompt(call))
        if inspect.iscoroutine(answer):
            answer.close()
        return _reply(answer)


def _prompt(call: ModelCall) -> str:
    return "\n\n".join([text for _, text in call.messages])


def _reply(answer: object) -> ModelReply:
    if not isinstance(answer, str):
        raise TypeError(f"generate(prompt) returned {type(answer).__name__}; it returns a text, or is an async function")
    return ModelReply(text=answer)
