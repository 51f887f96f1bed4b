"""Token counting: counters for texts, the measuring of whole messages, and the usage that providers report.

>>> from compaction.tokens import counter
>>> counter("chars/4").count_text("How long is this?")
5
"""

from __future__ import annotations

from .base import TokenCounter
from .base import least_bytes_per_token as least_bytes_per_token
from .estimate import ByteClassEstimate, BytesPerToken, CharsPerToken, EstimateWarning
from .length_errors import LengthRefusal, is_too_long
from .length_errors import is_quoted as is_quoted
from .memo import Memoized
from .meter import MessageMeter
from .resolve import counter
from .tiktoken_counter import TiktokenCounter
from .toktok_counter import ToktokCounter
from .usage import Usage

__all__ = [
    "ByteClassEstimate",
    "BytesPerToken",
    "CharsPerToken",
    "EstimateWarning",
    "LengthRefusal",
    "Memoized",
    "MessageMeter",
    "TiktokenCounter",
    "TokenCounter",
    "ToktokCounter",
    "Usage",
    "counter",
    "is_too_long",
]
