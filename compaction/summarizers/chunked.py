"""Chunked summarization, for every client: a conversation longer than the model's window is read in parts.

Each part goes with the summary so far, so the model reads every word, whatever its window: nothing is cut from the middle.
Secrets are removed, and an answer must be able to stand for the conversation. The client makes its own retries; only a rejected
answer is asked for again here.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import attrs

from ..checks import above, at_least, count
from ..errors import ConfigurationError, SummaryFailed
from ..tokens import is_too_long
from .answers import AnswerCheck
from .base import TIMEOUT_SECONDS, SummaryRequest, function_key
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


_NAME_FIELDS: Final = ("model", "model_name", "model_id")  # where models of frameworks have their name


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

    def cache_key(self, model: object, options: Mapping[str, Any]) -> str:
        """Return a text with what answers depend on: a framework's model, the options of its calls, and these.

        Settings inside the model, such as its temperature, do not count.

        Raises:
            ConfigurationError: If the model has no name, or ``redact`` has none.
        """
        names = (getattr(model, field, None) for field in _NAME_FIELDS)
        name = next((name for name in names if isinstance(name, str) and name), None)
        if name is None:
            raise ConfigurationError(
                f"CachedSummarizer: {type(model).__qualname__} has no 'model' or 'model_name', by which its answers are known"
            )
        server = str(getattr(model, "base_url", None))
        parts = (type(model).__qualname__, name, server, self.window, self.headroom, function_key(self.redact))
        return f"{parts} {sorted(options.items())}"

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
        return (yield from _Reading(self, request, model, rules_role).steps())

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


class _RequestTooLong(Exception):
    """A request is longer than the model accepts; carries the server's words."""


class _Reading:
    """The reading of one conversation through one window. Holds state: what share of a long request the server read."""

    def __init__(self, options: SummaryOptions, request: SummaryRequest, model: str, rules_role: str) -> None:
        redact = options.redact
        self._options = options
        self._request = attrs.evolve(request, focus=None if request.focus is None else redact(sendable(request.focus)))
        self._model = model
        self._entries = tuple(entries_of(request.groups, redact=redact))  # the transcript to read
        self._carried = None if request.previous is None else redact(sendable(request.previous))  # the earlier summary
        texts = [text for entry in self._entries for text in (entry.speaker, entry.text)]
        self._key = record_key([self._carried or "", self._request.focus or "", *texts])  # is only in lines around the record
        self._rules = SYSTEM_RULES.replace("{key}", self._key)
        self._rules_role = rules_role
        self._count = request.counter.count_text
        self._limit = request.budget  # tokens the summary may have
        self._read_share: float | None = None

    def steps(self) -> SummarySteps:
        """Ask for the summary of one part after another, each with the summary so far; return the last one."""
        if not self._entries:
            if self._carried:
                return self._carried
            raise SummaryFailed("there is nothing to summarize: every group is empty")
        self._set_limit()
        self._read_long_summary()
        parts, summary, done = self._parts(), self._carried, 0
        most = self._options.max_parts
        while parts:
            if done + len(parts) > most:  # before more requests are paid for
                raise SummaryFailed(
                    f"the conversation needs {done + len(parts)} parts, and at most {most} are allowed: use a model"
                    " with a larger window, shorten tool results first, or raise 'max_parts'"
                )
            try:
                summary = yield from self._ask(parts[0], summary, part_note(done + 1, done + len(parts)))
            except _RequestTooLong as error:
                parts = self._smaller(parts, error)
            else:
                parts, done = parts[1:], done + 1
        return summary or ""

    def _set_limit(self) -> None:
        """Limit the summary to the length of its source; fail if the source is not longer than the headings of a summary."""
        source = max(
            sum(self._count(entry.text) for entry in self._entries), sum(group.tokens for group in self._request.groups)
        )
        source += self._count(self._carried) if self._carried else 0
        least = self._count("\n".join(self._request.template.headings))
        if source <= least:
            raise SummaryFailed(f"{source:,} tokens are too few to summarize: the headings of the summary alone have {least:,}")
        self._limit = min(self._limit, source)

    def _read_long_summary(self) -> None:
        """Read an earlier summary that is too large to carry along like the rest."""
        if self._carried and self._options.window is not None and self._room(self._count(self._carried)) < _LEAST_PART_TOKENS:
            self._entries, self._carried = (Entry("earlier summary", self._carried), *self._entries), None

    @property
    def _max_tokens(self) -> int:
        """Tokens a reply may have."""
        return math.ceil(self._limit * self._options.headroom)

    def _room(self, carried_tokens: int) -> int:
        """Return the tokens of the window that are left for the transcript, beside a summary of that size (0 if none)."""
        if self._options.window is None:
            return tokens_of(self._entries, self._count)
        frame = self._request_tokens(self._prompt("", "" if carried_tokens else None, part_note(99, 99)))
        slack = self._options.window // _SLACK_SHARE
        return self._options.window - slack - self._max_tokens - frame - carried_tokens

    def _parts(self) -> list[tuple[Entry, ...]]:
        """Return the parts: one, if everything fits."""
        carried = 0 if self._carried is None else self._count(self._carried)
        if tokens_of(self._entries, self._count) <= self._room(carried):
            return [self._entries]
        summary = max(carried, self._limit)
        room = self._room(summary)
        if room < _LEAST_PART_TOKENS:
            raise ConfigurationError(
                f"'window' of {self._options.window:,} tokens leaves {room:,} for the transcript, beside the"
                f" prompt, a summary of {summary:,} and a reply of up to {self._max_tokens:,}; at least"
                f" {_LEAST_PART_TOKENS} are needed: use a model with a larger window, or ask for a shorter summary"
            )
        return split_entries(self._entries, room, self._count)

    def _smaller(self, parts: Sequence[tuple[Entry, ...]], error: _RequestTooLong) -> list[tuple[Entry, ...]]:
        """Return the entries of the parts that were not summarized yet in parts of half the size; fail if that is too small."""
        tokens = tokens_of(parts[0], self._count) // 2
        if tokens < _LEAST_PART_TOKENS:
            raise self._failed(str(error)) from error
        return split_entries([entry for part in parts for entry in part], tokens, self._count)

    def _ask(self, part: Sequence[Entry], summary: str | None, note: str) -> SummarySteps:
        """Ask for the summary of one part, and once more if the first answer is rejected; return it.

        Raises:
            _RequestTooLong: If the request must be shorter.
        """
        request, record = self._request, rendered(part, self._key)
        prompt = self._prompt(record, summary, note)
        tokens, most = self._request_tokens(prompt), 2 * self._max_tokens
        if self._options.window is not None:
            most = max(self._max_tokens, min(most, self._options.window - tokens - _NOTE_TOKENS))
        check = AnswerCheck(
            record=record,
            key=self._key,
            template=request.template if summary is None else attrs.evolve(request.template, first=request.template.update),
            limit=self._limit,
            counter=request.counter,
            redact=self._options.redact,
        )
        tried: list[str] = []
        cause: Exception | None = None
        call = self._call(prompt, self._max_tokens)
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
        return SummaryFailed(f"the summarizer failed: {self._model} {', then '.join(dict.fromkeys(reasons))}")

    def _check_read(self, reply: ModelReply, tokens: int) -> None:
        """Check by the reported usage that the server did not cut the request without an error.

        If it read 4,000 tokens of 10,000, it may have cut the request, which is too long then, and is halved. If it then reads
        2,000 of 5,000, which is the same share, it counts tokens differently and cuts nothing.
        """
        read, before = reply.prompt_tokens, self._read_share
        if read is None or tokens < _LEAST_READ_TOKENS or read >= _LEAST_READ_SHARE * tokens:
            return
        if before is None or abs(read / tokens - before) > _SAME_SHARE * before:
            self._read_share = read / tokens
            raise _RequestTooLong(f"read {read:,} tokens of a request of about {tokens:,}")

    def _call(self, prompt: str, max_tokens: int) -> ModelCall:
        messages: tuple[tuple[str, str], ...] = ((self._rules_role, self._rules), ("user", prompt))
        if self._rules_role == "user":
            messages = (("user", f"{self._rules}\n\n{prompt}"),)
        return ModelCall(model=self._model, messages=messages, max_tokens=max_tokens)

    def _prompt(self, record: str, summary: str | None, note: str) -> str:
        return self._request.template.render(
            note + fenced(record, self._key, tag="record"),
            existing_summary=None if summary is None else fenced(summary, self._key, tag="summary"),
            max_summary_tokens=self._limit,
            focus=self._request.focus,
            language=self._request.language,
        )

    def _request_tokens(self, prompt: str) -> int:
        return self._count(self._rules) + self._count(prompt) + _MESSAGE_TOKENS
