"""The edits that a fork takes over: each one records how many messages had been read when it was decided."""

from __future__ import annotations

import json

from compaction import Drop, MessageIndex
from compaction.index import Saved
from tests.support.chats import Chat, said


def chat(turns: int, name: str = "") -> Chat:
    return [said(role, f"{name}{role} {number}") for number in range(turns) for role in ("user", "assistant")]


def edited() -> MessageIndex:
    """An index with one edit at six messages and one at ten."""
    index = MessageIndex(counter="chars/4")
    index.sync(chat(3))
    assert index.apply(Drop([0, 1]))
    index.sync(chat(5))
    assert index.apply(Drop([2, 3]))
    return index


def test_only_edits_that_knew_nothing_more_are_taken_over() -> None:
    """Also from a saved state; one that does not say what was known gives nothing."""
    index = edited()
    assert [applied.seen for applied in index.journal] == [6, 10]
    for count, edits in ((5, 0), (6, 1), (9, 1), (10, 2)):
        part = index.snapshot.beginning(count, chat(5)[:count])
        assert MessageIndex.from_saved(part, counter="chars/4").edit_count == edits
    data = json.loads(json.dumps(index.to_dict(messages=False)))
    assert [applied.seen for applied in Saved.read(data).journal] == [6, 10]
    for entry in data["journal"]:
        del entry["seen"]
    assert Saved.read(data).beginning(10, chat(5)).journal == ()


def test_what_a_host_changed_is_not_taken_over() -> None:
    """An edit decided with a message that was altered or removed later is not taken over by a fork."""
    index = edited()
    index.sync([*chat(5)[:8], {"role": "user", "content": "another"}])
    assert [applied.seen for applied in index.journal] == [6, None]


def test_a_list_accounts_for_the_source_or_not() -> None:
    """The list may continue the source; no message may be missing, except in the middle if the host names the conversation."""
    index, more = edited(), {"role": "user", "content": "more"}
    assert index.accounts_for([*chat(5), more])
    assert not index.accounts_for(chat(5)[:9])
    assert not index.accounts_for(chat(5)[:9], by_id=True)
    assert not index.accounts_for([*chat(5)[:6], *chat(5)[7:], more])
    assert index.accounts_for([*chat(5)[:6], *chat(5)[7:], more], by_id=True)
    assert not index.accounts_for(chat(5, "other "), by_id=True)
    assert index.changes.rewound == ()
