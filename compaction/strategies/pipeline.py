"""Strategies in a row: each sees what the one before it left."""

from __future__ import annotations

import attrs

from ..index import MessageIndex
from .base import Steps, Strategy, StrategyLike, as_strategy

__all__ = ["Pipeline"]


@attrs.frozen(init=False, repr=False)
class Pipeline(Strategy):
    """Runs every step in order, each by its own trigger; gentlest first.

    A pipeline is a strategy, and an empty one does nothing.

    Args:
        steps: Strategies or plain functions; a pipeline among them is taken apart.

    >>> from compaction.strategies import ClearReasoning, SelectiveToolCall
    >>> ClearReasoning() >> SelectiveToolCall() == Pipeline(ClearReasoning(), SelectiveToolCall())
    True
    """

    steps: tuple[Strategy, ...]

    def __init__(self, *steps: StrategyLike) -> None:
        flat: list[Strategy] = []
        for step in map(as_strategy, steps):
            flat.extend(step.steps if isinstance(step, Pipeline) else (step,))
        object.__setattr__(self, "steps", tuple(flat))

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    def __call__(self, index: MessageIndex) -> Steps:
        for step in self.steps:
            yield from step(index)
