"""Repair one Bedrock message by itself, where that adds nothing it did not say, and join those of one role.

Blocks that say nothing go, what stands in the wrong order is put in order, arguments that are JSON text become the object they
describe. What would need a guess stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..wire import NOT_RECORDED, Changes, fields_of, items_of, json_object, json_text, same, string
from .fields import WORDS, block_body, block_kind, is_cache_point, tool_result_id, tool_use_id, unplaced_cache_points
from .rules import ROLES, thinks_alone

__all__ = ["in_order", "join_neighbours", "repair_blocks"]

_REMOVED: Final = "the block was removed"


def repair_blocks(index: int, raw: Any, changes: Changes) -> Any | None:
    """Return the message repaired: the same object if nothing was changed, ``None`` if nothing is left of it.

    Args:
        index: Its place in the list.
        raw: The message.
        changes: Takes note of what is done.
    """
    fields = fields_of(raw)
    if fields is None or string(fields.get("role")) not in ROLES:
        return raw
    content = fields.get("content")
    blocks = () if content is None else items_of(content)
    if blocks is None and (isinstance(content, str) or block_kind(content)):
        changes.add(index, ".content", "malformed-content", "it is not a list", "it was put into one")
        blocks, raw = (content,), {**fields, "content": [content]}
    if blocks is None:
        return raw
    kept = [each for place, block in enumerate(blocks) for each in _repaired(index, f".content[{place}]", block, changes)]
    kept = in_order(index, string(fields.get("role")), kept, changes)
    if not kept:
        changes.add(index, "", "empty-content", "it says nothing", "the message was removed")
        return None
    return raw if same(kept, blocks) else {**fields, "content": kept}


def in_order(index: int, role: str, blocks: list[Any], changes: Changes) -> list[Any]:
    """Return the blocks of a message with its results first, or its calls last, and cache points where they may stand."""
    if role == "user":
        results = [place for place, block in enumerate(blocks) if tool_result_id(block) is not None]
        words = [place for place, block in enumerate(blocks) if tool_result_id(block) is None and not is_cache_point(block)]
        if results and words and words[0] < results[-1]:
            text = "something stands before its results"
            changes.add(index, ".content", "result-after-text", text, "the results were put first")
            blocks = [block for block in blocks if tool_result_id(block) is not None] + [
                block for block in blocks if tool_result_id(block) is None
            ]
    elif role == "assistant":
        calls = [place for place, block in enumerate(blocks) if tool_use_id(block)]
        if calls and any(block_kind(block) in WORDS for block in blocks[calls[0] :]):
            text = "it says something after its calls"
            changes.add(index, ".content", "text-after-call", text, "it was put before them")
            blocks = [block for block in blocks if tool_use_id(block) is None] + [
                block for block in blocks if tool_use_id(block) is not None
            ]
        if thinks_alone(blocks):
            changes.add(index, ".content", "thinking-alone", "it is nothing but thoughts", "they were removed")
            return []
    unplaced = unplaced_cache_points(blocks)
    for place in unplaced:
        text = "there is nothing before it that can be cached"
        changes.add(index, f".content[{place}]", "misplaced-cache-point", text, _REMOVED)
    return [block for place, block in enumerate(blocks) if place not in unplaced]


def _repaired(index: int, place: str, block: Any, changes: Changes) -> list[Any]:
    """Return the block, repaired if possible; none for one that says nothing."""
    if block is None:
        changes.add(index, place, "malformed-block", "it is null", _REMOVED)
        return []
    if isinstance(block, str):
        changes.add(index, place, "malformed-block", "it is a bare string", "it was made a text block")
        block = {"text": block}
    text = (fields_of(block) or {}).get("text")
    if block_kind(block) == "text" and isinstance(text, str) and not text.strip():
        changes.add(index, place, "empty-text", "it says nothing", _REMOVED)
        return []
    if (call := block_body(block, "toolUse")) is not None:
        return [_with_input(index, place, block, call, changes)]
    if (result := block_body(block, "toolResult")) is not None:
        return [_with_content(index, place, block, result, changes)]
    return [block]


def _with_input(index: int, place: str, block: Any, call: Mapping[str, Any], changes: Changes) -> Any:
    """Return the call with its arguments as an object, if they are missing or JSON text that describes one."""
    given = call.get("input")
    value = json_object(given) if given is None or isinstance(given, str) else None
    if value is None:
        return block
    changes.add(index, f"{place}.toolUse.input", "malformed-block", "the arguments are no object", "they were written as one")
    return {"toolUse": {**call, "input": value}}


def _with_content(index: int, place: str, block: Any, result: Mapping[str, Any], changes: Changes) -> Any:
    """Return the result with a list of blocks as its content, data as objects, and no empty texts."""
    content, place = result.get("content"), f"{place}.toolResult.content"
    elements = items_of(content)
    if elements is None:
        text = "" if content is None else json_text(content)
        changes.add(index, place, "malformed-block", "a result's content is a list", "it was written as text in one")
        return {"toolResult": {**result, "content": [{"text": text}] if text.strip() else []}}
    kept: list[Any] = []
    for position, element in enumerate(elements):
        at = f"{place}[{position}]"
        if block_kind(element) == "json" and fields_of(value := (fields_of(element) or {})["json"]) is None:
            changes.add(index, at, "malformed-block", "its data is no object", "it was written as text")
            kept += [{"text": text}] if (text := json_text(value)).strip() else []
        elif tool_result_id(element) is not None or tool_use_id(element) is not None:
            kept.append(element)
        else:
            kept += _repaired(index, at, element, changes)
    if not kept and result.get("status") == "error":
        changes.add(index, place, "empty-error", "it failed and does not say why", "a text was added that says so")
        kept = [{"text": NOT_RECORDED}]
    return block if same(kept, elements) else {"toolResult": {**result, "content": kept}}


def join_neighbours(messages: Sequence[tuple[int, Any]], changes: Changes) -> list[tuple[int, Any]]:
    """Return the messages with those of one role that stand together as one, each with its place in the input.

    The thoughts of an answer that is joined to another go: they are signed for the place where they stood.
    """
    joined: list[tuple[int, Any]] = []
    for index, raw in messages:
        fields = fields_of(raw) or {}
        before = fields_of(joined[-1][1]) or {} if joined else {}
        role = string(fields.get("role"))
        blocks, earlier = items_of(fields.get("content")), items_of(before.get("content"))
        if role not in ("user", "assistant") or role != before.get("role") or blocks is None or earlier is None:
            joined.append((index, raw))
            continue
        text = "the message before it has the same role"
        changes.add(index, "", "same-role-twice", text, "it was put into one message with that")
        said = [block for block in blocks if block_kind(block) != "reasoningContent"]
        first = joined[-1][0]
        joined[-1] = (first, {**before, "content": in_order(first, role, [*earlier, *said], changes)})
    return joined
