"""Prices and context windows of models: configured or from a table, corrected by what the providers say."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs

from ..errors import StateError
from ..json_data import natural_number
from ..models import ModelPrices, UnknownModel, input_limit, prices_of
from ..session import LearnedWindow
from ..stores import SessionStore
from ..tokens import LengthRefusal
from .settings import GatewaySettings

_MOST: Final = 256
_LONG: Final = 1_000_000
_STEPS: Final = 4  # a window that turns out to be larger grows in quarters, because each size has sessions of its own
_SAVED_AS: Final = "gateway:windows"


@lru_cache(_MOST)
def known_prices(model: str) -> ModelPrices | None:
    """Return the prices of a model; ``None`` if no table has it. A look-up takes milliseconds, so it is made once."""
    try:
        return prices_of(model)
    except UnknownModel:
        return None


@lru_cache(_MOST)
def known_window(model: str) -> int:
    """Return the input limit of a model in tokens; 0 if no table has it."""
    try:
        return input_limit(model)
    except UnknownModel:
        return 0


@attrs.frozen
class ServedModel:
    """A model as one upstream serves it."""

    upstream: str
    model: str
    is_long: bool = False

    @property
    def window(self) -> int:
        """The table's window of the model in tokens, or that which the header asks for; 0 if the model is unknown."""
        return max(known_window(self.model), _LONG if self.is_long else 0)

    def __str__(self) -> str:
        return f"{self.model or 'unnamed model'}{' with a long context' * self.is_long} at {self.upstream}"


class UnknownWindow(Exception):
    """No table has the window of the model that a request names, and its provider has not reported it yet."""


class ModelWindows:
    """The windows of models, one for each upstream, model and header. Holds state: what was learned. Thread-safe.

    A refusal sets the window, for known models as for unknown ones. A request that was accepted although it is larger than the
    table's window raises it. What was learned is saved in the store, if there is one.
    """

    def __init__(self, settings: GatewaySettings, store: SessionStore | None) -> None:
        self._configured = settings.window
        self._store = store
        self._lock = threading.Lock()
        self._learned: dict[ServedModel, LearnedWindow] = {}
        self.publish: Callable[[list[Any]], object] | None = None  # tells other workers what was learned
        if store is not None and (state := store.load(_SAVED_AS)) is not None:
            try:
                self.learn_from(state["windows"])
            except (LookupError, TypeError, ValueError) as error:
                raise StateError(f"the saved state {_SAVED_AS!r} of the gateway is damaged ({error}); delete it") from error

    def learn_from(self, rows: Iterable[Sequence[Any]]) -> None:
        """Learn what was saved, or what another worker learned."""
        with self._lock:
            for upstream, model, long, window, accepted in rows:
                served = ServedModel(str(upstream), str(model), bool(long))
                known = self._learned.get(served, LearnedWindow())
                self._learned[served] = LearnedWindow(
                    known.window if window is None else natural_number(window), max(known.accepted, natural_number(accepted))
                )

    def of(self, served: ServedModel) -> int:
        """Return the context window of a model, in tokens; raise `UnknownWindow` if it is not known yet."""
        with self._lock:  # `_learn` takes the entry out before it puts the changed one in
            learned = self._learned.get(served, LearnedWindow())
        configured = self._configured
        if isinstance(configured, int):
            return configured if learned.window is None else min(configured, learned.window)
        if learned.window is not None:
            return learned.window
        if not served.window:
            raise UnknownWindow(served.model)
        return _grown(served.window, learned.accepted)

    def refused(self, served: ServedModel, error: LengthRefusal, tokens: int) -> None:
        """Learn from a length error of a request that had so many tokens by our count."""
        self._learn(served, tokens, error)

    def accepted(self, served: ServedModel, tokens: int) -> None:
        """Learn from a request that the provider accepted, with its tokens by the provider's count."""
        self._learn(served, tokens)

    def _learn(self, served: ServedModel, tokens: int, error: LengthRefusal | None = None) -> None:
        with self._lock:
            before = self._learned.pop(served, LearnedWindow())
            self._learned[served] = after = before.took(tokens) if error is None else before.taught(error, tokens)
            while len(self._learned) > _MOST:
                del self._learned[next(iter(self._learned))]
            rows = [[*attrs.astuple(each), learned.window, learned.accepted] for each, learned in self._learned.items()]
        if self._corrected(served, before) == self._corrected(served, after):
            return
        if self._store is not None:
            with contextlib.suppress(StateError):  # it stays in memory, and the next one saves all
                self._store.save(_SAVED_AS, {"windows": rows})
        if self.publish is not None:
            self.publish(rows)

    def learned(self) -> Mapping[str, int]:
        """Return the windows that differ from the table's, in tokens, by model and upstream in words."""
        with self._lock:
            found = {str(served): self._corrected(served, learned) for served, learned in self._learned.items()}
        return {served: window for served, window in found.items() if window is not None}

    def _corrected(self, served: ServedModel, learned: LearnedWindow) -> int | None:
        """Return the window that was learned; ``None`` if it is that of the table."""
        if learned.window is not None or self._configured != "auto":
            return learned.window
        is_above_table = 0 < served.window < learned.accepted
        return learned.accepted if is_above_table else None


def _grown(window: int, accepted: int) -> int:
    """Return the window, or if the provider accepted more tokens, the window and as many quarters of it as they need.

    >>> _grown(1_000, 900), _grown(1_000, 1_001), _grown(1_000, 1_251)
    (1000, 1250, 1500)
    """
    quarter = math.ceil(window / _STEPS)
    return window + quarter * math.ceil(max(0, accepted - window) / quarter)
