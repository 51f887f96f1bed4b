"""The length of a text in UTF-8 bytes."""

from __future__ import annotations

__all__ = ["utf8_bytes"]


def utf8_bytes(text: str) -> int:
    """Return the bytes of ``text`` in UTF-8; a lone surrogate, which JSON can hold, counts as three bytes.

    >>> utf8_bytes("plain"), utf8_bytes("né"), utf8_bytes(chr(0xD800))
    (5, 3, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
