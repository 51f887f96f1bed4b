"""Changes of the parts of a message, for tests of writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from compaction.messages import Part


def without(kind: type[Part]) -> Callable[[Part], list[Part]]:
    """Return a change that leaves out every part of this kind."""
    return lambda part: [] if isinstance(part, kind) else [part]


def with_changed(kind: type[Part], **changes: Any) -> Callable[[Part], list[Part]]:
    """Return a change that sets these fields of every part of this kind."""
    return lambda part: [attrs.evolve(part, **changes) if isinstance(part, kind) else part]
