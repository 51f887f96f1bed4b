"""Replay of many conversations: figures, intervals and differences."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from compaction import last
from compaction.errors import ConfigurationError, InputError
from compaction.replay import Candidate, Recording, ReplayResult, recommend, replay
from compaction.replay.records import Share
from compaction.replay.scores import BootstrapDraws, macro_average
from compaction.strategies import SlidingWindow
from tests.support.chats import Chat, assistant, turns, user


def chat(turn_count: int, words: int = 20) -> Chat:
    """Return a conversation that ends with a question about its first message."""
    return [user("order A-170 came"), assistant("noted"), *turns(turn_count, words=words), user("which?"), assistant("A-170")]


def replayed(*conversations: Any, strategies: Any = (), **options: Any) -> ReplayResult:
    return replay(conversations, strategies, **{"window": 200, "counter": "chars/4", **options})


def keeps_first(setting: Any) -> Any:
    """Return a function that keeps the first two messages and the last three."""
    return lambda messages: messages if len(messages) < 6 else [*messages[:2], *messages[-3:]]


FIRST = Candidate("first", keeps_first)


def test_names_are_unique() -> None:
    """The baselines come first, whether or not they were asked for; duplicate and missing names get a number."""
    chats = *[Recording(id="a", messages=chat(1))] * 2, chat(1)
    found = replayed(*chats, strategies=["hysteresis", SlidingWindow(), SlidingWindow(keep=last(turns=3))])
    assert found.candidates == ("none", "truncate", "hysteresis", "SlidingWindow", "SlidingWindow#2")
    assert [each.recording.id for each in found.conversations] == ["a", "a#2", "3"]


def test_short_conversations_are_listed_but_not_averaged() -> None:
    """The figures are those of conversations that exceed the window."""
    both, alone = replayed(chat(20), chat(1)), replayed(chat(20))
    assert [each.recording.id for each in both.short] == ["2"]
    assert both.summary("hysteresis").score.calls == alone.summary("hysteresis").score.calls == 22
    assert both.summary("hysteresis").macro["cost"].value == alone.summary("hysteresis").macro["cost"].value


def test_recall_counts_requests_that_would_be_taken() -> None:
    """Sending everything contains every fact, but none is usable past the window; what a candidate keeps is."""
    found = replayed(chat(20), strategies=[FIRST])
    whole, kept = (found.summary(name).score for name in ("none", "first"))
    assert [whole.shares[name] for name in ("facts", "usable", "old")] == [Share(1, 1), Share(0, 1), Share(0, 1)]
    assert (kept.shares["usable"], kept.shares["old"]) == (Share(1, 1), Share(1, 1))
    assert (kept.kinds, kept.ages) == ({"id": Share(1, 1)}, {"21 to 60": Share(1, 1)})


def test_the_average_counts_conversations() -> None:
    """A long conversation weighs no more than a short one, and one that needed nothing does not count."""
    assert [macro_average(shares) for shares in ([Share(1, 1), Share(0, 9), Share()], [Share()], [])] == [0.5, None, None]


def test_intervals_are_of_whole_conversations_and_reproducible() -> None:
    """The same seed gives the same interval; equal conversations give a point; one conversation gives none."""
    shares = [Share(at % 2, 1) for at in range(20)]
    first, second = (BootstrapDraws(20, Random(7)).estimate(shares) for _ in range(2))
    assert first == second
    assert first.low is not None
    assert first.high is not None
    assert 0.2 < first.low < 0.5 < first.high < 0.8
    halves, twos = [Share(1, 2)] * 5, [Share(2, 4)] * 5
    first, second = BootstrapDraws(5, Random(0)), BootstrapDraws(5, Random(1))
    assert first.estimate(halves) == second.estimate(twos)
    assert BootstrapDraws(1, Random(0)).estimate([Share(1, 2)]).low is None


def test_differences_are_paired() -> None:
    """If one is better by the same amount on each conversation, the interval is a point, however much conversations differ."""
    worse = [Share(at, 20) for at in range(10)]
    better = [Share(at + 1, 20) for at in range(10)]
    found = BootstrapDraws(10, Random(0)).estimate(better, minus=worse)
    assert (found.value, found.low, found.high) == (pytest.approx(0.05), pytest.approx(0.05), pytest.approx(0.05))
    assert found.excludes_zero


def test_summaries_are_charged_if_asked() -> None:
    """If charged, summaries cost as if the model had written them; if not, they are only counted."""
    free, charged = (
        replayed(chat(40), strategies=["langgraph_summary"], window=4_000, charge_summaries=charge) for charge in (False, True)
    )
    assert free.scores("langgraph_summary", free.conversations)[0].summary_dollars == 0.0
    read = charged.scores("langgraph_summary", charged.conversations)[0]
    assert read.summary_dollars == charged.setting.prices.dollars(fresh=read.summary_read, output=read.summary_written)


def test_what_raised_is_noted_and_excluded() -> None:
    def fails(index: Any) -> Any:
        raise ValueError("no")

    found = replayed(chat(20), strategies=[fails])
    assert found.notes == ("1: fails raised ValueError: no, 22 times, first at message 1",)
    reason = "fails is excluded: 18 of 22 requests exceed the window, and it raised an exception in 1 conversation."
    assert reason in recommend(found).reasons


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 0}, "'window'"),
        ({"jobs": 0}, "jobs must be"),
        ({"strategies": ["quantum"]}, "'quantum' is unknown"),
        ({"model": "gpt-0"}, "no table has prices for model"),
        ({"strategies": [7]}, "a strategy must be a callable"),
        ({"strategies": [lambda index: iter(())], "jobs": 2}, "strategy '<lambda>' cannot be pickled"),
    ],
)
def test_bad_arguments_fail_before_anything_is_replayed(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        replayed(chat(1), chat(2), **options)


def test_a_conversation_without_messages_is_refused() -> None:
    with pytest.raises(InputError, match="conversation 2 has no list of messages"):
        replayed(chat(1), {"id": "x"})
    with pytest.raises(InputError, match="this replay has none"):
        replayed(chat(1)).scores("quantum")


def test_processes_find_what_one_process_finds() -> None:
    """Several processes give the same figures; only the CPU time differs."""
    chats = [chat(12), chat(14), chat(16)]
    seen: list[tuple[int, int]] = []
    alone = replayed(*chats, strategies=["context_window"])
    spread = replayed(*chats, strategies=["context_window"], jobs=2, on_progress=lambda done, total: seen.append((done, total)))

    def figures(result: ReplayResult) -> Any:
        data = result.to_dict()
        for each in data["candidates"].values():
            each["score"].pop("seconds")
        for each in data["conversations"]:
            for score in each["scores"].values():
                score.pop("seconds")
        return data

    assert figures(spread) == figures(alone)
    assert seen[0] == (0, 4 * (14 + 16 + 18))
    assert seen[-1] == (4 * (14 + 16 + 18), 4 * (14 + 16 + 18))
    assert spread.conversations[0].recording.messages == chats[0]


# ------------------------------------------------------------------------ real transcripts

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
