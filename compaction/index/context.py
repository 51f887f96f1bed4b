"""The context of a run: the model's window, the overhead of a request, the time, and pauses after failures."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

import attrs

from ..checks import count, whole
from ..errors import ConfigurationError, StateError
from ..json_data import finite_number, natural_number

_T = TypeVar("_T")


@attrs.frozen(kw_only=True)
class PreparedSummary:
    """A summary written before it was due, and the groups that it replaces.

    Args:
        strategy: The strategy that uses it.
        groups: The ids of the groups it replaces, an earlier summary included, each with a fingerprint of its messages.
        sources: The positions of their messages in the source, each with a fingerprint; without the messages that an earlier
            summary replaced.
        summaries: Fingerprints of the strategy's own summaries in the view at the time of the request.
        text: The summarizer's answer, or its exception if it failed when the strategy already needed the summary.
    """

    strategy: object
    groups: Mapping[int, str]
    sources: Mapping[int, str]
    summaries: tuple[str, ...]
    text: object = attrs.field(default="", repr=False)


@attrs.define(eq=False)
class PreparedSummaries:
    """The prepared summary of a conversation. Holds state: at most one summary, and whether a strategy needed one.

    Args:
        on_miss: Called when a strategy needs a summary that is not prepared, and so calls the summarizer itself.

    Attributes:
        summary: The summary, if one is prepared.
        is_due: Whether a strategy needed a summary since the run began; set by the strategy (see `prepared_answer`).
    """

    on_miss: Callable[[], object] = lambda: None
    summary: PreparedSummary | None = attrs.field(default=None, init=False)
    is_due: bool = attrs.field(default=False, init=False)


PAUSE_SECONDS: Final = (60.0, 300.0, 900.0)
"""The pause in seconds after one, two, and three or more failures in a row; the figures are Hermes Agent's."""

_MAX_STRATEGIES: Final = 64
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class FailurePauses:
    """The consecutive failures of each strategy, the time of the last one, and summaries that saved nothing. Holds state.

    A session has one object for its whole life; a run without a session has its own. A strategy is identified by its `repr`
    without memory addresses: two strategies with different options pause separately, and an equal strategy in another process
    continues the pause. Without a clock nothing is paused.

    >>> pauses = FailurePauses()
    >>> pauses.record_failure("summarize with m", 0.0)
    >>> pauses.is_paused("summarize with m", 59.0), pauses.is_paused("summarize with m", 60.0)
    (True, False)
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}
        self._no_gain: dict[str, int] = {}

    def is_paused(self, strategy: object, now: float | None) -> bool:
        """Return whether a strategy failed so recently that it should not try again yet.

        Args:
            strategy: The strategy, with its options.
            now: The time of the run's context, in seconds; ``None`` without a clock.
        """
        if now is None or not self._failures:
            return False
        failures, since = self._failures.get(_key(strategy), (0, 0.0))
        return failures > 0 and now - since < PAUSE_SECONDS[min(failures, len(PAUSE_SECONDS)) - 1]

    def record_failure(self, strategy: object, now: float | None) -> None:
        """Record that a strategy failed now; does nothing without a clock."""
        if now is None:
            return
        key = _key(strategy)
        failures, _ = self._failures.pop(key, (0, 0.0))
        self._failures[key] = (failures + 1, now)
        _drop_oldest(self._failures)

    def record_success(self, strategy: object) -> None:
        """Forget a strategy's failures, and its summary that saved nothing."""
        if self._failures or self._no_gain:
            key = _key(strategy)
            self._failures.pop(key, None)
            self._no_gain.pop(key, None)

    def record_no_gain(self, strategy: object, tokens: int) -> None:
        """Record that a summary of groups with this many tokens was written, and would not have saved any."""
        self.record_success(strategy)
        self._no_gain[_key(strategy)] = tokens
        _drop_oldest(self._no_gain)

    def no_gain(self, strategy: object) -> int | None:
        """Return how many tokens a strategy last summarized without saving any; ``None`` if it has saved some since."""
        return self._no_gain.get(_key(strategy)) if self._no_gain else None

    def clear(self) -> None:
        """Forget all failures, for a run that a user asked for."""
        self._failures.clear()

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON-ready data: each strategy's number of failures and the time of the last, or the tokens of `no_gain`."""
        saved: dict[str, list[float]] = {key: [failures, since] for key, (failures, since) in self._failures.items()}
        return {**saved, **{key: [0, 0.0, tokens] for key, tokens in self._no_gain.items() if key not in saved}}

    @classmethod
    def from_dict(cls, data: object) -> FailurePauses:
        """Return the pauses that `to_dict` described.

        Raises:
            StateError: If the data is not what `to_dict` returned.
        """
        pauses = cls()
        try:
            for key, (failures, since, *no_gain) in cast("Mapping[str, Any]", data).items():
                if no_gain:
                    pauses._no_gain[str(key)] = natural_number(*no_gain)
                else:
                    pauses._failures[str(key)] = (natural_number(failures), finite_number(since))
        except (AttributeError, TypeError, ValueError) as error:
            raise StateError(f"pauses: not what to_dict returned ({error}); start a new session") from error
        return pauses


def _drop_oldest(known: dict[str, Any]) -> None:
    if len(known) > _MAX_STRATEGIES:
        del known[next(iter(known))]


def _key(strategy: object) -> str:
    """Return a short name for a strategy's value, the same in every process."""
    text = _ADDRESS.sub("", repr(strategy))
    return f"{type(strategy).__name__} {hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


class Notes:
    """What summarizers remember of one conversation between their rounds. Holds state: one object of each class asked for.

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
        expected_tokens: Tokens that a session preparing a summary expects to be added to the view before a strategy is due.
            They are also part of ``overhead_tokens``. The selector `last` takes them into account.
        now: The time, in seconds of any clock; ``None`` for a run without a clock.
        pauses: The pauses of strategies that failed; a session passes the same object each time.
        prepared: The summary that was written before it was due; a session passes the same object each time.
        keys: Optional keys that sign summaries, so that nobody can forge one: the first signs, all are accepted. See `Marks`.
            The command line and the gateway read them from ``COMPACTION_KEY``; a program passes them itself.
        origin: The name of the conversation, which is part of a signature.

    Raises:
        ConfigurationError: If the window is not above 0, a number of tokens is not a whole number, or a key is too short.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=whole)
    expected_tokens: int = attrs.field(default=0, validator=count())
    now: float | None = None
    pauses: FailurePauses = attrs.field(factory=FailurePauses, eq=False, repr=False)
    prepared: PreparedSummaries = attrs.field(factory=PreparedSummaries, eq=False, repr=False)
    keys: tuple[str, ...] = attrs.field(default=(), converter=_keys, repr=False)
    origin: str = ""
