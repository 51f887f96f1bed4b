"""The model calls of one run: the conversation's part of their messages, and the request, repeated if it was too long."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from ...index import MessageIndex
from ..conversation import FrameworkTurn
from ..requirements import import_framework
from .format import agent_framework


def source_of(message: Any) -> str | None:
    """Return the ``source_id`` of the provider that added a message; ``None`` if the run itself added it."""
    attribution = message.additional_properties.get("_attribution")
    return attribution.get("source_id") if attribution.__class__ is dict else None


def tokens_of_others(messages: Sequence[Any], measure: MessageIndex) -> int:
    """Return the tokens of messages outside the conversation, counted by this index."""
    return sum(measure.measure(agent_framework.read(message))[0] for message in messages)


def with_author(message: Any, author: str) -> Any:
    """Return a message with the author that the framework adds after the run; a later change would break the prompt cache."""
    if message.author_name is not None or message.role not in ("assistant", "tool"):
        return message
    named = copy.copy(message)
    named.author_name = author
    return named


class RunView:
    """The messages of one run. Holds state: the messages of the last model call, split into the conversation's and others.

    Args:
        history: The history provider's ``source_id``.
        author: The author that the framework adds to an agent's messages after the run.
        measure: An index that counts tokens.

    Attributes:
        messages: The conversation.
    """

    def __init__(self, history: str, author: str, measure: MessageIndex) -> None:
        self.messages: list[Any] = []
        self._history = history
        self._author = author
        self._measure = measure
        self._seen: list[Any] = []
        self._others: list[tuple[int, Any]] = []
        self._others_tokens = 0
        self._tools: tuple[Any, int] = (None, 0)

    def follow(self, messages: list[Any]) -> None:
        """Read the messages of a model call; O(new) besides a fast comparison."""
        known = len(self._seen)
        if messages[:known] != self._seen:
            self.messages, self._others, self._others_tokens, known = [], [], 0, 0
        self._seen = messages
        for message in messages[known:]:
            source = source_of(message)
            if source == self._history:
                self.messages.append(message)
            elif source is None and (message.role != "system" or self.messages):
                self.messages.append(with_author(message, self._author))
            else:
                self._others.append((len(self.messages), message))
                self._others_tokens += tokens_of_others([message], self._measure)

    def use(self, followed: Sequence[Any]) -> None:
        """Use the equal messages of an index from now on, so that it recognizes them by identity at the next call.

        Args:
            followed: All messages of the index; ignored if their number differs.
        """
        if len(followed) == len(self.messages):
            self.messages = list(followed)

    def overhead_tokens(self, options: Mapping[str, Any]) -> int:
        """Return the tokens sent besides the conversation; tools are counted again only when they change."""
        tools, instructions = options.get("tools") or (), options.get("instructions") or ""
        key = ([id(tool) for tool in tools], instructions)
        if self._tools[0] != key:
            text = json.dumps([_schema(tool) for tool in tools], default=str) if tools else ""
            self._tools = (key, self._measure.counter.count_text(f"{text}{instructions}"))
        return self._others_tokens + self._tools[1]

    def request(self, view: list[Any]) -> list[Any]:
        """Return the view with each other message before the message it preceded, or at the front if that one left."""
        if not self._others:
            return view
        places, end = {id(message): place for place, message in enumerate(view)}, len(self.messages)
        front = next((place for place, each in enumerate(view) if each.role != "system"), 0)
        at: dict[int, list[Any]] = {}
        for follower, message in self._others:
            place = 0 if follower == 0 else len(view) if follower >= end else places.get(id(self.messages[follower]), front)
            at.setdefault(place, []).append(message)
        merged: list[Any] = []
        for place, message in enumerate(view):
            merged += at.get(place, ())
            merged.append(message)
        return [*merged, *at.get(len(view), ())]


def _schema(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else tool


class ChatCall:
    """A request to the model, within chat middleware. Holds state: the stream.

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

    async def send(self) -> None:
        """Send the request. A stream raises its error when it is read, and is repeated if nothing was yielded before.

        Raises:
            Exception: The client's error, unless it is the first length error.
        """
        try:
            await self._send()
        except Exception as error:
            await self._send_again(error)
        response_stream: Any = import_framework("agent_framework").ResponseStream
        if isinstance(self._context.result, response_stream):
            self._context.result = response_stream(self._updates(self._context.result), finalizer=self._finished)
        else:
            self._record(self._context.result)

    async def _send(self) -> None:
        self._context.messages = self._request(self._turn.view)
        await self._call_next()

    async def _send_again(self, error: Exception) -> None:
        if await self._turn.overflowed(error) is None:
            raise error
        self._save(self._turn)
        await self._send()

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

    OpenAI and Gemini report a total, and their input includes the tokens read from the cache. Anthropic reports no total, and
    its cached tokens are separate from the input.
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
