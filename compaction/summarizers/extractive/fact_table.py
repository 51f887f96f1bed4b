"""The facts of a conversation: where each was seen, and how likely it is to be needed again.

What the score depends on was measured on recorded sessions: ``docs/explanation/digest.md`` has the figures.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

import attrs

from .facts import FactSource

_CLASSES: Final = str.maketrans(
    {**dict.fromkeys(ascii_lowercase, "a"), **dict.fromkeys(ascii_uppercase, "A"), **dict.fromkeys(digits, "0")}
)
_ASSISTANT: Final = FactSource.ASSISTANT.value
_RESULT: Final = FactSource.RESULT.value
_MOST_FACTS: Final = 8_000


@attrs.define(eq=False)
class _Seen:
    """The places where one fact was seen."""

    table: object  # the only table that may change it
    shape: str
    first: int  # the number of the first message that has it
    last: int = 0
    rarity: float = 0.0  # the largest share of the facts of a message that it was
    messages: int = 0  # how many have it
    said: int = 0  # in how many the assistant says it or uses it in a call
    in_results: int = 0  # in how many a result shows it
    reused: bool = False  # whether the assistant used it after it was seen
    lasting: float | None = None  # what does not depend on other messages, in the score

    def settle(self, fact: str) -> float:
        """Return the part of the score of a fact that does not depend on other messages."""
        self.lasting = (
            0.5 * math.log(self.rarity + 0.001)  # alone in a message 0; one of ten facts -1.1
            + 0.5 * min(self.said, 3)  # used by the assistant three times 1.5
            + 0.5 * math.log(1 + self.messages)  # in one message 0.3; in ten 1.2
            - 0.2 * min(self.in_results, 3)  # in three results -0.6
            - 0.1 * math.log(1 + self.first)  # first in message 100 -0.5
            - 0.25 * math.log(1 + len(fact) / 4)  # of 12 characters -0.3; of 80 -0.8
            - 0.5 * (" " in fact)
        )
        return self.lasting


class FactTable:
    """The facts of a conversation, with where each was seen. Holds state: it grows with each message.

    Adding costs O(facts of the message).

    Attributes:
        messages: The number of messages added.

    >>> table = FactTable()
    >>> table.add({"A-17": FactSource.RESULT.value, "A-18": FactSource.RESULT.value})
    >>> table.add({"A-17": FactSource.ASSISTANT.value})
    >>> table.best(1)
    ['A-17']
    """

    def __init__(self) -> None:
        self.messages = 0
        self._seen: dict[str, _Seen] = {}
        self._alike: Counter[str] = Counter()  # how many facts have a shape
        self._reused: Counter[str] = Counter()  # how many of them the assistant used
        self._own = object()  # changes when the facts are shared with a copy

    def copy(self) -> FactTable:
        """Return a table with the same facts, which grows by itself. O(facts) in C: what either changes, it copies then."""
        table = copy(self)
        table._seen, table._alike, table._reused = self._seen.copy(), self._alike.copy(), self._reused.copy()
        self._own, table._own = object(), object()
        return table

    def add(self, facts: Mapping[str, int]) -> None:
        """Add the facts of a message, each with the value of the sources that showed it."""
        known, place, own = self._seen, self.messages, self._own
        rarity = 1 / max(1, len(facts))
        for fact, bits in facts.items():
            seen = known.get(fact)
            said = bits & _ASSISTANT != 0
            if seen is None:
                seen = known[fact] = _Seen(own, sys.intern(_shape(fact)), place)
                self._alike[seen.shape] += 1
            else:
                if seen.table is not own:
                    seen = known[fact] = copy(seen)
                    seen.table = own
                if said and not seen.reused:
                    seen.reused = True
                    self._reused[seen.shape] += 1
            seen.rarity = max(seen.rarity, rarity)
            seen.messages += 1
            seen.last = place
            seen.said += said
            seen.in_results += bits & _RESULT != 0
            seen.lasting = None
        self.messages += 1

    def prune(self) -> None:
        """Forget the half of the facts least likely to be needed, if they are past the bound."""
        if len(self._seen) > _MOST_FACTS:
            kept = set(self.best(_MOST_FACTS // 2))
            self._seen = {fact: seen for fact, seen in self._seen.items() if fact in kept}

    def followed_by(self, messages: Iterable[Mapping[str, int]]) -> FactTable:
        """Return a table that also has the facts of later messages; this one stays as it was. O(facts) in C."""
        table = self.copy()
        for facts in messages:
            table.add(facts)
        return table

    def is_unused(self, fact: str) -> bool:
        """Return whether only the user showed a fact: the assistant did not say or use it, and no result has it."""
        seen = self._seen.get(fact)
        return seen is not None and not seen.said and not seen.in_results

    def best(self, count: int, *, without: Collection[str] = (), bonus: Callable[[str], float] | None = None) -> list[str]:
        """Return the facts that are most likely to be needed again, the likeliest first; O(facts).

        A fact is likely if its message held few others, if the assistant said it or used it in a call, if it occurred often,
        recently, or early, and if the assistant used facts of its shape before (digits, capitals and small letters each count
        as one). It is less likely if many results show it, if it is long, and if it holds blanks. ``bonus`` is added to the
        score of a fact, which is about the logarithm of how likely it is.
        """
        of_shape = {shape: 0.4 * math.log((self._reused[shape] + 0.3) / (known + 3)) for shape, known in self._alike.items()}
        log, now = math.log, self.messages
        scores = {  # computed for every fact: no method is called
            fact: (seen.settle(fact) if seen.lasting is None else seen.lasting)
            + of_shape[seen.shape]
            - 0.4 * log(now - seen.last)
            for fact, seen in self._seen.items()
            if fact not in without
        }
        if bonus is not None:
            scores = {fact: score + bonus(fact) for fact, score in scores.items()}
        return sorted(scores, key=scores.__getitem__, reverse=True)[:count]


def _shape(fact: str) -> str:
    """Return the shape of a fact: ``A-17`` and ``B-404`` have the same, and so have paths to files of one kind."""
    if "/" in fact:
        return "/" + fact.rpartition(".")[2][:8]
    shape = fact.translate(_CLASSES)
    for twice in ("aa", "AA", "00"):
        while twice in shape:
            shape = shape.replace(twice, twice[0])
    return shape[:24]
