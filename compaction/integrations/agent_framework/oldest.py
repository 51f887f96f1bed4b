"""Which release of the framework is needed, in one place."""

from __future__ import annotations

from typing import Final

__all__ = ["DISTRIBUTION", "EXTRA", "LEAST"]

DISTRIBUTION: Final = "agent-framework-core"
"""What the framework is installed as."""
EXTRA: Final = "agent-framework"
"""The extra that brings it."""
LEAST: Final = "1.23"
"""The oldest release these integrations are tested against."""
