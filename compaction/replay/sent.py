"""What is sent, request after request: how the next one differs from the last, how large it is, and what can be read in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import attrs

from ..errors import InvalidMessage
from ..messages import Message
from ..tokens import MessageMeter
from .atoms import spoken
from .occurrences import keys_of, stands_in
from .transcript import Place, Transcript

__all__ = ["Made", "Sent", "Step"]

_LOCAL_RULES: Final = "openai-chat"
"""The format whose rules never look back past a message that is no result: what stands before that needs no second look."""


@attrs.frozen
class Made:
    """A message that was not recorded: a summary, a note, a result cut short.

    Args:
        text: What it says, on one line.
        keys: What it can be found by.
        spans: Those of its verbatim spans that actions hold.
        tokens: Its size.
    """

    text: str
    keys: frozenset[str]
    spans: frozenset[str]
    tokens: int


@attrs.frozen
class Step:
    """How a request follows the one before.

    Args:
        tokens: Its size, the overhead included.
        shared_messages: How many of its first messages are those of the one before.
        whole_tokens: Tokens of these, the overhead included.
        shared_tokens: The same, and those that the first different message shares from its start.
        broken: Whether it departs from the one before instead of continuing it.
        lost_tokens: Tokens of the one before from where it departs; 0 if it continues.
    """

    tokens: int
    shared_messages: int
    whole_tokens: int
    shared_tokens: int
    broken: bool
    lost_tokens: int


class Sent:
    """The chain of requests of one conversation under one strategy. Holds state: the last request.

    A request that continues the last costs O(what is new) and one comparison of object identities; one that departs from it
    O(its messages).

    Args:
        transcript: The recorded conversation.
        meter: Measures messages that were not recorded.
        overhead_tokens: Tokens of every request outside the messages.
    """

    def __init__(self, transcript: Transcript, *, meter: MessageMeter, overhead_tokens: int = 0) -> None:
        self._transcript = transcript
        self._format = transcript.format
        self._meter = meter
        self._overhead = overhead_tokens
        self._raws: list[Any] = []
        self._cumulative = [overhead_tokens]
        self._visible: set[int] = set()
        self._made: list[Made] = []
        self._made_spans: frozenset[str] = frozenset()
        self._known: dict[tuple[str, str], Made] = {}
        self._settled = 0
        self._settled_rules: Counter[str] = Counter()

    @property
    def visible(self) -> set[int]:
        """The ordinals of the recorded messages that the last request holds unchanged; not to be changed."""
        return self._visible

    # ---------------------------------------------------------------- following

    def follow(self, view: list[Any]) -> Step:
        """Take the next request."""
        before, previous = self._raws, self._cumulative
        shared = _shared(before, view)
        broken = shared < len(before)
        whole_tokens = shared_tokens = previous[shared]
        if broken:
            self._restart(shared, view)
            if shared < len(view):
                shared_tokens += self._common_start(before[shared], view[shared])
        count = 0 if broken else len(self._made)
        self._take(view[shared:])
        if broken or len(self._made) > count:
            self._made_spans = frozenset().union(*(made.spans for made in self._made))
        self._raws = view
        lost = previous[-1] - shared_tokens if broken else 0
        return Step(self._cumulative[-1], shared, whole_tokens, min(shared_tokens, self._cumulative[-1]), broken, lost)

    def _restart(self, shared: int, view: list[Any]) -> None:
        """Forget the last request from its first difference on."""
        self._cumulative = self._cumulative[: shared + 1]
        self._visible, self._made = set(), []
        self._settled, self._settled_rules = 0, Counter()
        for raw in view[:shared]:
            self._place(raw)

    def _take(self, raws: Sequence[Any]) -> None:
        sizes = [self._place(raw) for raw in raws]
        self._cumulative.extend(list(accumulate(sizes, initial=self._cumulative[-1]))[1:])

    def _place(self, raw: Any) -> int:
        """Note what can be read in a message; returns its tokens. One that cannot be read is the format's to complain of."""
        transcript = self._transcript
        ordinal = transcript.ordinals.get(id(raw))
        if ordinal is not None:
            self._visible.add(ordinal)
            return transcript.tokens[ordinal]
        message = self._read(raw)
        if message is None:
            return 0
        key = message.role, spoken(message)
        same = transcript.ordinals_by_content.get(key)
        if same is not None:
            ordinal = next((at for at in same if at not in self._visible), same[-1])
            self._visible.add(ordinal)
            return self._meter.measure(message)[0]
        made = self._known.get(key) or self._known.setdefault(key, self._read_made(message, key[1]))
        self._made.append(made)
        return made.tokens

    def _read_made(self, message: Message, text: str) -> Made:
        spans = frozenset(self._transcript.spans.known(text))
        return Made(text, frozenset(keys_of(text)), spans, self._meter.measure(message)[0])

    def _common_start(self, one: Any, other: Any) -> int:
        """Tokens that two different messages share from their start: a provider's cache does not end where a message ends."""
        first, second = self._read(one), self._read(other)
        if first is None or second is None or first.role != second.role:
            return 0
        length = _common_length(spoken(first), spoken(second))
        return self._meter.counter.count_text(spoken(first)[:length]) if length else 0

    # ---------------------------------------------------------------- reading

    def holds(self, string: str, places: Place) -> bool:
        """Whether a string that stands in these recorded messages can be read in the last request."""
        if not self._visible.isdisjoint(places):
            return True
        if not self._made:
            return False
        keys = keys_of(string)
        return any(keys <= made.keys and stands_in(string, made.text) for made in self._made)

    def holds_span(self, span: str, places: Place) -> bool:
        """The same for a verbatim span."""
        return not self._visible.isdisjoint(places) or span in self._made_spans

    def quotes(self, sentence: str, ordinal: int) -> bool:
        """Whether a sentence of a recorded message stands verbatim in the last request."""
        return ordinal in self._visible or any(sentence in made.text for made in self._made)

    def broken_rules(self) -> Counter[str]:
        """How often the last request breaks each rule of its format.

        Where the format allows it, messages that were looked at before and did not change are not looked at again.
        """
        if self._format.name != _LOCAL_RULES:
            return Counter(problem.rule for problem in self._format.validate(self._raws))
        found = Counter(problem.rule for problem in self._format.validate(self._raws[self._settled :]))
        total = self._settled_rules + found
        seam = self._last_seam()
        if seam > self._settled:
            settled = Counter(problem.rule for problem in self._format.validate(self._raws[self._settled : seam]))
            if not settled["pending-call"]:
                self._settled_rules += settled
                self._settled = seam
        return total

    def _last_seam(self) -> int:
        """The place of the last message that answers no call and has another before it."""
        for at in range(len(self._raws) - 1, self._settled, -1):
            message = self._read(self._raws[at])
            if message is None or message.role not in ("tool", "function"):
                return at
        return self._settled

    def _read(self, raw: Any) -> Message | None:
        try:
            return self._format.read(raw)
        except InvalidMessage:
            return None


def _shared(before: list[Any], view: list[Any]) -> int:
    """How many first messages two requests share."""
    if view[: len(before)] == before:
        return len(before)
    for at, (one, other) in enumerate(zip(before, view, strict=False)):
        if one is not other and one != other:
            return at
    return min(len(before), len(view))


def _common_length(one: str, other: str) -> int:
    """Characters that two texts share from their start; O(log) comparisons of slices."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
