"""The Anthropic Messages format: reading, rules, repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .fields import THINKING as THINKING
    from .fields import is_id as is_id
    from .reading import Anthropic, anthropic
    from .repair_steps import repair_neighbours as repair_neighbours

__all__ = ["Anthropic", "anthropic"]

export_lazily(__name__, {"fields": "THINKING is_id", "reading": "Anthropic anthropic", "repair_steps": "repair_neighbours"})
