"""The limit of every wait, which only a test that would hang reaches, and the examples of slow properties."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

WAIT_SECONDS: Final = 300
_USUAL: Final = 50  # examples of a property in ``make test``


def examples(count: int, *, strategies: int = 1) -> settings:
    """Return the settings of a slow property: so many examples in ``make test``, and those of the profile in a longer run.

    Args:
        count: Examples in ``make test``. The first is the smallest that there is, so one alone shows little.
        strategies: Among how many strategies the examples of a longer run are divided; a test may try several of them.
    """
    most = settings.default.max_examples
    return settings(max_examples=count if most <= _USUAL else -(-most // strategies))


def count(usual: int, longer: int) -> int:
    """Return the number of cases of a slow test: ``usual`` in ``make test``, and ``longer`` in a longer run."""
    return usual if settings.default.max_examples <= _USUAL else longer


def seeds(usual: int, longer: int) -> range:
    """Return as many seeds."""
    return range(count(usual, longer))
