"""One request to the model: sent once more if the provider finds it too long, and its usage recorded, streamed or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from ..conversation import FrameworkTurn
from ..requirements import import_framework

__all__ = ["ChatCall"]


class ChatCall:
    """A request to the model, within chat middleware. Holds state: whether it was sent twice, and the stream.

    Args:
        context: The framework's context of the middleware.
        call_next: Sends the request.
        turn: What to send.
        request: Returns the whole request, given the view.
        save: Called when the turn has changed.
    """

    def __init__(
        self,
        context: Any,
        call_next: Callable[[], Awaitable[None]],
        turn: FrameworkTurn,
        request: Callable[[list[Any]], list[Any]],
        save: Callable[[FrameworkTurn], object],
    ) -> None:
        self._context = context
        self._call_next = call_next
        self._turn = turn
        self._request = request
        self._save = save
        self._was_refused = False

    async def send(self) -> None:
        """Send the request. The error of a stream comes when it is read; until then nothing was told, and it is sent again.

        Raises:
            Exception: What the client raised, unless it says that the request was too long, or it says so twice.
        """
        try:
            await self._send(self._turn.view)
        except Exception as error:
            await self._send_again(error)
        response_stream: Any = import_framework("agent_framework").ResponseStream
        if isinstance(self._context.result, response_stream):
            self._context.result = response_stream(self._updates(self._context.result), finalizer=self._finished)
        else:
            self._record(self._context.result)

    async def _send(self, view: list[Any]) -> None:
        self._context.messages = self._request(view)
        await self._call_next()

    async def _send_again(self, error: Exception) -> None:
        again = None if self._was_refused else await self._turn.overflowed(error)
        if again is None:
            raise error
        self._was_refused = True
        self._save(self._turn)
        await self._send(again)

    async def _updates(self, stream: Any) -> AsyncGenerator[Any]:
        while True:
            self._stream, is_told = stream, False
            try:
                async for update in stream:
                    is_told = True
                    yield update
                return
            except Exception as error:
                if is_told:
                    raise
                await self._send_again(error)
                stream = self._context.result
            finally:
                await self._stream.close()

    async def _finished(self, updates: object) -> Any:
        response = await self._stream.get_final_response()
        self._record(response)
        return response

    def _record(self, response: Any) -> None:
        usage = _usage(getattr(response, "usage_details", None) or {})
        if usage is not None:
            self._turn.record_usage(usage)
            self._save(self._turn)


def _usage(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the framework's figures of one request as a provider's usage, if there are any.

    Where a total is reported, as by OpenAI and Gemini, the input includes what was read from the cache; Anthropic reports no
    total, and both kinds of cached tokens apart.
    """
    prompt = details.get("input_token_count")
    if not prompt:
        return None
    read, written = (
        details.get(f"{name}_input_token_count") or details.get(f"anthropic.{name}_input_tokens") or 0
        for name in ("cache_read", "cache_creation")
    )
    if details.get("total_token_count") is None:
        prompt += read + written
    completion, cached = details.get("output_token_count") or 0, {"cached_tokens": read}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": cached}
