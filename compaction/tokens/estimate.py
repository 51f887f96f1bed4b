"""Estimates of token counts, for machines without a tokenizer's vocabulary.

`ByteClassEstimate` is much closer than a quarter of the characters. Every byte of the UTF-8 text belongs to one of 17 classes
(lower case, digit, the first byte of a Hangul syllable, ...). The estimate is a weighted sum of how often each class occurs and
how often one class follows another, counted in C by ``bytes.count``.

The weights are a least-squares fit to the exact o200k_base counts of pieces of about 1,500 characters of English prose, chat,
Python, JSON, Korean, logs, base64 and hexadecimal. The mean error was 4 percent on pieces held out of the fit (chars/4: 35) and
6 percent on other kinds of text (chars/4: 25). The weights of Chinese characters and Kana are a second fit, to half of 113
Chinese prompts and of the Japanese and simplified Chinese messages of common programs; on the other halves, the error fell from
15 to 11, from 21 to 6 and from 25 to 12 percent. Four classes were too rare in the texts of the first fit and were measured
separately. A full-width form is one token. The weight of characters beyond the basic plane is the average of the 80 faces from
U+1F600.

``docs/counting.md`` has a table of the errors, and ``benchmarks/estimator_error.py`` measures them. The estimate is least
accurate for short texts, for European languages other than English (10 to 30 percent too low) and for traditional Chinese (25
percent too low).

Cost: about that of tiktoken, 6 us for a hundred characters and 30 MB/s, so an estimate saves the vocabulary but not time.
"""

from __future__ import annotations

from typing import Final

import attrs

from .base import utf8_bytes


@attrs.frozen
class CharsPerToken:
    """A counter of one token for every four characters, rounded up.

    >>> CharsPerToken().count_text("hello")
    2
    """

    name = "chars/4"
    exact = False
    bytes_per_token = 4

    def count_text(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return (len(text) + 3) // 4


@attrs.frozen
class BytesPerToken(CharsPerToken):
    """A counter of one token for every four UTF-8 bytes, rounded up: closer for scripts with several bytes a letter.

    >>> BytesPerToken().count_text("안녕하세요")
    4
    """

    name = "bytes/4"

    def count_text(self, text: str) -> int:
        return (utf8_bytes(text) + 3) // 4


_RANGES: Final = (  # class, first byte, last byte
    ("p", 0x00, 0x08),  # punctuation and control characters
    ("s", 0x09, 0x09),  # blanks within a line
    ("n", 0x0A, 0x0A),  # line ends
    ("s", 0x0B, 0x0C),
    ("n", 0x0D, 0x0D),
    ("p", 0x0E, 0x1B),
    ("s", 0x1C, 0x20),
    ("p", 0x21, 0x2F),
    ("d", 0x30, 0x39),  # digits
    ("p", 0x3A, 0x40),
    ("U", 0x41, 0x5A),  # upper case
    ("p", 0x5B, 0x60),
    ("l", 0x61, 0x7A),  # lower case
    ("p", 0x7B, 0x7F),
    ("c", 0x80, 0xBF),  # the bytes of a character after its first: without weight
    ("E", 0xC0, 0xCD),  # accented Latin
    ("Y", 0xCE, 0xD3),  # Greek, Cyrillic
    ("R", 0xD4, 0xDF),  # Armenian, Hebrew, Arabic
    ("I", 0xE0, 0xE1),  # Indic scripts, Thai
    ("P", 0xE2, 0xE2),  # typographic punctuation, symbols
    ("K", 0xE3, 0xE3),  # Kana
    ("J", 0xE4, 0xE9),  # Chinese characters
    ("H", 0xEA, 0xED),  # Hangul
    ("Z", 0xEE, 0xEF),  # full-width forms, private use
    ("Q", 0xF0, 0xFF),  # beyond the basic plane: emoji
)
_CLASSES: Final = b"".join(name.encode() * (last - first + 1) for name, first, last in _RANGES)
_CONSTANT: Final = 1.115
_ASCII_WEIGHTS: Final = (  # tokens for each occurrence of a class, or of one class right after another
    (b"l", 0.1411),
    (b"U", 0.3378),
    (b"d", 0.3328),
    (b"s", 0.0907),
    (b"n", 0.2571),
    (b"p", 0.9116),
    (b"sl", 0.2326),
    (b"sU", 0.1781),
    (b"pl", -0.1544),
    (b"pU", -0.6657),
    (b"ld", 1.0271),
    (b"Ud", 1.4751),
    (b"dl", 0.2256),
    (b"dU", 1.2018),
    (b"lU", 0.9409),
    (b"Ul", 0.0473),
    (b"pd", 0.5681),
    (b"sd", 2.6813),
    (b"ss", -0.1029),
    (b"pp", -1.1696),
    (b"sp", 0.3973),
    (b"ns", 0.3091),
)
_OTHER_WEIGHTS: Final = (
    (b"E", 0.9846),
    (b"Y", 0.313),
    (b"R", 0.3682),
    (b"I", 0.3676),
    (b"P", 1.2626),
    (b"K", 0.756),
    (b"J", 0.703),
    (b"H", 0.7919),
    (b"Z", 1.0),
    (b"Q", 1.9),
)


class EstimateWarning(UserWarning):
    """Warns once a process that token counts are estimated, because no vocabulary is on this machine."""


@attrs.frozen
class ByteClassEstimate:
    """A counter that estimates o200k_base tokens from the classes of a text's bytes.

    >>> ByteClassEstimate().count_text("How many tokens does this sentence have?")  # o200k_base: 8
    9
    """

    name = "estimate"
    exact = False

    def count_text(self, text: str) -> int:
        """Return the estimated tokens of ``text``, at least 1 unless it is empty."""
        if not text:
            return 0
        occurrences = text.encode("utf-8", "surrogatepass").translate(_CLASSES).count
        tokens = _CONSTANT
        for pattern, weight in _ASCII_WEIGHTS:
            tokens += weight * occurrences(pattern)
        if not text.isascii():
            for pattern, weight in _OTHER_WEIGHTS:
                tokens += weight * occurrences(pattern)
        return max(1, round(tokens))
