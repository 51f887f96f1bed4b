"""Repair one Anthropic message by itself, where that adds nothing it did not say.

Blocks that say nothing go, what stands in the wrong order is put in order, arguments that are JSON text become the object they
describe. What would need a guess stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..wire import Changes, fields_of, items_of, json_object, kind_of, same, string
from .fields import THINKING, blocks_of, call_id, has_thinking, result_id

__all__ = ["repair_content", "repair_neighbours"]

_REMOVED: Final = "the block was removed"


def repair_content(index: int, raw: Any, changes: Changes, *, last: bool) -> Any | None:
    """Return the message repaired: the same object if nothing was changed, ``None`` if nothing is left of it.

    Args:
        index: Its place in the list.
        raw: The message.
        changes: Takes note of what is done.
        last: Whether the list ends with it.
    """
    fields = fields_of(raw)
    if fields is None or (role := string(fields.get("role"))) not in ("user", "assistant", "system"):
        return raw
    content = fields.get("content")
    blocks = _blocks(index, content, changes)
    if blocks is None:
        return raw
    repaired = [kept for place, block in enumerate(blocks) for kept in _repaired(index, place, block, changes)]
    if role == "assistant":
        repaired = _answer(index, repaired, changes)
    elif role == "user":
        repaired = _results_first(index, repaired, changes)
    if not repaired:
        if role == "assistant" and last:
            if content is None:
                changes.add(index, ".content", "empty-content", "it has no content", "it was made empty")
            return raw if not content and content is not None else {**fields, "content": ""}
        changes.add(index, "", "empty-content", "it says nothing", "the message was removed")
        return None
    if same(repaired, blocks) and items_of(content) is not None:
        return raw
    return raw if isinstance(content, str) and same(repaired, blocks) else {**fields, "content": _written(content, repaired)}


def _written(content: Any, repaired: list[Any]) -> Any:
    """Return the content; one that was a string stays one."""
    return string((fields_of(repaired[0]) or {}).get("text")) if isinstance(content, str) else repaired


def _blocks(index: int, content: Any, changes: Changes) -> Sequence[Any] | None:
    """Return the content as blocks; ``None`` if it cannot be put into blocks."""
    if content is None:
        return ()
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    if (elements := items_of(content)) is not None:
        return elements
    if kind_of(content):
        changes.add(index, ".content", "malformed-content", "it is one block, not a list", "it was put into a list")
        return (content,)
    return None


def _repaired(index: int, position: int, block: Any, changes: Changes) -> list[Any]:
    """Return the block, repaired if possible; none for one that says nothing."""
    place, fields = f".content[{position}]", fields_of(block)
    if block is None:
        changes.add(index, place, "malformed-block", "it is null", _REMOVED)
        return []
    if isinstance(block, str):
        changes.add(index, place, "malformed-block", "it is a bare string", "it was made a text block")
        block = fields = {"type": "text", "text": block}
    if fields is None:
        return [block]
    kind, text = kind_of(block), fields.get("text")
    if kind == "text" and isinstance(text, str) and not text.strip():
        changes.add(index, place, "empty-text", "it says nothing", _REMOVED)
        return []
    if kind == "thinking" and not string(fields.get("signature")):
        changes.add(index, place, "unsigned-thinking", "nobody signed it", _REMOVED)
        return []
    if kind == "tool_use" and fields_of(fields.get("input")) is None:
        return [_with_input(index, place, block, fields, changes)]
    if kind == "tool_result" and items_of(fields.get("content")) is not None:
        return [_with_nested(index, place, block, fields, changes)]
    return [block]


def _with_input(index: int, place: str, block: Any, fields: Mapping[str, Any], changes: Changes) -> Any:
    """Return the call with its arguments as an object, if they are missing or JSON text that describes one."""
    given = fields.get("input")
    value = json_object(given) if given is None or isinstance(given, str) else None
    if value is None:
        return block
    changes.add(index, f"{place}.input", "malformed-block", "the arguments are no object", "they were written as one")
    return {**fields, "input": value}


def _with_nested(index: int, place: str, block: Any, fields: Mapping[str, Any], changes: Changes) -> Any:
    nested = items_of(fields.get("content")) or ()
    within = _Within(changes, place)
    kept: list[Any] = []
    for position, each in enumerate(nested):
        kept.extend([each] if result_id(each) is not None else _repaired(index, position, each, within))
    return block if same(kept, nested) else {**fields, "content": kept}


class _Within(Changes):
    """Notes changes within a block, as places of that block. Holds state: where it passes notes on to."""

    def __init__(self, outer: Changes, place: str) -> None:
        super().__init__()
        self._outer = outer
        self._within = place

    def add(self, index: int, place: str, rule: str, message: str, done: str) -> None:
        self._outer.add(index, self._within + place, rule, message, done)


def _answer(index: int, blocks: list[Any], changes: Changes) -> list[Any]:
    """Return an answer with its calls last, and no thoughts at its end."""
    first_call = next((place for place, block in enumerate(blocks) if call_id(block) is not None), len(blocks))
    if any(kind_of(block) == "text" for block in blocks[first_call:]):
        changes.add(index, ".content", "text-after-call", "it says something after its calls", "it was put before them")
        blocks = [block for block in blocks if call_id(block) is None] + [b for b in blocks if call_id(b) is not None]
    kept = len(blocks)
    while kept and kind_of(blocks[kept - 1]) in THINKING:
        kept -= 1
    if kept < len(blocks):
        changes.add(index, f".content[{kept}]", "ends-with-thinking", "it ends with thoughts", "they were removed")
        blocks = blocks[:kept]
    return blocks


def repair_neighbours(messages: Sequence[tuple[int, Any]], changes: Changes) -> list[tuple[int, Any]]:
    """Return the messages without thoughts right after another answer, and without blanks at the very end.

    Args:
        messages: The messages as they will stand, each with its place in the input.
        changes: Takes note of what is done.
    """
    kept: list[tuple[int, Any]] = []
    before = ""
    for index, raw in messages:
        fields = fields_of(raw) or {}
        role = string(fields.get("role"))
        if role == before == "assistant" and has_thinking(fields):
            changes.add(index, ".content", "thinking-after-answer", "its thoughts follow another answer", "they were removed")
            left = [block for block in blocks_of(fields) if kind_of(block) not in THINKING]
            kept.extend([(index, {**fields, "content": left})] if left else [])
        else:
            kept.append((index, raw))
            before = role
    if kept:
        kept[-1] = (kept[-1][0], _without_trailing_space(*kept[-1], changes))
    return kept


def _without_trailing_space(index: int, raw: Any, changes: Changes) -> Any:
    fields = fields_of(raw) or {}
    blocks = blocks_of(fields)
    last = (fields_of(blocks[-1]) or {}) if blocks and fields.get("role") == "assistant" else {}
    text = string(last.get("text")) if last.get("type") == "text" else ""
    if text == text.rstrip() or not text.strip():
        return raw
    changes.add(index, ".content", "trailing-space", "it ends with blanks", "they were cut")
    if isinstance(fields.get("content"), str):
        return {**fields, "content": text.rstrip()}
    return {**fields, "content": [*blocks[:-1], {**last, "text": text.rstrip()}]}


def _results_first(index: int, blocks: list[Any], changes: Changes) -> list[Any]:
    results = [block for block in blocks if result_id(block) is not None]
    if same(blocks[: len(results)], results):
        return blocks
    changes.add(index, ".content", "result-after-text", "something stands before its results", "the results were put first")
    return results + [block for block in blocks if result_id(block) is None]
