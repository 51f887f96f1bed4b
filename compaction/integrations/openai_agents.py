"""OpenAI Agents SDK: a session that gives back a compacted history, and a filter for what goes to the model inside a run.

    session = CompactingSession(SQLiteSession("user-1", "chats.db"), strategy, store=SessionStore("compaction.db"))
    await Runner.run(agent, "hello", session=session, run_config=RunConfig(call_model_input_filter=session.filter))

The session shortens what a run starts with, its filter what a long tool loop adds. What is stored stays whole. A run without a
session takes `compaction_filter`.

A conversation that a service keeps is left alone. A session of such items is refused. A filter is not told who keeps them, but
sees results whose calls it does not see: these are with the service, which would miss what is taken out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import ConfigurationError
from ..formats import openai_responses
from ..formats.openai_responses_fields import call_of, result_of
from ..formats.wire import fields_of
from ..session_store import SessionStore
from ..strategies.base import StrategyLike
from .following import Conversation, Following, RecentConversations
from .packages import load, require

if TYPE_CHECKING:

    class _SessionABC:
        pass

else:
    try:
        from agents.memory import SessionABC as _SessionABC
    except ImportError:
        _SessionABC = object  # the module can be looked at without the framework; making a session says what is missing

__all__ = ["CompactingSession", "CompactionFilter", "compaction_filter"]

_SERVICE: Final = "the service keeps this conversation: there is nothing here to compact"
_PACKAGE: Final = {"distribution": "openai-agents", "extra": "openai-agents", "least": "0.24"}


class CompactingSession(_SessionABC):
    """A session around another: items are stored there as they come, and read through a strategy.

    Holds state: the conversation. With a store, another process goes on with the same view. ``skipped`` says why the last call
    of the filter left everything as it was; ``None`` if it did not.

    Args:
        underlying: Any session of the framework that keeps its items itself; one that a service keeps has nothing to compact.
        strategy: What keeps requests small; its trigger decides when.
        store: Where to save what was decided, if anywhere; under the session's id.
        options: As for `Following`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, an option is out of range, or a service keeps or compacts
            the items of the session.
    """

    def __init__(self, underlying: Any, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Any) -> None:
        require(**_PACKAGE)
        _refuse_services(underlying)
        self.session_id: str = underlying.session_id
        self.session_settings: Any = getattr(underlying, "session_settings", None)
        self.underlying = underlying
        self._store = store
        self._following = Following(strategy=strategy, **options)
        saved = None if store is None else store.load(self.session_id)
        self.conversation = Conversation(self._following, openai_responses, saved)
        self.skipped: str | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The history as a run should start with it; with a limit, the latest items as they were stored."""
        items = await self.underlying.get_items(limit)
        if limit is not None or not items:
            return list(items)
        view = await self.conversation.view(items)
        self._save()
        return view

    async def filter(self, data: Any) -> Any:
        """What goes to the model inside a run: ``RunConfig(call_model_input_filter=session.filter)``."""
        self.skipped = _skips(data.model_data.input)
        if self.skipped is not None:
            return data.model_data
        filtered = await _filtered(self.conversation, data)
        self._save()
        return filtered

    def _save(self) -> None:
        if self._store is not None and self.conversation.unsaved:
            self._store.save(self.session_id, self.conversation.to_dict())

    async def add_items(self, items: list[Any]) -> None:
        """Store new items."""
        await self.underlying.add_items(items)

    async def pop_item(self) -> Any:
        """Take back the newest stored item; what was decided about it is undone when the history is next read."""
        return await self.underlying.pop_item()

    async def clear_session(self) -> None:
        """Forget everything, what was decided too."""
        await self.underlying.clear_session()
        self.conversation = Conversation(self._following, openai_responses)
        if self._store is not None:
            self._store.delete(self.session_id)


@attrs.define(eq=False)
class CompactionFilter:
    """What `compaction_filter` makes. Holds state: the conversations it saw last.

    Args:
        recent: These conversations.
        skipped: Why the last call left everything as it was; ``None`` if it did not.
    """

    recent: RecentConversations
    skipped: str | None = None

    async def __call__(self, data: Any) -> Any:
        """The model's input for a call."""
        self.skipped = _skips(data.model_data.input)
        if self.skipped is not None:
            return data.model_data
        return await _filtered(self.recent.of(list(data.model_data.input)), data)


def compaction_filter(strategy: StrategyLike, **options: Any) -> CompactionFilter:
    """What goes to the model, compacted before each call: for ``RunConfig(call_model_input_filter=...)``.

    Instructions and tools count. What was decided stays decided while the process lives. A call whose history a service keeps
    (``previous_response_id``, ``conversation_id``) brings only new items. Results are left alone then, and ``skipped`` says so;
    the first call of a run, with what is asked, cannot be told from one of a conversation kept here.

    Args:
        strategy: What keeps requests small; its trigger decides when.
        options: As for `Following`.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """
    require(**_PACKAGE)
    return CompactionFilter(RecentConversations(Following(strategy=strategy, **options), openai_responses))


def _refuse_services(session: Any) -> None:
    """See that a session keeps its items itself.

    Raises:
        ConfigurationError: If a service keeps or compacts them.
    """
    kept = load("agents.memory").OpenAIConversationsSession
    for each in _layers(session):
        name = type(each).__name__
        if isinstance(each, kept):
            raise ConfigurationError(
                f"CompactingSession: a service keeps the items of {name}, and what is left out here stays there; pass a session"
                " that keeps its items itself, such as SQLiteSession"
            )
        if callable(getattr(each, "run_compaction", None)):
            raise ConfigurationError(
                f"CompactingSession: {name} lets a service compact its items, which the framework would not see; pass the"
                " session under it, or use it alone"
            )


def _layers(session: Any) -> Iterator[Any]:
    """A session, and those it is around."""
    while session is not None:
        yield session
        session = getattr(session, "underlying_session", None)


def _skips(items: Sequence[Any]) -> str | None:
    """Why these items are not to be compacted: they answer calls that are not among them. O(items)."""
    calls: set[str] = set()
    for item in items:
        fields = fields_of(item) or {}
        if call := call_of(fields):
            calls.add(call)
        elif (result := result_of(fields)) and result not in calls:
            return _SERVICE
    return None


async def _filtered(conversation: Conversation, data: Any) -> Any:
    """The model's input, with the conversation's view in place of the items; instructions and tools count."""
    instructions = data.model_data.instructions
    overhead = conversation.index.counter.count_text(f"{instructions or ''}{_tools_text(data.agent)}")
    view = await conversation.view(data.model_data.input, overhead_tokens=overhead)
    return load("agents.run_config").ModelInputData(input=view, instructions=instructions)


def _tools_text(agent: Any) -> str:
    """The agent's function tools as they are sent."""
    tools: Sequence[Any] = getattr(agent, "tools", None) or ()
    schemas = [
        {
            "name": getattr(tool, "name", ""),
            "description": getattr(tool, "description", ""),
            "parameters": getattr(tool, "params_json_schema", {}),
        }
        for tool in tools
    ]
    return json.dumps(schemas, default=str) if schemas else ""
