"""The facts of a conversation: where each was seen, and how likely it is to be needed again.

What the score depends on was measured on recorded sessions: ``docs/explanation/digest.md`` has the figures.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from itertools import islice
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from .facts import FactSource

_CLASSES: Final = str.maketrans(
    {**dict.fromkeys(ascii_lowercase, "a"), **dict.fromkeys(ascii_uppercase, "A"), **dict.fromkeys(digits, "0")}
)
_ASSISTANT: Final = FactSource.ASSISTANT.value
_RESULT: Final = FactSource.RESULT.value
_MOST_FACTS: Final = 8_000


class _Seen:
    """The places where one fact was seen."""

    __slots__ = ("first", "in_results", "last", "lasting", "messages", "rarity", "reused", "said", "shape", "table")

    def __init__(self, shape: str, message: int, table: object) -> None:
        self.table = table  # the only table that may change it
        self.shape = shape
        self.first = message
        self.last = message
        self.rarity = 0.0  # the largest share of the facts of a message that it was
        self.messages = 0  # how many have it
        self.said = 0  # in how many the assistant says it or uses it in a call
        self.in_results = 0  # in how many a result shows it
        self.reused = False  # whether the assistant used it after it was seen
        self.lasting: float | None = None  # what does not depend on other messages, in the score

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
    """The facts of a conversation, with where each was seen. Holds state: it grows with each message, up to a bound.

    Adding costs O(facts of the message). Past the bound, the half of the facts least likely to be needed is forgotten.

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
        self._shapes: dict[str, tuple[int, int]] = {}  # how many facts have a shape, and how many of them the assistant used
        self._own = object()  # changes when the facts are shared with a copy

    def copy(self) -> FactTable:
        """Return a table with the same facts, which grows by itself. O(facts) in C: what either changes, it copies then."""
        table = FactTable()
        table.messages, table._seen, table._shapes = self.messages, self._seen.copy(), self._shapes.copy()
        self._own = object()
        return table

    def add(self, facts: Mapping[str, int]) -> None:
        """Add the facts of a message, each with the value of the sources that showed it."""
        self._see(facts)
        if len(self._seen) > _MOST_FACTS:
            kept = set(self.best(_MOST_FACTS // 2))
            self._seen = {fact: seen for fact, seen in self._seen.items() if fact in kept}

    def _see(self, facts: Mapping[str, int]) -> None:
        """Add the facts of a message, without a bound."""
        known, place, own = self._seen, self.messages, self._own
        rarity = 1 / max(1, len(facts))
        for fact, bits in facts.items():
            seen = known.get(fact)
            said = bits & _ASSISTANT != 0
            if seen is None:
                seen = known[fact] = _Seen(sys.intern(_shape(fact)), place, own)
                alike, used = self._shapes.get(seen.shape, (0, 0))
                self._shapes[seen.shape] = alike + 1, used
            else:
                if seen.table is not own:
                    seen = known[fact] = copy(seen)
                    seen.table = own
                if said and not seen.reused:
                    seen.reused = True
                    alike, used = self._shapes[seen.shape]
                    self._shapes[seen.shape] = alike, used + 1
            seen.rarity = max(seen.rarity, rarity)
            seen.messages += 1
            seen.last = place
            seen.said += said
            seen.in_results += bits & _RESULT != 0
            seen.lasting = None
        self.messages += 1

    def followed_by(self, messages: Iterable[Mapping[str, int]]) -> FactTable:
        """Return a table that also has the facts of later messages; this one stays as it was. O(facts) in C."""
        table = self.copy()
        for facts in messages:
            table._see(facts)
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
        of_shape = {shape: 0.4 * math.log((used + 0.3) / (known + 3)) for shape, (known, used) in self._shapes.items()}
        log, now, facts = math.log, self.messages, list(self._seen)
        scores = [  # computed for every fact: no method is called
            (seen.settle(fact) if seen.lasting is None else seen.lasting) + of_shape[seen.shape] - 0.4 * log(now - seen.last)
            for fact, seen in self._seen.items()
        ]
        if bonus is not None:
            scores = [score + bonus(fact) for score, fact in zip(scores, facts, strict=True)]
        ranked = map(facts.__getitem__, sorted(range(len(facts)), key=scores.__getitem__, reverse=True))
        return list(islice((fact for fact in ranked if fact not in without) if without else ranked, count))


def _shape(fact: str) -> str:
    """Return the shape of a fact: ``A-17`` and ``B-404`` have the same, and so have paths to files of one kind."""
    if "/" in fact:
        return "/" + fact.rpartition(".")[2][:8]
    shape = fact.translate(_CLASSES)
    for twice in ("aa", "AA", "00"):
        while twice in shape:
            shape = shape.replace(twice, twice[0])
    return shape[:24]
