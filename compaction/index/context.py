"""The context of a run: the model's window, the overhead of a request, the time, and the history of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from ..checks import count, whole
from ..errors import ConfigurationError
from .pauses import RunHistory

_T = TypeVar("_T")


@attrs.frozen(kw_only=True)
class PreparedSummary:
    """A summary written before it was due, and the groups that it replaces."""

    strategy: object
    groups: frozenset[int]  # the ids of the groups it replaces, an earlier summary included
    # the positions of their messages in the source, each with a fingerprint; without the messages that an earlier summary
    # replaced
    sources: Mapping[int, str]
    summaries: tuple[str, ...]  # fingerprints of the strategy's own summaries in the view at the time of the request
    # the summarizer's answer, or its exception if it failed when the strategy already needed the summary
    text: object = attrs.field(default="", repr=False)


@attrs.define(eq=False)
class PreparedSummaries:
    """The prepared summary of a conversation. Holds state: at most one summary, and whether a strategy needed one."""

    # called by the strategy when it needs a summary that is not prepared, before it calls the summarizer itself
    on_miss: Callable[[], object] | None = None
    summary: PreparedSummary | None = attrs.field(default=None, init=False)
    # whether the strategy needed a summary in this run: the session clears it before the run, the strategy sets it
    is_needed: bool = attrs.field(default=False, init=False)


class Notes:
    """The memory of summarizers about one conversation, between rounds. Holds state: one object of each class asked for.

    An index has its own and passes it with each request for a summary, so that nothing is shared between conversations.

    >>> notes = Notes()
    >>> notes.of(list).append("a fact")
    >>> notes.of(list)
    ['a fact']
    """

    def __init__(self) -> None:
        self._known: dict[type[Any], Any] = {}

    def of(self, kind: type[_T]) -> _T:
        """Return the object of a class, made without arguments the first time."""
        found: _T | None = self._known.get(kind)
        if found is None:
            found = self._known[kind] = kind()
        return found

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


_LEAST_KEY_CHARS: Final = 16


def _keys(given: str | Iterable[str] | None) -> tuple[str, ...]:
    keys = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(key, str) for key in keys):
        raise ConfigurationError("a key is a text; pass bytes as text, such as key.hex()")
    if any(len(key) < _LEAST_KEY_CHARS for key in keys):
        raise ConfigurationError(f"a key has at least {_LEAST_KEY_CHARS} characters; make one with secrets.token_hex()")
    return keys


@attrs.frozen(kw_only=True)
class RunContext:
    """Facts about a run that the caller passes in, such as the window and the time.

    Args:
        window: The size of the model's context window in tokens, if known.
        overhead_tokens: Tokens sent with every request outside the message list, such as tool schemas or a system parameter;
            counted by every token trigger. Negative if a provider reports fewer tokens than are counted here.
        expected_tokens: While a summary is prepared: the tokens that will probably be added before it is needed. They are also
            part of ``overhead_tokens``. The selector `last` takes them into account.
        now: The time, in seconds of any clock; ``None`` for a run without a clock.
        pauses: The history of earlier runs, for pauses; a session passes the same object each time.
        prepared: The summary that was written before it was due; a session passes the same object each time.
        keys: Optional keys that sign summaries, so that nobody can forge one: the first signs, all are accepted. See `Marks`.
            The command line and the gateway read them from ``COMPACTION_KEY``; a program passes them itself.
        origin: The name of the conversation, which is part of a signature.

    Raises:
        ConfigurationError: If the window is not above 0, a number of tokens is not a whole number, or a key is too short or is
            not a text.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=whole)
    expected_tokens: int = attrs.field(default=0, validator=count())
    now: float | None = None
    pauses: RunHistory = attrs.field(factory=RunHistory, eq=False, repr=False)
    prepared: PreparedSummaries = attrs.field(factory=PreparedSummaries, eq=False, repr=False)
    keys: tuple[str, ...] = attrs.field(default=(), converter=_keys, repr=False)
    origin: str = ""
