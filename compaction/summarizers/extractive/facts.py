"""Facts: exact strings that an agent will need again and cannot guess, such as paths, identifiers, numbers and quoted words.

A summary in prose loses them first, and they cost little to keep. `facts_in` finds them in any text, in time linear in its
length; the `fact_table` says which are likely to be needed again. What counts as a fact was measured on recorded sessions:
``docs/explanation/digest.md`` has the figures.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable
from typing import Final

from ..redaction import REDACTED
from .sentences import CUT

_LONGEST: Final = 200
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
