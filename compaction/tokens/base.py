"""The protocol of token counters, which any tokenizer can implement with three members.

>>> from compaction.tokens import counter
>>> class Words:
...     name, exact = "words", False
...     def count_text(self, text: str) -> int:
...         return len(text.split())
>>> counter(Words()).count_text("three short words")
3
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import attrs


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of one text; `MessageMeter` measures whole messages with it."""

    @property
    def name(self) -> str:
        """The counter's name; two counters of the same name must return the same count for every text."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``count_text`` returns the number of tokens in a published encoding, not an estimate."""
        ...

    def count_text(self, text: str) -> int:
        """Return the tokens of ``text``, >= 0, and 0 for the empty text; names of special tokens count as plain text."""
        ...


@attrs.frozen
class EncodingCounter:
    """The base of exact counters; a counter is pickled as the name of its encoding, without the vocabulary."""

    exact = True
    bytes_per_token = 1

    encoding: str

    @property
    def name(self) -> str:
        """The name of the encoding."""
        return self.encoding

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.encoding,)


def least_bytes_per_token(counter: TokenCounter) -> int | None:
    """Return the optional attribute ``bytes_per_token`` of a counter; ``None`` if it has none.

    A text of ``n`` UTF-8 bytes has at most ``n / bytes_per_token`` tokens, rounded up.

    >>> from compaction.tokens import counter
    >>> least_bytes_per_token(counter("chars/4")), least_bytes_per_token(counter("estimate"))
    (4, None)
    """
    bytes_per_token: int | None = getattr(counter, "bytes_per_token", None)
    return bytes_per_token


def utf8_bytes(text: str) -> int:
    """Return the bytes of ``text`` in UTF-8; a lone surrogate, which JSON can hold, counts as three bytes.

    >>> utf8_bytes("plain"), utf8_bytes("né"), utf8_bytes(chr(0xD800))
    (5, 3, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
