"""A summarization node for LangGraph graphs: with a state of their own or ``MessagesState``, as a node or ``pre_model_hook``.

It projects: the messages stay as they are, what the model is to see goes under another key, and the running summary is in the
state, so that nothing is summarized twice and another process goes on with the same view. Or it rewrites: what was compacted
leaves the state of later checkpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..errors import ConfigurationError
from ..groups import GroupKind
from ..marks import read_mark
from ..outcome import CompactionResult
from ..strategies.base import StrategyLike
from .following import Conversation, Following
from .langchain import SavedConversations, langchain, rewritten
from .langchain.oldest import LANGGRAPH
from .packages import require

if TYPE_CHECKING:

    class _Runnable:
        pass

else:
    try:
        from langchain_core.runnables import Runnable as _Runnable
    except ImportError:
        _Runnable = object  # the module can be looked at without the framework; making a node says what is missing

__all__ = ["Keys", "SummarizationNode"]

_logger: Final = logging.getLogger("compaction.langgraph")


@attrs.frozen(kw_only=True)
class Keys:
    """Where in a graph's state things stand. A dot leads into a dictionary: ``"context.messages"``.

    Args:
        messages: The conversation.
        view: Where to put what the model is to see; ``None`` to rewrite the messages instead, which needs a reducer that knows
            ``RemoveMessage``, as ``add_messages`` does.
        state: Where to keep what was decided; ``None`` if the state has no place for it: then it lives as long as the process.
        summary: Where to put the text of the running summary, if anywhere.

    Raises:
        ConfigurationError: If two of them are the same key.

    >>> Keys.chat_state().view
    'context.messages'
    """

    messages: str = "messages"
    view: str | None = "llm_input_messages"
    state: str | None = "compaction"
    summary: str | None = None

    def __attrs_post_init__(self) -> None:
        used = [key for key in (self.messages, self.view, self.state, self.summary) if key is not None]
        if len(set(used)) < len(used):
            raise ConfigurationError(f"Keys: {used} names a key twice; to rewrite the messages, pass view=None")

    @classmethod
    def chat_state(cls) -> Keys:
        """A ``ChatState`` with ``messages``, ``summary`` and a ``context`` dictionary for what the model is to see."""
        return cls(view="context.messages", state="context.compaction", summary="summary")

    @classmethod
    def rewriting(cls) -> Keys:
        """``MessagesState``, rewritten."""
        return cls(view=None, state=None)


class SummarizationNode(_Runnable):
    """``graph.add_node("summarize", SummarizationNode(presets.langgraph_summary(summarizer)))``, or ``pre_model_hook=``.

    Works invoked and awaited. Logs ``conversation_summarized`` and ``context_compressed`` when it changed something, and
    ``summarization_failed`` for each failure, to ``compaction.langgraph``. Holds state: the conversations met lately.

    Args:
        strategy: What to run; its trigger decides when. `compaction.presets.langgraph_summary` is the usual one.
        keys: Where in the state things stand.
        name: The node's name in traces.
        options: As for `Following`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If LangGraph is missing or too old, or an option is out of range.
    """

    def __init__(
        self, strategy: StrategyLike, *, keys: Keys | None = None, name: str = "summarization", **options: Any
    ) -> None:
        require(**LANGGRAPH)
        self.name = name
        self.keys = Keys() if keys is None else keys
        self.following = Following(strategy=strategy, **options)
        self._conversations = SavedConversations(self.following, langchain)

    def invoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """The update for this state; for strategies that await nothing."""
        messages, saved = self._given(input)
        conversation = self._conversations.get(messages, saved)
        view = conversation.view_sync(messages)
        return self._update(input, messages, view, conversation)

    async def ainvoke(self, input: Mapping[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """The update for this state."""
        messages, saved = self._given(input)
        conversation = self._conversations.get(messages, saved)
        view = await conversation.view(messages)
        return self._update(input, messages, view, conversation)

    async def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """`ainvoke`, for a graph of your own that calls nodes as functions."""
        return await self.ainvoke(state)

    def _given(self, state: Mapping[str, Any]) -> tuple[list[Any], object]:
        messages = _at(state, self.keys.messages)
        if messages is None:
            raise ConfigurationError(
                f"SummarizationNode: the state has no {self.keys.messages!r}; say with keys=Keys(messages=...) where they are"
            )
        return list(messages), None if self.keys.state is None else _at(state, self.keys.state)

    def _update(
        self, state: Mapping[str, Any], messages: list[Any], view: list[Any], conversation: Conversation
    ) -> dict[str, Any]:
        keys, saved = self.keys, None if self.keys.state is None else _at(state, self.keys.state)
        _log(conversation)
        if keys.view is None:
            self._conversations.state(view, conversation, None)
            update = {} if view == messages else {keys.messages: rewritten(view)}
            return _with_summary(update, state, keys, conversation) if update else {}
        made = self._conversations.state(messages, conversation, saved)
        update = _put({}, state, keys.view, view)
        if made is not None and keys.state is not None:
            update = _put(update, state, keys.state, made)
        return _with_summary(update, state, keys, conversation)


def _with_summary(update: dict[str, Any], state: Mapping[str, Any], keys: Keys, conversation: Conversation) -> dict[str, Any]:
    return update if keys.summary is None else _put(update, state, keys.summary, _summary_text(conversation))


def _summary_text(conversation: Conversation) -> str:
    """The text of the summaries in the view; empty if there is none."""
    groups = [
        group for group in conversation.index.included_groups if group.kind is GroupKind.SUMMARY and not group.is_collapsed
    ]
    marks = [read_mark(message) for group in groups for message in group.messages[:1]]
    return "\n\n".join(mark.body for mark in marks if mark is not None)


def _at(state: Mapping[str, Any], key: str) -> Any:
    value: Any = state
    for name in key.split("."):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return value


def _put(update: dict[str, Any], state: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The update with a value under a key; a dictionary on the way keeps what the state has in it."""
    first, _, rest = key.partition(".")
    if not rest:
        return {**update, first: value}
    inner = update.get(first, state.get(first))
    return {**update, first: _put(dict(inner or {}), inner or {}, rest, value)}


def _log(conversation: Conversation) -> None:
    """Tell the log what the last run did, in the words the graph's users know."""
    result = conversation.last
    if result is None:
        return
    for failed in result.failures:
        _logger.warning("summarization_failed", extra={"error": str(failed.error), "error_type": type(failed.error).__name__})
    if not result.edits:
        return
    summary = _summary_text(conversation)
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
    """How many messages the summary took the place of."""
    return result.before.messages - result.after.messages + 1
