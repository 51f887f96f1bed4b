"""A language model that is none: it answers a prompt to summarize with our digest of what the prompt quotes.

Every peer asks a model for its summaries. Here all of them get the same one, which costs nothing and always says the same: the
prompt is taken apart at the names its package puts before each message, and a digest is made of these.
"""

from __future__ import annotations

import re
from typing import Any, Final

from compaction import MessageIndex
from compaction.errors import SummaryFailed
from compaction.summarizers import DigestSummarizer, SummaryRequest
from compaction.tokens import TokenCounter

_NAMED: Final = re.compile(
    r"^(?:\[(USER|ASSISTANT|TOOL RESULT[^\]]*|SYSTEM)\]:|(Human|AI|Tool|System|user|assistant|tool|system):)[ \n]", re.MULTILINE
)
_USERS: Final = ("USER", "Human", "user")


def digest_of(prompt: str, budget: int, counter: TokenCounter) -> str:
    """Our digest of the messages that a prompt quotes.

    Args:
        prompt: What a model would be asked.
        budget: Tokens the digest may have.
        counter: Counts them.
    """
    index = MessageIndex(_quoted(prompt), counter=counter)
    digest = DigestSummarizer()
    request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=budget, counter=counter)
    try:
        return digest.summarize(request)
    except SummaryFailed:
        return "Nothing was said."


def _quoted(prompt: str) -> list[dict[str, Any]]:
    """The messages a prompt quotes; what stands before the first is its own instructions."""
    found = list(_NAMED.finditer(prompt))
    if not found:
        return [{"role": "assistant", "content": prompt}]
    ends = [*(match.start() for match in found[1:]), len(prompt)]
    messages: list[dict[str, Any]] = []
    for match, end in zip(found, ends, strict=True):
        role = "user" if (match[1] or match[2]) in _USERS else "assistant"
        messages.append({"role": role, "content": prompt[match.end() : end].strip()})
    return messages
