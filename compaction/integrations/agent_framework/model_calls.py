"""The model calls of one run: the conversation's part of their messages, and the request, repeated if it was too long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ...tokens import Usage
from ..conversation import FrameworkTurn
from ..requirements import import_framework
from .format import altered


def source_of(message: Any) -> str | None:
    """Return the ``source_id`` of the provider that added a message; ``None`` if the run itself added it."""
    attribution = message.additional_properties.get("_attribution")
    return attribution.get("source_id") if attribution.__class__ is dict else None


def with_author(message: Any, author: str) -> Any:
    """Return a message with the author that the framework adds after the run; a later change would break the prompt cache."""
    if message.author_name is not None or message.role not in ("assistant", "tool"):
        return message
    return altered(message, author_name=author)


class RunView:
    """The messages of one run. Holds state: the messages of the last model call, split into the conversation's and others."""

    def __init__(self, history: str, author: str) -> None:
        self.messages: list[Any] = []  # of the conversation
        self.others: list[tuple[int, Any]] = []  # each with the number of the conversation's messages before it
        self._history = history  # the history provider's ``source_id``
        self._author = author  # which the framework adds to an agent's messages after the run
        self._seen: list[Any] = []  # the whole list of the last call; compared by ``==``, because the framework copies it

    def follow(self, messages: list[Any]) -> None:
        """Read the messages of a model call; O(new) besides a fast comparison."""
        known = len(self._seen)
        if messages[:known] != self._seen:
            self.messages, self.others, known = [], [], 0
        self._seen = messages
        for message in messages[known:]:
            source = source_of(message)
            if source == self._history:
                self.messages.append(message)
            elif source is None and (message.role != "system" or self.messages):
                self.messages.append(with_author(message, self._author))
            else:
                self.others.append((len(self.messages), message))

    def use(self, followed: Sequence[Any]) -> None:
        """Use all messages of an index from now on, so that it recognizes them by identity; ignored if their number differs."""
        if len(followed) == len(self.messages):
            self.messages = list(followed)

    def request(self, view: list[Any]) -> list[Any]:
        """Return the view with each other message before the message it preceded, or at the front if that one left.

        >>> from types import SimpleNamespace
        >>> task, note, answer = (SimpleNamespace(role="user", text=text, author_name=None, additional_properties={})
        ...                       for text in ("task", "note", "answer"))
        >>> note.additional_properties["_attribution"] = {"source_id": "of another provider"}
        >>> run_view = RunView("in_memory", "Shop")
        >>> run_view.follow([task, note, answer])
        >>> [message.text for message in run_view.request([task, answer])], [each.text for each in run_view.request([task])]
        (['task', 'note', 'answer'], ['note', 'task'])
        """
        if not self.others:
            return view
        places, end = {id(message): place for place, message in enumerate(view)}, len(self.messages)
        front = next((place for place, each in enumerate(view) if each.role != "system"), 0)
        at: dict[int, list[Any]] = {}
        for follower, message in self.others:
            place = 0 if follower == 0 else len(view) if follower >= end else places.get(id(self.messages[follower]), front)
            at.setdefault(place, []).append(message)
        merged: list[Any] = []
        for place, message in enumerate(view):
            merged += at.get(place, ())
            merged.append(message)
        return [*merged, *at.get(len(view), ())]


async def send(
    context: Any,
    call_next: Callable[[], Awaitable[None]],
    turn: FrameworkTurn,
    request: Callable[[list[Any]], list[Any]],
    save: Callable[[FrameworkTurn], object],
) -> None:
    """Send a request to the model, within chat middleware; once more if it was too long.

    A stream raises its error when it is read, and is repeated if nothing was yielded before. ``request`` returns the whole
    request, given the view, and ``save`` is called when the turn may have changed.
    """

    async def call(view: list[Any]) -> Any:
        context.messages = request(view)
        save(turn)
        await call_next()
        return context.result

    def recorded(response: Any) -> Any:
        turn.record_usage(_usage(getattr(response, "usage_details", None) or {}))
        save(turn)
        return response

    stream, sent = await turn.send(call), turn.view
    response_stream: Any = import_framework("agent_framework").ResponseStream
    if not isinstance(stream, response_stream):
        recorded(stream)
        return

    async def streamed(view: list[Any]) -> Any:
        nonlocal stream
        if view is not sent:  # the stream of the view that was sent above raised a length error
            stream = await call(view)
        return stream

    async def finished(updates: object) -> Any:
        return recorded(await stream.get_final_response())

    context.result = response_stream(turn.stream(streamed), finalizer=finished)


def _usage(details: Mapping[str, Any]) -> Usage | None:
    """Return the framework's figures of one request, if there are any.

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
    return Usage(prompt + read + written if details.get("total_token_count") is None else prompt, 0)
