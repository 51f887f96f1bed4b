"""The recipe that the adaptive preset started from, in the same parts: from four fifths to a half, with a small record."""

from __future__ import annotations

from compaction import Pipeline, kinds
from compaction.groups import GroupKind
from compaction.replay import Contender
from compaction.replay.contenders import NamedStart
from compaction.strategies import Clip, GrowingSummary
from compaction.triggers import tokens_exceed

__all__ = ["RECIPE"]


def recipe(window: int) -> Pipeline:
    """Large results cut on arrival; past .8 of the window the oldest go, to .5; a record of .075, parts of .025, anew at .2."""
    return Pipeline(
        Clip(tokens=int(0.35 * window), keep=kinds(GroupKind.USER)),
        GrowingSummary(
            tokens=int(0.5 * window),
            first=int(0.075 * window),
            more=int(0.025 * window),
            most=int(0.2 * window),
            least=int(0.1 * window),
            trigger=tokens_exceed(int(0.8 * window)),
            target=~tokens_exceed(int(0.5 * window)),
        ),
    )


RECIPE = Contender("recipe", NamedStart(recipe))
