"""Strands: behaviour of the conversation manager that the examples and the table of hosts do not cover."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("strands")

from strands import Agent, tool
from strands.agent.conversation_manager.compression.pin_message import pin_message
from strands.hooks import AgentInitializedEvent, BeforeModelCallEvent
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from compaction import last
from compaction.errors import BudgetUnsatisfiable
from compaction.integrations.strands import CompactionConversationManager
from compaction.strategies import Summarization, Truncation
from compaction.triggers import never, tokens_exceed
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Scripted

WORDS = {"figures": "prompt is too long: 740 tokens > 500 maximum", "no figures": "Input is too long for requested model"}
WORDS["words of its own"] = "the slot has no room"
NO_USAGE = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
USAGE = {"inputTokens": 1_000, "outputTokens": 10, "totalTokens": 1_010}
NOTES = [f"Note {place}: " + "the shop is open. " * 20 for place in range(8)]


class ScriptedModel(Model):
    """Replays replies: texts, calls, or errors. Holds state: the remaining replies, and the requests."""

    def __init__(self, *replies: Any, usage: dict[str, int] | None = None, name: object = "m") -> None:
        self.replies, self.usage, self.name = list(replies), usage or NO_USAGE, name
        self.requests: list[list[Any]] = []

    def update_config(self, **model_config: Any) -> None:
        """Change nothing."""

    def get_config(self) -> Any:
        return {"model_id": self.name}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Not used."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(copy.deepcopy(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, dict):
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": reply["name"]}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": reply["input"]}}}}
        else:
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(reply, dict) else "end_turn"}}
        yield {"metadata": {"usage": self.usage, "metrics": {"latencyMs": 1}}}


def agent_of(model: ScriptedModel, manager: CompactionConversationManager, **options: Any) -> Agent:
    return Agent(model=model, conversation_manager=manager, callback_handler=None, **options)


def manager_of(strategy: Any = None, **options: Any) -> CompactionConversationManager:
    """Return a manager, by default one whose trigger never fires."""
    return CompactionConversationManager(strategy or Truncation(trigger=never), counter="chars/4", **options)


async def ask(agent: Agent, *texts: str) -> list[str]:
    return [str(await agent.invoke_async(text)).strip() for text in texts]


class StopsInMidStream(ScriptedModel):
    """Raises a length error after the first words of its eighth answer."""

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        async for event in super().stream(messages, *args, **kwargs):
            yield event
            if len(self.requests) == 8 and "contentBlockDelta" in event:
                raise ContextWindowOverflowException(WORDS["figures"])


async def test_a_stream_that_fails_in_the_middle_is_not_repeated() -> None:
    """The client has seen its first words, which a second request would send again."""
    model = StopsInMidStream(*["ok"] * 9)
    agent = agent_of(model, manager_of())
    await ask(agent, *NOTES[:7])
    seen: list[str] = []

    async def watch() -> None:
        async for event in agent.stream_async(NOTES[7]):
            seen.extend([event["data"]] if "data" in event else [])

    with pytest.raises(ContextWindowOverflowException):
        await watch()
    assert (seen, len(model.requests)) == (["ok"], 8)


async def test_nothing_more_can_go() -> None:
    for words in ("prompt is too long: 9000 tokens > 1000 maximum", WORDS["words of its own"]):
        refusal = ContextWindowOverflowException(words)
        agent = agent_of(ScriptedModel(refusal), manager_of(pin=lambda message: True))
        with pytest.raises(BudgetUnsatisfiable, match="pin less") as raised:
            await ask(agent, "x" * 36_000)
        causes = [raised.value.__cause__, getattr(raised.value.__cause__, "__cause__", None)]
        assert refusal in causes


CACHED = {"inputTokens": 100, "outputTokens": 10, "cacheReadInputTokens": 900, "cacheWriteInputTokens": 0}


@pytest.mark.parametrize(
    ("usage", "prompt"),
    [
        (USAGE, 1_000),
        ({**CACHED, "totalTokens": 1_010}, 1_000),
        ({**CACHED, "cacheWriteInputTokens": 50, "totalTokens": 1_060}, 1_050),
        ({**CACHED, "totalTokens": 110}, 100),
        ({"cacheReadInputTokens": 900}, 900),
        ({"inputTokens": 800}, 800),
        ({"inputTokens": 100, "cacheReadInputTokens": 900, "totalTokens": 100}, 100),
        (NO_USAGE, 0),
        ({}, 0),
    ],
    ids=str,
)
async def test_usage_that_strands_stored_counts(usage: dict[str, int], prompt: int) -> None:
    manager, messages = manager_of(), stored(usage)
    await ask(agent_of(ScriptedModel("ok", usage=NO_USAGE), manager, messages=messages), "more")
    sent = messages[:-1] if prompt == 0 else messages[1:-1]
    assert status_of(manager).tokens == prompt + manager.conversations.count_messages(sent)


def stored(*usages: dict[str, int]) -> Any:
    """Return a question and a reply for each usage, as Strands stores them."""
    messages: list[Any] = []
    for usage in usages:
        messages.append({"role": "user", "content": [{"text": "hi"}]})
        messages.append({"role": "assistant", "content": [{"text": "ok"}], "metadata": {"usage": usage}})
    return messages


async def test_a_reply_without_usage_hides_none() -> None:
    """A reply for which the provider reported zeros is passed over, so that the newest real report counts."""
    manager, messages = manager_of(), stored({"inputTokens": 800}, NO_USAGE, {"inputTokens": 900})
    await ask(agent_of(ScriptedModel("ok", usage=NO_USAGE), manager, messages=messages), "more")
    assert status_of(manager).tokens == 900 + manager.conversations.count_messages(messages[5:-1])


async def test_an_agents_name_prompt_and_model() -> None:
    """The agent's id names the conversation, its prompt counts, and the model's name gives the window."""
    manager = manager_of(window="auto")
    agent = agent_of(ScriptedModel("ok", name="gpt-5"), manager, agent_id="kim", system_prompt="You are a shop. " * 40)
    await ask(agent, "hi")
    turn = turn_of(manager)
    assert (turn.session.id, status_of(manager).window) == ("kim", 272_000)
    assert 160 <= turn.index.context.overhead_tokens < 180
    unnamed = manager_of(window="auto")
    await ask(agent_of(ScriptedModel("ok", name=7), unnamed), "hi")
    assert (turn_of(unnamed).session.id == "default", status_of(unnamed).window) == (False, None)


async def test_the_state_of_a_session() -> None:
    """A new process continues with the edits that the session saved, also with those after a length error."""
    model = ScriptedModel(*["ok"] * 7, ContextWindowOverflowException(WORDS["figures"]), "done", "and on")
    manager = manager_of()
    agent = agent_of(model, manager)
    await ask(agent, *NOTES)
    state = manager.get_state()
    resumed = manager_of()
    resumed.restore_from_session(json.loads(json.dumps(state)))
    await ask(agent_of(model, resumed, messages=agent.messages), "more?")
    assert model.requests[-1][: len(model.requests[-2])] == model.requests[-2]
    assert resumed.get_state() == state
    with pytest.raises(ValueError, match="Invalid conversation manager state"):
        resumed.restore_from_session({"__name__": "Another"})
    assert manager_of().get_state()["compaction"] is None


async def test_the_model_asks_for_compaction() -> None:
    """A tool that calls ``compact_next`` compacts before the next request, with the focus in the summary's prompt."""
    scripted = Scripted("## Goal\nPrices.\n\n## Progress\nSome.\n\n## Next steps\nAnswer.")
    strategy = Summarization(scripted, trigger=tokens_exceed(10**6), keep=last(groups=1))
    manager = manager_of(strategy)

    @tool
    def compact_conversation(focus: str) -> str:
        """Make room."""
        manager.compact_next(focus)
        return "soon"

    model = ScriptedModel(*["ok"] * 7, {"name": "compact_conversation", "input": '{"focus": "tea"}'}, "done", "and on")
    agent = agent_of(model, manager, tools=[compact_conversation])
    await ask(agent, *NOTES, "more?")
    sizes = [len(request) for request in model.requests]
    assert sizes[7] == 15
    assert sizes[8] < 10
    assert sizes[9] == sizes[8] + 2
    assert len(scripted.requests) == 1
    assert "tea" in str(scripted.requests[0])


async def test_messages_take_turns() -> None:
    """Two user messages next to each other, as after a cancelled run, are sent as one."""
    model = ScriptedModel(OSError("down"), "ok")
    agent = agent_of(model, manager_of())
    with pytest.raises(Exception, match="down"):
        await ask(agent, "first")
    await ask(agent, "second")
    assert [message["content"] for message in model.requests[-1]] == [[{"text": "first"}, {"text": "second"}]]
    assert len(agent.messages) == 3


async def test_a_pin_covers_the_messages_it_is_sent_with() -> None:
    messages: Any = [{"role": "user", "content": [{"text": note}]} for note in (*NOTES[:2], "pinned")]
    pin_message(messages, 2)
    strategy = Truncation(trigger=tokens_exceed(100), keep=last(groups=1))
    model = ScriptedModel(*["ok"] * 3)
    agent = agent_of(model, manager_of(strategy), messages=messages)
    await ask(agent, *NOTES[2:5])
    assert [str(model.requests[-1]).count(text) for text in ("Note 0", "pinned", "Note 3")] == [1, 1, 0]


def test_the_hooks_of_the_base_class_stay() -> None:
    """Strands asks managers to register the hooks of their base class, beside their own."""
    events: list[type] = []
    registry: Any = SimpleNamespace(add_callback=lambda event, callback: events.append(event))
    CompactionConversationManager(Truncation()).register_hooks(registry)
    assert {BeforeModelCallEvent, AgentInitializedEvent} == set(events)


def test_a_manager_does_not_touch_the_messages() -> None:
    """The manager removes nothing when Strands asks for it, and raises an error that it cannot handle."""
    agent = agent_of(ScriptedModel(), manager_of(), messages=[{"role": "user", "content": [{"text": "hi"}]}])
    manager = agent.conversation_manager
    manager.apply_management(agent)
    manager.reduce_context(agent)
    assert len(agent.messages) == 1
    with pytest.raises(ContextWindowOverflowException):
        manager.reduce_context(agent, e=ContextWindowOverflowException("too long"))


async def test_messages_that_strands_pinned_stay() -> None:
    """A message that ``pin_message`` pinned is in every request, beside those that the option ``pin`` accepts."""
    model = ScriptedModel(*(f"Answer {place}" for place in range(8)))
    strategy = Truncation(trigger=tokens_exceed(400), keep=last(groups=1))
    manager = manager_of(strategy, pin=lambda message: "Note 2" in message.text)
    agent = agent_of(model, manager)
    for place, note in enumerate(NOTES):
        await ask(agent, note)
        if place == 0:
            pin_message(agent.messages, 0)
    assert manager.get_state()["compaction"]["last"]["outcome"] == "compacted"
    sent = str(model.requests[-1])
    assert ("Note 0" in sent, "Note 1" in sent, "Note 2" in sent, "Note 3" in sent) == (True, False, True, False)
