"""A strategy run within another: dry runs, which change nothing, and `Drops`, applied in one loop or seen one by one."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Pipeline, Rewrite, last
from compaction.errors import ConfigurationError, StrategyError
from compaction.index import PASS_ON, CutWorth, Drops, dry_run, relay
from compaction.index.dry_runs import unchanged_groups
from compaction.strategies import Summarization, Truncation
from compaction.summarizers import SummaryRequest
from tests.support.chats import assistant, call, indexed, result, shown, system, thought, turns, user
from tests.support.scripted import Scripted


def test_the_edits_are_seen_and_then_undone() -> None:
    index = indexed(turns(5, words=20))
    before = index.messages()
    with dry_run(Truncation(keep=last(groups=1)), index) as dry:
        assert index.messages() == before[-2:]
        assert dry.cut().saved == dry.tokens - index.tokens > 0
    assert (index.messages(), index.edits, index.refused) == (before, (), ())


def test_it_stops_at_a_request() -> None:
    """At the request the run stops: nobody is asked, and the step that asks is known. A summary would use its budget."""
    index, scripted = indexed(turns(5, words=40)), Scripted("short")
    asking = Summarization(scripted, keep=last(groups=1))
    with dry_run(Pipeline(asking, Truncation()), index, until_request=lambda request: True) as dry:
        assert isinstance(dry.request, SummaryRequest)
        assert index.running == asking
        cut = dry.cut(dry.request.kept, added=7)
        assert cut.after == sum(group.tokens for group in dry.request.kept) + 7
    assert scripted.requests == []


def test_an_exception_undoes_the_edits() -> None:
    def broken(index: MessageIndex) -> Iterator[Any]:
        yield Drop([0], "first")
        raise ValueError("then it breaks")

    index = indexed(turns(3))
    with pytest.raises(ValueError, match="then it breaks"), dry_run(broken, index):
        pass
    assert index.edit_count == 0


@pytest.mark.parametrize(
    ("strategy", "error", "says"),
    [
        (lambda index: None, StrategyError, "<lambda> returned None; a strategy must yield edits"),
        (lambda index: 5, StrategyError, "<lambda> returned 5; a strategy must yield edits"),
        (lambda index: [Drop(0), "Drop"], StrategyError, "<lambda> yielded 'Drop'; a strategy must yield edits"),
        (lambda index: [None], StrategyError, "<lambda> yielded None; a strategy must yield edits"),
        (Pipeline(lambda index: ["Drop"]), StrategyError, "<lambda> yielded 'Drop'; a strategy must yield edits"),
        (5, ConfigurationError, "a dry run needs a strategy, or a function of an index \\(got 5\\)"),
    ],
)
def test_what_is_no_strategy(strategy: Any, error: type[Exception], says: str) -> None:
    index = indexed(turns(3))
    with pytest.raises(error, match=says), dry_run(strategy, index):
        pass
    assert index.edit_count == 0


@pytest.mark.parametrize(
    ("kept", "in_cache", "calls", "pays"),
    [
        pytest.param(0, 1_000, 7.9, False, id="too few calls for what is written again"),
        pytest.param(0, 1_000, 8.1, True, id="enough calls"),
        pytest.param(0, 0, 0, True, id="nothing is cached"),
        pytest.param(500, 500, 0, True, id="nothing cached changes"),
    ],
)
def test_what_a_cut_is_worth(kept: int, in_cache: int, calls: float, *, pays: bool) -> None:
    """A cut of half of 1,000 tokens writes 500 at the full price, and saves 500 at a tenth of it in each call."""
    cut = CutWorth(before=1_000, after=500, kept=kept)
    assert cut.pays(calls=calls, cached=0.1, in_cache=in_cache) is pays


class TestUnchangedGroups:
    """The number of groups at the start that two views share, which a provider's prompt cache still covers."""

    def test_a_view_shares_all_of_itself_and_of_what_continues_it(self) -> None:
        index = indexed(turns(2))
        before = index.included_groups
        index.append([user()])
        assert unchanged_groups(before, before) == unchanged_groups(before, index.included_groups) == 4

    def test_a_group_that_left_ends_what_is_shared(self) -> None:
        index = indexed(turns(3))
        before = index.included_groups
        assert index.apply(Drop([2]))
        assert unchanged_groups(before, index.included_groups) == 2

    @pytest.mark.parametrize("thought_place", [0, 2])
    def test_a_group_without_one_of_its_messages_is_changed(self, thought_place: int) -> None:
        group = [call("1"), result("1")]
        group.insert(thought_place, thought())
        index = indexed([user(), *group, user(), assistant()])
        before = index.included_groups
        messages = [None if place == thought_place else each for place, each in enumerate(before[1].messages)]
        assert index.apply(Rewrite(before[1], messages))
        assert unchanged_groups(before, index.included_groups) == 1


def drops(index: MessageIndex, steps: Sequence[Sequence[int]], until: int = 0) -> Drops:
    """Return the drops of these groups, until the view has so many messages."""
    return Drops(steps, "a test", lambda: len(index.messages()) <= until)


def test_the_target_sees_every_drop() -> None:
    index = indexed(turns(4))
    index.begin_step(Truncation())
    index.apply_all(drops(index, [[0, 1], [2], [3], [4]], until=5))
    assert shown(index.messages()) == ["a2", "q3", "a3", "q4", "a4"]
    assert index.edits == (Drop([0, 1], "a test"), Drop([2], "a test"))
    assert [applied.by for applied in index.journal] == ["Truncation", "Truncation"]


@pytest.mark.parametrize("bad", [[], [0], [1, 1], [9], [3], [1, 2, 3]])
def test_each_drop_is_checked(bad: list[int]) -> None:
    one, other = (indexed([system(), *turns(1), user("last")]) for _ in range(2))
    one.apply_all(drops(one, [bad, [2], [2]]))
    for step in (bad, [2], [2]):
        other.apply(Drop(step, "a test"))
    assert (one.edits, one.refused) == (other.edits, other.refused)
    assert one.included == other.included


def test_a_strategy_around_them_sees_single_drops() -> None:
    """Without ``drop_all``, `relay` answers each drop by itself, and stops when ``until`` says so."""
    index = indexed(turns(3))

    def steps() -> Generator[Any, Any, None]:
        yield drops(index, [[0], [1], [2]])
        yield "the end"

    seen: list[Any] = []

    def applied(item: Any) -> object:
        seen.append(item)
        return isinstance(item, Drop) and index.apply(item)

    assert list(relay(steps(), applied)) == []
    assert seen == [Drop(0, "a test"), Drop(1, "a test"), Drop(2, "a test"), "the end"]
    index.rollback()
    assert list(relay(steps(), lambda _: PASS_ON, until=lambda item: item == seen[1])) == seen[:2]
