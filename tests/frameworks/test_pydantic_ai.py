"""pydantic-ai: length errors, reported usage, compaction on request, and stored histories."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import Agent, RetryModelRequest, RunContext
from pydantic_ai import messages as wire
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.models.function import AgentInfo, FunctionModel

from compaction import last, presets
from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.strategies import SlidingWindow, Summarization
from compaction.triggers import never, tokens_exceed
from tests.frameworks.turns import turn_of
from tests.support.scripted import Scripted


def history() -> list[Any]:
    messages: list[Any] = []
    for turn in range(20):
        messages.append(wire.ModelRequest.user_text_prompt(f"Ask {turn}: " + "the shop is open. " * 20))
        messages.append(wire.ModelResponse(parts=[wire.TextPart(f"Answer {turn}.")]))
    return messages


async def test_a_tool_asks_for_compaction() -> None:
    summarizer = Scripted(lambda request: f"About {request.focus}.")
    strategy = Summarization(summarizer, trigger=tokens_exceed(100_000), keep=last(turns=2))
    processor, lengths = CompactionProcessor(strategy, counter="chars/4"), list[int]()

    def compact_conversation(ctx: RunContext, focus: str = "") -> str:
        """Shorten the conversation so far."""
        assert ctx.conversation_id is not None
        processor.compact_next(ctx.conversation_id, focus)
        return "It will be shortened."

    async def answer(messages: list[Any], info: AgentInfo) -> Any:
        lengths.append(len(messages))
        if len(lengths) > 1:
            return wire.ModelResponse(parts=[wire.TextPart("Done.")])
        return wire.ModelResponse(parts=[wire.ToolCallPart("compact_conversation", {"focus": "prices"}, "c1")])

    agent = Agent(FunctionModel(answer), tools=[compact_conversation], capabilities=[processor])
    result = await agent.run("Shorten it.", message_history=history())
    assert lengths[0] == 41
    assert lengths[1] < 10
    assert len(result.all_messages()) == 44


async def test_as_a_history_processor() -> None:
    processor = CompactionProcessor(presets.token_budget(300), counter="chars/4")

    async def answer(messages: list[Any], info: AgentInfo) -> Any:
        return wire.ModelResponse(parts=[wire.TextPart("5.")])

    agent = Agent(FunctionModel(answer), capabilities=[ProcessHistory(processor)])
    result = await agent.run("And now?", message_history=history())
    assert len(result.all_messages()) < 20
    assert turn_of(processor).result.outcome == "compacted"


# --- single requests --------------------------------------------------------------------------------------------------


def request_of(messages: list[Any], **parameters: Any) -> Any:
    """Return a request as the framework passes it to hooks."""
    given = {"function_tools": [], "output_tools": [], "instruction_parts": None, **parameters}
    model = SimpleNamespace(model_name="gpt-5")
    return SimpleNamespace(messages=messages, model=model, model_request_parameters=SimpleNamespace(**given))


CONTEXT = SimpleNamespace(conversation_id="one")
HISTORY = history()
REFUSAL = ValueError("prompt is too long: 9000 tokens > 4000 maximum")


async def test_what_counts_besides_the_messages() -> None:
    """Instructions and tools of both kinds count, also without a description; the model's name gives the window."""
    look = SimpleNamespace(name="look_up", description=None, parameters_json_schema={"a": 1})
    said = wire.InstructionPart("Rules.")
    say = SimpleNamespace(name="say", description="Say it. " * 40, parameters_json_schema={})
    processor = CompactionProcessor(SlidingWindow(trigger=never), counter="chars/4", window="auto")
    request = request_of(HISTORY, function_tools=[look], output_tools=[say], instruction_parts=[said])
    assert await processor.before_model_request(CONTEXT, request) is request
    assert request.messages == HISTORY
    turn = turn_of(processor)
    counted = processor.conversations.count("Rules.", ["look_up", "", {"a": 1}], ["say", say.description, {}])
    assert turn.index.context.overhead_tokens == counted > 80
    assert turn.index.context.window == 272_000
    await processor.before_model_request(CONTEXT, request_of(HISTORY))
    assert turn.index.context.overhead_tokens == 0


async def test_a_refused_request() -> None:
    """The framework is asked to try once more, and gets the shorter view; a run of its own shares nothing of it."""
    processor = CompactionProcessor(SlidingWindow(trigger=never, keep=last(turns=1)), counter="chars/4")
    run = await processor.for_run(CONTEXT)
    assert run.conversations is processor.conversations
    request = request_of(HISTORY)
    for error in (REFUSAL, ZeroDivisionError()):
        with pytest.raises(type(error)):
            await run.on_model_request_error(CONTEXT, request_context=request, error=error)
    await run.before_model_request(CONTEXT, request)
    assert (await run.prepare_model_request(CONTEXT, request)).messages == HISTORY
    other = await run.for_run(CONTEXT)
    with pytest.raises(RetryModelRequest) as raised:
        await run.on_model_request_error(CONTEXT, request_context=request, error=REFUSAL)
    assert raised.value.__cause__ is REFUSAL
    assert len((await run.prepare_model_request(CONTEXT, request)).messages) < 40
    with pytest.raises(ValueError, match="too long"):
        await run.on_model_request_error(CONTEXT, request_context=request, error=REFUSAL)
    for apart in (other, await run.for_run(CONTEXT)):
        with pytest.raises(ValueError, match="too long"):
            await apart.on_model_request_error(CONTEXT, request_context=request, error=REFUSAL)
        whole = request_of(HISTORY)
        assert len((await apart.prepare_model_request(CONTEXT, whole)).messages) == 40


async def test_the_last_response_is_left_as_it_is() -> None:
    """A call that still waits for its result is not answered on the way, and messages of one kind are joined."""
    call = wire.ModelResponse(parts=[wire.ToolCallPart("look_up", {}, "c1")])
    request = request_of([wire.ModelRequest.user_text_prompt("a"), wire.ModelRequest.user_text_prompt("b"), call])
    await CompactionProcessor(SlidingWindow(trigger=never)).before_model_request(CONTEXT, request)
    assert [len(message.parts) for message in request.messages] == [2, 1]
