"""Questions that short answers of the user need: "yes, but skip 2" says nothing without the message before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from .. import summarizers
from ..index import GroupKind, MessageIndex, Rewrite

_MOST_BETWEEN: Final = 4  # messages before an answer that are looked through for what it answers


def answered_ordinal(index: MessageIndex, ordinal: int) -> int | None:
    """Return the ordinal of the message that a user's message may answer; instructions do not count.

    Args:
        index: The conversation.
        ordinal: The ordinal of the user's message. The id of a group of the user is the ordinal of its message.
    """
    before = range(ordinal - 1, max(-1, ordinal - 1 - _MOST_BETWEEN), -1)
    return next((at for at in before if index.kind_at(at) is not GroupKind.SYSTEM), None)


def questions_of(index: MessageIndex, answers: Collection[int]) -> dict[int, str]:
    """Return what the assistant asks in the view before short answers of the user, keyed by the group of the question.

    A question asked several times in the same words is left out. O(groups).

    Args:
        index: The conversation.
        answers: The ids of the groups whose answers count.
    """
    found: dict[int, str] = {}
    columns = index.columns
    for id in index.included_ids:
        if id not in answers or columns.kind(id) is not GroupKind.USER:
            continue
        asked, answer = answered_ordinal(index, id), index.group(id).messages[0]
        before = id if asked is None else columns.grouping.group_of[asked]
        is_shown = columns.kind(before) is GroupKind.ASSISTANT and columns.is_included(before)
        if is_shown and summarizers.extractive.is_short_answer(answer):
            found[before] = summarizers.extractive.asked_in(index.group(before).messages[-1], answer)
    times = Counter(found.values())
    return {id: text for id, text in found.items() if text and times[text] == 1}


def cut_to(index: MessageIndex, id: int, text: str) -> Rewrite | None:
    """Return the edit that leaves only this text of the last message of a group; ``None`` if that is not shorter."""
    *others, message = index.group(id).messages
    cut = message.evolve(text=text)
    if not index.is_rewritable(id) or index.measure(cut)[0] >= index.measure(message)[0]:
        return None
    return Rewrite(id, [*others, cut], "the oldest go first; what a short answer needs stays")
