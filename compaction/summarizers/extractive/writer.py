"""The extractive writer: chooses the lines of each kind from the memory of a conversation, and writes them on a page.

Which kind comes first, and how much room it has, is decided by the two summarizers in `digest`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

import attrs

from ...index import GroupKind
from ...messages import Message
from ..base import SummaryRequest
from .actions import Action, argument_values, is_open
from .earlier import EarlierSummary
from .kinds import Kind
from .memory import Memories
from .page import CHANGED, FIRST, READ, UNREAD, Item, SummaryPage
from .reading import Redact
from .sections import Section
from .sentences import LONGEST_SENTENCE, WORD, clipped, one_line
from .statement_table import Remembered
from .statements import ASSISTANT, SYSTEM
from .talk import Utterance, as_one, chosen, lines_of, talk_in, whole_messages

_SECTIONS: Final[Mapping[Kind, Section]] = {
    Kind.RULE: Section.CONSTRAINTS,
    Kind.DECISION: Section.DECISIONS,
    Kind.TASK: Section.NEXT,
    Kind.REQUEST: Section.GOAL,
    Kind.QUESTION: Section.GOAL,
    Kind.ANSWER: Section.DONE,
}
_EARLIER: Final = 2.95  # the most that a statement weighs if a later one may replace it: just below `Kind.PLAIN`
_CHANGED: Final = 2.0  # the same, if the later one says that something changed
_FOCUS_BONUS: Final = 3.0
_FIRST_TOKENS: Final = 60
_FIRST_CHARS: Final = 80  # of the user's first message: if so many are visible, an earlier part of the summary quotes it
_MOST_MISSES: Final = 12
_PLACE_OF_FOREIGN: Final = -1e6


class SummaryWriter:
    """Fills a page with the lines of each kind, the most important first. Holds state: the page.

    In place of a line that stands on the page or beside it already, a method yields ``None``. Statements that `add_talk` wrote
    are skipped from then on. Call `count_left_out` last.

    Attributes:
        page: The page.
        earlier: The earlier summary.
        talk: The sentences of a talk, between people or with an assistant; empty for any other conversation.
    """

    def __init__(self, request: SummaryRequest, messages: Sequence[Message], redact: Redact) -> None:
        memories = request.notes.of(Memories)
        self._request = request
        self._memory = memories.of(messages, redact, after=request.originals)
        self._read, self._facts_of = partial(memories.read, redact=redact), partial(memories.facts_of, redact=redact)
        self._end = self._memory.messages + 1 - request.shortened  # of the messages that the summary replaces
        self._focus = {word for word in WORD.findall((request.focus or "").casefold()) if len(word) > 1}
        self._skipped = self._said_again()  # the words of statements that get no line of their own
        self.talk = talk_in([*request.originals, *messages], self._read, redact) if self._memory.is_talk else []
        self.is_between_people = self._memory.is_between_people
        self.earlier = EarlierSummary(redact(request.previous or ""), self._memory, self.talk)
        self.page = SummaryPage(request.budget, request.counter.count_text, _visible_text(request))

    # ---------------------------------------------------------------- candidates, in order

    def _said_again(self) -> set[str]:
        """Return the statements of instructions that one in the view says again, perhaps with other numbers."""
        told = [each.statement for each in self._memory.statements.current.values() if each.statement.by == SYSTEM]
        instructions = (group.messages[0] for group in self._request.kept if told and group.kind is GroupKind.SYSTEM)
        repeated = {each.stems for message in instructions for each in self._read(message).statements}
        return {each.text for each in told if each.stems in repeated}

    @cached_property
    def _valid(self) -> list[Remembered]:
        """The statements that may be written. Without an earlier summary, only rules of the original messages are."""
        before = len(self._request.originals) if self._request.previous is None else 0
        return [each for each in self._memory.statements.current.values() if each.place > before or each.is_rule]

    @cached_property
    def _newer(self) -> dict[str, Remembered]:
        """The statement that may be about the same thing as an older one, by the words of the older one."""
        return {text: each for each in self._valid for text in each.older}

    @cached_property
    def _places(self) -> dict[str, float]:
        """The number of the message of each statement, and the share of the message, or of all, that was said before it."""
        current = self._memory.statements.current
        found = {text: said.place + at / len(current) for at, (text, said) in enumerate(current.items())}
        for each in reversed(self.talk):
            if (said := current.get(each.statement)) and said.place == int(each.place):
                found[each.statement] = each.place
        return found

    @cached_property
    def _whole(self) -> dict[str, Utterance]:
        """The whole message of a statement of a talk with an assistant, if it is short and all of it holds."""
        current, found = self._memory.statements.current, dict[str, Utterance]()
        for message in whole_messages(() if self.is_between_people else self.talk):
            held = [current.get(each.statement) for each in message]
            if all(said and not said.note and said.place == int(message[0].place) for said in held):
                found.update(dict.fromkeys([each.statement for each in message], as_one(message)))
        return found

    @cached_property
    def _ranked(self) -> list[Remembered]:
        """The statements that may be written, the heaviest first.

        Of equal weight, those of the earlier summary come first, in the order in which they were said. Of new ones, those with
        the rarest words, and most worth keeping, come first; or the newest, if that is equal.
        """

        def key(said: Remembered) -> tuple[float, bool, float, int]:
            if said.statement.text in self.earlier.statements:
                return -self._weight(said), False, 0.0, said.place
            return -self._weight(said), True, -self._memory.statements.rarity(said) * said.statement.worth, -said.place

        return sorted(self._valid, key=key)

    @cached_property
    def _misleading(self) -> set[str]:
        """The facts that would mislead without their sentence: statements and values that were replaced, or perhaps are.

        Values are perhaps replaced if a newer statement may be about the same thing. If it only shares a word and the shape of
        a value, just the values count that neither the assistant nor a result named.
        """
        statements = self._memory.statements
        older = [statements.current[text].statement for text in self._newer if text in statements.current]
        values = {value for each in older for _, value in each.values}
        newer = {value for each in self._newer.values() for _, value in each.statement.values}
        unused = filter(self._memory.facts.is_unused, statements.older_values())
        return {*statements.replaced, *statements.replaced_values, *(values - newer), *unused}

    @cached_property
    def _ranked_facts(self) -> list[str]:
        """The facts of the conversation and of what stays in the view, those most likely to be needed first."""
        kept = (group for group in self._request.kept if group.kind not in (GroupKind.SYSTEM, GroupKind.SUMMARY))
        facts = self._memory.facts.copy()
        for each in self._facts_of([message for group in kept for message in group.messages]):
            facts.add(each)
        return facts.best(without=self._misleading, bonus=self._focus_bonus if self._focus else None)

    # ---------------------------------------------------------------- kinds of lines

    def add_first(self, tokens: float) -> None:
        """Add the user's first message, or its beginning, unless the task stands in the summary already.

        Beside a summary of messages that are not available, the first message known is not that of the conversation.
        """
        summarized = any(group.kind is GroupKind.SUMMARY for group in self._request.kept) and not self._request.originals
        if self._memory.requests and not self._request.said and not summarized:
            whole = " ".join(self._memory.requests[0].split())
            if not self.page.stands(whole[:_FIRST_CHARS]):
                first = self.page.shortened(whole, max(tokens, min(_FIRST_TOKENS, self.page.limit / 4)))
                self.page.add(Item(Section.GOAL, first, place=-1, by=FIRST), upto=self.page.limit)

    def more(self, share: float) -> float:
        """Return the tokens that the page has with so much of it more than now."""
        return self.page.used + share * self.page.limit

    def fill(self, items: Iterable[Item | None], upto: float) -> None:
        """Add lines, as long as the page has at most ``upto`` tokens, until a dozen in a row did not fit."""
        misses = 0
        for item in items:
            misses = 0 if item is None or self.page.add(item, upto=upto) else misses + 1
            if misses > _MOST_MISSES:
                return

    def add_held(self, upto: float) -> None:
        """Add the lines and facts of the earlier summary that nothing replaced."""
        if not self.earlier.text:
            return
        held = [fact for fact in self.earlier.facts() if fact not in self._misleading]
        self.page.add_facts(held, self.earlier.sources(), upto=upto, held=True)
        if not self.talk:  # there, `add_talk` does so, with the speakers
            said = [each for each in self._ranked if each.statement.text in self.earlier.statements]
            self.fill(map(self._line, [each for each in said if not each.note or each.text in self.earlier]), upto)
        self.fill([each for each in (*self.found, *self.changes, *self.calls) if each.text in self.earlier], upto)

    @cached_property
    def found(self) -> list[Item]:
        """Failed calls that did not succeed later, and rows that the user asked for: those that are held, then the newest."""
        failed = (each for each in self._actions if each.failed)
        found = [(each.place, Item(Section.BLOCKED, each.line, place=each.place)) for each in failed]
        rows = [(row, place, tool) for row, (place, tool) in self._memory.rows.items() if place < self._end]
        found += [(place, Item(Section.CONTEXT, row, place=place, by=tool)) for row, place, tool in rows]
        found.sort(key=lambda each: (each[1].text not in self.earlier, -each[0]))
        return [item for _, item in found]

    @cached_property
    def _actions(self) -> list[Action]:
        """The last action of each call that does not stand in the view behind the summary."""
        return [each for each in self._memory.actions.values() if each.place < self._end]

    @cached_property
    def changes(self) -> list[Item]:
        """The files that calls changed, and the calls that changed something: those that matter most first."""
        return [*self._files(CHANGED, changed=True), *self._calls(changes=True)]

    @cached_property
    def calls(self) -> list[Item]:
        """The other calls and files: those that matter most first."""
        return [*self._calls(changes=False), *self._files(READ, changed=False)]

    def _calls(self, *, changes: bool) -> list[Item]:
        """Return the calls that did not fail: those in the focus, those that are held, and the newest first."""
        calls = [each for each in reversed(self._actions) if not each.failed and each.changes is changes]
        calls.sort(key=lambda each: (self._focus_bonus(each.line), each.line in self.earlier), reverse=True)
        return [Item(Section.DONE, each.line, place=each.place) for each in calls]

    def _files(self, label: str, *, changed: bool) -> list[Item]:
        files = [path for path, is_changed in reversed(self._memory.files.items()) if is_changed is changed]
        return [Item(Section.FILES, path, label, place) for place, path in enumerate(files)]

    def foreign_lines(self) -> Iterator[Item]:
        """Yield the lines of an earlier summary that somebody else wrote."""
        for section, lines in self.earlier.foreign_lines().items():
            for place, line in enumerate(lines):
                yield Item(section, clipped(line, LONGEST_SENTENCE), place=_PLACE_OF_FOREIGN + place)

    def plans(self) -> Iterator[Item]:
        """Yield the tasks of the agent's latest plan, the open ones first."""
        plans = ((tool, call) for tool, call in self._memory.plans.items() if call.place < self._end)
        for tool, call in plans:
            for task in sorted(call.plan or (), key=lambda task: not is_open(task)):
                yield Item(Section.NEXT if is_open(task) else Section.DONE, task, place=call.place, by=tool)

    def last_words(self) -> Iterator[Item]:
        """Yield the assistant's last text, and the number of texts that were not read whole."""
        if said := self._memory.last_words:
            yield Item(Section.IN_PROGRESS, one_line(said, LONGEST_SENTENCE), by=ASSISTANT)
        if unread := self._memory.unread:
            yield Item(Section.CONTEXT, f"({unread} {UNREAD})")

    # ---------------------------------------------------------------- statements

    def statements(self, least: Kind) -> Iterator[Item | None]:
        """Yield the lines of statements of a kind, and of heavier ones, the heaviest first.

        A rule that a later statement may replace is only among those of a light kind.
        """
        return (self._line(each) for each in self._ranked if min(each.statement.kind, self._weight(each)) >= least)

    def findings(self) -> Iterator[Item | None]:
        """Yield the sentences in which the assistant tells a value."""
        return (self._line(each) for each in self._ranked if each.statement.kind is Kind.FINDING)

    def count_left_out(self) -> None:
        """Say how many rules had no room."""
        rules = (each for each in self._valid if each.is_rule and each.statement.text not in self._skipped)
        self.page.left_out = sum(not self.page.stands(each.text) for each in rules)

    def _line(self, said: Remembered) -> Item | None:
        """Return the line of a statement, with its message if another one may be about the same thing."""
        statement, text = said.statement, said.text
        if statement.text in self._skipped or self.page.stands(text):
            return None
        if whole := self._whole.get(statement.text):
            text = whole.text
        if not said.note and statement.text in self._newer:
            text += f" (earlier, message {said.place})"
        elif not said.note and (said.older or statement.values):
            text += f" (message {said.place})"
        section = _SECTIONS.get(statement.kind, Section.CONTEXT)
        by = statement.by or (self._memory.speakers.get(statement.text, "") if self._memory.is_named else "")
        return Item(section, text, place=self._places[statement.text], under=statement.lead, by=by)

    def _weight(self, said: Remembered) -> float:
        """Return the weight of a statement: that of its kind, or less if a newer one may be about the same thing."""
        weight: float = said.statement.kind
        if newer := self._newer.get(said.statement.text):
            weight = min(weight, _CHANGED if newer.statement.changes else _EARLIER)
        return weight + self._focus_bonus(said.statement.text)

    # ---------------------------------------------------------------- talk

    def add_talk(self, upto: float) -> None:
        """Add the sentences of a talk, those of the earlier summary first, then those most likely to be asked about.

        Rules among them stand under the rules, all others in the order of the talk.
        """
        page, talk = self.page, self._valid_talk()
        ranked = sorted(range(len(talk)), key=lambda place: (talk[place].text not in self.earlier, -talk[place].score))
        order = (place for place in ranked if not page.stands(talk[place].text))
        across = self.is_between_people
        ranks = chosen(talk, order, max(0, min(upto, page.limit) - page.used), page.tokens, across=across)
        for place in [*ranks]:
            said = self._memory.statements.current.get(talk[place].statement)
            if said is not None and said.is_rule:
                rule = self._line(said)
                if rule is None or page.add(rule, upto=upto):
                    del ranks[place]
        self._skipped |= {talk[place].statement for place in ranks}
        for line in lines_of(talk, ranks, across=across):
            page.add(Item(Section.CONTEXT, line.text, place=line.place, under=line.lead, by=line.by), upto=upto)

    def _valid_talk(self) -> list[Utterance]:
        """Return the sentences that hold, each once, with what the memory adds to them."""
        found: dict[str, Utterance] = {}
        for each in self.talk:
            said = self._memory.statements.current.get(each.statement)
            if said is not None and said.statement.values and not self.is_between_people:
                continue  # it is written as a statement, with the number of its message
            if whole := self._whole.get(each.statement):
                found.setdefault(whole.text, attrs.evolve(whole, statement=each.statement))
            elif said is not None and said.note:
                text = said.text.removeprefix(f"{each.by}: ")
                found.setdefault(text, attrs.evolve(each, text=text))
            elif each.statement not in self._memory.statements.replaced:
                found.setdefault(each.text, each)
        return [*found.values()]

    # ---------------------------------------------------------------- facts

    def add_facts(self, upto: float) -> None:
        """Add facts, those most likely to be needed first; O(known facts) if there is room for one."""
        if min(upto, self.page.limit) - self.page.used >= 2:
            self.page.add_facts(self._ranked_facts, self._memory.sources, upto=upto)

    def _focus_bonus(self, text: str) -> float:
        return _FOCUS_BONUS * any(word in text.casefold() for word in self._focus)


def _visible_text(request: SummaryRequest) -> str:
    """Return the text that stays in the view beside the summary."""
    texts = [request.said]
    for message in [message for group in request.kept for message in group.messages]:
        texts.append(message.text)
        texts += [value for call in message.tool_calls() for value in argument_values(call.arguments)]
    return " ".join(" ".join(texts).split())
