"""The two summarizers without a model: a digest, and a list of facts for summaries that grow at their end.

Both fill a page from the memory of the conversation with the same writer. This file says what comes first on the page, and how
much room it may take; the `writer` knows how each kind of line is chosen and written. What they keep was decided by measurement
(``docs/explanation/digest.md``), and the shares of room by ``python -m benchmarks.retention`` and ``make bench-replay``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import attrs

from ...checks import share
from ...errors import SummaryFailed
from ...messages import Message, ToolResultPart
from ..base import SummaryRequest
from ..redaction import redact as redact_secrets
from .kinds import Kind
from .memory import Memories
from .writer import SummaryWriter

_TURNOVER: Final = 0.04  # the share of the budget that new facts may always have
_LEAST_FINDINGS: Final = 30  # tokens of findings in any case: one sentence
_OF_A_PERSON: Final = 1 / 3  # of what is said in a conversation between two people, at the least


@attrs.frozen(kw_only=True)
class _Shares:
    """The share of the page that each kind of line may fill at first; room that is left over is distributed later."""

    request: float = 0.12  # the user's first message
    said: float = 0.5  # rules and other statements
    plan: float = 0.3  # the agent's tasks
    findings: float = 0.06  # sentences in which the assistant tells a value
    foreign: float = 0.3  # lines of an earlier summary that another summarizer wrote
    failed: float = 0.2  # failed calls, and rows of results that the user asked for
    changes: float = 0.15  # calls that changed something, and the files that they changed
    calls: float = 0.04  # other calls, and files
    facts: float = 0.15  # reserved for facts, of what may be filled in the round, when left-over room is distributed


_OF_DIGEST: Final = _Shares()
_OF_LIST: Final = _Shares(request=0.05, said=0.3, failed=0.01, calls=0.03)
# for a talk between people, which has no calls: no room is reserved for facts, so that whole sentences have it
_OF_TALK: Final = _Shares(request=0.04, said=0.1, facts=0.0)
# for a talk with an assistant: rules and other statements of the user come before other sentences
_OF_CHAT: Final = _Shares(request=0.04, facts=0.0)


def _name_of(redact: Callable[[str], str] | None) -> str:
    return "redact" if redact is redact_secrets else repr(redact)  # the package's own has one name in every process


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

    asks_model: ClassVar[bool] = False
    growth: float = attrs.field(default=0.45, validator=share)
    redact: Callable[[str], str] | None = attrs.field(default=redact_secrets, repr=_name_of)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the digest, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If there is nothing to summarize, or the budget is too small for any digest.
        """
        messages, whole = _messages(request), _with_summaries(request)
        if whole is request and not any(each.text.strip() or [*each.tool_calls(), *each.tool_results()] for each in messages):
            raise SummaryFailed("there are no new messages to make a digest of")
        writer = SummaryWriter(whole, messages, self.redact or str)
        page, limit, shares = writer.page, writer.page.limit, _shares_of(writer, _OF_DIGEST)
        before = page.tokens(writer.earlier.text)
        # like ``limit`` a size of the page: in this round, only rules, tasks and errors may go beyond it
        filled = before + self.growth * (limit - before)

        # 1: the task, the rules and what the earlier summary held, which new lines do not push out
        writer.add_first(shares.request * (1 - _TURNOVER) * limit)
        writer.fill(writer.statements(Kind.DUTY), writer.more(shares.said))
        writer.add_held((1 - _TURNOVER) * limit)
        # 2: new lines, each kind up to its share, then those that had no room in it, and facts
        _add_lines(writer, shares, filled)
        writer.fill(writer.statements(Kind.REQUEST), (1 - shares.facts) * filled)
        writer.add_facts(max(filled, writer.more(_TURNOVER)))
        # 3: failures, and what weighs as much as a task, may fill the page; other words only what may be filled in this round
        writer.fill(writer.found, limit)
        writer.fill(writer.statements(Kind.TASK), limit)
        writer.fill(writer.statements(Kind.REMARK), filled)
        writer.fill([*writer.changes, *writer.calls], filled)
        writer.fill(writer.last_words(), filled)
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

    asks_model: ClassVar[bool] = False
    redact: Callable[[str], str] | None = attrs.field(default=redact_secrets, repr=_name_of)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the list, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If the budget is too small for a single line.
        """
        writer = SummaryWriter(_with_summaries(request), _messages(request), self.redact or str)
        limit, shares = writer.page.limit, _shares_of(writer, _OF_LIST)
        writer.add_first(shares.request * limit)
        _add_lines(writer, shares, limit, foreign=not request.originals)
        if not request.originals:
            writer.add_held((writer.page.used + limit) / 2)
        writer.add_facts(limit)
        writer.fill(writer.statements(Kind.REQUEST), limit)
        writer.fill(writer.found, limit)
        return writer.page.text()


def answer_offline(request: SummaryRequest) -> str:
    """Return an answer that asks no model and stores nothing: that of the request's digest or list of facts, else a digest."""
    summarizer = request.summarizer
    if not isinstance(summarizer, DigestSummarizer | FactSummarizer):
        summarizer = DigestSummarizer()
    return summarizer.summarize(request)


def _shares_of(writer: SummaryWriter, otherwise: _Shares) -> _Shares:
    """Return the shares of a talk, or else these."""
    if not writer.talk:
        return otherwise
    return _OF_TALK if writer.is_between_people else _OF_CHAT


def _add_lines(writer: SummaryWriter, shares: _Shares, filled: float, *, foreign: bool = True) -> None:
    """Add the lines, each kind up to its share, the most important first; only rules and failed calls beyond ``filled``.

    With ``foreign``, they include lines of an earlier summary that somebody else wrote.
    """
    limit, start = writer.page.limit, writer.page.used
    writer.fill(writer.statements(Kind.TASK), writer.more(shares.said))
    writer.fill(writer.statements(Kind.SMALL_TALK), start + shares.said * filled)
    if foreign:
        writer.fill(writer.foreign_lines(), start + (shares.said + shares.foreign) * limit)
    writer.fill(writer.plans(), writer.more(shares.plan))
    if not writer.talk:  # in which they are chosen as all other sentences are
        writer.fill(writer.findings(), max(writer.page.used + _LEAST_FINDINGS, writer.more(shares.findings)))
    writer.fill(writer.changes, min(filled, writer.more(shares.changes)))
    writer.fill(writer.found, writer.more(shares.failed))
    writer.fill(writer.calls, min(filled, writer.more(shares.calls)))
    writer.add_talk(filled)


def excerpt_options(request: SummaryRequest, tokens: int) -> tuple[dict[int, int], int]:
    """Return which numbers of messages an excerpt of the user's words shall have, and how many of these tokens.

    There are numbers, by the identity of the caller's object, beside a digest of a single round, if two messages may name the
    same thing with different values: so the later one can be told. In later rounds they would take room from the words: they
    cost `hermes` a fifth of the old facts in the four long service sessions (``make bench-replay``).

    Beside such a digest of people who talk, the excerpt has an eighth: the digest chooses among all that was said, and the
    excerpt only holds what is newest. If the user says less than a third of all that is said, the others are an assistant, and
    the excerpt keeps its room.
    """
    summarizer = request.summarizer
    if not isinstance(summarizer, DigestSummarizer) or summarizer.growth < 1:
        return {}, tokens
    messages = _messages(request)
    memory = request.notes.of(Memories).of(messages, summarizer.redact or str, after=request.originals)
    numbered = enumerate([*request.originals, *messages], 1) if memory.statements.has_contested else ()
    if memory.is_between_people and sum(len(message.said) for message in messages) > _OF_A_PERSON * memory.chars:
        tokens //= 8
    return {id(message.raw): number for number, message in numbered}, tokens


def _messages(request: SummaryRequest) -> Sequence[Message]:
    """Return the messages that are new in a request, as they came; a collapsed call is read as its result."""
    if request.sources:
        return request.sources
    found: list[Message] = []
    for group in request.groups:
        if group.mark is None:
            found += group.messages
        elif group.is_collapsed:
            found.append(attrs.evolve(group.messages[0], role="tool", parts=(ToolResultPart("", group.mark.body),)))
    return found


def _with_summaries(request: SummaryRequest) -> SummaryRequest:
    """Return the request with the summaries among its groups in front of the earlier one; in its sources there are none."""
    texts = [] if request.sources else [each.mark.body for each in request.groups if each.mark and not each.is_collapsed]
    return attrs.evolve(request, previous="\n\n".join([*texts, *filter(None, [request.previous])])) if texts else request
