"""The Anthropic SDK's tool runner with a client that compacts each request.

    $ echo "What does a laptop cost?" | ANTHROPIC_API_KEY=... python examples/anthropic_tool_runner.py chats

Needs the extra ``anthropic``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic, beta_tool

from compaction import presets
from compaction.integrations.anthropic import RequestCompaction
from compaction.stores import SessionStore


@beta_tool
def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def turn(client: Anthropic, tools: list[Any], messages: list[Any]) -> str:
    """Let the runner answer; ``messages`` is the whole history and only grows."""
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-4-5",
        max_tokens=1_000,
        system="You are a helpful shopping assistant.",
        tools=tools,
        messages=messages,
    )
    for message in runner:
        content = [block.model_dump(exclude_none=True) for block in message.content]
        messages.append({"role": "assistant", "content": content})
        if (results := runner.generate_tool_call_response()) is not None:
            messages.append(results)
    return "".join(block.text for block in runner.until_done().content if block.type == "text")


def main(folder: Path, window: int) -> None:
    """Answer one question a line; the whole history is saved, and the edits beside it."""
    saved = folder / "history.json"
    messages: list[Any] = json.loads(saved.read_text()) if saved.exists() else []
    compaction = RequestCompaction(presets.context_window(window), window=window, store=SessionStore(folder / "compaction.db"))

    @beta_tool
    def compact_conversation(focus: str) -> str:
        """Shorten the conversation, and keep most about the focus; for when a task is done and another begins."""
        compaction.compact_next(focus)
        return "The conversation is shortened before your next answer."

    with Anthropic(middleware=[compaction]) as client:
        for question in sys.stdin:
            messages.append({"role": "user", "content": question.strip()})
            print(turn(client, [look_up_price, compact_conversation], messages), flush=True)
            saved.with_suffix(".new").write_text(json.dumps(messages))
            saved.with_suffix(".new").replace(saved)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
