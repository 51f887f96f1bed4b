"""The context windows of models: the configured one or that of the table, corrected by what the providers say."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import StateError
from ..json_data import natural_number
from ..session import LearnedWindow
from ..stores import SessionStore
from ..tokens import LengthError
from .known_models import known_window
from .settings import GatewaySettings

if TYPE_CHECKING:
    from .conversations import ConversationRequest

_MOST: Final = 256
_LONG: Final = 1_000_000
_STEPS: Final = 4  # of a table's window: a larger one is assumed in such steps, since each has sessions of its own
_SAVED_AS: Final = "gateway:windows"

_Key: TypeAlias = "tuple[str, str, bool]"


class UnknownWindow(Exception):
    """No table has the window of the model that a request names, and its provider has not reported it yet."""


class ModelWindows:
    """The windows of models, one for each upstream, model and header. Holds state: what was learned. Thread-safe.

    A refusal sets the window, for known models as for unknown ones. A request that was accepted although it is larger than the
    table's window raises it. What was learned is saved in the store.

    Args:
        settings: The gateway's settings.
        store: Where to keep what was learned; ``None`` to keep it in memory only.
    """

    def __init__(self, settings: GatewaySettings, store: SessionStore | None = None) -> None:
        self._configured = settings.window
        self._store = store
        self._lock = threading.Lock()
        self._learned: dict[_Key, LearnedWindow] = {}
        if store is not None and (state := store.load(_SAVED_AS)) is not None:
            self._learned = {
                (str(upstream), str(model), bool(long)): LearnedWindow(
                    window and natural_number(window), natural_number(accepted)
                )
                for upstream, model, long, window, accepted in state["windows"]
            }

    def of(self, request: ConversationRequest) -> int:
        """Return the context window of a request, in tokens.

        Raises:
            UnknownWindow: If no table has the model, and its provider has not reported the window.
        """
        learned = self._learned.get(_key(request), LearnedWindow())
        if self._configured != "auto":
            return self._configured if learned.window is None else min(self._configured, learned.window)
        if learned.window is not None:
            return learned.window
        known = max(known_window(request.model) or 0, _LONG if request.is_long else 0)
        if not known:
            raise UnknownWindow(request.model)
        step = max(1, known // _STEPS)
        return known + step * max(0, -((known - learned.accepted) // step))

    def refused(self, request: ConversationRequest, error: LengthError, tokens: int) -> None:
        """Learn from a length error.

        Args:
            request: The request.
            error: What the error says.
            tokens: The tokens of the refused request, by our count.
        """
        self._learn(_key(request), lambda known: known.taught(error, tokens))

    def accepted(self, request: ConversationRequest, tokens: int) -> None:
        """Learn from a request that the provider accepted, with its tokens by the provider's count."""
        try:
            if tokens <= self.of(request):
                return
        except UnknownWindow:
            return
        self._learn(_key(request), lambda known: known.took(tokens))

    def _learn(self, key: _Key, change: Any) -> None:
        with self._lock:
            self._learned[key] = change(self._learned.pop(key, LearnedWindow()))
            while len(self._learned) > _MOST:
                del self._learned[next(iter(self._learned))]
            rows = [[*each, learned.window, learned.accepted] for each, learned in self._learned.items()]
        if self._store is not None:
            with contextlib.suppress(StateError):  # it stays in memory, and the next one saves all
                self._store.save(_SAVED_AS, {"windows": rows})

    def learned(self) -> Mapping[str, int]:
        """Return the windows that were learned, in tokens, by model and upstream in words."""
        with self._lock:
            known = list(self._learned.items())
        return {
            f"{model or 'unnamed model'}{' with a long context' * long} at {upstream}": found.window or found.accepted
            for (upstream, model, long), found in known
        }


def _key(request: ConversationRequest) -> _Key:
    return request.upstream, request.model, request.is_long
