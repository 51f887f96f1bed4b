"""Budgets are kept by an independent count: ``mistral_common`` writes and counts the whole prompt, templates included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compaction import BudgetUnsatisfiable, compact_sync, presets
from compaction.strategies import Strategy
from compaction.testing import agent_session
from tests.support.chats import Chat
from tests.support.limits import count
from tests.unit.test_hard_budget import emergency

common = pytest.importorskip("mistral_common", reason="mistral_common is not installed")

Corpus = Callable[[str], list[dict[str, Any]]]


class Tekken:
    """Counts texts, and whole prompts, with the vocabulary of ``mistral_common``. Holds state: the tokenizer."""

    name = "tekken"
    exact = True

    def __init__(self) -> None:
        from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

        data = Path(common.__file__).parent / "data" / "tekken_240911.json"
        self.whole = MistralTokenizer.from_file(str(data))
        self.words: Any = self.whole.instruct_tokenizer.tokenizer

    def count_text(self, text: str) -> int:
        return len(self.words.encode(text, bos=False, eos=False))

    def count_prompt(self, messages: Chat) -> int:
        """Return the tokens of the prompt that a Mistral model receives for a chat.

        The format V3 requires ids of nine characters, allows text or calls but not both in an answer, and joins consecutive
        answers. Texts that it would not write, and a last answer, are counted separately and added.
        """
        from mistral_common.protocol.instruct.request import ChatCompletionRequest

        ids: dict[str, str] = {}
        chat, beside = [{"role": "user", "content": ""}], 0
        for message in messages:
            kept = {name: message[name] for name in ("role", "content", "tool_calls", "tool_call_id") if message.get(name)}
            kept.setdefault("content", "")
            if message["role"] == "tool":
                kept["tool_call_id"] = ids[message["tool_call_id"]]
            if calls := message.get("tool_calls"):
                beside += self.count_text(kept.pop("content"))
                for call in calls:
                    ids[call["id"]] = f"{len(ids):09}"
                kept["tool_calls"] = [{**call, "type": "function", "id": ids[call["id"]]} for call in calls]
            if kept["role"] == chat[-1]["role"] == "assistant":
                beside += self.count_text(chat.pop()["content"])
            chat.append(kept)
        while chat[-1]["role"] == "assistant" and not chat[-1].get("tool_calls"):
            beside += self.count_text(chat.pop()["content"])
        return beside + len(self.whole.encode_chat_completion(ChatCompletionRequest.from_openai(chat)).tokens)


@pytest.fixture(scope="module")
def tekken() -> Tekken:
    return Tekken()


STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "token_budget": presets.token_budget,
    "emergency": emergency,
    "context_window": lambda budget: presets.context_window(budget, threshold=1.0, target=0.8),
}


def checked(tekken: Tekken, messages: Chat, strategy: Strategy, budget: int) -> bool:
    """Compact the messages, check Mistral's count of the result against the budget, and return whether there was a result.

    The tokens of the template itself are not counted, because no counter of texts knows them: V3 writes JSON around calls and
    results.
    """
    try:
        done = compact_sync(messages, strategy, counter=tekken, format="openai-chat", budget=budget, hard=True)
    except BudgetUnsatisfiable:
        return False
    assert tekken.count_prompt(done.messages) - tekken.count_prompt([emptied(each) for each in done.messages]) <= budget
    return True


def emptied(message: dict[str, Any]) -> dict[str, Any]:
    """The message with almost no content, so that its count is that of the template."""
    calls = [{**call, "function": {"name": "f", "arguments": "{}"}} for call in message.get("tool_calls") or ()]
    return {**message, "content": "" if calls else "x", "tool_calls": calls}


each_strategy = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)


@each_strategy
@pytest.mark.parametrize("budget", [500, 1_500, 4_000])
def test_no_budget_is_exceeded_without_an_error(tekken: Tekken, make: Callable[[int], Strategy], budget: int) -> None:
    """On sessions of an agent, every strategy keeps the budget as the other tokenizer counts the prompt."""
    assert checked(tekken, agent_session(120), make(budget), budget)


@each_strategy
@pytest.mark.parametrize("name", ["tau_airline", "tau_long"])
def test_on_recorded_conversations(tekken: Tekken, corpus: Corpus, name: str, make: Callable[[int], Strategy]) -> None:
    """Recorded conversations are compacted to the budget by Mistral's count, and more than half of the runs succeed."""
    recorded = corpus(name)[: count(4, 10)]
    done = [checked(tekken, each["messages"], make(budget), budget) for each in recorded for budget in (2_500, 6_000)]
    assert sum(done) > len(done) / 2
