"""The features of a sentence, one by one, for training; `Classifier.scores` sums their weights without naming them."""

from __future__ import annotations

from collections.abc import Iterator

from compaction.summarizers.extractive.classifier import (
    END,
    START,
    feature_of_first,
    feature_of_pair,
    features_of_word,
    words_of,
)


def features_of(sentence: str) -> Iterator[int]:
    """Yield the features of a sentence; the model sums their weights."""
    before, is_first = START, True
    for word in words_of(sentence):
        found = features_of_word(word)
        yield from found
        yield feature_of_pair(before, found[0])
        if is_first:
            yield from map(feature_of_first, found)
        before, is_first = found[0], False
    yield feature_of_pair(before, END)


def slot_of(feature: int, slots: int) -> tuple[int, int]:
    """Return the only row in which a feature may stand, and the byte that shows that it does."""
    return feature % slots, feature >> 24
