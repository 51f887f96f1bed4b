"""`SessionSaver` saves sessions; `ProviderReports` and `LearnedWindow` store the provider's token usage and window."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..errors import ConfigurationError, StateError
from ..index import RunHistory
from ..json_data import natural_number, shown
from ..result import CompactionResult
from ..strategies import Failed
from ..tokens import LengthError, Usage, UsageAnchor

_MOST_RATIO: Final = 3  # the largest ratio of the provider's token count of the messages to ours; chosen, not measured
# If an error names no limit, the window is assumed to be this share of the refused request. Chosen, not measured.
_WITHOUT_FIGURES: Final = 0.75


@attrs.frozen
class LearnedWindow:
    """The window of one model at one endpoint, learned from its errors and usage reports.

    Args:
        window: Tokens of the window by the provider's count; ``None`` if no request was refused.
        accepted: Tokens of the largest accepted request. The learned window is at least this.
    """

    window: int | None = None
    accepted: int = 0

    def taught(self, error: LengthError, tokens: int) -> LearnedWindow:
        """Return the window after a request of ``tokens`` was refused."""
        window = int(tokens * _WITHOUT_FIGURES) if error.window is None else error.window
        return attrs.evolve(self, window=max(1, window, self.accepted))

    def took(self, tokens: int) -> LearnedWindow:
        """Return the window after a request of ``tokens`` was accepted."""
        if tokens <= self.accepted:
            return self
        return LearnedWindow(None if self.window is None else max(self.window, tokens), tokens)


@attrs.frozen(eq=False)
class SentView:
    """The last view of a session.

    Args:
        view: The messages; none if there is no view, or it must be forgotten.
        tokens: Its tokens by our count, without overhead.
        messages: The number of messages of the conversation.
    """

    view: Sequence[Any] = ()
    tokens: int = 0
    messages: int = 0


class ProviderReports:
    """The provider's figures for one session. Holds state: the last view, the usage anchor, the learned window.

    Attributes:
        anchor: Corrects our counts with the last report; ``None`` before the first report.
        learned: The learned window.
        sent: The last view.
    """

    def __init__(self) -> None:
        self.anchor: UsageAnchor | None = None
        self.learned = LearnedWindow()
        self.sent = SentView()

    def window(self, configured: int | None) -> int | None:
        """Return the smaller of the configured and the learned window; ``None`` if both are unknown."""
        return min((each for each in (configured, self.learned.window) if each is not None), default=None)

    def record(self, usage: Usage, view: Sequence[Any] | None) -> bool:
        """Record a usage report and return true; return false if it belongs to an older view or is implausible."""
        if view is not None and not _is_same_list(view, self.sent.view):
            return False
        return self.record_for(usage, self.sent.tokens)

    def record_for(self, usage: Usage, counted: int) -> bool:
        """Record the usage of a request whose messages have ``counted`` tokens by our count; false if it is implausible."""
        if not usage.is_plausible(counted):
            return False
        self.anchor = UsageAnchor.from_usage(usage, counted, with_reply=False)
        self.learned = self.learned.took(usage.prompt_tokens)
        return True

    def refused(self, error: LengthError, counted: int, overhead: int) -> int:
        """Record a length error, and return the tokens of the refused request.

        Assumption: the provider's count is an overhead plus a factor times our count of the messages, and the factor is at most
        3. This gives the largest number of tokens, by our count, that fits. The anchor is set so that a request of that size
        counts as exactly the window.

        Args:
            error: The error.
            counted: Tokens of the request by our count.
            overhead: Tokens of the request outside its messages, as known so far.
        """
        own = self.sent.tokens or max(1, counted - overhead)  # our count of the messages
        tokens = error.tokens or max(counted, (error.window or 0) + 1)
        self.learned = self.learned.taught(error, tokens)
        window = self.learned.window or tokens
        beside = min(max(0, overhead), tokens - 1)  # the overhead
        beside = max(beside, tokens - _MOST_RATIO * own)
        fits = (window - beside) * own // (tokens - beside)  # the most tokens, by our count, that fit beside it
        self.anchor = UsageAnchor(window - max(0, fits))
        return tokens


def _is_same_list(view: Sequence[Any], sent: Sequence[Any]) -> bool:
    return view is sent or (len(view) == len(sent) and all(map(operator.is_, view, sent)))


if TYPE_CHECKING:
    from ..stores import SessionStore


_VERSION: Final = 1  # the version of the data that CompactionSession.to_dict returns


class SessionSaver:
    """Saves one session. If saving fails, this is reported, and the next turn tries again. Holds state: unsaved changes.

    Args:
        store: The store; ``None`` to save nothing.
        id: The session's name in the store.
        state: Returns the session as JSON-ready data.
        on_failure: Called with each failure.

    Attributes:
        store: The store.
        failure: The failure of the last save; ``None`` if it succeeded.
    """

    def __init__(
        self, store: SessionStore | None, id: str, state: Callable[[], dict[str, Any]], on_failure: Callable[[Failed], object]
    ) -> None:
        if store is not None and not hasattr(store, "load"):
            raise ConfigurationError(f"store={store!r}: must be a store; write store=SessionStore({store!r})")
        self.store = store
        self._id = id
        self._state = state
        self._on_failure = on_failure
        self._changes = self._saved = 0
        self.failure: Failed | None = None

    def changed(self) -> None:
        """Note that the session changed, so that the next `save` saves it."""
        self._changes += 1

    def save(self, anchor: int | None = None) -> None:
        """Save the unsaved changes: the whole session, or only a new usage anchor."""
        changes = self._changes
        whole = changes != self._saved
        if self.store is None or not (whole or anchor is not None):
            return
        try:
            if whole or anchor is None or not self.store.save_anchor(self._id, anchor):
                self.store.save(self._id, self._state())
        except Exception as error:
            failed = Failed(type(self.store).__name__, error, "the session is not saved; the next turn tries again")
            self.failure = failed.logged()
            self._saved = changes - 1
            self._on_failure(failed)
        else:
            self._saved, self.failure = changes, None

    def reported(self, result: CompactionResult) -> CompactionResult:
        """Return the result, with the failure to save added if there is one."""
        return result if self.failure is None else result.with_failures(self.failure)


def reports_to_dict(anchor: UsageAnchor | None, learned: LearnedWindow) -> dict[str, Any]:
    """Return the usage anchor and the learned window as JSON-ready data."""
    return {"anchor": None if anchor is None else anchor.offset, "learned": [learned.window, learned.accepted]}


@attrs.frozen(kw_only=True)
class SavedSession:
    """The saved state of a session.

    Args:
        index: The saved index.
        anchor: The usage anchor, if usage was reported.
        learned: The learned window.
        compactions: The number of runs that changed the view.
        pauses: The history of runs: failures, and summaries that saved nothing.
    """

    index: dict[str, Any]
    anchor: UsageAnchor | None
    learned: LearnedWindow
    compactions: int
    pauses: RunHistory

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {
            "version": _VERSION,
            "index": self.index,
            **reports_to_dict(self.anchor, self.learned),
            "compactions": self.compactions,
            "pauses": self.pauses.to_dict(),
        }

    @classmethod
    def read(cls, data: object) -> SavedSession:
        """Return the state from data that `to_dict` returned.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        known: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
        version = known.get("version")
        if version != _VERSION:
            remedy = f"this release reads version {_VERSION}; upgrade, or start a new session"
            raise StateError(f"the saved session has version={shown(version)}: {remedy}")
        anchor: object = known.get("anchor")
        try:
            compactions = natural_number(known.get("compactions", 0))
            if type(anchor) not in (int, type(None)):
                raise TypeError(f"anchor={shown(anchor)}")
            window, accepted = known.get("learned", (None, 0))
            learned = LearnedWindow(None if window is None else max(1, natural_number(window)), natural_number(accepted))
        except (TypeError, ValueError) as error:
            remedy = "start a new session; the conversation itself is not affected"
            raise StateError(f"the saved session is corrupt ({error}); {remedy}") from error
        return cls(
            index=cast("dict[str, Any]", known.get("index")),
            anchor=None if anchor is None else UsageAnchor(cast("int", anchor)),
            learned=learned,
            compactions=compactions,
            pauses=RunHistory.from_dict(known.get("pauses", {})),
        )
