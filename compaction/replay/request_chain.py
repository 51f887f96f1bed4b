"""The requests a candidate would send, one after the other: their sizes, differences and contents."""

from __future__ import annotations

from typing import Any

import attrs

from ..errors import InvalidMessage
from ..messages import Message
from .facts import flat_text
from .text_search import occurs_in, search_keys
from .transcript import Places, Transcript, UserMessage


@attrs.frozen
class InsertedMessage:
    """A message of a request that was not recorded, such as a summary or a shortened result."""

    text: str  # its text, on one line
    keys: frozenset[str]  # the search keys of the text
    spans: frozenset[str]  # its verbatim spans that occur in recorded answers
    tokens: int


@attrs.frozen
class RequestDiff:
    """The difference between a request and the previous one."""

    tokens: int  # tokens of the request, including the overhead
    shared_messages: int  # number of messages at its start that are equal to those of the previous request
    shared_whole_tokens: int  # tokens of these messages, including the overhead
    shared_tokens: int  # the same, plus the tokens that the first different message shares from its start
    broken: bool  # whether it differs from the previous request before that one's end, instead of continuing it
    lost_tokens: int  # tokens of the previous request after the first difference; 0 if it is continued


class RequestChain:
    """The requests of one conversation under one candidate. Holds state: the last request.

    A request that continues the last one costs O(new messages) and one comparison of object identities; any other request
    costs O(its messages).

    Attributes:
        visible: The ordinals of the recorded messages that the last request contains unchanged; do not modify it.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._meter = transcript.meter
        self._raws: list[Any] = []
        self._cumulative = [transcript.overhead_tokens]
        self.visible: set[int] = set()
        self._inserted: list[InsertedMessage] = []  # of the last request
        self._inserted_keys: frozenset[str] = frozenset()
        self._inserted_spans: frozenset[str] = frozenset()
        self._quoted: dict[int, tuple[int, int]] = {}  # by user message: how much of it the inserted messages contain
        self._read_before: dict[tuple[str, str], InsertedMessage] = {}  # inserted messages of all requests, by role and text

    # ---------------------------------------------------------------- adding requests

    def add(self, view: list[Any]) -> RequestDiff:
        """Add the next request and return how it differs from the previous one."""
        before, previous = self._raws, self._cumulative
        shared = _shared(before, view)
        broken = shared < len(before)
        shared_whole_tokens = shared_tokens = previous[shared]
        if broken:
            self._cumulative = previous[: shared + 1]
            self.visible, self._inserted = set(), []
            for raw in view[:shared]:
                self._place(raw)
            if shared < len(view):
                shared_tokens += self._common_start(before[shared], view[shared])
        count = len(self._inserted)
        for raw in view[shared:]:
            self._cumulative.append(self._cumulative[-1] + self._place(raw))
        if broken or len(self._inserted) > count:
            self._inserted_keys = frozenset().union(*(each.keys for each in self._inserted))
            self._inserted_spans = frozenset().union(*(each.spans for each in self._inserted))
            self._quoted = {}
        self._raws = view
        return RequestDiff(
            tokens=self._cumulative[-1],
            shared_messages=shared,
            shared_whole_tokens=shared_whole_tokens,
            shared_tokens=min(shared_tokens, self._cumulative[-1]),
            broken=broken,
            lost_tokens=previous[-1] - shared_tokens if broken else 0,
        )

    def _place(self, raw: Any) -> int:
        """Record a message's contents and return its tokens; an unreadable one counts 0."""
        transcript = self._transcript
        ordinal = transcript.ordinals.get(id(raw))
        if ordinal is not None:
            self.visible.add(ordinal)
            return transcript.tokens[ordinal]
        message = self._read(raw)
        if message is None:
            return 0
        key = message.role, flat_text(message)
        same = transcript.ordinals_by_content.get(key)
        if same is not None:
            ordinal = next((at for at in same if at not in self.visible), same[-1])
            self.visible.add(ordinal)
            return self._meter.measure(message)[0]
        inserted = self._read_before.get(key)
        if inserted is None:
            text, spans = key[1], frozenset(transcript.spans.known_spans(key[1]))
            inserted = InsertedMessage(text, frozenset(search_keys(text)), spans, self._meter.measure(message)[0])
            self._read_before[key] = inserted
        self._inserted.append(inserted)
        return inserted.tokens

    def _common_start(self, one: Any, other: Any) -> int:
        """Return the tokens two different messages share from their start: a provider's cache may end within a message."""
        first, second = self._read(one), self._read(other)
        if first is None or second is None or first.role != second.role:
            return 0
        length = _common_length(flat_text(first), flat_text(second))
        return self._meter.counter.count_text(flat_text(first)[:length]) if length else 0

    # ---------------------------------------------------------------- the last request

    def contains(self, string: str, places: Places) -> bool:
        """Return whether the last request contains a string that occurs in these recorded messages."""
        if not self.visible.isdisjoint(places):
            return True
        keys = search_keys(string) if self._inserted else set[str]()
        return any(keys <= each.keys and occurs_in(string, each.text) for each in self._inserted)

    def contains_span(self, span: str, places: Places) -> bool:
        """Return the same for a verbatim span."""
        return not self.visible.isdisjoint(places) or span in self._inserted_spans

    def quotes(self, sentence: str, ordinal: int) -> bool:
        """Return whether the last request contains a sentence of a recorded message verbatim."""
        return ordinal in self.visible or any(sentence in each.text for each in self._inserted)

    def quoted_of(self, said: UserMessage) -> tuple[int, int]:
        """Return how many of a user message's words and sentences the last request contains."""
        if said.ordinal in self.visible:
            return len(said.words), len(said.sentences)
        if said.ordinal not in self._quoted:
            sentences = sum(self.quotes(sentence, said.ordinal) for sentence in said.sentences)
            self._quoted[said.ordinal] = len(said.words & self._inserted_keys), sentences
        return self._quoted[said.ordinal]

    def _read(self, raw: Any) -> Message | None:
        try:
            return self._transcript.format.read(raw)
        except (InvalidMessage, RecursionError):
            return None


def _shared(before: list[Any], view: list[Any]) -> int:
    """Return how many messages two requests share at their start."""
    if view[: len(before)] == before:
        return len(before)
    for at, (one, other) in enumerate(zip(before, view, strict=False)):
        if one is not other and one != other:
            return at
    return min(len(before), len(view))


def _common_length(one: str, other: str) -> int:
    """Return how many characters two texts share at their start; O(log) comparisons of slices."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
