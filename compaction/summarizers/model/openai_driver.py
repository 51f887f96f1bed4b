"""The drivers that send a summarizer's calls through the ``openai`` package, one async and one sync."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import anyio
import attrs

from ...errors import ConfigurationError
from ...tokens import Usage
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps
from .openai_wire import read_error, read_reply, read_usage

__all__ = ["OpenAITransport", "is_sync", "openai_package"]


def openai_package() -> ModuleType:
    """Import and return the ``openai`` package.

    Raises:
        ConfigurationError: If it cannot be imported.
    """
    try:
        import openai
    except ImportError as error:
        raise ConfigurationError(
            f"OpenAISummarizer needs the openai package, which cannot be imported ({error}); install openai"
        ) from error
    return openai


def is_sync(client: object) -> bool:
    """Return whether a client is the synchronous one.

    Raises:
        ConfigurationError: If it is not a client of the ``openai`` package.
    """
    openai = openai_package()
    if isinstance(client, openai.OpenAI):
        return True
    if isinstance(client, openai.AsyncOpenAI):
        return False
    raise ConfigurationError(f"OpenAISummarizer: 'client' must be an openai.AsyncOpenAI or openai.OpenAI (got {client!r})")


@attrs.frozen(kw_only=True)
class OpenAITransport:
    """Sends calls and reads replies; the arguments are those of `OpenAISummarizer`."""

    client: Any
    base_url: str | None
    api_key: str | None
    timeout: float
    max_tokens_field: str
    options: Mapping[str, Any]
    on_usage: Callable[[Usage], object] | None
    sleep: Callable[[float], object] | None

    def drive(self, steps: SummarySteps) -> str:
        """Send with an ``OpenAI`` client until the summary is complete, and return it."""
        client = self.client.with_options(max_retries=0, timeout=self.timeout)
        sleep = self.sleep or time.sleep
        answer: ModelReply | ModelFault | None = None
        with contextlib.closing(steps):
            while True:
                try:
                    step = steps.send(answer)
                except StopIteration as done:
                    return str(done.value)
                if isinstance(step, ModelCall):
                    answer = self._send(client, step)
                else:
                    sleep(step.seconds)
                    answer = None

    async def drive_async(self, steps: SummarySteps) -> str:
        """Send with an ``AsyncOpenAI`` client until the summary is complete, and return it."""
        sleep = self.sleep or anyio.sleep
        answer: ModelReply | ModelFault | None = None
        with contextlib.closing(steps):
            async with self._async_client() as client:
                while True:
                    try:
                        step = steps.send(answer)
                    except StopIteration as done:
                        return str(done.value)
                    if isinstance(step, ModelCall):
                        answer = await self._send_async(client, step)
                        continue
                    slept = sleep(step.seconds)
                    if inspect.isawaitable(slept):
                        await slept
                    answer = None

    def _async_client(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Return the caller's client, which stays open, or a new one."""
        if self.client is not None:
            return contextlib.nullcontext(self.client.with_options(max_retries=0, timeout=self.timeout))
        openai = openai_package()
        try:
            own: contextlib.AbstractAsyncContextManager[Any] = openai.AsyncOpenAI(
                base_url=self.base_url, api_key=self.api_key, timeout=self.timeout, max_retries=0
            )
        except Exception as error:
            raise ConfigurationError(
                f"OpenAISummarizer: the openai client cannot be created ({error}); pass a valid base_url, and an api_key, which"
                " may be any text for a server that needs no key"
            ) from error
        return own

    def _send(self, client: Any, call: ModelCall) -> ModelReply | ModelFault:
        try:
            completion = client.chat.completions.create(**self._arguments(call))
        except Exception as error:
            return self._fault(error)
        return self._read(completion)

    async def _send_async(self, client: Any, call: ModelCall) -> ModelReply | ModelFault:
        try:
            with anyio.fail_after(self.timeout):
                completion = await client.chat.completions.create(**self._arguments(call))
        except Exception as error:
            return self._fault(error)
        return self._read(completion)

    def _arguments(self, call: ModelCall) -> dict[str, Any]:
        return {
            **self.options,
            "model": call.model,
            "messages": [{"role": role, "content": text} for role, text in call.messages],
            self.max_tokens_field: call.max_tokens,
        }

    def _read(self, completion: object) -> ModelReply | ModelFault:
        usage = read_usage(completion)
        if usage is not None and self.on_usage is not None:
            self.on_usage(usage)
        return read_reply(completion)

    def _fault(self, error: Exception) -> ModelFault:
        """Return the failure that an exception of the client stands for.

        Raises:
            ConfigurationError: If the client does not accept the arguments.
        """
        if isinstance(error, TypeError):
            raise ConfigurationError(f"OpenAISummarizer: the client does not accept these 'options' ({error})") from error
        return read_error(error, timeout_seconds=self.timeout)
