"""The extractive writer: fills a page from the memory of a conversation, for the digest and for the fact list.

Each kind of line has a share of the room; what one leaves goes to the others, the most important first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Final

import attrs

from ...index import GroupKind
from ...messages import Message
from ..base import SummaryRequest
from .actions import argument_values
from .earlier import EarlierSummary
from .memory import ConversationMemory
from .page import SummaryPage
from .reading import Reading
from .said import Said
from .scoring import Kind
from .sections import Section
from .sentences import clipped, one_line
from .statements import ASSISTANT, SYSTEM
from .talk import Sentence, chosen, lines_of

_SECTIONS: Final[Mapping[Kind, Section]] = {
    Kind.RULE: Section.CONSTRAINTS,
    Kind.DECISION: Section.DECISIONS,
    Kind.TASK: Section.NEXT,
    Kind.REQUEST: Section.GOAL,
    Kind.QUESTION: Section.GOAL,
    Kind.ANSWER: Section.DONE,
}
_LINE_CHARS: Final = 400
_EARLIER: Final = 2.95  # the most that an older statement weighs which a later one may be about: just less than plain facts
_CHANGED: Final = 2.0  # the same, if the later one says that something changed
_HELD_BONUS: Final = 2.0
_FOCUS_BONUS: Final = 3.0
_CANDIDATES: Final = 8  # for each token, since most facts are visible or part of a line
_SPARE: Final = 8
_FIRST_TOKENS: Final = 60
_FIRST_CHARS: Final = 80  # of the user's first message: if so many are visible, an earlier part of the summary quotes it
_MOST_MISSES: Final = 12
_PLACE_OF_HELD: Final = -1e6


@attrs.frozen(kw_only=True)
class Shares:
    """The share of the page's tokens that each kind of line may fill at first; room that is left over is distributed later."""

    request: float = 0.12  # the share of the user's first message
    rules: float = 0.5  # the share of rules
    said: float = 0.5  # the share of rules and other statements together
    held: float = 0.3  # the share of lines of an earlier summary that another summarizer wrote
    failed: float = 0.2  # the share of failed calls, and of rows of results that the user asked for
    calls: float = 0.04  # the share of other calls, and of files
    facts: float = 0.15  # the share that is reserved for facts when left-over room is distributed


_OF_TALK: Final = Shares(request=0.04, rules=0.02, said=0.02, facts=0.0)
"""The shares of a talk between people: no calls, and what was said instead of facts without their sentence."""


class SummaryWriter:
    """Fills a page. Holds state: the page.

    Args:
        request: What to summarize, and in how many tokens.
        memory: What the conversation said.
        talk: The sentences of a talk between people; empty for any other conversation.
        earlier: The earlier summary.
        shares: The shares of the page's room, unless people talk.
        read: Returns the reading of a message.
        focus: Whether a text mentions the focus of the request; ``None`` if it has none.

    Attributes:
        page: The page.
        earlier: The earlier summary.
    """

    def __init__(
        self,
        request: SummaryRequest,
        memory: ConversationMemory,
        talk: Sequence[Sentence],
        earlier: EarlierSummary,
        shares: Shares,
        *,
        read: Callable[[Message], Reading],
        focus: Callable[[str], bool] | None = None,
    ) -> None:
        self.page = SummaryPage(request.budget, request.counter.count_text, _visible_text(request))
        self.earlier = earlier
        self._memory = memory
        self._talk = talk
        self._shares = _OF_TALK if talk else shares
        self._focus = focus
        self._kept = request.kept
        self._read = read
        self._told = set[str]()  # statements in the lines of a talk
        self._ranked: list[str] | None = None  # the facts, once there is room for one
        self._has_first = bool(request.said)  # then the task stands in the summary already
        self._repeated = _repeated_instructions(request, memory, read)
        before = len(request.originals) if request.previous is None else 0
        self._said = [each for each in memory.said.values() if each.place > before or each.is_rule]
        self._newer = {text: each for each in self._said for text in each.earlier}
        self._misleading = _misleading(memory, self._newer)
        self._said.sort(key=self._order)  # twice by numbers, since thousands of pairs would start the garbage collector
        self._said.sort(key=self._weight, reverse=True)
        actions = memory.actions.values()
        self._found = [(action.place, Section.BLOCKED, action.line, "") for action in actions if action.failed]
        self._found += [(place, Section.CONTEXT, row, tool) for row, (place, tool) in memory.rows.items()]
        self._found.sort(key=lambda each: (each[2] not in earlier, -each[0]))
        self._calls = sorted([each for each in reversed(actions) if not each.failed], key=attrgetter("changes"), reverse=True)
        self._held_calls = earlier.calls()
        self._calls.sort(key=lambda each: each.call in self._held_calls, reverse=True)
        if focus is not None:
            self._calls.sort(key=lambda each: focus(each.line), reverse=True)

    def add_held(self, upto: float) -> None:
        """Add the rules, then the lines and facts of the earlier summary that nothing replaced."""
        self._add_first(upto)
        self._add_said(Kind.DUTY, self.page.used + self._shares.rules * self.page.limit)
        if self.earlier.text:
            held = [fact for fact in self.earlier.facts() if fact not in self._misleading]
            self.page.add_facts(held, upto=upto, held=True)
            if not self._talk:  # there, `add_talk` does so, with the speakers
                self._add_said(Kind.REMARK, upto, held=True)
            self._add_found(upto, held=True)
            self._add_calls(upto, held=True)

    def add_lines(self, filled: float, foreign: Mapping[Section, Sequence[str]]) -> None:
        """Add the lines: each kind up to its share, the most important first.

        Args:
            filled: Tokens that the page may have after this round; rules and failed calls may have more.
            foreign: Lines of an earlier summary that somebody else wrote.
        """
        page, shares = self.page, self._shares
        self._add_first(filled)
        start = page.used
        self._add_said(Kind.DUTY, start + shares.rules * page.limit)
        self._add_said(Kind.TASK, start + shares.said * page.limit)
        self._add_said(Kind.TALK, start + shares.said * filled)
        for section, lines in foreign.items():
            for place, line in enumerate(lines):
                upto = start + (shares.said + shares.held) * page.limit
                page.add(section, clipped(line, _LINE_CHARS), upto=upto, place=_PLACE_OF_HELD + place)
        self._add_found(page.used + shares.failed * page.limit)
        self._add_calls(min(filled, page.used + shares.calls * page.limit))

    def add_talk(self, upto: float) -> None:
        """Add the sentences of a talk, those of the earlier summary first, then those most likely to be asked about.

        Rules among them stand under the rules, all others in the order of the talk.
        """
        page, some = self.page, self._valid_talk()
        ranked = sorted(range(len(some)), key=lambda each: (some[each].text not in self.earlier, -some[each].worth))
        order = (each for each in ranked if not page.stands(some[each].text))
        ranks = chosen(some, order, max(0, min(upto, page.limit) - page.used), page.tokens)
        for place in [*ranks]:
            said = self._memory.said.get(some[place].statement)
            if said is not None and said.is_rule and self._add(said, upto):
                del ranks[place]
        self._told = {some[place].statement for place in ranks}
        for line in lines_of(some, ranks):
            page.add(Section.CONTEXT, line.text, upto=upto, place=line.place, under=line.lead, by=line.by)

    def _valid_talk(self) -> list[Sentence]:
        """Return the sentences that hold, each once, with what the memory adds to them."""
        found: dict[str, Sentence] = {}
        for each in self._talk:
            said = self._memory.said.get(each.statement)
            if said is not None and said.has_note:
                text = said.text.removeprefix(f"{each.by}: ")
                found.setdefault(text, attrs.evolve(each, text=text))
            elif each.statement not in self._memory.gone:
                found.setdefault(each.text, each)
        return [*found.values()]

    def add_more(self, filled: float) -> None:
        """Add statements and failed calls that had no room in their share, but for what facts shall have."""
        lines = (1 - self._shares.facts) * filled
        self._add_said(Kind.REQUEST, lines)
        self._add_found(lines)

    def add_rest(self, filled: float) -> None:
        """Fill what is left: every statement and call, then the files."""
        page = self.page
        self._add_found(page.limit)
        self._add_said(Kind.TASK, page.limit)
        self._add_said(Kind.REMARK, filled)
        self._add_calls(filled)
        if self._memory.last_words:
            page.add(Section.IN_PROGRESS, one_line(self._memory.last_words, _LINE_CHARS), upto=filled, by=ASSISTANT)
        if self._memory.unread:
            line = f"({self._memory.unread} texts were so long that only both ends were read)"
            page.add(Section.CONTEXT, line, upto=filled)

    def count_left_out(self) -> None:
        """Say how many rules had no room."""
        known = self._repeated | self._told
        rules = (each for each in self._said if each.is_rule and each.statement.text not in known)
        page = self.page
        page.left_out = sum(not page.stands(each.text) for each in rules)

    # ---------------------------------------------------------------- lines

    def _add_first(self, upto: float) -> None:
        """Add the user's first message, or its beginning, once."""
        if self._memory.requests and not self._has_first:
            self._has_first = True
            whole = " ".join(self._memory.requests[0].split())
            if self.page.stands(whole[:_FIRST_CHARS]):
                return
            room = max(self._shares.request * upto, min(_FIRST_TOKENS, self.page.limit / 4))
            first = self.page.shortened(whole, room)
            self.page.add(Section.GOAL, first, upto=self.page.limit, place=-1, by="First")

    def _add_said(self, least: Kind, upto: float, *, held: bool = False) -> None:
        """Add the statements of a kind, and of those that weigh more; with ``held``, those of the earlier summary."""
        some = takewhile(lambda each: each.statement.kind >= least or self._weight(each) >= least, self._said)
        _until_full(
            self._add(each, upto) for each in some if each.statement.kind >= least and (not held or self._is_in_previous(each))
        )

    def _is_in_previous(self, said: Said) -> bool:
        """Whether the earlier summary has a statement as it is written now."""
        text = said.statement.text
        return text in self.earlier.statements and (not said.has_note or said.text in self.earlier)

    def _add(self, said: Said, upto: float) -> bool:
        statement = said.statement
        if statement.text in self._repeated or statement.text in self._told or self.page.stands(said.text):
            return True
        section = _SECTIONS.get(statement.kind, Section.CONTEXT)
        text = self._line(said)
        return self.page.add(section, text, upto=upto, place=said.place, under=statement.lead, by=statement.by)

    def _line(self, said: Said) -> str:
        """Return how a statement is written: with its message where another one may be about the same thing."""
        text = said.statement.text
        if said.has_note:
            return said.text
        if text in self._newer:
            return f"{text} (earlier, message {said.place})"
        return f"{text} (message {said.place})" if said.earlier or said.statement.values else text

    def _weight(self, said: Said) -> float:
        """Return the weight of a statement, which is larger for those of the earlier summary."""
        text = said.statement.text
        bonus = _HELD_BONUS * (text in self.earlier.statements)
        newer = self._newer.get(text)
        kind: float = said.statement.kind
        if newer is not None:
            kind = min(kind, _CHANGED if newer.statement.changes else _EARLIER)
        return kind + (bonus if self._focus is None else bonus + self._focus_bonus(text))

    def _order(self, said: Said) -> tuple[float, int]:
        """Return the order of statements of equal weight: the earlier summary's oldest, then those with the rarest words."""
        if said.statement.text in self.earlier.statements:
            return 0.0, said.place
        return -self._memory.statements.rarity(said) * said.statement.worth, -said.place

    def _add_found(self, upto: float, *, held: bool = False) -> None:
        """Add failed calls that did not succeed later, and rows that the user asked for, the newest first."""
        found = (each for each in self._found if not held or each[2] in self.earlier)
        _until_full(self.page.add(section, line, upto=upto, place=place, by=tool) for place, section, line, tool in found)

    def _add_calls(self, upto: float, *, held: bool = False) -> None:
        """Add calls, those that changed something first, and files."""
        memory, page = self._memory, self.page
        calls = (each for each in self._calls if not held or each.call in self._held_calls)
        added = (page.add(Section.DONE, each.line, upto=upto, place=each.place) for each in calls)
        if not _until_full(added):
            return
        newest_first = list(reversed(memory.files.items()))
        for place, (path, changed) in enumerate(sorted(newest_first, key=lambda item: -item[1])):
            if (not held or path in self.earlier) and not page.add(
                Section.FILES, path, upto=upto, label="Changed" if changed else "Read", place=place
            ):
                return

    # ---------------------------------------------------------------- facts

    def add_facts(self, upto: float) -> None:
        """Add facts, those most likely to be needed first; O(known facts) if there is room for one."""
        room = int(max(0, min(upto, self.page.limit) - self.page.used))
        if room < 2:
            return
        if self._ranked is None:
            kept = (group for group in self._kept if group.kind not in (GroupKind.SYSTEM, GroupKind.SUMMARY))
            facts = self._memory.facts.followed_by(self._read(each).facts for group in kept for each in group.messages)
            bonus = None if self._focus is None else self._focus_bonus
            self._ranked = facts.best(_CANDIDATES * self.page.limit + _SPARE, without=self._misleading, bonus=bonus)
        self.page.add_facts(self._ranked[: _CANDIDATES * room + _SPARE], upto=upto)

    def _focus_bonus(self, text: str) -> float:
        return _FOCUS_BONUS * (self._focus is not None and self._focus(text))


def _until_full(added: Iterable[bool]) -> bool:
    """Add lines until a dozen in a row did not fit; return whether all were tried."""
    misses = 0
    for is_added in added:
        misses = 0 if is_added else misses + 1
        if misses > _MOST_MISSES:
            return False
    return True


def _misleading(memory: ConversationMemory, newer: Mapping[str, Said]) -> set[str]:
    """Return the facts that would mislead without their sentence: values that were replaced, or perhaps were.

    Args:
        memory: What the conversation said.
        newer: By the words of statements, those that may be about the same thing and have another value.
    """
    older_values = {value for text in newer if text in memory.said for _, value in memory.said[text].statement.values}
    newer_values = {value for each in newer.values() for _, value in each.statement.values}
    unused = filter(memory.facts.is_unused, _older_values(memory))
    return {*memory.gone, *(older_values - newer_values), *unused}


def _older_values(memory: ConversationMemory) -> set[str]:
    """Return the values of statements that a later one may be about: both share a word, and have values of one shape."""
    named: set[tuple[str, str]] = set()
    older, newer = set[str](), set[str]()
    for said in reversed(memory.said.values()):
        statement = said.statement
        for shape, value in statement.values:
            (newer if named.isdisjoint((shape, stem) for stem in statement.stems) else older).add(value)
        named.update((shape, stem) for shape, _ in statement.values for stem in statement.stems)
    return older - newer


def _repeated_instructions(request: SummaryRequest, memory: ConversationMemory, read: Callable[[Message], Reading]) -> set[str]:
    """Return the statements of instructions that one in the view says again, perhaps with other numbers."""
    told = [each.statement for each in memory.said.values() if each.statement.by == SYSTEM]
    instructions = (group.messages[0] for group in request.kept if told and group.kind is GroupKind.SYSTEM)
    repeated = {each.stems for message in instructions for each in read(message).statements}
    return {each.text for each in told if each.stems in repeated}


def _visible_text(request: SummaryRequest) -> str:
    """Return the text that stays in the view beside the summary."""
    texts = [request.said]
    for message in [message for group in request.kept for message in group.messages]:
        texts.append(message.text)
        texts += [value for call in message.tool_calls() for value in argument_values(call.arguments)]
    return " ".join(" ".join(texts).split())
