"""The recipes of docs/frameworks/recipes.md for AutoGen and smolagents, run for 40 turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.hosts.script import Asked, Call, Reply, script, user_text
from benchmarks.hosts.server import StrictServer
from tests.frameworks.programs import Example

WINDOW = 12_000


class Server(StrictServer):
    """The strict server, for the harness of the examples."""

    url = property(lambda self: f"{self.address}/v1")


def answer_by_tool(asked: Asked, id: str) -> Reply:
    """Answer as smolagents requires, which sends calls and results as text and answers by a tool."""
    task = next((step.text for step in reversed(asked.steps) if "[[" in step.text), "")
    if asked.steps[-1].text.rstrip().endswith(task.rstrip()[-40:]):
        calls = [Call(f"call_{id}_{n}", "look_up_price", {"item": f"{id}/{n}"}) for n in range(5)]
        return Reply(id=id, calls=tuple(calls))
    return Reply(id=id, calls=(Call(f"call_{id}", "final_answer", {"answer": "It costs 100 euros."}),))


RECIPES: list[Any] = [
    pytest.param("autogen_agent", "autogen_agentchat", script, id="AutoGen"),
    pytest.param("smolagents_agent", "smolagents", answer_by_tool, id="smolagents"),
]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "package", "play"), RECIPES)
@pytest.mark.parametrize("window", [WINDOW, 1_000_000], ids=["window known", "window learned"])
def test_40_turns_of_a_recipe(name: str, package: str, play: Callable[[Asked, str], Reply], window: int) -> None:
    """With five calls a turn, no request is invalid or too long twice, and the prefix breaks only at a compaction."""
    pytest.importorskip(package, reason="needs a separate environment: make test-frameworks")
    with Server(window=WINDOW, play=play) as server:
        program = Example(name, server, [str(window)])  # type: ignore[arg-type]
        answers = program.ask([user_text("c0", turn) for turn in range(40)], seconds=250)
    page = server.ledger.page("c0")
    assert len(answers) == 40
    assert server.ledger.total("invalid") == 0, page.problems
    assert server.ledger.total("over_twice") == 0
    assert server.ledger.total("over") <= (2 if window > WINDOW else 0), page.problems
    assert 0 < page.breaks < page.requests / 3
