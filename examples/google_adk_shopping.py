"""A Google ADK agent whose requests are compacted by a plugin; its sessions stay whole.

    $ echo "What does a laptop cost?" | GOOGLE_API_KEY=... python examples/google_adk_shopping.py chats

Needs the extra ``google-adk``.
"""

import asyncio
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import ToolContext
from google.genai import types

from compaction import presets
from compaction.integrations.google_adk import CompactionPlugin


def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


async def main(folder: Path, window: int) -> None:
    """Answer one question a line."""
    compaction = CompactionPlugin(presets.context_window(window), window=window)

    def compact_conversation(focus: str, tool_context: ToolContext) -> str:
        """Make room: shorten the conversation so far, but keep what concerns the focus."""
        compaction.compact_next(tool_context, focus)
        return "The conversation is shortened before the next step."

    agent = LlmAgent(
        name="shop",
        model="gemini-2.5-flash",
        instruction="You are a helpful shopping assistant.",
        tools=[look_up_price, compact_conversation],
    )
    app = App(name="shopping", root_agent=agent, plugins=[compaction])
    runner = Runner(app=app, session_service=SqliteSessionService(str(folder / "sessions.db")), auto_create_session=True)
    for question in sys.stdin:
        message = types.Content(role="user", parts=[types.Part(text=question.strip())])
        async for event in runner.run_async(user_id="you", session_id="shop", new_message=message):
            if event.is_final_response() and event.content and event.content.parts:
                print(event.content.parts[0].text, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000))
