"""The counts of all requests, of each conversation, and of several workers as one; and the pages that show them."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from compaction import CompactionResult, Drop, Replace, Together, compact_sync
from compaction.formats import openai_chat
from compaction.gateway.pages import PAGE_PATHS, prometheus_text
from compaction.gateway.status import ConversationStatus, GatewaySnapshot, GatewayStatus, merged
from compaction.session import CacheBroken, Compacted, Evicted, Overflowed, SaveFailed, StepFailed
from compaction.strategies import Failed
from compaction.tokens import Usage
from tests.support.gateways import CHAT, body_of, chat_reply, client_of, gateway, lifespan, settings_of, tool_chat, turn_of

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
    first = snapshot_of(status).conversations
    report(status, "c", "b", "a")
    second = snapshot_of(status).conversations
    assert [(each.id, each.requests, len(each.cuts)) for each in first] == [("a", 2, 1), ("b", 1, 0)]
    assert [(each.id, each.requests, len(each.cuts)) for each in second] == [("a", 1, 0), ("b", 1, 0)]
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


# ------------------------------------------------------------------------ the pages


async def test_the_page_may_run_its_own_script_and_nothing_else() -> None:
    """The status page's content policy allows only its own script and style, by hash, and requests to the gateway."""
    async with gateway(chat_reply()) as (_, client):
        page = await client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert len(re.findall("'sha256-", policy)) == 2
    assert "<html" in page.text
    assert not re.search(r"\bsrc=|\bhref=|\bon[a-z]+=", page.text)


@pytest.mark.parametrize("token", [None, "t"])
async def test_the_page_says_what_was_sent_instead(token: str | None) -> None:
    """For each cut the page shows what left, and the summary, unless others may see the page."""
    headers = {"x-compaction-token": token or ""}
    async with gateway(chat_reply(), token=token) as (upstream, client):
        await client.post(CHAT, content=body_of(tool_chat(20)), headers=headers)
        data = (await client.get("/status.json", headers=headers)).json()
    (cut,) = data["conversations"][0]["cuts"]
    sent = [message["content"] for message in upstream.got[0].json["messages"]]
    assert cut["left"]["messages"] > 0
    assert (cut["summary"] in sent, bool(cut["summary"])) == (token is None, token is None)


METRICS = r"""
# HELP compaction_gateway_requests_total Answers by route and status
# TYPE compaction_gateway_requests_total counter
compaction_gateway_requests_total{route="chat",status="200"} 12345678
# HELP compaction_gateway_passed_through_total Requests to a model that were sent unchanged
# TYPE compaction_gateway_passed_through_total counter
compaction_gateway_passed_through_total{reason="a \"b\" \\ \n"} 2
# HELP compaction_gateway_failures_total Failures by kind
# TYPE compaction_gateway_failures_total counter
# HELP compaction_gateway_retries_total Second requests by reason
# TYPE compaction_gateway_retries_total counter
"""


def test_metrics_are_exact() -> None:
    """Large counts and sums keep all their digits, labels are escaped, and names end as Prometheus wants."""
    snapshot = GatewaySnapshot(
        started_at=0.0,
        at=9.0,
        requests={("chat", 200): 12_345_678},
        passed_through={'a "b" \\ \n': 2},
        totals={"dollars_saved": 1_234_567.25, "seconds_total": 0.1 + 0.2},
        held=3,
        held_bytes=44,
    )
    text = prometheus_text(snapshot)
    assert text.startswith(METRICS.lstrip())
    values = [line.removeprefix("compaction_gateway_") for line in text.splitlines() if not line.startswith("#")][2:]
    assert values == [
        *("cuts_total 0", "tokens_saved_total 0", "tokens_lost_total 0", "dollars_saved_total 1234567.25"),
        *("dollars_lost_total 0", "prompt_tokens_total 0", "cached_tokens_total 0", "completion_tokens_total 0"),
        *("seconds_total 0.3", "conversations 3", "conversation_bytes 44"),
    ]


async def test_health_says_how_long_the_gateway_runs() -> None:
    """The time is in seconds, to the millisecond. The answer also says whether requests are sent unchanged."""
    now = [1_000.0]
    async with gateway(chat_reply(), clock=lambda: now[0], shadow=True) as (_, client):
        now[0] += 2.34567
        health = (await client.get("/healthz")).json()
    assert (health["status"], health["seconds"], health["shadow"]) == ("ok", 2.346, True)


async def test_the_pages_are_served_below_the_path_of_another_application() -> None:
    """The gateway can be mounted in an ASGI application; the path of a page then begins with the mount's."""
    async with lifespan(settings_of("http://127.0.0.1:9")) as app, client_of(Starlette(routes=[Mount("/llm", app)])) as client:
        statuses = {path: (await client.get(f"/llm{path}")).status_code for path in PAGE_PATHS}
    assert statuses == dict.fromkeys(PAGE_PATHS, 200)
