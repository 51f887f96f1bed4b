"""Judges how much of a person's words a request still has, and what each cut did with the person's messages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from compaction import GroupKind, MessageIndex
from compaction.index import Drop, Edit, Replace, Together, named
from compaction.result import CompactionResult

_MARKS: Final = dict.fromkeys(map(ord, "\"'`*_“”„‟‘’‚‛«»‹›「」『』\\"))
_PREFIX: Final = re.compile(r"^[\s>|#•·*+-]+(?:\[[ x]\]|\d{1,3}[.)])?\s*", re.MULTILINE)
_SPACE: Final = re.compile(r"\s+")
_ENDS: Final = ".!?。！？।؟ "


def squeezed(text: str, *, prefixes: bool = False) -> str:
    r"""Return a text without white space, quotation marks, emphasis and, unless asked for, prefixes of lists, in small letters.

    >>> squeezed("  - Never touch\n    `prod.db`!") == squeezed("Never touch prod.db!")
    True
    """
    plain = unicodedata.normalize("NFKC", text if prefixes else _PREFIX.sub("", text)).casefold().translate(_MARKS)
    return _SPACE.sub("", plain)


def key_of(statement: str) -> str:
    """Return a statement as it is searched for: the end of a sentence does not count."""
    return squeezed(statement).rstrip(_ENDS)


class Finder:
    """Finds statements in texts. Holds state: what each text contains, since most texts are in many requests.

    Args:
        statements: The statements.
    """

    def __init__(self, statements: Iterable[str]) -> None:
        self._keys = {statement: key_of(statement) for statement in statements}
        self._known: dict[str, frozenset[str]] = {}

    def found(self, messages: Iterable[Any]) -> frozenset[str]:
        """Return the statements that are whole in a message."""
        return frozenset[str]().union(*(self._found_in(text) for each in messages if (text := text_of(each))))

    def _found_in(self, text: str) -> frozenset[str]:
        known = self._known.get(text)
        if known is None:
            plain = squeezed(text)
            known = frozenset([statement for statement, key in self._keys.items() if key in plain])
            self._known[text] = known
        return known


def text_of(message: Any) -> str:
    """Return the text of a chat message."""
    content: Any = message.get("content")
    return content or "" if isinstance(content, str | None) else "\n".join(str(part.get("text", "")) for part in content)


@attrs.frozen
class Cuts:
    """The cuts of a session: runs in which groups left the view, other than by being replaced.

    Args:
        cuts: How many.
        without: Those without a summary that was accepted: it was refused, failed, or nobody wrote one.
        refused: Those of them in which a summary was refused or its writer failed.
    """

    cuts: int = 0
    without: int = 0
    refused: int = 0

    def __add__(self, other: Cuts) -> Cuts:
        return Cuts(self.cuts + other.cuts, self.without + other.without, self.refused + other.refused)

    @classmethod
    def of(cls, result: CompactionResult | None) -> Cuts:
        """Return the count for one run: none or one cut."""
        if result is None:
            return cls()
        edits = list(_flat(result.edits))
        written = [each for each in edits if isinstance(each, Replace)]
        dropped = {id for each in edits if isinstance(each, Drop) for id in named(each) if id >= 0}
        if not written and not dropped:
            return cls()
        failed = any(isinstance(each.edit, Replace) for each in result.refused) or bool(result.failures)
        without = bool(dropped) and not written
        return cls(1, int(without), int(without and failed))


def _flat(edits: Iterable[Edit]) -> Iterable[Edit]:
    for each in edits:
        if isinstance(each, Together):
            yield from _flat(each.edits)
        else:
            yield each


def lost_messages(index: MessageIndex, found: frozenset[str], source: Sequence[Any]) -> int:
    """Return how many messages of the user are neither in the view nor replaced by a summary that is in it.

    Args:
        index: The index of the view.
        found: The texts that the view has whole.
        source: The conversation.
    """
    groups = [group for group in index.included_groups if group.kind in (GroupKind.USER, GroupKind.SUMMARY)]
    covered = {ordinal for run in index.places(groups) for ordinal in run}
    said = [(at, text_of(raw)) for at, raw in enumerate(source) if raw["role"] == "user"]
    return sum(at not in covered and text not in found for at, text in said)
