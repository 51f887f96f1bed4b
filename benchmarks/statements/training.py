"""Training: logistic regression over the features of the classifier, reduced to the rows that fit into the file."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any, Final

import numpy as np

from compaction.summarizers.extractive.classifier import HEAD, KINDS, STEPS, ZERO

from .examples import Example
from .features import features_of, slot_of

SLOTS: Final = 84_011  # a prime; so many rows are less than 500 KB, compressed
WEIGHT: Final = 0.7  # of one step of a byte
_LEAST: Final = 2  # times that a feature is in the examples
_STRENGTH: Final = 9.0  # the inverse of the regularization
_ROUNDS: Final = 60, 80  # of the first fit, which chooses features, and of the second one
_RARE: Final = 5.0
_RARER: Final = 1.25  # the power of the rarity by which a feature is multiplied


def train(given: Sequence[Example]) -> bytes:
    """Return the content of a model file. It takes a minute, and is the same each time."""
    kinds = np.array([KINDS.index(each.kind) for each in given])
    features, counts = _counted([each.text for each in given])
    rarity = (np.log(len(given) / _documents(counts)) / _RARE) ** _RARER
    weights, _ = _fitted(counts, kinds, rarity, _ROUNDS[0])
    chosen = _fitting(features, np.sqrt((weights**2).sum(axis=0)) * np.sqrt(_documents(counts)))
    weights, bias = _fitted(counts[:, chosen], kinds, rarity[chosen], _ROUNDS[1])
    return packed(features[chosen].tolist(), weights, bias)


def _counted(texts: Sequence[str]) -> tuple[Any, Any]:
    """Return the features, and how often each text has each of them, divided by the root of the number of its features."""
    rows = [[*features_of(text)] for text in texts]
    every, times = np.unique(np.concatenate([np.array(row, dtype=np.int64) for row in rows]), return_counts=True)
    features = every[times >= _LEAST]
    known = {feature: place for place, feature in enumerate(features.tolist())}
    ends, places, values = [0], list[int](), list[float]()
    for row in rows:
        found = [known[feature] for feature in row if feature in known]
        places += found
        values += [1 / math.sqrt(len(row))] * len(found)
        ends.append(len(places))
    counts: Any = resolve_name("scipy.sparse:csr_matrix")((values, places, ends), shape=(len(texts), len(features)))
    counts.sum_duplicates()
    return features, counts


def _documents(counts: Any) -> Any:
    """Return how many texts have each feature."""
    return np.asarray((counts > 0).sum(axis=0)).ravel()


def _fitted(counts: Any, kinds: Any, rarity: Any, rounds: int) -> tuple[Any, Any]:
    """Return the weight of each kind and feature, and the bias of each kind; features weigh less the more texts have them."""
    model: Any = resolve_name("sklearn.linear_model:LogisticRegression")(C=_STRENGTH, max_iter=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more rounds fit the examples better, and the judging ones worse
        model.fit(counts.multiply(rarity).tocsr(), kinds)
    weights = model.coef_ * rarity
    return weights - weights.mean(axis=0), model.intercept_ - model.intercept_.mean()


def _fitting(features: Any, importance: Any) -> Any:
    """Return the places of the features that have a row: of those with the same one, the most important."""
    taken: dict[int, int] = {}
    for place in np.argsort(-importance, kind="stable").tolist():
        taken.setdefault(slot_of(int(features[place]), SLOTS)[0], place)
    return np.sort(np.array(list(taken.values())))


def packed(features: Sequence[int], weights: Any, bias: Any) -> bytes:
    """Return a model file of features and their weights, in the form that `Classifier` reads."""
    unit = STEPS * math.log2(math.e)
    steps = np.clip(np.rint(weights / WEIGHT), -ZERO, ZERO - 1).astype(int) + ZERO
    marks, rows = bytearray(SLOTS), bytearray(SLOTS * len(KINDS))
    for feature, column in zip(features, steps.T.tolist(), strict=True):
        slot, marks_of = slot_of(feature, SLOTS)
        marks[slot] = marks_of
        rows[slot * len(KINDS) : (slot + 1) * len(KINDS)] = bytes(column)
    head = HEAD.pack(SLOTS, round(WEIGHT * unit * 256), *[round(each * unit) for each in bias.tolist()])
    packing = zlib.compressobj(9, strategy=zlib.Z_FILTERED)  # 4 % smaller than by the default strategy
    return packing.compress(head + marks + rows) + packing.flush()
