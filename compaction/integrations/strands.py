"""Strands: a conversation manager that compacts what an agent sends and leaves its messages whole.

    agent = Agent(conversation_manager=CompactionConversationManager(presets.context_window(32_000)))

A whole program is ``examples/strands_shopping.py``. Strands' own managers rewrite ``agent.messages``. This manager adds a
middleware around the model call instead. The middleware gets a copy of the messages and sends a compacted view, so the agent's
messages stay whole. The edits are saved with the agent, as the manager's state in its session.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Unpack

import attrs

from ..formats import bedrock, fields_of
from ..messages import Message
from ..strategies import StrategyLike
from ..tokens import LengthRefusal, Usage
from .conversation import FrameworkConversations, FrameworkTurn
from .options import CommonOptions, IntegrationOptions
from .requirements import STRANDS, framework_class, import_framework

__all__ = ["CompactionConversationManager"]

_ConversationManager: Any = framework_class("strands.agent.conversation_manager", "ConversationManager")


class CompactionConversationManager(_ConversationManager):
    """A conversation manager that compacts what is sent before each model call.

    Use it as ``Agent(conversation_manager=CompactionConversationManager(strategy))``, one for each agent. The system prompt and
    the tools count. A request that is too long is compacted further and sent once more. Holds state: the conversations used
    last, and the data for a session manager.

    Messages that ``pin_message`` pinned stay, as those that ``pin=`` accepts.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Unpack[CommonOptions]) -> None:
        STRANDS.check()
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        given = IntegrationOptions(strategy=strategy, **options)
        self.conversations = FrameworkConversations(attrs.evolve(given, pin=_Pinned(given.pin)), bedrock)
        self._saved: dict[str, Any] | None = None

    def compact_next(self, focus: str = "") -> None:
        """Compact before the next request, whatever the trigger says; a summary gives most room to ``focus``."""
        self.conversations.compact_next(focus)

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:
        """Register the hooks of the base class, and one that adds the middleware to the agent."""
        _ConversationManager.register_hooks(self, registry, **kwargs)
        registry.add_callback(import_framework("strands.hooks").AgentInitializedEvent, self._attach)

    def _attach(self, event: Any) -> None:
        event.agent.add_middleware(import_framework("strands.middleware").InvokeModelStage, self._call)

    async def _call(self, context: Any, call: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        turn = await self._turn(context)

        async def open_stream(view: list[Any]) -> AsyncIterator[Any]:
            self._saved = turn.state(self._saved) or self._saved
            return call(context.replace(messages=view))

        async with contextlib.aclosing(turn.stream(open_stream, as_length_error=_as_length_error)) as events:
            async for event in events:
                if isinstance(event, import_framework("strands.middleware").ModelStopReason):
                    turn.record_usage(_usage(event["stop"][2]))
                yield event

    async def _turn(self, context: Any) -> FrameworkTurn:
        id = context.agent.agent_id
        messages, config = _taking_turns(context.messages), fields_of(context.model.get_config()) or {}
        return await self.conversations.turn(
            messages,
            id=None if id == "default" else id,  # the id of each agent that was given none
            saved=self._saved,
            model=name if isinstance(name := config.get("model_id"), str) else None,
            overhead_tokens=self.conversations.count(context.system_prompt, context.tool_specs),
            usages=[_usage(kept) if (kept := _noted(message, "usage")) else None for message in messages],
        )

    def get_state(self) -> dict[str, Any]:
        """Return what a session manager saves: edits and fingerprints, without messages."""
        return {**_ConversationManager.get_state(self), "compaction": self._saved}

    def restore_from_session(self, state: dict[str, Any]) -> None:
        """Restore the edits; the agent's messages are whole in its session, so none are added."""
        _ConversationManager.restore_from_session(self, state)
        self._saved = state.get("compaction")

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing: the agent's messages stay whole."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Raise the error: the middleware has already compacted the request and sent it once more."""
        if e is not None:
            raise e


def _noted(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in the metadata of a message; empty if there is none."""
    return fields_of((fields_of(message.get("metadata")) or {}).get(name)) or {}


def _has_pin(message: Mapping[str, Any]) -> bool:
    return _noted(message, "custom").get("pinned") is True


@attrs.frozen
class _Pinned:
    """A predicate: whether Strands or the option ``pin`` pins a message."""

    given: Callable[[Message], bool] | None

    def __call__(self, message: Message) -> bool:
        return _has_pin(message.raw) or (self.given is not None and self.given(message))


def _taking_turns(messages: Sequence[Any]) -> list[Any]:
    """Return the messages with neighbours of one role merged into one message; O(messages).

    After a structured answer or a cancelled run, Strands leaves two user messages next to each other, which Bedrock refuses.
    """
    taken: list[Any] = []
    for message in messages:
        if taken and taken[-1]["role"] == message["role"]:
            first = message if _has_pin(message) else taken[-1]
            taken[-1] = {**first, "content": [*taken[-1]["content"], *message["content"]]}
        else:
            taken.append(message)
    return taken


def _as_length_error(error: Exception) -> Exception:
    """Return an error that `LengthRefusal` recognizes, if the framework classifies this one as a length error."""
    overflow = import_framework("strands.types.exceptions").ContextWindowOverflowException
    if not isinstance(error, overflow) or LengthRefusal.read(error) is not None:
        return error
    said: Exception = overflow(f"the prompt is too long: {error}")
    said.__cause__ = error
    return said


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Return the reported usage; the total shows whether the input includes the tokens read from a cache."""
    sent, said = usage.get("inputTokens", 0), usage.get("outputTokens", 0)
    cached, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    apart = sent + said != usage.get("totalTokens")
    return Usage(sent + (cached + written if apart else 0), said, cached_tokens=cached, cache_write_tokens=written)
