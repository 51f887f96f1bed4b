"""Strands with a `CompactionConversationManager`, on Bedrock's Converse."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import boto3
from pydantic import BaseModel
from strands import Agent, tool
from strands.models import BedrockModel
from strands.session import FileSessionManager
from strands.types.tools import ToolContext

from compaction.integrations.strands import CompactionConversationManager

from ..contract import OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, Host, Trial


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class Strands(Host):
    """An agent for each conversation, kept in memory or in files.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        stream: Whether the model's words are streamed.
        structured: Whether the answer has a type.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        stream: bool = True,
        structured: bool = False,
    ) -> None:
        super().__init__(trial)
        self._tools, self._structured = tools, structured
        self._model = BedrockModel(
            boto_session=boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1"),
            endpoint_url=trial.server.address,
            model_id="m",
            streaming=stream,
        )
        self._agents: dict[str, Agent] = {}

    def _agent(self, conversation: str) -> Agent:
        names = ("look_up_price",) if self.is_specialist(conversation) else self._tools
        saves = bool(self.trial.restarts) or "place_order" in self._tools
        return Agent(
            model=self._model,
            system_prompt=INSTRUCTIONS,
            tools=[self._tool(name) for name in names],
            conversation_manager=self.renewed(lambda: CompactionConversationManager(self.trial.strategy, **self.trial.options)),
            session_manager=FileSessionManager(conversation, storage_dir=str(self.trial.folder)) if saves else None,
            callback_handler=None,
        )

    def _tool(self, name: str) -> Any:
        method = getattr(self, name)

        @tool(name=name, description=method.__doc__, context=True)
        async def call(item: str, tool_context: ToolContext) -> str:
            if name == "place_order" and tool_context.interrupt(f"order {item}") != "yes":
                return "not approved"
            return str(await method(item))

        return call

    async def restart(self) -> None:
        self._agents.clear()  # the session manager has saved them

    async def snapshot(self, conversation: str) -> Any:
        return copy.deepcopy(self._agents[conversation].messages)

    async def restore(self, conversation: str, snapshot: Any) -> None:
        agent = self._agents.setdefault(conversation, self._agent(conversation))
        agent.messages[:] = snapshot

    async def turn(self, conversation: str, text: str) -> None:
        result = await self._run(conversation, text)
        while result.stop_reason == "interrupt":
            self._agents.clear()  # only the saved data survives
            approved = [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in result.interrupts]
            result = await self._run(conversation, approved)

    async def _run(self, conversation: str, prompt: Any) -> Any:
        if conversation not in self._agents:
            self._agents[conversation] = self._agent(conversation)
        options: dict[str, Any] = {"structured_output_model": Answer} if self._structured else {}
        return await self._agents[conversation].invoke_async(prompt, **options)


def _case(name: str, *, host: dict[str, Any] | None = None, **options: Any) -> Case:
    make = partial(Strands, tools=options.get("tools", ("look_up_price",)), **(host or {}))
    return Case(host="Strands", name=name, make=make, wire="bedrock", **options)


CASES = (
    _case("tool loop", host={"stream": False}),
    _case("streaming"),
    _case("overflow once, streamed", **OVERFLOW),
    _case("25 calls a turn", long=True),
    _case("structured output", host={"structured": True}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval", tools=("look_up_price", "place_order")),
    *common(_case, host={"stream": False}),
)
