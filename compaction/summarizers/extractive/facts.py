"""Facts: exact strings that an agent will need again and cannot guess, such as paths, identifiers, numbers and quoted words.

A summary in prose loses them first, and they cost little to keep. `facts_in` finds them in any text, in time linear in its
length; the `FactTable` says which are likely to be needed again. What counts as a fact, and what its score depends on, was
measured on recorded sessions: ``docs/explanation/digest.md`` has the figures.
"""

from __future__ import annotations

import enum
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final, NamedTuple

from ..redaction import REDACTED
from .sentences import CUT, one_line

FROM: Final = "From "  # the beginning of the label of facts of one result

_LONGEST: Final = 200
_SOURCE_CHARS: Final = 48
_QUOTES: Final = "\"'`“”‘’«»「」『』《》"
_GAP: Final = rf"\s{_QUOTES}()\[\]{{}}<>;|（）【】，；"
_EDGES: Final = ".,:!?*=&^…。！？：、·"
_PLAIN_WORD: Final = rf"[A-Z]*+[a-zß-öø-ÿ가-힣一-鿿]*+[{re.escape(_EDGES)}]*+"  # "Never", "USA,", "once."; not "v2", "fooBar"
_TOKEN: Final = re.compile(rf"(?:{_PLAIN_WORD}[{_GAP}]++)*+([^{_GAP}]*+)")  # the next run of characters; skips plain words
_TELLING: Final = re.compile(r"\d|\w[_./@\\-]\w|[a-z][A-Z]|^(?:/|--|\$|~/|@)\w\w")  # "v2", "a_b", "fooBar", "--all", "$HOME"
_QUOTED: Final = re.compile(
    r"\"([^\"\n]*)\"|'(?<!\w')([^'\n]*)'(?!\w)|`([^`\n]*)`|“([^“”\n]*)”|「([^「」\n]*)」|『([^『』\n]*)』|《([^《》\n]*)》|«([^«»\n]*)»"
)
_NAMES: Final = re.compile(r"[A-Z](?<!\w[A-Z])[a-z]+(?: [A-Z][a-z]+){1,4}\b")  # "Ines Vogt"
_BLANK: Final = re.compile(r"\s")
# 1,225.56 and, as in most of Europe, 1.225,56 or 425,25: numbers with a comma in them.
_GROUPED: Final = re.compile(
    r"(?<![\w,.])[$€£¥₩+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d\d?|\d+,\d\d|\d+,\d(?=%))%?(?!\w|,\d|\.\d)",
    re.ASCII,
)
_SCRIPTS: Final = "\u1100-\u11ff\u3000-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_RUN: Final = re.compile(rf"[{_SCRIPTS}]+|[^{_SCRIPTS}]+")
_JOINTS: Final = frozenset("_./\\@-")
_LEADING: Final = ",:!?*=&^…。！？：、·"
_GUTTER: Final = re.compile(r"^[ \t]{0,8}\d{1,6}(?:\t|:(?!\d)|\|)", re.MULTILINE)  # the number of a line: "12:import os"
# Modes of files, rows of signs, and numbers of one or two digits without a unit.
_UNTELLING: Final = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?|[\W_]+|[-+~#]?\d{1,2}")
_NUMBER: Final = re.compile(r"[^\w\s]?[-+]?[$€£¥₩]?\d[\d.,:%/+-]*[%a-zA-Z]{0,2}")  # "~-$1,200.50", "14:35", "30ms"


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
    of one or two digits without a unit, file modes, rows of signs, clipped words and marks of secrets are not facts.

    >>> list(facts_in('Set "retry limit" of src/app.py to 30s, 설정은 config.yaml에 있습니다'))
    ['src/app.py', '30s', 'config.yaml', 'retry limit']
    >>> list(facts_in('<meta name="csrf" content="[REDACTED:token]">'))
    ['csrf']
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
        if (4 if quoted.isascii() else 2) <= len(quoted) <= 80 and '"' not in quoted and not quoted.startswith(REDACTED):
            found[quoted] = None
    found.update(dict.fromkeys(_NAMES.findall(text)))
    return found


def is_telling(value: str) -> bool:
    """Return whether a value can be understood beside others: it is no row of signs, and no number of one or two digits."""
    return _UNTELLING.fullmatch(value) is None


def _keep(token: str, found: dict[str, None]) -> None:
    if CUT in token:
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
        joined = ""
        for run in [part] if part.isascii() else _RUN.findall(part):
            if joined and joined[-1] not in _JOINTS and run[0] not in _JOINTS:
                yield joined
                joined = ""
            joined += run
        yield joined


# ---------------------------------------------------------------- the facts of a conversation

_CLASSES: Final = str.maketrans(
    {**dict.fromkeys(ascii_lowercase, "a"), **dict.fromkeys(ascii_uppercase, "A"), **dict.fromkeys(digits, "0")}
)
_ASSISTANT: Final = FactSource.ASSISTANT.value
_RESULT: Final = FactSource.RESULT.value
_MOST_FACTS: Final = 8_000


class _Seen(NamedTuple):
    """The places where one fact was seen. Tables share it: it never changes."""

    shape: str
    first: int  # the number of the first message that has it
    last: int = 0
    rarity: float = 0.0  # the largest share of the facts of a message that it was
    messages: int = 0  # how many have it
    said: int = 0  # in how many the assistant says it or uses it in a call
    in_results: int = 0  # in how many a result shows it
    reused: bool = False  # whether the assistant used it after it was seen

    def score(self, fact: str, now: int) -> float:
        """Return the score of a fact at a message, without the part that depends on its shape."""
        return (
            0.5 * math.log(self.rarity + 0.001)  # alone in a message 0; one of ten facts -1.1
            + 0.5 * min(self.said, 3)  # used by the assistant three times 1.5
            + 0.5 * math.log(1 + self.messages)  # in one message 0.3; in ten 1.2
            - 0.2 * min(self.in_results, 3)  # in three results -0.6
            - 0.1 * math.log(1 + self.first)  # first in message 100 -0.5
            - 0.25 * math.log(1 + len(fact) / 4)  # of 12 characters -0.3; of 80 -0.8
            - 0.5 * (" " in fact)
            - 0.4 * math.log(now - self.last)  # last a hundred messages ago -1.8
        )


class FoundIn(NamedTuple):
    """The call whose result has a fact, and the place of the fact among all results: the number of its message, and a part."""

    call: str
    place: float

    @property
    def label(self) -> str:
        """The words before a list of facts.

        >>> FoundIn("get_order(#W12)", 3.0).label, FoundIn("search(" + "flights to Oslo " * 9 + ")", 3.0).label
        ('From get_order(#W12)', 'From search(flights to Oslo flights to Oslo ...)')
        """
        return FROM + (self.call if len(self.call) <= _SOURCE_CHARS else f"{one_line(self.call, _SOURCE_CHARS - 1)})")


class FactTable:
    """The facts of a conversation, with where each was seen. Holds state: it grows with each message.

    Adding costs O(facts of the message).

    Attributes:
        messages: The number of messages added.

    >>> table = FactTable()
    >>> table.add({"A-17": FactSource.RESULT.value, "A-18": FactSource.RESULT.value})
    >>> table.add({"A-17": FactSource.ASSISTANT.value})
    >>> table.best()
    ['A-17', 'A-18']
    """

    def __init__(self) -> None:
        self.messages = 0
        self._seen: dict[str, _Seen] = {}

    def copy(self) -> FactTable:
        """Return a table with the same facts, which grows by itself. O(facts) in C."""
        table = FactTable()
        table.messages, table._seen = self.messages, self._seen.copy()
        return table

    def add(self, facts: Mapping[str, int]) -> None:
        """Add the facts of a message, each with the value of the sources that showed it."""
        place, rarity = self.messages, 1 / max(1, len(facts))
        for fact, sources in facts.items():
            said = sources & _ASSISTANT != 0
            before = self._seen.get(fact) or _Seen(sys.intern(_shape(fact)), place)
            self._seen[fact] = _Seen(  # in their order, since names take twice the time
                before.shape,
                before.first,
                place,
                max(before.rarity, rarity),
                before.messages + 1,
                before.said + said,
                before.in_results + (sources & _RESULT != 0),
                before.reused or (said and before.messages > 0),
            )
        self.messages += 1

    def prune(self) -> None:
        """Forget the half of the facts least likely to be needed, if they are past the bound."""
        if len(self._seen) > _MOST_FACTS:
            kept = set(self.best()[: _MOST_FACTS // 2])
            self._seen = {fact: seen for fact, seen in self._seen.items() if fact in kept}

    def is_unused(self, fact: str) -> bool:
        """Return whether only the user showed a fact: the assistant did not say or use it, and no result has it."""
        seen = self._seen.get(fact)
        return seen is not None and not seen.said and not seen.in_results

    def best(self, *, without: Collection[str] = (), bonus: Callable[[str], float] | None = None) -> list[str]:
        """Return the facts, those most likely to be needed again first; O(facts).

        A fact is likely if its message held few others, if the assistant said it or used it in a call, if it occurred often,
        recently, or early, and if the assistant used facts of its shape before (digits, capitals and small letters each count
        as one). It is less likely if many results show it, if it is long, and if it holds blanks. ``bonus`` is added to the
        score of a fact, which is about the logarithm of how likely it is.
        """
        alike = Counter([seen.shape for seen in self._seen.values()])
        reused = Counter([seen.shape for seen in self._seen.values() if seen.reused])
        of_shape = {shape: 0.4 * math.log((reused[shape] + 0.3) / (number + 3)) for shape, number in alike.items()}
        scores = {
            fact: seen.score(fact, self.messages) + of_shape[seen.shape] + (bonus(fact) if bonus else 0.0)
            for fact, seen in self._seen.items()
            if fact not in without
        }
        return sorted(scores, key=scores.__getitem__, reverse=True)


def _shape(fact: str) -> str:
    """Return the shape of a fact: ``A-17`` and ``B-404`` have the same, and so have paths to files of one kind."""
    if "/" in fact:
        return "/" + fact.rpartition(".")[2][:8]
    shape = fact.translate(_CLASSES)
    for twice in ("aa", "AA", "00"):
        while twice in shape:
            shape = shape.replace(twice, twice[0])
    return shape[:24]
