"""An agent of the OpenAI Agents SDK with a session that compacts, between runs and inside them.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/openai_agents_session.py chats

Needs the extra ``openai-agents``.
"""

import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from compaction import presets
from compaction.integrations.openai_agents import CompactingModel, CompactingSession
from compaction.stores import SessionStore


@function_tool
def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


async def main(folder: Path, window: int) -> None:
    """Answer one question a line."""
    set_tracing_disabled(disabled=True)
    session = CompactingSession(
        SQLiteSession("shop", folder / "items.db"),
        presets.context_window(window),
        store=SessionStore(folder / "compaction.db"),
        window=window,
    )
    run_config = RunConfig(call_model_input_filter=session.filter)
    async with AsyncOpenAI() as client:
        agent = Agent(
            name="ShoppingAssistant",
            instructions="You are a helpful shopping assistant.",
            tools=[look_up_price],
            model=CompactingModel(OpenAIChatCompletionsModel("gpt-5-mini", client)),
        )
        for question in sys.stdin:
            result = await Runner.run(agent, question.strip(), session=session, run_config=run_config)
            print(result.final_output, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000))
