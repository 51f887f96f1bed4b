"""A summarization node for LangGraph graphs, for any state, used as a node or as ``pre_model_hook``.

It either projects: the messages stay unchanged, the view for the model goes under another key, and the edits are in the state,
so that nothing is summarized twice and another process resumes with the same view. Or it rewrites the messages, so that later
checkpoints hold only what is left.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs

from ...errors import ConfigurationError
from ...index import GroupKind
from ...result import CompactionResult
from ...strategies import StrategyLike, summary_words
from ...tokens import LengthError
from ..conversation import FrameworkConversations, FrameworkTurn
from ..langchain import conversation_id, langchain, model_name, rewritten
from ..options import IntegrationOptions
from ..requirements import LANGGRAPH, framework_class

if TYPE_CHECKING:
    _Runnable = object
else:
    _Runnable = framework_class("langchain_core.runnables", "Runnable")

_Node = TypeVar("_Node", bound=Callable[..., Any])

_logger: Final = logging.getLogger("compaction.langgraph")


@attrs.frozen(kw_only=True)
class StateKeys:
    """The keys of a graph's state that the node uses. A dot leads into a dictionary: ``"context.messages"``.

    Args:
        messages: The conversation.
        view: The messages for the model; ``None`` to rewrite the conversation instead, which needs a reducer that handles
            ``RemoveMessage``, such as ``add_messages``.
        state: The saved edits; ``None`` if the state has no place for them: then they last as long as the process, in which a
            conversation is found by its thread or its messages.
        summary: The running summary alone, without the words around it in the view; ``None`` to leave it out.

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


class SummarizationNode(_Runnable):
    """A node that compacts a graph's messages, for ``graph.add_node`` or ``pre_model_hook=``.

    Use it as ``graph.add_node("summarize", SummarizationNode(presets.langgraph_summary(summarizer)))``. It works invoked and
    awaited. It logs ``conversation_summarized`` and ``context_compressed`` after a change, and ``summarization_failed`` for
    each failure, to ``compaction.langgraph``. The usage that replies in the state report counts. It does not see the
    model call: decorate the node that makes it with `retrying`. Holds state: the conversations used last.

    Args:
        strategy: The strategy; its trigger decides when it runs. `compaction.presets.langgraph_summary` is the usual one.
        keys: The keys of the state.
        name: The node's name in traces.
        model: The chat model that reads the view, or its name, for ``window="auto"``.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If LangGraph is missing or too old, or an option is out of range.
    """

    def __init__(
        self,
        strategy: StrategyLike,
        *,
        keys: StateKeys | None = None,
        name: str = "summarization",
        model: Any = None,
        **options: Any,
    ) -> None:
        LANGGRAPH.check()
        self.name = name
        self.keys = StateKeys() if keys is None else keys
        self.options = IntegrationOptions(strategy=strategy, **options)
        self._model = None if model is None else model_name(model)
        self._conversations = FrameworkConversations(self.options, langchain)

    def invoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return the update for this state; for strategies that await nothing."""
        return self._update(input, self._turn_sync(input, config))

    async def ainvoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return the update for this state."""
        return self._update(input, await self._turn(input, config))

    async def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """`ainvoke`, for a graph of your own that calls nodes as functions."""
        return await self.ainvoke(state)

    def retrying(self, node: _Node) -> _Node:
        """Return a node that calls the model, given a second chance if the provider finds its request too long.

        The node is then run once more, with a shorter view under the same key of the state::

            @summarize.retrying
            async def answer(state):
                return {"messages": [await model.ainvoke(state["llm_input_messages"])]}

        Args:
            node: The function that calls the model with the view; its first argument is the state.
        """
        if inspect.iscoroutinefunction(node):

            @functools.wraps(node)
            async def awaited(state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
                try:
                    return await node(state, *args, **kwargs)
                except Exception as error:
                    if LengthError.read(error) is None:
                        raise
                    again = await (await self._turn(state, None)).overflowed(error)
                    if again is None:
                        raise
                return await node(self._with_view(state, again), *args, **kwargs)

            return cast("_Node", awaited)

        @functools.wraps(node)
        def retried(state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            try:
                return node(state, *args, **kwargs)
            except Exception as error:
                if LengthError.read(error) is None:
                    raise
                again = self._turn_sync(state, None).overflowed_sync(error)
                if again is None:
                    raise
            return node(self._with_view(state, again), *args, **kwargs)

        return cast("_Node", retried)

    async def _turn(self, state: Mapping[str, Any], config: Any) -> FrameworkTurn:
        return await self._conversations.turn(self._messages(state), **self._turn_options(state, config))

    def _turn_sync(self, state: Mapping[str, Any], config: Any) -> FrameworkTurn:
        return self._conversations.turn_sync(self._messages(state), **self._turn_options(state, config))

    def _turn_options(self, state: Mapping[str, Any], config: Any) -> dict[str, Any]:
        return {"id": conversation_id(config), "saved": self._saved(state), "model": self._model}

    def _messages(self, state: Mapping[str, Any]) -> list[Any]:
        messages = _at(state, self.keys.messages)
        if messages is None:
            raise ConfigurationError(
                f"SummarizationNode: the state has no {self.keys.messages!r}; name the key with keys=StateKeys(messages=...)"
            )
        return list(messages)

    def _saved(self, state: Mapping[str, Any]) -> Any:
        return None if self.keys.state is None else _at(state, self.keys.state)

    def _with_view(self, state: Mapping[str, Any], view: list[Any]) -> dict[str, Any]:
        """Return the state with another view for the model."""
        return {**state, **_put({}, state, self.keys.view or self.keys.messages, view)}

    def _update(self, state: Mapping[str, Any], turn: FrameworkTurn) -> dict[str, Any]:
        keys, view = self.keys, turn.view
        _log(turn)
        if keys.view is None:
            update = {} if view == self._messages(state) else {keys.messages: rewritten(view)}
            return _with_summary(update, state, keys, turn) if update else {}
        update = _put({}, state, keys.view, view)
        if keys.state is not None and (made := turn.state(self._saved(state))) is not None:
            update = _put(update, state, keys.state, made)
        return _with_summary(update, state, keys, turn)


def _with_summary(update: dict[str, Any], state: Mapping[str, Any], keys: StateKeys, turn: FrameworkTurn) -> dict[str, Any]:
    return update if keys.summary is None else _put(update, state, keys.summary, _summary_text(turn))


def _summary_text(turn: FrameworkTurn) -> str:
    """Return the words of the summaries in the view, without what is written around them; empty if there is none."""
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
        _logger.warning("summarization_failed", extra={"error": str(failed.error), "error_type": type(failed.error).__name__})
    if not result.edits:
        return
    summary = _summary_text(turn)
    if summary:
        _logger.info("conversation_summarized", extra={"input_messages": _gone(result), "summary_length": len(summary)})
    tokens = (result.before.tokens, result.after.tokens)
    _logger.info(
        "context_compressed",
        extra={
            "original_tokens": tokens[0],
            "compressed_tokens": tokens[1],
            "compression_ratio": f"{(1 - tokens[1] / max(1, tokens[0])) * 100:.1f}%",
        },
    )


def _gone(result: CompactionResult) -> int:
    """Return the number of messages that the summary replaced."""
    return result.before.messages - result.after.messages + 1
