"""A context provider that compacts an agent's conversation before a run, inside it, and, if wanted, in the stored history.

It compacts what the history provider loaded and what the run adds, never what other providers add, and sends a projection: the
stored history stays whole unless there is an ``after_strategy``. Edits stay in force from call to call and from run to run, so
that the prompt grows only at its end.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import ConfigurationError
from ...strategies import StrategyLike, as_strategy
from ..conversation import FrameworkConversation
from ..options import IntegrationOptions
from ..requirements import AGENT_FRAMEWORK, import_framework
from .format import agent_framework
from .live_list import is_excluded
from .run_view import RunView
from .strategies import FrameworkStrategy

if TYPE_CHECKING:

    class _ContextProvider:
        def __init__(self, source_id: str) -> None:
            self.source_id = source_id

else:
    try:
        from agent_framework import ContextProvider as _ContextProvider
    except ImportError:
        _ContextProvider = object  # the module can be imported without the framework; creating a provider raises

__all__ = ["CompactionProvider"]

_SERVICE: Final = "the service keeps this conversation: there is nothing here to compact"
_UNNAMED: Final = "UnnamedAgent"  # what the framework calls an agent without a name
_PER_CALL: Final = (
    "require_per_service_call_history_persistence loads history after this provider:"
    " pass as_framework_strategy(...) as the agent's compaction_strategy instead"
)


class CompactionProvider(_ContextProvider):
    """A context provider, placed after the history provider: ``context_providers=[history, CompactionProvider(...)]``.

    Holds state: the conversations of live sessions. What must outlive the process is in the session's state as JSON-ready
    data; a session saved and restored with it resumes with the same view. ``session.state[source_id]`` also holds a report of
    the last run (``"last"``), or why nothing was done (``"skipped"``).

    Args:
        before_strategy: The strategy for requests: it runs on the loaded history before a run, and, unless ``in_loop`` is off,
            before each model call inside it. ``None`` for neither.
        after_strategy: The strategy for the stored history after a run: messages are flagged and summaries inserted there, like
            by the framework's own provider. Providers finish in reverse order, so what this run adds is compacted after the
            next one. ``None`` to leave the stored history unchanged.
        history_source_id: The history provider's ``source_id``.
        source_id: This provider's own ``source_id``.
        in_loop: Whether to compact inside the tool loop too.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    after_run_once_per_turn = True

    def __init__(
        self,
        *,
        before_strategy: StrategyLike | None = None,
        after_strategy: StrategyLike | None = None,
        history_source_id: str = "in_memory",
        source_id: str = "compaction",
        in_loop: bool = True,
        **options: Any,
    ) -> None:
        AGENT_FRAMEWORK.check()
        super().__init__(source_id)
        self.history_source_id = history_source_id
        self.before_strategy = None if before_strategy is None else as_strategy(before_strategy)
        self.after_strategy = None if after_strategy is None else as_strategy(after_strategy)
        self._in_loop = in_loop
        self._options = IntegrationOptions(
            strategy=self.before_strategy or self.after_strategy or (lambda index: ()), **options
        )
        self._after = (
            None if self.after_strategy is None else FrameworkStrategy(self._options.with_strategy(self.after_strategy))
        )
        self._live: weakref.WeakKeyDictionary[Any, tuple[FrameworkConversation, object]] = weakref.WeakKeyDictionary()

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Compact the loaded history, without flagged messages, and register for the model calls of this run."""
        if self._skips(agent, context, state):
            return
        self._claim(context, state)
        loaded = [each for each in context.context_messages.get(self.history_source_id, ()) if not is_excluded(each)]
        if self.before_strategy is None:
            if loaded:
                context.context_messages[self.history_source_id] = loaded
            return
        conversation = self._conversation(session, state)
        run_view = RunView(conversation, self.history_source_id, getattr(agent, "name", None) or _UNNAMED)
        if loaded:
            overhead = run_view.overhead(context.get_messages(exclude_sources={self.history_source_id}, include_input=True))
            view = await conversation.view(loaded, overhead_tokens=overhead)
            for message in view:  # our summaries are history from now on, like the messages they stand for
                message.additional_properties.setdefault("_attribution", {"source_id": self.history_source_id})
            context.context_messages[self.history_source_id] = view
            self._save(session, state, conversation)
        if self._in_loop:
            context.extend_middleware(self.source_id, self._middleware(run_view, session, state))

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Compact the stored history, if there is a strategy for it."""
        if self._after is None or self._skips(agent, context, state):
            return
        stored = session.state.get(self.history_source_id)
        messages: Any = cast("dict[str, Any]", stored).get("messages") if isinstance(stored, dict) else None
        if not messages:
            return
        await self._after(messages)
        state["last_stored"] = self._after.report

    # ---------------------------------------------------------------- inside a run

    def _middleware(self, run_view: RunView, session: Any, state: dict[str, Any]) -> Any:
        """Return the middleware that runs before each model call of this run."""

        async def compacting(context: Any, call_next: Any) -> None:
            options: dict[str, Any] = context.options or {}
            if not options.get("conversation_id"):
                context.messages = await run_view.messages(list(context.messages), options)
                self._save(session, state, run_view.conversation)
            await call_next()

        return import_framework("agent_framework").chat_middleware(compacting)

    # ---------------------------------------------------------------- sessions

    def _skips(self, agent: Any, context: Any, state: dict[str, Any]) -> bool:
        """Return whether there is nothing to do; the session's state then holds the reason."""
        state.pop("skipped", None)
        if context.service_session_id is not None or context.options.get("conversation_id"):
            state["skipped"] = _SERVICE
        elif getattr(agent, "require_per_service_call_history_persistence", False):
            state["skipped"] = _PER_CALL
        return "skipped" in state

    def _claim(self, context: Any, state: dict[str, Any]) -> None:
        """Check that no other provider compacts this history.

        Raises:
            ConfigurationError: If another one does, or one with the same ``source_id`` compacts another history.
        """
        key = f"compaction of {self.history_source_id}"
        other = context.metadata.setdefault(key, self)
        if other is not self:
            raise ConfigurationError(
                f"two compaction providers ({other.source_id!r}, {self.source_id!r}) compact {self.history_source_id!r}:"
                " keep one, or chain their strategies with >>"
            )
        if state.setdefault("history", self.history_source_id) != self.history_source_id:
            raise ConfigurationError(
                f"the state of {self.source_id!r} is of the history {state['history']!r}, not {self.history_source_id!r}: give"
                " each compaction provider a source_id of its own"
            )

    def _conversation(self, session: Any, state: dict[str, Any]) -> FrameworkConversation:
        """Return the live conversation of a session, or the saved one, or a new one."""
        saved = state.get("conversation")
        known = self._live.get(session)
        if known is not None and known[1] is saved:
            return known[0]
        conversation = FrameworkConversation(self._options, agent_framework, saved)
        self._live[session] = (conversation, saved)
        return conversation

    def _save(self, session: Any, state: dict[str, Any], conversation: FrameworkConversation) -> None:
        """Write the changes into the session's state."""
        if not conversation.unsaved:
            return
        state["conversation"] = conversation.to_dict()
        state["last"] = conversation.report()
        self._live[session] = (conversation, state["conversation"])
