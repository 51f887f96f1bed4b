"""A CrewAI agent whose messages are compacted before each call of its model.

    $ OPENAI_API_KEY=... python examples/crewai_agent.py "What does a laptop cost?"

Needs ``crewai``.
"""

import sys
from typing import Any

from crewai import Agent
from crewai.hooks import before_llm_call
from crewai.tools import tool

from compaction import presets
from compaction.session import SessionPool

pool = SessionPool(presets.context_window(32_000), format="openai-chat", window=32_000)


@before_llm_call
def compact(context: Any) -> None:
    """Put the compacted messages into the executor's list; the session of the agent's conversation is found by them."""
    context.messages[:] = pool.view_sync(context.messages)


@tool("look_up_price")
def look_up_price(item: str) -> str:
    """Look up what an item costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {item} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


if __name__ == "__main__":
    shop = Agent(role="Shop", goal="Answer what things cost", backstory="You know every shop.", tools=[look_up_price])
    print(shop.kickoff(sys.argv[1]).raw)
