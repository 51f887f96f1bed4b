"""The question that a short answer needs: "yes, the second one" says nothing without it, or the list before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Final

import attrs

from ...messages import Message, TextPart
from .kinds import Kind, asks, judge
from .lines import BULLET
from .own_lines import LEFT_OUT
from .sentences import ASKING, clipped, sentences_in
from .subjects import points_back, stems_of

QUESTION_CHARS: Final = 600  # of a question, the most that are quoted behind an answer
_SHORT_ANSWER: Final = 100  # characters of an answer that may say nothing without its question
_LONG_ANSWER: Final = 400  # of one that names several items, as in "1. yes 2. the blue one"
_LEAST_ITEM: Final = 24  # of a shortened item of a question
_BARE_QUESTION: Final = 24  # characters of a question that names nothing, as "Shall I?"
_SHORT_MESSAGE: Final = 240  # characters of an assistant's message that is quoted whole: its parts need each other
_REPLY: Final = 60  # characters of an answer that needs even a statement, as "make it 750" or "I wouldn't"
_CLEAR: Final = 3  # stems of a rule that needs no statement: "Never pay in cash.", but not "Never again."
_LEAST_NAMED: Final = 2  # items of a list that an answer to an earlier message names
_BETWEEN: Final = 12  # characters of a line between two items, as "or"
_HEAD: Final = 120  # characters of a line above a list that belongs to it, and of what is read of a long item
_READ: Final = 4 * QUESTION_CHARS  # characters of the end of a message that are read, beside its lists
_MOST_ITEMS: Final = 40  # of these lists
_CLAUSE: Final = re.compile(rf"[.,;:!…]\s|[。、，！]|(?<=[{''.join(ASKING)}])")
_OPTION: Final = re.compile(r"(?:^|[\s(])([A-Fa-f]|[1-9])[.):]\s+\S")  # as in "A) delete it; B) keep it"
_LABEL: Final = re.compile(r"(?<![^\W_])(?:[a-z](?![^\W_])|\d{1,2}(?!\d|[.,:]\d))")  # of an item, in an answer: "C", "1はい"


def is_short_answer(message: Message) -> bool:
    """Return whether the user says so little in a message that it may be an answer which needs its question."""
    said = message.said
    if len(said) > _SHORT_ANSWER:
        return len(said) <= _LONG_ANSWER and len(_OPTION.findall(said)) > 1
    return any(clause.strip() and not asks(clause) for clause in _CLAUSE.split(said))


def lists_named(message: Message, answer: Message) -> bool:
    """Return whether an assistant's message has a list, of which a short answer names two items or more, as "1 yes, 2 no"."""
    named = {found[0] for clause in _CLAUSE.split(answer.said.lower()) if (found := _LABEL.match(clause.strip()))}
    if message.role != "assistant" or len(named) < _LEAST_NAMED or not is_short_answer(answer):
        return False
    return len(named & {*map(_label_of, _read(_text_of(message)).split("\n"))}) >= _LEAST_NAMED


def asked_in(message: Message, answer: Message) -> str:
    r"""Return what an assistant's message asks that a short answer of the user needs, one item a line; empty if nothing.

    >>> from compaction import MessageIndex
    >>> long = "I read all the plans. " * 12 + "\nTwo ways:\nA. Wait.\nB. Go.\nWhich one?"
    >>> said = [{"role": "assistant", "content": long}, {"role": "user", "content": "B"}]
    >>> print(asked_in(*[group.messages[0] for group in MessageIndex(said, counter="chars/4").included_groups]))
    [...]
    Two ways:
    A. Wait.
    B. Go.
    Which one?
    """
    question = "\n".join(_shortened(question_of(message, answer).text, QUESTION_CHARS))
    return question and f"{LEFT_OUT}\n{question}"


def in_chars(question: str, chars: int) -> str:
    """Return a question in one line of at most so many characters."""
    return clipped(" ".join(_shortened(question, chars)), chars)


def _shortened(question: str, chars: int) -> list[str]:
    """Return the items of a question in about so many characters; the longest are shortened."""
    items, width = question.split("\n"), chars
    while width > _LEAST_ITEM and sum(min(len(item), width) for item in items) > chars:
        width = max(_LEAST_ITEM, 3 * width // 4)
    return [clipped(item, width) for item in items]


@attrs.frozen
class Question:
    """The part of a message that the answer to it needs, one item a line; empty if it needs nothing.

    Args:
        text: The items.
        is_sure: Whether the message asks, has a list, or shares a word with the answer. Otherwise it is just what was said
            before a very short answer.
    """

    text: str = ""
    is_sure: bool = True


def question_of(before: Message | None, answer: Message) -> Question:
    """Return what an answer needs of the assistant's message before it.

    1. The last question, and the last item that the answer names. Without either, the last item, or the last sentence, that
       shares a word with it; else the last item; else the last sentence, if the answer is very short, as "make it 750" is.
    2. The questions in a row with these, and the list beside them, with the line above it; a table has its head.
    3. Without a list, the sentence before, if it is what the question refers to.

    Of a short message, everything is needed.

    The places that the steps choose in two longer messages, the first of which is answered with "B"::

        place  text        1  2                        place  text              1  3
        0      Two ways:      x                        0      I read the plan.
        1      A. Wait.       x                        1      It drops a table.    x
        2      B. Go.      x  x                        2      Shall I?          x  x
        3      Which one?  x  x
    """
    if before is None or before.role != "assistant" or not is_short_answer(answer):
        return Question()
    whole = _text_of(before)
    items = [*_items_of(_read(whole).replace('"', "'"))]  # what it quotes must not end the quotation
    meant = [*_meant(items, answer.said)]
    is_sure = bool(meant)
    if not meant and items and len(answer.said) <= _REPLY and not asks(answer.said):
        # 1, the last case: a reply such as "make it 750" or "undo that"
        said = judge(answer.said)
        is_clear = said.kind is Kind.REMARK or (said.kind >= Kind.DUTY and len(said.stems) >= _CLEAR)
        meant = [] if is_clear and not points_back(answer.said) else [len(items) - 1]
    chosen = {near for place in meant for near in _with_list(items, place)}
    if chosen and len(whole) <= _SHORT_MESSAGE:
        chosen = {*range(len(items))}
    # 3: without a list, with the sentence before, if they refer to it or name nothing
    first = min(chosen, default=0)
    if first and not any(items[at].is_item for at in chosen):
        bare = items[first].text
        if len(bare) < _BARE_QUESTION or points_back(bare):
            chosen.add(first - 1)
    return Question("\n".join([" ".join(items[at].text.split()) for at in sorted(chosen)]), is_sure)


def _text_of(message: Message) -> str:
    whole = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
    return whole.strip().removeprefix(f"{LEFT_OUT}\n")


def _label_of(line: str) -> str:
    """Return the number or the letter before an item of a list, such as "2" or "b"; empty if there is none."""
    bullet = BULLET.match(line)
    return bullet[2].strip("().、．").lower() if bullet else ""


def _read(whole: str) -> str:
    r"""Return the end of a long message, and of its numbered lists the beginning of each item; a shorter message whole.

    >>> print(_read("Remarks:\n1. Rename it. " + "Why? " * 40 + "\n   More.\n2. No cache.\n" + "The end. " * 300)[:152])
    Remarks:
    1. Rename it. Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? Why? ...
    2. No cache.
    The end. The
    """
    if len(whole) <= _READ:
        return whole
    lines = [line for line in whole.split("\n") if line.strip()]
    labelled = [at for at, line in enumerate(lines) if _label_of(line).isalnum()]
    listed, inside = set[int](), set[int]()
    for at, after in [*pairwise(labelled)][-_MOST_ITEMS:]:
        if _follows(_label_of(lines[at]), _label_of(lines[after])):
            head = {at - 1} if at and at not in listed and len(lines[at - 1]) <= _HEAD else set[int]()
            listed |= {at, after} | head
            inside.update(range(at + 1, after))
    found, left = list[str](), _READ
    for at in reversed(range(len(lines))):
        if at in listed:
            found.append(clipped(lines[at], _HEAD))
        elif left > 0 and at not in inside:
            end = lines[at][-left:]
            found.append(end if end == lines[at] else end.partition(". ")[2] or end.partition(" ")[2])
            left -= len(end)
    return "\n".join(reversed(found))


def _follows(label: str, after: str) -> bool:
    """Return whether a label is the next behind another one: "3" behind "2", "c" behind "b"."""
    if label.isdecimal() and after.isdecimal():
        return int(after) == int(label) + 1
    return len(label) == len(after) == 1 and ord(after) == ord(label) + 1


def _meant(items: Sequence[_Item], answer: str) -> Iterator[int]:
    """Yield the places of step 1: the last question, and the last item that the answer names, or else speaks of."""
    named = {*_LABEL.findall(answer.lower())}
    questions = [at for at, item in enumerate(items) if item.asks]
    meant = [at for at, item in enumerate(items) if item.labels & named]
    if not (questions or meant or asks(answer)):
        meant = _spoken_of(items, answer)
    yield from (*questions[-1:], *meant[-1:])


def _with_list(items: Sequence[_Item], place: int) -> Iterator[int]:
    """Yield the places of step 2: this one, the questions and items directly before it, and the items directly behind it.

    A word such as "or" between two items belongs to them, and so does the line above the first.
    """
    yield place
    near = [*takewhile(lambda at: items[at].asks or items[at].is_listed, range(place, -1, -1))]
    yield from near
    yield from takewhile(lambda at: items[at].is_listed, range(place + 1, len(items)))
    if near and near[-1] and items[near[-1]].is_item and len(items[near[-1] - 1].text) <= _HEAD:
        yield near[-1] - 1


@attrs.frozen
class _Item:
    """A sentence, or an item of a list, of an assistant's message that may ask something."""

    text: str
    is_item: bool  # an item, a part of one, or a list in one line
    labels: frozenset[str]
    asks: bool = attrs.field(init=False, default=attrs.Factory(lambda self: asks(self.text), takes_self=True))

    @property
    def is_listed(self) -> bool:
        return self.is_item or len(self.text) < _BETWEEN


def _items_of(text: str) -> Iterator[_Item]:
    """Yield the items of lists, the sentences of lines that ask something and of the last line, and the other lines."""
    inside, lines = False, list(filter(str.strip, text.split("\n")))
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("|"):
            cells = [cell.strip().lower() for cell in line.strip().strip("|").split("|")]
            if any(cell.strip("-: ") for cell in cells):  # not the line below the head
                yield _Item(line, True, frozenset(cells[:1]))
            continue
        bullet = BULLET.match(line)
        inside = bullet is not None or (inside and line[0].isspace())
        if inside:
            yield _Item(line, True, frozenset([_label_of(line)] if bullet else []))
            continue
        options = len(_OPTION.findall(line))
        is_split = options or number == len(lines) or asks(line) or line.rstrip().endswith((":", "："))
        said = [*sentences_in(line)] if is_split else [line]
        if options > 1 and not any(len(_OPTION.findall(each)) > 1 for each in said):
            said = [line]
        for each in said:
            labels = _OPTION.findall(each)
            yield _Item(each, len(labels) > 1, frozenset([label.lower() for label in labels]))


def _spoken_of(items: Sequence[_Item], answer: str) -> list[int]:
    """Return the places of items, and of a last sentence, with a word of an answer; or else of all items it may be about."""
    words, said = stems_of(answer), judge(answer).kind
    shared = [at for at, item in enumerate(items) if (item.is_item or item is items[-1]) and words & stems_of(item.text)]
    may_choose = said > Kind.SMALL_TALK if len(answer) <= _REPLY else said in (Kind.DECISION, Kind.VALUE)
    if shared or not may_choose:
        return shared
    return [at for at, item in enumerate(items) if item.is_item]
