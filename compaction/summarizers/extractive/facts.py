"""Facts: exact strings that an agent will need again and cannot guess, such as paths, identifiers, numbers and quoted words.

A summary in prose loses them first, and they cost little to keep. `facts_in` finds them in any text, in time linear in its
length; a `FactTable` remembers where each was seen and scores how likely it is to be needed again. What counts as a fact, and
what the score depends on, was measured on recorded sessions: ``docs/explanation/digest.md`` has the figures.
"""

from __future__ import annotations

import enum
import functools
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from .sentences import CUT

_LONGEST: Final = 200
_QUOTES: Final = "\"'`“”‘’«»「」『』《》"
_GAP: Final = rf"\s{_QUOTES}()\[\]{{}}<>;|（）【】，；"
_EDGES: Final = ".,:!?*=&^…。！？：、·"
# Skips words that are only letters, with a change from lower to upper case in none, before each token.
_TOKEN: Final = re.compile(rf"(?:[A-Z]*+[a-zß-öø-ÿ가-힣一-鿿]*+[{re.escape(_EDGES)}]*+[{_GAP}]++)*+([^{_GAP}]*+)")
_TELLING: Final = re.compile(r"\d|\w[_./@\\-]\w|[a-z][A-Z]|^(?:/|--|\$|~/|@)\w\w")
_QUOTED: Final = re.compile(
    r"\"([^\"\n]*)\"|'(?<!\w')([^'\n]*)'(?!\w)|`([^`\n]*)`|“([^“”\n]*)”|「([^「」\n]*)」|『([^『』\n]*)』|《([^《》\n]*)》|«([^«»\n]*)»"
)
_NAMES: Final = re.compile(r"[A-Z](?<!\w[A-Z])[a-z]+(?: [A-Z][a-z]+){1,4}\b")
_BLANK: Final = re.compile(r"\s")
# 1,225.56 and, as in most of Europe, 1.225,56 or 425,25: numbers with a comma in them.
_GROUPED: Final = re.compile(
    r"(?<![\w,.])[$€£¥₩+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d\d?|\d+,\d\d|\d+,\d(?=%))%?(?!\w|,\d|\.\d)",
    re.ASCII,
)
_APART: Final = re.compile(r"(?<![\w,.])\d{1,9}(?:\.\d{3}){0,4},\d[ \u00a0\u202f][%‰]")  # as German is written: 12,5 %
_SIGNS_APART: Final = tuple(f"{blank}{sign}" for blank in " \u00a0\u202f" for sign in "%‰")
_SCRIPTS: Final = "\u1100-\u11ff\u3000-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_RUN: Final = re.compile(rf"[{_SCRIPTS}]+|[^{_SCRIPTS}]+")
_JOINTS: Final = frozenset("_./\\@-")
_LEADING: Final = ",:!?*=&^…。！？：、·"
_GUTTER: Final = re.compile(r"^[ \t]{0,8}\d{1,6}(?:\t|:(?!\d)|\|)", re.MULTILINE)
# Modes of files, rows of signs, and numbers of one or two digits without a unit.
_UNTELLING: Final = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?|[\W_]+|[-+~#]?\d{1,2}")
_NUMBER: Final = re.compile(r"[^\w\s]?[-+]?[$€£¥₩]?\d[\d.,:%/+-]*(?:[%a-zA-Z]{0,2}|[ \u00a0\u202f][%‰])")
_CLASSES: Final = str.maketrans(
    {**dict.fromkeys(ascii_lowercase, "a"), **dict.fromkeys(ascii_uppercase, "A"), **dict.fromkeys(digits, "0")}
)


class FactKind(enum.Enum):
    """The list that a fact belongs to; the value is its label."""

    PATH = "Paths and links seen"
    NAME = "Names and ids seen"
    NUMBER = "Numbers seen"
    PHRASE = "Phrases seen"


class FactSource(enum.Flag):
    """The source of a text: the user, the assistant, or a tool's result. A `FactTable` takes their values."""

    USER = enum.auto()
    ASSISTANT = enum.auto()
    RESULT = enum.auto()


@functools.lru_cache(maxsize=16_384)  # the same facts come back with each summary of a conversation
def fact_kind(fact: str) -> FactKind:
    """Return the list that a fact belongs to.

    >>> fact_kind("src/app.py"), fact_kind("$5,200,000"), fact_kind("user_id_7")
    (<FactKind.PATH: 'Paths and links seen'>, <FactKind.NUMBER: 'Numbers seen'>, <FactKind.NAME: 'Names and ids seen'>)
    """
    if _NUMBER.fullmatch(fact):
        return FactKind.NUMBER
    if _TELLING.search(fact) is None or _BLANK.search(fact):
        return FactKind.PHRASE
    return FactKind.PATH if "/" in fact or "\\" in fact else FactKind.NAME


def facts_in(text: str) -> dict[str, None]:
    """Return the facts of a text, in order of kind and appearance; O(characters).

    A fact is a run of characters between blanks, quotes and brackets that holds a digit, an inner ``_ . / @ -`` or a change
    from lower to upper case; a quoted string of 4 to 80 characters; or two to five capitalized words in a row. Latin letters
    or digits directly next to Korean, Chinese or Japanese ones are separate facts. Line numbers at the start of lines, numbers
    of one or two digits without a unit, file modes, rows of signs and clipped words are not facts.

    >>> list(facts_in('Set "retry limit" of src/app.py to 30s, 설정은 config.yaml에 있습니다'))
    ['src/app.py', '30s', 'config.yaml', 'retry limit']
    """
    found: dict[str, None] = {}
    text = _GUTTER.sub("", text)
    for token in dict.fromkeys(_TOKEN.findall(text)):
        if token.isascii() and "," not in token:
            _keep(token, found)
        else:
            for piece in _pieces(token):
                _keep(piece, found)
    for match in _QUOTED.finditer(text):
        quoted = match[match.lastindex or 0].strip()
        if (4 if quoted.isascii() else 2) <= len(quoted) <= 80 and '"' not in quoted:
            found[quoted] = None
    found.update(dict.fromkeys(_NAMES.findall(text)))
    if "," in text and any(sign in text for sign in _SIGNS_APART):
        found.update(dict.fromkeys(_APART.findall(text)))
    return found


def is_telling(value: str) -> bool:
    """Return whether a value can be understood beside others: it is no row of signs, and no number of one or two digits."""
    return _UNTELLING.fullmatch(value) is None


def _keep(token: str, found: dict[str, None]) -> None:
    if token[-1:] == CUT:
        return
    token = token.rstrip(_EDGES).lstrip(_LEADING)
    if 1 < len(token) <= _LONGEST and _TELLING.search(token) and _UNTELLING.fullmatch(token) is None:
        found[token] = None


def _pieces(token: str) -> Iterable[str]:
    """Yield the pieces of a token, split at commas that do not group digits and where the script changes."""
    if "," in token:
        yield from _GROUPED.findall(token)
        token = _GROUPED.sub(",", token)
    for part in token.split(","):
        if part.isascii():
            yield part
        else:
            yield from _by_script(part)


def _by_script(token: str) -> Iterable[str]:
    joined = ""
    for run in _RUN.findall(token):
        if joined and joined[-1] not in _JOINTS and run[0] not in _JOINTS:
            yield joined
            joined = ""
        joined += run
    yield joined


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
        self.rarity = 0.0
        self.messages = 0
        self.said = 0
        self.in_results = 0
        self.reused = False
        self.lasting: float | None = None  # what does not depend on other messages, in the score

    def settle(self, fact: str) -> float:
        """Return the part of the score of a fact that does not depend on other messages."""
        self.lasting = (
            0.5 * math.log(self.rarity + 0.001)
            + 0.5 * min(self.said, 3)
            + 0.5 * math.log(1 + self.messages)
            - 0.2 * min(self.in_results, 3)
            - 0.1 * math.log(1 + self.first)
            - 0.25 * math.log(1 + len(fact) / 4)
            - 0.5 * (" " in fact)
        )
        return self.lasting

    def copy(self, table: object) -> _Seen:
        copy = _Seen(self.shape, self.first, table)
        copy.last, copy.rarity, copy.messages = self.last, self.rarity, self.messages
        copy.said, copy.in_results, copy.reused = self.said, self.in_results, self.reused
        return copy


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
                    seen = known[fact] = seen.copy(own)
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
        as one). It is less likely if many results show it, if it is long, and if it holds blanks.

        Args:
            count: The most facts to return.
            without: Facts to leave out.
            bonus: What to add to the score of a fact, which is about the logarithm of how likely it is.
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
