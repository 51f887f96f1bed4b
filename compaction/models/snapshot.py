"""Models in the snapshot that the package ``genai-prices`` brings; loaded at the first name that no table holds."""

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
"""The time whose prices are taken: a snapshot holds earlier and later ones. It is the date of the package's own table."""


def is_installed() -> bool:
    """Return whether ``genai-prices`` is installed; does not import it."""
    return find_spec("genai_prices") is not None


def snapshot_entries(names: list[str]) -> Iterator[ModelEntry]:
    """Yield what the snapshot says of a model, the likeliest provider first.

    Args:
        names: The forms of its name, the fullest first, such as ``openai/gpt-5`` and ``gpt-5``.
    """
    if not is_installed():
        return
    for provider, model in _matches(names):
        yield ModelEntry(model=model.id, prices=_prices(provider, model), context_window=model.context_window)


def snapshot_names() -> list[str]:
    """Return the models whose window or price the snapshot knows."""
    return [model.id for provider in _providers() for model in provider.models] if is_installed() else []


@cache
def _providers() -> tuple[Provider, ...]:
    from genai_prices.data import providers

    return tuple(providers)


def _matches(names: list[str]) -> Iterator[tuple[Provider, ModelInfo]]:
    """Yield the provider that the name's prefix names, then the model's maker, then all others."""
    from genai_prices.data_snapshot import find_provider_by_id

    providers = list(_providers())
    for name in names:
        prefix, _, rest = name.partition("/" if "/" in name else ":")
        named = find_provider_by_id(providers, prefix) if rest else None
        if named is not None and (model := named.find_model(rest, all_providers=providers)) is not None:
            yield named, model
    for name in names:
        makers = [each for each in providers if each.model_match is not None and each.model_match.is_match(name)]
        for provider in dict.fromkeys(each.id for each in (*makers, *providers)):
            found = next(each for each in providers if each.id == provider)
            if (model := found.find_model(name)) is not None:
                yield found, model


def _prices(provider: Provider, model: ModelInfo) -> ModelPrices | None:
    """Return a model's prices at the standard tier and for the shortest prompts; ``None`` if it is not paid by the token."""
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
    """Return dollars per million tokens, those of the lowest tier where there are several."""
    value = getattr(figures, name, None)
    return None if value is None else float(getattr(value, "base", value))
