"""LangGraph: a node that summarizes a graph's messages, for any state, used as a node or as ``pre_model_hook``.

The node projects or rewrites. A projection leaves the messages unchanged and puts the view for the model under another key. The
edits are in the state, so that nothing is summarized twice and another process resumes with the same view. A rewrite replaces
the messages, so that later checkpoints contain only the remaining ones.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, Unpack, cast

import attrs

from ..errors import ConfigurationError
from ..index import GroupKind
from ..session import unawaited_calls
from ..strategies import StrategyLike, summary_words
from ..tokens import LengthRefusal
from .conversation import FrameworkConversations, FrameworkTurn, as_async
from .langchain import conversation_id, langchain, model_name, rewritten
from .options import CommonOptions, IntegrationOptions
from .requirements import LANGGRAPH, framework_class, import_framework

__all__ = ["StateKeys", "SummarizationNode"]

_Runnable: Any = framework_class("langchain_core.runnables", "Runnable")
_Node = TypeVar("_Node", bound=Callable[..., Any])

_logger: Final = logging.getLogger("compaction.langgraph")


@attrs.frozen(kw_only=True)
class StateKeys:
    """The keys of a graph's state that the node uses. A dot leads into a dictionary: ``"context.messages"``.

    Args:
        messages: The conversation.
        view: The messages for the model; ``None`` to rewrite the conversation instead, which needs a reducer that handles
            ``RemoveMessage``, such as ``add_messages``.
        state: The saved edits; ``None`` if the state has no key for them. They then last as long as the process, which finds a
            conversation by its thread or its messages.
        summary: The running summary, without the introduction that the view has; ``None`` to omit it.

    Raises:
        ConfigurationError: If two of them are the same key.

    >>> StateKeys.chat_state().view
    'context.messages'
    """

    messages: str = "messages"
    view: str | None = "llm_input_messages"
    state: str | None = "compaction"
    summary: str | None = None

    def __attrs_post_init__(self) -> None:
        used = [key for key in (self.messages, self.view, self.state, self.summary) if key is not None]
        if len(set(used)) < len(used):
            raise ConfigurationError(f"StateKeys: {used} names a key twice; to rewrite the messages, pass view=None")

    @classmethod
    def chat_state(cls) -> StateKeys:
        """Return the keys of a ``ChatState`` with ``messages``, ``summary`` and a ``context`` dictionary for the view."""
        return cls(view="context.messages", state="context.compaction", summary="summary")

    @classmethod
    def rewriting(cls) -> StateKeys:
        """Return the keys for rewriting a ``MessagesState``."""
        return cls(view=None, state=None)


@attrs.frozen
class _MessageListCounter:
    """A counter of texts, from a function that counts lists of messages: the tokens that a text adds to an empty message."""

    exact = False

    function: Callable[[list[Any]], int]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def count_text(self, text: str) -> int:
        message = import_framework("langchain_core.messages").HumanMessage
        return max(0, self.function([message(text)]) - self.function([message("")]))


class SummarizationNode(_Runnable):
    """A node that compacts a graph's messages, for ``graph.add_node`` or ``pre_model_hook=``.

    Use it as ``graph.add_node("summarize", SummarizationNode(presets.langgraph_summary(summarizer)))``. It can be invoked
    or awaited. It logs ``conversation_summarized`` and ``context_compressed`` after a change, and ``summarization_failed`` for
    each failure, to ``compaction.langgraph``. Usage in the state's replies corrects the counts. The node does not
    see the model call; decorate the node that makes it with `retrying`. Holds state: its ``conversations``.

    Args:
        strategy: The strategy; its trigger decides when it runs. `compaction.presets.langgraph_summary` is the usual one.
        keys: The keys of the state.
        name: The node's name in traces.
        model: The chat model that reads the view, or its name, for ``window="auto"``.
        token_counter: A function that counts the tokens of a list of messages, such as LangChain's
            ``count_tokens_approximately``; in place of ``counter``.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(
        self,
        strategy: StrategyLike,
        *,
        keys: StateKeys | None = None,
        name: str = "summarization",
        model: Any = None,
        token_counter: Callable[[list[Any]], int] | None = None,
        **options: Unpack[CommonOptions],
    ) -> None:
        LANGGRAPH.check()
        self.name = name
        self.keys = StateKeys() if keys is None else keys
        if token_counter is not None:
            if "counter" in options:
                raise ConfigurationError("SummarizationNode: pass counter= or token_counter=, not both")
            options["counter"] = _MessageListCounter(token_counter)
        self._model = model_name(model)
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), langchain)

    def invoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return the update for this state; for strategies that await nothing."""
        return self._update(input, unawaited_calls(self._turn(input, config, sync=True)))

    async def ainvoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return the update for this state."""
        return self._update(input, await self._turn(input, config))

    async def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """`ainvoke`, for a graph of your own that calls nodes as functions."""
        return await self.ainvoke(state)

    def retrying(self, node: _Node) -> _Node:
        """Return a node that calls the model, and calls it once more if the provider finds the request too long.

        The second call gets a shorter view under the same key of the state::

            @summarize.retrying
            async def answer(state):
                return {"messages": [await model.ainvoke(state["llm_input_messages"])]}

        Args:
            node: The function that calls the model with the view; its first argument is the state.
        """
        if inspect.iscoroutinefunction(node):

            @functools.wraps(node)
            async def awaited(state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
                return await self._retried(lambda state: node(state, *args, **kwargs), state, sync=False)

            return cast("_Node", awaited)

        @functools.wraps(node)
        def retried(state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            return unawaited_calls(self._retried(as_async(lambda state: node(state, *args, **kwargs)), state, sync=True))

        return cast("_Node", retried)

    async def _retried(
        self, node: Callable[[Mapping[str, Any]], Awaitable[Any]], state: Mapping[str, Any], *, sync: bool
    ) -> Any:
        try:
            return await node(state)
        except Exception as error:
            if LengthRefusal.read(error) is None:
                raise
            turn = await self._turn(state, None, sync=sync)
            if await turn.overflowed(error, sync=sync) is None:
                raise
        return await node({**state, **_put({}, state, self.keys.view or self.keys.messages, turn.view)})

    async def _turn(self, state: Mapping[str, Any], config: Any, *, sync: bool = False) -> FrameworkTurn:
        key, id = self.keys.messages, conversation_id(config)
        if (messages := _at(state, key)) is None:
            raise ConfigurationError(f"SummarizationNode: the state has no {key!r}; pass keys=StateKeys(messages=...)")
        saved = None if self.keys.state is None else _at(state, self.keys.state)
        return await self.conversations.turn(list(messages), id=id, saved=saved, model=self._model, sync=sync)

    def _update(self, state: Mapping[str, Any], turn: FrameworkTurn) -> dict[str, Any]:
        keys, view = self.keys, turn.view
        _log(turn)
        if keys.view is None:
            if view == list(_at(state, keys.messages)):
                return {}
            update: dict[str, Any] = {keys.messages: rewritten(view)}
        else:
            update = _put({}, state, keys.view, view)
            if keys.state is not None and (made := turn.state(_at(state, keys.state))) is not None:
                update = _put(update, state, keys.state, made)
        return update if keys.summary is None else _put(update, state, keys.summary, _summary_text(turn))


def _summary_text(turn: FrameworkTurn) -> str:
    """Return the text of the summaries in the view, without their introductions; empty without a summary."""
    if turn.index is None:
        return ""
    groups = [group for group in turn.index.included_groups if group.kind is GroupKind.SUMMARY and not group.is_collapsed]
    return "\n\n".join([summary_words(turn.options.strategy, group) for group in groups])


def _at(state: Mapping[str, Any], key: str) -> Any:
    value: Any = state
    for name in key.split("."):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return value


def _put(update: dict[str, Any], state: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return the update with a value under a key; a dictionary on the path keeps the state's other values."""
    first, _, rest = key.partition(".")
    if not rest:
        return {**update, first: value}
    inner = update.get(first, state.get(first))
    return {**update, first: _put(dict(inner or {}), inner or {}, rest, value)}


def _log(turn: FrameworkTurn) -> None:
    """Log the run under the event names that the graph's users know."""
    result = turn.result
    for failed in result.failures:
        from ..summarizers import redact  # its patterns take long to compile

        about = {"error": redact(str(failed.error)), "error_type": type(failed.error).__name__}
        _logger.warning("summarization_failed", extra=about)
    if not result.edits:
        return
    if summary := _summary_text(turn):
        replaced = result.before.messages - result.after.messages + 1
        _logger.info("conversation_summarized", extra={"input_messages": replaced, "summary_length": len(summary)})
    before, after = result.before.tokens, result.after.tokens
    ratio = f"{(1 - after / max(1, before)) * 100:.1f}%"
    sizes = {"original_tokens": before, "compressed_tokens": after, "compression_ratio": ratio}
    _logger.info("context_compressed", extra=sizes)
