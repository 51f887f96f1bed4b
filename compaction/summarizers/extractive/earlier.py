"""The earlier summary that a new one continues: which of its statements, calls, facts and foreign lines are in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .actions import is_open
from .facts import FROM, FactKind, FoundIn, facts_in
from .lines import SPEAKER
from .memory import ConversationMemory
from .page import CHANGED, FIRST, NO_ROOM, READ, UNREAD, SearchedText
from .sections import Section, read_sections
from .sentences import sentences_in
from .statements import ASSISTANT, QUOTED, SYSTEM
from .talk import APART, Utterance

_KINDS: Final = "|".join(kind.value for kind in FactKind)
# Lines that the digest itself writes beside statements.
_LIST: Final = re.compile(rf"^(?:- )?(?:{_KINDS}|{FROM}(\S.*?\))): (.*)", re.MULTILINE)
_COUNTED: Final = re.compile(rf"\(\d+ (?:{NO_ROOM}|{UNREAD})\)")
_CUT: Final = re.compile(r"…$| \.\.\.$")
_NOTE: Final = re.compile(r" \((?:was .+ until |now .+, since |earlier, )?message \d+\)$")  # " (was 8080 until message 2)"
_BY: Final = re.compile(rf"^(?:- )?(?:(?:{ASSISTANT}|{SYSTEM}|{QUOTED}): )?")


class EarlierSummary:
    """The text of an earlier summary, whoever wrote it; empty in the first round.

    Attributes:
        text: The text.
        statements: The statements of the memory that it has.
    """

    def __init__(self, text: str, memory: ConversationMemory, talk: Sequence[Utterance]) -> None:
        self.text = text
        self._searched = SearchedText(text)
        self._memory = memory
        self._spoken = {each.text for each in talk}
        self.statements = frozenset([said for said in memory.statements.current if said in self])

    def __contains__(self, part: str) -> bool:
        return part in self._searched

    def facts(self) -> list[str]:
        """Return the facts in its lists."""
        return [*facts_in("\n".join([facts for _, facts in _LIST.findall(self.text)]))]

    def sources(self) -> dict[str, FoundIn]:
        """Return the calls that its lists name, each with the place of its list."""
        lists = enumerate(_LIST.findall(self.text), -len(self.text))
        return {fact: FoundIn(call, place) for place, (call, facts) in lists if call for fact in facts_in(facts)}

    def foreign_lines(self) -> dict[Section, list[str]]:
        """Return its lines that the memory and the talk do not have in some form."""
        found: dict[Section, list[str]] = {}
        for section, items in read_sections(self.text).items():
            for item in items:
                head, *below = item.split("\n")
                new = [line for line in below if not self._is_known(line)]
                if new or not (below or self._is_known(head)):
                    found.setdefault(section, []).append("\n".join([head, *new]))
        return found

    def _is_known(self, line: str) -> bool:
        """Return whether a line was said, or is in the memory, or is one that the digest writes itself."""
        memory, statements = self._memory, self._memory.statements
        bare = _NOTE.sub("", _BY.sub("", line))  # "The port is 8080." of "Assistant: The port is 8080. (message 3)"
        head, _, rest = line.partition(": ")
        words = SPEAKER.sub("", bare, count=1)  # "We leave at 9." of "Ann: We leave at 9."
        return (
            self._is_spoken(bare)
            or self._is_spoken(words)
            or memory.speakers.get(words, "") == bare.partition(": ")[0] != ""
            or bare in statements.current
            or bare in statements.replaced
            or line.partition(" -> ")[0] in memory.actions  # "shell(make) -> ok"
            or bare in memory.rows
            or rest in memory.rows  # "list: id=227 name=Ada Berg"
            or (head in memory.plans and is_open(rest) is not None)  # "todo: done: Port it"
            or (head in (CHANGED, READ) and memory.files.keys() >= set(rest.split()))  # not "Changed: the limit"
            or (head == FIRST and self._begins_first(rest))  # not "First: ask Ines"
            or _LIST.match(line) is not None
            or _COUNTED.fullmatch(line) is not None
        )

    def _begins_first(self, text: str) -> bool:
        return any(" ".join(said.split()).startswith(_CUT.sub("", text)) for said in self._memory.requests[:1])

    def _is_spoken(self, text: str) -> bool:
        whole, apart = [text], text.split(APART)
        found = ([said for part in parts for said in sentences_in(part)] for parts in (whole, apart) if self._spoken)
        return any(said and self._spoken.issuperset(said) for said in found)
