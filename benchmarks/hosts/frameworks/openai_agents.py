"""The OpenAI Agents SDK: a `CompactingSession` with its filter, or `CompactionFilter` alone."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from agents import (
    Agent,
    AgentOutputSchema,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

from compaction.integrations.openai_agents import CompactingModel, CompactingSession, CompactionFilter
from compaction.stores import SessionStore

from ..contract import NATIVE, OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, TIMEOUT_SECONDS, Host, Trial


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class OpenAIAgents(Host):
    """Agents of the SDK, with a session for each conversation.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        chat: Whether the model speaks chat completions instead of Responses.
        stream: Whether runs are streamed.
        structured: Whether the answer has a type.
        filter_only: Whether plain sessions are used, with one `CompactionFilter` for all.
        hands_over: Whether the agent may hand the conversation over to the specialist.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        chat: bool = False,
        stream: bool = False,
        structured: bool = False,
        filter_only: bool = False,
        hands_over: bool = False,
    ) -> None:
        super().__init__(trial)
        self._client = AsyncOpenAI(api_key="none", base_url=trial.url, max_retries=0, timeout=TIMEOUT_SECONDS)
        kind: Any = OpenAIChatCompletionsModel if chat else OpenAIResponsesModel
        model = CompactingModel(kind(model="m", openai_client=self._client))
        output: Any = AgentOutputSchema(Answer, strict_json_schema=False) if structured else None
        own = [name for name in tools if name != "transfer_to_specialist"]
        made = {name: function_tool(getattr(self, name), needs_approval=name == "place_order") for name in own}
        self._specialist = Agent(
            name="specialist", instructions=INSTRUCTIONS, tools=[function_tool(self.look_up_price)], model=model
        )
        self._agent = Agent(
            name="Shop",
            instructions=INSTRUCTIONS,
            tools=list(made.values()),
            handoffs=[self._specialist] if hands_over else [],
            model=model,
            output_type=output,
        )
        self._stream = stream
        self._store = SessionStore(trial.folder / "compaction.db")
        self._filter: CompactionFilter | None = None
        if filter_only:
            self._filter = self._new_filter()
        self._sessions: dict[str, Any] = {}

    def _new_filter(self) -> CompactionFilter:
        return self.renewed(lambda: CompactionFilter(self.trial.strategy, **self.trial.store, **self.trial.options))

    async def restart(self) -> None:
        self._close_sessions()
        self._store = SessionStore(self.trial.folder / "compaction.db")
        if self._filter is not None:
            self._filter = self._new_filter()

    async def snapshot(self, conversation: str) -> Any:
        session = self._sessions[conversation]
        return await getattr(session, "underlying", session).get_items()

    async def restore(self, conversation: str, snapshot: Any) -> None:
        if conversation not in self._sessions:
            await self._session(conversation).add_items(snapshot)
        session = self._sessions[conversation]
        while len(await self.snapshot(conversation)) > len(snapshot):
            await session.pop_item()

    async def close(self) -> None:
        await self._client.close()
        self._close_sessions()

    def _close_sessions(self) -> None:
        for session in self._sessions.values():
            getattr(session, "underlying", session).close()
        self._sessions.clear()

    async def turn(self, conversation: str, text: str) -> None:
        agent = self._specialist if self.is_specialist(conversation) else self._agent
        result = await self._run(agent, conversation, text)
        while result.interruptions:
            saved = json.dumps(result.to_state().to_json())
            self._sessions.pop(conversation).underlying.close()  # only the saved data survives
            state = await RunState.from_json(agent, json.loads(saved))
            for interruption in state.get_interruptions():
                state.approve(interruption)
            result = await self._run(agent, conversation, state)

    async def _run(self, agent: Any, conversation: str, given: Any) -> Any:
        session = self._session(conversation)
        config = RunConfig(tracing_disabled=True, call_model_input_filter=self._filter or session.filter)
        if not self._stream:
            return await Runner.run(agent, given, session=session, run_config=config, max_turns=40)
        result = Runner.run_streamed(agent, given, session=session, run_config=config, max_turns=40)
        async for _ in result.stream_events():
            pass
        return result

    def _session(self, name: str) -> Any:
        if name not in self._sessions:
            under = SQLiteSession(name, self.trial.folder / "items.db")
            made = CompactingSession(under, self.trial.strategy, store=self._store, **self.trial.options)
            self._sessions[name] = under if self._filter else made
        return self._sessions[name]


def _case(name: str, *, wire: str = "openai-responses", host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(OpenAIAgents, tools=tools, chat=wire == "openai-chat", **(host or {}))
    return Case(host="OpenAI Agents SDK", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, chat completions", wire="openai-chat"),
    _case("tool loop, filter alone", host={"filter_only": True}),
    _case("25 calls a turn", long=True),
    _case("25 calls a turn, filter alone", long=True, host={"filter_only": True}),
    _case("25 calls a turn, adaptive()", long=True, strategy="adaptive"),
    _case("25 calls a turn, context_window()", long=True, strategy="context_window"),
    _case("streaming", host={"stream": True}),
    _case("overflow once, streamed", host={"stream": True}, **OVERFLOW),
    _case("structured output", host={"structured": True}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval, resumed from what was saved", tools=("look_up_price", "place_order")),
    _case("50 sessions at once, filter alone", sessions=50, host={"filter_only": True}),
    _case("a copy a turn, filter alone", restarts="copied", host={"filter_only": True}),
    _case("a pickle a turn, filter alone", restarts="pickled", host={"filter_only": True}),
    _case("hand-offs", tools=("look_up_price", "transfer_to_specialist"), host={"hands_over": True}),
    _case("native items", **NATIVE),
    *common(_case),
)
