"""The pipeline that the adaptive preset started from: it cuts from four fifths of the window to half, with a small summary."""

from __future__ import annotations

from compaction import Pipeline, kinds
from compaction.index.groups import GroupKind
from compaction.replay import Candidate, CandidateSetting
from compaction.strategies import Clip, GrowingSummary
from compaction.triggers import tokens_exceed


def recipe(setting: CandidateSetting) -> Pipeline:
    """Clip large results; above .8 of the window, summarize the oldest, down to .5, in .075 to .2 of the window."""
    window = setting.window
    return Pipeline(
        Clip(tokens=int(0.35 * window), keep=kinds(GroupKind.USER)),
        GrowingSummary(
            tokens=int(0.5 * window),
            initial_tokens=int(0.075 * window),
            added_tokens=int(0.025 * window),
            max_tokens=int(0.2 * window),
            keep_tokens=int(0.1 * window),
            trigger=tokens_exceed(int(0.8 * window)),
            target=~tokens_exceed(int(0.5 * window)),
        ),
    )


RECIPE = Candidate("recipe", recipe)
