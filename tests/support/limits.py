"""The limit of every wait, which only a test that would hang reaches, and the examples of slow properties."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

WAIT_SECONDS: Final = 300
_USUAL: Final = 50  # examples of a property in ``make test``


def examples(count: int) -> settings:
    """Return the settings of a slow property: so many examples in ``make test``, and those of the profile in longer runs."""
    most = settings.default.max_examples
    return settings(max_examples=count if most <= _USUAL else most)


def seeds(count: int, most: int) -> range:
    """Return the seeds of a slow test: ``count`` in ``make test``, ``most`` in longer runs."""
    return range(count if settings.default.max_examples <= _USUAL else most)
