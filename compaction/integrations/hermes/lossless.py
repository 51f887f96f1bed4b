"""The stores in an engine's strategy: finding them, adding one, naming the session they store for; and the last resort."""

from __future__ import annotations

from typing import Final, cast

import attrs

from ... import presets
from ...stores import Store
from ...strategies import Lossless, Offload, Pipeline, Strategy, ToolResult, within
from ...triggers import tokens_exceed

_RESULT_CHARS: Final = 200


def lossless_compressor(preset: Pipeline, store: Store) -> Pipeline:
    """Return the default pipeline with stubs in place of its placeholder; each stub names the stored result."""
    results, *others = preset.steps
    keep = cast("ToolResult", results).keep
    stubs = Offload(store, min_chars=_RESULT_CHARS, keep=keep)
    return Pipeline(stubs, *(Lossless(step, store) for step in others), trigger=preset.trigger)


def last_resort(tokens: int, store: Store | None) -> Strategy:
    """Return a strategy that brings a request down to so many tokens, with what leaves stored first if there is a store.

    All but the newest messages become a digest, made without a model; if that is not enough, `within` does the rest.
    """
    digest = presets.hermes(tokens, threshold=1.0, protect_first_n=0, protect_last_n=1, trigger=tokens_exceed(tokens))
    return within(digest, tokens) if store is None else Lossless(within(lossless_compressor(digest, store), tokens), store)


def stores_in(strategy: Strategy) -> list[Store]:
    """Return the stores in a strategy, outermost first."""
    return [part.store for part in strategy.parts() if isinstance(part, Lossless | Offload)]


def with_session_name(strategy: Strategy, conversation: str) -> Strategy:
    """Return the strategy with everything stored under the conversation's name."""
    return strategy.changed(
        lambda part: attrs.evolve(part, session=conversation) if isinstance(part, Lossless | Offload) else part
    )
