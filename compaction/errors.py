"""What can go wrong, as types.

::

    CompactionError
    ├── InputError                 what was passed in cannot be used
    │   ├── InvalidMessage         a message: names its place, the field, the rule and the remedy
    │   ├── UnknownFormat          no wire format fits, or more than one does
    │   ├── UnknownCounter         no token counter of that name, or its vocabulary is not on disk
    │   ├── UnreadableFile         a file of conversations that is not what it should be
    │   └── StateError             a saved index, session or store that is corrupt, newer, or of other messages
    │       └── NotStored          a store has no message of that id in that session (compaction.stores)
    ├── UnwritableFile             a file cannot be written; what was there before still is
    ├── ConfigurationError         an argument out of range or of the wrong kind (also a ValueError)
    ├── BudgetUnsatisfiable        what must stay is larger than the budget: names what holds the space, and what would help
    ├── SummaryFailed              a summarizer gave nothing that can stand for the conversation
    ├── NoProgress                 a strategy repeats an edit that was refused
    ├── StrategyError              a strategy broke its contract (yielded something that is no edit)
    └── SyncDriverError            an awaitable reached the synchronous driver

Every message says where, which rule, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

__all__ = [
    "BudgetUnsatisfiable",
    "CompactionError",
    "ConfigurationError",
    "Held",
    "InputError",
    "InvalidMessage",
    "NoProgress",
    "StateError",
    "StrategyError",
    "SummaryFailed",
    "SyncDriverError",
    "UnknownCounter",
    "UnknownFormat",
    "UnreadableFile",
    "UnwritableFile",
]


class CompactionError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(CompactionError):
    """What was passed in cannot be used."""


class InvalidMessage(InputError):
    """A message cannot be read.

    Attributes:
        where: Its place, as ``messages[3].role``.
        rule: What should hold there.
        remedy: What to do about it.
    """

    def __init__(self, where: str, rule: str, remedy: str) -> None:
        super().__init__(where, rule, remedy)
        self.where = where
        self.rule = rule
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}; {self.remedy}"


class UnknownFormat(InputError):
    """No wire format fits, or more than one does."""


class UnknownCounter(InputError):
    """No token counter of that name, or its vocabulary is not on disk."""


class UnreadableFile(InputError):
    """A file of conversations is not what it should be; names file and line."""


class StateError(InputError):
    """A saved index or session is corrupt, from a newer version, or of other messages."""


class UnwritableFile(CompactionError):
    """A file cannot be written; what was there before still is."""


class ConfigurationError(CompactionError, ValueError):
    """An argument is out of range or of the wrong kind."""


@attrs.frozen(kw_only=True)
class Held:
    """Something that takes room and did not go.

    Args:
        group: The group's id; ``None`` for what is sent outside the messages.
        kind: What it is, such as ``"tool_call"``.
        tokens: Its size.
        why: Why it is still there.
        remedy: What would make room.
    """

    group: int | None
    kind: str
    tokens: int
    why: str
    remedy: str

    def __str__(self) -> str:
        name = self.kind if self.group is None else f"group {self.group} ({self.kind})"
        return f"{name}: {self.tokens:,} tokens, {self.why}; {self.remedy}"


class BudgetUnsatisfiable(CompactionError):
    """A hard budget cannot be met without breaking a rule; the conversation is as it was.

    Attributes:
        tokens: Tokens that a request would still have sent.
        wanted: The budget and the targets that were missed, in words.
        holding: What holds the space, the largest first.
    """

    def __init__(self, tokens: int, wanted: Sequence[str], holding: Sequence[Held]) -> None:
        super().__init__(tokens, tuple(wanted), tuple(holding))
        self.tokens = tokens
        self.wanted = tuple(wanted)
        self.holding = tuple(holding)

    def __str__(self) -> str:
        held = "".join(f"\n  {each}" for each in self.holding)
        return f"{self.tokens:,} tokens are left, but {' and '.join(self.wanted)} was to hold; the space is held by{held}"


class SummaryFailed(CompactionError):
    """A summarizer gave nothing that can stand for what it was to summarize: says why, and what was tried."""


class NoProgress(CompactionError):
    """A strategy repeats an edit that was refused before; it would never end."""


class StrategyError(CompactionError):
    """A strategy broke its contract, for instance yielded something that is no edit."""


class SyncDriverError(CompactionError):
    """An awaitable reached the synchronous driver; use the asynchronous entry point."""
