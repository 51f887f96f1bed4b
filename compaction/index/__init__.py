"""The index: a conversation read into groups, the edits applied to it, and the rules every edit must keep."""

from __future__ import annotations

from .alignment import digest_of as digest_of
from .columns import Metrics
from .context import FailurePauses as FailurePauses
from .context import PreparedSummaries as PreparedSummaries
from .context import PreparedSummary as PreparedSummary
from .context import RunContext
from .edits import PASS_ON as PASS_ON
from .edits import Drop, Edit, Refusal, Replace, Request, Restore, Rewrite, Together
from .edits import brief as brief
from .edits import named as named
from .edits import relay as relay
from .edits import signature as signature
from .edits import written as written
from .fingerprints import fingerprint as fingerprint
from .forgetting import occurrences as occurrences
from .grouping import Grouping as Grouping
from .groups import GroupKind, MessageGroup
from .groups import only_reasoning as only_reasoning
from .joins import opening as opening
from .marks import COLLAPSED_BY as COLLAPSED_BY
from .marks import DEFAULT_CEILING as DEFAULT_CEILING
from .marks import LAST_ROUND as LAST_ROUND
from .marks import MARK_START as MARK_START
from .marks import NO_CALL as NO_CALL
from .marks import Mark as Mark
from .marks import MarkCeiling as MarkCeiling
from .marks import Marks as Marks
from .marks import collapsed_text as collapsed_text
from .marks import marked as marked
from .marks import read_mark as read_mark
from .message_index import MessageIndex
from .state import Saved as Saved
from .sync import HostChanges as HostChanges

__all__ = [
    "Drop",
    "Edit",
    "GroupKind",
    "MessageGroup",
    "MessageIndex",
    "Metrics",
    "Refusal",
    "Replace",
    "Request",
    "Restore",
    "Rewrite",
    "RunContext",
    "Together",
]
