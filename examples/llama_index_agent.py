"""A LlamaIndex agent whose OpenAI client sends a compacted conversation.

    $ OPENAI_API_KEY=... python examples/llama_index_agent.py "What does a laptop cost?"

Needs ``llama-index-core`` and ``llama-index-llms-openai``.
"""

import asyncio
import sys

import httpx
from compacted_requests import CompactedRequests
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai import OpenAI

from compaction import presets
from compaction.session import CompactionSession


def look_up_price(item: str) -> str:
    """Look up what an item costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {item} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


async def main(question: str) -> None:
    """Answer a question."""
    session = CompactionSession(presets.context_window(32_000), window=32_000)
    client = httpx.AsyncClient(transport=CompactedRequests(session))
    llm = OpenAI(model="gpt-5-mini", async_http_client=client)
    agent = FunctionAgent(llm=llm, tools=[look_up_price], streaming=False)
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000_000)  # so large that it cuts nothing before the session sees it
    print(await agent.run(question, memory=memory))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
