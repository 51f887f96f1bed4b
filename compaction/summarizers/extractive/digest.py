"""The two summarizers without a model: a digest, and a list of facts for summaries that grow at their end.

Both are written from the memory of the conversation by the same writer. What they keep was decided by measurement
(``docs/explanation/digest.md``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs

from ...checks import share
from ...errors import SummaryFailed
from ...messages import Message, ToolResultPart
from ..base import SummaryRequest
from ..redaction import redact as redact_secrets
from .earlier import EarlierSummary
from .facts import facts_in
from .memory import ConversationMemory
from .reading import Redact
from .rounds import Memories
from .talk import talk_in
from .writer import Shares, SummaryWriter

_WORD: Final = re.compile(r"[^\W_]{2,}")
_TURNOVER: Final = 0.04  # the share of the budget that new facts may always have
_OF_LIST: Final = Shares(request=0.05, rules=0.3, said=0.3, failed=0.01, calls=0.03, facts=0.8)


def _name_of(redact: Callable[[str], str] | None) -> str:
    """Return the name of the package's own function, which is the same in every process, and the `repr` of others."""
    return "redact" if redact is redact_secrets else repr(redact)


@attrs.frozen(kw_only=True)
class DigestSummarizer:
    r"""A summarizer that fills the sections from the conversation: quotations, failed calls, files, exact facts.

    The same request gives the same text. The text never exceeds the budget: what is least likely to be needed is left out
    first, the user's rules last, and omitted rules are counted. What stays in the view beside it is not repeated.

    An earlier summary is taken over section by section, whoever wrote it. What it held is kept unless it was superseded; a
    repeated call counts with its last outcome. If the original messages are available, everything is chosen from all of them.

    Cost: O(characters of the new messages), and O(lines it chooses from).

    Args:
        growth: Share of the free room that facts may fill in a round, above 0 and at most 1. Below 1, later rounds have room
            left, so that a new fact need not push out an old one. 1.0 for a single round.
        redact: Removes secrets from every text before it is read, since a digest is stored and sent again. ``None`` keeps them.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Deploy to eu-west-1. Never touch prod.db."}], counter="chars/4")
    >>> digest = DigestSummarizer()
    >>> request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=200, counter=index.counter)
    >>> print(digest.summarize(request))
    ## Goal
    - First: Deploy to eu-west-1. Never touch prod.db.
    """

    growth: float = attrs.field(default=0.45, validator=share)
    redact: Callable[[str], str] | None = attrs.field(default=redact_secrets, repr=_name_of)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the digest, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If there is nothing to summarize, or the budget is too small for any digest.
        """
        asked, request, messages = request, _with_summaries(request), _messages(request)
        if request is asked and not any(
            message.text.strip() or any(message.tool_calls()) or any(message.tool_results()) for message in messages
        ):
            raise SummaryFailed("there are no new messages to make a digest of")
        writer = _writer(request, messages, self.redact or str, Shares(), focus=_focus_of(request.focus))
        page = writer.page
        before = page.tokens(writer.earlier.text) if request.previous else 0
        filled = before + self.growth * (page.limit - before)
        turnover = _TURNOVER * page.limit
        writer.add_held(page.limit - turnover)
        writer.add_lines(filled, writer.earlier.foreign_lines())
        writer.add_talk(filled)
        writer.add_more(filled)
        writer.add_facts(max(filled, page.used + turnover))
        writer.add_rest(filled)
        if self.growth == 1:
            writer.add_facts(page.limit)
        writer.count_left_out()
        return page.text()


@attrs.frozen(kw_only=True)
class FactSummarizer:
    """A summarizer that lists what is likely to be needed again and is nowhere else in the request.

    The same request gives the same list. Facts are chosen from all available messages, old and new, by `FactTable.best`. If
    the messages that ``request.previous`` stands for are not available, its lines and facts come first.

    Cost: O(characters of the new messages), and O(lines it chooses from).

    Args:
        redact: Removes secrets from every text before it is read, as in a `DigestSummarizer`. ``None`` keeps them.

    >>> from compaction import MessageIndex
    >>> said = [{"role": "user", "content": "Deploy build 4.2.1 to eu-west-1. Never touch prod.db."}]
    >>> index = MessageIndex(said, counter="chars/4")
    >>> facts = FactSummarizer()
    >>> request = SummaryRequest(summarizer=facts, groups=index.included_groups, budget=120, counter=index.counter)
    >>> print(facts.summarize(request))
    ## Goal
    - First: Deploy build 4.2.1 to eu-west-1. Never touch prod.db.
    """

    redact: Callable[[str], str] | None = attrs.field(default=redact_secrets, repr=_name_of)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the list, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If the budget is too small for a single line.
        """
        request, messages = _with_summaries(request), _messages(request)
        writer = _writer(request, messages, self.redact or str, _OF_LIST)
        page, earlier = writer.page, writer.earlier
        writer.add_lines(page.limit, {} if request.originals else earlier.foreign_lines())
        writer.add_talk(page.limit)
        if request.previous and not request.originals:
            page.add_facts(facts_in(earlier.text), upto=page.used + 0.5 * (page.limit - page.used), held=True)
        writer.add_facts(page.limit)
        writer.add_more(page.limit / (1 - _OF_LIST.facts))
        return page.text()


def message_numbers(request: SummaryRequest) -> dict[int, int]:
    """Return the numbers of messages in a digest of a single round, by the identity of the caller's object.

    There are numbers if two messages may name the same thing with different values, so that the later one can be told. In
    later rounds they would take room from the words: they cost `hermes` a fifth of the old facts in the four long service
    sessions (``make bench-replay``).
    """
    memory = _memory_of_single_round(request)
    if memory is None or not memory.statements.has_contested:
        return {}
    return {id(each.raw): number for number, each in enumerate([*request.originals, *_messages(request)], 1)}


def quoted_tokens(request: SummaryRequest, tokens: int) -> int:
    """Return how many of these tokens an excerpt of the user's words shall have beside a digest of a single round.

    Where people talk, it is a quarter: the digest chooses among all that was said, and the excerpt only holds what is newest.
    """
    memory = _memory_of_single_round(request)
    return tokens // 4 if memory is not None and memory.is_talk else tokens


def _memory_of_single_round(request: SummaryRequest) -> ConversationMemory | None:
    summarizer = request.summarizer
    if not isinstance(summarizer, DigestSummarizer) or summarizer.growth < 1:
        return None
    return request.notes.of(Memories).of(_messages(request), summarizer.redact or str, after=request.originals)


def _messages(request: SummaryRequest) -> Sequence[Message]:
    """Return the messages that are new in a request, as they came; a collapsed call is read as its result."""
    if request.sources:
        return request.sources
    found: list[Message] = []
    for group in request.groups:
        if group.mark is None:
            found += group.messages
        elif group.is_collapsed:
            result = ToolResultPart("", group.mark.body)
            found.append(attrs.evolve(group.messages[0], role="tool", parts=(result,)))
    return found


def _with_summaries(request: SummaryRequest) -> SummaryRequest:
    """Return the request with the summaries among its groups in front of the earlier one."""
    if request.sources:
        return request
    marks = [group.mark for group in request.groups if not group.is_collapsed]
    texts = [mark.body for mark in marks if mark is not None]
    if not texts:
        return request
    return attrs.evolve(request, previous="\n\n".join([*texts, *filter(None, [request.previous])]))


def _writer(
    request: SummaryRequest,
    messages: Sequence[Message],
    redact: Redact,
    shares: Shares,
    *,
    focus: Callable[[str], bool] | None = None,
) -> SummaryWriter:
    """Return the writer of an empty page."""
    memories = request.notes.of(Memories)
    memory = memories.of(messages, redact, after=request.originals)
    read = partial(memories.readings.of, redact=redact)
    talk = talk_in([*request.originals, *messages], read, redact) if memory.is_talk else []
    earlier = EarlierSummary(redact(request.previous or ""), memory, talk)
    return SummaryWriter(request, memory, talk, earlier, shares, read=read, focus=focus)


def _focus_of(focus: str | None) -> Callable[[str], bool] | None:
    words = tuple(dict.fromkeys(_WORD.findall((focus or "").casefold())))
    return (lambda text: any(word in text.casefold() for word in words)) if words else None
