"""The counts behind the page: of all requests, of each conversation, and of several workers as one."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from compaction import CompactionResult, Drop, Replace, Together, compact_sync
from compaction.formats import openai_chat
from compaction.gateway.status import ConversationStatus, GatewaySnapshot, GatewayStatus, merged
from compaction.session import CacheBroken, Compacted, Evicted, Overflowed, SaveFailed, StepFailed
from compaction.strategies import Failed
from compaction.tokens import Usage
from tests.support.gateways import settings_of, turn_of

WORDS = "word " * 2_000
TOTALS = (
    *("requests", "tokens_saved", "tokens_lost", "dollars_saved", "dollars_lost", "seconds_total"),
    *("prompt_tokens", "cached_tokens", "completion_tokens"),
)


def status_of(clock: Any, *, limit: int = 9, shows_texts: bool = False) -> GatewayStatus:
    token = None if shows_texts else "t"
    return GatewayStatus(settings_of("http://127.0.0.1:9", clock=clock, most_conversations=limit, token=token))


def snapshot_of(status: GatewayStatus, *left_alone: str) -> GatewaySnapshot:
    return status.snapshot(held=(0, 0), windows={}, left_alone=left_alone)


def report(status: GatewayStatus, *sessions: str, usage: Usage | None = None) -> None:
    for session in sessions:
        status.note_request(turn_of(session), is_changed=True, seconds=0.5, usage=usage)


def cut(*edits: Any) -> CompactionResult:
    roles = ("user", "assistant") * 4
    messages = [{"role": role, "content": f"{place} " * 900} for place, role in enumerate(roles)]
    return compact_sync([*messages, {"role": "user", "content": "go on"}], lambda index: iter(edits), counter="chars/4")


def summary(text: str, *groups: int) -> Replace:
    """An edit that puts a text in the place of groups."""
    return Replace(groups, [openai_chat.read({"role": "user", "content": text})], reason="old")


def test_the_oldest_conversations_leave_the_page() -> None:
    """The page has the most recently used ones first, and forgets the cuts of those that left."""
    status = status_of(lambda: 5.0, limit=2, shows_texts=True)
    status.note_event(Compacted(session="a", result=cut(Drop([1, 2], reason="old"))))
    report(status, "a", "b", "a")
    assert [(each.id, each.requests, len(each.cuts)) for each in snapshot_of(status).conversations] == [
        ("a", 2, 1),
        ("b", 1, 0),
    ]
    report(status, "c", "b", "a")
    assert [(each.id, each.requests, len(each.cuts)) for each in snapshot_of(status).conversations] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]
    assert snapshot_of(status).totals["requests"] == 6


def test_what_a_request_adds() -> None:
    """Figures of a conversation are sums or the newest ones; the longest time and the first time stay."""
    now = [100.0]
    status = status_of(lambda: now[0])
    turn = attrs.evolve(turn_of("s", model="gpt-5.4"), failures=("a", "b"), left_out=2_000_000)
    status.note_request(turn, is_changed=True, seconds=2.0, usage=Usage(900, 7, cached_tokens=500))
    now[0] += 9.0
    turn = attrs.evolve(turn, failures=("a",))
    status.note_request(turn, is_changed=False, seconds=0.5, usage=None)
    snapshot = snapshot_of(status)
    assert snapshot.conversations == (
        ConversationStatus(
            id="s",
            route="chat",
            model="gpt-5.4",
            upstream="u",
            window=9_000,
            tokens=700,
            requests=2,
            first_at=100.0,
            last_at=109.0,
            tokens_saved=2_000_000,
            dollars_saved=0.5,
            prompt_tokens=900,
            cached_tokens=500,
            completion_tokens=7,
            most_seconds=2.0,
            seconds_total=2.5,
            failures={"a": 2, "b": 1},
        ),
    )
    assert snapshot.totals == {"cuts": 0} | {name: getattr(snapshot.conversations[0], name) for name in TOTALS}
    status.note_event(CacheBroken(session="s", tokens=400_000, why="compaction"))
    status.note_request(turn, is_changed=False, seconds=0.0, usage=Usage(400_033, 1))
    (found,) = snapshot_of(status).conversations
    assert (found.tokens, found.dollars_lost) == (400_033, 0.4 * (2.5 - 0.25))


@pytest.mark.parametrize(
    ("usage", "lost"), [(None, 50), (Usage(900, 1, cached_tokens=880), 20), (Usage(9, 1, cached_tokens=10), 0)]
)
def test_a_broken_cache_costs_what_was_not_read_from_it(usage: Usage | None, lost: int) -> None:
    """The loss is at most what the session says, is that of one request, and stands with the newest cut too."""
    status = status_of(lambda: 0.0)
    for _ in range(2):
        status.note_event(Compacted(session="s", result=cut(Drop([1, 2], reason="old"))))
    status.note_event(CacheBroken(session="s", tokens=50, why="compaction"))
    report(status, "s", "s", usage=usage)
    (found,) = snapshot_of(status).conversations
    assert (found.tokens_lost, [each.tokens_lost for each in found.cuts]) == (lost, [0, lost])


def test_a_cut_says_what_left_and_what_came_instead() -> None:
    """Only the newest cut has a text: all summaries that were written, up to 8,000 characters."""
    status = status_of(lambda: 5.0, shows_texts=True)
    edits = [summary("One.", 0, 1), Together(summary("Two.", 2, 3), Drop([4, 5], reason="old"), reason="both")]
    first, second = cut(*edits), cut(summary(WORDS, 0, 1, 2, 3, 4, 5, 6, 7))
    for result, text in ((first, "One.\n\nTwo."), (second, "")):
        status.note_event(Compacted(session="s", result=result))
        report(status, "s")
        found = snapshot_of(status).conversations[0].cuts[0]
        assert (found.summary, found.at) == (text, 5.0)
    older, newest = snapshot_of(status).conversations[0].cuts
    assert older.edits == {"Replace: old": 1, "Together: both": 1}
    assert older.left == {"messages": 4, "turns": 3}
    assert (newest.tokens_before, newest.tokens_after) == (second.before.tokens, second.after.tokens)
    assert newest.summary == WORDS[:8_000]
    assert snapshot_of(status).totals["cuts"] == 2


def test_cuts_and_reasons_are_bounded() -> None:
    """The last fifty cuts of a conversation, twenty kinds of its edits, and a hundred reasons; others count as one."""
    status = status_of(lambda: 0.0)
    result = cut(Drop([1, 2], reason="old"))
    many = attrs.evolve(result, edits=tuple(Drop([1], reason=f"{number}") for number in range(30)))
    for _ in range(60):
        status.note_event(Compacted(session="s", result=many))
    report(status, "s")
    cuts = snapshot_of(status).conversations[0].cuts
    assert (len(cuts), len(cuts[0].edits)) == (50, 20)
    for number in range(102):
        for _ in range(2):
            status.passed(f"{number}")
    passed = snapshot_of(status).passed_through
    assert (len(passed), passed["99"], passed["other"]) == (101, 2, 4)


def test_failures_are_counted_by_their_kind() -> None:
    """A session's events say what failed; what it said of a conversation leaves with it."""
    status, failure = status_of(lambda: 0.0), Failed("Summarization", TimeoutError("a secret"), "drop")
    status.note_event(StepFailed(session="s", failure=failure))
    status.note_event(SaveFailed(session="s", failure=failure))
    status.note_event(Overflowed(session="s", tokens=1, window=None, error=failure.error))
    assert snapshot_of(status).failures == {"Summarization: TimeoutError": 2, "too long for the upstream": 1}
    for gone in (lambda: status.note_event(Evicted(session="s", why="count", is_saved=False)), lambda: status.forget("s")):
        status.note_event(Compacted(session="s", result=cut(Drop([1, 2], reason="old"))))
        status.note_event(CacheBroken(session="s", tokens=50, why="compaction"))
        gone()
        report(status, "s")
        (found,) = snapshot_of(status).conversations
        assert (found.cuts, found.tokens_lost) == ((), 0)
    assert (status.forget("s"), status.forget("s"), snapshot_of(status).conversations) == (True, False, ())


def test_a_conversation_may_be_left_alone_for_a_while() -> None:
    status = status_of(lambda: 0.0)
    report(status, "s", "t")
    for alone in (("s", "gone"), ()):
        assert [each.is_left_alone for each in snapshot_of(status, *alone).conversations] == [False, "s" in alone]


def test_nothing_is_counted_before_the_first_request() -> None:
    """All counts are zero, and no texts are shown unless that is asked for."""
    status = status_of(lambda: 0.0)
    assert not any(value for name, value in snapshot_of(status).to_dict().items() if name != "totals")
    assert set(snapshot_of(status).totals.values()) == {0}
    empty = GatewaySnapshot(started_at=0.0, at=0.0, conversations=(ConversationStatus(id=""),)).to_dict()
    assert not any(empty["conversations"][0].values())
    assert not any(value for name, value in empty.items() if name != "conversations")
    status.note_event(Compacted(session="s", result=cut(summary("One.", 0, 1))))
    report(status, "s")
    (found,) = snapshot_of(status).conversations[0].cuts
    assert (found.summary, found.left) == ("", {"messages": 1, "turns": 1})


def test_several_workers_are_shown_as_one() -> None:
    """Counts are added, key by key, and conversations are in one order; a single snapshot is itself."""
    one, other = (
        GatewaySnapshot(
            started_at=10.0 - number,
            at=20.0,
            requests={("chat", 200): 3, ("chat", 400 + number): 1},
            passed_through={"signed": 1},
            failures={f"f{number}": 1},
            retries={"length": 2},
            totals={"cuts": 1.5},
            conversations=tuple(ConversationStatus(id=f"{number}{at}", last_at=at + number / 2) for at in (2.0, 1.0)),
            held=2,
            held_bytes=30,
            windows={"m": 1, f"n{number}": 2},
        )
        for number in range(2)
    )
    found = merged([one, other])
    assert found == attrs.evolve(
        one,
        started_at=9.0,
        requests={("chat", 200): 6, ("chat", 400): 1, ("chat", 401): 1},
        passed_through={"signed": 2},
        failures={"f0": 1, "f1": 1},
        retries={"length": 4},
        totals={"cuts": 3.0},
        conversations=found.conversations,
        held=4,
        held_bytes=60,
        windows={"m": 1, "n0": 2, "n1": 2},
    )
    assert [each.id for each in found.conversations] == ["12.0", "02.0", "11.0", "01.0"]
    assert merged([one]) is one
    assert one.to_dict()["requests"][1] == {"route": "chat", "status": 400, "count": 1}
