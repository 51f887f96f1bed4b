"""A dry run shows what a strategy would do, and leaves the conversation as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction import Drop, Pipeline, Rewrite, last
from compaction.index import CutWorth, MessageIndex, dry_run
from compaction.index.dry_runs import unchanged_groups
from compaction.strategies import Summarization, Truncation
from compaction.summarizers import SummaryRequest
from tests.support.chats import assistant, call, indexed, result, thought, turns, user
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
