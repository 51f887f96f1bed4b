"""The index: a conversation read into groups, the edits applied to it, and the rules that every edit must obey.

These words are used in all modules of this folder:

- The *host* is the program or framework that owns the conversation.
- The *source* is the conversation as the host passed it. An *ordinal* is the position of a message in the source, from 0; a
  *place* is its position in any other list, such as the host's newest.
- The *view* is the list of messages that would be sent now. A *node* is a part of it: a source message, or a group that an edit
  inserted.
- A *known* message is one of the source, or one that an earlier view showed.
- The *outline* of a simple message is its role, text and calls, and the call that it answers; it is fast to read.
- A *late result* is one that arrives when the group of its call is no longer in the view.

How the parts fit together:

- **Groups.** `grouping` takes messages one by one and puts those that must stay together into one `MessageGroup`: a tool call
  with its results, for example. Groups are never split.
- **Edits.** A strategy yields edits, such as `Drop` or `Replace` (`edits`). `MessageIndex.apply` hands each to `editing`, which
  asks `rules` whether it is allowed, and the format whether the new neighbours are valid (`joins`). An edit that breaks a rule
  is recorded in ``refused``; any other is applied. `cuts` plans in advance which groups can be removed together, and
  `replacements` which of them one message can replace.
- **Columns and journal.** The source messages are never changed. `Columns` has all data of an index: the source, the groups,
  the view after all edits with its sizes, and the journal. The journal lists the edits that are currently applied; a position
  in it is a checkpoint. `MessageIndex.rollback` undoes the edits since a checkpoint exactly.
- **Marks.** The first line of a summary is its mark: ``[compaction 5f1c09ab by Summarization round 2]``. When a later list
  contains that message, `marks` decides whether it is read as a summary again or as an ordinary message, since anybody can
  write such a line.
- **Identity.** Many frameworks pass the whole list on each call. `identity` finds the known messages in it, and determines
  what the host added, changed or removed. `MessageIndex` adds new messages at the end, or builds the conversation again and
  repeats the edits that are still allowed.

To follow one call, begin with `message_index` and read these too:

=========================== ==================================================
``append``                  `reading`, `grouping`, `columns`
``apply``, ``rollback``     `editing`, `rules`, `joins`
``steps``                   `cuts`
``replaceable``             `replacements`
``sync``                    `identity`, `alignment`, then `editing`
``forget``                  `forgetting`
``to_dict``, ``from_dict``  `state`
``dry_run``                 `dry_runs`
=========================== ==================================================
"""

from __future__ import annotations

from .context import Notes, PreparedSummaries, PreparedSummary, RunContext
from .dry_runs import CutWorth, dry_run
from .editing import Refusals
from .edits import EDITS, Drop, Edit, Refusal, Replace, Rewrite, Together, named, rewritten_parts, simple_edits, written
from .grouping import Grouping
from .groups import NO_CALL, GroupKind, MessageGroup, asks_user, collapsed_text, only_reasoning
from .identity import HostChanges, as_given, same_beginning
from .joins import opening
from .keys import UNKNOWN_KEY, known_key, lookup_key
from .marks import COLLAPSED_BY, DEFAULT_CEILING, LAST_ROUND, MARK_START, MarkCeiling, Marks, marked, read_mark
from .message_index import MessageIndex
from .metrics import Metrics
from .pauses import RunHistory, UselessRuns
from .relay import PASS_ON, Drops, Request, RunReport, StepReport, relay, steps_of, unawaited, unknown
from .state import Saved

__all__ = [
    "COLLAPSED_BY",
    "DEFAULT_CEILING",
    "EDITS",
    "LAST_ROUND",
    "MARK_START",
    "NO_CALL",
    "PASS_ON",
    "UNKNOWN_KEY",
    "CutWorth",
    "Drop",
    "Drops",
    "Edit",
    "GroupKind",
    "Grouping",
    "HostChanges",
    "MarkCeiling",
    "Marks",
    "MessageGroup",
    "MessageIndex",
    "Metrics",
    "Notes",
    "PreparedSummaries",
    "PreparedSummary",
    "Refusal",
    "Refusals",
    "Replace",
    "Request",
    "Rewrite",
    "RunContext",
    "RunHistory",
    "RunReport",
    "Saved",
    "StepReport",
    "Together",
    "UselessRuns",
    "as_given",
    "asks_user",
    "collapsed_text",
    "dry_run",
    "known_key",
    "lookup_key",
    "marked",
    "named",
    "only_reasoning",
    "opening",
    "read_mark",
    "relay",
    "rewritten_parts",
    "same_beginning",
    "simple_edits",
    "steps_of",
    "unawaited",
    "unknown",
    "written",
]
