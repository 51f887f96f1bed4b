"""Access to the fields of raw Anthropic messages; used for reading and by the rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..wire import fields_of, items_of, kind_of, string

MEDIA_BLOCKS: Final[Mapping[str, str]] = {"image": "image", "document": "file", "container_upload": "file"}
"""Types of blocks with media, and the kind of media."""
ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""The ids of calls that the API accepts."""
THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def blocks_of(fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return the blocks of a message's content: a string counts as one text block, an invalid content as none."""
    content = fields.get("content")
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return items_of(content) or ()


def call_id(block: Any) -> str | None:
    """Return the id of a ``tool_use`` block, empty if it has none; ``None`` if the block is another."""
    return string((fields_of(block) or {}).get("id")) if kind_of(block) == "tool_use" else None


def result_id(block: Any) -> str | None:
    """Return the id that a ``tool_result`` block answers, empty if it has none; ``None`` if the block is another."""
    return string((fields_of(block) or {}).get("tool_use_id")) if kind_of(block) == "tool_result" else None


def is_server_call(kind: str) -> bool:
    """Whether a block of this type is a call that the provider runs itself."""
    return kind in ("server_tool_use", "mcp_tool_use")


def is_server_result(kind: str) -> bool:
    """Whether a block of this type is the result of such a call."""
    return kind.endswith("_tool_result") and kind != "tool_result"


def has_thinking(fields: Mapping[str, Any]) -> bool:
    """Whether a message has a thinking block."""
    return any(kind_of(block) in THINKING for block in blocks_of(fields))
