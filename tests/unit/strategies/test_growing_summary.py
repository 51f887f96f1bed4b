"""GrowingSummary: the oldest groups are replaced by a summary to which parts are added until it is rewritten."""

from __future__ import annotations

from itertools import chain
from typing import Any

import attrs
import pytest

from compaction import CompactionResult, Drop, GroupKind, MessageIndex, Replace, compact_sync, last, presets, run_sync
from compaction.errors import ConfigurationError
from compaction.formats import openai_chat, validate
from compaction.index import RunContext, marked
from compaction.session import CompactionSession
from compaction.strategies import GrowingSummary, HeadTail, ToolResult
from compaction.strategies.base import group_tokens
from compaction.strategies.growing_summary import _planner
from compaction.summarizers import FactSummarizer, SummaryRequest
from compaction.triggers import tokens_exceed
from tests.support.chats import Chat, assistant, call, indexed, result, system, user
from tests.support.conversion import convert
from tests.support.scripted import Scripted


def orders(first: int, last: int) -> Chat:
    """Questions and answers, each with a unique number, about 60 tokens for both."""
    said = [
        (f"Order BX-{1000 + n} came. " + "Look at it. " * 8, f"Noted {n}. " + "It is there. " * 8) for n in range(first, last)
    ]
    return [message for asked, answer in said for message in (user(asked), assistant(answer))]


def growing(**options: Any) -> GrowingSummary:
    """A strategy that cuts a view of more than 1,000 tokens to 500."""
    figures = {"tokens": 500, "initial_tokens": 120, "added_tokens": 60, "max_tokens": 200, "trigger": tokens_exceed(1_000)}
    return GrowingSummary(**{**figures, **options})


def views(strategy: GrowingSummary, messages: Chat) -> list[list[Any]]:
    session = CompactionSession(strategy, counter="chars/4")
    return [session.view_sync(messages[:at]) for at in range(1, len(messages), 2)]


def summaries(view: list[Any]) -> list[str]:
    return [message["content"] for message in view if (message["content"] or "").startswith("[compaction ")]


def test_the_newest_stay_and_the_rest_is_listed() -> None:
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


def test_parts_stay_as_they_were_until_they_are_rewritten() -> None:
    """Each later view starts with all earlier parts unchanged, or with one new part that replaces them."""
    seen = [summaries(view) for view in views(growing(max_tokens=500, user_tokens=60), orders(0, 120))]
    rounds = [parts for parts, before in zip(seen[1:], seen, strict=False) if parts != before]
    appended = [parts for parts, before in zip(rounds[1:], rounds, strict=False) if parts[: len(before)] == before]
    rewritten = [parts for parts, before in zip(rounds[1:], rounds, strict=False) if parts[: len(before)] != before]
    assert len(appended) > len(rewritten) > 0
    assert [len(parts) for parts in rewritten] == [1] * len(rewritten)


def test_nothing_is_repeated() -> None:
    for view in views(growing(), orders(0, 60)):
        texts = [message["content"] for message in view]
        for number in range(60):
            assert sum(f"BX-{1000 + number} " in f"{text} " for text in texts) <= 2
        lines = [line for text in texts for line in text.splitlines() if line.startswith("- ")]
        assert len(lines) == len(set(lines))


def test_a_later_part_does_not_repeat_the_task() -> None:
    """The first part quotes the first message; a part after it has its room for what came later."""
    task = "Count all boxes in the store, shelf by shelf, and write the numbers into the list that hangs at the door."
    messages = [user(task), assistant("Yes."), *orders(0, 40)]
    found = [view for view in views(growing(max_tokens=300), messages) if len(summaries(view)) > 1]
    assert found
    assert {sum(message["content"].count(task[:50]) for message in view) for view in found} == {1}


def test_a_short_answer_is_quoted_once() -> None:
    """A part quotes it with its question while it is still in the view; when it leaves, the next part does not say it again."""

    def looks(name: str, count: int) -> Chat:
        ids = [f"{name}{number}" for number in range(count)]
        return [message for id in ids for message in (call(id), result(id, f"Row {id} is there. " * 12))]

    talk = [user("Order furniture."), *looks("a", 12), assistant("Is the next one fine?"), user("one more lamp")]
    chat = [*talk, *looks("b", 30), user("Now send it."), *looks("c", 40)]
    found = views(growing(), chat)
    left = [view for view in found[len(talk) :] if all(message["content"] != "one more lamp" for message in view)]
    assert len(left) > 20
    assert {str(view).count("one more lamp") for view in left} == {1}
    session = CompactionSession(growing(), counter="chars/4")
    for at in range(1, len(chat), 2):
        session.view_sync(chat[:at])
        assert session.last_result is not None
        assert not [edit for edit in session.last_result.edits if "quotes" in getattr(edit, "reason", "")]


def test_what_was_said_before_a_part_is_not_quoted_after_it() -> None:
    """The task stays while it is the last user message; a part that replaces it later replaces the parts about newer ones."""

    def works(name: str) -> Chat:
        ids = [f"{name}{number}" for number in range(40)]
        return [message for id in ids for message in (call(id), result(id, f"Row {id} is there. " * 12))]

    asked = [call("q", name="ask_user", arguments='{"question": "Which separator?"}'), result("q", "semicolon, please")]
    chat = [user("Fix issue 512 of the export."), *asked, *works("a"), user("Go on."), *works("b"), user("And now?")]
    found = views(growing(), chat)
    assert any(view[0] is chat[0] and "semicolon" in str(summaries(view)) for view in found)  # a part stands after the task
    assert summaries(found[-1])
    assert [view for view in found[1:] if str(view).index("Fix issue 512") > str(view).index("semicolon")] == []


def test_all_that_was_said_is_at_hand() -> None:
    """The summarizer gets the originals of the earlier parts, and their text only when the summary is rewritten."""
    scripted = Scripted("part one", "part two", "part three", "anew")
    views(growing(summarizer=scripted, initial_tokens=300, added_tokens=100, max_tokens=200), orders(0, 60))
    firsts, seconds = scripted.requests[0], scripted.requests[1]
    assert (firsts.originals, firsts.previous) == ((), None)
    assert [message.raw for message in seconds.originals] == [m.raw for group in firsts.groups for m in group.messages]
    assert seconds.previous is None
    anew = next(request for request in scripted.requests[1:] if request.previous is not None)
    assert "part one" in (anew.previous or "")
    assert anew.budget > seconds.budget


def test_a_cut_never_clips_a_short_task_to_gain_a_few_tokens() -> None:
    """If the user's words do not fit beside the frame of a part, more groups leave, or only groups without words."""
    task = "Fix the rounding of totals in checkout.py. Never touch the migrations folder."
    for number in range(8, 60, 5):
        read = [part for at in range(number) for part in (call(f"c{at}"), result(f"c{at}", f"line {at} of the file\n" * 400))]
        chat = [system("You are a coding agent. " * 380), user(task), *read, assistant("Done."), user("Go on with Z.")]
        index = MessageIndex(chat, counter="chars/4", context=RunContext(overhead_tokens=4_480))
        run_sync(index, presets.adaptive(20_000))
        assert any(task in str(message["content"]) for message in index.messages() if message["role"] != "tool")


def test_where_a_summary_would_save_nothing_groups_without_words_are_dropped() -> None:
    """If a summary would be larger than what it replaces, groups in which the user says nothing are dropped."""
    chat = [assistant("c"), assistant("d"), user("Go on. " * 20), assistant("e")]
    tokens = indexed(chat).tokens
    strategy = growing(tokens=tokens - 2, initial_tokens=1, trigger=tokens_exceed(tokens - 1))
    done = compact_sync(chat, strategy, counter="chars/4")
    assert [type(edit) for edit in done.edits] == [Drop]
    assert chat[2] in done.messages


@pytest.mark.parametrize("pairs", [13, 18, 22])
def test_a_forced_run_cuts_below_the_trigger(pairs: int) -> None:
    """It cuts to ``tokens``, or to half of the request if that is less, whether or not the trigger fires."""
    forced = growing(trigger=tokens_exceed(1_200)).forced()
    done = compact_sync(orders(0, pairs), forced, counter="chars/4")
    assert done.before.tokens > 600
    assert done.after.tokens <= min(500, done.before.tokens / 2)


def test_a_list_that_was_compacted_elsewhere_goes_on() -> None:
    once = compact_sync(orders(0, 30), growing(), counter="chars/4").messages
    done = compact_sync([*once, *orders(30, 60)], growing(added_tokens=100, max_tokens=150), counter="chars/4")
    assert "BX-1000" in "\n".join(summaries(done.messages))
    made = [group.made_by for group in indexed(done.messages).included_groups if group.kind is GroupKind.SUMMARY]
    assert set(made) == {"GrowingSummary"}


def test_adaptive_stays_within_any_window() -> None:
    messages = [system("s"), *orders(0, 40), user("word " * 4_000), assistant("x " * 3_000), user("why?")]
    for window in (600, 1_000, 4_000):
        session = CompactionSession(presets.adaptive(window), counter="chars/4", window=window, overhead_tokens=100)
        for at in range(2, len(messages) + 1):
            view = session.view_sync(messages[:at])
            assert session.status().tokens <= window
            assert openai_chat.validate(view) == []


def test_adaptive_fits_beside_a_large_head() -> None:
    """If the system prompt takes two thirds of the window, the newest group is cut so that the view fits."""
    messages = [system("rule " * 1_600), *orders(0, 6), user("go"), call("a"), result("a", "x " * 2_400)]
    done = compact_sync(messages, presets.adaptive(3_000), counter="chars/4")
    assert done.after.tokens <= 3_000
    assert validate(done.messages) == []


def test_what_was_cut_from_a_kept_result_is_in_the_summary() -> None:
    """The summary contains facts that another strategy cut out of a result that stays in the view."""
    log = "line " * 200 + "ticket TK-4711 " + "line " * 200
    messages = [system("s"), *orders(0, 20), call("a"), result("a", log), user("and now?")]
    shorten = ToolResult(HeadTail(chars=200), keep=last(groups=1))
    done = compact_sync(messages, shorten >> growing(tokens=600, initial_tokens=200), counter="chars/4")
    assert "characters cut" in str(done.messages)
    assert "TK-4711" in summaries([each for each in done.messages if each["content"]])[0]


def test_what_a_kept_collapsed_result_said_is_in_the_summary() -> None:
    """The sources are in order: what leaves, and what follows it, in the view or not. A system message before it is none."""
    looked_up = [part for at in range(6) for part in (call(f"c{at}"), result(f"c{at}", f"ticket TK-{at} " * 60))]
    messages = [system("rule " * 40), *looked_up, user("and now?"), assistant("word " * 200)]
    scripted = Scripted("short")
    index = indexed(messages)
    run_sync(index, ToolResult(keep=last(groups=1)))
    tokens = index.tokens - 20
    run_sync(index, growing(summarizer=scripted, tokens=tokens, initial_tokens=20, trigger=tokens_exceed(tokens)))
    (request,) = scripted.requests
    assert [message.raw for message in request.sources] == looked_up


@pytest.mark.parametrize("words", [1, 8, 40])
@pytest.mark.parametrize("room", [40, 125, 400])
def test_a_plan_is_shorter_than_what_it_replaces_and_can_quote_the_user(words: int, room: int) -> None:
    """A part has at most 0.6 of what it replaces, and room for what the user says in that, unless nothing more can leave."""
    spoken = [user(f"Order {n}. " + "Look at it. " * words * (n % 3)) for n in range(30)]
    index = indexed([message for said in spoken for message in (said, assistant("There. " * 9))])
    planner = _planner(growing(user_tokens=room), index)
    plan = planner.of_sizes()
    assert plan.tokens <= max(160, 0.6 * group_tokens(plan.replaced))
    assert planner.can_quote(plan.replaced, room, plan.tokens) or len(plan.replaced) == len(planner.content)


def test_a_small_summary_shrinks_less() -> None:
    """Beside a large head, a first part of 2,000 tokens shrinks to 35 %, and one of 200 tokens to 75 %."""
    for tokens, share in ((2_000, 0.35), (200, 0.75)):
        scripted = Scripted("short")
        strategy = GrowingSummary(scripted, tokens=5 * tokens, initial_tokens=tokens, added_tokens=tokens, max_tokens=tokens)
        compact_sync([system("x" * 40 * tokens), *orders(0, 200)], strategy, counter="chars/4")
        assert share * tokens - 60 <= scripted.requests[0].budget <= share * tokens


@pytest.mark.parametrize(
    "arguments",
    [
        *({"window": 0}, {"window": 10, "reserve_output": 10}),
        *({"window": 100, "target": target} for target in (0.95, 0.1)),
        *({"window": 100, **bad} for bad in ({"largest": 0.5}, {"largest": 0}, {"threshold": 0.98}, {"cached": 0})),
    ],
    ids=str,
)
def test_adaptive_with_bad_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        presets.adaptive(**arguments)


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_the_cut_is_where_the_user_speaks_next(format: str) -> None:
    """The summary ends before a user message rather than before an answer, even if the format allows both."""
    chat = [assistant("a1 " * 530), user("u2 " * 80), assistant("a3 " * 80), user("u4"), assistant("a5")]
    messages = convert(chat, to=format, format="openai-chat")
    strategy = growing(summarizer=Scripted("so far"), initial_tokens=400, keep=lambda index: [2], trigger=tokens_exceed(500))
    done = compact_sync(messages, strategy, counter="chars/4", format=format)
    assert [edit.groups for edit in done.edits if isinstance(edit, Replace)] == [(0,)]
    assert done.messages[1:] == messages[1:]


def test_a_last_user_message_that_is_marked_stays_in_later_runs() -> None:
    """The part that follows it, which has the role of the user too, does not take its place."""
    asked = user(marked("The question.", by="ToolResult"))
    waiting = [call("1", "2"), result("2", "18 degrees\n" * 46)]
    strategy = growing(tokens=180, initial_tokens=70, added_tokens=30, max_tokens=110, trigger=tokens_exceed(200))
    once = compact_sync([asked, system("s"), assistant("I look. " * 40), *waiting], strategy, counter="chars/4")
    assert once.messages[0] is asked
    assert once.messages[2]["role"] == "user"
    assert not compact_sync(once.messages, strategy, counter="chars/4").edits


@attrs.frozen
class Listing(FactSummarizer):
    """A summarizer that counts as one without a model, with scripted answers."""

    script: Scripted = attrs.field(kw_only=True)

    def summarize(self, request: SummaryRequest) -> str:
        return self.script.summarize(request)


class TestSlack:
    """``slack``: a part without a model that leaves too much room unused is written again, for fewer groups."""

    def cut(self, *answers: Any) -> tuple[CompactionResult, list[SummaryRequest]]:
        script = Scripted("- BX-1000", *answers)
        strategy = growing(summarizer=Listing(script=script), slack=0.03, max_tokens=900)
        return compact_sync(orders(0, 30), strategy, counter="chars/4"), script.requests

    def test_more_of_the_newest_groups_stay(self) -> None:
        done, requests = self.cut()
        groups = [len(request.groups) for request in requests]
        assert len(groups) > 1
        assert groups == sorted(groups, reverse=True)
        assert 0.97 * 500 - 60 < done.after.tokens <= 500
        assert done.before.groups - done.after.groups + 1 == groups[-1]

    @pytest.mark.parametrize(
        ("second", "policies"),
        [
            (lambda request: "y" * 4 * sum(group.tokens for group in request.groups), []),
            (RuntimeError("gone"), ["the list before it was kept"]),
            ("", ["the list before it was kept"]),
        ],
        ids=["as long as the groups", "raises", "empty"],
    )
    def test_the_first_list_stays_if_the_second_cannot_be_used(self, second: Any, policies: list[str]) -> None:
        """It replaces the groups that it was written for, and not those of the second request."""
        done, (first, again) = self.cut(second)
        assert len(again.groups) < len(first.groups)
        assert [edit.groups for edit in done.edits if isinstance(edit, Replace)] == [tuple(group.id for group in first.groups)]
        assert "- BX-1000" in summaries(done.messages)[0]
        assert [failure.policy for failure in done.failures] == policies


def test_a_list_of_facts_in_an_inherited_part_is_never_quoted_as_the_users_words() -> None:
    """A program that sends back views passes parts whose messages are gone; a rewrite leaves their room to the user's words."""
    strategy = growing(user_tokens=150)
    view: Chat = [system("s"), user("Never call the landlord. The door is blue, and the key is under the mat.")]
    for number in range(60):
        path = f"src/part_{number}/file_{number * 7}.py"
        view += [call(f"c{number}", arguments=f'{{"path": "{path}"}}'), result(f"c{number}", f"{path} " + "text " * 80)]
        if number % 20 == 19:
            view.append(user(f"Now room {number}, please."))
        view = [*compact_sync(view, strategy, counter="chars/4").messages]
        text = str(view)
        assert "Never call the landlord." in text
        assert "- ## " not in text


def test_words_that_only_a_summary_has_stay() -> None:
    """When a part is written again for fewer groups, what the earlier parts quote has room in it."""
    ids = [f"{letter}{number}" for letter in "abcd" for number in range(12)]
    looks = [[call(id), result(id, f"Row {id} is there. " * 12)] for id in ids]
    strategy = presets.token_budget(1_500)
    view: Chat = []
    for message in [user("Order furniture."), *chain(*looks[:24]), user("one more"), *chain(*looks[24:])]:
        view = compact_sync([*view, message], strategy, counter="chars/4").messages
        assert str(view).count("Order furniture.") == 1


def test_a_cut_stops_where_only_the_users_words_exceed_the_size() -> None:
    wish = "paint the box green and dry it. " * 2
    chat = [message for n in range(60) for message in (user(f"Wish {n}: {wish}"), assistant("Done. " * 120))]
    strategy = growing(tokens=1_000, user_tokens=700, extra_tokens=600, target=~tokens_exceed(1_000))
    result = compact_sync(chat, strategy, counter="chars/4")
    assert len(result.edits) == 1
    assert 1_000 < result.after.tokens <= 1_600


def test_a_part_has_room_for_the_questions_that_short_answers_need() -> None:
    asked = {"a green fence or a dark grey one?": "grey", "the old gate at its place?": "yes", "how many posts?": "nine"}
    chat = [user("Plan the fence.")]
    for question, answer in asked.items():
        chat += [assistant(f"Do you want {question}"), user(answer), *[assistant("Looked at shelf 12. " * 10)] * 2]
    strategy = growing(
        tokens=240, initial_tokens=20, added_tokens=20, max_tokens=40, user_tokens=120, trigger=tokens_exceed(300)
    )
    view = compact_sync([*chat, user("Go on. " * 5)], strategy, counter="chars/4").messages
    quoted = [f'{answer} (the assistant had said: "Do you want {question}")' for question, answer in asked.items()]
    assert [each in view[0]["content"] for each in quoted] == [True] * 3
