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
    ├── SummaryFailed              a summarizer gave nothing that can stand for the conversation
    ├── NoProgress                 a strategy repeats an edit that was refused
    ├── StrategyError              a strategy broke its contract (yielded something that is no edit)
    └── SyncDriverError            an awaitable reached the synchronous driver

Every message says where, which rule, and what to do instead.
"""

from __future__ import annotations

__all__ = [
    "CompactionError",
    "ConfigurationError",
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


class SummaryFailed(CompactionError):
    """A summarizer gave nothing that can stand for what it was to summarize: says why, and what was tried."""


class NoProgress(CompactionError):
    """A strategy repeats an edit that was refused before; it would never end."""


class StrategyError(CompactionError):
    """A strategy broke its contract, for instance yielded something that is no edit."""


class SyncDriverError(CompactionError):
    """An awaitable reached the synchronous driver; use the asynchronous entry point."""
