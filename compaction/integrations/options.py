"""The options that every framework integration takes: the strategy, the counter, the window, and what happens on failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypedDict

import attrs

from ..checks import count, one_of
from ..messages import Message
from ..models import input_limit
from ..result import CompactionResult, Observer
from ..session import BackgroundTasks, OnEvent
from ..strategies import Strategy, as_strategy
from ..tokens import TokenCounter
from ..triggers import TriggerLike

OnStrategyFailure: TypeAlias = Literal["uncompacted", "raise"]
"""The effect of a strategy's error on the agent's run: it continues with the last good view, or it fails."""


class CommonOptions(TypedDict, total=False):
    """The fields of `IntegrationOptions` except the strategy, as keyword arguments, for editors and type checkers.

    An integration takes ``**options: Unpack[CommonOptions]`` and makes `IntegrationOptions` of them; a test compares the two.
    """

    counter: TokenCounter | str
    window: int | Literal["auto"] | None
    overhead_tokens: int
    pin: Callable[[Message], bool] | None
    clock: Callable[[], float] | None
    on_failure: OnStrategyFailure
    on_result: Callable[[CompactionResult], object] | None
    on_step: Observer | None
    on_event: OnEvent | None
    ahead: TriggerLike | None
    tasks: BackgroundTasks | None


def _window(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value not in (None, "auto"):
        count(1)(instance, attribute, value)


@attrs.frozen(kw_only=True)
class IntegrationOptions:
    """The options that every integration takes besides its own arguments.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        counter: A token counter or the name of one.
        window: Tokens of the model's context window, for `context_exceeds`; or ``"auto"``, for the input limit of the model
            whose name the framework gives; see `compaction.models.input_limit`.
        overhead_tokens: Tokens of every request that the framework does not show to the integration, >= 0.
        pin: A predicate of messages; the groups of those it accepts are kept unchanged.
        clock: Returns seconds, for `idle_for` and for pauses after a summarizer failed. ``None`` for no clock and no pauses.
        on_failure: ``"uncompacted"``: if the strategy raises, the run continues with the last good view and the result reports
            it; ``"raise"``: the run fails.
        on_result: Called with the result of each run of the strategy, whether anything changed or not.
        on_step: Called after each strategy that ran, with its `Step`.
        on_event: Receives the events of the sessions, see `compaction.session`.
        ahead: When to request a summary in the background, before the strategy is due, so that no request waits.
        tasks: Runs the background requests of ``ahead``: the application's ``BackgroundTasks``.

    >>> from compaction import presets
    >>> IntegrationOptions(strategy=presets.context_window(32_000)).on_failure
    'uncompacted'
    """

    strategy: Strategy = attrs.field(converter=as_strategy)
    counter: TokenCounter | str = "auto"
    window: int | Literal["auto"] | None = attrs.field(default=None, validator=_window)
    overhead_tokens: int = attrs.field(default=0, validator=count())
    pin: Callable[[Message], bool] | None = None
    clock: Callable[[], float] | None = time.time
    on_failure: OnStrategyFailure = attrs.field(default="uncompacted", validator=one_of("uncompacted", "raise"))
    on_result: Callable[[CompactionResult], object] | None = None
    on_step: Observer | None = None
    on_event: OnEvent | None = None
    ahead: TriggerLike | None = None
    tasks: BackgroundTasks | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> IntegrationOptions:
        """Return the options themselves: they do not change, and a summarizer's client or a callback is shared by copies."""
        return self

    def window_of(self, model: str | None) -> int | None:
        """Return the tokens a request may have: the option ``window``, or with ``"auto"`` the input limit of a model.

        Args:
            model: The model's name as the framework gives it; ``None`` while it is not known.

        Raises:
            UnknownModel: With ``"auto"``, if no table knows the model.

        >>> from compaction import presets
        >>> options = IntegrationOptions(strategy=presets.token_budget(8_000), window="auto")
        >>> options.window_of("gpt-5"), options.window_of(None)
        (272000, None)
        """
        if self.window == "auto":
            return None if model is None else input_limit(model)
        return self.window
