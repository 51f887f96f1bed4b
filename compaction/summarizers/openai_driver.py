"""Sends what a summary in the making asks for, over the ``openai`` package: one driver that awaits, one that does not."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import anyio
import attrs

from ..errors import ConfigurationError
from ..tokens import Usage
from .exchange import Call, Exchange, Fault, Reply
from .openai_wire import fault_of, reply_of, usage_of

__all__ = ["Sending", "is_sync", "openai_package"]


def openai_package() -> ModuleType:
    """The ``openai`` package, loaded when it is first needed.

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
    """Whether a client answers at once.

    Raises:
        ConfigurationError: If it is no client of the ``openai`` package.
    """
    openai = openai_package()
    if isinstance(client, openai.OpenAI):
        return True
    if isinstance(client, openai.AsyncOpenAI):
        return False
    raise ConfigurationError(f"OpenAISummarizer: 'client' must be an openai.AsyncOpenAI or openai.OpenAI (got {client!r})")


@attrs.frozen(kw_only=True)
class Sending:
    """How requests are sent; the arguments are those of `OpenAISummarizer`."""

    client: Any
    base_url: str | None
    api_key: str | None
    timeout: float
    max_tokens_field: str
    options: Mapping[str, Any]
    on_usage: Callable[[Usage], object] | None
    sleep: Callable[[float], object] | None

    def drive(self, exchange: Exchange) -> str:
        """Send with an ``OpenAI`` client until there is a summary."""
        client = self.client.with_options(max_retries=0, timeout=self.timeout)
        sleep = self.sleep or time.sleep
        answer: Reply | Fault | None = None
        with contextlib.closing(exchange):
            while True:
                try:
                    step = exchange.send(answer)
                except StopIteration as done:
                    return str(done.value)
                if isinstance(step, Call):
                    answer = self._send(client, step)
                else:
                    sleep(step.seconds)
                    answer = None

    async def drive_async(self, exchange: Exchange) -> str:
        """Send with an ``AsyncOpenAI`` client until there is a summary."""
        sleep = self.sleep or anyio.sleep
        answer: Reply | Fault | None = None
        with contextlib.closing(exchange):
            async with self._async_client() as client:
                while True:
                    try:
                        step = exchange.send(answer)
                    except StopIteration as done:
                        return str(done.value)
                    if isinstance(step, Call):
                        answer = await self._send_async(client, step)
                        continue
                    slept = sleep(step.seconds)
                    if inspect.isawaitable(slept):
                        await slept
                    answer = None

    def _async_client(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """The caller's client, which stays open, or one of our own."""
        if self.client is not None:
            return contextlib.nullcontext(self.client.with_options(max_retries=0, timeout=self.timeout))
        openai = openai_package()
        try:
            own: contextlib.AbstractAsyncContextManager[Any] = openai.AsyncOpenAI(
                base_url=self.base_url, api_key=self.api_key, timeout=self.timeout, max_retries=0
            )
        except Exception as error:
            raise ConfigurationError(
                f"OpenAISummarizer: no client can be made ({error}); pass a base_url that is one, and an api_key, which may be"
                " any text for a server that asks for none"
            ) from error
        return own

    def _send(self, client: Any, call: Call) -> Reply | Fault:
        try:
            completion = client.chat.completions.create(**self._arguments(call))
        except Exception as error:
            return self._fault(error)
        return self._read(completion)

    async def _send_async(self, client: Any, call: Call) -> Reply | Fault:
        try:
            with anyio.fail_after(self.timeout):
                completion = await client.chat.completions.create(**self._arguments(call))
        except Exception as error:
            return self._fault(error)
        return self._read(completion)

    def _arguments(self, call: Call) -> dict[str, Any]:
        return {
            **self.options,
            "model": call.model,
            "messages": [{"role": role, "content": text} for role, text in call.messages],
            self.max_tokens_field: call.max_tokens,
        }

    def _read(self, completion: object) -> Reply | Fault:
        usage = usage_of(completion)
        if usage is not None and self.on_usage is not None:
            self.on_usage(usage)
        return reply_of(completion)

    def _fault(self, error: Exception) -> Fault:
        """What to do about an exception of the client.

        Raises:
            ConfigurationError: If the client does not take the arguments.
        """
        if isinstance(error, TypeError):
            raise ConfigurationError(f"OpenAISummarizer: the client does not take these 'options' ({error})") from error
        return fault_of(error, timeout_seconds=self.timeout)
