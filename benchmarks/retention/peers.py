"""Other packages as subjects. Those that ask a model for a summary get our digest, so that only what they ask for differs.

They count a token for four characters, so they are compared under that counter.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from compaction.tokens import TokenCounter

from ..conversation import peer_messages
from ..rivals import RIVALS, Rival, langmem_within, of_agent_framework
from .planted import Conversation
from .subjects import Messages, Subject

NAMES: Final = {
    "`TokenBudgetComposedStrategy`": "Agent Framework, budget",
    "`trim_messages`, `start_on` and `end_on` as documented": "LangChain `trim_messages`",
}
LEFT_OUT: Final = (
    "`TruncationStrategy`",
    "`ContextWindowCompactionStrategy`",
    "`trim_messages`, its defaults",
    "`summarize_messages`",
)


def peers() -> dict[str, Subject]:
    """Return the packages that are installed, by name."""
    found = {
        NAMES.get(each.name, f"{each.package} {each.name}"): _subject(each)
        for each in RIVALS
        if each.version and each.name not in LEFT_OUT
    }
    if find_spec("langmem"):
        found["langmem, our digest"] = _langmem
    if find_spec("agent_framework"):
        found["Agent Framework, our digest"] = _agent_framework
    return found


def _subject(rival: Rival) -> Subject:
    def fit(conversation: Conversation, budget: int, _: TokenCounter) -> Messages:
        return rival.fit([dict(each) for each in conversation.messages], budget)

    return fit


def _langmem(conversation: Conversation, budget: int, texts: TokenCounter) -> Messages:
    from ..peers.langchain_middleware import DigestModel

    room = budget // 2
    model = DigestModel(budget=room, counter=texts)
    return langmem_within([dict(each) for each in conversation.messages], budget, model, summary_tokens=room)


def _agent_framework(conversation: Conversation, budget: int, texts: TokenCounter) -> Messages:
    """Summarize all but the last four groups, then drop the oldest until the rest fits."""
    import agent_framework as af

    from ..peer import COUNTER, awaited
    from ..peers.agent_framework_pipeline import DigestClient

    client: Any = DigestClient(budget // 2, texts)
    strategy = af.TokenBudgetComposedStrategy(
        token_budget=budget,
        tokenizer=COUNTER,
        strategies=[af.SummarizationStrategy(client=client, target_count=4, threshold=2, max_summary_input_tokens=None)],
    )
    view = awaited(af.apply_compaction(peer_messages(conversation.messages), strategy=strategy, tokenizer=COUNTER))
    return [of_agent_framework(message) for message in view]
