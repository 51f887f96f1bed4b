"""What a token counter is: three members, so that any tokenizer can be one.

>>> from compaction.tokens import counter
>>> class Words:
...     name, exact = "words", False
...     def count_text(self, text: str) -> int:
...         return len(text.split())
>>> counter(Words()).count_text("three short words")
3
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["TokenCounter"]


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of one text; messages are measured by `MessageMeter`, which adds what a provider puts around them."""

    @property
    def name(self) -> str:
        """What counts are remembered under: two counters of one name give the same count for every text."""
        ...

    @property
    def exact(self) -> bool:
        """Whether a text gets the count its encoding defines. It says nothing about messages: no provider publishes those."""
        ...

    def count_text(self, text: str) -> int:
        """Tokens of ``text``: 0 for the empty text, never negative; a special token's name counts as the plain text it is."""
        ...
