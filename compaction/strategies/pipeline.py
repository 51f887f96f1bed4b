"""Strategies in a row: each sees what the one before it left."""

from __future__ import annotations

import attrs

from ..index import MessageIndex
from ..triggers import Trigger, TriggerLike, always, as_trigger, never
from .base import StepBegan, StepEnded, Steps, Strategy, StrategyLike, as_strategy

__all__ = ["Pipeline"]


@attrs.frozen(init=False, repr=False)
class Pipeline(Strategy):
    """Runs every step in order, each by its own trigger; gentlest first.

    A pipeline is a strategy, and an empty one does nothing. With a trigger it is one step to an observer: the trigger is asked once,
    and all steps run if it fires, although the first of them may already have won enough.

    Args:
        steps: Strategies or plain functions; a pipeline without a trigger among them is taken apart.
        trigger: When to run at all.

    >>> from compaction.strategies import ClearReasoning, SelectiveToolCall
    >>> ClearReasoning() >> SelectiveToolCall() == Pipeline(ClearReasoning(), SelectiveToolCall())
    True
    """

    steps: tuple[Strategy, ...]
    trigger: Trigger

    def __init__(self, *steps: StrategyLike, trigger: TriggerLike = always) -> None:
        flat: list[Strategy] = []
        for step in map(as_strategy, steps):
            flat.extend(step.steps if isinstance(step, Pipeline) and step.trigger == always else (step,))
        object.__setattr__(self, "steps", tuple(flat))
        object.__setattr__(self, "trigger", as_trigger(trigger))

    def __repr__(self) -> str:
        trigger = () if self.trigger == always else (f"trigger={self.trigger!r}",)
        return f"Pipeline({', '.join([*map(repr, self.steps), *trigger])})"

    def __call__(self, index: MessageIndex) -> Steps:
        if self.trigger == always:
            for step in self.steps:
                yield from step(index)
        elif self.trigger(index):
            yield StepBegan(self, self.trigger.explain(index))
            for step in self.steps:
                yield from step(index)
            target = ~self.trigger
            yield StepEnded(self, target, target == never or target(index))

    def forced(self, focus: str | None = None) -> Strategy:
        return Pipeline(*(step.forced(focus) for step in self.steps))
