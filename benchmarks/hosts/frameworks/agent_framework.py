"""Microsoft Agent Framework: a `CompactionProvider` after the history provider, or our strategy as the agent's."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from agent_framework import Agent, AgentSession, InMemoryHistoryProvider, Message, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI
from pydantic import BaseModel

from compaction.integrations.agent_framework import CompactionProvider, as_framework_strategy

from ..contract import OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, TIMEOUT_SECONDS, Host, Trial


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class AgentFramework(Host):
    """Agents with a history in memory, each conversation in a session.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        responses: Whether the model speaks Responses.
        stream: Whether runs are streamed.
        structured: Whether the answer has a type.
        as_strategy: Whether the strategy is given to the agent, without a provider of ours.
        restarts: Whether what was approved is resumed by another process.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        responses: bool = False,
        stream: bool = False,
        structured: bool = False,
        as_strategy: bool = False,
        restarts: bool = True,
    ) -> None:
        super().__init__(trial)
        self._restarts = restarts
        self._tools, self._stream, self._as_strategy = tools, stream, as_strategy
        self._options: Any = {"response_format": Answer} if structured else {}
        if responses:
            self._options["store"] = False  # or the service keeps the conversation, and there is nothing to compact
        self._sdk = AsyncOpenAI(api_key="none", base_url=trial.url, max_retries=0, timeout=TIMEOUT_SECONDS)
        kind: Any = OpenAIChatClient if responses else OpenAIChatCompletionClient
        self._client = kind(model="m", async_client=self._sdk)
        self._sessions: dict[str, Any] = {}
        self._build()

    def _build(self) -> None:
        """Create the agents, as a starting process does."""
        history = InMemoryHistoryProvider()
        providers: list[Any] = [history]
        more: dict[str, Any] = {}
        if self._as_strategy:
            more["compaction_strategy"] = as_framework_strategy(self.trial.strategy, agent_name="Shop", **self.trial.options)
        else:
            providers.append(
                self.renewed(
                    lambda: CompactionProvider(
                        before_strategy=self.trial.strategy, history_source_id=history.source_id, **self.trial.options
                    )
                )
            )
        made = partial(Agent, client=self._client, name="Shop", instructions=INSTRUCTIONS, context_providers=providers, **more)
        self._specialist: Any = made(tools=[self._tool("look_up_price")])
        self._agent: Any = made(tools=[self._tool(name) for name in self._tools])

    def _tool(self, name: str) -> Any:
        mode: Any = "always_require" if name == "place_order" else "never_require"
        return tool(getattr(self, name), name=name, approval_mode=mode)

    async def close(self) -> None:
        await self._sdk.close()

    async def restart(self) -> None:
        saved = {name: await self.snapshot(name) for name in self._sessions}
        self._build()  # only the saved data survives
        for name, each in saved.items():
            await self.restore(name, each)

    async def snapshot(self, conversation: str) -> Any:
        return json.dumps(self._sessions[conversation].to_dict())

    async def restore(self, conversation: str, snapshot: Any) -> None:
        self._sessions[conversation] = AgentSession.from_dict(json.loads(snapshot))

    async def turn(self, conversation: str, text: str) -> None:
        if conversation not in self._sessions:
            self._sessions[conversation] = self._agent.create_session()
        result = await self._run(conversation, text)
        while requests := result.user_input_requests:
            if self._restarts:
                await self.restart()
            approvals = [request.to_function_approval_response(approved=True) for request in requests]
            result = await self._run(conversation, Message("user", approvals))

    async def _run(self, conversation: str, given: Any) -> Any:
        agent = self._specialist if self.is_specialist(conversation) else self._agent
        session = self._sessions[conversation]
        if not self._stream:
            return await agent.run(given, session=session, options=self._options)
        stream = agent.run(given, session=session, options=self._options, stream=True)
        async for _ in stream:
            pass
        return await stream.get_final_response()


def _case(name: str, *, wire: str = "openai-chat", host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(AgentFramework, tools=tools, responses=wire == "openai-responses", **(host or {}))
    return Case(host="Agent Framework", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, Responses", wire="openai-responses"),
    _case("tool loop, as the agent's strategy", host={"as_strategy": True}),
    _case("25 calls a turn", long=True),
    _case("streaming", host={"stream": True}),
    _case("overflow once, streamed", host={"stream": True}, **OVERFLOW),
    _case("structured output", host={"structured": True}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval, resumed from what was saved", tools=("look_up_price", "place_order")),
    _case("approval, in one process", tools=("look_up_price", "place_order"), host={"restarts": False}),
    *common(_case),
)
