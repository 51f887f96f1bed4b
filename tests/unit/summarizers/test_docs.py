"""The request shown in docs/prompts.md is the request that is sent."""

from __future__ import annotations

import json
from pathlib import Path

from openai import OpenAI

from compaction.summarizers import OpenAISummarizer
from tests.support.chats import call, result, user
from tests.support.scripted import request_for
from tests.support.servers import FaultServer, reply

PAGE = Path(__file__).resolve().parents[3] / "docs" / "prompts.md"
TALK = [
    user("Fix the failing test in tests/test_api.py. Do not change the public API."),
    call("c1", name="shell", arguments=json.dumps({"cmd": "pytest -x --token ghp_" + "a1b2c3d4e5" * 4})),
    result("c1", "FAILED tests/test_api.py::test_create - KeyError: 'owner'\n" * 3),
]


def shown() -> str:
    """The request that is sent, formatted as on the page."""
    with FaultServer(reply("## Goal\nA test.\n## Done\n(none)")) as server:
        with OpenAI(base_url=server.url, api_key="none") as client:
            summarizer = OpenAISummarizer("m", client=client)
            summarizer.summarize(request_for(summarizer, TALK, budget=2_000))
        messages = server.requests[0]["messages"]
    return "\n\n".join(f"--- {message['role']} ---\n{message['content']}" for message in messages)


def test_the_page_shows_the_request() -> None:
    """The request on the page equals the one that is sent, so that a changed prompt needs a changed page."""
    page = PAGE.read_text(encoding="utf-8")
    _, _, rest = page.partition("```text\n")
    text, _, _ = rest.partition("\n```\n")
    assert text == shown()
