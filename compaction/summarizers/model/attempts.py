"""The attempts at one summary: one more try after a bad answer, then the next model.

Nothing here sends: `SummaryAttempts.ask` is a generator, and its driver sends what it yields. After temporary failures the
client sends again by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Final

import attrs

from ...errors import SummaryFailed
from ...tokens import TokenCounter
from ..templates import SummaryTemplate
from .answers import check_answer
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps

_LEAST_READ_TOKENS: Final = 2_048
_SAME_SHARE: Final = 0.25


class RequestTooLong(Exception):
    """A request is longer than the model accepts; carries the server's words."""


@attrs.frozen(kw_only=True)
class SummaryPrompt:
    """One prompt for a summary, with what its answer is checked against.

    Args:
        rules: The rules that precede the prompt.
        rules_role: The role of the rules; ``"user"`` puts them into the same message.
        prompt: The prompt's text.
        record: The transcript to summarize.
        key: The word that occurs only in the lines around the record.
        template: The template the prompt was made from.
        limit: Tokens the summary may have.
        max_tokens: Tokens the reply may have, reasoning included.
        most_tokens: The same for a second try.
        tokens: Tokens of the request by our count.
        counter: The token counter.
        redact: Removes the secrets from an answer.
    """

    rules: str
    rules_role: str
    prompt: str
    record: str
    key: str
    template: SummaryTemplate
    limit: int
    max_tokens: int
    most_tokens: int
    tokens: int
    counter: TokenCounter
    redact: Callable[[str], str]

    def call(self, model: str, note: str = "") -> ModelCall:
        """Return the call; a note about a rejected answer goes to its end."""
        prompt = f"{self.prompt}\n\n{note}" if note else self.prompt
        if self.rules_role == "user":
            messages: tuple[tuple[str, str], ...] = (("user", f"{self.rules}\n\n{prompt}"),)
        else:
            messages = ((self.rules_role, self.rules), ("user", prompt))
        return ModelCall(model=model, messages=messages, max_tokens=self.most_tokens if note else self.max_tokens)

    def check(self, reply: ModelReply) -> str | ModelFault:
        """Return the summary in a reply, or why it is rejected."""
        return check_answer(
            reply,
            limit=self.limit,
            record=self.record,
            key=self.key,
            template=self.template,
            counter=self.counter,
            redact=self.redact,
        )


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
