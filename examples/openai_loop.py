"""A plain tool loop with the bare ``openai`` client and a session of this toolkit.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/openai_loop.py chats

Needs compaction-toolkit and the ``openai`` package.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openai import OpenAI

from compaction import presets
from compaction.session import CompactionSession
from compaction.stores import SessionStore

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up_price",
        "description": "Look up what a product costs, in every shop that has it.",
        "parameters": {"type": "object", "properties": {"product": {"type": "string"}}, "required": ["product"]},
    },
}


def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def turn(client: OpenAI, session: CompactionSession, messages: list[Any]) -> str:
    """Ask until the model calls no more tools; ``messages`` is the whole history and only grows."""
    while True:
        reply = client.chat.completions.create(model="gpt-5-mini", messages=session.view_sync(messages), tools=[TOOL])
        if reply.usage is not None:
            session.record_usage(reply.usage)
        said = reply.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content or ""
        for call in said.tool_calls:
            result = look_up_price(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main(folder: Path, window: int) -> None:
    """Answer one question a line; the whole history is saved, and the edits beside it."""
    saved = folder / "history.json"
    messages: list[Any] = [{"role": "system", "content": "You are a helpful shopping assistant."}]
    if saved.exists():
        messages = json.loads(saved.read_text())
    store = SessionStore(folder / "compaction.db")
    session = CompactionSession(presets.context_window(window), window=window, store=store, id="shop")
    with OpenAI() as client:
        for question in sys.stdin:
            messages.append({"role": "user", "content": question.strip()})
            print(turn(client, session, messages), flush=True)
            saved.with_suffix(".new").write_text(json.dumps(messages))
            saved.with_suffix(".new").replace(saved)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
