"""Replay of real transcripts: properties that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction.replay import Recording, replay

Corpus = Callable[[str], list[dict[str, Any]]]


@pytest.mark.parametrize("name", ["openhands", "sweagent_demos", "inspect_logs", "cassettes"])
def test_baselines_on_real_transcripts(corpus: Corpus, name: str) -> None:
    """Sending everything misses nothing and never breaks; the other baselines stay in the window and break no rule."""
    recordings = [Recording(id=each["id"], messages=each["messages"]) for each in corpus(name)[:6]]
    result = replay(recordings, window=6_000, counter="chars/4")
    assert result.skipped == ()
    for each in result.conversations:
        whole, truncated, cut = (each.runs[candidate] for candidate in ("none", "truncate", "hysteresis"))
        assert [call for call in whole.calls if call.broken or call.missing_facts] == []
        assert [share for call in whole.calls for share in call.shares.values() if share.found < share.needed] == []
        for run in (truncated, cut):
            assert run.failures == ()
            assert [call.broken_rules for call in run.calls if call.broken_rules] == []
            assert [call for call, needs in zip(run.calls, each.needs, strict=True) if call.over and needs.fits] == []
            assert all(call.cache.read + call.cache.written + call.cache.fresh == call.tokens for call in run.calls)


def test_the_adaptive_preset_on_real_transcripts(corpus: Corpus) -> None:
    """No request exceeds the window or is bad, and far more needed facts are kept than by the baseline, at a similar cost."""
    recordings = [
        Recording(id=each["id"], messages=each["messages"]) for each in [*corpus("coding_long")[:3], *corpus("openhands")]
    ]
    result = replay(recordings, ["adaptive"], window=8_000, counter="chars/4")
    ours, thumb = result.summary("adaptive"), result.summary("hysteresis")
    assert (ours.score.over, ours.score.invalid, ours.score.failures) == (0, 0, 0)
    assert (ours.macro["usable"].value or 0.0) > (thumb.macro["usable"].value or 0.0) + 0.1
    assert (ours.macro["old"].value or 0.0) > (thumb.macro["old"].value or 0.0) + 0.2
    assert (ours.macro["cost"].value or 2.0) < (thumb.macro["cost"].value or 0.0) + 0.15
