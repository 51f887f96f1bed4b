"""A Strands agent on Amazon Bedrock whose requests are compacted; its messages stay whole.

    $ echo "What does a laptop cost?" | AWS_PROFILE=... python examples/strands_shopping.py chats

Needs the extra ``strands``.
"""

import sys
from pathlib import Path

from strands import Agent, tool
from strands.session import FileSessionManager

from compaction import presets
from compaction.integrations.strands import CompactionConversationManager


@tool
def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def main(folder: Path, window: int) -> None:
    """Answer one question a line."""
    compaction = CompactionConversationManager(presets.context_window(window), window=window)

    @tool
    def compact_conversation(focus: str) -> str:
        """Make room: shorten the conversation so far, but keep what concerns the focus."""
        compaction.compact_next(focus)
        return "The conversation is shortened before the next step."

    agent = Agent(
        system_prompt="You are a helpful shopping assistant.",
        tools=[look_up_price, compact_conversation],
        conversation_manager=compaction,
        session_manager=FileSessionManager("shop", storage_dir=str(folder)),
        callback_handler=None,
    )
    for question in sys.stdin:
        print(str(agent(question.strip())).strip(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
