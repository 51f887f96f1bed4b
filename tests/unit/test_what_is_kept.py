"""README and the pages say what is kept and what is not: a test for each sentence that no lower test shows, its docstring."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from compaction import CompactionSession, compact_sync, last, presets
from compaction.result import CompactionResult
from compaction.strategies import Excerpt, GrowingSummary, HeadTail, Strategy, StrategyLike, Summarization
from compaction.triggers import tokens_exceed
from tests.support.chats import assistant, call, result, system, tool_turns, user
from tests.support.conversion import convert
from tests.support.scripted import Scripted

RULES = "Fix the parser.\n\nRules:\n1. Never edit tests/golden.\n2. Decimal for money, no floats.\n3. Do not push."


def work(*said: str, turns: int = 12) -> list[dict[str, Any]]:
    """A session: after each message of the user, so many calls with results and answers of an agent."""
    messages: list[dict[str, Any]] = [system("You are an agent.")]
    for text in said:
        messages += [user(text), *[each for each in tool_turns(turns) if each["role"] != "user"], assistant("I did it. " * 20)]
    return messages


def cut(messages: list[dict[str, Any]], strategy: StrategyLike, **options: Any) -> CompactionResult:
    return compact_sync(messages, strategy, counter="chars/4", **options)


def sent(messages: list[dict[str, Any]], strategy: StrategyLike, **options: Any) -> str:
    """The texts of the view, one line each, without indents."""
    texts = [str(message["content"]) for message in cut(messages, strategy, **options).messages]
    return "\n".join(line.strip() for text in texts for line in text.split("\n"))


def long_task(length: int = 60) -> list[dict[str, Any]]:
    """The rules, and then so many short questions with long answers."""
    rest = [each for n in range(length) for each in (assistant(f"Answer {n}. " * 40), user(f"Question {n}?"))]
    return [system("You are an agent."), user(RULES), *rest]


def excerpt(tokens: int) -> Excerpt:
    """An excerpt that is written once: the request then is below the trigger."""
    return Excerpt(tokens=tokens, trigger=tokens_exceed(tokens + 150))


def growing(**options: Any) -> GrowingSummary:
    sizes: dict[str, Any] = {"tokens": 500, "initial_tokens": 120, "added_tokens": 60, "max_tokens": 200}
    return GrowingSummary(**sizes, trigger=tokens_exceed(1_000), **options)


class TestTheUsersWords:
    @pytest.mark.parametrize("name", ["adaptive", "context_window", "hermes", "token_budget"])
    def test_rules_stay(self, name: str) -> None:
        """Each summary ends with what the user said, word for word; the task is whole while it fits; a list stays a list."""
        assert RULES.replace("\n\n", "\n") in sent(long_task(), presets.PRESETS[name].make(2_500)).replace("\n\n", "\n")

    def test_calls_and_answers_make_room(self) -> None:
        """Tool results, old calls and old answers make room before what the user said."""
        wishes = [f"Wish {n}: keep the name of box {n}." for n in range(5)]
        messages = work(RULES, *wishes)
        result = cut(messages, presets.adaptive(1_800))
        text = "\n".join(str(message["content"]) for message in result.messages)
        assert (result.after.tokens < result.before.tokens / 2, [wish in text for wish in wishes]) == (True, [True] * 5)


class TestShares:
    @pytest.mark.parametrize(
        ("strategy", "kind", "tokens"),
        [
            (presets.adaptive(10_000), GrowingSummary, 2_400),
            (presets.token_budget(10_000), GrowingSummary, 2_000),
            (presets.context_window(10_000), Excerpt, 4_000),
            (presets.hermes(8_000), Summarization, 2_000),
            (presets.hermes(1_000_000), Summarization, 12_000),
        ],
        ids=["adaptive", "token_budget", "context_window", *["hermes"] * 2],
    )
    def test_of_presets(self, strategy: Strategy, kind: type[Any], tokens: int) -> None:
        """`adaptive` 24 %, `token_budget` 20 %, `context_window` 40 % in its own message; `hermes` 25 %, at most 12,000."""
        [part] = [part for part in strategy.parts() if isinstance(part, kind)]
        assert (part.tokens if kind is Excerpt else part.user_tokens) == tokens

    def test_values_of_shortened_results(self) -> None:
        """Where `token_budget` only shortens a result, the note in its middle keeps values, up to 2,000 characters."""
        strategy = presets.token_budget(10_000)
        [style] = [style for part in strategy.parts() if isinstance(style := getattr(part, "style", None), HeadTail)]
        assert style.values == 2_000
        lines = "a line without any value in it\n" * 100
        result = {**tool_turns(1)[2], "content": f"{lines}see src/parser.py\n{lines}"}
        chat = [user("Go."), tool_turns(1)[1], result, *[assistant("I did it. " * 100)] * 3]
        assert "; values in them: src/parser.py ...]" in sent(chat, presets.token_budget(1_500))

    def test_langgraph_summary(self) -> None:
        """`langgraph_summary`: as much as the rest of the summary: 512 tokens."""
        strategy = presets.langgraph_summary()
        assert (strategy.user_tokens, strategy.budget.ceiling) == (None, 512)

    def test_share_of_what_is_replaced(self) -> None:
        """The excerpt has in a summary at most three quarters of the tokens that the summary replaces."""
        model, said = Scripted("They talked."), [user("Words of the user. " * 40) for _ in range(9)]
        cut(said, Summarization(model, keep=last(messages=1), user_tokens=9_999))
        request = model.requests[0]
        assert request.counter.count_text(request.said) <= sum(group.tokens for group in request.groups) * 0.75

    @pytest.mark.parametrize(
        ("make", "share"), [(presets.adaptive, 0.18), (presets.context_window, 0.3), (presets.hermes, 0.1)]
    )
    @pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
    def test_all_that_fits(self, make: Callable[[int], Strategy], share: float, format: str) -> None:
        """In every view stands each message of the user, as long as all of them have at most this share of the window."""
        rules = ("Keep the door of hall {} closed.", "The customer of order {} wants green.", "Spend at most {} euros.")
        chat: list[dict[str, Any]] = []
        said: list[str] = []
        session = CompactionSession(make(4_000), counter="chars/4")
        while sum(len(each) // 4 + 8 for each in said) < share * 4_000:
            said.append(rules[len(said) % 3].format(f"{len(said)}-{len(said) * 7919 % 997}a"))
            calls = [each for each in tool_turns(3, words=60) if each["role"] != "user"]
            chat += [user(said[-1]), *calls, assistant("I see. " * 20)]
            view = json.dumps(session.view_sync(convert(chat, to=format)))
            assert [each for each in said if each not in view] == []
        assert session.status().compactions > 3


class TestPastTheWindow:
    @pytest.mark.parametrize("name", ["adaptive", "context_window", "hermes", "token_budget"])
    def test_all_presets_end_with_it(self, name: str) -> None:
        """All presets but `langgraph_summary` end with `LastResort`."""
        strategy = presets.PRESETS[name].make(10_000)
        assert [part.name for part in strategy.parts()].count("LastResort") == 1


@pytest.mark.parametrize("format", ["anthropic", "gemini", "bedrock"])
@pytest.mark.parametrize("window", [1_500, 2_000, 3_000, 6_000])
@pytest.mark.parametrize("name", ["adaptive", "context_window", "token_budget", "hermes"])
def test_words_beside_a_tool_result_are_the_users(name: str, window: int, format: str) -> None:
    """Where a format mixes results and the user's words in one message, a collapsed call leaves the words to the user."""
    words = "From now on never pay supplier Miller without asking me."
    conversation = invoices(format, words)
    assert words[:-1] in json.dumps(cut(conversation, getattr(presets, name)(window)).messages)


@pytest.mark.parametrize("session", [False, True], ids=["once", "session"])
@pytest.mark.parametrize("name", ["adaptive", "token_budget", "hermes"])
def test_rules_stay_beside_pasted_logs_and_small_talk(name: str, session: bool) -> None:
    """Rules said in the middle of work outlast logs that the user pastes again and again, and the names of files."""
    lines = [f"2026-03-{day:02} 10:00:11 WARN retry {day} of job {day * 7}" for day in range(1, 29)]
    log = "\n".join(["Here it is again:", *lines])
    rules = [
        "Never write to the customers yourself.",
        "Amounts are always net, never gross.",
        "Bitte nie ohne Rückfrage löschen.",
        "Product numbers keep their leading zeros.",
        "Do not show names of patients in your output.",
        "No downtime between 6:00 and 22:00.",
        "Leave the table `ledger_2024` alone.",
        "Les boutons restent toujours en anglais.",
    ]
    talk = ["Thanks, that is it!", "Sorry, I was away.", "My train was late again.", "Hm, odd. And the next one?"]
    said = [each for n, rule in enumerate(rules) for each in (log, f"{log}\n{rule}" if n % 2 else rule, talk[n % 4])]
    messages = work("Check the export.", *said, *[each for n in range(9) for each in (log, f"What about part {n}?")], turns=4)
    strategy = getattr(presets, name)(4_000)
    if session:
        running = CompactionSession(strategy, counter="chars/4")
        for end in range(2, len(messages), 2):
            running.view_sync(messages[:end])
        view = running.view_sync(messages)
    else:
        view = cut(messages, strategy).messages
    text = json.dumps(view, ensure_ascii=False)
    assert [rule for rule in rules if rule[:-1] not in text] == []


def invoices(format: str, words: str) -> list[dict[str, Any]]:
    """An agent that reads thirty invoices; the user says something beside the sixth result."""
    chat = [user("Read the invoices.")]
    for number in range(30):
        found = f"Invoice {number}: " + "goods were delivered and checked. " * 30
        chat += [call(f"t{number}", name="read", arguments=json.dumps({"n": number})), result(f"t{number}", found)]
    messages = convert([*chat, assistant("Done."), user("What is open?")], to=format, format="openai-chat")
    beside = messages[12]["parts" if format == "gemini" else "content"]
    beside.append({"type": "text", "text": words} if format == "anthropic" else {"text": words})
    return messages


@pytest.mark.parametrize("strategy", [excerpt(120), growing(), Summarization(user_tokens=60, keep=last(messages=1))])
def test_an_edit_says_how_much_of_the_words_it_quotes(strategy: Strategy) -> None:
    """Words that an excerpt has no room for are not lost in silence: the reason of the edit has the figures."""
    messages = [user(f"Shelf {n} is for {n} boxes, the red ones. " * 4) for n in range(40)]
    [edit, *_] = cut(messages, strategy).edits
    assert re.search(r"; it quotes about \d+ of [1-9],?\d* tokens of what the user said$", edit.reason), edit.reason
    short = [user("Fix it."), *[assistant("I did it. " * 60)] * 9]
    assert all("it quotes" not in edit.reason for edit in cut(short, strategy).edits)


def test_a_loop_without_a_session_says_it_too() -> None:
    """Words in an earlier summary, whose messages are gone, count among those that the next one should quote."""
    strategy = Summarization(trigger=tokens_exceed(400), user_tokens=150, keep=last(messages=1))
    view: list[dict[str, Any]] = []
    for number in range(60):
        view.append(user(f"Shelf {number} is for {number} boxes, the red ones."))
        view.append(assistant("Noted. " * 20))
        result = compact_sync(view, strategy, counter="chars/4")
        gone = [message for message in view if "word for word" in message["content"] and message not in result.messages]
        view = result.messages
        if gone and not all(line in str(view) for line in re.findall(r"Shelf \d+ is for", gone[0]["content"])):
            assert "; it quotes about" in result.edits[-1].reason
            return
    pytest.fail("nothing was lost")


def test_a_small_loss_is_named_too() -> None:
    """One short message among many is not lost in silence."""
    said = [user(f"Shelf {n} is for {n} boxes, the red ones, and never for the blue ones.") for n in range(40)]
    messages = [*said, user("Blue."), assistant("a " * 900), user("Fine.")]
    edits = [cut(messages, excerpt(tokens)).edits[-1] for tokens in (860, 900)]
    assert ["it quotes" in edit.reason for edit in edits] == [True, False]


def test_what_the_assistant_said_does_not_count_as_quoted() -> None:
    """An excerpt with answers and their questions still says how much of the user's words it leaves out."""
    talk = [each for n in range(40) for each in (assistant(f"Shall I paint wall {n}? " * 3), user(f"yes, number {n}"))]
    [edit, *_] = cut([user("Plan it."), *talk, assistant("Done."), user("Fine.")], excerpt(300)).edits
    quoted, said = map(int, re.findall(r"(\d+) of (\d+)", edit.reason)[0])
    assert quoted < said


@pytest.mark.parametrize("make", [presets.adaptive, presets.context_window, presets.hermes, presets.token_budget])
def test_an_answer_to_a_tool_that_asks_is_the_users(make: Callable[[int], Strategy]) -> None:
    """It is not shortened like a result of a tool, and is quoted with its question once the call leaves."""
    asked = call("a", name="ask_user", arguments='{"question": "May I change send()?"}')
    told = "Edit: keep the old signature of send(). " + "The mobile app calls it with two arguments. " * 8
    rest = work("Go on.", "And the rest.", turns=60)[1:]
    messages = [system("You are an agent."), user(RULES), asked, result("a", told), *rest]
    once = sent(messages, make(4_000))
    session = CompactionSession(make(4_000), counter="chars/4")
    for end in range(2, len(messages) + 1, 5):
        session.view_sync(messages[:end])
    view = " ".join(str(message["content"]) for message in session.view_sync(messages))
    for text in (once, view):
        assert told.strip() in text


def test_a_long_answer_to_a_tool_that_asks_is_clipped_no_sooner_than_a_message() -> None:
    """It fills a fifth of the window, and a user message may have three tenths."""
    answer = "The export has these columns: " + "name, size and date. " * 280
    messages = [user("Write it."), call("a", name="ask_user", arguments='{"question": "What?"}'), result("a", answer)]
    assert sent([*messages, assistant("ok"), user("Go on.")], presets.adaptive(8_000)).count("name, size") == 280


@pytest.mark.parametrize("make", [presets.adaptive, presets.context_window, presets.hermes])
def test_a_long_style_guide_stays_whole(make: Callable[[int], Strategy]) -> None:
    """Sixty-five rules, a tenth of the window, in every request of a session with files as results."""
    wishes = ("go in sentence case", "never exceed one line", "carry a source", "use the metric system", "must not be bold")
    nouns = (
        "Tables",
        "Captions",
        "Links",
        "Prices",
        "Dates",
        "Menus",
        "Titles",
        "Quotations",
        "Paths",
        "Acronyms",
        "Tips",
        "Keys",
        "Units",
    )
    rules = [f"{noun} in print {wish}, except in appendix {n}." for n, wish in enumerate(wishes) for noun in nouns]
    messages: list[dict[str, Any]] = [system("You write."), user("Write the manual.\n\nStyle guide:\n- " + "\n- ".join(rules))]
    session = CompactionSession(make(8_000), counter="chars/4")
    for n in range(60):
        messages += [call(f"c{n}"), result(f"c{n}", f"{n} file module handler config value index parser buffer. " * 40)]
        if n % 15 == 14:
            messages += [assistant("Part done."), user("fine, next chapter")]
        view = "\n".join(str(message["content"]) for message in session.view_sync(messages))
        assert [rule for rule in rules if rule not in view] == []
    assert session.index.edits
