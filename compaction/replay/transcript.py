"""A recorded conversation made ready for replay: read, measured and indexed once, whatever is replayed on it.

What each recorded action needed is settled here, before any strategy runs, so that all are asked for the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Final

import attrs

from ..formats import MessageFormat
from ..messages import Message
from ..tokens import MessageMeter
from .atoms import AtomKind, atoms_of, rare_words_of, spoken
from .constraints import Constraint, constraints_in
from .occurrences import Occurrences, SpanIndex, spans_in
from .recording import Recording

__all__ = ["RARE_IN_MESSAGES", "RECENT_MESSAGES", "Fact", "Needs", "Place", "Transcript", "answers_in"]

RECENT_MESSAGES: Final = 4
"""The last messages before an action, which any policy keeps: what stands in them is not counted as needed."""

RARE_IN_MESSAGES: Final = 3
"""In at most so many earlier messages a word is rare."""

Place = tuple[int, ...] | list[int]
"""The ordinals of the messages in which something stands, in order."""


@attrs.frozen
class Fact:
    """An atom that an action used and that had stood in its history.

    Args:
        kind: What it is.
        text: The atom.
        last: The ordinal of the message that showed it last before the action.
        age: How many messages before the action that was.
        old: Whether cutting to the newest messages that fit the window would have lost it.
        places: Where it stands in the whole conversation.
    """

    kind: AtomKind
    text: str
    last: int
    age: int
    old: bool
    places: Place = attrs.field(eq=False, repr=False)


@attrs.frozen(kw_only=True)
class Needs:
    """What one recorded action took from its history.

    Args:
        ordinal: The ordinal of the action among the conversation's messages.
        tokens: Tokens of its whole history.
        facts: The atoms.
        fits: Whether the system messages and the last user message alone fit the window: if not, hardly any policy could help.
        word_count: How many rare words.
        span_count: How many verbatim spans.
        words: The words, with their places; left out of a result.
        spans: The spans, with their places; left out of a result.
    """

    ordinal: int
    tokens: int
    facts: tuple[Fact, ...]
    fits: bool
    word_count: int
    span_count: int
    words: tuple[tuple[str, Place], ...] = attrs.field(default=(), eq=False, repr=False)
    spans: tuple[tuple[str, Place], ...] = attrs.field(default=(), eq=False, repr=False)

    def without_places(self) -> Needs:
        """The same without what only a replay needs."""
        facts = tuple([attrs.evolve(fact, places=()) for fact in self.facts])
        return attrs.evolve(self, facts=facts, words=(), spans=())


def answers_in(messages: Sequence[Message]) -> list[range]:
    """The places of each answer that has a history: one message, or several where a format writes an answer as items.

    >>> from compaction.formats import openai_responses
    >>> thought, call = {"type": "reasoning", "summary": []}, {"type": "function_call", "call_id": "a", "name": "now"}
    >>> answers_in([openai_responses.read(item) for item in [{"role": "user", "content": "hi"}, thought, call]])
    [range(1, 3)]
    """
    answers: list[range] = []
    for at, message in enumerate(messages):
        if at and _goes_on(messages, at):
            answers[-1] = range(answers[-1].start, at + 1)
        elif message.role == "assistant":
            answers.append(range(at, at + 1))
    return [answer for answer in answers if answer.start]


def _goes_on(messages: Sequence[Message], at: int) -> bool:
    """Whether a message belongs to the answer before it."""
    return messages[at].continues and messages[at].role == messages[at - 1].role == "assistant"


class Transcript:
    """One conversation, read, measured and indexed. Holds caches; building costs O(characters).

    Args:
        recording: What was recorded; every message can be read by the format.
        format: Its wire format.
        meter: Measures messages.
        window: Tokens a request may have.
        overhead_tokens: Tokens of every request outside the messages.
        recent: How many messages before an action count as in view of any policy.

    Attributes:
        recording: What was recorded.
        format: Its wire format.
        messages: The messages as read.
        tokens: Tokens of each.
        texts: What each says, on one line.
        answers: The places of each answer that has a history: each is one model call.
        calls: The ordinal of the first message of each.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        format: MessageFormat,
        meter: MessageMeter,
        window: int,
        overhead_tokens: int = 0,
        recent: int = RECENT_MESSAGES,
    ) -> None:
        self.recording = recording
        self.format = format
        self.messages: list[Message] = [format.read(raw, place) for place, raw in enumerate(recording.messages)]
        self.tokens = [meter.measure(message)[0] for message in self.messages]
        self.texts = [spoken(message) for message in self.messages]
        self.answers = answers_in(self.messages)
        self.calls = [answer.start for answer in self.answers]
        self._window = window
        self._overhead = overhead_tokens
        self._recent = recent

    @cached_property
    def ordinals(self) -> dict[int, int]:
        """The ordinal of each recorded message, by the identity of the caller's object."""
        return {id(raw): at for at, raw in enumerate(self.recording.messages)}

    @cached_property
    def ordinals_by_content(self) -> dict[tuple[str, str], list[int]]:
        """The ordinals of messages by role and text, for views whose messages were built anew."""
        found: dict[tuple[str, str], list[int]] = {}
        for at, (message, text) in enumerate(zip(self.messages, self.texts, strict=True)):
            found.setdefault((message.role, text), []).append(at)
        return found

    @cached_property
    def cumulative(self) -> list[int]:
        """Tokens of the history before each ordinal, the overhead included."""
        return list(accumulate(self.tokens, initial=self._overhead))

    @cached_property
    def _systems(self) -> set[int]:
        return {at for at, message in enumerate(self.messages) if message.is_system}

    @cached_property
    def spans(self) -> SpanIndex:
        """Where the twelve-character spans of the actions stand."""
        return SpanIndex(self.texts, chain.from_iterable(self.answers))

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The instructions that the user stated, in order."""
        said = [at for at, message in enumerate(self.messages) if message.role == "user"]
        return tuple([each for at in said for each in constraints_in(self.messages[at].text, at)])

    @cached_property
    def needs(self) -> tuple[Needs, ...]:
        """What each call's recorded action took from its history, in the order of ``calls``."""
        occurrences = Occurrences(self.texts)
        return tuple([self._needs(answer, cut, occurrences) for answer, cut in zip(self.answers, self._cuts(), strict=True)])

    def _cuts(self) -> Iterator[int]:
        """For each call, the ordinal from which the newest messages fit the window together with the system messages."""
        cumulative, cut, head = self.cumulative, 0, 0
        for at in self.calls:
            while cut < at and self._overhead + head + cumulative[at] - cumulative[cut] > self._window:
                if cut in self._systems:
                    head += self.tokens[cut]
                cut += 1
            yield cut

    def _needs(self, answer: range, cut: int, occurrences: Occurrences) -> Needs:
        at, action = answer.start, self.messages[answer.start]
        if len(answer) > 1:
            action = attrs.evolve(action, parts=tuple([part for place in answer for part in self.messages[place].parts]))
        said = " ".join(self.texts[place] for place in answer)
        facts: list[Fact] = []
        for text, kind in atoms_of(action).items():
            places = occurrences.of(text)
            if (last := self._last_old(places, at)) is not None:
                facts.append(Fact(kind, text, last, at - last, last < cut, places))
        words = [(word, occurrences.of_word(word)) for word in sorted(rare_words_of(said))]
        words = [(word, places) for word, places in words if self._is_rare(places, at)]
        spans = {span: self.spans.of(span) for place in answer for span in spans_in(self.texts[place])}
        copied = [(span, places) for span, places in spans.items() if self._last_old(places, at) is not None]
        return Needs(
            ordinal=at,
            tokens=self.cumulative[at],
            facts=tuple(facts),
            fits=self._least(at) <= self._window,
            word_count=len(words),
            span_count=len(copied),
            words=tuple(words),
            spans=tuple(copied),
        )

    def _least(self, at: int) -> int:
        """Tokens of the system messages and the last user message before a place."""
        last_user = next((place for place in range(at - 1, -1, -1) if self.messages[place].role == "user"), at)
        return self._overhead + sum(self.tokens[place] for place in {*self._systems, last_user} if place < at)

    def _is_rare(self, places: Place, at: int) -> bool:
        return self._last_old(places, at) is not None and bisect_left(places, at) <= RARE_IN_MESSAGES

    def _last_old(self, places: Place, at: int) -> int | None:
        """The last message before ``at`` in which something stands; ``None`` if there is none, or it is given anyway.

        It is given if it stands in the last few messages before the action, or in a system message.
        """
        before = bisect_left(places, at)
        if not before or places[before - 1] >= at - self._recent:
            return None
        if not self._systems.isdisjoint(places[:before]):
            return None
        return places[before - 1]

    def history(self, call: int) -> Sequence[Any]:
        """The recorded messages before a call, by its number."""
        return self.recording.messages[: self.calls[call]]
