"""Summaries by any object with ``generate(prompt)``, such as a language model behind a port of your own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import attrs

from ..checks import refuse_uncalled
from ..errors import ConfigurationError
from ..index import unawaited
from .base import Summarizer, SummaryRequest
from .chunked import SummaryOptions
from .model_calls import ModelCall, ModelReply


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
    return GeneratorSummarizer(summarizer)


@attrs.frozen
class GeneratorSummarizer:
    """A summarizer that has an object with ``generate(prompt) -> str`` write the summary, sync or async.

    Such an object does not say why an answer ended, so one that was cut off at the length limit is not detected: let it allow
    longer answers than ``budget``.

    Args:
        model: The object.
        summary_options: The model's window, and the limits of the summary.
    """

    timeout_seconds: ClassVar[None] = None  # each call of the model has one, in ``summary_options``
    model: TextGenerator
    summary_options: SummaryOptions = attrs.field(factory=SummaryOptions, kw_only=True)

    @property
    def cache_key(self) -> str:
        """The model's own ``cache_key``, for `CachedSummarizer`."""
        return str(getattr(self.model, "cache_key"))  # noqa: B009 (an AttributeError says that there is none)

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the summary, or an awaitable of it if ``generate`` is an async function.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        is_async = inspect.iscoroutinefunction(inspect.unwrap(self.model.generate))
        answer = self.summary_options.summary(request, type(self.model).__name__, partial(self._asked, is_async))
        return answer if is_async else unawaited(answer)

    def _asked(self, is_async: bool, call: ModelCall) -> ModelReply | Awaitable[ModelReply]:
        answer = self.model.generate("\n\n".join([text for _, text in call.messages]))
        if is_async and inspect.isawaitable(answer):
            return _awaited(answer)
        if inspect.iscoroutine(answer):
            answer.close()
        return _reply(answer)


async def _awaited(answer: Awaitable[object]) -> ModelReply:
    return _reply(await answer)


def _reply(answer: object) -> ModelReply:
    if not isinstance(answer, str):
        raise TypeError(f"generate(prompt) returned {type(answer).__name__}; it returns a text, or is an async function")
    return ModelReply(text=answer)
