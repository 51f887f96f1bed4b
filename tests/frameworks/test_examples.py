"""The examples as programs, with a model on loopback that refuses the requests that a provider would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.model_server import ModelServer, prefix_breaks, tokens_of
from tests.frameworks.programs import Example

WINDOW = 4_000
NAMES = """
    agent_framework_shopping anthropic_loop anthropic_tool_runner google_adk_shopping langchain_agent openai_agents_session
    openai_loop pydantic_ai_history strands_shopping
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_killed_half_way_it_goes_on_with_the_same_view(name: str, server: ModelServer, tmp_path: Path) -> None:
    """Killed in a turn and restarted, the program sends the same requests, byte for byte, and continues.

    Every request of its 32 turns with tool calls is valid and fits, and changes its prefix only at a compaction.
    """
    program = Example(name, server, [str(tmp_path), str(WINDOW)])
    asked = [f"What does thing {place} of my list cost, please?" for place in range(32)]
    answers = program.ask(asked, kill_at=41)  # the first request of the twenty-first turn
    before = server.requests[-1]["messages"]
    assert len(answers) == 20
    assert prefix_breaks(server.requests) != []
    assert before[-1]["role"] == "user"
    answers += program.ask(asked[20:])
    assert len(answers) == 32
    assert server.refused == []
    same = len(before) - (name == "strands_shopping")  # Bedrock takes no second question: it becomes part of the first
    assert server.requests[41]["messages"][:same] == before[:same]
    sizes = list(map(tokens_of, server.requests))
    assert max(sizes) <= WINDOW
    assert [place for place in prefix_breaks(server.requests) if sizes[place] >= sizes[place - 1] and place != 41] == []
