"""What an index did not allow: told to the caller, and proof that a strategy which asks again makes no progress."""

from __future__ import annotations

from ..errors import NoProgress
from .edits import Edit, Refusal, brief, signature

__all__ = ["Refusals"]


class Refusals:
    """The refusals of a run. Holds state: it grows with each, and is empty when the next run begins.

    Attributes:
        noted: The refusals, in order.
    """

    __slots__ = ("_since_change", "noted")

    def __init__(self) -> None:
        self.noted: list[Refusal] = []
        self._since_change: set[object] = set()

    def note(self, edit: Edit, rule: str, by: str) -> None:
        """Take note that an edit would have broken a rule. O(the groups it names).

        Raises:
            NoProgress: If the same was refused before, nothing changed since, and no other strategy began.
        """
        self.noted.append(Refusal(edit, rule, by))
        asked = signature(edit)
        if asked in self._since_change:
            raise NoProgress(
                f"{by or 'a strategy'} asked again for {brief(edit)}, which was refused: {rule}; skip what apply refuses"
            )
        self._since_change.add(asked)

    def forget(self, edit: Edit) -> None:
        """Take back the refusal of an edit that was applied later."""
        self.noted = [each for each in self.noted if each.edit is not edit]

    def changed(self) -> None:
        """Something changed, or another strategy begins: what was refused may be asked for again."""
        self._since_change.clear()

    def clear(self) -> None:
        """A run begins."""
        self.noted.clear()
        self._since_change.clear()
