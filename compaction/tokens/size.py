"""How long a text is in UTF-8, without building the bytes where that can be avoided."""

from __future__ import annotations

__all__ = ["utf8_bytes"]


def utf8_bytes(text: str) -> int:
    """Bytes of ``text`` in UTF-8; a lone surrogate, which JSON can carry, counts the three bytes it would take.

    >>> utf8_bytes("plain"), utf8_bytes("né"), utf8_bytes(chr(0xD800))
    (5, 3, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
