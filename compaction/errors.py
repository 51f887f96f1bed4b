"""The exceptions that this package raises. Each message names the place, the broken rule and the remedy.

::

    CompactionError
    ├── InputError                 the input cannot be used
    │   ├── InvalidMessage         a message cannot be read
    │   ├── UnknownFormat          the messages fit no wire format, or several
    │   ├── UnknownCounter         no token counter has this name, or its vocabulary is not on disk
    │   ├── UnreadableFile         a file of conversations cannot be read
    │   └── StateError             a saved index, session or store is damaged, from a newer release, or of other messages
    │       └── NotStored          a store has no record of this id in this session (compaction.stores)
    ├── UnwritableFile             a file cannot be written; its earlier content is kept
    ├── ConfigurationError         an argument is out of range or of the wrong type (also a ValueError)
    │   ├── UnknownModel           no table has the model's window or prices (compaction.models)
    │   └── SummarizerDown         a summarizer failed too often in a row in a batch (compaction.batch)
    ├── BudgetUnsatisfiable        the groups that must stay are larger than the budget
    ├── SummaryFailed              a summarizer returned no usable summary
    ├── NoProgress                 a strategy repeats an edit that was refused
    ├── StrategyError              a strategy or a trigger broke its contract
    └── SyncDriverError            a strategy that has to be awaited was run synchronously
"""

from __future__ import annotations

import textwrap
from typing import Final

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

_LONGEST_TARGET: Final = 100


class CompactionError(Exception):
    """The base of every error that this package raises on purpose.

    Attributes:
        argument: The name of the argument that the error is about; empty if it is about something else.

    >>> error = ConfigurationError("Limits: 'requests' must be above 0", argument="requests", subject="Limits: 'requests'")
    >>> error.text_about("--requests")
    '--requests must be above 0'
    """

    argument: str = ""
    _subject: str = ""  # the beginning of the text that names the argument

    def __init__(self, *args: object, argument: str = "", subject: str = "") -> None:
        super().__init__(*args)
        self.argument, self._subject = argument, subject or argument

    def text_about(self, name: str) -> str:
        """Return the error's text with another name for its argument, such as that of an option."""
        return f"{name}{str(self).removeprefix(self._subject)}"


class InputError(CompactionError):
    """The input cannot be used."""


@attrs.define(eq=False, repr=False, slots=False)
class InvalidMessage(InputError):
    """A message cannot be read.

    Attributes:
        where: Its place, such as ``messages[3].role``.
        rule: The rule it breaks.
        remedy: How to fix it.
    """

    where: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}; {self.remedy}"


class UnknownFormat(InputError):
    """The messages fit no wire format, or several."""


class UnknownCounter(InputError):
    """No token counter has this name, or its vocabulary is not on disk."""


class UnreadableFile(InputError):
    """A file of conversations cannot be read; the message names the file and the line."""


class StateError(InputError):
    """A saved index, session or store is damaged, from a newer release, or of other messages."""


class UnwritableFile(CompactionError):
    """A file cannot be written; its earlier content is kept."""


class ConfigurationError(CompactionError, ValueError):
    """An argument is out of range or of the wrong type."""


@attrs.frozen(kw_only=True)
class SpaceUse:
    """The tokens of one group, or of the overhead of a request, that are left after a run.

    Args:
        group: The group's id; ``None`` for the overhead, which is sent outside the messages.
        kind: Its kind, such as ``"tool_call"``.
        tokens: Its size.
        why: The reason why it is still there.
        remedy: How to make it smaller.
    """

    group: int | None
    kind: str
    tokens: int
    why: str
    remedy: str

    def __str__(self) -> str:
        name = self.kind if self.group is None else f"group {self.group} ({self.kind})"
        return f"{name}: {self.tokens:,} tokens, {self.why}; {self.remedy}"


@attrs.define(eq=False, repr=False, slots=False)
class BudgetUnsatisfiable(CompactionError):
    """A hard budget cannot be met without breaking a rule; the conversation is unchanged.

    Attributes:
        tokens: Tokens that a request would still send.
        wanted: The budget and the targets that were missed, as expressions.
        space_report: The largest groups and the overhead of a request, largest first.
    """

    tokens: int
    wanted: tuple[str, ...]
    space_report: tuple[SpaceUse, ...]

    def __str__(self) -> str:
        uses = "".join(f"\n  {each}" for each in self.space_report)
        missed = [textwrap.shorten(each, _LONGEST_TARGET, placeholder=" ...") for each in dict.fromkeys(self.wanted)]
        return f"{self.tokens:,} tokens are left, which misses {' and '.join(missed)}; the space is used by{uses}"


class SummaryFailed(CompactionError):
    """A summarizer returned no usable summary; the message says what was tried."""


class NoProgress(CompactionError):
    """A strategy repeats an edit that was refused, and so might never end."""


class StrategyError(CompactionError):
    """A strategy or a trigger broke its contract, such as by yielding something that is not an edit."""


class SyncDriverError(CompactionError):
    """A strategy that has to be awaited was run synchronously; call the asynchronous function."""
