"""The figures of conversations under subjects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from compaction import MessageIndex
from compaction.tokens import TokenCounter

from .conversations import Conversation, Item
from .judging import Judge, Present
from .subjects import Subject


@attrs.frozen
class ItemScore:
    """An item in the requests that must have it.

    Args:
        item: The item.
        missing: The number of messages of each of these requests that does not have it.
        at_end: Whether the last request has it; ``None`` if it need not.
    """

    item: Item
    missing: tuple[int, ...]
    at_end: bool | None


@attrs.frozen(kw_only=True)
class Outcome:
    """One conversation under one subject, with one window.

    Args:
        conversation: The conversation.
        subject: The subject.
        share: The window, as a share of the conversation's tokens.
        scores: The items.
        stale: Revoked items that the last request has without their revocation.
        claimed: Words of others that the last request has, in a text that was rewritten, without their source.
        sent: Tokens of all requests, as a share of those that the whole conversation would have taken.
        over: Requests over the window.
        requests: Number of requests.
        seconds: CPU time.
    """

    conversation: Conversation
    subject: str
    share: float
    scores: tuple[ItemScore, ...]
    stale: tuple[Item, ...]
    claimed: tuple[Item, ...]
    sent: float
    over: int
    requests: int
    seconds: float


def outcomes(
    conversations: Iterable[Conversation], subjects: Mapping[str, Subject], shares: Sequence[float], counter: TokenCounter
) -> Iterator[Outcome]:
    """Yield the outcome of each conversation under each subject, with each window."""
    for said in conversations:
        judge, tokens = Judge(said), sizes(said, counter)
        for share in shares:
            for name, subject in subjects.items():
                began = time.process_time()
                requests = list(subject(said, int(tokens[-1] * share), counter))
                seconds = time.process_time() - began
                sent = [MessageIndex(list(view), counter=counter).tokens for _, view in requests]
                judged = [(count, judge.present(view, count)) for count, view in requests]
                yield Outcome(
                    conversation=said,
                    subject=name,
                    share=share,
                    scores=tuple(_scores(said, judged)),
                    stale=tuple(said.items[place] for place in sorted(judged[-1][1].stale)),
                    claimed=tuple(said.foreign[place] for place in sorted(judged[-1][1].claimed)),
                    sent=sum(sent) / sum(tokens[count] for count, _ in requests),
                    over=sum(each > int(tokens[-1] * share) for each in sent),
                    requests=len(requests),
                    seconds=seconds,
                )


def sizes(said: Conversation, counter: TokenCounter) -> list[int]:
    """Return the tokens of the first messages of a conversation, by their number."""
    return [MessageIndex(list(said.messages[:count]), counter=counter).tokens for count in range(len(said.messages) + 1)]


def _scores(said: Conversation, judged: Sequence[tuple[int, Present]]) -> Iterator[ItemScore]:
    for place, item in enumerate(said.items):
        due = [(count, place in present.items) for count, present in judged if item.is_due(count)]
        at_end = due[-1][1] if due and due[-1][0] == len(said.messages) else None
        yield ItemScore(item, tuple(count for count, has in due if not has), at_end)
