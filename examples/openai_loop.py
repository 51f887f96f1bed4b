"""A plain tool loop with the bare ``openai`` client and a session of this toolkit.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/openai_loop.py chats

Needs the ``openai`` package.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openai import BadRequestError, OpenAI
from openai.types.chat import ChatCompletion

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


def ask(client: OpenAI, session: CompactionSession, view: list[Any], tries: int = 3) -> ChatCompletion:
    """Send a view; if the provider refuses it as too long, send a shorter one."""
    try:
        reply = client.chat.completions.create(model="gpt-5-mini", messages=view, tools=[TOOL])
    except BadRequestError as error:
        if tries == 1:
            raise
        return ask(client, session, session.overflowed_sync(error), tries - 1)  # any other error is raised again
    if reply.usage is not None:
        session.record_usage(reply.usage)
    return reply


def turn(client: OpenAI, session: CompactionSession, messages: list[Any], saved: Path) -> str:
    """Ask until the model calls no more tools; ``messages`` is the whole history and only grows."""
    while True:
        said = ask(client, session, session.view_sync(messages)).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls or ():
            result = look_up_price(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        save(messages, saved)  # a reply together with its results
        if not said.tool_calls:
            return said.content or ""


def save(messages: list[Any], saved: Path) -> None:
    """Save the whole history; the session saves its edits itself."""
    saved.with_suffix(".new").write_text(json.dumps(messages))
    saved.with_suffix(".new").replace(saved)


def main(folder: Path, window: int) -> None:
    """Answer one question a line, and first the question that was interrupted, if there is one."""
    saved = folder / "history.json"
    messages: list[Any] = [{"role": "system", "content": "You are a helpful shopping assistant."}]
    if saved.exists():
        messages = json.loads(saved.read_text())
    store = SessionStore(folder / "compaction.db")
    session = CompactionSession(presets.adaptive(window), window=window, store=store, id="shop")
    with OpenAI() as client:
        if messages[-1]["role"] == "tool":
            print(turn(client, session, messages, saved), flush=True)
        for question in sys.stdin:
            messages.append({"role": "user", "content": question.strip()})
            print(turn(client, session, messages, saved), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
