"""A pydantic-ai agent whose model requests are compacted.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/pydantic_ai_history.py chats

Needs the extra ``pydantic-ai``.
"""

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent, ModelMessagesTypeAdapter

from compaction import presets
from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.stores import SessionStore


def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


async def main(folder: Path, window: int) -> None:
    """Answer one question a line; the whole history is saved, and the edits beside it."""
    saved = folder / "history.json"
    processor = CompactionProcessor(presets.context_window(window), window=window, store=SessionStore(folder / "compaction.db"))
    agent = Agent(
        "openai-chat:gpt-5-mini",
        instructions="You are a helpful shopping assistant.",
        tools=[look_up_price],
        capabilities=[processor],
    )
    history = ModelMessagesTypeAdapter.validate_json(saved.read_bytes()) if saved.exists() else []
    async with agent:
        for question in sys.stdin:
            result = await agent.run(question.strip(), message_history=history)
            history = result.all_messages()
            print(result.output, flush=True)
            saved.with_suffix(".new").write_bytes(ModelMessagesTypeAdapter.dump_json(history))
            saved.with_suffix(".new").replace(saved)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000))
