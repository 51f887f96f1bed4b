"""The kind of a sentence, by a linear model that was learned from examples in many languages (``benchmarks/statements``).

A sentence is a sum of features: its words, their beginnings and ends, pairs of words, the first word once more, and short runs
of characters where a script has no blanks. The features of a word depend on the word alone, so their sum is kept for words that
come back. All arithmetic is on whole numbers: the same sentence has the same scores on every machine.

To add the weights of all kinds at once, they stand side by side in one large number, in lanes of 32 bits::

    lane of a row   0 ... 14: the weight of each of `KINDS` + 128    15: 1
    lane of a sum   0 ... 14: the sums of these                      15: how many features have a row    16: how many there are

Each row adds 128 too much to a lane, so 128 times lane 15 is taken from it again.
"""

from __future__ import annotations

import functools
import re
import struct
from hashlib import blake2b
from math import isqrt
from pathlib import Path
from typing import Final
from unicodedata import normalize
from zlib import crc32, decompress

KINDS: Final = (
    *("rule", "prohibition", "preference", "fact", "value", "change", "decision", "task", "request", "question"),
    *("others_rule", "hypothetical", "small_talk", "acknowledgement", "program"),
)  # in the order of the model's scores
PER_MILLE: Final = 1_000
_PROGRAM: Final = KINDS.index("program")  # the last
MODEL: Final = Path(__file__).with_name("classifier.bin")

_SIGNS: Final = (
    r"\s\d_!-&(-/:-@\[-^`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u0964\u0965\u060c\u061b\u061f\u2010-\u2018\u201a-\u205e"
    r"\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65'"
)
_STOPS: Final = " .。।"  # at the end: whether somebody sets one says nothing
_WORD: Final = re.compile(rf"[^{_SIGNS}]+(?:'[^{_SIGNS}]+)*|\d+|[^\s\w]")
_NUMBER: Final = re.compile(r"\d+")
_NO_BLANKS: Final = re.compile(r"([\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+)")
_SYLLABLES: Final = "\u10ff"  # scripts above have syllables or ideas for characters, so one says much
_PIECE: Final = 3
_LONGEST_AFFIX: Final = 4
_MOST_WORDS: Final = 200
_MOST_KNOWN: Final = 8_192
_MOST_SENTENCES: Final = 4_096
START, END = 1, 2
BITS: Final = 0xFFFFFFFF


def words_of(sentence: str) -> list[str]:
    """Return the words, numbers and signs of a sentence in lower case; of runs without blanks, each place's next characters.

    >>> words_of("Don't open 2 files!"), words_of("别打开")
    (["don't", 'open', '2', 'files', '!'], ['别打开', '打开', '开'])
    """
    words: list[str] = _WORD.findall(sentence.rstrip(_STOPS).lower().replace("’", "'"))[:_MOST_WORDS]
    if sentence.isascii() or not _NO_BLANKS.search(sentence):
        return words
    pieces: list[str] = []
    for word in words:
        for place, run in enumerate(_NO_BLANKS.split(word)):
            pieces += [run[at : at + _PIECE] for at in range(len(run))] if place % 2 else [run] if run else []
    return pieces[:_MOST_WORDS]


def features_of_word(word: str) -> list[int]:
    """Return the features of a word: itself, its beginnings and its ends, as 32-bit numbers; all numbers are one word.

    Letters count without accents, Cyrillic ones as Latin ones, and the signs of all scripts as those of ASCII. So related
    languages share features, and those who leave accents out are understood. Greek letters and the tones of Vietnamese stay:
    without its tones, a Vietnamese word is another word.

    >>> features_of_word("förstå") == features_of_word("forsta"), features_of_word("не") == features_of_word("ні")
    (True, False)
    >>> features_of_word("проблема") == features_of_word("problema"), features_of_word("？") == features_of_word("?")
    (True, True)
    """
    if word[0].isdigit():
        word = "0"
    elif not word.isascii():
        word = word.translate(_PLAIN) or word  # of "ъ" alone nothing would be left
    if _NO_BLANKS.match(word):
        found, feature = list[int](), 0
        for character in word:
            feature = crc32(character.encode("utf-8", "surrogatepass"), feature)
            found.append(feature)
        return found
    whole = f"<{word}>"
    parts = (_PARTS_OF_SYLLABLES if word[0] > _SYLLABLES else _PARTS)[min(len(word), _LONGEST_AFFIX + 1)]
    if word.isascii():
        encoded = whole.encode()  # once: most words take this way
        return [crc32(encoded[part]) for part in parts]
    return [crc32(whole[part].encode("utf-8", "surrogatepass")) for part in parts]


def _parts(letters: int, shortest: int) -> tuple[slice, ...]:
    """Return where the features of a word of so many letters stand in ``<word>``."""
    lengths = range(shortest + 1, min(_LONGEST_AFFIX + 2, letters + 1))
    return slice(None), *[slice(length) for length in lengths], *[slice(-length, None) for length in lengths]


_PARTS: Final = [_parts(letters, shortest=2) for letters in range(_LONGEST_AFFIX + 2)]
_PARTS_OF_SYLLABLES: Final = [_parts(letters, shortest=1) for letters in range(_LONGEST_AFFIX + 2)]


_LETTER: Final[dict[str, str]] = {
    **dict(zip("абвгдежзиклмнопрстуфхцчшщыэюяіґђјљњћ", "abvgdezziklmnoprstufhccssyeuaigdjlnc", strict=True)),
    **dict(zip("æøœłıđð", "aoolidd", strict=True)),
    **dict.fromkeys("ьъ", ""),
    "ß": "ss",
}
_PLAIN: Final[dict[int, int | str]] = {
    **{
        code: plain
        for code in (*range(0xDF, 0x250), *range(0x430, 0x500))  # Latin, Cyrillic
        if (plain := _LETTER.get(base := normalize("NFD", chr(code))[0], base)).isascii()
    },
    **str.maketrans("يىك", "ییک"),  # the Arabic forms of Persian letters
    0x200C: "",  # the half-space
    **str.maketrans("？؟！，،、；؛：„“”«»「」（）–—…", '??!,,,;;:"""""""()--.'),
}


def feature_of_first(feature: int) -> int:
    """Return the feature that stands for another one in the first word of a sentence."""
    return (feature * 7 + 1) & BITS


def feature_of_pair(one: int, other: int) -> int:
    """Return the feature of two words that follow each other, given the first feature of each.

    The factors keep it apart from the features of words.
    """
    return (one * 31 + other * 17 + 7) & BITS


# ---------------------------------------------------------------- weights as whole numbers

HEAD: Final = struct.Struct(f"<II{len(KINDS)}i")
ZERO: Final = 128  # the byte that stands for a weight of zero
STEPS: Final = 16  # of scores, for each power of two of a probability
_LANES: Final = struct.Struct(f"<{len(KINDS) + 2}I")  # of a sum
_ROW: Final = 4 * (len(KINDS) + 1)  # bytes in memory; in the file a row has a byte for each kind
_ONE_FEATURE: Final = 1 << 8 * _ROW  # in the last lane of a sum
_POWERS: Final = tuple([round((1 << 16) * 2 ** (-step / STEPS)) for step in range(256)])


def _shares(scores: list[int]) -> list[int]:
    """Return the probabilities that belong to these scores, in per mille."""
    best = max(scores)
    shares = [_POWERS[best - score] if best - score < len(_POWERS) else 0 for score in scores]
    whole = sum(shares)
    return [PER_MILLE * share // whole for share in shares]


class Classifier:
    """A model that was learned. Holds state: the sums of words that were seen lately, and the scores of sentences.

    A sentence is judged when it is read, when it is quoted, and again in later rounds. Only digests of sentences are kept.

    Args:
        data: The content of a model file, compressed: the number of rows (``slots``), the ``scale`` of the sums, and the
            ``bias`` of each kind; the ``marks``, of each row the top byte of its feature, so that another feature with the same
            row is recognized; and the ``rows``, a byte for each kind.
    """

    def __init__(self, data: bytes) -> None:
        data = decompress(data)
        self.slots, self.scale, *self.bias = HEAD.unpack_from(data)
        start = HEAD.size + self.slots
        self.marks = data[HEAD.size : start]
        rows = bytearray(_ROW * self.slots)
        for lane in range(len(KINDS)):
            rows[4 * lane :: _ROW] = data[start + lane :: len(KINDS)]
        rows[4 * len(KINDS) :: _ROW] = b"\1" * self.slots
        self.rows = bytes(rows)
        self._known: dict[bytes, list[int]] = {}  # by the digest of a sentence without its numbers
        self._word_sum = functools.lru_cache(_MOST_KNOWN)(self._sum_of_word)
        self._first_word_sum = functools.lru_cache(_MOST_KNOWN // 8)(self._sum_of_first_word)

    def probabilities(self, sentence: str, *, is_said: bool = False) -> dict[str, int]:
        """Return the probability of each of `KINDS` in per mille; O(characters).

        Args:
            sentence: The sentence.
            is_said: Whether a person is known to speak. Then the others are as if the model did not know programs: a time or a
                path in the sentence says nothing against them. The kind ``"program"`` keeps its probability.

        >>> model = classifier()
        >>> shares = model.probabilities("Please never delete the log files.")
        >>> max(shares, key=shares.__getitem__)
        'prohibition'
        """
        scores = self.scores(sentence)
        shares = _shares(scores)
        if is_said and shares[_PROGRAM]:
            shares[:_PROGRAM] = _shares(scores[:_PROGRAM])
        return dict(zip(KINDS, shares, strict=True))

    def scores(self, sentence: str) -> list[int]:
        """Return the score of each of `KINDS`: the logarithm of its probability, in `STEPS` a power of two, plus a constant."""
        sentence = _NUMBER.sub("0", sentence)  # all numbers are one word, so their sum is kept
        digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._known.get(digest)
        if found is None:
            if len(self._known) >= _MOST_SENTENCES:
                self._known.clear()
            found = self._known[digest] = self._scores_of(sentence)
        return found.copy()

    def _scores_of(self, sentence: str) -> list[int]:
        words = words_of(sentence)
        of_words = [*map(self._word_sum, words)]
        features = [START, *[feature for feature, _ in of_words], END]
        total = self._sum([*map(feature_of_pair, features, features[1:])]) + sum([weights for _, weights in of_words])
        if words:
            total += self._first_word_sum(words[0])
        *lanes, found, count = _LANES.unpack(total.to_bytes(_LANES.size, "little"))
        root = isqrt(count << 16)
        zero, scale = ZERO * found, self.scale
        return [bias + (lane - zero) * scale // root for bias, lane in zip(self.bias, lanes, strict=True)]

    def _sum_of_word(self, word: str) -> tuple[int, int]:
        """Return the first feature of a word, and the sum of all."""
        features = features_of_word(word)
        return features[0], self._sum(features)

    def _sum_of_first_word(self, word: str) -> int:
        return self._sum([*map(feature_of_first, features_of_word(word))])

    def _sum(self, features: list[int]) -> int:
        marks, rows, slots, read, total = self.marks, self.rows, self.slots, int.from_bytes, len(features) * _ONE_FEATURE
        for feature in features:
            slot = feature % slots
            if marks[slot] == feature >> 24:
                slot *= _ROW
                total += read(rows[slot : slot + _ROW], "little")
        return total


@functools.cache
def classifier() -> Classifier:
    """Return the model of the package, read the first time it is asked for."""
    return Classifier(MODEL.read_bytes())
