"""The Anthropic Messages format: reading, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .fields import THINKING as THINKING
    from .reading import Anthropic, anthropic
    from .reading import holds_history as holds_history

__all__ = ["Anthropic", "anthropic"]

export_lazily(__name__, {"fields": "THINKING", "reading": "Anthropic anthropic holds_history"})
