"""Pairs of strategies for the comparison with Agent Framework: each of its strategies, and ours that does the same.

Both sides count a token for four characters, but theirs counts a message as JSON and ours its texts. So targets are shares of
the conversation as each side counts it, and the size of each result is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from time import process_time
from typing import Any, TypeVar

import agent_framework as af
import attrs

from compaction import CompactionResult, GroupKind, MessageIndex, compact_sync, kinds, last, presets
from compaction.strategies import (
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import SummaryRequest
from compaction.tokens import CharsPerToken
from compaction.triggers import messages_exceed, tokens_exceed

from .conversation import peer_messages

T = TypeVar("T")
SUMMARY = "The shelves were counted, the sums are on the cards, and the keepers know what has come."


@attrs.frozen
class CharsPerFour:
    """Our counter with Agent Framework's interface."""

    def count_tokens(self, text: str) -> int:
        return CharsPerToken().count_text(text)


@attrs.frozen
class Instant:
    """A summarizer for both sides that takes no time."""

    text = SUMMARY

    def summarize(self, request: SummaryRequest) -> str:
        return SUMMARY

    async def get_response(self, messages: Sequence[Any], **options: Any) -> Any:
        return self


@attrs.frozen
class Left:
    """The size of the view after compaction.

    Args:
        messages: Number of messages.
        groups: Number of groups.
        share: Tokens as a share of those before.
    """

    messages: int
    groups: int
    share: float

    def __str__(self) -> str:
        return f"{self.messages:,} / {self.groups:,} / {self.share:.0%}"


@attrs.frozen
class Pair:
    """A strategy of each side; both do the same.

    Args:
        name: The name in the tables.
        ours: Makes our strategy for a number of messages and of tokens.
        theirs: Makes the strategy of Agent Framework.
        limits: The target ratios of CPU time at 1,000 and at 10,000 messages.
        slow: Whether Agent Framework's takes minutes at 10,000 messages.
    """

    name: str
    ours: Callable[[int, int], Strategy]
    theirs: Callable[[int, int], Any]
    limits: tuple[int, int] = (3, 3)
    slow: bool = False


COUNTER = CharsPerFour()
TOOL_CALLS = kinds(GroupKind.TOOL_CALL)

PAIRS = (
    Pair(
        "tool results, the newest kept",
        lambda messages, tokens: ToolResult(keep=last(groups=1, of=TOOL_CALLS)),
        lambda messages, tokens: af.ToolResultCompactionStrategy(keep_last_tool_call_groups=1),
        limits=(50, 1_000),
        slow=True,
    ),
    Pair(
        "truncation to half the tokens",
        lambda messages, tokens: Truncation(trigger=tokens_exceed(tokens // 2), keep=last(groups=1)),
        lambda messages, tokens: af.TruncationStrategy(max_n=tokens // 2, compact_to=tokens // 2, tokenizer=COUNTER),
        limits=(15, 300),
        slow=True,
    ),
    Pair(
        "budget of half the tokens, fallback only",
        lambda messages, tokens: TokenBudgetComposed([], budget=tokens // 2),
        lambda messages, tokens: af.TokenBudgetComposedStrategy(token_budget=tokens // 2, tokenizer=COUNTER, strategies=[]),
        limits=(15, 300),
        slow=True,
    ),
    Pair(
        "truncation to half the messages",
        lambda messages, tokens: Truncation(trigger=messages_exceed(messages // 2), keep=last(groups=1)),
        lambda messages, tokens: af.TruncationStrategy(max_n=messages // 2, compact_to=messages // 2),
    ),
    Pair(
        "truncation, nothing to do",
        lambda messages, tokens: Truncation(trigger=tokens_exceed(2 * tokens), keep=last(groups=1)),
        lambda messages, tokens: af.TruncationStrategy(max_n=2 * tokens, compact_to=2 * tokens, tokenizer=COUNTER),
    ),
    Pair(
        "sliding window of 20 groups",
        lambda messages, tokens: SlidingWindow(keep=last(groups=20)),
        lambda messages, tokens: af.SlidingWindowStrategy(keep_last_groups=20),
    ),
    Pair(
        "tool calls dropped, the newest kept",
        lambda messages, tokens: SelectiveToolCall(),
        lambda messages, tokens: af.SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=1),
    ),
    Pair(
        "summary of all but 4 messages",
        lambda messages, tokens: Summarization(Instant(), trigger=messages_exceed(6), keep=last(messages=4)),
        lambda messages, tokens: af.SummarizationStrategy(
            client=Instant(),  # type: ignore[arg-type]
            target_count=4,
            threshold=2,
            max_summary_input_tokens=None,
        ),
    ),
    Pair(
        "context window of half the tokens",
        lambda messages, tokens: presets.context_window(tokens // 2),
        lambda messages, tokens: af.ContextWindowCompactionStrategy(
            max_context_window_tokens=tokens // 2, max_output_tokens=0, tokenizer=COUNTER
        ),
        slow=True,
    ),
)
"""The pairs; the slowest of Agent Framework's strategies first."""


def our_tokens(messages: Sequence[dict[str, Any]]) -> int:
    return MessageIndex(messages, counter="chars/4").included.tokens


def their_tokens(messages: Sequence[dict[str, Any]]) -> int:
    made = peer_messages(messages)
    af.annotate_message_groups(made, tokenizer=COUNTER)
    return int(af.included_token_count(made))


def left_by_us(result: CompactionResult) -> Left:
    return Left(result.after.messages, result.after.groups, result.after.tokens / result.before.tokens)


def compacted(messages: Sequence[dict[str, Any]], strategy: Strategy) -> Left:
    """Run one call of ours, including reading."""
    return left_by_us(compact_sync(messages, strategy, counter="chars/4"))


class Theirs:
    """A call of Agent Framework that times its strategy. Holds state: the messages, which the framework annotates."""

    tokenizer = COUNTER

    def __init__(self, messages: Sequence[dict[str, Any]], strategy: Any) -> None:
        self.messages = peer_messages(messages)
        self.alone = 0.0
        self._strategy = strategy

    async def __call__(self, messages: list[Any]) -> bool:
        start = process_time()
        changed = await self._strategy(messages)
        self.alone = process_time() - start
        return bool(changed)

    def run(self) -> list[Any]:
        """Group and count new messages, compact, and return the view."""
        return awaited(af.apply_compaction(self.messages, strategy=self, tokenizer=COUNTER))

    def left(self, view: Sequence[Any], tokens: int) -> Left:
        groups = {message.additional_properties[af.GROUP_ANNOTATION_KEY][af.GROUP_ID_KEY] for message in view}
        return Left(len(view), len(groups), af.included_token_count(self.messages) / tokens)


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends, without the cost of an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise RuntimeError("the coroutine suspended")
