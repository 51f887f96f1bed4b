"""The laws that every strategy must keep, and the error for a broken one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ..errors import CompactionError

__all__ = ["LAWS", "LawBroken"]

LAWS: Final[Mapping[int, str]] = {
    1: "A valid conversation stays valid under its format's rules; an invalid one gains no new violation.",
    2: "A group is kept, dropped, replaced or rewritten whole; no call is separated from its results.",
    3: "A kept message that no rewrite names is the same object, in order; system first; the last user message survives.",
    4: "Included tokens never grow over a run.",
    5: (
        "Running again with nothing new, after a run without failures, changes nothing, also on an index of the output. "
        "If the list is invalid in its format, or its output is read as other groups, this holds after a few runs."
    ),
    7: "Same input, same output; the caller's list and messages stay as they are.",
    9: "Rolling back every edit gives back the original conversation, metrics included.",
}
"""The laws that `check_strategy` checks, by their numbers in the project's design."""

_SHOWN_MESSAGES: Final = 20
_SHOWN_CHARS: Final = 120


class LawBroken(CompactionError, AssertionError):
    """A strategy or trigger breaks a law; the text shows how, on the smallest conversation found.

    Attributes:
        law: The law's number in `LAWS`; 0 for the contract of a trigger.
        what: How the law is broken.
        messages: A conversation that shows it.
    """

    def __init__(self, law: int, what: str, messages: Sequence[Any]) -> None:
        super().__init__(law, what, messages)
        self.law = law
        self.what = what
        self.messages = messages

    def __str__(self) -> str:
        rule = f"law {self.law}: {LAWS[self.law]}\n" if self.law else ""
        shown = [json.dumps(_brief(message), default=repr) for message in self.messages[:_SHOWN_MESSAGES]]
        more = ["..."] if len(shown) < len(self.messages) else []
        return "\n".join([f"{rule}{self.what}", f"on these {len(self.messages)} messages:", *shown, *more])


def _brief(value: Any) -> Any:
    """Return the value with long texts shortened for display."""
    if isinstance(value, str) and len(value) > _SHOWN_CHARS:
        return f"{value[:_SHOWN_CHARS]}... ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {key: _brief(each) for key, each in cast("Mapping[str, Any]", value).items()}
    return [_brief(each) for each in cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else value
