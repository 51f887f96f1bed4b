"""A token every four characters, or every four bytes: the estimators of the first agents, and the cheapest there are.

Both round up. One of the systems they come from rounds each text up, ``(len + 3) // 4``; another sums the lengths and rounds
the sum down. A count is made text by text here, so rounding down would lose up to three quarters of a token per text and call
a short text free; rounding up errs by as little, towards keeping the window, and only the empty text costs nothing.

Against o200k_base a text is off by a tenth to a fifth in English and code, and by half and more in data, logs and most other
scripts (``docs/counting.md``): good enough to compare sizes, not to fill a window. Cost: 0.05 to 0.1 us a text, as much as
looking it up would take, so these counts are not remembered.
"""

from __future__ import annotations

import attrs

from .size import utf8_bytes

__all__ = ["BytesPerToken", "CharsPerToken"]


@attrs.frozen
class CharsPerToken:
    """One token for every four characters, rounded up.

    >>> CharsPerToken().count_text("hello")
    2
    """

    name = "chars/4"
    exact = False

    def count_text(self, text: str) -> int:
        """A quarter of the characters of ``text``, rounded up."""
        return (len(text) + 3) // 4


@attrs.frozen
class BytesPerToken:
    """One token for every four UTF-8 bytes, rounded up: nearer than characters where a script needs several bytes a letter.

    >>> BytesPerToken().count_text("안녕하세요")
    4
    """

    name = "bytes/4"
    exact = False

    def count_text(self, text: str) -> int:
        """A quarter of the UTF-8 bytes of ``text``, rounded up."""
        return (utf8_bytes(text) + 3) // 4
