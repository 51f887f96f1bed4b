"""The words a collapsed tool call leaves: what was said, then a line for each call, from which its tool is known again.

>>> text = collapsed_text(["I look it up."], ["read_file(path=a.py) -> import os"])
>>> print(text)
I look it up.
[Tool results]
read_file(path=a.py) -> import os
>>> tools_of(text)
('read_file',)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["NO_CALL", "collapsed_text", "tools_of"]

NO_CALL: Final = "result"
"""How the line of a result begins whose call is not there."""

_HEAD: Final = "[Tool results]"


def collapsed_text(said: Iterable[str], lines: Iterable[str]) -> str:
    """The text.

    Args:
        said: What the assistant said beside its calls.
        lines: One for each call, ``name(arguments) -> outcome``, each without a line break.
    """
    return "\n".join([*said, _HEAD, *lines])


def tools_of(text: str) -> tuple[str, ...]:
    """The names of the tools called, in order; O(text). A name that holds a bracket or a line break is cut there."""
    _, found, lines = text.rpartition(f"{_HEAD}\n")
    calls = [line.partition(" -> ")[0] for line in lines.split("\n")] if found else []
    return tuple([call.partition("(")[0] for call in calls if "(" in call])
