"""The LiteLLM proxy with a `ProxyCompaction`, in front of the strict server, with plain clients that send everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import litellm
from litellm.proxy import proxy_server
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

from compaction.integrations.litellm import ProxyCompaction

from ..contract import NATIVE, OVERFLOW, common
from ..measure import Case
from ..plain import PlainChat, PlainLoop, PlainResponses
from ..plain_others import PlainAnthropic
from ..trial import INSTRUCTIONS, Host, Trial

KEY: Final = "sk-proxy"
CLAUDE: Final = "anthropic/claude-sonnet-4-5"
CALLBACK: Final = f"""\
from {__name__} import Proxy
compaction = Proxy.compaction
"""


class Proxy:
    """The proxy's own application, configured by a file. Holds state: the process has only one."""

    compaction: ProxyCompaction | None = None

    @classmethod
    async def start(cls, compaction: ProxyCompaction, model: str, address: str, folder: Path) -> Any:
        """Start it in front of a model, and return its application."""
        cls.stop()
        cls.compaction = compaction
        (folder / "proxy_callback.py").write_text(CALLBACK)
        base = f"{address}/v1" if model.startswith("openai/") else address
        config = {
            "model_list": [{"model_name": "m", "litellm_params": {"model": model, "api_base": base, "api_key": "none"}}],
            "litellm_settings": {"callbacks": ["proxy_callback.compaction"]},
            "general_settings": {"master_key": KEY},
        }
        (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
        await proxy_server.initialize(config=str(folder / "config.yaml"))
        return proxy_server.app

    @staticmethod
    def stop() -> None:
        """Remove its callback from the process."""
        litellm.callbacks = [each for each in litellm.callbacks if not isinstance(each, ProxyCompaction)]


class _Everything:
    """Replaces the session of a plain loop: it sends everything, and ignores reported usage."""

    async def view(self, messages: list[Any]) -> list[Any]:
        return messages

    def record_usage(self, usage: Any, **_: Any) -> None:
        """Do nothing: the proxy records usage."""

    async def overflowed(self, error: BaseException) -> list[Any]:
        raise error


class _Client(PlainLoop):
    """A plain loop that sends everything."""

    def conversation(self, name: str) -> tuple[Any, list[Any]]:
        return self._known.setdefault(name, (_Everything(), self.start()))  # type: ignore[arg-type]


class _Chat(_Client, PlainChat):
    def connect(self, app: Any) -> None:
        transport = httpx.AsyncClient(transport=httpx.ASGITransport(app))
        self._client = AsyncOpenAI(api_key=KEY, base_url="http://proxy/v1", http_client=transport, max_retries=0)


class _StreamedChat(_Chat):
    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [{"type": "function", "function": schema} for schema in self.schemas(tools)]
        create: Any = self._client.chat.completions.create
        state: Any = ChatCompletionStreamState()
        async for chunk in await create(model="m", messages=view, tools=described, stream=True):
            assert not chunk.usage  # the client did not ask for it
            state.handle_chunk(chunk)
        return state.get_final_completion()


class _Responses(_Client, PlainResponses):
    connect = _Chat.connect


class _StreamedResponses(_Responses):
    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [{"type": "function", "strict": False, **schema} for schema in self.schemas(tools)]
        create: Any = self._client.responses.create
        events = await create(model="m", instructions=INSTRUCTIONS, input=view, tools=described, stream=True)
        return [event.response async for event in events if event.type == "response.completed"][-1]


class _Anthropic(_Client, PlainAnthropic):
    def connect(self, app: Any) -> None:
        import httpx2
        from anthropic import AsyncAnthropic

        transport = httpx2.AsyncClient(transport=httpx2.ASGITransport(app))
        self._client = AsyncAnthropic(api_key=KEY, base_url="http://proxy", http_client=transport, max_retries=0)


class _StreamedAnthropic(_Anthropic):
    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in self.schemas(tools)
        ]
        request = {"model": "m", "max_tokens": 1_000, "system": INSTRUCTIONS, "messages": view, "tools": described}
        async with self._client.messages.stream(**request) as events:
            return await events.get_final_message()


class LiteLLMProxy(Host):
    """A plain loop whose client talks to the proxy.

    Args:
        trial: What it is given.
        client: The plain loop.
        model: The model behind the proxy, as LiteLLM names it.
    """

    def __init__(
        self, trial: Trial, *, client: Any = _Chat, model: str = "openai/m", tools: Sequence[str] = ("look_up_price",)
    ) -> None:
        super().__init__(trial)
        self._client = client(trial, tools)
        self._model = model
        self._starting = asyncio.Lock()
        self._app: Any = None

    async def turn(self, conversation: str, text: str) -> None:
        async with self._starting:
            if self._app is None:
                compaction = self.renewed(
                    lambda: ProxyCompaction(self.trial.strategy, **self.trial.store, **self.trial.options)
                )
                self._app = await Proxy.start(compaction, self._model, self.trial.server.address, self.trial.folder)
                await self._client.close()
                self._client.connect(self._app)
        await self._client.turn(conversation, text)

    async def restart(self) -> None:
        self._app = None

    async def snapshot(self, conversation: str) -> Any:
        return await self._client.snapshot(conversation)

    async def restore(self, conversation: str, snapshot: Any) -> None:
        await self._client.restore(conversation, snapshot)

    async def close(self) -> None:
        Proxy.stop()
        await self._client.close()


def _case(name: str, *, client: Any = _Chat, model: str = "openai/m", wire: str = "openai-chat", **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(LiteLLMProxy, client=client, model=model, tools=tools)
    return Case(host="LiteLLM proxy", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, Responses", client=_Responses, wire="openai-responses"),
    _case("tool loop, Anthropic messages", client=_Anthropic, model=CLAUDE, wire="anthropic"),
    _case("25 calls a turn", long=True),
    _case("streaming", client=_StreamedChat),
    _case("streaming, of an Anthropic model", client=_StreamedChat, model=CLAUDE),
    _case("streaming, Responses", client=_StreamedResponses, wire="openai-responses"),
    _case("overflow once, streamed", client=_StreamedChat, **OVERFLOW),
    _case("overflow once, Responses", client=_StreamedResponses, wire="openai-responses", **OVERFLOW),
    _case("overflow once, Anthropic messages", client=_StreamedAnthropic, model=CLAUDE, wire="anthropic", **OVERFLOW),
    _case("streaming, Anthropic messages", client=_StreamedAnthropic, model=CLAUDE, wire="anthropic"),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("native items", client=_Responses, wire="openai-responses", **NATIVE),
    _case("native items, Anthropic messages", client=_Anthropic, model=CLAUDE, wire="anthropic", **NATIVE),
    *common(_case),
    _case(
        "1.9 characters a token, Anthropic messages",
        client=_Anthropic,
        model=CLAUDE,
        wire="anthropic",
        characters_per_token=1.9,
    ),
)
