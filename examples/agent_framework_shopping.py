"""Agent Framework's shopping assistant, kept inside a model's window, in a session that outlives the process.

    $ echo "What's the price of a laptop?" | OPENAI_API_KEY=... python examples/agent_framework_shopping.py chats

Needs the extra ``agent-framework`` and agent-framework-openai. Any OpenAI-compatible server will do: OPENAI_BASE_URL.
"""

import asyncio
import json
import sys
from pathlib import Path

from agent_framework import Agent, AgentSession, InMemoryHistoryProvider, tool
from agent_framework.openai import OpenAIChatCompletionClient

from compaction import GroupKind, Pipeline, kinds, last
from compaction.integrations.agent_framework import ChatClientSummarizer, CompactionProvider
from compaction.strategies import SlidingWindow, Summarization, ToolResult, Truncation
from compaction.triggers import tokens_below, tokens_exceed, turns_exceed


@tool(approval_mode="never_require")
def lookup_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    offers = [f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20)]
    return "; ".join(offers)


def make_agent(client: OpenAIChatCompletionClient, window: int) -> Agent:
    """Return the assistant: gentle steps run first, and the oldest groups leave last."""
    pipeline = Pipeline(
        ToolResult(
            trigger=tokens_exceed(window // 2),
            target=tokens_below(window // 3),
            keep=last(groups=2, of=kinds(GroupKind.TOOL_CALL)),
            at_least=window // 5,  # or it waits: every change costs the provider's prompt cache
        ),
        Summarization(
            ChatClientSummarizer(client), trigger=tokens_exceed(window * 3 // 5), keep=last(groups=4), on_failure="digest"
        ),
        SlidingWindow(trigger=turns_exceed(60), target=~turns_exceed(30), keep=last(turns=20)),
        Truncation(trigger=tokens_exceed(window * 4 // 5), target=tokens_below(window * 3 // 5), keep=last(groups=2)),
    )
    history = InMemoryHistoryProvider()
    compaction = CompactionProvider(before_strategy=pipeline, history_source_id=history.source_id, window=window)
    return Agent(
        client=client,
        name="ShoppingAssistant",
        instructions="You are a helpful shopping assistant.",
        tools=[lookup_price],
        context_providers=[history, compaction],
    )


async def main(folder: Path, window: int) -> None:
    """Answer one question a line; the session is saved after each, with the toolkit's state in it."""
    saved = folder / "session.json"
    agent = make_agent(OpenAIChatCompletionClient(model="gpt-5-mini"), window)
    session = AgentSession.from_dict(json.loads(saved.read_text())) if saved.exists() else agent.create_session()
    for question in sys.stdin:
        answer = await agent.run(question.strip(), session=session)
        print(answer.text, flush=True)
        saved.with_suffix(".new").write_text(json.dumps(session.to_dict()))
        saved.with_suffix(".new").replace(saved)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000))
