"""Several summarizers in order: the next one is asked where one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from ..errors import ConfigurationError, SummaryFailed, SyncDriverError
from .base import Summarizer, SummaryRequest, answer_in_time, asks_model, cache_key_of, usable_text
from .text_generator import SummarizerLike, as_summarizer

_MOST_TIMES: Final = 4


@attrs.frozen(init=False, repr=False)
class FirstOf:
    """A summarizer that asks others in order, and returns the first usable answer.

    An answer is usable if it is a text, is not empty, and has at most four times the tokens that were allowed. Sync and async
    summarizers may be mixed; from the first one that must be awaited on, the answer is an awaitable. A run whose summary came
    from a later one is ``degraded``, and its ``failures`` say why.

    Args:
        summarizers: The summarizers, the best first; one that cannot fail, such as a `DigestSummarizer`, belongs at the end.

    Raises:
        ConfigurationError: If there is none, or one is not a summarizer.

    >>> from compaction.summarizers import DigestSummarizer, OpenAISummarizer
    >>> local = OpenAISummarizer("qwen3-8b", base_url="http://127.0.0.1:8080/v1", api_key="none")
    >>> len(FirstOf(OpenAISummarizer("gpt-5-mini"), local, DigestSummarizer()).summarizers)
    3
    """

    timeout_seconds: ClassVar[None] = None  # each summarizer has one
    summarizers: tuple[Summarizer, ...]

    def __init__(self, *summarizers: SummarizerLike) -> None:
        if not summarizers:
            raise ConfigurationError("FirstOf: pass one or more summarizers, the best first")
        each = tuple(map(as_summarizer, summarizers))
        self.__attrs_init__(each)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    def __repr__(self) -> str:
        return f"FirstOf({', '.join(map(repr, self.summarizers))})"

    @property
    def asks_model(self) -> bool:
        """Whether one of them asks a model."""
        return any(map(asks_model, self.summarizers))

    @property
    def cache_key(self) -> str:
        """The keys of all of them, for `CachedSummarizer`."""
        return repr([*map(cache_key_of, self.summarizers)])

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the first usable answer, or an awaitable of it.

        Raises:
            SummaryFailed: If every summarizer failed; the message lists what each of them said.
        """
        steps = self._steps(request)
        try:
            return _Waiting(steps, *next(steps))
        except StopIteration as done:
            return str(done.value)

    def _steps(self, request: SummaryRequest) -> _Steps:
        """Yield each answer that must be awaited, with its summarizer; return the first usable one."""
        failed: list[str] = []
        for summarizer in self.summarizers:
            try:
                answer = summarizer.summarize(request)
                text = (yield summarizer, answer) if isinstance(answer, Awaitable) else answer
                return self._used(text, request)
            except (ConfigurationError, SyncDriverError):
                raise  # another summarizer must not hide a mistake
            except Exception as error:
                request.failures.append(error)
                failed.append(f"{type(summarizer).__name__}: {str(error)[:500] or type(error).__name__}")
        raise SummaryFailed(f"every summarizer failed: {'; '.join(failed)}")

    def _used(self, answer: object, request: SummaryRequest) -> str:
        """Return the answer as text; raise `SummaryFailed` if it is unusable or too long."""
        text = usable_text(answer)
        limit = _MOST_TIMES * request.budget
        if len(text) > limit and (tokens := request.counter.count_text(text)) > limit:
            raise SummaryFailed(f"the summary has {tokens:,} tokens; {request.budget:,} were allowed")
        return text


_Steps: TypeAlias = Generator[tuple[Summarizer, Awaitable[str]], str, str]


async def _awaited(steps: _Steps, summarizer: Summarizer, answer: Awaitable[str]) -> str:
    """Await each answer, pass it or its failure back to the generator, and return what that returns."""
    try:
        while True:
            try:
                text = await answer_in_time(summarizer, answer)
            except Exception as error:
                summarizer, answer = steps.throw(error)
            else:
                summarizer, answer = steps.send(text)
    except StopIteration as done:
        return str(done.value)


@attrs.frozen
class _Waiting(Awaitable[str]):
    """The answer, which can be awaited, or closed if nobody awaits it."""

    steps: _Steps
    summarizer: Summarizer
    answer: Awaitable[str]

    def __await__(self) -> Generator[Any, Any, str]:
        return _awaited(self.steps, self.summarizer, self.answer).__await__()

    def close(self) -> None:
        """Give up what was not awaited."""
        getattr(self.answer, "close", lambda: None)()
