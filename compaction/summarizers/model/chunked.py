"""Chunked summarization: a conversation longer than the model's window is read in parts, each with the summary so far.

The model reads every word, whatever its window: nothing is cut from the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ...errors import ConfigurationError, SummaryFailed
from ..base import SummaryRequest
from ..prompts import SYSTEM_RULES, part_note
from ..transcript import Entry, entries_of, fenced, record_key, rendered, sendable, split_entries, tokens_of
from .answers import SummaryPrompt
from .attempts import RequestTooLong, SummaryAttempts
from .model_calls import SummarySteps

_LEAST_PART_TOKENS: Final = 256
_MESSAGE_TOKENS: Final = 16
_NOTE_TOKENS: Final = 64
_SLACK_SHARE: Final = 20


@attrs.frozen(kw_only=True)
class ChunkedSummarization:
    """Splits a conversation into requests to a model.

    Args:
        window: Tokens of the model's window; ``None`` if it is not known.
        headroom: Tokens a reply may have, as a multiple of the summary's budget.
        max_parts: The largest number of requests for one summary, repeated ones not counted.
        rules_role: The role of the message with the rules.
        redact: Removes the secrets from a text.
    """

    window: int | None
    headroom: float
    max_parts: int
    rules_role: str
    redact: Callable[[str], str]

    def summarize(self, request: SummaryRequest, attempts: SummaryAttempts) -> SummarySteps:
        """Summarize, and return the summary.

        Raises:
            SummaryFailed: If no model wrote one, or it would take too many parts.
            ConfigurationError: If the window is too small.
        """
        entries = entries_of(request.groups, redact=self.redact)
        previous = None if request.previous is None else self.redact(sendable(request.previous))
        if not entries:
            if previous:
                return previous
            raise SummaryFailed("there is nothing to summarize: every group is empty")
        plan = _plan_of(self, request, entries, previous)
        parts = plan.parts()
        summary, done = plan.carried, 0
        while parts:
            plan.check_parts(done + len(parts))
            try:
                summary = yield from attempts.ask(plan.prompt_for(parts[0], summary, done + 1, done + len(parts)))
            except RequestTooLong as error:
                parts = plan.smaller(parts, attempts, error)
            else:
                parts, done = parts[1:], done + 1
        return summary or ""


def _plan_of(chunked: ChunkedSummarization, request: SummaryRequest, entries: list[Entry], previous: str | None) -> _Plan:
    """Return the plan for reading; an earlier summary too large to carry along is read like the rest."""
    count = request.counter.count_text
    said = max(sum(count(entry.text) for entry in entries), sum(group.tokens for group in request.groups))
    source = said + (count(previous) if previous else 0)
    least = count("\n".join(request.template.headings))
    if source <= least:
        raise SummaryFailed(f"{source:,} tokens are too few to summarize: the headings of the summary alone have {least:,}")
    focus = None if request.focus is None else chunked.redact(sendable(request.focus))
    key = record_key([previous or "", focus or "", *(text for entry in entries for text in (entry.speaker, entry.text))])
    plan = _Plan(
        chunked=chunked,
        request=attrs.evolve(request, focus=focus),
        entries=tuple(entries),
        carried=previous,
        key=key,
        limit=min(request.budget, source),
    )
    if previous and chunked.window is not None and plan.room(count(previous)) < _LEAST_PART_TOKENS:
        return attrs.evolve(plan, entries=(Entry("earlier summary", previous), *entries), carried=None)
    return plan


@attrs.frozen(kw_only=True)
class _Plan:
    """The plan for reading one conversation through one window.

    Args:
        chunked: The options.
        request: The request, its focus redacted.
        entries: The transcript to read.
        carried: The earlier summary, if it is carried along.
        key: The word that occurs only in the lines around the record.
        limit: Tokens the summary may have.
    """

    chunked: ChunkedSummarization
    request: SummaryRequest
    entries: tuple[Entry, ...]
    carried: str | None
    key: str
    limit: int

    @property
    def max_tokens(self) -> int:
        """Tokens a reply may have."""
        return math.ceil(self.limit * self.chunked.headroom)

    def room(self, carried_tokens: int) -> int:
        """Return the tokens of the window that are left for the transcript, beside a summary of that size."""
        if self.chunked.window is None:
            return self._tokens(self.entries)
        frame = self._request_tokens(self._prompt("", "" if carried_tokens else None, part_note(99, 99)))
        slack = self.chunked.window // _SLACK_SHARE
        return self.chunked.window - slack - self.max_tokens - frame - carried_tokens

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
                f"OpenAISummarizer: 'window' of {self.chunked.window:,} tokens leaves {room:,} for the transcript, beside the"
                f" prompt, a summary of {max(carried, self.limit):,} and a reply of up to {self.max_tokens:,}; at least"
                f" {_LEAST_PART_TOKENS} are needed: use a model with a larger window, or ask for a shorter summary"
            )
        return split_entries(self.entries, room, count)

    def smaller(
        self, parts: Sequence[tuple[Entry, ...]], attempts: SummaryAttempts, error: RequestTooLong
    ) -> list[tuple[Entry, ...]]:
        """Split what is left into parts of half the size; if they would be too small, go on to the next model.

        Raises:
            SummaryFailed: If there is no other model.
        """
        tokens = self._tokens(parts[0]) // 2
        left = [entry for part in parts for entry in part]
        if tokens < _LEAST_PART_TOKENS:
            attempts.give_up(error)
            tokens = max(self.room(self.limit), _LEAST_PART_TOKENS)
        return split_entries(left, tokens, self.request.counter.count_text)

    def check_parts(self, parts: int) -> None:
        """Check the number of parts before more requests are paid for.

        Raises:
            SummaryFailed: If there are too many.
        """
        if parts > self.chunked.max_parts:
            raise SummaryFailed(
                f"the conversation needs {parts} parts, and at most {self.chunked.max_parts} are allowed: use a model with a"
                " larger window, shorten tool results first, or raise 'max_parts'"
            )

    def prompt_for(self, part: Sequence[Entry], summary: str | None, number: int, parts: int) -> SummaryPrompt:
        """Return the prompt for one part."""
        record = rendered(part, self.key)
        prompt = self._prompt(record, summary, part_note(number, parts))
        tokens = self._request_tokens(prompt)
        most = 2 * self.max_tokens
        if self.chunked.window is not None:
            most = max(self.max_tokens, min(most, self.chunked.window - tokens - _NOTE_TOKENS))
        return SummaryPrompt(
            rules=self._rules,
            rules_role=self.chunked.rules_role,
            prompt=prompt,
            record=record,
            key=self.key,
            template=self.request.template,
            limit=self.limit,
            max_tokens=self.max_tokens,
            most_tokens=most,
            tokens=tokens,
            counter=self.request.counter,
            redact=self.chunked.redact,
        )

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
