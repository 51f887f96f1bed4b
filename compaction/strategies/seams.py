"""Steps: the smallest runs of groups that may go while what is left still starts and joins as the wire format wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..formats import MessageFormat
from ..groups import MessageGroup
from ..index import MessageIndex

__all__ = ["steps_to_seams"]


def _apart(one: MessageGroup, other: MessageGroup) -> bool:
    return False


def steps_to_seams(
    index: MessageIndex, groups: Sequence[MessageGroup], together: Callable[[MessageGroup, MessageGroup], bool] = _apart
) -> Iterator[list[int]]:
    """The groups to drop as steps, oldest first; O(groups in the view).

    A step ends where the message before the run and the message after it may follow each other (``format.valid_seam``).
    Groups that reach no such place before the next group that stays are in no step.

    Args:
        index: The conversation, before the first step.
        groups: What may go, in order.
        together: Says of two neighbours among them that one does not go without the other.
    """
    if together is _apart and type(index.format).valid_seam is MessageFormat.valid_seam:
        yield from ([group.id] for group in groups)
        return
    free = {group.id: place for place, group in enumerate(groups)}
    shown = index.included_groups
    seam = index.format.valid_seam
    before, run, stretch = None, list[int](), list[int]()
    for here, group in enumerate(shown):
        place = free.get(group.id)
        if place is None:
            if stretch and seam(before, group.messages[0]):
                run += stretch
            before, stretch = group.messages[-1], []
            continue
        stretch.append(group.id)
        if place + 1 < len(groups) and together(group, groups[place + 1]):
            continue
        after = shown[here + 1].messages[0] if here + 1 < len(shown) else None
        if seam(before, after):
            yield run + stretch
            run, stretch = [], []
