"""Google ADK: its contents as a format, and behaviour of the plugin that the examples and the table of hosts do not cover."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.genai import types

from compaction import compact_sync, last, presets
from compaction.errors import BudgetUnsatisfiable
from compaction.integrations.google_adk import CompactionPlugin, adk_contents
from compaction.messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.strategies import Clear, Summarization, Truncation
from compaction.strategies import ToolResult as Clearing
from compaction.testing import check_strategy
from compaction.triggers import never, tokens_exceed
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Scripted

CALL = types.Part(function_call=types.FunctionCall(id="c1", name="look_up", args={"a": 1}), thought_signature=b"signed")
RESULT = types.Part(function_response=types.FunctionResponse(id="c1", name="look_up", response={"result": "18 " * 50}))
PARTS: dict[str, tuple[types.Part, type]] = {
    "text": (types.Part(text="hello"), TextPart),
    "thought": (types.Part(text="hm", thought=True, thought_signature=b"signed"), ReasoningPart),
    "call": (CALL, ToolCallPart),
    "result": (RESULT, ToolResultPart),
    "data": (types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png")), MediaPart),
    "file": (types.Part(file_data=types.FileData(file_uri="gs://a/b.mp3", mime_type="audio/mpeg")), MediaPart),
    "code": (types.Part(executable_code=types.ExecutableCode(code="1 + 1", language=types.Language.PYTHON)), OtherPart),
}


def too_long(tokens: int = 740, window: int = 500) -> ValueError:
    """Return the provider's length error, by default for the first eight notes."""
    return ValueError(f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).")


def content(*parts: types.Part | str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts])


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_every_part_is_kept_whole(kind: str) -> None:
    """Each part is read as its kind, written as the same object, and survives JSON."""
    part, read_as = PARTS[kind]
    raw = content(part, "beside it", role="user" if kind == "result" else "model")
    message = adk_contents.read(raw)
    assert type(message.parts[0]) is read_as
    assert message.raw is raw
    assert adk_contents.from_wire(json.loads(json.dumps(adk_contents.to_wire(raw)))) == raw
    changed = adk_contents.changed(message, message.parts[:1]).raw
    assert isinstance(changed, types.Content)
    assert changed.parts is not None
    assert changed.parts[0] is part


def test_what_is_made_are_contents() -> None:
    """Changed, new and repaired messages are the framework's objects, and keep their ids and signatures."""
    raws = [content("prices?"), content(CALL, role="model"), content(RESULT)]
    result = compact_sync([*raws, content("thanks")], Clearing(Clear(min_chars=1), keep=last(groups=1)), format=adk_contents)
    assert result.edits
    assert [isinstance(raw, types.Content) for raw in result.messages] == [True] * 4
    assert result.messages[:2] == raws[:2]
    answered = result.messages[2].parts[0].function_response
    assert (answered.id, answered.name) == ("c1", "look_up")
    assert answered.response != {"result": "18 " * 50}
    repaired = adk_contents.repair([*raws[:2], content("again")])
    assert all(isinstance(raw, types.Content) for raw in repaired.messages)
    assert repaired.remaining == ()


def test_the_format_holds_the_laws() -> None:
    check_strategy(Truncation(keep=last(groups=1)), format=adk_contents)


# --- the plugin -------------------------------------------------------------------------------------------------------


class ScriptedModel(BaseLlm):
    """Replays replies: texts, calls, or errors. Holds state: the remaining replies, and the requests."""

    model: str = "gemini-2.5-flash"
    replies: list[Any]
    requests: list[list[types.Content]]
    streamed: list[bool]

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request.contents)
        self.streamed.append(stream)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        size = sum(len(part.text or "") for each in llm_request.contents for part in each.parts or ())
        if stream:
            yield LlmResponse(content=content(reply, role="model"), partial=True)
        yield LlmResponse(content=content(reply, role="model"), usage_metadata=used(size // 4))


def runner_of(plugin: CompactionPlugin, *replies: Any, alone: bool = False, tools: Sequence[Any] = ()) -> InMemoryRunner:
    """Return a runner with the plugin; with ``alone``, its callbacks are on the agent instead."""
    model = ScriptedModel(replies=list(replies), requests=[], streamed=[])
    agent = LlmAgent(name="shop", model=model, tools=list(tools), **(plugin.callbacks if alone else {}))
    return InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=[] if alone else [plugin]))


async def ask(runner: InMemoryRunner, *texts: str) -> None:
    runner.auto_create_session = True
    for text in texts:
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=content(text)):
            pass


def requests_of(runner: InMemoryRunner) -> list[list[types.Content]]:
    agent: Any = runner.agent
    requests: list[list[types.Content]] = agent.model.requests
    return requests


NOTES = [f"Note {place}: " + "the shop is open. " * 20 for place in range(8)]
both = pytest.mark.parametrize("alone", [False, True], ids=["plugin", "callbacks"])


@both
async def test_nothing_more_can_go(alone: bool) -> None:
    """The typed error lists what uses the space; ADK wraps a plugin's error."""
    plugin = CompactionPlugin(Truncation(trigger=never), counter="chars/4", pin=lambda message: True)
    refusal = too_long(9_000, 1_000)
    with pytest.raises(BudgetUnsatisfiable if alone else RuntimeError) as raised:
        await ask(runner_of(plugin, refusal, alone=alone), "x" * 36_000)
    error = raised.value if alone else raised.value.__cause__
    assert isinstance(error, BudgetUnsatisfiable)
    assert error.__cause__ is refusal


async def test_other_errors_are_raised_as_they_are() -> None:
    """Nothing is repeated; if the second attempt fails otherwise, the first error has a note about it."""
    other = OSError("the server is down")
    plugin = CompactionPlugin(Truncation(trigger=never), counter="chars/4")
    runner = runner_of(plugin, other, *["ok"] * 7, too_long(), other)
    with pytest.raises(OSError, match="the server is down"):
        await ask(runner, "hi")
    assert len(requests_of(runner)) == 1
    with pytest.raises(ValueError, match="exceeds the maximum") as raised:
        await ask(runner, *NOTES)
    assert "the server is down" in raised.value.__notes__[-1]


async def test_the_model_asks_for_compaction() -> None:
    """A tool that calls ``compact_next`` compacts before its agent's next request, with the focus in the summary's prompt."""
    scripted = Scripted("## Goal\nPrices.\n\n## Progress\nSome.\n\n## Next steps\nAnswer.")
    strategy = Summarization(scripted, trigger=tokens_exceed(10**6), keep=last(groups=1))
    plugin = CompactionPlugin(strategy, counter="chars/4")

    def compact_conversation(focus: str, tool_context: ToolContext) -> str:
        """Make room."""
        plugin.compact_next(tool_context, focus)
        return "soon"

    call = types.Part(function_call=types.FunctionCall(id="c1", name="compact_conversation", args={"focus": "tea"}))
    runner = runner_of(plugin, *["ok"] * 7, call, "done", "and on", tools=[compact_conversation])
    await ask(runner, *NOTES, "more?")
    sizes = [len(request) for request in requests_of(runner)]
    assert sizes[7] == 15
    assert sizes[8] < 10
    assert sizes[9] == sizes[8] + 2
    assert len(scripted.requests) == 1
    assert "tea" in str(scripted.requests[0])


async def test_what_a_service_keeps_is_left_alone() -> None:
    contents = [content("hi")]
    request = SimpleNamespace(previous_interaction_id="i1", contents=contents)
    plugin = CompactionPlugin(presets.token_budget(300))
    await plugin.before_model_callback(callback_context=None, llm_request=request)
    assert request.contents is contents


class Call:
    """A model call of an agent, as ADK passes it to callbacks. Holds state: the session's state and the calls counted."""

    def __init__(self, *events: Any, model: Any = None, invocation: str = "i", **about: Any) -> None:
        self.counted = 0
        self.state: dict[str, Any] = {}
        session = SimpleNamespace(app_name="shop", user_id="u", id="s", events=events)
        agent = SimpleNamespace(name="shop", canonical_model=model)
        self._run = SimpleNamespace(session=session, agent=agent, branch=None, invocation_id=invocation, **about)
        self._run.increment_llm_call_count = self.count

    def count(self) -> None:
        self.counted += 1

    def get_invocation_context(self) -> Any:
        return self._run

    async def send(self, plugin: CompactionPlugin, *contents: types.Content, config: Any = None) -> LlmRequest:
        request = LlmRequest(model="gemini-2.5-flash", contents=list(contents), config=config or types.GenerateContentConfig())
        await plugin.before_model_callback(callback_context=self, llm_request=request)
        return request


def watching(**options: Any) -> CompactionPlugin:
    return CompactionPlugin(Truncation(trigger=never, keep=last(groups=1)), counter="chars/4", **options)


def used(tokens: int | None) -> Any:
    return None if tokens is None else types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens)


async def test_calls_that_were_cancelled_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of calls that wait for their usage is bounded, and the oldest is forgotten first."""
    monkeypatch.setattr("compaction.integrations.google_adk._UNDER_WAY", 2)
    plugin, contents = watching(), [content(note) for note in NOTES]
    model = ScriptedModel(replies=["ok"] * 3, requests=[], streamed=[])
    calls = [Call(invocation=str(number), model=model) for number in range(3)]
    requests = [await call.send(plugin, *contents) for call in calls]
    for call, request, answered in zip(calls, requests, (False, True, True), strict=True):
        answer = await plugin.on_model_error_callback(callback_context=call, llm_request=request, error=too_long())
        assert (answer is not None) == answered
    assert [call.counted for call in calls] == [0, 1, 1]
    assert [len(request) < 8 for request in model.requests] == [True] * 2
    assert model.streamed == [False] * 2


async def test_usage_of_the_last_response_is_recorded_once() -> None:
    """The last response of a stream counts. A report for an unknown call, or a second one, changes nothing."""
    plugin, call = watching(), Call()
    await call.send(plugin, content("hi"))

    async def report(tokens: int | None, **about: Any) -> int:
        response = LlmResponse(usage_metadata=used(tokens), **about)
        await plugin.after_model_callback(callback_context=call, llm_response=response)
        tokens_now: int = status_of(plugin).tokens
        return tokens_now

    assert await report(9_000, partial=True) < 20
    assert await report(None) < 20
    assert await report(3_000) == 3_000
    assert await report(5_000) == 3_000


async def test_usage_that_the_session_stored_counts() -> None:
    """A new process counts with the usage of the agent's last event, as that of the newest answer; others' do not count."""

    def event(tokens: int | None, author: str = "shop", branch: str | None = None) -> Any:
        return SimpleNamespace(author=author, branch=branch, usage_metadata=used(tokens))

    contents = [content("a"), content("b", role="model"), content("c"), content("d", role="model"), content("e")]
    plugin = watching()
    await Call(event(100), event(3_000), event(None), event(9_000, branch="b"), event(9_000, "x")).send(plugin, *contents)
    assert 3_000 < status_of(plugin).tokens < 3_020
    plugin = watching()
    await Call(event(3_000)).send(plugin, content("a"))
    assert status_of(plugin).tokens < 20


async def test_instruction_and_tools_count() -> None:
    """The instruction and the tools' declarations count as they are sent; the window is the model's."""
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="look_up", description="Look up a price. " * 20)])
    plugin = watching(window="auto")
    config = types.GenerateContentConfig(system_instruction="You are a shop. " * 40, tools=[tool, len])
    await Call().send(plugin, content("hi"), config=config)
    sent = f"{config.system_instruction}\n{tool.model_dump_json(exclude_none=True)}"
    assert turn_of(plugin).index.context.overhead_tokens == plugin.conversations.count(sent)
    assert status_of(plugin).window == 1_048_576


async def test_edits_are_in_the_sessions_state() -> None:
    """The state of a session has the edits of each agent, once there are any, and a new process continues with them."""
    call, contents = Call(isolation_scope="task"), [content(note) for note in NOTES]
    request = await call.send(watching(), *contents[:2])
    assert (call.state, len(request.contents)) == ({}, 2)
    strategy = Truncation(trigger=tokens_exceed(300), keep=last(groups=1))
    request = await call.send(CompactionPlugin(strategy, counter="chars/4"), *contents)
    assert list(call.state) == ["compaction:shop/task"]
    again = Call(isolation_scope="task")
    again.state = call.state
    resumed = await again.send(CompactionPlugin(Truncation(trigger=never), counter="chars/4"), *contents)
    assert resumed.contents == request.contents
    assert len(request.contents) < 8
    error = OSError("down")
    nothing = await watching().on_model_error_callback(callback_context=again, llm_request=resumed, error=error)
    assert nothing is None
