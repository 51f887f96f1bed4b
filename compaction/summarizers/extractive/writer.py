"""The extractive writer: chooses the lines of each kind from the memory of a conversation, and writes them on a page.

Which kind comes first, and how much room it has, is decided by the two summarizers in `digest`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import Final

import attrs

from ...index import GroupKind
from ...messages import Message
from ..base import SummaryRequest
from .actions import Action, argument_values
from .earlier import EarlierSummary
from .facts import facts_in
from .kinds import Kind
from .memory import ConversationMemory, Memories
from .page import Item, SummaryPage
from .reading import Redact
from .sections import Section
from .sentences import LONGEST_SENTENCE, WORD, clipped, one_line
from .statement_table import Remembered
from .statements import ASSISTANT, SYSTEM
from .talk import Utterance, chosen, lines_of, talk_in

_SECTIONS: Final[Mapping[Kind, Section]] = {
    Kind.RULE: Section.CONSTRAINTS,
    Kind.DECISION: Section.DECISIONS,
    Kind.TASK: Section.NEXT,
    Kind.REQUEST: Section.GOAL,
    Kind.QUESTION: Section.GOAL,
    Kind.ANSWER: Section.DONE,
}
_EARLIER: Final = 2.95  # the most that an older statement weighs which a later one may be about: just less than plain facts
_CHANGED: Final = 2.0  # the same, if the later one says that something changed
_HELD_BONUS: Final = 2.0  # so that what the earlier summary had stays before new lines of the same importance
_FOCUS_BONUS: Final = 3.0
_CANDIDATES: Final = 8  # for each token, since most facts are visible or part of a line
_SPARE: Final = 8
_FIRST_TOKENS: Final = 60
_FIRST_CHARS: Final = 80  # of the user's first message: if so many are visible, an earlier part of the summary quotes it
_MOST_MISSES: Final = 12
_PLACE_OF_HELD: Final = -1e6


class SummaryWriter:
    """Fills a page. Holds state: the page.

    Each method adds the lines of one kind, the most important first, as long as the text has at most ``upto`` tokens. What
    stands on the page, or is visible beside it, is not added again.

    Attributes:
        page: The page.
        earlier: The earlier summary.
        talk: The sentences of a talk between people; empty for any other conversation.
    """

    def __init__(self, request: SummaryRequest, messages: Sequence[Message], redact: Redact) -> None:
        memories = request.notes.of(Memories)
        self._memory = memory = memories.of(messages, redact, after=request.originals)
        self._read = partial(memories.readings.of, redact=redact)
        self.talk = talk_in([*request.originals, *messages], self._read, redact) if memory.is_talk else []
        self.earlier = EarlierSummary(redact(request.previous or ""), memory, self.talk)
        self.page = SummaryPage(request.budget, request.counter.count_text, _visible_text(request))
        self._request = request
        self._focus = _focus_of(request.focus)
        self._told = set[str]()  # statements in the lines of a talk
        self._ranked_facts: list[str] | None = None  # once there is room for one
        self._repeated = self._repeated_instructions()
        before = len(request.originals) if request.previous is None else 0
        said = [each for each in memory.statements.current.values() if each.place > before or each.is_rule]
        self._newer = {text: each for each in said for text in each.older}
        self._misleading = _misleading(memory, self._newer)
        said.sort(key=self._order)  # twice by numbers, since thousands of pairs would start the garbage collector
        self._said = sorted(said, key=self._weight, reverse=True)
        self._found = self._ranked_found()
        self._held_calls = self.earlier.calls()
        self._calls = self._ranked_calls()

    def _repeated_instructions(self) -> set[str]:
        """Return the statements of instructions that one in the view says again, perhaps with other numbers."""
        told = [each.statement for each in self._memory.statements.current.values() if each.statement.by == SYSTEM]
        instructions = (group.messages[0] for group in self._request.kept if told and group.kind is GroupKind.SYSTEM)
        repeated = {each.stems for message in instructions for each in self._read(message).statements}
        return {each.text for each in told if each.stems in repeated}

    def _ranked_found(self) -> list[Item]:
        """Return failed calls, and rows that the user asked for: those of the earlier summary first, then the newest."""
        failed = (action for action in self._memory.actions.values() if action.failed)
        found = [(action.place, Item(Section.BLOCKED, action.line, place=action.place)) for action in failed]
        rows = self._memory.rows.items()
        found += [(place, Item(Section.CONTEXT, row, place=place, by=tool)) for row, (place, tool) in rows]
        found.sort(key=lambda each: (each[1].text not in self.earlier, -each[0]))
        return [item for _, item in found]

    def _ranked_calls(self) -> list[Action]:
        """Return the other calls: those in the focus, then those of the earlier summary, of changes, and the newest."""
        calls = [each for each in reversed(self._memory.actions.values()) if not each.failed]
        return sorted(
            calls, key=lambda each: (self._is_in_focus(each.line), each.call in self._held_calls, each.changes), reverse=True
        )

    # ---------------------------------------------------------------- kinds of lines

    def add_first(self, tokens: float) -> None:
        """Add the user's first message, or its beginning, unless the task stands in the summary already."""
        if self._memory.requests and not self._request.said:
            whole = " ".join(self._memory.requests[0].split())
            if not self.page.stands(whole[:_FIRST_CHARS]):
                first = self.page.shortened(whole, max(tokens, min(_FIRST_TOKENS, self.page.limit / 4)))
                self.page.add(Item(Section.GOAL, first, place=-1, by="First"), upto=self.page.limit)

    def add_held(self, upto: float) -> None:
        """Add the lines and facts of the earlier summary that nothing replaced."""
        if self.earlier.text:
            held = [fact for fact in self.earlier.facts() if fact not in self._misleading]
            self.page.add_facts(held, upto=upto, held=True)
            if not self.talk:  # there, `add_talk` does so, with the speakers
                self.add_statements(Kind.REMARK, upto, held=True)
            self.add_found(upto, held=True)
            self.add_calls(upto, held=True)

    def add_foreign(self, upto: float) -> None:
        """Add the lines of an earlier summary that somebody else wrote."""
        for section, lines in self.earlier.foreign_lines().items():
            for place, line in enumerate(lines):
                self.page.add(Item(section, clipped(line, LONGEST_SENTENCE), place=_PLACE_OF_HELD + place), upto=upto)

    def add_found(self, upto: float, *, held: bool = False) -> None:
        """Add failed calls that did not succeed later, and rows that the user asked for; with ``held``, those held before."""
        found = (each for each in self._found if not held or each.text in self.earlier)
        _until_full(self.page.add(each, upto=upto) for each in found)

    def add_plans(self, upto: float) -> None:
        """Add the tasks of the agent's latest plan, the open ones first."""
        for tool, (place, plan) in self._memory.plans.items():
            for text, is_open in sorted(plan, key=itemgetter(1), reverse=True):
                section = Section.NEXT if is_open else Section.DONE
                self.page.add(Item(section, text, place=place, by=tool), upto=upto)

    def add_calls(self, upto: float, *, held: bool = False) -> None:
        """Add the other calls, and then files."""
        page = self.page
        calls = (each for each in self._calls if not held or each.call in self._held_calls)
        if not _until_full(page.add(Item(Section.DONE, each.line, place=each.place), upto=upto) for each in calls):
            return
        newest_first = list(reversed(self._memory.files.items()))
        for place, (path, changed) in enumerate(sorted(newest_first, key=lambda item: -item[1])):
            label = "Changed" if changed else "Read"
            if (not held or path in self.earlier) and not page.add(
                Item(Section.FILES, path, label=label, place=place), upto=upto
            ):
                return

    def add_last_words(self, upto: float) -> None:
        """Add the assistant's last text, and the number of texts that were not read whole."""
        memory = self._memory
        if memory.last_words:
            self.page.add(Item(Section.IN_PROGRESS, one_line(memory.last_words, LONGEST_SENTENCE), by=ASSISTANT), upto=upto)
        if memory.unread:
            line = f"({memory.unread} texts were so long that only both ends were read)"
            self.page.add(Item(Section.CONTEXT, line), upto=upto)

    # ---------------------------------------------------------------- statements

    def add_statements(self, least: Kind, upto: float, *, held: bool = False) -> None:
        """Add the statements of a kind, and of those that weigh more; with ``held``, those of the earlier summary."""
        some = takewhile(lambda each: each.statement.kind >= least or self._weight(each) >= least, self._said)
        _until_full(
            self._add(each, upto) for each in some if each.statement.kind >= least and (not held or self._is_in_previous(each))
        )

    def add_findings(self, upto: float) -> None:
        """Add the sentences in which the assistant tells a value."""
        _until_full(self._add(each, upto) for each in self._said if each.statement.kind is Kind.FINDING)

    def count_left_out(self) -> None:
        """Say how many rules had no room."""
        known = self._repeated | self._told
        rules = (each for each in self._said if each.is_rule and each.statement.text not in known)
        self.page.left_out = sum(not self.page.stands(each.text) for each in rules)

    def _is_in_previous(self, said: Remembered) -> bool:
        """Whether the earlier summary has a statement as it is written now."""
        text = said.statement.text
        return text in self.earlier.statements and (not said.has_note or said.text in self.earlier)

    def _add(self, said: Remembered, upto: float) -> bool:
        statement = said.statement
        if statement.text in self._repeated or statement.text in self._told or self.page.stands(said.text):
            return True
        section = _SECTIONS.get(statement.kind, Section.CONTEXT)
        text = self._line(said)
        return self.page.add(Item(section, text, place=said.place, under=statement.lead, by=statement.by), upto=upto)

    def _line(self, said: Remembered) -> str:
        """Return how a statement is written: with its message where another one may be about the same thing."""
        text = said.statement.text
        if said.has_note:
            return said.text
        if text in self._newer:
            return f"{text} (earlier, message {said.place})"
        return f"{text} (message {said.place})" if said.older or said.statement.values else text

    def _weight(self, said: Remembered) -> float:
        """Return the weight of a statement, which is larger for those of the earlier summary."""
        text = said.statement.text
        bonus = _HELD_BONUS * (text in self.earlier.statements)
        newer = self._newer.get(text)
        kind: float = said.statement.kind
        if newer is not None:
            kind = min(kind, _CHANGED if newer.statement.changes else _EARLIER)
        return kind + bonus + self._focus_bonus(text)

    def _order(self, said: Remembered) -> tuple[float, int]:
        """Return the order of statements of equal weight: the earlier summary's oldest, then those with the rarest words."""
        if said.statement.text in self.earlier.statements:
            return 0.0, said.place
        return -self._memory.statements.rarity(said) * said.statement.worth, -said.place

    # ---------------------------------------------------------------- talk

    def add_talk(self, upto: float) -> None:
        """Add the sentences of a talk, those of the earlier summary first, then those most likely to be asked about.

        Rules among them stand under the rules, all others in the order of the talk.
        """
        page, some = self.page, self._valid_talk()
        ranked = sorted(range(len(some)), key=lambda each: (some[each].text not in self.earlier, -some[each].score))
        order = (each for each in ranked if not page.stands(some[each].text))
        ranks = chosen(some, order, max(0, min(upto, page.limit) - page.used), page.tokens)
        for place in [*ranks]:
            said = self._memory.statements.current.get(some[place].statement)
            if said is not None and said.is_rule and self._add(said, upto):
                del ranks[place]
        self._told = {some[place].statement for place in ranks}
        for line in lines_of(some, ranks):
            page.add(Item(Section.CONTEXT, line.text, place=line.place, under=line.lead, by=line.by), upto=upto)

    def _valid_talk(self) -> list[Utterance]:
        """Return the sentences that hold, each once, with what the memory adds to them."""
        found: dict[str, Utterance] = {}
        for each in self.talk:
            said = self._memory.statements.current.get(each.statement)
            if said is not None and said.has_note:
                text = said.text.removeprefix(f"{each.by}: ")
                found.setdefault(text, attrs.evolve(each, text=text))
            elif each.statement not in self._memory.statements.replaced:
                found.setdefault(each.text, each)
        return [*found.values()]

    # ---------------------------------------------------------------- facts

    def add_earlier_facts(self) -> None:
        """Add what the earlier summary names exactly, in half of the room that is left."""
        page = self.page
        page.add_facts(facts_in(self.earlier.text), upto=page.used + 0.5 * (page.limit - page.used), held=True)

    def add_facts(self, upto: float) -> None:
        """Add facts, those most likely to be needed first; O(known facts) if there is room for one."""
        room = int(max(0, min(upto, self.page.limit) - self.page.used))
        if room < 2:
            return
        if self._ranked_facts is None:
            kept = (group for group in self._request.kept if group.kind not in (GroupKind.SYSTEM, GroupKind.SUMMARY))
            facts = self._memory.facts.followed_by(self._read(each).facts for group in kept for each in group.messages)
            bonus = self._focus_bonus if self._focus else None
            self._ranked_facts = facts.best(_CANDIDATES * self.page.limit + _SPARE, without=self._misleading, bonus=bonus)
        self.page.add_facts(self._ranked_facts[: _CANDIDATES * room + _SPARE], upto=upto)

    def _focus_bonus(self, text: str) -> float:
        return _FOCUS_BONUS * self._is_in_focus(text)

    def _is_in_focus(self, text: str) -> bool:
        return any(word in text.casefold() for word in self._focus)


def _until_full(added: Iterable[bool]) -> bool:
    """Add lines until a dozen in a row did not fit; return whether all were tried."""
    misses = 0
    for is_added in added:
        misses = 0 if is_added else misses + 1
        if misses > _MOST_MISSES:
            return False
    return True


def _misleading(memory: ConversationMemory, newer: Mapping[str, Remembered]) -> set[str]:
    """Return the facts that would mislead without their sentence: values that were replaced, or perhaps by one of ``newer``."""
    current = memory.statements.current
    older_values = {value for text in newer if text in current for _, value in current[text].statement.values}
    newer_values = {value for each in newer.values() for _, value in each.statement.values}
    unused = filter(memory.facts.is_unused, _older_values(memory))
    return {*memory.statements.replaced, *(older_values - newer_values), *unused}


def _older_values(memory: ConversationMemory) -> set[str]:
    """Return the values of statements that a later one may be about: both share a word, and have values of one shape."""
    named: set[tuple[str, str]] = set()
    older, newer = set[str](), set[str]()
    for said in reversed(memory.statements.current.values()):
        statement = said.statement
        for shape, value in statement.values:
            (newer if named.isdisjoint((shape, stem) for stem in statement.stems) else older).add(value)
        named.update((shape, stem) for shape, _ in statement.values for stem in statement.stems)
    return older - newer


def _focus_of(focus: str | None) -> tuple[str, ...]:
    """Return the words of the topic that has most room."""
    return tuple(dict.fromkeys([word for word in WORD.findall((focus or "").casefold()) if len(word) > 1]))


def _visible_text(request: SummaryRequest) -> str:
    """Return the text that stays in the view beside the summary."""
    texts = [request.said]
    for message in [message for group in request.kept for message in group.messages]:
        texts.append(message.text)
        texts += [value for call in message.tool_calls() for value in argument_values(call.arguments)]
    return " ".join(" ".join(texts).split())
