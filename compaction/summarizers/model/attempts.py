"""The attempts at one summary: one more try after a bad answer, then the next model.

Nothing here sends: `SummaryAttempts.ask` is a generator, and its driver sends what it yields. After temporary failures the
client sends again by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Final

import attrs

from ...errors import SummaryFailed
from .answers import SummaryPrompt
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps

_LEAST_READ_TOKENS: Final = 2_048
_SAME_SHARE: Final = 0.25


class RequestTooLong(Exception):
    """A request is longer than the model accepts; carries the server's words."""


@attrs.define(kw_only=True)
class SummaryAttempts:
    """The attempts at one summary. Holds state: the models left to ask, and what was tried.

    Args:
        models: Names of models in the order to ask them; one that failed is not asked again.
        least_read: The share of a request, by our count, that a server must report as read.
    """

    models: list[str]
    least_read: float
    _tried: list[str] = attrs.field(factory=list[str], init=False)
    _cause: Exception | None = attrs.field(default=None, init=False)
    _read_share: float | None = attrs.field(default=None, init=False)

    def ask(self, prompt: SummaryPrompt) -> SummarySteps:
        """Ask until a model gives a usable answer, and return it.

        Raises:
            RequestTooLong: If the request must be shorter.
            SummaryFailed: If no model gave a summary.
        """
        while self.models:
            answer = yield from self._ask_model(self.models[0], prompt)
            if answer is not None:
                return answer
            del self.models[0]
        raise self.failed()

    def give_up(self, error: RequestTooLong) -> None:
        """Drop the current model, whose window is too small.

        Raises:
            SummaryFailed: If it was the last.
        """
        self._note(self.models.pop(0), str(error), error)
        if not self.models:
            raise self.failed()

    def failed(self) -> SummaryFailed:
        """Return the error to raise when no model is left."""
        runs = [(says, len(list(run))) for says, run in itertools.groupby(self._tried)]
        tried = "; ".join(says if times == 1 else f"{says} ({times} times)" for says, times in runs)
        error = SummaryFailed(f"the summarizer failed: {tried}")
        error.__cause__ = self._cause
        return error

    def _note(self, model: str, says: str, cause: Exception | None) -> None:
        self._tried.append(f"{model} {says}")
        self._cause = cause or self._cause

    def _ask_model(self, model: str, prompt: SummaryPrompt) -> Generator[ModelCall, ModelReply | ModelFault, str | None]:
        """Return a model's answer, asking once more if the first is rejected; ``None`` if both are."""
        note = ""
        for _ in range(2):
            verdict: str | ModelFault | ModelReply = yield prompt.call(model, note)
            if isinstance(verdict, ModelReply):
                self._check_read(verdict, prompt)
                verdict = prompt.check(verdict)
            if isinstance(verdict, str):
                return verdict
            if verdict.too_long:
                raise RequestTooLong(verdict.says) from verdict.cause
            self._note(model, verdict.says, verdict.cause)
            if verdict.again is None:
                return None
            note = verdict.again and f"An earlier answer could not be used. {verdict.again}"
        return None

    def _check_read(self, reply: ModelReply, prompt: SummaryPrompt) -> None:
        """Check by the reported usage that the server did not cut the request without an error.

        If a shorter request gives the same share, the server counts tokens differently and cuts nothing.

        Raises:
            RequestTooLong: If the server read far less than was sent.
        """
        read = reply.prompt_tokens
        if read is None or prompt.tokens < _LEAST_READ_TOKENS or read >= self.least_read * prompt.tokens:
            return
        share, before = read / prompt.tokens, self._read_share
        if before is not None and abs(share - before) <= _SAME_SHARE * before:
            return
        self._read_share = share
        raise RequestTooLong(f"read {read:,} tokens of a request of about {prompt.tokens:,}")
