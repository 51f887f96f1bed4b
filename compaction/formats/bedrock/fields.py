"""Access to the fields of raw Bedrock messages; used for reading and by the rules.

A block is a union: an object with a single field, whose name is the block's kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..wire import fields_of, items_of, string

MEDIA_KINDS: Final[Mapping[str, str]] = {"image": "image", "video": "video", "audio": "audio", "document": "file"}
"""Kinds of blocks with media, and the kind of media."""

KINDS: Final = frozenset(
    {
        "text",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "cachePoint",
        "guardContent",
        "citationsContent",
        "searchResult",
        "toolAddition",
        "toolRemoval",
        *MEDIA_KINDS,
    }
)
"""The members of the union ``ContentBlock`` in botocore 1.44."""

WORDS: Final = frozenset({"text", "citationsContent"})
"""Kinds of blocks with the text of an answer."""

IN_RESULTS: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
"""The members of the union ``ToolResultContentBlock``."""

ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
"""The ids of calls that the API accepts: ``ToolUseId`` in botocore."""


def message_blocks(fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return the blocks of a message's content; none if it is not a list."""
    return items_of(fields.get("content")) or ()


def block_kind(block: Any) -> str:
    """Return the name of a block's only field; empty if it does not have exactly one."""
    fields = fields_of(block)
    if fields is None:
        return ""
    names = [name for name, value in fields.items() if value is not None]
    return names[0] if len(names) == 1 else ""


def block_body(block: Any, kind: str) -> Mapping[str, Any] | None:
    """Return the object in a block of this kind; ``None`` if the block is another, or not an object."""
    return fields_of((fields_of(block) or {}).get(kind)) if block_kind(block) == kind else None


def is_hosted(body: Mapping[str, Any]) -> bool:
    """Whether a call or result belongs to a tool that the provider runs: only these have a type."""
    return bool(body.get("type"))


def tool_use_id(block: Any) -> str | None:
    """Return the id of a call of the caller's tools, empty if it has none; ``None`` if the block is another."""
    body = block_body(block, "toolUse")
    return None if body is None or is_hosted(body) else string(body.get("toolUseId"))


def tool_result_id(block: Any) -> str | None:
    """Return the id that a ``toolResult`` block answers, empty if it has none; ``None`` if the block is another."""
    body = block_body(block, "toolResult")
    return None if body is None else string(body.get("toolUseId"))


def is_cache_point(block: Any) -> bool:
    """Whether a block is a cache point, which has no content."""
    return block_kind(block) == "cachePoint"


def unplaced_cache_points(blocks: Sequence[Any]) -> list[int]:
    """Return the places of cache points without a block before them, or directly after a thought."""
    found: list[int] = []
    before = ""
    for place, block in enumerate(blocks):
        kind = block_kind(block)
        if kind == "cachePoint":
            if before in ("", "reasoningContent"):
                found.append(place)
        else:
            before = kind or "unknown"
    return found


def said_in(body: Any) -> list[str]:
    """Return the texts in a list of blocks inside another block."""
    texts = [(fields_of(each) or {}).get("text") for each in items_of(body) or ()]
    return [text for text in texts if isinstance(text, str)]
