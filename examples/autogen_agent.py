"""An AutoGen agent whose model client sends a compacted conversation.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/autogen_agent.py 32000

Needs ``autogen-agentchat`` and ``autogen-ext[openai]``.
"""

import asyncio
import sys

import httpx
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from compacted_requests import CompactedRequests

from compaction import presets
from compaction.session import CompactionSession


def look_up_price(item: str) -> str:
    """Look up what an item costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {item} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


async def main(window: int) -> None:
    """Answer one question a line."""
    session = CompactionSession(presets.context_window(window), window=window)
    client = httpx.AsyncClient(transport=CompactedRequests(session))
    model = OpenAIChatCompletionClient(model="gpt-5-mini", http_client=client)
    agent = AssistantAgent("shop", model_client=model, tools=[look_up_price], max_tool_iterations=20)
    for question in sys.stdin:
        result = await agent.run(task=question.strip())
        print(result.messages[-1].content, flush=True)
    await model.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 32_000))
