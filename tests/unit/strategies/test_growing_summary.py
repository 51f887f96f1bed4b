"""GrowingSummary: the oldest groups give way to a summary whose parts stay byte for byte until it is written anew."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import Drop, GroupKind, Replace, compact, compact_sync, presets
from compaction.errors import ConfigurationError, SyncDriverError
from compaction.formats import openai_chat
from compaction.formats.validity import validate
from compaction.index import marked
from compaction.session import CompactionSession
from compaction.strategies import GrowingSummary
from compaction.summarizers import SummaryRequest
from compaction.triggers import tokens_exceed
from tests.support.chats import Chat, assistant, call, indexed, result, system, user
from tests.support.conversion import convert
from tests.support.scripted import Awaited, Scripted


def orders(first: int, last: int) -> Chat:
    """Questions and answers, each with a number of its own in about 60 tokens."""
    chat: Chat = []
    for number in range(first, last):
        chat += [
            user(f"Order BX-{1000 + number} came. " + "Look at it. " * 8),
            assistant(f"Noted {number}. " + "It is there. " * 8),
        ]
    return chat


def growing(**options: Any) -> GrowingSummary:
    """A summary for a view of 1,000 tokens that is cut to 500."""
    figures = {"tokens": 500, "initial_tokens": 120, "added_tokens": 60, "max_tokens": 200, "trigger": tokens_exceed(1_000)}
    return GrowingSummary(**{**figures, **options})


def views(strategy: GrowingSummary, messages: Chat) -> list[list[Any]]:
    """What a session sends at each answer."""
    session = CompactionSession(strategy, counter="chars/4")
    return [session.view_sync(messages[:at]) for at in range(1, len(messages), 2)]


def summaries(view: list[Any]) -> list[str]:
    """The parts of the summary in a view."""
    return [message["content"] for message in view if message["content"].startswith("[compaction ")]


def test_the_newest_stay_and_the_rest_is_listed() -> None:
    """Whole messages of the caller's, and in front of them the exact values of the others."""
    messages = [system("s"), *orders(0, 30)]
    done = compact_sync(messages, growing(), counter="chars/4")
    assert done.outcome == "compacted"
    assert done.after.tokens <= 500
    assert done.messages[0] is messages[0]
    (summary,) = summaries(done.messages)
    assert "BX-1000" in summary
    kept = done.messages[2:]
    assert [id(each) for each in kept] == [id(each) for each in messages[-len(kept) :]]
    assert validate(done.messages) == []


def test_a_mark_of_the_last_round_does_not_end_the_run() -> None:
    """A mark holds six digits; whoever claims the last round of a message gets a summary of that round."""
    forged = user(marked("What was said before.", by="GrowingSummary", round=999_999))
    done = compact_sync([forged, *orders(0, 30)], growing(), counter="chars/4")
    assert done.outcome == "compacted"
    assert "by GrowingSummary round 999999]" in summaries(done.messages)[-1]


def test_parts_stay_as_they_were_until_written_anew() -> None:
    """A later view starts with all of the earlier parts, or with one new part."""
    seen = [summaries(view) for view in views(growing(), orders(0, 120))]
    rounds = [parts for parts, before in zip(seen[1:], seen, strict=False) if parts != before]
    grown = [parts for parts, before in zip(rounds[1:], rounds, strict=False) if parts[: len(before)] == before]
    anew = [parts for parts, before in zip(rounds[1:], rounds, strict=False) if parts[: len(before)] != before]
    assert len(grown) > len(anew) > 0
    assert [len(parts) for parts in anew] == [1] * len(anew)


def test_nothing_is_repeated() -> None:
    """What an earlier part holds, or what stays readable, no later part says again."""
    for view in views(growing(), orders(0, 60)):
        texts = [message["content"] for message in view]
        for number in range(60):
            assert sum(f"BX-{1000 + number} " in f"{text} " for text in texts) <= 1


def test_all_that_was_said_is_at_hand() -> None:
    """The summarizer gets what earlier parts stand for; and their text only when they are written anew."""
    scripted = Scripted("part one", "part two", "part three", "anew")
    session = CompactionSession(
        growing(summarizer=scripted, initial_tokens=300, added_tokens=100, max_tokens=200), counter="chars/4"
    )
    messages = orders(0, 60)
    for at in range(1, len(messages), 2):
        session.view_sync(messages[:at])
    firsts, seconds = scripted.requests[0], scripted.requests[1]
    assert (firsts.originals, firsts.previous) == ((), None)
    assert [message.raw for message in seconds.originals] == [m.raw for group in firsts.groups for m in group.messages]
    assert seconds.previous is None
    anew = next(request for request in scripted.requests[1:] if request.previous is not None)
    assert "part one" in (anew.previous or "")
    assert anew.budget > seconds.budget


def test_a_failing_summarizer_is_reported_and_its_part_listed() -> None:
    """The view fits all the same, and the run is degraded."""
    done = compact_sync(orders(0, 30), growing(summarizer=Scripted(ValueError("no"))), counter="chars/4")
    assert done.outcome == "degraded"
    assert [failure.policy for failure in done.failures] == ["facts were listed without a model"]
    assert "BX-1000" in summaries(done.messages)[0]


def test_a_summarizer_that_failed_rests() -> None:
    """By the session's clock it is not asked again for a while; facts are listed meanwhile, and nothing is reported."""
    failing = Scripted(ValueError("no"))
    now = [0.0]
    session = CompactionSession(growing(summarizer=failing), counter="chars/4", clock=lambda: now[0])
    messages = orders(0, 60)
    for at in range(1, len(messages), 2):
        session.view_sync(messages[:at])
    assert len(failing.requests) == 1
    now[0] = 61.0
    session.view_sync([*messages, *orders(60, 90)])
    assert len(failing.requests) == 2


@pytest.mark.parametrize("answer", ["", "   ", "long " * 4_000], ids=["nothing", "blanks", "too long"])
def test_an_answer_that_will_not_do(answer: str) -> None:
    """Is a failure like any other."""
    done = compact_sync(orders(0, 30), growing(summarizer=Scripted(answer)), counter="chars/4")
    assert (done.outcome, len(done.failures)) == ("degraded", 1)
    assert done.after.tokens <= 500


def test_where_a_summary_would_save_nothing_groups_are_dropped() -> None:
    """A group shorter than any part about it just goes."""
    index = indexed([user("a b"), assistant("c"), *orders(0, 9)])
    strategy = growing(tokens=index.tokens - 2, initial_tokens=1, trigger=tokens_exceed(index.tokens - 1))
    done = compact_sync(
        [message.raw for group in index.included_groups for message in group.messages], strategy, counter="chars/4"
    )
    assert [type(edit) for edit in done.edits] == [Drop]


async def test_an_awaited_summarizer() -> None:
    """The async driver awaits it; the sync one refuses, and nothing is changed."""
    awaited = growing(summarizer=Awaited("short"))
    done = await compact(orders(0, 30), awaited, counter="chars/4")
    assert [type(edit) for edit in done.edits] == [Replace]
    with pytest.raises(SyncDriverError):
        compact_sync(orders(0, 30), awaited, counter="chars/4")


def test_a_list_that_was_compacted_elsewhere_goes_on() -> None:
    """Parts are recognized in a list read anew, and what they hold comes into the next summary."""
    once = compact_sync(orders(0, 30), growing(), counter="chars/4").messages
    done = compact_sync([*once, *orders(30, 60)], growing(added_tokens=100, max_tokens=150), counter="chars/4")
    assert "BX-1000" in "\n".join(summaries(done.messages))
    assert all(
        group.made_by == "GrowingSummary" for group in indexed(done.messages).included_groups if group.kind is GroupKind.SUMMARY
    )


@pytest.mark.parametrize("name", ["tokens", "initial_tokens", "added_tokens", "max_tokens"])
def test_bad_figures(name: str) -> None:
    """Fail where they are written."""
    with pytest.raises(ConfigurationError, match=name):
        growing(**{name: 0})


class TestFacts:
    def request(self, messages: Chat, budget: int, kept: int = 0) -> SummaryRequest:
        """What is asked about all but the last messages."""
        groups = indexed(messages).included_groups
        cut = len(groups) - kept
        return SummaryRequest(
            summarizer=Scripted(), groups=groups[:cut], kept=groups[cut:], budget=budget, counter=indexed([]).counter
        )

    @pytest.mark.parametrize("budget", [30, 60, 200, 2_000])
    def test_the_budget_holds(self, budget: int) -> None:
        """Whatever there is to list."""
        from compaction.summarizers import FactSummarizer

        request = self.request([*orders(0, 40), user("Never touch prod.db. " * 9)], budget)
        assert request.counter.count_text(FactSummarizer().summarize(request)) <= budget

    def test_what_the_user_laid_down_comes_first(self) -> None:
        """Word for word, but not what stays readable anyway."""
        from compaction.summarizers import FactSummarizer

        messages = [
            user("Hello there."),
            assistant("Hello."),
            user("Never touch prod.db."),
            assistant("No."),
            user("Only use tabs."),
        ]
        text = FactSummarizer().summarize(self.request(messages, 200, kept=1))
        assert text.splitlines()[:3] == ["The user said:", "- Hello there.", "- Never touch prod.db."]
        assert "tabs" not in text

    def test_nothing_to_list(self) -> None:
        """Is said in a line, for a summarizer never answers with nothing."""
        from compaction.summarizers import FactSummarizer

        text = FactSummarizer().summarize(self.request([assistant("well"), assistant("so")], 100))
        assert text == "Nothing in them is likely to be needed word for word."


def test_adaptive_stays_within_any_window() -> None:
    """Also where one message alone is larger, and with tool schemas outside the messages."""
    messages = [system("s"), *orders(0, 40), user("word " * 4_000), assistant("x " * 3_000), user("why?")]
    for window in (600, 1_000, 4_000):
        session = CompactionSession(presets.adaptive(window), counter="chars/4", window=window, overhead_tokens=100)
        for at in range(2, len(messages) + 1):
            view = session.view_sync(messages[:at])
            assert session.status().tokens <= window
            assert openai_chat.validate(view) == []


def test_adaptive_fits_beside_a_large_head() -> None:
    """Two thirds of the window are the system prompt: the newest group is cut to what is left."""
    messages = [system("rule " * 1_600), *orders(0, 6), user("go"), call("a"), result("a", "x " * 2_400)]
    done = compact_sync(messages, presets.adaptive(3_000), counter="chars/4")
    assert done.after.tokens <= 3_000
    assert validate(done.messages) == []


def test_a_large_head_leaves_the_summary_less() -> None:
    """Else it would take up what a cut is to free."""
    sizes = []
    for head in (10, 1_600):
        scripted = Scripted("short")
        compact_sync([system("x" * head), *orders(0, 40)], growing(summarizer=scripted), counter="chars/4")
        sizes.append(scripted.requests[0].budget)
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"window": 0},
        {"window": 10, "reserve_output": 10},
        {"window": 100, "threshold": 0.98},
        {"window": 100, "target": 0.95},
        {"window": 100, "target": 0.1},
        {"window": 100, "largest": 0.5},
        {"window": 100, "largest": 0},
        {"window": 100, "cached": 0},
    ],
    ids=str,
)
def test_adaptive_with_bad_arguments(arguments: dict[str, Any]) -> None:
    """Fails where they are written."""
    with pytest.raises(ConfigurationError):
        presets.adaptive(**arguments)


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_the_cut_is_where_the_user_speaks_next(format: str) -> None:
    """Not in front of an answer, although the provider would take it and the room would call for one group more."""
    chat = [assistant("a1 " * 530), user("u2 " * 80), assistant("a3 " * 80), user("u4"), assistant("a5")]
    messages = convert(chat, to=format, format="openai-chat").messages
    strategy = growing(summarizer=Scripted("so far"), initial_tokens=400, keep=lambda index: [2], trigger=tokens_exceed(500))
    done = compact_sync(messages, strategy, counter="chars/4", format=format)
    assert [edit.groups for edit in done.edits if isinstance(edit, Replace)] == [(0,)]
    assert done.messages[1:] == messages[1:]


def test_a_success_ends_the_series_of_failures() -> None:
    """The next failure is a first one again: it rests for the shortest time."""
    now = [0.0]
    scripted = Scripted(ValueError("no"), "part", ValueError("no"), *["part"] * 9)
    session = CompactionSession(growing(summarizer=scripted), counter="chars/4", clock=lambda: now[0])
    messages = orders(0, 400)
    asked: list[float] = []
    for at in range(1, len(messages), 2):
        now[0] += 10.0
        before = len(scripted.requests)
        session.view_sync(messages[:at])
        asked += [now[0]] * (len(scripted.requests) - before)
        if len(asked) == 4:
            break
    assert asked[1] - asked[0] >= 60.0
    assert asked[3] - asked[2] < 300.0
