"""The Anthropic SDK: its tool runner, with and without ``await``, streamed or not, on one compacted client."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

from compaction.integrations.anthropic import RequestCompaction

from ..contract import NATIVE, OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, Host, Trial


class AnthropicSDK(Host):
    """A tool runner for each turn; the history consists of the SDK's own messages.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        stream: Whether replies are streamed.
        eager: Whether tools run while a reply is streamed.
        threads: Whether the runner asks the server to keep the conversation, which is what it does unless told otherwise.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        stream: bool = False,
        eager: bool = False,
        threads: bool = True,
    ) -> None:
        super().__init__(trial)
        self._tools = tools
        self._options: dict[str, Any] = {"stream": True, "run_tools_eagerly": eager} if stream else {}
        self._options |= {} if threads else {"thread": False}
        self._known: dict[str, list[Any]] = {}
        self._client = self.client()

    def compaction(self) -> RequestCompaction:
        """Return the middleware."""
        return self.renewed(lambda: RequestCompaction(self.trial.strategy, **self.trial.store, **self.trial.options))

    def client(self) -> Any:
        """Return the client."""
        compaction = self.compaction()
        address = self.trial.server.address
        return AsyncAnthropic(api_key="none", base_url=address, max_retries=0, middleware=[compaction])

    async def close(self) -> None:
        await self._client.close()

    async def restart(self) -> None:
        await self._client.close()
        self._client = self.client()

    async def snapshot(self, conversation: str) -> Any:
        return list(self._known[conversation])

    async def restore(self, conversation: str, snapshot: Any) -> None:
        self._known[conversation] = list(snapshot)

    def runner(self, conversation: str, made: list[Any]) -> Any:
        """Return a tool runner for the history."""
        return self._client.beta.messages.tool_runner(
            model="m", max_tokens=1_000, system=INSTRUCTIONS, tools=made, messages=self._known[conversation], **self._options
        )

    def said(self, conversation: str, text: str) -> list[Any]:
        """Return the messages of a conversation with the user's new one, unless a cancelled turn has left it there."""
        messages = self._known.setdefault(conversation, [])
        said = {"role": "user", "content": text}
        if messages[-1:] != [said]:
            messages.append(said)
        return messages

    async def turn(self, conversation: str, text: str) -> None:
        messages = self.said(conversation, text)
        names = ["look_up_price"] if self.is_specialist(conversation) else self._tools
        runner = self.runner(conversation, [beta_async_tool(getattr(self, name)) for name in names])
        async for item in runner:
            if self._options.get("stream"):
                async for _ in item:
                    pass
            message = await item.get_final_message() if self._options.get("stream") else item
            messages.append({"role": "assistant", "content": message.content})
            if (results := await runner.generate_tool_call_response()) is not None:
                messages.append(results)


class AnthropicSDKWithoutAwait(AnthropicSDK):
    """The same with the client that does not await, in a thread."""

    def client(self) -> Any:
        compaction = self.compaction()
        return Anthropic(api_key="none", base_url=self.trial.server.address, max_retries=0, middleware=[compaction])

    async def close(self) -> None:
        self._client.close()

    async def turn(self, conversation: str, text: str) -> None:
        await asyncio.to_thread(self._turn, conversation, self.said(conversation, text))

    def _turn(self, conversation: str, messages: list[Any]) -> None:
        loop = asyncio.new_event_loop()

        def look_up_price(item: str) -> str:
            """Look up what an item costs."""
            return loop.run_until_complete(self.look_up_price(item))

        runner = self.runner(conversation, [beta_tool(look_up_price)])
        for item in runner:
            if self._options.get("stream"):
                item.until_done()
            message = item.get_final_message() if self._options.get("stream") else item
            messages.append({"role": "assistant", "content": message.content})
            if (results := runner.generate_tool_call_response()) is not None:
                messages.append(results)
        loop.close()


def _case(name: str, *, kind: Any = AnthropicSDK, host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    return Case(host="Anthropic SDK", name=name, make=partial(kind, tools=tools, **(host or {})), wire="anthropic", **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, thread=False", host={"threads": False}),
    _case("25 calls a turn", long=True),
    _case("streaming", host={"stream": True}),
    _case("overflow once, streamed", host={"stream": True}, **OVERFLOW),
    _case("streaming, tools at once", host={"stream": True, "eager": True}),
    _case("tool loop, no await", kind=AnthropicSDKWithoutAwait, strategy="context_window"),
    _case("streaming, no await", kind=AnthropicSDKWithoutAwait, host={"stream": True}, strategy="context_window"),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("native items", **NATIVE),
    *common(_case),
)
