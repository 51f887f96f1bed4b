"""The plain loop with the clients of Anthropic, Google and Amazon, each imported by the loop that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .plain import PlainLoop
from .trial import INSTRUCTIONS, Trial


class PlainAnthropic(PlainLoop):
    """The loop on Anthropic Messages."""

    format = "anthropic"

    def __init__(self, trial: Trial, tools: Sequence[str] = ("look_up_price",)) -> None:
        from anthropic import AsyncAnthropic

        super().__init__(trial, tools)
        self._client = AsyncAnthropic(api_key="none", base_url=trial.server.address, max_retries=0)

    async def close(self) -> None:
        await self._client.close()

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described: Any = [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in self.schemas(tools)
        ]
        return await self._client.messages.create(
            model="m", max_tokens=1_000, system=INSTRUCTIONS, messages=view, tools=described
        )

    def kept(self, reply: Any) -> list[Any]:
        return [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}]

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        return [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, _, text in answers]
        return [{"role": "user", "content": blocks}]


class PlainGemini(PlainLoop):
    """The loop on Gemini contents."""

    format = "gemini"

    def __init__(self, trial: Trial, tools: Sequence[str] = ("look_up_price",)) -> None:
        from google import genai
        from google.genai import types

        super().__init__(trial, tools)
        self._types = types
        self._client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=trial.server.address))

    def said(self, text: str) -> dict[str, Any]:
        return {"role": "user", "parts": [{"text": text}]}

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        types = self._types
        described: Any = [
            types.FunctionDeclaration(
                name=each["name"], description=each["description"], parameters_json_schema=each["parameters"]
            )
            for each in self.schemas(tools)
        ]
        config = types.GenerateContentConfig(
            system_instruction=INSTRUCTIONS,
            tools=[types.Tool(function_declarations=described)],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        return await self._client.aio.models.generate_content(model="m", contents=view, config=config)

    def usage(self, reply: Any) -> Any:
        return reply.usage_metadata

    def kept(self, reply: Any) -> list[Any]:
        return [reply.candidates[0].content.model_dump(mode="json", by_alias=True, exclude_none=True)]

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        return [(call.id, call.name, call.args) for call in reply.function_calls or ()]

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        bodies = [{"id": id, "name": name, "response": {"result": text}} for id, name, text in answers]
        return [{"role": "user", "parts": [{"functionResponse": body} for body in bodies]}]


class PlainBedrock(PlainLoop):
    """The loop on Bedrock Converse, whose client does not await."""

    format = "bedrock"

    def __init__(self, trial: Trial, tools: Sequence[str] = ("look_up_price",)) -> None:
        import boto3
        from botocore.config import Config

        super().__init__(trial, tools)
        self._client = boto3.client(
            "bedrock-runtime",
            endpoint_url=trial.server.address,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"max_attempts": 0}),
        )

    async def close(self) -> None:
        self._client.close()

    def said(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"text": text}]}

    async def send(self, view: list[Any], tools: Sequence[str]) -> Any:
        described = [
            {"name": each["name"], "description": each["description"], "inputSchema": {"json": each["parameters"]}}
            for each in self.schemas(tools)
        ]
        return await asyncio.to_thread(
            self._client.converse,
            modelId="m",
            system=[{"text": INSTRUCTIONS}],
            messages=view,
            toolConfig={"tools": [{"toolSpec": each} for each in described]},
        )

    def usage(self, reply: Any) -> Any:
        return reply["usage"]

    def kept(self, reply: Any) -> list[Any]:
        return [reply["output"]["message"]]

    def calls(self, reply: Any) -> list[tuple[str, str, dict[str, Any]]]:
        uses = [block["toolUse"] for block in reply["output"]["message"]["content"] if "toolUse" in block]
        return [(use["toolUseId"], use["name"], use["input"]) for use in uses]

    def results(self, answers: list[tuple[str, str, str]]) -> list[Any]:
        made = [{"toolUseId": id, "content": [{"text": text}], "status": "success"} for id, _, text in answers]
        return [{"role": "user", "content": [{"toolResult": each} for each in made]}]
