"""A LangChain agent whose requests stay inside a window, with its whole history and the edits in a checkpointer.

    $ echo "What does a laptop cost?" | OPENAI_API_KEY=... python examples/langchain_agent.py chats

Needs the extra ``langchain``, langchain-openai and langgraph-checkpoint-sqlite.
"""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from compaction import last
from compaction.integrations.langchain import ChatModelSummarizer, CompactionMiddleware
from compaction.strategies import Summarization, ToolResult, Truncation
from compaction.triggers import tokens_below, tokens_exceed


def look_up_price(product: str) -> str:
    """Look up what a product costs, in every shop that has it."""
    return "; ".join(f"shop {n} sells {product} for {100 + 7 * n} euros, delivery in {n % 5 + 1} days" for n in range(20))


def main(folder: Path, window: int) -> None:
    """Answer one question a line."""
    model = ChatOpenAI(model="gpt-5-mini")
    strategy = (
        ToolResult(
            trigger=tokens_exceed(window // 2), target=tokens_below(window // 3), keep=last(groups=4), at_least=window // 5
        )
        >> Summarization(
            ChatModelSummarizer(model), trigger=tokens_exceed(window * 3 // 5), keep=last(groups=4), on_failure="digest"
        )
        >> Truncation(trigger=tokens_exceed(window * 4 // 5), target=tokens_below(window * 3 // 5), keep=last(groups=2))
    )
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as checkpointer:
        agent = create_agent(
            model,
            tools=[look_up_price],
            system_prompt="You are a helpful shopping assistant.",
            middleware=[CompactionMiddleware(strategy, window=window)],
            checkpointer=checkpointer,
        )
        for question in sys.stdin:
            state = agent.invoke({"messages": [("user", question.strip())]}, {"configurable": {"thread_id": "shop"}})
            print(state["messages"][-1].text, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32_000)
