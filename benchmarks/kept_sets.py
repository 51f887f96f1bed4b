"""Measures how often a rule keeps other messages than in Agent Framework, for docs/migrating/agent-framework.md.

    python -m benchmarks.kept_sets                            # in the environment of `make test-frameworks`

Each rule of the page's count dialect runs on recorded conversations, cut after a quarter, a half, three quarters and all of
their messages. The original messages that both sides keep are compared.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import agent_framework as af
import attrs

from compaction import GroupKind, MessageIndex, kinds, last, run_sync
from compaction.strategies import SelectiveToolCall, SlidingWindow, Strategy, Summarization, ToolResult, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import messages_exceed

from .conversation import peer_messages
from .validity import ROOT, recorded


class _Short:
    """A summarizer and a chat client that always write the same short summary."""

    def summarize(self, request: SummaryRequest) -> str:
        return "Before."

    async def get_response(self, messages: Any, **options: Any) -> Any:
        return af.ChatResponse(messages=[af.Message("assistant", ["Before."])])


@attrs.frozen
class Rule:
    """A rule in both dialects.

    Args:
        name: Its name in the table.
        theirs: Makes the framework's strategy.
        ours: Makes our strategy.
    """

    name: str
    theirs: Callable[[], Callable[[list[Any]], Awaitable[bool]]]
    ours: Strategy


RULES = (
    Rule("the last 20 groups", lambda: af.SlidingWindowStrategy(keep_last_groups=20), SlidingWindow(keep=last(groups=20))),
    Rule(
        "the last 20 groups, system messages dropped",
        lambda: af.SlidingWindowStrategy(keep_last_groups=20, preserve_system=False),
        SlidingWindow(keep=last(groups=20), drop_system=True),
    ),
    Rule(
        "truncation, past 40 messages to 20",
        lambda: af.TruncationStrategy(max_n=40, compact_to=20),
        Truncation(trigger=messages_exceed(40), target=~messages_exceed(20), keep=last(groups=1)),
    ),
    Rule(
        "summarization, `target_count=4, threshold=2`",
        lambda: af.SummarizationStrategy(client=_Short(), max_summary_input_tokens=None),  # type: ignore[arg-type]
        Summarization(_Short(), trigger=messages_exceed(6, system=False), keep=last(messages=4), least_share=0.0),
    ),
    Rule(
        "tool results but the last",
        lambda: af.ToolResultCompactionStrategy(keep_last_tool_call_groups=1),
        ToolResult(keep=last(groups=1, of=kinds(GroupKind.TOOL_CALL))),
    ),
    Rule(
        "tool calls but the last",
        lambda: af.SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=1),
        SelectiveToolCall(),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "dev")
    parser.add_argument("--each", type=int, default=10, help="number of conversations of each recorded agent")
    arguments = parser.parse_args()
    lists = [part for messages in recorded(arguments.corpus, arguments.each) for part in _cuts(messages)]
    print("| rule | lists it changes | other messages kept | of them: last user message | beginning at the user | other |")
    print("|---|---|---|---|---|---|")
    for rule in RULES:
        counts = Counter(asyncio.run(_difference(rule, messages)) for messages in lists)
        changed = sum(counts.values()) - counts["unchanged"]
        other = changed - counts["same"]
        print(
            f"| {rule.name} | {changed} of {len(lists)} | {other} ({other / max(1, changed):.0%}) | {counts['last user']}"
            f" | {counts['beginning']} | {counts['other']} |"
        )


def _cuts(messages: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the first quarter, half and so on, as chat messages that both sides read in the same way."""
    for quarter in range(1, 5):
        part = [{**each, "content": _text(each)} for each in messages[: len(messages) * quarter // 4]]
        if part:
            yield part


def _text(message: dict[str, Any]) -> str | None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content if content or message.get("tool_calls") else " "
    return "\n".join(part.get("text", "") for part in content) or " "


async def _difference(rule: Rule, messages: list[dict[str, Any]]) -> str:
    """Return why the kept messages differ, by the first reason that applies."""
    peers = [message for each in messages for message in peer_messages([each])]
    given = list(peers)
    await af.apply_compaction(peers, strategy=rule.theirs())
    theirs = {place for place, each in enumerate(given) if not each.additional_properties.get("_excluded")}
    index = MessageIndex(messages, counter="chars/4")
    run_sync(index, rule.ours)
    ours = {ordinal for group in index.included_groups if group.id >= 0 for ordinal in index.ordinals(group)}
    if len(theirs) == len(ours) == len(messages):
        return "unchanged"
    if theirs == ours:
        return "same"
    users = [place for place, each in enumerate(messages) if each["role"] == "user"]
    if users and users[-1] not in theirs:
        return "last user"
    begins = min((place for place in theirs if messages[place]["role"] not in ("system", "developer")), default=None)
    return "beginning" if begins is not None and messages[begins]["role"] != "user" else "other"


if __name__ == "__main__":
    main()
