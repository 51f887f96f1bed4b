"""The fact list: a summary of exact values, calls and constraints, for summaries that grow at their end.

`DigestSummarizer` writes a page with sections; this writes the least that an agent needs to continue. Measured on recorded
sessions, a list of facts keeps more of what later actions need than prose of the same length. It leaves out what the model can
still read elsewhere, so a later part of a growing summary does not repeat an earlier one.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from ...checks import share
from ...errors import SummaryFailed
from ...index import GroupKind
from ...messages import Message, ToolCallPart, ToolResultPart
from ..base import SummaryRequest
from .actions import actions_of, argument_values
from .constraints import is_strict, latest_constraints, stated_constraints
from .facts import FactKind, FactSource, FactTable, fact_kind, facts_in
from .notes import listed, source_and_text
from .sentences import both_ends, clipped, one_line

_VALUE_CHARS: Final = 80
_CALL_CHARS: Final = 160
_FIRST_CHARS: Final = 240
_LABEL_TOKENS: Final = 5
_LEAST_FACT: Final = 2
_HELD: Final = 0.5
_SAID: Final = "The user said:"
_CALLS: Final = "Calls made:"
_NOTHING: Final = "Nothing in them is likely to be needed word for word."
_WORD: Final = re.compile(r"[^\W_]+")


@attrs.frozen(kw_only=True)
class FactSummarizer:
    """A summarizer that lists what is likely to be needed again and is nowhere else in the request.

    The same request gives the same list. Facts are chosen from all available messages, old and new, by `FactTable.score`. If
    the messages that ``request.previous`` stands for are not available, its facts come first, in up to half of the room.

    Cost: O(characters of the messages), about 10 MB a second.

    Args:
        constraints: Share of the budget for the user's constraints, the strict ones first, above 0 and at most 1.
        calls: Share of the budget for the calls made, one line each, the newest first, above 0 and at most 1.

    Raises:
        ConfigurationError: If a share is out of range.

    >>> from compaction import MessageIndex
    >>> said = [{"role": "user", "content": "Deploy build 4.2.1 to eu-west-1. Never touch prod.db."}]
    >>> index = MessageIndex(said, counter="chars/4")
    >>> facts = FactSummarizer()
    >>> request = SummaryRequest(summarizer=facts, groups=index.included_groups, budget=120, counter=index.counter)
    >>> print(facts.summarize(request))
    The user said:
    - Deploy build 4.2.1 to eu-west-1. Never touch prod.db.
    """

    constraints: float = attrs.field(default=0.5, validator=share)
    calls: float = attrs.field(default=0.1, validator=share)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the list, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If the budget is too small for a single line.
        """
        fresh = [message for group in request.groups for message in group.messages]
        first_round = request.previous is not None or not request.originals
        page = _Page(request.budget, request.counter.count_text, _visible(request))
        page.add_lines(_SAID, self._said(request, fresh, whole=first_round), upto=page.used + self.constraints * request.budget)
        page.add_lines(_CALLS, _calls(fresh), upto=page.used + self.calls * request.budget, newest_first=True)
        if request.previous is not None and not request.originals:
            page.add_facts(facts_in(request.previous), upto=page.used + _HELD * (request.budget - page.used))
        table = _table(request, fresh)
        likely = heapq.nlargest(8 * request.budget, table, key=lambda fact: table.score(fact, tokens=1 + len(fact) / 4))
        page.add_facts(likely, upto=request.budget)
        text = page.text() or _NOTHING
        if request.counter.count_text(text) > request.budget:
            raise SummaryFailed(f"a budget of {request.budget} tokens is too small for a list of facts; give it 50 or more")
        return text

    def _said(self, request: SummaryRequest, fresh: Sequence[Message], *, whole: bool) -> list[str]:
        """Return the user's first message and constraints: of all messages in a first round, of the new ones later."""
        messages = [*request.originals, *fresh] if whole else fresh
        texts = [text for message in messages for source, text in [source_and_text(message)] if source is FactSource.USER]
        stated = latest_constraints(sentence for text in texts for sentence in stated_constraints(text))
        first = [clipped(" ".join(texts[0].split()), _FIRST_CHARS)] if whole and texts else []
        ordered = sorted(stated, key=lambda sentence: not is_strict(sentence))
        return [*first, *(" ".join(sentence.split()) for sentence in ordered)]


def _visible(request: SummaryRequest) -> str:
    """Return the text that stays in the view beside the list."""
    texts = [text for group in request.kept for message in group.messages for _, text, _ in _texts_of(message)]
    return " ".join(" ".join(texts).split())


def _texts_of(message: Message) -> Iterator[tuple[FactSource, str, list[str]]]:
    """Yield each text of a message: its source, the text, and the whole values in it that count as facts."""
    yield (*source_and_text(message), [])
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield FactSource.RESULT, both_ends(part.text), []
        elif isinstance(part, ToolCallPart):
            values = [value for _, value in argument_values(part.arguments)]
            short = [value for value in values if 1 < len(value) <= _VALUE_CHARS and "\n" not in value and '"' not in value]
            yield FactSource.ASSISTANT, "\n".join(values), short


def _table(request: SummaryRequest, fresh: Sequence[Message]) -> FactTable:
    """Return every fact of the conversation with where it was seen."""
    beside = (GroupKind.SYSTEM, GroupKind.SUMMARY)
    kept = [message for group in request.kept if group.kind not in beside for message in group.messages]
    table = FactTable()
    for message in (*request.originals, *fresh, *kept):
        table.add(_texts_of(message))
    return table


def _calls(messages: Sequence[Message]) -> list[str]:
    """Return the calls, newest first, each once."""
    lines = [one_line(action.call, _CALL_CHARS) for action in actions_of(messages)]
    return list(dict.fromkeys(reversed(lines)))


class _Page:
    """A list that is being filled. Holds state: the chosen lines and facts, and their tokens."""

    def __init__(self, budget: int, count: Callable[[str], int], visible: str) -> None:
        self._budget = budget
        self._count = count
        self._visible = visible
        self._lines: list[str] = []
        self._facts: dict[FactKind, list[str]] = {}
        self.used = 2

    def add_lines(self, title: str, lines: Iterable[str], *, upto: float, newest_first: bool = False) -> None:
        """Add the lines that have room and are nowhere else; the most important must come first."""
        chosen: list[str] = []
        left = min(upto, self._budget) - self.used - self._count(title) - 1
        for line in lines:
            tokens = self._count(f"- {line}\n")
            if tokens > left or line in self._visible or any(line in other for other in chosen):
                continue
            chosen.append(line)
            left -= tokens
        if chosen:
            shown = reversed(chosen) if newest_first else chosen
            block = [title, *(f"- {line}" for line in shown)]
            self._lines += block
            self.used += self._count("\n".join(block)) + 1

    def add_facts(self, facts: Iterable[str], *, upto: float) -> None:
        """Add the facts that have room and are nowhere else; those most likely to be needed must come first."""
        visible, body = _Standing(self._visible), _Standing("\n".join(self._lines))
        chosen = [fact for listing in self._facts.values() for fact in listing]
        for fact in facts:
            if upto - self.used <= _LEAST_FACT:
                return
            if fact in visible or fact in body or any(fact in other for other in chosen):
                continue
            kind = fact_kind(fact)
            tokens = self._count(f" {fact}") + (2 if " " in fact else 0) + (0 if kind in self._facts else _LABEL_TOKENS)
            if self.used + tokens > upto:
                continue
            self.used += tokens
            self._facts.setdefault(kind, []).append(fact)
            chosen.append(fact)

    def text(self) -> str:
        """Return the list, without the facts least likely to be needed if it exceeds the budget."""
        while self._count(text := self._written()) > self._budget and self._facts:
            last = next(reversed(self._facts))
            self._facts[last].pop()
            if not self._facts[last]:
                del self._facts[last]
        return text

    def _written(self) -> str:
        return "\n".join([*self._lines, *(f"{kind.value}: {listed(facts)}" for kind, facts in self._facts.items())])


class _Standing:
    """The facts that stand in a text; one of which a word is missing there costs O(fact), any other O(text)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = frozenset(_WORD.findall(text))

    def __contains__(self, fact: str) -> bool:
        return self._words.issuperset(_WORD.findall(fact)) and _stands(fact, self._text)


def _stands(fact: str, text: str) -> bool:
    """Return whether a fact occurs in a text and is not part of a longer word there."""
    at = text.find(fact)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(fact) : at + len(fact) + 1]
        if not (before.isalnum() and fact[0].isalnum()) and not (after.isalnum() and fact[-1].isalnum()):
            return True
        at = text.find(fact, at + 1)
    return False
