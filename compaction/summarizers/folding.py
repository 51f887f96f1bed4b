"""A conversation longer than a summarizer's window, read in parts: the summary of one goes into the request for the next.

So every word is read by the model, whatever the window; nothing is cut out of the middle and nothing is left for later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ..errors import ConfigurationError, SummaryFailed
from .asking import Asking, Question, TooLong
from .base import SummaryRequest
from .exchange import Exchange
from .prompts import RULES, part_note
from .transcript import Entry, entries_of, fenced, record_key, rendered, sendable, split_entries, tokens_of

__all__ = ["Folding"]

_LEAST_PART_TOKENS: Final = 256
_MESSAGE_TOKENS: Final = 16
_NOTE_TOKENS: Final = 64
_SLACK_SHARE: Final = 20


@attrs.frozen(kw_only=True)
class Folding:
    """How a conversation is put before a model, and in how many parts.

    Args:
        window: Tokens of the summarizer's window; ``None`` if it is not known.
        headroom: What a reply may have, as a multiple of the summary's budget.
        max_parts: How many requests a summary may take, second asking not counted.
        rules_role: The role that says the rules.
        redact: Takes the secrets out of a text.
    """

    window: int | None
    headroom: float
    max_parts: int
    rules_role: str
    redact: Callable[[str], str]

    def summarize(self, request: SummaryRequest, asking: Asking) -> Exchange:
        """The summary that was asked for.

        Raises:
            SummaryFailed: If there is none, or it would take too many parts.
            ConfigurationError: If the window has no room to read with.
        """
        entries = entries_of(request.groups, redact=self.redact)
        previous = None if request.previous is None else self.redact(sendable(request.previous))
        if not entries:
            if previous:
                return previous
            raise SummaryFailed("there is nothing to summarize: no group holds anything; ask again when there is")
        reading = _reading(self, request, entries, previous)
        parts = reading.plan()
        summary, done = reading.carried, 0
        while parts:
            reading.check_parts(done + len(parts))
            try:
                summary = yield from asking.ask(reading.question(parts[0], summary, done + 1, done + len(parts)))
            except TooLong as error:
                parts = reading.smaller(parts, asking, error)
            else:
                parts, done = parts[1:], done + 1
        return summary or ""


def _reading(folding: Folding, request: SummaryRequest, entries: list[Entry], previous: str | None) -> _Reading:
    """The plan to read; an earlier summary that leaves no room beside it is read like the rest."""
    count = request.counter.count_text
    said = max(sum(count(entry.text) for entry in entries), sum(group.tokens for group in request.groups))
    source = said + (count(previous) if previous else 0)
    least = count("\n".join(request.template.headings))
    if source <= least:
        raise SummaryFailed(f"{source:,} tokens are too few to summarize: the headings of the summary alone have {least:,}")
    focus = None if request.focus is None else folding.redact(sendable(request.focus))
    key = record_key([previous or "", focus or "", *(text for entry in entries for text in (entry.speaker, entry.text))])
    reading = _Reading(
        folding=folding,
        request=attrs.evolve(request, focus=focus),
        entries=tuple(entries),
        carried=previous,
        key=key,
        limit=min(request.budget, source),
    )
    if previous and folding.window is not None and reading.room(count(previous)) < _LEAST_PART_TOKENS:
        return attrs.evolve(reading, entries=(Entry("earlier summary", previous), *entries), carried=None)
    return reading


@attrs.frozen(kw_only=True)
class _Reading:
    """One conversation on its way through one window.

    Args:
        folding: How it is read.
        request: What was asked for, its focus redacted.
        entries: What is to be read.
        carried: The summary to begin with.
        key: The word that only the lines around the record hold.
        limit: Tokens the summary may have.
    """

    folding: Folding
    request: SummaryRequest
    entries: tuple[Entry, ...]
    carried: str | None
    key: str
    limit: int

    @property
    def max_tokens(self) -> int:
        """Tokens a reply may have."""
        return math.ceil(self.limit * self.folding.headroom)

    def room(self, carried_tokens: int) -> int:
        """Tokens of the window that are left to read with, beside a summary of so many."""
        if self.folding.window is None:
            return self._tokens(self.entries)
        frame = self._request_tokens(self._prompt("", "" if carried_tokens else None, part_note(99, 99)))
        slack = self.folding.window // _SLACK_SHARE
        return self.folding.window - slack - self.max_tokens - frame - carried_tokens

    def plan(self) -> list[tuple[Entry, ...]]:
        """The parts: one, if everything fits.

        Raises:
            ConfigurationError: If there is no room to read with.
        """
        count = self.request.counter.count_text
        carried = 0 if self.carried is None else count(self.carried)
        if self._tokens(self.entries) <= self.room(carried):
            return [self.entries]
        room = self.room(max(carried, self.limit))
        if room < _LEAST_PART_TOKENS:
            raise ConfigurationError(
                f"OpenAISummarizer: 'window' of {self.folding.window:,} tokens leaves {room:,} to read with, beside the prompt,"
                f" a summary of {max(carried, self.limit):,} and a reply of up to {self.max_tokens:,}; {_LEAST_PART_TOKENS} are"
                " needed at least: use a model with a larger window, or ask for a shorter summary"
            )
        return split_entries(self.entries, room, count)

    def smaller(self, parts: Sequence[tuple[Entry, ...]], asking: Asking, error: TooLong) -> list[tuple[Entry, ...]]:
        """What is left to read in parts of half the size; where they are too small already, the next model gets them.

        Raises:
            SummaryFailed: If there is no further model.
        """
        tokens = self._tokens(parts[0]) // 2
        left = [entry for part in parts for entry in part]
        if tokens < _LEAST_PART_TOKENS:
            asking.give_up(error)
            tokens = max(self.room(self.limit), _LEAST_PART_TOKENS)
        return split_entries(left, tokens, self.request.counter.count_text)

    def check_parts(self, parts: int) -> None:
        """Refuse before money is spent on a reading that is never finished.

        Raises:
            SummaryFailed: If the reading takes more parts than it may.
        """
        if parts > self.folding.max_parts:
            raise SummaryFailed(
                f"the conversation takes {parts} parts to read, at most {self.folding.max_parts} are allowed: use a model with"
                " a larger window, shorten tool results first, or raise 'max_parts'"
            )

    def question(self, part: Sequence[Entry], summary: str | None, number: int, parts: int) -> Question:
        """The request for one part."""
        record = rendered(part, self.key)
        prompt = self._prompt(record, summary, part_note(number, parts))
        tokens = self._request_tokens(prompt)
        most = 2 * self.max_tokens
        if self.folding.window is not None:
            most = max(self.max_tokens, min(most, self.folding.window - tokens - _NOTE_TOKENS))
        return Question(
            rules=self._rules,
            rules_role=self.folding.rules_role,
            prompt=prompt,
            record=record,
            key=self.key,
            template=self.request.template,
            limit=self.limit,
            max_tokens=self.max_tokens,
            most_tokens=most,
            tokens=tokens,
            counter=self.request.counter,
            redact=self.folding.redact,
        )

    @property
    def _rules(self) -> str:
        return RULES.replace("{key}", self.key)

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
