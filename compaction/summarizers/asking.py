"""Asking for a summary until there is one: again after a fault that passes, once more after a bad answer, then another model.

Nothing here sends or sleeps. `Asking.ask` is a generator; what it yields is sent by whoever drives it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Generator
from typing import Any, Final

import attrs

from ..errors import SummaryFailed
from ..tokens import TokenCounter
from .answers import Rejected, judge
from .exchange import Call, Exchange, Fault, Reply, Wait
from .templates import SummaryTemplate

__all__ = ["Asking", "Question", "Retries", "TooLong"]

_LONGEST_BACKOFF_SECONDS: Final = 30.0
_LEAST_READ_TOKENS: Final = 2_048
_SAME_SHARE: Final = 0.25


class TooLong(Exception):
    """A request was longer than the model takes; carries what the server said."""


@attrs.frozen(kw_only=True)
class Question:
    """One request for a summary, and what its answer is judged by.

    Args:
        rules: What goes before it.
        rules_role: The role that says the rules; ``"user"`` puts them into the same message.
        prompt: The request itself.
        record: What is to be summarized.
        key: The word that only the lines around the record hold.
        template: What it was made from.
        limit: Tokens the summary may have.
        max_tokens: Tokens the reply may have, thoughts included.
        most_tokens: The same for a reply that was cut off once.
        tokens: Tokens of the request by our count.
        counter: What counted them.
        redact: Takes the secrets out of an answer.
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

    def call(self, model: str, note: str = "") -> Call:
        """The request; with a note at its end if an answer was no good."""
        prompt = f"{self.prompt}\n\n{note}" if note else self.prompt
        if self.rules_role == "user":
            messages: tuple[tuple[str, str], ...] = (("user", f"{self.rules}\n\n{prompt}"),)
        else:
            messages = ((self.rules_role, self.rules), ("user", prompt))
        return Call(model=model, messages=messages, max_tokens=self.most_tokens if note else self.max_tokens)

    def judge(self, reply: Reply) -> str | Rejected:
        """The summary in a reply, or why there is none."""
        return judge(
            reply,
            limit=self.limit,
            record=self.record,
            key=self.key,
            template=self.template,
            counter=self.counter,
            redact=self.redact,
        )


@attrs.frozen(kw_only=True)
class Retries:
    """How often and when a request is sent again after a fault that passes.

    Args:
        times: How often.
        backoff_seconds: The wait before the first time; it doubles each time, up to 30 seconds.
        max_wait_seconds: The longest wait a server may ask for; if it asks for more, the model is given up.
        random: Numbers from 0 up to 1 that spread the waits; by default a digest of the request and the attempt, so that
            equal runs wait equally and different requests do not come together.
    """

    times: int
    backoff_seconds: float
    max_wait_seconds: float
    random: Callable[[], float] | None = None

    def seconds(self, call: Call, attempt: int, asked: float | None) -> float | None:
        """How long to wait before sending ``call`` again; ``None`` if that is too long."""
        if asked is not None:
            return asked if asked <= self.max_wait_seconds else None
        backoff = min(self.backoff_seconds * float(2**attempt), _LONGEST_BACKOFF_SECONDS, self.max_wait_seconds)
        spread = _spread(call, attempt) if self.random is None else self.random()
        return backoff * (0.5 + spread / 2)


def _spread(call: Call, attempt: int) -> float:
    text = f"{call.model}\0{attempt}\0{call.messages[-1][1]}"
    return int.from_bytes(hashlib.blake2s(text.encode("utf-8", "replace"), digest_size=4).digest()) / 2**32


@attrs.define(kw_only=True)
class Asking:
    """Holds state: the models left to ask, and what was tried, for one summary.

    Args:
        models: Their names, in the order they are asked; one that was given up is not asked again.
        retries: What happens after a fault that passes.
        least_read: The share of a request, by our count, that a server must say it read.
    """

    models: list[str]
    retries: Retries
    least_read: float
    _tried: list[str] = attrs.field(factory=list[str], init=False)
    _cause: Exception | None = attrs.field(default=None, init=False)
    _read_share: float | None = attrs.field(default=None, init=False)

    def ask(self, question: Question) -> Exchange:
        """The answer to a question.

        Raises:
            TooLong: If the request must be shorter.
            SummaryFailed: If no model gave a summary.
        """
        while self.models:
            answer = yield from self._ask_model(self.models[0], question)
            if answer is not None:
                return answer
            del self.models[0]
        raise self.failed()

    def give_up(self, error: TooLong) -> None:
        """Ask the present model no more: it takes less than there is to send.

        Raises:
            SummaryFailed: If it was the last.
        """
        self._note(self.models.pop(0), str(error), error)
        if not self.models:
            raise self.failed()

    def failed(self) -> SummaryFailed:
        """What to raise when there is nobody left to ask."""
        runs = [(says, len(list(run))) for says, run in itertools.groupby(self._tried)]
        tried = "; ".join(says if times == 1 else f"{says} ({times} times)" for says, times in runs)
        error = SummaryFailed(f"no summary was to be had: {tried}")
        error.__cause__ = self._cause
        return error

    def _note(self, model: str, says: str, cause: Exception | None) -> None:
        self._tried.append(f"{model} {says}")
        self._cause = cause or self._cause

    def _ask_model(self, model: str, question: Question) -> Generator[Call | Wait, Any, str | None]:
        """The answer of one model, asked a second time if the first will not do; ``None`` if it has none."""
        note = ""
        for _ in range(2):
            reply = yield from self._reply(question.call(model, note))
            if reply is None:
                return None
            self._check_read(reply, question)
            verdict = question.judge(reply)
            if isinstance(verdict, str):
                return verdict
            self._note(model, verdict.why, None)
            if verdict.again is None:
                return None
            note = f"An earlier answer could not be used. {verdict.again}"
        return None

    def _reply(self, call: Call) -> Generator[Call | Wait, Any, Reply | None]:
        """The reply to a call, sent again after faults that pass; ``None`` if there is none to be had."""
        for attempt in range(self.retries.times + 1):
            reply: Reply | Fault = yield call
            if isinstance(reply, Reply):
                return reply
            if reply.kind == "too_long":
                raise TooLong(reply.says) from reply.cause
            self._note(call.model, reply.says, reply.cause)
            if reply.kind == "final" or attempt == self.retries.times:
                return None
            seconds = self.retries.seconds(call, attempt, reply.wait_seconds)
            if seconds is None:
                self._note(call.model, f"asks for a wait of {reply.wait_seconds:g} s, which is too long", None)
                return None
            if seconds > 0:
                yield Wait(seconds)
        return None

    def _check_read(self, reply: Reply, question: Question) -> None:
        """Some servers cut a request that is too long and say nothing; their usage does.

        A share that stays the same for a shorter request is a server that counts otherwise than we do, not one that cuts.

        Raises:
            TooLong: If the server read far less than was sent.
        """
        read = reply.prompt_tokens
        if read is None or question.tokens < _LEAST_READ_TOKENS or read >= self.least_read * question.tokens:
            return
        share, before = read / question.tokens, self._read_share
        if before is not None and abs(share - before) <= _SAME_SHARE * before:
            return
        self._read_share = share
        raise TooLong(f"read {read:,} tokens of a request of about {question.tokens:,}")
