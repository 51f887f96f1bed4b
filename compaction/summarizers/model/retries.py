"""Repeated requests for one summary: retries after temporary failures, one more try after a bad answer, then the next model.

Nothing here sends or sleeps: `SummaryAttempts.ask` is a generator, and its driver sends what it yields.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Generator
from typing import Any, Final

import attrs

from ...errors import SummaryFailed
from ...tokens import TokenCounter
from ..templates import SummaryTemplate
from .answers import RejectedAnswer, check_answer
from .model_calls import ModelCall, ModelFault, ModelReply, RetryWait, SummarySteps

__all__ = ["RequestTooLong", "RetryPolicy", "SummaryAttempts", "SummaryPrompt"]

_LONGEST_BACKOFF_SECONDS: Final = 30.0
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

    def check(self, reply: ModelReply) -> str | RejectedAnswer:
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


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """How often, and after which wait, a request is sent again after a temporary failure.

    Args:
        times: The number of retries.
        backoff_seconds: The wait before the first retry; it doubles each time, up to 30 seconds.
        max_wait_seconds: The longest wait a server may ask for; if it asks for more, the model is not asked again.
        random: Returns numbers from 0 up to 1 that spread the waits; by default a digest of the request and the attempt, so
            that equal runs wait equally long and different requests do not arrive together.
    """

    times: int
    backoff_seconds: float
    max_wait_seconds: float
    random: Callable[[], float] | None = None

    def seconds(self, call: ModelCall, attempt: int, asked: float | None) -> float | None:
        """Return how long to wait before sending ``call`` again; ``None`` if that is too long."""
        if asked is not None:
            return asked if asked <= self.max_wait_seconds else None
        backoff = min(self.backoff_seconds * float(2**attempt), _LONGEST_BACKOFF_SECONDS, self.max_wait_seconds)
        spread = _spread(call, attempt) if self.random is None else self.random()
        return backoff * (0.5 + spread / 2)


def _spread(call: ModelCall, attempt: int) -> float:
    text = f"{call.model}\0{attempt}\0{call.messages[-1][1]}"
    return int.from_bytes(hashlib.blake2s(text.encode("utf-8", "replace"), digest_size=4).digest()) / 2**32


@attrs.define(kw_only=True)
class SummaryAttempts:
    """The attempts at one summary. Holds state: the models left to ask, and what was tried.

    Args:
        models: Names of models in the order to ask them; one that failed is not asked again.
        retries: What to do after a temporary failure.
        least_read: The share of a request, by our count, that a server must report as read.
    """

    models: list[str]
    retries: RetryPolicy
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

    def _ask_model(self, model: str, prompt: SummaryPrompt) -> Generator[ModelCall | RetryWait, Any, str | None]:
        """Return a model's answer, asking once more if the first is rejected; ``None`` if both are."""
        note = ""
        for _ in range(2):
            reply = yield from self._reply(prompt.call(model, note))
            if reply is None:
                return None
            self._check_read(reply, prompt)
            verdict = prompt.check(reply)
            if isinstance(verdict, str):
                return verdict
            self._note(model, verdict.why, None)
            if verdict.again is None:
                return None
            note = f"An earlier answer could not be used. {verdict.again}"
        return None

    def _reply(self, call: ModelCall) -> Generator[ModelCall | RetryWait, Any, ModelReply | None]:
        """Return the reply to a call, sent again after temporary failures; ``None`` if all attempts fail."""
        for attempt in range(self.retries.times + 1):
            reply: ModelReply | ModelFault = yield call
            if isinstance(reply, ModelReply):
                return reply
            if reply.kind == "too_long":
                raise RequestTooLong(reply.says) from reply.cause
            self._note(call.model, reply.says, reply.cause)
            if reply.kind == "final" or attempt == self.retries.times:
                return None
            seconds = self.retries.seconds(call, attempt, reply.wait_seconds)
            if seconds is None:
                self._note(call.model, f"asks for a wait of {reply.wait_seconds:g} s, which is too long", None)
                return None
            if seconds > 0:
                yield RetryWait(seconds)
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
