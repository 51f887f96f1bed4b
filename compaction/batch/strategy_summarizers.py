"""The summarizers inside a strategy: finding and replacing them."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, cast

import attrs

from ..strategies import Strategy
from ..summarizers import CachedSummarizer, DigestSummarizer, FirstOf, Summarizer


def find_summarizers(strategy: Strategy) -> list[Summarizer]:
    """Return the summarizers of a strategy and its parts, except digests, which ask no model.

    Summarizers that a plain function calls are not found.

    >>> from compaction import presets
    >>> find_summarizers(presets.hermes(8_000))
    []
    """
    found: list[Summarizer] = []

    def add(summarizer: Summarizer) -> Summarizer:
        found.append(summarizer)
        return summarizer

    replace_summarizers(strategy, add)
    return found


def replace_summarizers(strategy: Strategy, change: Callable[[Summarizer], Summarizer]) -> Strategy:
    """Return a strategy with each summarizer replaced, except digests; of a `CachedSummarizer`, the inner one is replaced.

    Args:
        strategy: The strategy.
        change: Returns the replacement of a summarizer.
    """

    def changed(part: Strategy) -> Strategy:
        fields: Any = attrs.fields(cast("Any", type(part))) if attrs.has(type(part)) else ()
        given = {field.name.lstrip("_"): getattr(part, field.name) for field in fields if field.init}
        changes = {name: new for name, old in given.items() if (new := _replaced(old, change)) is not old}
        return cast("Strategy", attrs.evolve(cast("Any", part), **changes)) if changes else part

    return strategy.changed(changed)


def _replaced(value: Any, change: Callable[[Summarizer], Summarizer]) -> Any:
    if not isinstance(value, Summarizer) or isinstance(value, DigestSummarizer):
        return value
    if isinstance(value, FirstOf):
        parts = [cast("Summarizer", _replaced(each, change)) for each in value.summarizers]
        return value if all(map(is_, parts, value.summarizers)) else FirstOf(*parts)
    if isinstance(value, CachedSummarizer):
        inner = change(value.inner)
        return value if inner is value.inner else attrs.evolve(value, inner=inner)
    return change(value)
