"""The gateway's own pages."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from compaction.gateway.pages import PAGE_PATHS, prometheus_text
from compaction.gateway.status import GatewaySnapshot
from compaction.gateway.windows import known_prices, known_window
from tests.support.gateways import CHAT, chat_reply, client_of, gateway, lifespan, settings_of, tool_chat


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
        await client.post(CHAT, json={"model": "m", "messages": tool_chat(20)}, headers=headers)
        data = (await client.get("/status.json", headers=headers)).json()
    (cut,) = data["conversations"][0]["cuts"]
    sent = [message["content"] for message in upstream.got[0].json["messages"]]
    assert cut["left"]["messages"] > 0
    assert (cut["summary"] in sent, bool(cut["summary"])) == (token is None, token is None)


def test_unknown_models_have_neither_prices_nor_a_window() -> None:
    assert (known_prices("of-tomorrow"), known_window("of-tomorrow")) == (None, None)
    assert (known_window("gpt-5.4") or 0) > 100_000


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
