"""The recommendation: never a baseline, a minimum recall, enough sessions, differences beyond chance, lines to paste."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from compaction.errors import ConfigurationError
from compaction.models import unpriced
from compaction.replay import Candidate, ReplayResult, recommend, recordings_of, replay
from compaction.replay.recommendation import MINIMUM_SESSIONS
from tests.support.chats import Chat, assistant, turns, user
from tests.unit.replay.test_result import replayed

EXAMPLES = Path(__file__).parents[3] / "examples"
BASELINES = "none, truncate and hysteresis are baselines to compare with, and are never recommended."


def chat(turn_count: int, words: int = 20) -> Chat:
    """Return a conversation that ends with a question about its first message."""
    order = f"A-{100 + turn_count}"
    return [user(f"order {order} came"), assistant("noted"), *turns(turn_count, words=words), user("which?"), assistant(order)]


def keeping(name: str, *, first_in: int, newest: int = 3, newest_in_odd: int | None = None) -> Candidate:
    """Return a candidate that keeps the newest messages, and in some sessions the first two.

    Args:
        name: Its name.
        first_in: It keeps the first two messages in this many of the sessions of `six`.
        newest: Number of newest messages that it keeps.
        newest_in_odd: The same in every second session.
    """

    def shorten(messages: list[Any]) -> list[Any]:
        session = int(messages[0]["content"].split()[1].removeprefix("A-")) - 120
        kept = newest if newest_in_odd is None or session % 2 == 0 else newest_in_odd
        first = messages[:2] if session < first_in else []
        return messages if len(messages) <= kept + 2 else [*first, *messages[-kept:]]

    return Candidate(name, lambda setting: shorten)


FORGETS = keeping("forgets", first_in=0)
DEARER = keeping("forgets", first_in=0, newest=4)
FORGETS_ANY = Candidate("forgets", lambda setting: lambda messages: messages[-3:])
KEEPS_ANY = Candidate("first", lambda setting: lambda messages: [*messages[:2], *messages[2:][-3:]])
KEEPS = keeping("keeps", first_in=6)
ALL = Candidate("all of it", lambda setting: list)
LUCKY = keeping("lucky", first_in=1, newest=5)
MIXED = keeping("mixed", first_in=6, newest_in_odd=5)

SIX = [chat(20 + at) for at in range(MINIMUM_SESSIONS)]


def six(*strategies: Any, **options: Any) -> ReplayResult:
    """Replay six sessions that exceed the window, the fewest that a recommendation needs."""
    return replayed(*SIX, strategies=strategies, **options)


def test_the_cheapest_that_keeps_enough_is_recommended() -> None:
    found = recommend(six(FORGETS, KEEPS))
    assert (found.names, found.lead) == (("keeps",), "keeps")
    assert found.headline.startswith("Use keeps: it costs 0.")
    assert found.headline.endswith(" of sending everything and keeps 100 % of the needed facts.")
    assert found.reasons == ("forgets keeps 0 % of the needed facts, less than the minimum of 80 %.", BASELINES)
    assert "the cheapest strategy whose requests would all be accepted and that keeps at least 80 %" in found.rule


@pytest.mark.parametrize(
    ("cheap", "dear", "names", "reason"),
    [
        (FORGETS, KEEPS, ("forgets", "keeps"), "keeps keeps 100 points more than forgets: "),
        (keeping("some", first_in=1), keeping("most", first_in=5), ("some", "most"), "most keeps 66 points more than some: "),
        (FORGETS, LUCKY, ("forgets",), "lucky costs no less than forgets, and its gain is within chance: 17 points."),
        (KEEPS, keeping("dear", first_in=6, newest=5), ("keeps",), "dear costs no less than keeps and keeps no more: "),
        (DEARER, MIXED, ("mixed",), "forgets keeps 100 points less than mixed, and its lower cost is within chance."),
    ],
    ids=["a gain", "of 83 % and 17 %, not 67", "a gain within chance", "no gain", "a lower cost within chance"],
)
def test_what_costs_more_has_to_keep_more(cheap: Candidate, dear: Candidate, names: tuple[str, ...], reason: str) -> None:
    """A dearer strategy joins for what it keeps more, beyond chance; it takes the other's place if that is not cheaper."""
    found = recommend(six(cheap, dear), minimum_recall=0.0)
    assert (found.names, found.reasons[0].startswith(reason)) == (names, True)


def test_a_baseline_is_never_recommended() -> None:
    """Not even a candidate of one's own that nobody can deploy."""
    oracle = Candidate("oracle", KEEPS.start, "baseline")
    found = recommend(six(oracle, FORGETS), minimum_recall=0.0)
    assert found.names == ("forgets",)
    assert found.reasons[-1].startswith("none, truncate, hysteresis and oracle are baselines to compare with, ")


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    """Its six sessions are enough for a recommendation; the script beside them writes the same file."""
    found = recommend(replay(recordings_of(EXAMPLES / "coding_sessions.jsonl"), ["adaptive", "hermes"], window=8_000))
    assert found.names == ("hermes", "adaptive")
    assert found.headline.startswith("Use hermes: it costs 0.75 of sending everything and keeps 83 %")
    assert found.reasons[-1] == BASELINES
    assert found.command == "compaction serve --preset hermes --window 8000 --store gateway.db"
    runpy.run_path(str(EXAMPLES / "make_sessions.py"))["main"](tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (EXAMPLES / "coding_sessions.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("chats", "strategies", "headline", "reason", "lead"),
    [
        ([chat(20)], [KEEPS], "only 1 session exceeds the window, and at least 6 are needed", "keeps: ", "keeps"),
        ([chat(20 + at) for at in range(5)], [FORGETS], "only 5 sessions exceed the window", "forgets: ", None),
        (SIX, [], "only baselines were replayed; add a strategy to compare.", BASELINES, None),
        (SIX, [FORGETS], "no strategy whose requests all fit keeps 80 % of the needed facts; forgets", "forgets: ", None),
        ([turns(20, words=20)] * 6, [FORGETS_ANY], "no recorded answer needs a fact", "forgets: ", None),
        ([chat(20)], [ALL], "every strategy has requests that would be refused; all of it", "all of it is excluded: ", None),
    ],
    ids=["one session", "five sessions", "baselines", "too little kept", "nothing needed", "all refused"],
)
def test_where_nothing_is_recommended(
    chats: list[Chat], strategies: list[Candidate], headline: str, reason: str, lead: str | None
) -> None:
    """The headline says why, the reasons show the trade-off, and only one that keeps enough leads."""
    found = recommend(replayed(*chats, strategies=strategies))
    assert found.headline.startswith(f"No recommendation: {headline}")
    assert found.reasons[0].startswith(reason)
    assert found.reasons[-1] == BASELINES
    assert (found.names, found.lead, bool(found.python), found.command) == ((), lead, lead is not None, "")


def test_below_the_window_not_compacting_is_best() -> None:
    found = recommend(replayed(chat(1), chat(2)))
    lead = "Do not compact. None of the 2 conversations exceeds the window of 200 tokens: not compacting is cheapest"
    assert (found.names, found.headline) == ((), f"{lead} and loses nothing.")
    assert recommend(replayed()).names == ()


def test_below_the_window_what_would_be_cheaper_is_named() -> None:
    """Cutting may still be cheaper; the reason says what it would keep."""
    found = recommend(replayed(chat(600), strategies=[KEEPS_ANY], window=40_000))
    assert found.names == ()
    assert found.reasons[0].startswith("first would cost 0.")
    assert found.reasons[0].endswith("keep 100 % of the needed facts.")


@pytest.mark.parametrize("share", [-0.1, 1.1, "0.5"])
def test_a_minimum_out_of_range(share: Any) -> None:
    with pytest.raises(ConfigurationError, match="'minimum_recall' must be from 0 to 1"):
        recommend(replayed(), minimum_recall=share)


@pytest.mark.parametrize(
    ("strategy", "overhead", "python", "command"),
    [
        ("adaptive", 50, "presets.adaptive(8_000), overhead_tokens=50)", "--preset adaptive --window 8000 --store gateway.db"),
        ("token_budget", 0, "presets.token_budget(8_000))", "--preset token_budget --budget 8000"),
        ("langgraph_summary", 0, "presets.langgraph_summary())", "--preset langgraph_summary --window 8000"),
        (KEEPS_ANY, 0, "CompactionSession(strategy, window=8_000)  # strategy: first", ""),
    ],
)
def test_the_lines_to_paste_run(strategy: Any, overhead: int, python: str, command: str) -> None:
    """The lines of Python run as pasted, and the command has the preset's option; no command knows one's own strategy."""
    words = " ".join(["word"] * 400)
    chats = [[*chat(20), *turns(20, words=400), user(words), assistant("A-120")]]
    result = replayed(*chats, strategies=[strategy], window=8_000, overhead_tokens=overhead)
    found = recommend(result, minimum_recall=0.0)
    assert python in found.python
    assert found.command.endswith(command)
    space: dict[str, Any] = {"messages": chat(1), "strategy": lambda index: iter(())}
    exec(found.python, space)
    assert space["view"] == chat(1)


def test_the_lines_of_a_pipeline_file(tmp_path: Path) -> None:
    """The lines of a strategy from a file read this file; its path is quoted."""
    file = tmp_path / "my own.toml"
    file.write_text('use = "adaptive"\nwindow = 200\n')
    found = recommend(replayed(chat(20), strategies=[str(file)]), minimum_recall=0.0)
    assert found.command == f"compaction serve --config '{file}' --window 200 --store gateway.db"
    space: dict[str, Any] = {"messages": chat(1)}
    exec(found.python, space)
    assert space["view"] == chat(1)


def test_money_is_over_all_sessions() -> None:
    """The cost of a call is the mean over all sessions, the short ones too; without prices it is unknown."""
    result = replayed(chat(20), chat(1), strategies=[KEEPS_ANY])
    scores = result.scores("first", result.conversations)
    mean = sum(each.dollars for each in scores) / sum(each.calls for each in scores)
    assert result.dollars_per_call("first") == pytest.approx(mean)
    assert replayed(chat(20), model=unpriced("mine")).dollars_per_call("none") is None
    assert replayed().dollars_per_call("none") is None
