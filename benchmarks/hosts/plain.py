"""The reference for all rows: a plain loop on a `CompactionSession`, which gets the source and the reported usage.

It has the same server, script, strategy and turns as the framework beside it, in the same wire format.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI

from compaction.session import CompactionSession

from .trial import INSTRUCTIONS, TIMEOUT_SECONDS, Host, Trial


class PlainLoop(Host):
    """The loop; a subclass sends the requests and reads the replies.

    Args:
        trial: What it is given.
        tools: The tools of the main agent.
    """

    format = ""

    def __init__(self, trial: Trial, tools: Sequence[str] = ("look_up_price",)) -> None:
        super().__init__(trial)
        self._tools = tools
        self._known: dict[str, tuple[CompactionSession, list[Any]]] = {}

    def conversation(self, name: str) -> tuple[CompactionSession, list[Any]]:
        """Return the session and the messages of a conversation."""
        if name not in self._known:
            session = CompactionSession(self.trial.strategy, format=self.format, overhead_tokens=100, **self.trial.options)
            self._known[name] = (session, self.start())
        return self._known[name]

    async def restart(self) -> None:
        """Do nothing: the reference is one process."""

    async def snapshot(self, conversation: str) -> Any:
        return list(self.conversation(conversation)[1])

    async def restore(self, conversation: str, snapshot: Any) -> None:
        _, messages = self.conversation(conversation)
        messages[:] = snapshot

    async def turn(self, conversation: str, text: str) -> None:
        session, messages = self.conversation(conversation)
        start = len(messages)
        messages.append(self.said(text))
        try:
            await self._answer(session, messages, ["look_up_price"] if self.is_specialist(conversation) else self._tools)
        except (asyncio.CancelledError, Exception):
            del messages[start:]  # the user will ask again
            raise

    async def _answer(self, session: CompactionSession, messages: list[Any], tools: Sequence[str]) -> None:
        """Call the model and its tools until it answers."""
        while True:
            view = await session.view(messages)
            try:
                reply = await self.send(view, tools)
            except Exception as error:
                view = await session.overflowed(error)
                reply = await self.send(view, tools)
            if usage := self.usage(reply):
                session.record_usage(usage, view=view)
            messages += self.kept(reply)
            calls = self.calls(reply)
            if not calls:
                return
            results = await asyncio.gather(*(self._result(name, arguments) for _, name, arguments in calls))
            messages += self.results([(id, name, text) for (id, name, _), text in zip(calls, results, strict=True)])

    async def _result(self, name: str, arguments: dict[str, Any]) -> str:
        tool = getattr(self, name)
        return str(await tool(arguments["item"]))

    def schemas(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the schemas of the tools."""
        parameters = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
        return [{"name": name, "description": getattr(self, name).__doc__, "parameters": parameters} for name in names]

    def start(self) -> list[Any]:
        """Return the first messages of a conversation."""
        return []

    def said(self, text: str) -> dict[str, Any]:
        """Return a user's message."""
        return {"role": "user", "content": text}

    def usage(self, reply: Any) -> Any:
        """Return the usage that the provider reports."""
        return reply.usage

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        """Send a request."""
        raise NotImplementedError

    def kept(self, reply: Any) -> list[Any]:
        """Return the messages of a reply."""
        raise NotImplementedError

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the calls of a reply: their ids, tools and arguments."""
        raise NotImplementedError

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        """Return the messages with the tools' results: the calls' ids, the tools, the texts."""
        raise NotImplementedError


class _OpenAILoop(PlainLoop):
    """A loop with OpenAI's client."""

    def __init__(self, trial: Trial, tools: Sequence[str] = ("look_up_price",)) -> None:
        super().__init__(trial, tools)
        self._client = AsyncOpenAI(api_key="none", base_url=trial.url, max_retries=0, timeout=TIMEOUT_SECONDS)

    async def close(self) -> None:
        await self._client.close()


class PlainChat(_OpenAILoop):
    """The loop on chat completions."""

    format = "openai-chat"

    def start(self) -> list[Any]:
        return [{"role": "system", "content": INSTRUCTIONS}]

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [{"type": "function", "function": schema} for schema in self.schemas(tools)]
        return await self._client.chat.completions.create(model="m", messages=view, tools=described)

    def kept(self, reply: Any) -> list[Any]:
        return [reply.choices[0].message.model_dump(exclude_none=True)]

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        calls = reply.choices[0].message.tool_calls or ()
        return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, _, text in answers]


class PlainResponses(_OpenAILoop):
    """The loop on Responses."""

    format = "openai-responses"

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [{"type": "function", "strict": False, **schema} for schema in self.schemas(tools)]
        return await self._client.responses.create(model="m", instructions=INSTRUCTIONS, input=view, tools=described)

    def kept(self, reply: Any) -> list[Any]:
        return [item.model_dump(exclude_none=True) for item in reply.output]

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        calls = [item for item in reply.output if item.type == "function_call"]
        return [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        return [{"type": "function_call_output", "call_id": id, "output": text} for id, _, text in answers]
