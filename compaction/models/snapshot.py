"""Reads the models in the package ``genai-prices``, which is loaded at the first name that is in no table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from .prices import ModelPrices
from .tables import ModelEntry, cache_rules

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

PRICES_OF: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""The time for which prices are read, as ``genai-prices`` also has earlier and later ones; that of ``models.toml``."""


def is_installed() -> bool:
    """Return whether ``genai-prices`` is installed, without importing it."""
    return find_spec("genai_prices") is not None


def snapshot_entries(names: list[str]) -> Iterator[ModelEntry]:
    """Yield the entries of a model in ``genai-prices``, the likeliest provider first.

    Args:
        names: The forms of its name, the fullest first, such as ``openai/gpt-5`` and ``gpt-5``.
    """
    if not is_installed():
        return
    for provider, model in _matches(names):
        yield ModelEntry(model=model.id, prices=_prices(provider, model), context_window=model.context_window)


def snapshot_names() -> list[str]:
    """Return the names of all models in ``genai-prices``."""
    return [model.id for provider in _providers() for model in provider.models] if is_installed() else []


@cache
def _providers() -> tuple[Provider, ...]:
    from genai_prices.data import providers

    return tuple(providers)


def _matches(names: list[str]) -> Iterator[tuple[Provider, ModelInfo]]:
    """Yield the model at the provider in the name's prefix, then at the maker of the model, then at all others."""
    from genai_prices.data_snapshot import find_provider_by_id

    providers = list(_providers())
    for name in names:
        prefix, _, rest = name.partition("/" if "/" in name else ":")
        named = find_provider_by_id(providers, prefix) if rest else None
        if named is not None and (model := named.find_model(rest, all_providers=providers)) is not None:
            yield named, model
    for name in names:
        for provider in sorted(providers, key=lambda each: each.model_match is None or not each.model_match.is_match(name)):
            if (model := provider.find_model(name)) is not None:
                yield provider, model


def _prices(provider: Provider, model: ModelInfo) -> ModelPrices | None:
    """Return a model's prices for the shortest prompts at the standard tier; ``None`` if it is not paid by the token."""
    if not model.prices:
        return None
    figures = model.get_prices(PRICES_OF)
    fresh, output = _dollars(figures, "input_mtok"), _dollars(figures, "output_mtok")
    if fresh is None or output is None:
        return None
    cached, write = _dollars(figures, "cache_read_mtok"), _dollars(figures, "cache_write_mtok")
    from importlib.metadata import version

    return ModelPrices(
        model=model.id,
        input=fresh,
        cached=fresh if cached is None else cached,
        write=fresh if write is None else write,
        output=output,
        source=f"genai-prices {version('genai-prices')}, {provider.id}",
        date=PRICES_OF.date().isoformat(),
        **cache_rules(provider.id),
    )


def _dollars(figures: Any, name: str) -> float | None:
    """Return the dollars per million tokens; those of the lowest tier if there are several."""
    value = getattr(figures, name, None)
    return None if value is None else float(getattr(value, "base", value))
