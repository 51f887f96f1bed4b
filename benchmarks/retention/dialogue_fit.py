"""Fits the weights of `compaction.summarizers.extractive.talk` to what is asked about conversations between people.

    python -m benchmarks.retention.dialogue FOLDER --fit

Which sentences stand in a summary is decided by their rank and by the room. So the weights are not fitted to tell evidence from
the rest, but to hold as much of it as fits: each sentence of a conversation is chosen with the probability that its score gives
above a threshold, and the threshold is such that the chosen ones fill the room. The share of the evidence that is chosen then
has a derivative, and the weights climb it. A sentence counts for each question as much as its share of that one's evidence.
Only every second conversation of each set is used, from the first; the others are for judging. Needs NumPy, which the group
``bench`` has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, Final

import attrs

from compaction import MessageIndex
from compaction.summarizers.extractive.reading import read_message
from compaction.summarizers.extractive.talk import WEIGHTS, Utterance, shape_of, talk_in
from compaction.tokens import TokenCounter

_ROOM: Final = 0.185  # of a conversation's tokens
_SOFTNESS: Final = 0.5  # of the threshold
_STEPS: Final = 80
_RATE: Final = 0.12
_DECAY: Final = 1e-3
_HALVINGS: Final = 18  # of the range in which the threshold lies
_MOST_PLACES: Final = 40
_SETS: Final = {"locomo": 0.9, "friendsqa": 0.7, "qmsum": 2.5}
"""How much each set counts."""


@attrs.frozen(eq=False)
class _Example:
    """A conversation: the features of its sentences, the evidence and the tokens of each, its room, and how much it counts."""

    features: Any
    gains: Any
    tokens: Any
    room: float
    weight: float


def evidence_of(said: Sequence[str], evidence: Sequence[Sequence[str]]) -> list[float]:
    """Return how much of the evidence each sentence holds, as a sum over the questions; O(evidence x characters).

    >>> evidence_of(["Hm.", "In May. Yes.", "Hm."], [["In May."], ["Hm.", "Yes."]])
    [0.25, 1.5, 0.25]
    """
    starts, text = list[int](), ""
    for each in said:
        starts.append(len(text))
        text += each + "\n"
    worth = Counter[str]()
    for question in evidence:
        worth.update({each: 1 / len(question) for each in question})
    gains = [0.0] * len(said)
    for each, gain in worth.items():
        places = set[int]()
        at = text.find(each)
        while at >= 0 and len(places) < _MOST_PLACES:
            places.add(bisect_right(starts, at) - 1)
            at = text.find(each, at + 1)
        for place in places:
            gains[place] += gain / len(places)
    return gains


def fitted(
    sets: Mapping[str, Sequence[tuple[list[dict[str, Any]], list[list[str]]]]], tokens: TokenCounter
) -> dict[str, tuple[float, ...]]:
    """Return the weights, given the messages and the evidence of conversations by the name of their set."""
    np: Any = resolve_name("numpy")
    examples: list[_Example] = []
    for name, talks in sets.items():
        questions = sum(len(evidence) for _, evidence in talks)
        for messages, evidence in talks:
            weight = _SETS[name] * len(evidence) / questions
            examples.append(_example(np, messages, evidence, weight, tokens))
    every = np.vstack([each.features for each in examples])
    center, spread = every.mean(axis=0), every.std(axis=0) + 1e-9
    examples = [attrs.evolve(each, features=(each.features - center) / spread) for each in examples]
    weights = np.zeros(every.shape[1])
    first, second = weights.copy(), weights.copy()
    for step in range(_STEPS):  # Adam, with a rate that falls to 0
        slope = sum(each.weight * _slope(np, each, weights) for each in examples) - _DECAY * weights
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        move = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.99 ** (step + 1))) + 1e-8)
        weights = weights + _RATE * (1 - step / _STEPS) * move
    columns = (weights / spread).reshape(-1, len(WEIGHTS))
    return {name: tuple([round(float(each), 2) for each in column]) for name, column in zip(WEIGHTS, columns.T, strict=True)}


def _example(
    np: Any, messages: list[dict[str, Any]], evidence: list[list[str]], weight: float, tokens: TokenCounter
) -> _Example:
    index = MessageIndex(messages, counter=tokens)
    read = [message for group in index.included_groups for message in group.messages]
    talk = talk_in(read, read_message, str)
    sizes = Counter[int]()
    said: dict[str, Utterance] = {}
    for each in talk:
        sizes[int(each.place)] += len(each.text)
        said.setdefault(" ".join(each.text.split()), each)
    costs = [tokens.count_text(f" {text}\n") + tokens.count_text(f"- {each.by}:") / 2 for text, each in said.items()]
    own = np.array([each.features for each in said.values()], float)
    features = np.hstack([own * each for each in shape_of([*sizes.values()])])
    gains = np.array(evidence_of([*said], evidence)) / max(1, len(evidence))
    return _Example(features, gains, np.array(costs), index.tokens * _ROOM, weight)


def _slope(np: Any, example: _Example, weights: Any) -> Any:
    """Return the derivative of the share of the evidence that is chosen."""
    scores = example.features @ weights

    def chosen(threshold: float) -> Any:
        return 1 / (1 + np.exp(-np.clip((scores - threshold) / _SOFTNESS, -30, 30)))

    low, high = scores.min() - 5, scores.max() + 5
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if (chosen(middle) * example.tokens).sum() > example.room else (low, middle)
    shares = chosen((low + high) / 2)
    steep = shares * (1 - shares) / _SOFTNESS
    price = (steep * example.gains).sum() / (steep * example.tokens).sum()  # of a token
    return (steep * (example.gains - price * example.tokens)) @ example.features
