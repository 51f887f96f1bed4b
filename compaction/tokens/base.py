"""The token counter protocol: three members, so that any tokenizer can implement it.

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


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of one text; `MessageMeter` measures messages and adds what a provider puts around them."""

    @property
    def name(self) -> str:
        """The name that counts are remembered under: counters of one name give the same count for every text."""
        ...

    @property
    def exact(self) -> bool:
        """Whether a text gets the count that its encoding defines; for messages no provider publishes one."""
        ...

    def count_text(self, text: str) -> int:
        """Return the tokens of ``text``: 0 for the empty text, never negative; a special token's name counts as plain text."""
        ...


def utf8_bytes(text: str) -> int:
    """Return the bytes of ``text`` in UTF-8; a lone surrogate, which JSON can hold, counts as three bytes.

    >>> utf8_bytes("plain"), utf8_bytes("né"), utf8_bytes(chr(0xD800))
    (5, 3, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
