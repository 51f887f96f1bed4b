"""A provider's own compaction in the messages of each adapter: the newest stays, unchanged, and what it stands for goes first.

The adapters of Agent Framework, Google ADK and Strands never get such an item: ``docs/hosts.md`` gives the reasons. The formats
of the Anthropic SDK, the OpenAI Agents SDK and LiteLLM are those of the wire: ``tests/formats/test_provider_summaries.py``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai import messages as wire

from compaction import compact_sync, last, presets
from compaction.integrations import IntegrationOptions
from compaction.integrations.conversation import FrameworkConversations
from compaction.integrations.langchain import langchain
from compaction.integrations.pydantic_ai import pydantic_ai
from compaction.run import unawaited
from compaction.strategies import Clear, SelectiveToolCall, SlidingWindow, Strategy, Summarization, ToolResult, Truncation
from compaction.triggers import always, tokens_below, tokens_exceed
from tests.support.scripted import Scripted

Item = Callable[[str], list[Any]]
Turn = Callable[[int, str], list[Any]]


def langchain_turn(number: int, words: str) -> list[Any]:
    call = {"name": "look", "args": {"shelf": number}, "id": f"call_{number}"}
    called = [AIMessage("", tool_calls=[call]), ToolMessage(words, tool_call_id=f"call_{number}")]
    return [HumanMessage(f"Question {number}"), *called, AIMessage(f"Answer {number}")]


def langchain_item(secret: str) -> list[Any]:
    """Return what ``ChatOpenAI`` makes of a compaction item of Responses."""
    return [AIMessage([{"type": "compaction", "id": f"cmp_{secret}", "encrypted_content": secret}])]


def anthropic_block(secret: str) -> list[Any]:
    """Return what ``ChatAnthropic`` makes of a compaction block."""
    return [AIMessage([{"type": "compaction", "content": secret}, {"type": "text", "text": "Done."}])]


def pydantic_turn(number: int, words: str) -> list[Any]:
    return [
        wire.ModelRequest(parts=[wire.UserPromptPart(f"Question {number}")]),
        wire.ModelResponse(parts=[wire.ToolCallPart("look", {"shelf": number}, f"call_{number}")]),
        wire.ModelRequest(parts=[wire.ToolReturnPart("look", words, f"call_{number}")]),
        wire.ModelResponse(parts=[wire.TextPart(f"Answer {number}")]),
    ]


def pydantic_item(secret: str) -> list[Any]:
    part = wire.CompactionPart(None, id=f"cmp_{secret}", provider_name="openai", provider_details={"encrypted_content": secret})
    return [wire.ModelResponse(parts=[part])]


def harness_summary(secret: str) -> list[Any]:
    """Return a summary that pydantic-ai's own harness wrote."""
    return [wire.ModelRequest(parts=[wire.CompactionPart(secret)]), wire.ModelResponse(parts=[wire.TextPart("Yes.")])]


def bytes_of(format: Any, raw: Any) -> str:
    return json.dumps(format.to_wire(raw), sort_keys=True)


STRATEGIES: list[Strategy] = [
    Truncation(trigger=tokens_exceed(400), target=tokens_below(200), keep=last(groups=1)),
    SlidingWindow(),
    SelectiveToolCall(),
    Summarization(Scripted("A summary."), trigger=tokens_exceed(300), keep=last(groups=1)),
    ToolResult(Clear(min_chars=10), trigger=always),
    presets.hermes(800, Scripted("A summary."), protect_first_n=0, protect_last_n=1),
    presets.adaptive(1_200),
    presets.context_window(800),
    presets.token_budget(700),
]


@pytest.mark.parametrize(
    ("turn", "item", "format"),
    [
        (langchain_turn, langchain_item, langchain),
        (langchain_turn, anthropic_block, langchain),
        (pydantic_turn, pydantic_item, pydantic_ai),
        (pydantic_turn, harness_summary, pydantic_ai),
    ],
    ids=["LangChain, Responses", "LangChain, Anthropic", "pydantic-ai", "pydantic-ai, harness"],
)
def test_the_newest_item_stays(turn: Turn, item: Item, format: Any) -> None:
    """In 80 random sessions, the newest item is in each view of each strategy: the same object, byte for byte as it came."""
    for seed in range(80):
        source = random.Random(seed)
        strategy = source.choice(STRATEGIES)
        options = IntegrationOptions(strategy=strategy, counter="chars/4", on_failure="raise")
        conversations = FrameworkConversations(options, format)
        messages: list[Any] = []
        newest, came = None, ""
        for number in range(source.randint(3, 8)):
            messages += turn(number, f"row {number} " * source.randint(5, 120))
            if source.random() < 0.3:
                made = item(f"secret{seed}-{number}==")
                newest, came = made[0], bytes_of(format, made[0])
                messages += made
            request = [*messages, *turn(100 + number, "")[:1]]
            view = unawaited(conversations.turn(request, id="one", sync=True)).view
            if newest is not None:
                assert any(message is newest for message in view), (seed, strategy)
                assert bytes_of(format, newest) == came
            assert not format.validate(view) or format.validate(request), (seed, strategy)


def test_what_it_stands_for_goes_first() -> None:
    for turn, item, format in ((langchain_turn, langchain_item, langchain), (pydantic_turn, pydantic_item, pydantic_ai)):
        old, new = item("old=="), item("new==")
        messages = [*turn(1, "row " * 200), *old, *turn(2, "row " * 200), *new, *turn(3, "row"), *turn(4, "row")[:1]]
        strategy = Truncation(keep=last(groups=1))
        after = compact_sync(messages, strategy, counter="chars/4", format=format).messages
        assert any(message is new[0] for message in after)
        assert not any(message is old[0] for message in after)
