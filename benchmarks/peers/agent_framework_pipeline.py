"""Agent Framework's compaction: its strategy for a context window, and the pipeline of its documentation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import agent_framework as af
import attrs

from compaction.replay import Candidate, CandidateSetting
from compaction.tokens import TokenCounter

from ..conversation import peer_messages
from .digest import digest_of


@attrs.frozen
class _Counter:
    counter: TokenCounter

    def count_tokens(self, text: str) -> int:
        return self.counter.count_text(text)


@attrs.frozen
class DigestClient:
    """A chat client that answers with our digest."""

    budget: int
    counter: TokenCounter

    async def get_response(self, messages: Sequence[Any], **options: Any) -> Any:
        prompt = "\n".join(message.text for message in messages)
        return af.ChatResponse(messages=[af.Message("assistant", [digest_of(prompt, self.budget, self.counter)])])


def _pipeline(setting: CandidateSetting, counter: _Counter) -> Any:
    """Collapse tool results, summarize, then keep a window of groups, until the request is within 80 % of the window."""
    client: Any = DigestClient(int(0.1 * setting.window), setting.counter)
    return af.TokenBudgetComposedStrategy(
        token_budget=int(0.8 * setting.window),
        tokenizer=counter,
        strategies=[
            af.ToolResultCompactionStrategy(keep_last_tool_call_groups=1),
            af.SummarizationStrategy(client=client, target_count=4, threshold=2),
            af.SlidingWindowStrategy(keep_last_groups=20),
        ],
    )


def _context_window(setting: CandidateSetting, counter: _Counter) -> Any:
    return af.ContextWindowCompactionStrategy(max_context_window_tokens=setting.window, max_output_tokens=0, tokenizer=counter)


@attrs.frozen
class _Start:
    make: Callable[[CandidateSetting, _Counter], Any]

    def __call__(self, setting: CandidateSetting) -> Any:
        counter = _Counter(setting.counter)
        strategy = self.make(setting, counter)
        state: list[Any] = []
        raws: dict[int, Any] = {}
        read = [0]

        def view(messages: list[Any]) -> list[Any]:
            fresh = [{**raw, "content": _text(raw)} for raw in messages[read[0] :]]
            for made, raw in zip(peer_messages(fresh), messages[read[0] :], strict=True):
                state.append(made)
                raws[id(made)] = raw
            read[0] = len(messages)
            shown = asyncio.run(af.apply_compaction(state, strategy=strategy, tokenizer=counter))
            return [raws.get(id(each)) or {"role": str(each.role), "content": each.text} for each in shown]

        return view


def _text(raw: Any) -> str:
    content = raw.get("content")
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or [])


CONTEXT_WINDOW = Candidate("agent-framework window", _Start(_context_window))
PIPELINE = Candidate("agent-framework pipeline", _Start(_pipeline))
