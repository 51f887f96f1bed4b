"""Chunked summarization, for every client: a conversation longer than the model's window is read in parts.

Each part goes with the summary so far, so the model reads every word, whatever its window: nothing is cut from the middle.
Secrets are removed, and an answer must be able to stand for the conversation. The client makes its own retries; only a rejected
answer is asked for again here.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import anyio
import attrs

from ..checks import above, at_least, count
from ..errors import ConfigurationError, SummaryFailed
from ..tokens import is_too_long
from .answers import AnswerCheck
from .base import TIMEOUT_SECONDS, SummaryRequest
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps, brief, drive
from .prompts import SYSTEM_RULES, part_note
from .redaction import redact as redact_secrets
from .transcript import Entry, entries_of, fenced, record_key, rendered, sendable, split_entries, tokens_of

_LEAST_PART_TOKENS: Final = 256  # smaller parts say too little: the summary fails instead
_MESSAGE_TOKENS: Final = 16  # of what a provider writes around the messages of a request
_NOTE_TOKENS: Final = 64  # of the advice behind a request whose first answer was rejected
_SLACK_SHARE: Final = 20  # one twentieth of the window stays free, because counters differ
_LEAST_READ_TOKENS: Final = 2_048  # a server's usage is not checked for shorter requests
_LEAST_READ_SHARE: Final = 0.5  # of a request, by our count; a server that read less may have cut it
_SAME_SHARE: Final = 0.25  # of the share read before: a smaller difference is none

AskModel: TypeAlias = Callable[[ModelCall], ModelReply | Awaitable[ModelReply]]
"""A function that sends one call and returns its reply, or an awaitable of it."""


@attrs.frozen(kw_only=True)
class SummaryOptions:
    """The options of a summary by a model, the same for every client.

    Args:
        window: Tokens of the model's context window; ``None`` if it is not known: then everything is sent in one request.
        headroom: Tokens a reply may have, as a multiple of the summary's budget, >= 1: a shorter one would always be cut off.
        max_parts: The largest number of parts to read a conversation in, >= 1.
        timeout_seconds: How long one call of the model may take, > 0. A sync call cannot be interrupted: it is passed to a
            LangChain model that has an option ``timeout``, and elsewhere the client needs a timeout of its own.
        redact: Removes the secrets from a text: the conversation, an answer, and what an error says.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    headroom: float = attrs.field(default=1.5, validator=at_least(1))
    max_parts: int = attrs.field(default=100, validator=count(1))
    timeout_seconds: float = attrs.field(default=TIMEOUT_SECONDS, validator=above(0))
    redact: Callable[[str], str] = attrs.field(default=redact_secrets, repr=False)

    async def summary(self, request: SummaryRequest, model: str, ask: AskModel) -> str:
        """Return the summary; if ``ask`` returns no awaitable, this awaits nothing, see `compaction.index.unawaited`.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        return await drive(self.steps(request, model), partial(self._sent, ask))

    def steps(self, request: SummaryRequest, model: str, *, rules_role: str = "system") -> SummarySteps:
        """Return the generator that makes every decision and sends nothing; the rules are in a message with ``rules_role``.

        Raises:
            SummaryFailed: If the model wrote none, or it would take too many parts.
            ConfigurationError: If the window is too small.
        """
        entries = entries_of(request.groups, redact=self.redact)
        previous = None if request.previous is None else self.redact(sendable(request.previous))
        if not entries:
            if previous:
                return previous
            raise SummaryFailed("there is nothing to summarize: every group is empty")
        plan = _plan_of(self, request, entries, previous, model=model, rules_role=rules_role)
        parts = plan.parts()
        summary, done = plan.carried, 0
        while parts:
            if done + len(parts) > self.max_parts:  # before more requests are paid for
                raise SummaryFailed(
                    f"the conversation needs {done + len(parts)} parts, and at most {self.max_parts} are allowed: use a model"
                    " with a larger window, shorten tool results first, or raise 'max_parts'"
                )
            try:
                summary = yield from plan.ask(parts[0], summary, part_note(done + 1, done + len(parts)))
            except _RequestTooLong as error:
                parts = plan.smaller(parts, error)
            else:
                parts, done = parts[1:], done + 1
        return summary or ""

    async def _sent(self, ask: AskModel, call: ModelCall) -> ModelReply | ModelFault:
        """Send a call; return the reply, or the failure that an exception of a model's client stands for."""
        try:
            reply = ask(call)
            if isinstance(reply, ModelReply):
                return reply
            with anyio.move_on_after(self.timeout_seconds):
                return await reply
        except Exception as error:
            says = brief(str(error), self.redact) or type(error).__name__
            return ModelFault(says=f"could not be called ({says})", too_long=is_too_long(0, says), cause=error)
        return ModelFault(says=f"did not answer within {self.timeout_seconds:g} s")


def _plan_of(
    options: SummaryOptions, request: SummaryRequest, entries: list[Entry], previous: str | None, *, model: str, rules_role: str
) -> _Plan:
    """Return the plan for reading; an earlier summary too large to carry along is read like the rest."""
    count = request.counter.count_text
    said = max(sum(count(entry.text) for entry in entries), sum(group.tokens for group in request.groups))
    source = said + (count(previous) if previous else 0)
    least = count("\n".join(request.template.headings))
    if source <= least:
        raise SummaryFailed(f"{source:,} tokens are too few to summarize: the headings of the summary alone have {least:,}")
    focus = None if request.focus is None else options.redact(sendable(request.focus))
    key = record_key([previous or "", focus or "", *(text for entry in entries for text in (entry.speaker, entry.text))])
    plan = _Plan(
        options=options,
        model=model,
        rules_role=rules_role,
        request=attrs.evolve(request, focus=focus),
        entries=tuple(entries),
        carried=previous,
        key=key,
        limit=min(request.budget, source),
    )
    if previous and options.window is not None and plan.room(count(previous)) < _LEAST_PART_TOKENS:
        return attrs.evolve(plan, entries=(Entry("earlier summary", previous), *entries), carried=None)
    return plan


class _RequestTooLong(Exception):
    """A request is longer than the model accepts; carries the server's words."""


@attrs.define(kw_only=True)
class _Plan:
    """The plan for reading one conversation through one window. Holds state: what share of a long request the server read."""

    options: SummaryOptions
    model: str  # its name
    rules_role: str  # the role of the message with the rules
    request: SummaryRequest  # the request, its focus redacted
    entries: tuple[Entry, ...]  # the transcript to read
    carried: str | None  # the earlier summary, if it is carried along
    key: str  # the word that occurs only in the lines around the record
    limit: int  # tokens the summary may have
    _read_share: float | None = attrs.field(default=None, init=False)

    @property
    def max_tokens(self) -> int:
        """Tokens a reply may have."""
        return math.ceil(self.limit * self.options.headroom)

    def room(self, carried_tokens: int) -> int:
        """Return the tokens of the window that are left for the transcript, beside a summary of that size (0 if none)."""
        if self.options.window is None:
            return self._tokens(self.entries)
        frame = self._request_tokens(self._prompt("", "" if carried_tokens else None, part_note(99, 99)))
        slack = self.options.window // _SLACK_SHARE
        return self.options.window - slack - self.max_tokens - frame - carried_tokens

    def parts(self) -> list[tuple[Entry, ...]]:
        """Return the parts: one, if everything fits.

        Raises:
            ConfigurationError: If the window is too small.
        """
        count = self.request.counter.count_text
        carried = 0 if self.carried is None else count(self.carried)
        if self._tokens(self.entries) <= self.room(carried):
            return [self.entries]
        room = self.room(max(carried, self.limit))
        if room < _LEAST_PART_TOKENS:
            raise ConfigurationError(
                f"'window' of {self.options.window:,} tokens leaves {room:,} for the transcript, beside the"
                f" prompt, a summary of {max(carried, self.limit):,} and a reply of up to {self.max_tokens:,}; at least"
                f" {_LEAST_PART_TOKENS} are needed: use a model with a larger window, or ask for a shorter summary"
            )
        return split_entries(self.entries, room, count)

    def smaller(self, parts: Sequence[tuple[Entry, ...]], error: _RequestTooLong) -> list[tuple[Entry, ...]]:
        """Return the entries of the parts that were not summarized yet, in parts of half the size.

        Raises:
            SummaryFailed: If such parts would be too small.
        """
        tokens = self._tokens(parts[0]) // 2
        if tokens < _LEAST_PART_TOKENS:
            raise self._failed(str(error)) from error
        return split_entries([entry for part in parts for entry in part], tokens, self.request.counter.count_text)

    def ask(self, part: Sequence[Entry], summary: str | None, note: str) -> SummarySteps:
        """Ask for the summary of one part, and once more if the first answer is rejected; return it.

        Raises:
            _RequestTooLong: If the request must be shorter.
            SummaryFailed: If the model gave no summary.
        """
        request, record = self.request, rendered(part, self.key)
        prompt = self._prompt(record, summary, note)
        tokens, most = self._request_tokens(prompt), 2 * self.max_tokens
        if self.options.window is not None:
            most = max(self.max_tokens, min(most, self.options.window - tokens - _NOTE_TOKENS))
        check = AnswerCheck(
            record=record,
            key=self.key,
            template=request.template if summary is None else attrs.evolve(request.template, first=request.template.update),
            limit=self.limit,
            counter=request.counter,
            redact=self.options.redact,
        )
        tried: list[str] = []
        cause: Exception | None = None
        call = self._call(prompt, self.max_tokens)
        for _ in range(2):
            reply = yield call
            if isinstance(reply, ModelReply):
                self._check_read(reply, tokens)
                answer = check.verdict(reply)
                if isinstance(answer, str):
                    return answer
                fault = answer
            else:
                fault = reply
            if fault.too_long:
                raise _RequestTooLong(fault.says) from fault.cause
            tried.append(fault.says)
            cause = fault.cause or cause
            if not fault.retry:
                break
            if fault.advice:
                call = self._call(f"{prompt}\n\nAn earlier answer could not be used. {fault.advice}", most)
        raise self._failed(*tried) from cause

    def _failed(self, *reasons: str) -> SummaryFailed:
        return SummaryFailed(f"the summarizer failed: {self.model} {', then '.join(dict.fromkeys(reasons))}")

    def _check_read(self, reply: ModelReply, tokens: int) -> None:
        """Check by the reported usage that the server did not cut the request without an error.

        If it read 4,000 tokens of 10,000, it may have cut the request, which is halved. If it then reads 2,000 of 5,000, which
        is the same share, it counts tokens differently and cuts nothing.

        Raises:
            _RequestTooLong: If the server read far less than was sent.
        """
        read, before = reply.prompt_tokens, self._read_share
        if read is None or tokens < _LEAST_READ_TOKENS or read >= _LEAST_READ_SHARE * tokens:
            return
        if before is None or abs(read / tokens - before) > _SAME_SHARE * before:
            self._read_share = read / tokens
            raise _RequestTooLong(f"read {read:,} tokens of a request of about {tokens:,}")

    def _call(self, prompt: str, max_tokens: int) -> ModelCall:
        messages: tuple[tuple[str, str], ...] = ((self.rules_role, self._rules), ("user", prompt))
        if self.rules_role == "user":
            messages = (("user", f"{self._rules}\n\n{prompt}"),)
        return ModelCall(model=self.model, messages=messages, max_tokens=max_tokens)

    @property
    def _rules(self) -> str:
        return SYSTEM_RULES.replace("{key}", self.key)

    def _prompt(self, record: str, summary: str | None, note: str) -> str:
        return self.request.template.render(
            note + fenced(record, self.key, tag="record"),
            existing_summary=None if summary is None else fenced(summary, self.key, tag="summary"),
            max_summary_tokens=self.limit,
            focus=self.request.focus,
            language=self.request.language,
        )

    def _request_tokens(self, prompt: str) -> int:
        count = self.request.counter.count_text
        return count(self._rules) + count(prompt) + _MESSAGE_TOKENS

    def _tokens(self, entries: Sequence[Entry]) -> int:
        return tokens_of(entries, self.request.counter.count_text)
