"""The question that a short answer needs: "yes, the second one" says nothing without it, or the list before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
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
_CLAUSE: Final = re.compile(rf"[.,;:!…]\s|[。、，！]|(?<=[{''.join(ASKING)}])")
_OPTION: Final = re.compile(r"(?:^|[\s(])([A-Fa-f]|[1-9])[.):]\s+\S")  # as in "A) delete it; B) keep it"
_LABEL: Final = re.compile(r"(?<![^\W_])(?:[a-z](?![^\W_])|\d{1,2}(?!\d|[.,:]\d))")  # of an item, in an answer: "C", "1はい"


def is_short_answer(message: Message) -> bool:
    """Return whether the user says so little in a message that it may be an answer which needs its question."""
    said = message.said
    if len(said) > _SHORT_ANSWER:
        return len(said) <= _LONG_ANSWER and len(_OPTION.findall(said)) > 1
    return any(clause.strip() and not asks(clause) for clause in _CLAUSE.split(said))


def asked_in(message: Message, answer: Message) -> str:
    r"""Return what an assistant's message asks that a short answer of the user needs, one item a line; empty if nothing.

    >>> from compaction import MessageIndex
    >>> said = [{"role": "assistant", "content": "It is late.\nA. Wait.\nB. Go.\nWhich one?"}, {"role": "user", "content": "B"}]
    >>> print(asked_in(*[group.messages[0] for group in MessageIndex(said, counter="chars/4").included_groups]))
    [...]
    A. Wait.
    B. Go.
    Which one?
    """
    question = "\n".join(_shortened(question_of(message, answer), QUESTION_CHARS))
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


def question_of(before: Message | None, answer: Message) -> str:
    """Return what an answer needs of the assistant's message before it, one item a line; empty if that is nothing.

    These are the last questions in a row, with the list directly before or behind them, and a list of which the answer names
    an item. If there is neither, it is the list or the last sentence that shares a word with the answer, or else, if the answer
    decides something, the list. Without a list, the sentence before is needed, too, if it is what the question refers to.

    The places that the steps choose in two messages, the first of which is answered with "B"::

        place  text        1  2                        place  text              1  3
        0      It is late.                             0      I read the plan.
        1      A. Wait.       x                        1      It drops a table.    x
        2      B. Go.      x  x                        2      Shall I?          x  x
        3      Which one?  x  x
    """
    if before is None or before.role != "assistant" or not is_short_answer(answer):
        return ""
    text = "\n".join(part.text for part in before.parts if isinstance(part, TextPart))[-4 * QUESTION_CHARS :]
    items = [*_items_of(text.replace('"', "'"))]  # what it quotes from a program must not end the quotation
    chosen = {near for place in _meant(items, answer.said) for near in _with_list(items, place)}
    # 3: without a list, with the sentence before, if they refer to it or name nothing
    first = min(chosen, default=0)
    if first and not any(items[at].is_item for at in chosen):
        bare = items[first].text
        if len(bare) < _BARE_QUESTION or points_back(bare):
            chosen.add(first - 1)
    return "\n".join([" ".join(items[at].text.split()) for at in sorted(chosen)])


def _meant(items: Sequence[_Item], answer: str) -> Iterator[int]:
    """Yield the places of step 1: the last question, and the last item that the answer names, or else speaks of."""
    named = {*_LABEL.findall(answer.lower())}
    questions = [at for at, item in enumerate(items) if item.asks]
    meant = [at for at, item in enumerate(items) if item.labels & named]
    if not (questions or meant or asks(answer)):
        meant = _spoken_of(items, answer)
    yield from (*questions[-1:], *meant[-1:])


def _with_list(items: Sequence[_Item], place: int) -> Iterator[int]:
    """Yield the places of step 2: this one, the questions and items directly before it, and the items directly behind it."""
    yield place
    yield from takewhile(lambda at: items[at].asks or items[at].is_item, range(place, -1, -1))
    yield from takewhile(lambda at: items[at].is_item, range(place + 1, len(items)))


@attrs.frozen
class _Item:
    """A sentence, or an item of a list, of an assistant's message that may ask something."""

    text: str
    is_item: bool  # an item, a part of one, or a list in one line
    labels: frozenset[str]
    asks: bool = attrs.field(init=False, default=attrs.Factory(lambda self: asks(self.text), takes_self=True))


def _items_of(text: str) -> Iterator[_Item]:
    """Yield the items of lists, the sentences of lines that ask something and of the last line, and the other lines."""
    inside, lines = False, list(filter(str.strip, text.split("\n")))
    for number, line in enumerate(lines, 1):
        bullet = BULLET.match(line)
        inside = bullet is not None or (inside and line[0].isspace())
        if inside:
            yield _Item(line, True, frozenset([bullet[2].strip("().、．").lower()] if bullet else []))
            continue
        options = len(_OPTION.findall(line))
        said = [*sentences_in(line)] if options or number == len(lines) or asks(line) else [line]
        if options > 1 and not any(len(_OPTION.findall(each)) > 1 for each in said):
            said = [line]
        for each in said:
            labels = _OPTION.findall(each)
            yield _Item(each, len(labels) > 1, frozenset([label.lower() for label in labels]))


def _spoken_of(items: Sequence[_Item], answer: str) -> list[int]:
    """Return the places of items, and of a last sentence, with a word of an answer; or of all items if it decides something."""
    words = stems_of(answer)
    shared = [at for at, item in enumerate(items) if (item.is_item or item is items[-1]) and words & stems_of(item.text)]
    if shared or judge(answer).kind not in (Kind.DECISION, Kind.VALUE):
        return shared
    return [at for at, item in enumerate(items) if item.is_item]
