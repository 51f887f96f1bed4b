"""The simplest estimators: one token for every four characters, or for every four bytes.

Both round up. Of the systems they come from, one rounds each text up, ``(len + 3) // 4``; another sums the lengths and rounds
the sum down. Here each text is counted by itself, so rounding down would lose up to three quarters of a token for each text
and count a short text as free. Rounding up errs by as little, on the safe side.

Compared with o200k_base, a text is off by a tenth to a fifth in English and code, and by half and more in data, logs and most
other scripts (``docs/counting.md``): good enough to compare sizes, not to fill a window. Cost: 0.05 to 0.1 us a text, as much
as a lookup, so these counts are not remembered.
"""

from __future__ import annotations

import attrs

from .size import utf8_bytes

__all__ = ["BytesPerToken", "CharsPerToken"]


@attrs.frozen
class CharsPerToken:
    """A counter with one token for every four characters, rounded up.

    >>> CharsPerToken().count_text("hello")
    2
    """

    name = "chars/4"
    exact = False

    def count_text(self, text: str) -> int:
        """Return a quarter of the characters of ``text``, rounded up."""
        return (len(text) + 3) // 4


@attrs.frozen
class BytesPerToken:
    """A counter with one token for every four UTF-8 bytes, rounded up: closer for scripts with several bytes a letter.

    >>> BytesPerToken().count_text("안녕하세요")
    4
    """

    name = "bytes/4"
    exact = False

    def count_text(self, text: str) -> int:
        """Return a quarter of the UTF-8 bytes of ``text``, rounded up."""
        return (utf8_bytes(text) + 3) // 4
