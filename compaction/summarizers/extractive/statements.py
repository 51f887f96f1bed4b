"""Statements: the sentences of a user's or an assistant's text, each with its kind, and with what it stands under.

So are the sentences in which a result tells why the user denied a call.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

import attrs

from ...messages import Message
from .kinds import Kind, Statement, judge, kind_of_assistant, names_person
from .lines import SPEAKER, without_bullet
from .passages import Passage, passages
from .sentences import ENDS, LONGEST_SENTENCE, clipped, first_and_last, joint, sentences, sentences_in
from .subjects import is_eastern
from .voices import Voice

_MOST: Final = 400  # statements of a message, passages, and sentences of one
_SHORT: Final = 100  # characters of a passage whose sentences are one statement; in Chinese and Korean a third
_ANSWER_CHARS: Final = range(12, 241)  # of a sentence of the assistant; longer ones explain
_MARK: Final = re.compile('["“”„«»「」『』]')
_MARK_ITSELF: Final = re.compile(r'(?<=\s)"(?=[\s.,;:!?])')  # 'Use a " as separator.'
_INTRODUCING: Final = (":", "：", ",", "，")  # before a quotation of sentences
_INCHES: Final = re.compile(r'\d"')  # it closes a quotation, and opens none
_QUOTED_SENTENCE: Final = re.compile(  # at the end of a sentence; fewer characters are a name, as in: Call it "Done."
    rf"[“„\"«「『][^“”„\"«»「」『』\n]{{8,400}}[{''.join(ENDS)}]\s?[”“\"»」』]\Z"
)
_ALONE: Final = (Kind.QUESTION, Kind.REMARK, Kind.SUPPOSED)  # which no later sentence continues
ASSISTANT: Final = "Assistant"
SYSTEM: Final = "Earlier system message"  # one that left the view stands there behind those that stay
QUOTED: Final = "Quoted or pasted"
_NAME_CHARS: Final = 64
_OTHERS: Final = (Voice.QUOTED, Voice.LABELLED)
_ASKING_KINDS: Final = (Kind.REQUEST, Kind.QUESTION)
_WANTING_KINDS: Final = (Kind.DUTY, Kind.PREFERENCE, Kind.DECISION, Kind.TASK)
_LEAST_OTHERS: Final = 4  # lines beside a rule
_MOST_OF_USER: Final = 0.25  # of these lines


def speaker_of(message: Message) -> str:
    """Return the name that the host gives the speaker of a user's message; empty if it gives none.

    A name that would read as one of the digest's own labels, or as the system's, counts as none.
    """
    name = " ".join((message.name or "").split())[:_NAME_CHARS]
    return "" if name in (ASSISTANT, SYSTEM, "System", QUOTED) else name


def user_statements(spoken: Iterable[Passage], *, of_system: bool = False) -> Iterator[Statement]:
    """Yield the statements in the `passages` of a message of the user, or of the system, in order; O(characters).

    >>> from compaction.summarizers.extractive.passages import passages
    >>> said = "The cap is $956. Never go above it without asking me. My sister is a glazier. Where does she live?"
    >>> for each in user_statements(passages(said)):
    ...     print(each.kind.name, each.text)
    RULE The cap is $956. Never go above it without asking me.
    FACT My sister is a glazier.
    QUESTION Where does she live?
    """
    blocks = itertools.groupby(first_and_last([*spoken], _MOST), attrgetter("block"))
    return iter(first_and_last([each for _, block in blocks for each in _statements_of_block([*block], of_system)], _MOST))


def _statements_of_block(block: list[Passage], of_system: bool) -> Iterator[Statement]:
    """Yield the statements of the passages of a block; a rule in lines that look pasted is hardly one of the user."""
    found = [(passage.voice is Voice.OWN and not passage.is_whole, [*_statements_of(passage, of_system)]) for passage in block]
    looks_pasted = _look_pasted([said for is_line, said in found if is_line])
    for is_line, said in found:
        for each in said:
            yield attrs.evolve(each, kind=min(each.kind, Kind.DUTY)) if is_line and looks_pasted else each


def _look_pasted(lines: list[list[Statement]]) -> bool:
    """Return whether lines look pasted, given the statements of each.

    There is a single rule, and four or more other lines, of which few ask or want something. Fewer lines are often notes.
    """
    others = [said for said in lines if all(each.kind is not Kind.RULE for each in said)]
    of_user = sum(any(map(_is_of_user, said)) for said in others)
    return len(lines) - len(others) == 1 and len(others) >= _LEAST_OTHERS and of_user < _MOST_OF_USER * len(others)


def _is_of_user(statement: Statement) -> bool:
    return statement.kind in _ASKING_KINDS or (statement.kind in _WANTING_KINDS and names_person(statement.text))


def _statements_of(passage: Passage, of_system: bool) -> Iterator[Statement]:
    """Yield the statements of a passage; a sentence that refers to the one before it is joined to that.

    Each is joined once, the heaviest first. Of "The cap is $9. Never exceed it. Tell Ann of it.", where both refer to the one
    before, the first two are joined, and the third stays alone. A short passage of the user without a rule, as "Can we leave
    her out? My editor has one.", is one statement: nothing tells that the second sentence is the reason for the first.
    """
    found = [*_each_sentence(passage)]
    plain = all(Kind.REMARK < each.kind < Kind.DUTY for each in found) and len({each.by for each in found}) == 1
    if plain and not of_system and len(passage.text) <= (_SHORT // 3 if is_eastern(passage.text) else _SHORT):
        yield functools.reduce(_joined, found)
        return
    joined = set[int]()  # the sentences that are joined to the one before
    for at in sorted(range(1, len(found)), key=lambda at: found[at].kind, reverse=True):
        before, said = found[at - 1], found[at]
        fits = before.by == said.by and before.kind not in _ALONE and len(before.text) < LONGEST_SENTENCE // 2
        if said.refers and fits and joined.isdisjoint((at - 1, at + 1)):
            joined.add(at)
    for at, said in enumerate(found):
        if at in joined:
            yield _joined(found[at - 1], said)
        elif at + 1 not in joined:
            yield said


def _each_sentence(passage: Passage) -> Iterator[Statement]:
    """Yield the sentences of a passage as statements."""
    for sentence, voice in _sentences(passage) if passage.voice is not Voice.PROGRAM else ():
        said = judge(without_bullet(sentence) if passage.is_whole else sentence)
        if (name := SPEAKER.match(sentence)) and judge(sentence[name.end() :]).kind is Kind.REMARK:  # "Tom: fine whatever"
            said = attrs.evolve(said, kind=Kind.REMARK)
        kind = Kind.DUTY if said.kind is Kind.RULE and voice is not Voice.OWN else said.kind
        if voice in _OTHERS:
            kind = min(kind, Kind.PLAIN)
        text, by = clipped(sentence, LONGEST_SENTENCE), QUOTED if voice is Voice.QUOTED else ""
        yield attrs.evolve(said, text=text, kind=kind, lead=passage.lead, by=by)


def _sentences(passage: Passage) -> Iterator[tuple[str, Voice]]:
    """Yield the sentences of a passage, each with who says it: one in quotation marks is quoted."""
    if passage.is_whole and len(passage.text) <= LONGEST_SENTENCE:
        yield passage.text, passage.voice
        return
    found = first_and_last([*sentences_in(passage.text)], _MOST)
    quoted = _inside_quotations(found)
    for at, sentence in enumerate(found):
        is_quoted = at in quoted or _QUOTED_SENTENCE.search(sentence)
        yield sentence, Voice.QUOTED if is_quoted else passage.voice


def _inside_quotations(found: list[str]) -> set[int]:
    """Return the places of the sentences in which a quotation begins that goes on behind them, and of those up to its end.

    | without a mark that closes it | the quotation |
    |---|---|
    | ``Use a " as separator. Never knock.`` | is none: the mark itself is meant |
    | ``She wrote: "Wait. Never knock.`` | reaches to the end, since it is introduced |
    | ``Call it "old. Never knock.`` | ends with its sentence |
    """
    quoted, opening, is_introduced = set[int](), None, False
    for at, sentence in enumerate(found):
        if opening is not None:
            quoted.add(at)
        for mark in _MARK.finditer(sentence):
            opens = opening is None and not _INCHES.match(sentence, max(0, mark.start() - 1))
            before = sentence[max(0, mark.start() - 3) : mark.start()].rstrip()
            opening, is_introduced = at if opens else None, not before or before.endswith(_INTRODUCING)
        if opening is not None:
            quoted.add(at)
    if opening is None:
        return quoted
    if any(map(_MARK_ITSELF.search, found)):
        return _inside_quotations([_MARK_ITSELF.sub("", sentence) for sentence in found])
    return quoted if is_introduced else {at for at in quoted if at <= opening}


def _joined(before: Statement, found: Statement) -> Statement:
    return attrs.evolve(
        found,
        text=f"{before.text}{joint(before.text)}{found.text}",
        kind=max(before.kind, found.kind),
        stems=before.stems | found.stems,
        values=before.values + found.values,
        worth=max(before.worth, found.worth),
    )


def assistant_statements(text: str) -> Iterator[Statement]:
    """Yield an assistant's decisions, the values that it tells, and what it did; O(characters).

    >>> said = "I read the page. I settled on SQLite, since it needs no server. Reading fell to 31 ms."
    >>> [each.kind.name for each in assistant_statements(said)]
    ['ANSWER', 'DECISION', 'FINDING']
    """
    for sentence in sentences(text):
        kind = kind_of_assistant(sentence) if len(sentence) in _ANSWER_CHARS else None
        if kind is not None:
            yield Statement(sentence, kind, by=ASSISTANT)


# ---------------------------------------------------------------- denials
# Coding agents hand the user's reason for a denial over in a result, and nowhere else. But it is a text like any other: a page
# or a file may begin with the same words. So the reason is worth its room, and has no authority: it is quoted as the reason of
# a denial and not as the user's words, counts as a plain statement even if it sounds like a rule, and protects no message.

DENIAL: Final = "The result says why the call was denied"
"""The beginning of such a result once it is cut to the reason. It names nobody, because anybody may have written the reason."""

_DENIED: Final = re.compile(  # "The user rejected this: not on main."
    r"\s*(?:The user (?:doesn't want|does not want|denied|rejected|declined)\b[^:\n]{0,300}|"
    rf"{re.escape(DENIAL)}):\s*(?:<feedback>\s*)?(.{{1,2000}})",
    re.DOTALL,
)


def denial_in(text: str) -> str:
    r"""Return what a result tells as the reason why the user denied the call; empty if it tells none.

    >>> denial_in("The user denied this operation and provided the following feedback:\n<feedback>\nNot on main.\n</feedback>")
    'Not on main.'
    """
    found = _DENIED.match(text)
    return found[1].strip().removesuffix("</feedback>").rstrip() if found else ""


def denial_statements(result: str, tool: str) -> Iterator[Statement]:
    """Yield the statements of the reason that the result of a tool tells.

    >>> [(each.kind.name, each.by) for each in denial_statements("The user rejected this: never push to main.", "shell")]
    [('PLAIN', 'shell denied')]
    """
    reason = denial_in(result)
    for said in user_statements(passages(reason)) if reason else ():
        yield attrs.evolve(said, kind=min(said.kind, Kind.PLAIN), by=f"{tool} denied")
