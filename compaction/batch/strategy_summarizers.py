"""The summarizers inside a strategy: finding and replacing them."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, cast

import attrs

from ..strategies import Pipeline, Strategy
from ..summarizers import CachedSummarizer, DigestSummarizer, FirstOf, Summarizer

__all__ = ["find_summarizers", "replace_summarizers"]


def find_summarizers(strategy: Strategy) -> list[Summarizer]:
    """Return the summarizers of a strategy and of those inside it, except digests, which ask no model.

    Summarizers that a plain function calls are not found.

    >>> from compaction import presets
    >>> find_summarizers(presets.hermes(8_000))
    []
    """
    found: list[Summarizer] = []

    def note(summarizer: Summarizer) -> Summarizer:
        found.append(summarizer)
        return summarizer

    replace_summarizers(strategy, note)
    return found


def replace_summarizers(strategy: Strategy, change: Callable[[Summarizer], Summarizer], *, digests: bool = False) -> Strategy:
    """Return a strategy with each summarizer replaced; inside a cache, the cached one is replaced.

    Args:
        strategy: The strategy.
        change: Returns the replacement of a summarizer.
        digests: Whether digests, which ask no model, are replaced too.
    """
    if isinstance(strategy, Pipeline):
        steps = [replace_summarizers(step, change, digests=digests) for step in strategy.steps]
        same = all(new is old for new, old in zip(steps, strategy.steps, strict=True))
        return strategy if same else Pipeline(*steps, trigger=strategy.trigger, target=strategy.target)
    if not attrs.has(type(strategy)):
        return strategy
    changes: dict[str, Any] = {}
    for field in attrs.fields(cast("Any", type(strategy))):
        if not field.init:
            continue
        value = getattr(strategy, field.name)
        new = _replaced(value, change, digests)
        if new is not value:
            changes[field.name.lstrip("_")] = new
    return cast("Strategy", attrs.evolve(cast("Any", strategy), **changes)) if changes else strategy


def _replaced(value: Any, change: Callable[[Summarizer], Summarizer], digests: bool) -> Any:
    if isinstance(value, Strategy):
        return replace_summarizers(value, change, digests=digests)
    if isinstance(value, tuple):
        new = [_replaced(item, change, digests) for item in cast("Any", value)]
        return cast("Any", value) if all(map(is_, new, cast("Any", value))) else tuple(new)
    if not isinstance(value, Summarizer) or (isinstance(value, DigestSummarizer) and not digests):
        return value
    if isinstance(value, FirstOf):
        parts = [cast("Summarizer", _replaced(each, change, digests)) for each in value.summarizers]
        return value if all(map(is_, parts, value.summarizers)) else FirstOf(*parts)
    if isinstance(value, CachedSummarizer):
        inner = change(value.inner)
        return value if inner is value.inner else attrs.evolve(value, inner=inner)
    return change(value)
