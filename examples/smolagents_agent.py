"""A smolagents agent whose model sends a compacted conversation.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/smolagents_agent.py 32000

Needs ``smolagents[openai]``.
"""

import sys
from typing import Any

from openai import BadRequestError
from smolagents import OpenAIModel, ToolCallingAgent, tool

from compaction import presets
from compaction.session import CompactionSession


class CompactedModel(OpenAIModel):
    """Sends what a session returns in place of the agent's messages, and once more if that was too long."""

    def __init__(self, *args: Any, session: CompactionSession, **options: Any) -> None:
        super().__init__(*args, **options)
        self.session = session

    def _prepare_completion_kwargs(self, *args: Any, **options: Any) -> dict[str, Any]:
        ready = super()._prepare_completion_kwargs(*args, **options)
        return {**ready, "messages": self.session.view_sync(ready["messages"])}

    def generate(self, *args: Any, **options: Any) -> Any:
        """Return the model's reply."""
        try:
            reply = super().generate(*args, **options)
        except BadRequestError as error:
            self.session.overflowed_sync(error)  # from now on, what the session returns fits
            reply = super().generate(*args, **options)
        self.session.record_usage(reply.raw.usage)
        return reply


@tool
def look_up_price(item: str) -> str:
    """Look up what an item costs, in every shop that has it.

    Args:
        item: The item.
    """
    return "; ".join(f"shop {n} sells {item} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def main(window: int) -> None:
    """Answer one question a line, in one conversation."""
    session = CompactionSession(presets.context_window(window), format="openai-chat", window=window)
    model = CompactedModel("gpt-5-mini", session=session)
    agent = ToolCallingAgent(tools=[look_up_price], model=model, verbosity_level=0)
    for question in sys.stdin:
        print(agent.run(question.strip(), reset=False), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 32_000)
