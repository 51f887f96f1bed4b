"""Exact counts from toktok: its package contains the vocabulary, so it works offline, about ten times faster than tiktoken.

It agreed with tiktoken on every real text compared. The one known difference is an apostrophe before the long s (``'ſ``,
U+017F), which may be one token off.

The package's public function counts batches and costs 30 us a call. Its tokenizer objects count one text in 0.4 to 1 us but
are not public, so they are used only if they exist and agree with the public function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Final

import attrs

_PROBES: Final = ("", "Hello, world!\n", "<|endoftext|>", "안녕 \u00a0 def f(x): return x**2")


@attrs.frozen
class ToktokCounter:
    """A counter with one of toktok's encodings.

    Args:
        encoding: ``"o200k_base"``, ``"o200k_harmony"`` or ``"cl100k_base"``.

    Raises:
        ImportError: If toktok is not installed.
        KeyError: If it has no such encoding.

    Loading takes 0.3 s and 60 MB, once a process and encoding; the counter pickles as the encoding's name.
    """

    exact = True

    encoding: str
    _count: Callable[[str], int] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_count", _count_function(self.encoding))

    @property
    def name(self) -> str:
        """The encoding."""
        return self.encoding

    def count_text(self, text: str) -> int:
        """Return the tokens of ``text``; a lone surrogate counts as the replacement character, as in tiktoken."""
        try:
            return self._count(text)
        except UnicodeEncodeError:
            return self._count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def __reduce__(self) -> tuple[type[ToktokCounter], tuple[str]]:
        return ToktokCounter, (self.encoding,)


def load_toktok(encoding: str) -> ToktokCounter | None:
    """Return the counter, or ``None`` if toktok is not installed or has no such encoding."""
    try:
        return ToktokCounter(encoding)
    except (ImportError, KeyError):
        return None


def _count_function(encoding: str) -> Callable[[str], int]:
    toktok = import_module("toktok")
    public = partial(_count_in_batch, toktok, encoding)
    expected = [public(text) for text in _PROBES]
    direct = _direct_count(toktok, encoding)
    if direct is None or [direct(text) for text in _PROBES] != expected:
        return public
    return direct


def _count_in_batch(toktok: ModuleType, encoding: str, text: str) -> int:
    counts: list[int] = toktok.batch_count([text], encoding, 1)
    return counts[0]


def _direct_count(toktok: ModuleType, encoding: str) -> Callable[[str], int] | None:
    """Return the tokenizer's own ``count``, if this release has one."""
    tokenizer = getattr(toktok, "_encoding", None)
    count: Callable[[str], int] | None = None if tokenizer is None else getattr(tokenizer(encoding), "count", None)
    return count
