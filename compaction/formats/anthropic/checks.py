"""Checks of an Anthropic message by itself, and of two neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Side
from ..pairing import Fields, Finding
from ..wire import fields_of, items_of, kind_of, string, type_name
from .fields import MEDIA_BLOCKS, THINKING, blocks_of, call_id, has_thinking, is_id, is_server_call, is_server_result, result_id

_ROLES: Final = frozenset({"user", "assistant", "system"})
_OF_SYSTEM: Final = frozenset({"text", "tool_addition", "tool_removal"})
_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "redacted_thinking": {"data": str},
    "image": {"source": Mapping},
    "document": {"source": Mapping},
    "tool_use": {"name": str, "input": Mapping},
}


def message_problems(fields: Fields, last: bool) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself.

    The last answer of a list may be empty: the model continues it.
    """
    role, content = string(fields.get("role")), fields.get("content")
    if role not in _ROLES:
        yield ".role", "unknown-role", f"no such role: {fields.get('role')!r}"
    elif content is not None and not isinstance(content, str) and items_of(content) is None:
        yield ".content", "malformed-content", f"a content is a string or a list (got {type_name(content)})"
    elif not content:
        if role != "assistant" or not last or content is None:
            yield ".content", "empty-content", "it is empty"
    else:
        blocks = blocks_of(fields)
        for position, block in enumerate(blocks):
            yield from _block_problems(".content" + ("" if isinstance(content, str) else f"[{position}]"), role, block)
        if role == "user":
            yield from _result_problems(blocks)
        elif role == "assistant":
            yield from _answer_problems(blocks)


def _answer_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    """Yield the rules that an answer breaks in its calls, their order and its end."""
    called = False
    for position, block in enumerate(blocks):
        place = f".content[{position}]"
        if (identifier := call_id(block)) is not None:
            called = called or bool(identifier)
            if identifier and not is_id(identifier):
                yield f"{place}.id", "malformed-id", f"the id {identifier!r} has other characters"
        elif kind_of(block) == "text" and called:
            yield place, "text-after-call", "an answer has no text after its calls"
    if kind_of(blocks[-1]) in THINKING:
        yield f".content[{len(blocks) - 1}]", "ends-with-thinking", "the answer ends with a thinking block"


def _result_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    """Yield the results of a user message that come after anything else."""
    said = False
    for position, block in enumerate(blocks):
        if result_id(block) is None:
            said = True
        elif said:
            yield f".content[{position}]", "result-after-text", "results come before anything else in their message"


def _block_problems(where: str, role: str, block: Any) -> Iterator[Finding]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    fields, kind = fields_of(block), kind_of(block)
    if fields is None or not kind:
        yield (where, "malformed-block", f"a block is an object with a type (got {type_name(block)})")
        return
    if not _allowed(role, kind):
        yield (where, "block-not-allowed", f"a {role} message does not accept a block of type {kind!r}")
        return
    for name, wanted in _REQUIRED.get(kind, {}).items():
        value = fields.get(name)
        if not isinstance(value, wanted) and (wanted is str or fields_of(value) is None):
            yield (f"{where}.{name}", "malformed-block", f"a {kind} block needs {name!r} (got {type_name(value)})")
    if kind == "text" and isinstance(text := fields.get("text"), str) and not text.strip():
        yield (where, "empty-text", "the text block is empty")
    if kind == "thinking" and not string(fields.get("signature")):
        yield (f"{where}.signature", "unsigned-thinking", "the thinking block has no signature")
    if kind == "tool_result":
        yield from _nested_problems(f"{where}.content", fields.get("content"))


def _allowed(role: str, kind: str) -> bool:
    if role == "system":
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind != "tool_result" and kind not in MEDIA_BLOCKS.keys() - {"container_upload"}
    return kind != "tool_use" and kind not in THINKING and not is_server_call(kind) and not is_server_result(kind)


def _nested_problems(where: str, content: Any) -> Iterator[Finding]:
    if content is None or isinstance(content, str):
        return
    elements = items_of(content)
    if elements is None:
        yield (where, "malformed-content", f"a result's content is a string or a list (got {type_name(content)})")
    for position, element in enumerate(elements or ()):
        if kind_of(element) == "tool_result":
            yield (f"{where}[{position}]", "block-not-allowed", "a result contains another result")
        else:
            yield from _block_problems(f"{where}[{position}]", "user", element)


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if before is None:
        return None
    if after is None:
        return ("trailing-space", "before") if _ends_with_space(before) else None
    first, second = string(before.get("role")), string(after.get("role"))
    if first == "assistant" and second == "assistant" and _blocks(after) and has_thinking(after):
        return "thinking-after-answer", "after"
    ends = first == "system" and second != "assistant" and bool(_blocks(before))
    begins = second == "system" and first != "user" and bool(_blocks(after))
    if not ends and not begins:
        return None
    return "misplaced-system", "both" if ends and begins else "before" if ends else "after"


def _ends_with_space(fields: Mapping[str, Any]) -> bool:
    """Whether a message is an answer that ends with blanks."""
    blocks = _blocks(fields)
    if not blocks or string(fields.get("role")) != "assistant" or kind_of(blocks[-1]) != "text":
        return False
    text = string((fields_of(blocks[-1]) or {}).get("text"))
    return bool(text.strip()) and text != text.rstrip()


def _blocks(fields: Fields) -> Sequence[Any]:
    """Return the blocks of a message with a known role and a content; none of any other."""
    return blocks_of(fields) if string(fields.get("role")) in _ROLES and fields.get("content") else ()
