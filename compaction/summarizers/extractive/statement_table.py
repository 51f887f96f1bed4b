"""The statements that hold in a conversation: which are about one thing, and which replaces the value of which."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Final

import attrs

from .kinds import Kind, Statement
from .statements import SYSTEM
from .subjects import begins_with_pronoun, initials_of, is_name, is_quantity

MOST: Final = 1_500  # statements, actions, files or rows that a memory holds
# What two statements must have in common so that one may be about the thing of the other. The rows "changed ..." and "value" of
# `python -m benchmarks.retention` show the effect.
_LEAST_SHARED: Final = 0.2  # one word that five statements have, or several more frequent ones
_MOST_HOLDERS: Final = 40  # statements that have a word; more frequent ones say nothing
_LEAST_COVERED: Final = 0.04  # of the words of the older statement, by the same weights
_NEAR: Final = 12  # messages after which a correction without a subject refers to no earlier value
_MOST_OLDER: Final = 4  # statements that one may replace

_AROUND_HEADING: Final = "#*_=:：[]【】<> "
_LEAST_CHARS: Final = 12  # added to the length of a statement, so that a single rare word is not the best of all


@attrs.frozen
class Remembered:
    """A statement of the conversation."""

    statement: Statement
    place: int  # the number of its message
    first: int  # the number of the first message that said it
    older: tuple[str, ...] = ()  # the words of older statements that may be about the same thing, the likeliest first
    was: str = ""  # the value that it replaced
    now: str = ""  # the value that replaced its own, if it stays nevertheless
    since: int = 0  # the number of the message with that

    @property
    def note(self) -> str:
        """A later value, or else the one before."""
        if self.now:
            return f"(now {self.now}, since message {self.since})"
        return f"(was {self.was} until message {self.first})" if self.was else ""

    @property
    def text(self) -> str:
        """Its words, with the note."""
        return f"{self.statement.text} {self.note}".rstrip()

    @property
    def is_rule(self) -> bool:
        """Whether it lays something down."""
        return self.statement.kind >= Kind.DUTY


class StatementTable:
    """The statements of a conversation. Holds state: it grows with each statement, up to a bound.

    | a later statement with another value | the older one | the later one |
    |---|---|---|
    | has the same words, or says that something changed and has these words, too | goes | says the older value |
    | the same, and the older one is a rule or has several values | says the later value | stays as it is |
    | shares rare words | stays | has it in ``older`` |
    | corrects something, and names nothing | stays if it is near | has it in ``older`` |
    | shares no rare word | stays | has nothing in ``older`` |

    A rule says a later value only if that is a quantity, and the later statement says that something changed.

    >>> from compaction.summarizers.extractive.passages import passages
    >>> from compaction.summarizers.extractive.statements import user_statements
    >>> def said(*texts: str) -> list[tuple[str, tuple[str, ...]]]:
    ...     table = StatementTable()
    ...     for table.place, text in enumerate(texts, 1):
    ...         [statement] = user_statements(passages(text))
    ...         table.say(statement)
    ...     return [(each.text, each.older) for each in table.current.values()]
    >>> said("The port is 8080.", "The port is now 9090.")
    [('The port is now 9090. (was 8080 until message 2)', ())]
    >>> [text for text, _ in said("Never pay above 100.", "From now on never pay above 200.")]
    ['Never pay above 100. (now 200, since message 2)', 'From now on never pay above 200.']
    >>> said("Never touch web01.", "Never touch web02.")
    [('Never touch web01.', ()), ('Never touch web02.', ())]
    >>> said("The port of the proxy is 8080.", "The proxy listens on 9090.")[1:]
    [('The proxy listens on 9090.', ('The port of the proxy is 8080.',))]
    >>> said("The port is 8080.", "Sorry, 9090.")[1:]
    [('Sorry, 9090.', ('The port is 8080.',))]
    >>> said("The port is 8080.", "The tests take 31 minutes.")[1:]
    [('The tests take 31 minutes.', ())]
    """

    def __init__(self) -> None:
        self.current: dict[str, Remembered] = {}  # the statements that hold, by their words, oldest first
        self.replaced: dict[str, None] = {}  # the words of statements that a later one about the same thing replaced
        self.replaced_values: dict[str, None] = {}  # their values
        self.place = 0  # the number of the latest message
        self._with_stem: dict[str, dict[str, None]] = {}  # the statements that have a stem
        self._instructed: dict[frozenset[str], str] = {}  # the latest statement of a reminder, by its words without numbers

    def copy(self) -> StatementTable:
        """Return a table of the same statements, which grows by itself. O(what it holds) in C."""
        table = StatementTable()
        for name, value in vars(self).items():
            setattr(table, name, value.copy() if isinstance(value, dict | list) else value)
        table._with_stem = {stem: holders.copy() for stem, holders in self._with_stem.items()}
        return table

    @property
    def has_contested(self) -> bool:
        """Whether two statements may be about one thing, but have different values."""
        return any(text in self.current for each in self.current.values() for text in each.older)

    def older_values(self) -> set[str]:
        """Return the values of statements that a later one may be about: both share a word, and have values of one shape."""
        named = set[tuple[str, str]]()  # the shapes of values, each with a word that later statements have
        older, newer = set[str](), set[str]()
        for said in reversed(self.current.values()):
            statement = said.statement
            for shape, value in statement.values:
                (newer if named.isdisjoint((shape, stem) for stem in statement.stems) else older).add(value)
            named.update((shape, stem) for shape, _ in statement.values for stem in statement.stems)
        return older - newer

    def rarity(self, said: Remembered) -> float:
        """Return how much of a statement is words that few others have, for its length; O(its words)."""
        stems = sorted(said.statement.stems)
        weight = sum(math.log(1 + len(self.current) / len(self._with_stem[stem])) for stem in stems)
        return round(weight / (_LEAST_CHARS + len(said.text)), 6)

    def say(self, statement: Statement) -> None:
        """Add a statement; it may replace the value of an older one, or say the same again."""
        statement = self._told_apart(statement)
        known = self.current.get(statement.text)
        if known is not None and not known.now:
            del self.current[statement.text]
            self.current[statement.text] = attrs.evolve(known, place=self.place)
            return
        if known is not None:  # its value holds again
            self._drop(statement.text)
            statement = attrs.evolve(statement, changes=True)
        if statement.by == SYSTEM:
            before = self._instructed.get(statement.stems, "")
            if before in self.current:
                self._drop(before)
            self._instructed[statement.stems] = statement.text
        for stem in statement.stems:
            self._with_stem.setdefault(stem, {})[statement.text] = None
        rivals, was = self._rivals(statement), ""
        if rivals and _surely_replaces(statement, rivals[0].statement):
            old, *rivals = rivals
            was = self._replace(old, rivals, statement)
        older = tuple([each.statement.text for each in rivals[:_MOST_OLDER]])
        self.current[statement.text] = Remembered(statement, self.place, self.place, older, was)

    def _told_apart(self, statement: Statement) -> Statement:
        """Return a rule behind its heading, if the same words are known below another one: "Production: never restart it"."""
        known, heading = self.current.get(statement.text), statement.lead
        if known is None or not known.is_rule or statement.kind < Kind.DUTY:
            return statement
        if "" in (heading, known.statement.lead) or heading == known.statement.lead:
            return statement
        return attrs.evolve(statement, text=f"{heading.strip(_AROUND_HEADING)}: {statement.text}", lead="")

    def _rivals(self, statement: Statement) -> list[Remembered]:
        """Return the statements with another value of the same shape that may be about the same thing, the likeliest first.

        A request has none unless it says that something changed: "Draw page 13." leaves "Draw page 12." as it is. A correction
        that shares no word, such as "Make that 15:20.", may refer to the latest value of that shape; a rule does not.
        """
        if not statement.values or statement.kind is Kind.SUPPOSED or (statement.is_request and not statement.changes):
            return []
        found = self._sharing_words(statement)
        if found or not statement.changes or statement.kind in (Kind.RULE, Kind.DUTY):
            return found
        near = takewhile(lambda each: self.place - each.place <= _NEAR, reversed(self.current.values()))
        return [each for each in near if _other_values(each.statement, statement)][:1]

    def _sharing_words(self, statement: Statement) -> list[Remembered]:
        """Return the statements with another value that share rare words with this one.

        A word weighs 1 / the number of statements that have it. If just two have "proxy" and they share nothing else, "The
        proxy listens on 9090." and "The port of the proxy is 8080." share 0.5: 0.25 for each of the older one's two words.
        """
        weights = dict[str, float]()
        for stem in sorted(statement.stems):  # sums of floats depend on their order
            holders = self._with_stem[stem]
            for text in holders if len(holders) <= _MOST_HOLDERS else ():
                weights[text] = weights.get(text, 0.0) + 1 / len(holders)
        weights.pop(statement.text, None)
        found = list[tuple[float, Remembered]]()
        for text, weight in weights.items():
            each = self.current[text]
            covered = weight / len(each.statement.stems)
            if weight >= _LEAST_SHARED and covered >= _LEAST_COVERED and _other_values(each.statement, statement):
                found.append((covered, each))
        return [each for _, each in sorted(found, key=lambda found: (-found[0], -found[1].place))]

    def _replace(self, old: Remembered, rivals: list[Remembered], statement: Statement) -> str:
        """Drop a statement, and return its value; if it is a rule or has several values, it stays, and says the new one.

        So do rivals that are rules and said its value: all rules about one thing say its last value.
        """
        [(before, now)] = _other_values(old.statement, statement)
        stays = old.is_rule or len(old.statement.values) > 1
        for each in [*(each for each in rivals if each.now == before), *([old] if stays else [])]:
            self.current[each.statement.text] = attrs.evolve(each, now=now, since=self.place)
        if stays:
            return ""
        self._drop(old.statement.text)
        self.replaced[old.statement.text] = self.replaced_values[before] = None
        self.replaced_values.pop(now, None)
        return before

    def _drop(self, text: str) -> None:
        said = self.current.pop(text).statement
        for stem in said.stems:
            del self._with_stem[stem][text]
            if not self._with_stem[stem]:
                del self._with_stem[stem]
        if self._instructed.get(said.stems) == text:
            del self._instructed[said.stems]

    def forget_message(self, place: int) -> None:
        """Forget what a message said and no earlier one did."""
        for text, said in [each for each in self.current.items() if each[1].place == place]:
            if said.first < place:
                self.current[text] = attrs.evolve(said, place=said.first)
            else:
                self._drop(text)

    def prune(self) -> None:
        """Forget the least important half of the statements, if they are past the bound."""
        if len(self.current) > MOST:
            ranked = sorted(self.current, key=lambda text: (-self.current[text].statement.kind, -self.current[text].place))
            for text in ranked[MOST // 2 :]:
                self._drop(text)


def _surely_replaces(new: Statement, old: Statement) -> bool:
    """Return whether a statement is surely about the thing of an older one, and has another value for it.

    Both have the same words without the value; a newer one that says that something changed may have more, or another name, as
    "From now on we deploy to web02." If the older one is a rule, the newer one must say so, and the value is a quantity.
    """
    values = _other_values(old, new)
    if len(values) != 1:
        return False
    has_quantity = is_quantity(values[0][0])
    says_so = (has_quantity and new.changes) if old.kind >= Kind.DUTY else (has_quantity or new.changes)
    return (
        says_so
        and bool(old.stems)
        and old.text[0] not in "(["  # "(3 lines more)": a remark of a program
        and not begins_with_pronoun(old.text)  # "It costs 10 euros."
        and not is_name(new.text, values[0][1])  # "Invoice 4411 is paid."
        and (old.stems == new.stems or (new.changes and old.stems < new.stems))
        and initials_of(old.text) == initials_of(new.text)  # "Room A", "Room B"
    )


def _other_values(old: Statement, new: Statement) -> list[tuple[str, str]]:
    """Return the values of an older statement, each with another one of the same shape in a newer statement.

    "Never touch web01." and "Never touch web02." are two rules about two things, and have no values. A sure rule has other
    values only in a statement that says that something changed.
    """
    if old.kind is Kind.SUPPOSED or (old.kind is Kind.RULE and not new.changes):
        return []
    shown, is_pair = {value for _, value in new.values}, old.kind >= Kind.DUTY and old.stems == new.stems
    values = [(shape, one) for shape, one in old.values if one not in shown and (not is_pair or is_quantity(one))]
    return [(one, other) for shape, one in values for like, other in new.values if like == shape]
