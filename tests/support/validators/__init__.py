"""A second implementation of every format's rules, from the pages in docs/rules and their sources, to check the package.

Nothing here imports the package. Each module has ``violations(messages)``, which returns texts such as
``messages[3] call-without-result call_1``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from . import anthropic, bedrock, gemini, openai_chat, openai_responses

__all__ = ["VIOLATIONS", "gained", "is_valid", "rules"]

VIOLATIONS: Final[dict[str, Callable[[list[Any]], list[str]]]] = {
    "openai-chat": openai_chat.violations,
    "openai-responses": openai_responses.violations,
    "anthropic": anthropic.violations,
    "gemini": gemini.violations,
    "bedrock": bedrock.violations,
}
_SAME_FAULT: Final = {
    "pending-call": "call-without-result",
    "duplicate-result": "result-without-call",
    "function-without-call": "result-without-call",
}
"""Rules that name the same fault, depending on its neighbours."""


def rules(format: str, messages: list[Any]) -> Counter[str]:
    """Return how often the messages break each rule; of a format without a second implementation, none."""
    return Counter(violation.split()[1] for violation in VIOLATIONS[format](messages)) if format in VIOLATIONS else Counter()


def is_valid(format: str, messages: list[Any]) -> bool:
    """Return whether a list breaks no rule, except for calls at its end that wait for a result."""
    return set(rules(format, messages)) <= {"pending-call"}


def gained(format: str, before: list[Any], after: list[Any]) -> Counter[str]:
    """Return how much more often each rule is broken after than before."""
    return _faults(format, after) - _faults(format, before)


def _faults(format: str, messages: list[Any]) -> Counter[str]:
    faults: Counter[str] = Counter()
    for rule, count in rules(format, messages).items():
        faults[_SAME_FAULT.get(rule, rule)] += count
    return faults
