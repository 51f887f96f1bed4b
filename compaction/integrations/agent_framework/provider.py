"""A context provider that compacts an agent's conversation before and inside a run, and optionally in the stored history.

It compacts the messages of the history provider and of the run, and leaves those of other providers alone. It sends a
projection: the stored history stays whole unless there is an ``after_strategy``. Edits are kept from call to call and from
run to run, so that the prompt grows only at its end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Unpack, cast

from ...errors import ConfigurationError
from ...strategies import Pipeline, StrategyLike
from ...tokens import Usage
from ..conversation import KEPT_BY_SERVICE, TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT, FrameworkConversations, FrameworkTurn
from ..options import CommonOptions, IntegrationOptions
from ..requirements import AGENT_FRAMEWORK, framework_class, import_framework
from .format import agent_framework, source_of, with_author
from .strategies import as_framework_strategy, is_excluded

_ContextProvider: Any = framework_class("agent_framework", "ContextProvider")
_SAVED: Final = "conversation"
_FOCUS: Final = "focus"
_PER_CALL: Final = (
    "require_per_service_call_history_persistence loads history after this provider:"
    " pass as_framework_strategy(...) as the agent's compaction_strategy instead"
)


class CompactionProvider(_ContextProvider):
    """A context provider, placed after the history provider: ``context_providers=[history, CompactionProvider(...)]``.

    Holds state: a pool of the sessions used last. All that must outlive the process is JSON-ready data in the framework's
    session, so a saved and restored session resumes with the same view. ``session.state[source_id]`` also contains a report of
    the last run that changed something (``"last"``), or the reason why nothing was done (``"skipped"``).

    Args:
        before_strategy: The strategy for requests: it runs before each model call, or, if ``in_loop`` is off or the client
            takes no middleware, once before a run on the loaded history. ``None`` for neither.
        after_strategy: The strategy for the stored history after a run: it flags messages and inserts summaries there, as the
            framework's own provider does. Providers finish in reverse order, so the messages of this run are compacted after
            the next run. ``None`` to leave the stored history unchanged.
        history_source_id: The history provider's ``source_id``.
        source_id: This provider's own ``source_id``.
        in_loop: Whether to compact inside the tool loop too. Only then is usage recorded, and a request that was too long
            repeated.
        compact_tool: Whether the model gets a tool ``compact_conversation(focus)``.
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
        compact_tool: bool = False,
        **options: Unpack[CommonOptions],
    ) -> None:
        AGENT_FRAMEWORK.check()
        super().__init__(source_id)  # pyright: ignore[reportUnknownMemberType]
        self.history_source_id = history_source_id
        self.before_strategy, self.after_strategy = before_strategy, after_strategy
        self._in_loop = in_loop
        self._compact_tool = compact_tool
        self._after = None if after_strategy is None else as_framework_strategy(after_strategy, **options)
        for_requests = Pipeline() if before_strategy is None else before_strategy  # an empty one changes nothing
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=for_requests, **options), agent_framework)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add the middleware for this run's model calls, or without middleware compact the loaded history."""
        if _skips(agent, context, state):
            return
        self._claim(context, state)
        loaded = [each for each in context.context_messages.get(self.history_source_id, ()) if not is_excluded(each)]
        if loaded:
            context.context_messages[self.history_source_id] = loaded
        if self.before_strategy is None:
            return
        if self._compact_tool:
            context.extend_tools(self.source_id, [_tool(state)])
        # all of the framework's clients run middleware, except the raw ones
        runs_middleware = isinstance(getattr(agent, "client", None), import_framework("agent_framework").ChatMiddlewareLayer)
        if self._in_loop and runs_middleware:
            author = getattr(agent, "name", None) or "UnnamedAgent"  # the framework's name for it
            run_view = RunView(self.history_source_id, author)
            context.extend_middleware(self.source_id, self._middleware(run_view, session, state))
        elif loaded:
            others = context.get_messages(exclude_sources={self.history_source_id}, include_input=True)
            overhead = self.conversations.count_messages(others)
            turn = await self._turn(loaded, session, state, _model(context.options, agent), overhead)
            for message in turn.view:  # our summaries are history from now on, like the messages they stand for
                message.additional_properties.setdefault("_attribution", {"source_id": self.history_source_id})
            context.context_messages[self.history_source_id] = turn.view

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Compact the stored history, if there is a strategy for it."""
        if self._after is None or _skips(agent, context, state):
            return
        stored = session.state.get(self.history_source_id)
        messages: Any = cast("dict[str, Any]", stored).get("messages") if isinstance(stored, dict) else None
        if messages:
            turn = await self._after.compact(messages)
            state["last_stored"] = None if turn is None else turn.report()

    def compact_next(self, session: Any, focus: str = "") -> None:
        """Compact before the next request of a session, which stores this; a summary gives most room to ``focus``."""
        session.state.setdefault(self.source_id, {})[_FOCUS] = focus

    def _middleware(self, run_view: RunView, session: Any, state: dict[str, Any]) -> Any:
        async def compacting(context: Any, call_next: Any) -> None:
            options: dict[str, Any] = context.options or {}
            if options.get("conversation_id"):
                await call_next()
                return
            run_view.follow(list(context.messages))
            overhead = (
                self.conversations.count_messages([message for _, message in run_view.others])
                + self.conversations.count_tools(options.get("tools") or (), _schema)
                + self.conversations.count(options.get("instructions"))
            )
            turn = await self._turn(run_view.messages, session, state, _model(options, context), overhead)
            if turn.index is not None:
                run_view.use(turn.index.source)
            await send(context, call_next, turn, run_view.request, lambda changed: _save(changed, state))

        return import_framework("agent_framework").chat_middleware(compacting)

    async def _turn(
        self, messages: list[Any], session: Any, state: dict[str, Any], model: str | None, overhead_tokens: int
    ) -> FrameworkTurn:
        about: dict[str, Any] = {"id": session.session_id, "saved": state.get(_SAVED), "focus": state.get(_FOCUS)}
        turn = await self.conversations.turn(messages, model=model, overhead_tokens=overhead_tokens, **about)
        state.pop(_FOCUS, None)
        _save(turn, state)
        return turn

    def _claim(self, context: Any, state: dict[str, Any]) -> None:
        """Check that no other provider compacts this history, and that this state belongs to no other one."""
        if (other := context.metadata.setdefault(f"compaction of {self.history_source_id}", self)) is not self:
            raise ConfigurationError(
                f"two compaction providers ({other.source_id!r}, {self.source_id!r}) compact {self.history_source_id!r}:"
                " keep one, or chain their strategies with >>"
            )
        if state.setdefault("history", self.history_source_id) != self.history_source_id:
            raise ConfigurationError(
                f"the state of {self.source_id!r} belongs to the history {state['history']!r}, not {self.history_source_id!r}:"
                " give each compaction provider another source_id"
            )


def _skips(agent: Any, context: Any, state: dict[str, Any]) -> bool:
    """Return whether there is nothing to do; the session's state then holds the reason."""
    state.pop("skipped", None)
    if context.service_session_id is not None or context.options.get("conversation_id"):
        state["skipped"] = KEPT_BY_SERVICE
    elif getattr(agent, "require_per_service_call_history_persistence", False):
        state["skipped"] = _PER_CALL
    return "skipped" in state


def _save(turn: FrameworkTurn, state: dict[str, Any]) -> None:
    """Write the turn's decisions into the session's state if they changed, else only the provider's figures, O(1)."""
    saved = turn.state(state.get(_SAVED), always=True)
    if saved is not None:
        state[_SAVED] = saved
    elif turn.session is not None:
        state[_SAVED].update(turn.session.provider_reports)
    if saved is not None or turn.result.failures:
        state["last"] = turn.report()


def _model(options: Mapping[str, Any], has_client: Any) -> str | None:
    return options.get("model") or getattr(getattr(has_client, "client", None), "model", None)


def _schema(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else tool


def _tool(state: dict[str, Any]) -> Any:
    def compact_conversation(focus: str = "") -> str:
        state[_FOCUS] = focus
        return TOOL_RESULT

    tool = import_framework("agent_framework").tool
    return tool(compact_conversation, name=TOOL_NAME, description=TOOL_DESCRIPTION, approval_mode="never_require")


# ------------------------------------------------------------------------ the model calls of one run


class RunView:
    """The messages of one run. Holds state: the messages of the last model call, split into the conversation's and others."""

    def __init__(self, history: str, author: str) -> None:
        self.messages: list[Any] = []  # of the conversation
        self.others: list[tuple[int, Any]] = []  # each with the number of the conversation's messages before it
        self._history, self._author = history, author  # the history provider's ``source_id``, and the agent's name
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
