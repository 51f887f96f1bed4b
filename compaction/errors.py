"""The exceptions of this package.

::

    CompactionError
    ├── InputError                 the input cannot be used
    │   ├── InvalidMessage         a message cannot be read: names its place, the field, the rule and the remedy
    │   ├── UnknownFormat          no wire format fits, or more than one does
    │   ├── UnknownCounter         there is no token counter of that name, or its vocabulary is not on disk
    │   ├── UnreadableFile         a file of conversations cannot be read
    │   └── StateError             a saved index, session or store is corrupt, newer, or of other messages
    │       └── NotStored          a store has no message of that id in that session (compaction.stores)
    ├── UnwritableFile             a file cannot be written; its earlier content is kept
    ├── ConfigurationError         an argument is out of range or of the wrong kind (also a ValueError)
    ├── BudgetUnsatisfiable        what must stay is larger than the budget: lists what uses the space, and what would help
    ├── SummaryFailed              a summarizer returned no usable summary
    ├── NoProgress                 a strategy repeats an edit that was refused
    ├── StrategyError              a strategy broke its contract (yielded something that is not an edit)
    └── SyncDriverError            an awaitable reached the synchronous driver

Every message names the place, the rule, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

__all__ = [
    "BudgetUnsatisfiable",
    "CompactionError",
    "ConfigurationError",
    "InputError",
    "InvalidMessage",
    "NoProgress",
    "SpaceUse",
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
    """The base of every error that this package raises on purpose."""


class InputError(CompactionError):
    """The input cannot be used."""


class InvalidMessage(InputError):
    """A message cannot be read.

    Attributes:
        where: Its place, such as ``messages[3].role``.
        rule: The rule it breaks.
        remedy: How to fix it.
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
    """There is no token counter of that name, or its vocabulary is not on disk."""


class UnreadableFile(InputError):
    """A file of conversations cannot be read; names the file and the line."""


class StateError(InputError):
    """A saved index, session or store is corrupt, from a newer version, or of other messages."""


class UnwritableFile(CompactionError):
    """A file cannot be written; its earlier content is kept."""


class ConfigurationError(CompactionError, ValueError):
    """An argument is out of range or of the wrong kind."""


@attrs.frozen(kw_only=True)
class SpaceUse:
    """A group, or the overhead of a request, that still takes up space after a run.

    Args:
        group: The group's id; ``None`` for what is sent outside the messages.
        kind: Its kind, such as ``"tool_call"``.
        tokens: Its size.
        why: Why it is still there.
        remedy: How to make room.
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
    """A hard budget cannot be met without breaking a rule; the conversation is unchanged.

    Attributes:
        tokens: Tokens that a request would still send.
        wanted: The budget and the targets that were missed, as expressions.
        space_report: What uses the space, the largest first.
    """

    def __init__(self, tokens: int, wanted: Sequence[str], space_report: Sequence[SpaceUse]) -> None:
        super().__init__(tokens, tuple(wanted), tuple(space_report))
        self.tokens = tokens
        self.wanted = tuple(wanted)
        self.space_report = tuple(space_report)

    def __str__(self) -> str:
        uses = "".join(f"\n  {each}" for each in self.space_report)
        return f"{self.tokens:,} tokens are left, which misses {' and '.join(self.wanted)}; the space is used by{uses}"


class SummaryFailed(CompactionError):
    """A summarizer returned no usable summary; says why, and what was tried."""


class NoProgress(CompactionError):
    """A strategy repeats an edit that was refused before, so it would never end."""


class StrategyError(CompactionError):
    """A strategy broke its contract, for instance by yielding something that is not an edit."""


class SyncDriverError(CompactionError):
    """An awaitable reached the synchronous driver; use the asynchronous entry point."""
