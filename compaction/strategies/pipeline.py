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

    A pipeline is a strategy, and an empty one does nothing. With a trigger or a target it is one step: the trigger is asked
    once, all steps run if it fires, although the first may already have won enough, and the whole is judged by ``target``,
    not each step by its own.

    Args:
        steps: Strategies or plain functions; a pipeline without trigger and target among them is taken apart.
        trigger: When to run at all.
        target: What the whole is judged by; by default that the trigger rests.

    >>> from compaction.strategies import ClearReasoning, SelectiveToolCall
    >>> ClearReasoning() >> SelectiveToolCall() == Pipeline(ClearReasoning(), SelectiveToolCall())
    True
    """

    steps: tuple[Strategy, ...]
    trigger: Trigger
    target: Trigger

    def __init__(self, *steps: StrategyLike, trigger: TriggerLike = always, target: TriggerLike | None = None) -> None:
        flat: list[Strategy] = []
        for step in map(as_strategy, steps):
            flat.extend(step.steps if isinstance(step, Pipeline) and step.is_plain else (step,))
        object.__setattr__(self, "steps", tuple(flat))
        object.__setattr__(self, "trigger", as_trigger(trigger))
        object.__setattr__(self, "target", ~self.trigger if target is None else as_trigger(target))

    def __repr__(self) -> str:
        trigger = [] if self.trigger == always else [f"trigger={self.trigger!r}"]
        target = [] if self.target == ~self.trigger else [f"target={self.target!r}"]
        return f"Pipeline({', '.join([*map(repr, self.steps), *trigger, *target])})"

    @property
    def is_plain(self) -> bool:
        """Whether it is no more than its steps in a row."""
        return self.trigger == always and self.target == never

    def __call__(self, index: MessageIndex) -> Steps:
        if self.is_plain:
            for step in self.steps:
                yield from step(index)
        elif self.trigger(index):
            yield StepBegan(self, self.trigger.explain(index))
            for step in self.steps:
                yield from step(index)
            yield StepEnded(self, self.target, self.target == never or self.target(index))

    def forced(self, focus: str | None = None) -> Strategy:
        return Pipeline(*(step.forced(focus) for step in self.steps))
