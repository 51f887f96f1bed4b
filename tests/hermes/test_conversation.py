"""A whole turn of a real agent with a scripted model on loopback: compaction before the request, and the tools in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from compaction import validate
from tests.support.hosts import tokens_of
from tests.support.servers import Got, Handler, ScriptedUpstream, answer

ASKED = {"query": "SETTING", "limit": 3}
CALL = {"id": "call_1", "type": "function", "function": {"name": "compaction_grep", "arguments": json.dumps(ASKED)}}

TOO_LONG = {
    "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}


class Model(ScriptedUpstream):
    """Answers the first request with a search of compacted messages, later ones with a word. Holds state: the requests."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.requests: list[dict[str, Any]] = []
        self.window = 1_000_000  # tokens, at four characters each

    def reply(self, handler: Handler, got: Got) -> None:
        if not got.path.endswith("/chat/completions"):
            answer(404, {})(handler, got)
            return
        self.requests.append(request := got.json)
        if tokens_of(request["messages"]) > self.window:
            answer(400, {"error": TOO_LONG})(handler, got)
            return
        first = len(self.requests) == 1
        message = {"role": "assistant", **({"content": None, "tool_calls": [CALL]} if first else {"content": "Done."})}
        usage = {"prompt_tokens": 30_000, "completion_tokens": 10, "total_tokens": 30_010}
        about = {"id": "1", "created": 1, "model": "scripted", "usage": usage}
        choice = {"index": 0, "finish_reason": "tool_calls" if first else "stop"}
        if request.get("stream"):
            delta = {**message, "tool_calls": [{**CALL, "index": 0}]} if first else message
            chunk = {**about, "object": "chat.completion.chunk", "choices": [{**choice, "delta": delta}]}
            data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
            answer(200, data, content_type="text/event-stream")(handler, got)
        else:
            answer(200, {**about, "object": "chat.completion", "choices": [{**choice, "message": message}]})(handler, got)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as running:
        yield running


def test_a_turn(
    configured: Callable[[float], None], agent: Callable[..., Any], coding: list[dict[str, Any]], model: Model
) -> None:
    """Hermes compacts before the first request, sends a valid one with the tools, and answers the model's search with them."""
    configured(0.25)
    made = agent(model="scripted", provider="custom", base_url=f"{model.url}/v1", max_iterations=4)
    done = made.run_conversation("What was the setting?", conversation_history=coding[1:])
    engine = made.context_compressor
    assert (done["final_response"], engine.compression_count, engine.last_error) == ("Done.", 1, None)
    first, second = (request["messages"] for request in model.requests)
    assert len(first) < len(coding) / 3
    assert [validate(first), validate(second)] == [[], []]
    assert "compaction_grep" in [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert second[-1]["role"] == "tool"
    assert json.loads(second[-1]["content"])["results"]
    assert engine.last_prompt_tokens == 30_000


def test_a_refused_request(
    configured: Callable[[float], None], agent: Callable[..., Any], coding: list[dict[str, Any]], model: Model
) -> None:
    """A refused request below the threshold is compacted further each time, until the provider accepts it."""
    configured(0.9)
    model.window = 10_000
    made = agent(model="scripted", provider="custom", base_url=f"{model.url}/v1", max_iterations=4)
    done = made.run_conversation("What was the setting?", conversation_history=coding[1:])
    sizes = [tokens_of(request["messages"]) for request in model.requests]
    assert done["final_response"] == "Done."
    assert sizes[0] > model.window * 2
    assert len(sizes) > 2
    assert all(after < 0.7 * before for before, after in pairwise(sizes))  # the system prompt stays
    assert sizes[-1] <= model.window
    assert [validate(request["messages"]) for request in model.requests] == [[]] * len(sizes)
