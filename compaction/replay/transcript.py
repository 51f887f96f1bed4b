"""A recorded conversation read, measured and indexed for replay, and what each of its recorded answers needed.

The needs are computed here, before any candidate runs, so that they are the same for all candidates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Final, TypeAlias

import attrs

from ..formats import MessageFormat
from ..messages import Message
from ..tokens import MessageMeter
from .facts import NeededFactKind, answer_facts, flat_text, is_constraint, long_words_in, user_sentences_in
from .recordings import Recording
from .text_search import SpanIndex, TextSearch, search_keys

RECENT_MESSAGES: Final = 4
"""Number of messages before an answer that every candidate is assumed to keep: what they contain is not counted as needed."""

RARE_IN_MESSAGES: Final = 3  # a word is rare if it occurs in at most this many earlier messages

Places: TypeAlias = Sequence[int]  # the ordinals of the messages in which something occurs, in order


@attrs.frozen
class NeededFact:
    """A fact that a recorded answer used and that occurs in its history."""

    kind: NeededFactKind
    text: str  # the text to search for
    last: int  # the ordinal of the last message before the answer that contains it
    age: int  # number of messages from there to the answer
    old: bool  # whether cutting to the newest messages that fit the window would have lost it


@attrs.frozen
class UserMessage:
    """The user's words in one message."""

    ordinal: int
    words: frozenset[str]
    sentences: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Needs:
    """The facts that one recorded answer needed from its history."""

    ordinal: int  # the ordinal of the answer among the conversation's messages
    tokens: int  # tokens of its whole history
    facts: tuple[NeededFact, ...]
    fits: bool  # whether the system messages and the last user message alone fit the window; if not, hardly any candidate helps


@attrs.frozen(kw_only=True)
class NeededPlaces:
    """The messages of the whole conversation that contain what one recorded answer needed: for the search, not for a result."""

    facts: tuple[Places, ...]  # of each fact, in the order of `Needs`
    words: Mapping[str, Places]  # of each rare word
    spans: Mapping[str, Places]  # of each verbatim span


def answers_in(messages: Sequence[Message]) -> list[range]:
    """Return the places of each answer that has a history: one message, or several if the format writes an answer as items.

    >>> from compaction.formats import openai_responses
    >>> thought, call = {"type": "reasoning", "summary": []}, {"type": "function_call", "call_id": "a", "name": "now"}
    >>> answers_in([openai_responses.read(item) for item in [{"role": "user", "content": "hi"}, thought, call]])
    [range(1, 3)]
    """
    answers: list[range] = []
    for at, message in enumerate(messages):
        if at and message.continues and message.role == messages[at - 1].role == "assistant":
            answers[-1] = range(answers[-1].start, at + 1)
        elif message.role == "assistant":
            answers.append(range(at, at + 1))
    return [answer for answer in answers if answer.start]


class Transcript:
    """One conversation, of which the format can read each message, measured and indexed.

    Holds caches; building it costs O(characters).
    """

    def __init__(
        self, recording: Recording, *, format: MessageFormat, meter: MessageMeter, window: int, overhead_tokens: int = 0
    ) -> None:
        self.recording = recording
        self.format = format
        self.meter = meter
        self.overhead_tokens = overhead_tokens
        self.messages: list[Message] = [format.read(raw, place) for place, raw in enumerate(recording.messages)]
        self.tokens = [meter.measure(message)[0] for message in self.messages]
        self.texts = [flat_text(message) for message in self.messages]
        self.answers = answers_in(self.messages)  # each is one model call
        self.calls = [answer.start for answer in self.answers]
        self.ordinals = {id(raw): at for at, raw in enumerate(recording.messages)}  # by the identity of the caller's object
        self.cumulative = list(accumulate(self.tokens, initial=overhead_tokens))  # tokens of the history before each ordinal
        self.spans = SpanIndex(self.texts, chain.from_iterable(self.answers))
        self._systems = {at for at, message in enumerate(self.messages) if message.is_system}
        self._window = window
        self._broken: dict[int, Counter[str]] = {}
        search = TextSearch(self.texts)
        searched = [self._search(answer, cut, search) for answer, cut in zip(self.answers, self._cuts(), strict=True)]
        self.needs = tuple([needs for needs, _ in searched])  # of each recorded answer, in the order of ``calls``
        self.places = tuple([places for _, places in searched])  # of what they needed

    @cached_property
    def ordinals_by_content(self) -> dict[tuple[str, str], list[int]]:
        """The ordinals of messages by role and text, for requests whose messages are new objects."""
        found: dict[tuple[str, str], list[int]] = {}
        for at, (message, text) in enumerate(zip(self.messages, self.texts, strict=True)):
            found.setdefault((message.role, text), []).append(at)
        return found

    @cached_property
    def said(self) -> list[UserMessage]:
        """The user's words, in order."""
        return [
            UserMessage(at, frozenset(search_keys(text)), tuple(user_sentences_in(text)))
            for at, message in enumerate(self.messages)
            if message.role == "user" and (text := message.text)
        ]

    @cached_property
    def constraints(self) -> list[tuple[int, str]]:
        """The instructions that the user stated, in order, each with the ordinal of its message."""
        return [(each.ordinal, sentence) for each in self.said for sentence in each.sentences if is_constraint(sentence)]

    def broken_rules(self, ordinal: int) -> Counter[str]:
        """Return how often the whole history before a message breaks each rule: a log may be invalid before any compaction."""
        if ordinal not in self._broken:
            self._broken[ordinal] = Counter(each.rule for each in self.format.validate(self.recording.messages[:ordinal]))
        return self._broken[ordinal]

    def _cuts(self) -> Iterator[int]:
        """Yield, for each call, the ordinal from which the newest messages fit the window together with the system messages."""
        cumulative, cut, head = self.cumulative, 0, 0
        for at in self.calls:
            while cut < at and self.overhead_tokens + head + cumulative[at] - cumulative[cut] > self._window:
                if cut in self._systems:
                    head += self.tokens[cut]
                cut += 1
            yield cut

    def _search(self, answer: range, cut: int, search: TextSearch) -> tuple[Needs, NeededPlaces]:
        """Return what an answer needed, and where that is; ``cut`` is the first of the newest messages that fit the window."""
        at, merged = answer.start, self.messages[answer.start]
        if len(answer) > 1:
            merged = attrs.evolve(merged, parts=tuple([part for place in answer for part in self.messages[place].parts]))
        said = " ".join(self.texts[place] for place in answer)
        facts: list[tuple[NeededFact, Places]] = []
        for text, kind in answer_facts(merged).items():
            places = search.places_of(text)
            if (last := self._last_old(places, at)) is not None:
                facts.append((NeededFact(kind, text, last, at - last, last < cut), places))
        words = {word: search.places_of_word(word) for word in sorted(long_words_in(said))}
        rare = {word: places for word, places in words.items() if bisect_left(places, at) <= RARE_IN_MESSAGES}
        spans = {span: places for place in answer for span, places in self.spans.spans_of_answer(place).items()}
        needs = Needs(
            ordinal=at,
            tokens=self.cumulative[at],
            facts=tuple([fact for fact, _ in facts]),
            fits=self._least(at) <= self._window,
        )
        return needs, NeededPlaces(
            facts=tuple([places for _, places in facts]),
            words={word: places for word, places in rare.items() if self._last_old(places, at) is not None},
            spans={span: places for span, places in spans.items() if self._last_old(places, at) is not None},
        )

    def _least(self, at: int) -> int:
        """Return the tokens of the system messages and the last user message before a place."""
        last_user = next((place for place in range(at - 1, -1, -1) if self.messages[place].role == "user"), at)
        return self.overhead_tokens + sum(self.tokens[place] for place in {*self._systems, last_user} if place < at)

    def _last_old(self, places: Places, at: int) -> int | None:
        """Return the last of ``places`` before ``at``; ``None`` if there is none, or if every candidate keeps one of them.

        Every candidate keeps the last few messages before the answer, and the system messages.
        """
        before = bisect_left(places, at)
        if not before or places[before - 1] >= at - RECENT_MESSAGES:
            return None
        if not self._systems.isdisjoint(places[:before]):
            return None
        return places[before - 1]
