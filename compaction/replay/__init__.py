"""Replay of recorded sessions under any strategy, without a model call, to choose one by evidence.

It measures what a strategy would have cost, whether the prompt cache would have been kept, whether every request would have
been accepted, and whether each request contained what the agent needed.

>>> chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
>>> result = replay([chat], ["context_window"], window=900, counter="chars/4")
>>> recommend(result).headline
'Do not compact. The only conversation does not exceed the window of 900 tokens: not compacting is cheapest and loses nothing.'

Each figure is explained in ``docs/metrics.md``.
"""

from __future__ import annotations

from .candidate_names import strategy_names
from .candidates import Candidate, CandidateSetting
from .logs import recordings_of
from .many_conversations import replay
from .recommendation import MINIMUM_RECALL as MINIMUM_RECALL
from .recommendation import Recommendation, recommend
from .recordings import Recording
from .report import CALLS_PER_MONTH as CALLS_PER_MONTH
from .report import report_html, write_report
from .result import CandidateSummary, ReplayResult
from .scores import IntervalEstimate as IntervalEstimate
from .scores import Score as Score
from .scores import macro_average as macro_average

__all__ = [
    "Candidate",
    "CandidateSetting",
    "CandidateSummary",
    "Recommendation",
    "Recording",
    "ReplayResult",
    "recommend",
    "recordings_of",
    "replay",
    "report_html",
    "strategy_names",
    "write_report",
]
