"""The report as a file: one page that loads nothing and treats transcripts as text. tests/report opens it in a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.app import app
from compaction.replay import Candidate, Recording, replay, report_html, write_report
from tests.support.chats import Chat, assistant, call, result, turns, user

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \ud800"


def chat() -> Chat:
    """Return a conversation with a call that ends with a question about its first message."""
    start = [user(f"order A-170 came {HOSTILE}"), call("c1", "look"), result("c1", "A-170 is green. " * 30), assistant("noted")]
    return [*start, *turns(20, words=20), user("which?"), assistant("A-170 is green")]


def report(*chats: Any, window: int = 200) -> str:
    return report_html(replay(chats, ["context_window"], window=window, counter="chars/4"))


def conversations(html: str) -> list[dict[str, Any]]:
    packed = re.findall(r'id="conversation-\d+">([^<]*)</script>', html)
    return [json.loads(gzip.decompress(base64.b64decode(each))) for each in packed]


def test_no_transcript_is_markup() -> None:
    """No tag of an id, a note or a text survives; the page has no address to fetch, and a policy that forbids fetching."""
    html = report(Recording(id=HOSTILE, messages=chat()))
    assert html.count("</script>") == 3
    assert "alert(1)" not in re.sub(r'<script type="application/json".*?</script>', "", html, flags=re.DOTALL)
    overview = json.loads(re.findall(r'id="overview">([^<]*)</script>', html)[0])
    assert overview["conversations"][0]["id"] == HOSTILE
    html = report(chat())
    assert "default-src 'none'" in html
    assert re.findall(r"(?:src|href)=\"(?!data:,|#)", html) == []
    assert set(re.findall(r"https?://[^\"' ]+", html)) <= {"http://www.w3.org/2000/svg"}


def test_a_name_that_is_not_unicode_is_written(tmp_path: Path) -> None:
    """A strategy from a file with such a name is in the page with a question mark in its place."""
    odd = Candidate("odd\udcff", lambda setting: lambda messages: messages[-1:], "own")
    write_report(replay([chat()], [odd], window=200, counter="chars/4"), tmp_path / "report.html")
    assert "<p>odd? is excluded: " in (tmp_path / "report.html").read_text("utf-8")


def test_every_message_and_every_call_is_in_it() -> None:
    """The page has the full originals, the needs of each call, and each candidate's actions by message."""
    messages = chat()
    (data,) = conversations(report(messages))
    assert len(data["messages"]) == len(messages)
    assert data["messages"][0] == ["user", "", f"order A-170 came {HOSTILE}"]
    assert data["messages"][1][2].startswith("look(")
    run = data["runs"]["context_window"]
    assert len(run["tokens"]) == len(data["calls"]) == len(data["needs"])
    assert data["needs"][-1][0][:2] == ["id", "A-170"]
    missing = data["runs"]["truncate"]["missing"]
    assert missing[-1] == [len(data["calls"]) - 1, [0]]
    dropped = {at for place, left, _ in run["moves"] for at in left}
    told = {at for *_, ordinals, _ in run["actions"] for at in ordinals}
    assert 0 in dropped
    assert dropped <= told


def test_sessions_within_the_window_are_in_it_too() -> None:
    """There is nothing to average, but the conversation can be opened."""
    html = report(turns(2), window=100_000)
    assert json.loads(re.findall(r'id="overview">([^<]*)</script>', html)[0])["summaries"] == []
    assert len(conversations(html)) == 1


def test_the_recommendation_is_in_it() -> None:
    """The data has the recommendation for the minimum given, the calls a month, and each strategy's cost of a call."""
    result = replay([chat()], ["context_window"], window=200, counter="chars/4")
    html = report_html(result, minimum_recall=0.0, calls_per_month=77)
    overview = json.loads(re.findall(r'id="overview">([^<]*)</script>', html)[0])
    assert overview["recommended"]["lead"] == "context_window"
    assert overview["recommended"]["headline"].startswith("No recommendation: only 1 session")
    assert (overview["minimum_recall"], overview["calls_per_month"]) == (0.0, 77)
    assert [each["dollars_per_call"] > 0 for each in overview["summaries"]] == [True] * 4


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions, page = tmp_path / "a.json", tmp_path / "report.html"
    sessions.write_text(json.dumps(turns(20, words=20)))
    with pytest.raises(SystemExit) as ended:
        app(["replay", str(sessions), "--window", "200", "--report", str(page), "--counter", "chars/4", "--jobs", "1"])
    assert ended.value.code == 0
    assert "hysteresis" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
