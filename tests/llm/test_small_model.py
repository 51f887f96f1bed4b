"""Summaries from a real server and a small model: requests and outcomes, but not the quality of the texts.

The model is far too small to summarize. For an answer that can be accepted, a grammar enforces the required form and the
model only fills in words; for an answer that cannot, a grammar or an option forces that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import attrs
import openai
import pytest

from compaction import CompactionResult, GroupKind, MessageIndex, last, presets, run, validate
from compaction.index.marks import read_mark
from compaction.session import CompactionSession
from compaction.strategies import OnFailure, Summarization
from compaction.summarizers import CachedSummarizer, OpenAISummarizer, SummaryBudget, default_template
from compaction.tokens import Usage
from compaction.triggers import always
from tests.llm.llama_server import CONTEXT_TOKENS

pytestmark = pytest.mark.timeout(900)

Chat = list[dict[str, Any]]

WINDOW = CONTEXT_TOKENS * 3 // 4  # counted by this package; the model's own tokenizer gives more tokens
BUDGET = SummaryBudget(ratio=1.0, floor=1, ceiling=320)
POINT = '"- " [A-Za-z] [A-Za-z ,.\'-]{20,60} "\\n"'
HEADINGS = [line for line in default_template().sections.splitlines() if line.startswith("#")]
SHAPED = {"grammar": "root ::= " + " ".join(f'"{heading}\\n" {POINT}' for heading in HEADINGS)}


@attrs.define
class Wire:
    """Counts of a test's requests and responses. Holds state: they grow with each request."""

    base_url: str
    record: Callable[[str, object], None]
    sent: int = 0
    statuses: list[int] = attrs.field(factory=list)
    usages: list[Usage] = attrs.field(factory=list)
    started: float = attrs.field(factory=time.monotonic)

    def summarizer(self, client: openai.AsyncOpenAI | openai.OpenAI, body: dict[str, Any], **options: Any) -> OpenAISummarizer:
        """Return a summarizer whose requests are counted; ``body`` is added to each request unchanged."""
        steady: dict[str, Any] = {"temperature": 0, "extra_body": body}
        return OpenAISummarizer("small", client=client, options=steady, on_usage=self.usages.append, **options)

    def awaiting(self) -> openai.AsyncOpenAI:
        async def request(_: object) -> None:
            self.sent += 1

        async def response(received: Any) -> None:
            self.statuses.append(received.status_code)

        hooks: dict[str, list[Callable[..., Any]]] = {"request": [request], "response": [response]}
        http = openai.DefaultAsyncHttpxClient(event_hooks=hooks)
        return openai.AsyncOpenAI(base_url=self.base_url, api_key="none", http_client=http)

    def blocking(self) -> openai.OpenAI:
        def request(_: object) -> None:
            self.sent += 1

        def response(received: Any) -> None:
            self.statuses.append(received.status_code)

        http = openai.DefaultHttpxClient(event_hooks={"request": [request], "response": [response]})
        return openai.OpenAI(base_url=self.base_url, api_key="none", http_client=http)

    def note(self, name: str, *results: CompactionResult) -> None:
        """Record the requests, responses and outcomes for the report at the end."""
        prompts = [usage.prompt_tokens for usage in self.usages]
        replies = [usage.completion_tokens for usage in self.usages]
        told = [f"{len(each.failures)} failures" for each in results if each.failures]
        self.record(
            name,
            f"{self.sent} requests, HTTP {self.statuses}, prompt tokens {prompts}, reply tokens {replies}, "
            f"{time.monotonic() - self.started:.1f} s, {[each.outcome for each in results]} {told or ''}",
        )


@pytest.fixture
def wire(base_url: str, record_property: Callable[[str, object], None]) -> Wire:
    """Return counts without any request."""
    return Wire(base_url, record_property)


def beginning(messages: Chat, tokens: int) -> Chat:
    """Return the shortest beginning with at least so many tokens that is followed by a user message."""
    index = MessageIndex()
    for message, after in pairwise(messages):
        index.append([message])
        if after["role"] == "user" and index.included.tokens >= tokens:
            break
    return list(index.source)


def check_nothing_lost(index: MessageIndex, source: Sequence[Any]) -> None:
    """Check that the view is valid, and that each message of the source is in it or behind its summary."""
    assert validate(index.messages()) == []
    held: list[Any] = []
    for group in index.included_groups:
        held += index.originals(group.id) if group.kind is GroupKind.SUMMARY else [message.raw for message in group.messages]
    assert sorted(map(id, held)) == sorted(map(id, source))


def check_usage(wire: Wire) -> None:
    """Check that each answer reported its usage, and none exceeded the server's window."""
    assert len(wire.usages) == wire.statuses.count(200) > 0
    assert [usage for usage in wire.usages if usage.prompt_tokens == 0] == []
    assert [usage for usage in wire.usages if usage.prompt_tokens + usage.completion_tokens > CONTEXT_TOKENS] == []


def summarizing(summarizer: OpenAISummarizer | CachedSummarizer, on_failure: OnFailure = "keep") -> Summarization:
    """Return a strategy that summarizes all but the two newest groups and protected groups, in at most 320 tokens."""
    return Summarization(summarizer, trigger=always, keep=last(groups=2), budget=BUDGET, on_failure=on_failure)


def rounds(view: Sequence[Any]) -> list[int]:
    """Return the round of each summary in a view."""
    groups = MessageIndex(view).included_groups
    return [mark.round for group in groups if (mark := read_mark(group.messages[0])) is not None]


async def test_a_session_of_first_and_later_rounds(wire: Wire, transcript: Chat) -> None:
    """In a session with a window of 8,000 tokens each view fits and is valid, and each round updates the only summary."""
    conversation = beginning(transcript, 7_000)
    async with wire.awaiting() as client:
        summarizer = wire.summarizer(client, SHAPED, window=WINDOW)
        session = CompactionSession(presets.hermes(8_000, summarizer, protect_last_n=2), window=8_000)
        seen: list[list[int]] = []
        for end in [place for place, message in enumerate(conversation) if message["role"] == "user"]:
            view = await session.view(conversation[: end + 1])
            assert session.status().tokens <= 8_000
            assert (validate(view), session.status().failures) == ([], ())
            seen.append(rounds(view))
    wire.note(f"rounds {seen[-1]}")
    assert {round for each in seen for round in each} >= {1, 2}
    assert max(len(each) for each in seen) == 1
    assert set(wire.statuses) == {200}
    check_usage(wire)


async def test_longer_than_the_window(wire: Wire, transcript: Chat) -> None:
    """With ``window=`` given, a long conversation is summarized in parts, and the server refuses no request as too long."""
    source = beginning(transcript, 4_600)
    index = MessageIndex(source)
    async with wire.awaiting() as client:
        result = await run(index, summarizing(wire.summarizer(client, SHAPED, window=WINDOW)))
    wire.note("window given", result)
    assert (result.outcome, result.failures) == ("compacted", ())
    assert wire.sent >= 2
    assert set(wire.statuses) == {200}
    check_usage(wire)
    check_nothing_lost(index, source)


async def test_the_server_says_it_is_too_long(wire: Wire, transcript: Chat) -> None:
    """Without a window, the server refuses a long request with 400, and the conversation is summarized in smaller parts."""
    source = beginning(transcript, 5_000)
    index = MessageIndex(source)
    async with wire.awaiting() as client:
        result = await run(index, summarizing(wire.summarizer(client, SHAPED)))
    wire.note("window not given", result)
    assert (result.outcome, result.failures) == ("compacted", ())
    assert wire.statuses[0] == 400
    assert set(wire.statuses) == {200, 400}
    assert wire.statuses.count(200) >= 2
    check_usage(wire)
    check_nothing_lost(index, source)


async def test_the_answer_of_a_model_left_to_itself(wire: Wire, transcript: Chat) -> None:
    """With the default prompts the model's answer is either accepted, or reported as a failure and not used."""
    source = beginning(transcript, 2_000)
    index = MessageIndex(source)
    async with wire.awaiting() as client:
        result = await run(index, summarizing(wire.summarizer(client, {}, window=WINDOW)))
    wire.note(f"{[str(failed.error) for failed in result.failures]}", result)
    assert (result.outcome, len(result.failures), rounds(result.messages)) in [("compacted", 0, [1]), ("degraded", 1, [])]
    check_usage(wire)
    check_nothing_lost(index, source)
