"""Google ADK with a `CompactionPlugin` for the runner, or with its callbacks on the agents."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types
from pydantic import BaseModel

from compaction.integrations.google_adk import CompactionPlugin

from ..contract import OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, Host, Trial

CONFIRMATION: Final = "adk_request_confirmation"
ADDED: Final = 72
"""Characters that the framework adds to each request: a sentence with the agent's name, and titles in the tool's schema."""

_WHERE: Final = {"app_name": "hosts", "user_id": "user"}


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class GoogleADK(Host):
    """Runners on one session service; each conversation is a session.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        stream: Whether the model's words are streamed.
        structured: Whether the answer has a type.
        callbacks: Whether each agent has the callbacks, instead of the runner the plugin.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        stream: bool = False,
        structured: bool = False,
        callbacks: bool = False,
    ) -> None:
        super().__init__(trial)
        self._tools, self._structured, self._callbacks = tools, structured, callbacks
        self._config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        self._model = Gemini(model="gemini-2.5-flash", base_url=trial.server.address, client_kwargs={"api_key": "none"})
        self._sessions = InMemorySessionService()
        self._known: set[str] = set()
        self._build()

    def _build(self) -> None:
        """Create the agents and their runners, as a starting process does."""
        compaction = self.renewed(lambda: CompactionPlugin(self.trial.strategy, **self.trial.options))
        options: dict[str, Any] = compaction.callbacks if self._callbacks else {}
        made = partial(LlmAgent, model=self._model, instruction=INSTRUCTIONS[ADDED:], **options)
        main = made(
            name="shop", tools=[self._tool(name) for name in self._tools], output_schema=Answer if self._structured else None
        )
        specialist = made(name="specialist", tools=[self.look_up_price])
        plugins = [] if self._callbacks else [compaction]
        self._runner, self._specialist = (
            Runner(app=App(name="hosts", root_agent=agent, plugins=plugins), session_service=self._sessions)
            for agent in (main, specialist)
        )

    def _tool(self, name: str) -> FunctionTool:
        return FunctionTool(getattr(self, name), require_confirmation=name == "place_order")

    async def restart(self) -> None:
        self._build()

    async def snapshot(self, conversation: str) -> Any:
        return await self._sessions.get_session(**_WHERE, session_id=conversation)

    async def restore(self, conversation: str, snapshot: Any) -> None:
        if conversation in self._known:  # the framework takes back what followed
            now = await self._sessions.get_session(**_WHERE, session_id=conversation)
            first = now.events[len(snapshot.events)].invocation_id
            await self._runner.rewind_async(user_id="user", session_id=conversation, rewind_before_invocation_id=first)
            return
        self._known.add(conversation)
        made = await self._sessions.create_session(**_WHERE, session_id=conversation)
        for event in snapshot.events:
            await self._sessions.append_event(made, event)

    async def turn(self, conversation: str, text: str) -> None:
        if conversation not in self._known:
            self._known.add(conversation)
            await self._sessions.create_session(**_WHERE, session_id=conversation)
        asked = await self._run(conversation, types.Part(text=text))
        while asked:
            self._build()  # only the session service survives
            granted = [
                types.Part(
                    function_response=types.FunctionResponse(id=call.id, name=CONFIRMATION, response={"confirmed": True})
                )
                for call in asked
            ]
            asked = await self._run(conversation, *granted)

    async def _run(self, conversation: str, *parts: types.Part) -> list[types.FunctionCall]:
        """Run the agent, and return the calls to confirm."""
        runner = self._specialist if self.is_specialist(conversation) else self._runner
        message = types.Content(role="user", parts=list(parts))
        asked: list[types.FunctionCall] = []
        async for event in runner.run_async(
            user_id="user", session_id=conversation, new_message=message, run_config=self._config
        ):
            asked += [call for call in event.get_function_calls() if call.name == CONFIRMATION]
        return asked


def _case(name: str, *, host: dict[str, Any] | None = None, **options: Any) -> Case:
    make = partial(GoogleADK, tools=options.get("tools", ("look_up_price",)), **(host or {}))
    return Case(host="Google ADK", name=name, make=make, wire="gemini", **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, by the agent's callbacks", host={"callbacks": True}),
    _case("25 calls a turn", long=True),
    _case("streaming", host={"stream": True}),
    _case("overflow once, streamed", host={"stream": True}, **OVERFLOW),
    _case("structured output", host={"structured": True}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval, resumed by another process", tools=("look_up_price", "place_order")),
    *common(_case),
)
