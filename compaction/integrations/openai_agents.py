"""OpenAI Agents SDK: a session that returns a compacted history, a filter for the model's input, and models for both.

    session = CompactingSession(SQLiteSession("user-1", "chats.db"), strategy, store=SessionStore("compaction.db"))
    run_config = RunConfig(call_model_input_filter=session.filter, model_provider=CompactingModels())
    await Runner.run(agent, "hello", session=session, run_config=run_config)

The session's filter shortens the input of each model call. In a run without the filter, the session shortens the history at the
start of the run. The stored items stay whole. A run without a session uses a `CompactionFilter`. The models of
`CompactingModels` report usage and repeat a request that was too long.

A conversation that a service keeps is not compacted, and a session of such items is refused. A filter cannot see who keeps the
items. It recognizes such a conversation by results whose calls are missing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Unpack

from ..errors import ConfigurationError
from ..formats import call_of, fields_of, openai_responses, result_of
from ..stores import SessionStore
from ..strategies import StrategyLike
from .conversation import KEPT_BY_SERVICE, FrameworkConversations, FrameworkTurn
from .options import CommonOptions, IntegrationOptions
from .requirements import OPENAI_AGENTS, framework_class, import_framework

__all__ = ["CompactingModel", "CompactingModels", "CompactingSession", "CompactionFilter"]

_SessionABC: Any = framework_class("agents.memory", "SessionABC")
_Model: Any = framework_class("agents", "Model")
_ModelProvider: Any = framework_class("agents", "ModelProvider")
_turn: Final[ContextVar[FrameworkTurn | None]] = ContextVar("compaction_turn", default=None)
"""The turn whose view a filter returned last in this context, for the model, whose response and errors no filter sees."""


class CompactingSession(_SessionABC):
    """A session around another one: items are stored there unchanged, and read through a strategy.

    Holds state: its ``conversations``. With a store, another process resumes with the same view.

    A run whose ``call_model_input_filter`` is the session's `filter` reads the stored items whole, and each call is compacted
    with everything that it sends. Otherwise the history is compacted when a run reads it.

    Args:
        underlying: Any session of the framework that keeps its items itself, not in a service.
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the edits, if anywhere; under the session's id.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, an option is out of range, or a service keeps or
            compacts the items of the session.
    """

    def __init__(
        self, underlying: Any, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]
    ) -> None:
        OPENAI_AGENTS.check()
        _refuse_services(underlying)
        self.session_id: str = underlying.session_id
        self.session_settings: Any = getattr(underlying, "session_settings", None)
        self.underlying = underlying
        self._filter = CompactionFilter(strategy, store=store, **options)
        self._filter.belongs_to = self.session_id
        self.conversations = self._filter.conversations
        self._is_filtering = False

    @property
    def skipped(self) -> str | None:
        """The reason why the last call of the filter changed nothing on purpose; ``None`` if there was none."""
        return self._filter.skipped

    def compact_next(self, focus: str = "") -> None:
        """Compact before the next request, whatever the trigger says; a summary gives most room to ``focus``."""
        self.conversations.compact_next(focus)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the compacted history for the start of a run; with a limit or the filter, the items as they are stored."""
        items = await self.underlying.get_items(limit)
        if limit is not None or self._is_filtering:
            return list(items)
        return (await self.conversations.turn(items, id=self.session_id)).view

    @property
    def filter(self) -> CompactionFilter:
        """The function for ``RunConfig(call_model_input_filter=session.filter)``; once it was read, only it compacts."""
        self._is_filtering = True
        return self._filter

    async def add_items(self, items: list[Any]) -> None:
        """Store new items."""
        await self.underlying.add_items(items)

    async def pop_item(self) -> Any:
        """Remove and return the newest stored item; its edits are undone when the history is read again."""
        return await self.underlying.pop_item()

    async def clear_session(self) -> None:
        """Delete the items, the edits, and what the strategy stored."""
        await self.underlying.clear_session()
        await self.conversations.delete(self.session_id)


class CompactionFilter:
    """A filter that compacts the model's input before each call: ``RunConfig(call_model_input_filter=CompactionFilter(...))``.

    Instructions and tools count. One filter serves any number of conversations and finds each by its items. A call whose
    history a service keeps (``previous_response_id``, ``conversation_id``) brings only new items. If these are results, they
    are not compacted, and ``skipped`` holds the reason. The first call of such a run looks like one of a local conversation.

    Holds state: its ``conversations``.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the edits, if anywhere; without it they remain applied while the process lives.
        options: As for `IntegrationOptions`.

    Attributes:
        skipped: The reason why the last call changed nothing on purpose; ``None`` if there was none.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]) -> None:
        OPENAI_AGENTS.check()
        given = IntegrationOptions(strategy=strategy, **options)
        self.conversations = FrameworkConversations(given, openai_responses, store=store)
        self.belongs_to: str | None = None  # the session whose only conversation it compacts
        self.skipped: str | None = None

    async def __call__(self, data: Any) -> Any:
        """Return the model's input for a call, and leave the turn for a `CompactingModel`."""
        given, agent = data.model_data, data.agent
        self.skipped = _skips(given.input)
        if self.skipped is not None:
            return given
        names = {"name": "name", "description": "description", "parameters": "params_json_schema"}
        listed: Sequence[Any] = getattr(agent, "tools", None) or ()
        tools = [{each: getattr(tool, name, "") for each, name in names.items()} for tool in listed]
        overhead = self.conversations.count(given.instructions, tools)
        model = _model_name(agent)
        turn = await self.conversations.turn(given.input, id=self.belongs_to, overhead_tokens=overhead, model=model)
        _turn.set(turn)
        return import_framework("agents.run_config").ModelInputData(input=turn.view, instructions=given.instructions)


class CompactingModel(_Model):
    """A wrapper for a model: it reports usage to the filter's turn, and sends a request that was too long once more.

    Requests that no filter of this package prepared pass unchanged. Other methods and fields are those of the model.

    Args:
        model: The application's model.

    Raises:
        ConfigurationError: If the framework is missing or too old.
    """

    def __init__(self, model: Any) -> None:
        OPENAI_AGENTS.check()
        self._model = model
        for name in ("get_retry_advice", "close", "_cleanup_on_run_end"):  # the base class has these too
            setattr(self, name, getattr(model, name))

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self._model, name)

    async def get_response(self, system_instructions: str | None, input: Any, *arguments: Any, **options: Any) -> Any:
        """Return the model's response."""

        async def call(items: Any) -> Any:
            return await self._model.get_response(system_instructions, items, *arguments, **options)

        turn = _turn_of(input)
        if turn is None:
            return await call(input)
        response = await turn.send(call)
        turn.record_usage(response.usage)
        return response

    async def stream_response(
        self, system_instructions: str | None, input: Any, *arguments: Any, **options: Any
    ) -> AsyncGenerator[Any]:
        """Yield the events of the model's response; a request is repeated only if nothing was yielded."""

        async def call(items: Any) -> Any:
            return self._model.stream_response(system_instructions, items, *arguments, **options)

        turn = _turn_of(input)
        async for event in await call(input) if turn is None else turn.stream(call):
            if turn is not None and getattr(event, "type", "") == "response.completed":
                turn.record_usage(event.response.usage)
            yield event


class CompactingModels(_ModelProvider):
    """A model provider whose models are `CompactingModel`, for agents that name their model.

    Args:
        provider: The application's provider; the framework's own by default.

    Raises:
        ConfigurationError: If the framework is missing or too old.
    """

    def __init__(self, provider: Any = None) -> None:
        OPENAI_AGENTS.check()
        self._provider = import_framework("agents").MultiProvider() if provider is None else provider

    def get_model(self, model_name: str | None) -> Any:
        """Return the provider's model of this name as a `CompactingModel`."""
        return CompactingModel(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def _refuse_services(session: Any) -> None:
    """Check that a session, and each session it wraps, keeps its items itself."""
    kept = import_framework("agents.memory").OpenAIConversationsSession
    while session is not None:
        name = type(session).__name__
        if isinstance(session, kept):
            raise ConfigurationError(
                f"CompactingSession: a service keeps the items of {name}, so removing them here has no effect; pass a session"
                " that keeps its items itself, such as SQLiteSession"
            )
        if callable(getattr(session, "run_compaction", None)):
            raise ConfigurationError(
                f"CompactingSession: {name} lets a service compact its items, which the framework would not see; pass its"
                " underlying session, or use it alone"
            )
        session = getattr(session, "underlying_session", None)


def _skips(items: Sequence[Any]) -> str | None:
    """Return a reason if the items contain a result without its call, which a service then keeps; else ``None``. O(items)."""
    calls: set[str] = set()
    for item in items:
        fields = fields_of(item) or {}
        if call := call_of(fields):
            calls.add(call)
        elif (result := result_of(fields)) and result not in calls:
            return KEPT_BY_SERVICE
    return None


def _model_name(agent: Any) -> str | None:
    model = getattr(agent, "model", None)
    if model is None:
        model = import_framework("agents.models").get_default_model()
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) else None


def _turn_of(input: Any) -> FrameworkTurn | None:
    """Return the turn whose view these items are; a run without a filter may be nested in a run with one."""
    turn = _turn.get()
    if turn is None or not isinstance(input, list) or not input or not turn.view:
        return None
    return turn if input[-1] is turn.view[-1] else None
