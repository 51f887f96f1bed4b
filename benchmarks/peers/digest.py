"""A stand-in for a language model: it answers a prompt to summarize with our digest of the messages in the prompt.

Every package lets a model write its summaries. Here all get the same deterministic one: the prompt is split at the names that
the package writes before each message, and the messages are digested.
"""

from __future__ import annotations

import re
from typing import Any, Final

from compaction import MessageIndex
from compaction.errors import SummaryFailed
from compaction.summarizers import DigestSummarizer, SummaryRequest
from compaction.tokens import TokenCounter

_NAMED: Final = re.compile(
    r"^(?:\[(USER|ASSISTANT|TOOL RESULT[^\]]*|SYSTEM)\]:|(Human|AI|Tool|System|user|assistant|tool|system):"
    r"|\d+\. \[(user|assistant|tool|system)\])[ \n]",
    re.MULTILINE,
)
_USERS: Final = ("USER", "Human", "user")


def digest_of(prompt: str, budget: int, counter: TokenCounter) -> str:
    """Return our digest of the messages that a prompt quotes.

    Args:
        prompt: The prompt for the model.
        budget: Tokens the digest may have.
        counter: The token counter.
    """
    index = MessageIndex(_quoted(prompt), counter=counter)
    digest = DigestSummarizer()
    request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=budget, counter=counter)
    try:
        return digest.summarize(request)
    except SummaryFailed:
        return "Nothing was said."


def _quoted(prompt: str) -> list[dict[str, Any]]:
    """Return the messages a prompt quotes; the text before the first one is the prompt's instructions."""
    found = list(_NAMED.finditer(prompt))
    if not found:
        return [{"role": "assistant", "content": prompt}]
    ends = [*(match.start() for match in found[1:]), len(prompt)]
    messages: list[dict[str, Any]] = []
    for match, end in zip(found, ends, strict=True):
        role = "user" if (match[1] or match[2] or match[3]) in _USERS else "assistant"
        messages.append({"role": role, "content": prompt[match.end() : end].strip()})
    return messages
