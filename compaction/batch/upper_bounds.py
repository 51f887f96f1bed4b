"""Whether a strategy does nothing to a conversation, decided from upper bounds of its sizes alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from ..index import RunContext
from ..strategies import Strategy


class _Undecided(Exception):
    """The comparison is true for some sizes up to a bound, and false for others."""


@attrs.frozen(eq=False)
class _AtMost:
    """An unknown size of at most ``most``, and at least 0."""

    most: int

    def __gt__(self, limit: float) -> bool:
        return not self <= limit

    def __ge__(self, limit: float) -> bool:
        return not self < limit

    def __le__(self, limit: float) -> bool:
        return self._decided(self.most <= limit, limit < 0)

    def __lt__(self, limit: float) -> bool:
        return self._decided(self.most < limit, limit <= 0)

    @staticmethod
    def _decided(always: bool, never: bool) -> bool:
        if always == never:
            raise _Undecided
        return always


def does_nothing(strategy: Strategy, *, tokens: int, bytes: int, messages: int, window: int | None) -> bool:
    """Return whether a strategy does nothing to any conversation of at most these sizes; false if that is not certain.

    The strategy gets a stand-in for the index that knows only these bounds. If it asks the stand-in for more, such as the
    messages, or raises an error, the function returns false. So neither triggers nor strategies need to know of bounds. A
    trigger that asks for something new makes batches slow and not wrong: a test has the list of the triggers that are decided.

    >>> from compaction.strategies import Truncation
    >>> from compaction.triggers import tokens_exceed
    >>> truncation = Truncation(trigger=tokens_exceed(100))
    >>> [does_nothing(truncation, tokens=most, bytes=900, messages=3, window=None) for most in (100, 101)]
    [True, False]
    """
    many = _AtMost(messages)
    sizes = SimpleNamespace(tokens=_AtMost(tokens), bytes=_AtMost(bytes), messages=many, turns=many, groups=many)
    index: Any = SimpleNamespace(
        tokens=sizes.tokens,
        included=sizes,
        columns=SimpleNamespace(included=sizes),
        turns_since_edit=many,
        context=RunContext(window=window),
    )
    try:
        return next(iter(strategy(index)), None) is None
    except Exception:  # it asked for more than the bounds; its own errors are raised again when it runs
        return False
