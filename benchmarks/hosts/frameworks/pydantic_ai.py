"""pydantic-ai with a `CompactionProcessor`; the application stores all messages of a run, or only the new ones."""

from __future__ import annotations

from functools import partial
from typing import Any

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter, NativeOutput, Tool
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.stores import SessionStore

from ..contract import NATIVE, OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, TIMEOUT_SECONDS, Host, Trial


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class PydanticAI(Host):
    """Agents whose histories the application stores as JSON.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        responses: Whether the model speaks Responses.
        new_only: Whether the application adds ``new_messages()`` to what it stores, instead of storing ``all_messages()``.
        stream: Whether the model's words are streamed.
        output: The type of the answer.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        responses: bool = False,
        new_only: bool = False,
        stream: bool = False,
        output: Any = str,
    ) -> None:
        super().__init__(trial)
        self._tools, self._new_only, self._stream, self._output = tools, new_only, stream, output
        self._client = AsyncOpenAI(api_key="none", base_url=trial.url, max_retries=0, timeout=TIMEOUT_SECONDS)
        kind: Any = OpenAIResponsesModel if responses else OpenAIChatModel
        self._model = kind("m", provider=OpenAIProvider(openai_client=self._client))
        self._stored: dict[str, bytes] = {}
        self._build()

    def _build(self) -> None:
        """Create the agents, as a starting process does."""
        store = SessionStore(self.trial.folder / "compaction.db")
        processor = self.renewed(lambda: CompactionProcessor(self.trial.strategy, store=store, **self.trial.options))
        made = partial(Agent, self._model, instructions=INSTRUCTIONS, capabilities=[processor])
        output = [self._output, DeferredToolRequests] if "place_order" in self._tools else self._output
        self._specialist: Any = made(tools=[self.look_up_price])
        self._agent: Any = made(tools=[self._tool(name) for name in self._tools], output_type=output)

    def _tool(self, name: str) -> Any:
        return Tool(getattr(self, name), requires_approval=name == "place_order")

    async def restart(self) -> None:
        self._build()

    async def snapshot(self, conversation: str) -> Any:
        return self._stored[conversation]

    async def restore(self, conversation: str, snapshot: Any) -> None:
        self._stored[conversation] = snapshot

    async def close(self) -> None:
        await self._client.close()

    async def turn(self, conversation: str, text: str) -> None:
        agent = self._specialist if self.is_specialist(conversation) else self._agent
        result = await self._run(agent, conversation, text)
        while isinstance(result.output, DeferredToolRequests):
            self._build()  # only the stored messages survive
            approved = DeferredToolResults(approvals={call.tool_call_id: True for call in result.output.approvals})
            result = await self._run(self._agent, conversation, None, deferred_tool_results=approved)

    async def _run(self, agent: Any, conversation: str, text: str | None, **more: Any) -> Any:
        stored = self._stored.get(conversation)
        history = ModelMessagesTypeAdapter.validate_json(stored) if stored else []
        if self._stream:
            more["event_stream_handler"] = _read_on
        result = await agent.run(text, message_history=history, **more)
        kept = [*history, *result.new_messages()] if self._new_only else result.all_messages()
        self._stored[conversation] = ModelMessagesTypeAdapter.dump_json(kept)
        return result


async def _read_on(_: Any, events: Any) -> None:
    async for _ in events:
        pass


def _case(name: str, *, wire: str = "openai-chat", host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(PydanticAI, tools=tools, responses=wire == "openai-responses", **(host or {}))
    return Case(host="pydantic-ai", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, Responses", wire="openai-responses"),
    _case("tool loop, new messages stored", host={"new_only": True}),
    _case("25 calls a turn", long=True),
    _case("25 calls a turn, new messages stored", long=True, host={"new_only": True}),
    _case("streaming", host={"stream": True}),
    _case("overflow once, streamed", host={"stream": True}, **OVERFLOW),
    _case("structured output, by a tool", host={"output": Answer}),
    _case("structured output, by the provider", host={"output": NativeOutput(Answer)}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval, resumed from what was saved", tools=("look_up_price", "place_order")),
    _case("50 sessions at once, new messages stored", sessions=50, host={"new_only": True}),
    _case("native items", wire="openai-responses", **NATIVE),
    *common(_case),
)
