"""A plain tool loop with the bare ``anthropic`` client and a session of this toolkit.

    $ echo "What does a laptop cost?" | ANTHROPIC_API_KEY=... python examples/anthropic_loop.py chats

Needs the ``anthropic`` package.
"""

import json
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic

from compaction import presets
from compaction.session import CompactionSession
from compaction.stores import SessionStore

TOOL = {
    "name": "look_up_price",
    "description": "Look up what a product costs, in every shop that has it.",
    "input_schema": {"type": "object", "properties": {"product": {"type": "string"}}, "required": ["product"]},
}


def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def turn(client: Anthropic, session: CompactionSession, messages: list[Any]) -> str:
    """Ask until the model calls no more tools; ``messages`` is the whole history and only grows."""
    while True:
        reply = client.messages.create(
            model="claude-sonnet-4-5",
            max_tokens=1_000,
            system="You are a helpful shopping assistant.",
            tools=[TOOL],
            messages=session.view_sync(messages),
        )
        session.record_usage(reply.usage)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": look_up_price(**block.input)}
            for block in reply.content
            if block.type == "tool_use"
        ]
        if not results:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "user", "content": results})


def main(folder: Path, window: int) -> None:
    """Answer one question a line; the whole history is saved, and the session's edits beside it."""
    saved = folder / "history.json"
    messages: list[Any] = json.loads(saved.read_text()) if saved.exists() else []
    store = SessionStore(folder / "compaction.db")
    session = CompactionSession(
        presets.context_window(window), format="anthropic", window=window, overhead_tokens=200, store=store, id="shop"
    )
    with Anthropic() as client:
        for question in sys.stdin:
            messages.append({"role": "user", "content": question.strip()})
            print(turn(client, session, messages), flush=True)
            saved.with_suffix(".new").write_text(json.dumps(messages))
            saved.with_suffix(".new").replace(saved)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
