"""Replay recorded sessions under any strategy, without a model call, to choose one by evidence and not by feel.

It answers what a strategy would have cost, whether the prompt cache would have survived, whether every request would have been
taken, and whether the agent would still have had what it needed.

>>> chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
>>> result = replay([chat], ["context_window"], window=8_000, counter="chars/4")
>>> recommend(result).reasons
('None of the 1 conversations exceeds the window of 8,000 tokens: not compacting is cheapest, and loses nothing.',)

What each figure means is in ``docs/metrics.md``.
"""

from __future__ import annotations

from .contenders import Contender, Deed, Player, Setting
from .intervals import Estimate
from .names import contender_of, strategy_names
from .prices import ModelPrices, UnknownModel, prices_of, unpriced
from .recommending import Recommendation, recommend
from .recording import Recording
from .records import Break, CallRecord, ConversationRecord, Run, Survival
from .replaying import replay
from .result import MEASURES, ReplayResult, Summary
from .scores import Score, Share
from .transcript import Fact, Needs

__all__ = [
    "MEASURES",
    "Break",
    "CallRecord",
    "Contender",
    "ConversationRecord",
    "Deed",
    "Estimate",
    "Fact",
    "ModelPrices",
    "Needs",
    "Player",
    "Recommendation",
    "Recording",
    "ReplayResult",
    "Run",
    "Score",
    "Setting",
    "Share",
    "Summary",
    "Survival",
    "UnknownModel",
    "contender_of",
    "prices_of",
    "recommend",
    "replay",
    "strategy_names",
    "unpriced",
]
