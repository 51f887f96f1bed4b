"""Denials: why the user denied a call, as the result of the call tells it.

Coding agents hand the user's reason over in a result, and nowhere else. But it is a text like any other: a page or a file may
begin with the same words. So the reason is worth its room, and has no authority: it is quoted as the result's and not as the
user's, counts as a plain statement even if it sounds like a rule, and protects no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

from .kinds import Kind
from .passages import passages
from .statements import Statement, user_statements

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
    [('PLAIN', 'shell')]
    """
    reason = denial_in(result)
    for said in user_statements(passages(reason)) if reason else ():
        yield attrs.evolve(said, kind=min(said.kind, Kind.PLAIN), by=tool)
