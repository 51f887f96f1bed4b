"""Anthropic messages: content blocks, results in the user message after the call, signed thoughts.

The blocks are those of the request types of the ``anthropic`` package: text, image, document, tool_use, tool_result with
nested content, thinking and redacted_thinking, blocks of tools the provider runs itself, compaction blocks. Messages and
blocks may be dictionaries or that package's own objects. A user message that contains only results is read with the role
``"tool"``; one that also holds words keeps ``"user"``. System messages may be in the list, or outside it as the ``system``
parameter. A block that no rule knows is kept as `OtherPart`.

``docs/rules/anthropic.md`` shows every rule with an example and its source. Roles need not alternate and the first message need
not be the user's: the API no longer has these rules. A rule that depends on the model or on other parameters of the request is
not included, such as whether the list may end with an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..json_data import same
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from .base import JoinProblem
from .blocks import Blocks, misplaced_system, too_many
from .pairing import NOT_RECORDED, Fields, Finding, HostedStep, Path, WaitingCalls, hosted_links, repeated
from .rulebook import Rule, RuleBook, WireFormat
from .wire import (
    GO_ON,
    arguments_object,
    arguments_text,
    changed_result,
    data_size,
    elements_of,
    fields_of,
    items_of,
    json_text,
    kind_of,
    lacking,
    read_role,
    result_part,
    says_something,
    signed_thoughts_problem,
    string,
    type_name,
    unwritable,
    without_new_blanks,
    written_content,
)

# ------------------------------------------------------------------------ access to fields

_MEDIA: Final[Mapping[str, str]] = {"image": "image", "document": "file", "container_upload": "file"}
"""Types of blocks with media, and the kind of media."""
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")  # ids of calls that the API accepts
_ROLES: Final = frozenset({"user", "assistant", "system"})
THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def _blocks_of(fields: Fields) -> Sequence[Any]:
    """Return the blocks of a message's content: a string counts as one text block, an invalid content as none."""
    content = fields.get("content")
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return items_of(content) or ()


def _judged_blocks(fields: Fields) -> Sequence[Any]:
    """Return the blocks of a message with a known role and a content; none of any other."""
    return _blocks_of(fields) if string(fields.get("role")) in _ROLES and fields.get("content") else ()


def _result_id(block: Any) -> str | None:
    """Return the id that a ``tool_result`` block answers, empty if it has none; ``None`` if the block is another."""
    return string((fields_of(block) or {}).get("tool_use_id")) if kind_of(block) == "tool_result" else None


def _is_server_call(kind: str) -> bool:
    """Whether a block of this type is a call that the provider runs itself."""
    return kind in ("server_tool_use", "mcp_tool_use")


def _is_server_result(kind: str) -> bool:
    """Whether a block of this type is the result of such a call."""
    return kind.endswith("_tool_result") and kind != "tool_result"


def holds_history(block: Any) -> bool:
    """Whether a block is a summary that the provider wrote; without content, the provider failed to write it."""
    fields = (fields_of(block) or {}) if kind_of(block) == "compaction" else {}
    return bool(fields.get("content") or fields.get("encrypted_content"))


_BLOCKS: Final = Blocks(
    blocks_of=_blocks_of,
    kind_of=kind_of,
    call_id_of=lambda block: string((fields_of(block) or {}).get("id")) if kind_of(block) == "tool_use" else None,
    result_id_of=_result_id,
    call_id_path=("id",),
    result_id_path=("tool_use_id",),
    id_pattern=_ID,
    after_calls={"text": ("text-after-call", "an answer has no text after its calls")},
)

# ------------------------------------------------------------------------ one message, and two neighbours

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "redacted_thinking": {"data": str},
    "image": {"source": Mapping},
    "document": {"source": Mapping},
    "tool_use": {"name": str, "input": Mapping},
}


def _message_problems(fields: Fields) -> Iterator[Finding]:
    role, content = string(fields.get("role")), fields.get("content")
    if role not in _ROLES:
        yield ("role",), "unknown-role", f"no such role: {fields.get('role')!r}"
    elif content is not None and not isinstance(content, str) and items_of(content) is None:
        yield ("content",), "malformed-content", f"a content is a string or a list (got {type_name(content)})"
    elif not content:
        yield ("content",), "empty-content", "it is empty"
    else:
        blocks = _blocks_of(fields)
        for position, block in enumerate(blocks):
            where: Path = ("content",) if isinstance(content, str) else ("content", position)
            yield from _block_problems(where, role, block)
        if role == "user":
            yield from _BLOCKS.result_problems(blocks)
        elif role == "assistant":
            yield from _BLOCKS.answer_problems(blocks)
            if kind_of(blocks[-1]) in THINKING:
                yield ("content", len(blocks) - 1), "ends-with-thinking", "the answer ends with a thinking block"


def _is_empty_answer(fields: Fields) -> bool:
    """Whether a message is an answer with an empty content; at the end of a list, the model continues it."""
    return fields.get("role") == "assistant" and fields.get("content") in ("", [], ())


def _block_problems(where: Path, role: str, block: Any) -> Iterator[Finding]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    fields, kind = fields_of(block) or {}, kind_of(block)
    if not kind:
        yield (where, "malformed-block", f"a block is an object with a type (got {type_name(block)})")
        return
    if not _allowed(role, kind):
        yield (where, "block-not-allowed", f"a {role} message does not accept a block of type {kind!r}")
        return
    for name, value in lacking(fields, _REQUIRED.get(kind, {})):
        yield ((*where, name), "malformed-block", f"a {kind} block needs {name!r} (got {type_name(value)})")
    if kind == "text" and isinstance(text := fields.get("text"), str) and not text.strip():
        yield (where, "empty-text", "the text block is empty")
    if kind == "thinking" and not string(fields.get("signature")):
        yield ((*where, "signature"), "unsigned-thinking", "the thinking block has no signature")
    if kind == "tool_result":
        yield from _nested_problems((*where, "content"), fields.get("content"))


def _allowed(role: str, kind: str) -> bool:
    if role == "system":
        return kind in ("text", "tool_addition", "tool_removal")
    if role == "assistant":
        return kind not in ("tool_result", "image", "document")
    return kind != "tool_use" and kind not in THINKING and not _is_server_call(kind) and not _is_server_result(kind)


def _nested_problems(where: Path, content: Any) -> Iterator[Finding]:
    elements = items_of(content)
    if elements is None and content is not None and not isinstance(content, str):
        yield (where, "malformed-content", f"a result's content is a string or a list (got {type_name(content)})")
    for position, element in enumerate(elements or ()):
        if kind_of(element) == "tool_result":
            yield ((*where, position), "block-not-allowed", "a result contains another result")
        else:
            yield from _block_problems((*where, position), "user", element)


def _join_problem(before: Fields | None, after: Fields | None) -> JoinProblem | None:
    if before is None:
        return None
    first, earlier = string(before.get("role")), _judged_blocks(before)
    if after is None:
        ends = first == "assistant" and bool(earlier) and kind_of(earlier[-1]) == "text"
        text = string((fields_of(earlier[-1]) or {}).get("text")) if ends else ""
        return ("trailing-space", "before") if text.strip() and text != text.rstrip() else None
    second, blocks = string(after.get("role")), _judged_blocks(after)
    if first == "assistant" and second == "assistant" and any(kind_of(block) in THINKING for block in blocks):
        return "thinking-after-answer", "after"
    return misplaced_system(first, second, judged=(bool(earlier), bool(blocks)))


_PAIRING: Final = _BLOCKS.pairing(
    lambda call, id: {"type": "tool_result", "tool_use_id": id, "content": NOT_RECORDED}, new_id="toolu"
)


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield repeated ids, breakpoints above the maximum, and unpaired calls and results of the provider's own tools."""
    calls = ((index, slot) for index, fields in enumerate(contents) for slot in _PAIRING.calls(fields))
    for id, (index, slot) in repeated((slot.key, (index, slot)) for index, slot in calls if _ID.fullmatch(slot.key)):
        yield index, (slot.id, "duplicate-call-id", f"the id {id!r} is that of an earlier call")
    breakpoints: list[tuple[int, Path]] = [
        (index, ("content", position, "cache_control"))
        for index, fields in enumerate(contents)
        for position, block in enumerate(_judged_blocks(fields))
        if (fields_of(block) or {}).get("cache_control") is not None
    ]
    yield from too_many(breakpoints, "too-many-breakpoints")
    yield from _unpaired(contents)


# A call and its result are usually in one answer. If the answer also called the caller's tools, or was paused, the result
# begins the next answer. The user's own words in between end the turn: a call without a result then never gets one.


def _steps(block: Any) -> Iterator[HostedStep]:
    """Yield the call that made this block, and the call of the provider that it is or answers."""
    kind, fields = kind_of(block), fields_of(block) or {}
    if kind == "text" or kind in THINKING:
        return
    if caller := string((fields_of(fields.get("caller")) or {}).get("tool_id")):
        yield "caller", caller
    if _is_server_call(kind):
        yield "call", string(fields.get("id"))
    elif _is_server_result(kind):
        yield "result", string(fields.get("tool_use_id"))


def _unpaired(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield every block whose call, result or caller is missing, with the place of its message; O(blocks)."""
    ledger: WaitingCalls[Path] = WaitingCalls()
    for index, fields in enumerate(contents):
        blocks = _blocks_of(fields)
        if fields.get("role") == "user" and any(_result_id(block) is None for block in blocks):
            for identifier, calls in ledger.waiting.items():
                text = f"the call {identifier!r} has no result when the user speaks again"
                yield from [(place, (path, "server-call-without-result", text)) for place, path in calls]
            ledger.waiting.clear()
        for position, block in enumerate(blocks if fields.get("role") == "assistant" else ()):
            where = ("content", position)
            for kind, identifier in _steps(block):
                if kind == "call":
                    text = f"the call {identifier!r} has no result when another has its id"
                    for place, path in ledger.enter_call(identifier, index, where):
                        yield place, (path, "server-call-without-result", text)
                elif kind == "caller" and identifier not in ledger.waiting:
                    yield index, (where, "call-without-caller", f"no open call {identifier!r} that made it is before it")
                elif kind == "result" and not ledger.enter_result(identifier):
                    yield index, (where, "server-result-without-call", f"no open call {identifier!r} is before it")


_BOOK: Final = RuleBook(
    rules={
        "no-messages": Rule("send at least one message"),
        "unreadable-message": Rule("pass dictionaries, or the anthropic package's objects"),
        "unknown-role": Rule("use one of user, assistant, system"),
        "misplaced-system": Rule("put it first, or between a user message and the answer"),
        "malformed-content": Rule("make it a string, or a list of blocks"),
        "empty-content": Rule("give it content, or leave the message out", "message"),
        "empty-text": Rule("leave the block out", "block"),
        "malformed-block": Rule("make it an object with a 'type' and the fields of that type"),
        "block-not-allowed": Rule("leave the block out, or move it to a message of the other role"),
        "unsigned-thinking": Rule("leave the block out"),
        "text-after-call": Rule("put the text before the calls"),
        "ends-with-thinking": Rule("leave out the thinking blocks, or the whole message"),
        "thinking-after-answer": Rule("leave out the thinking blocks, or put a user message between the two answers"),
        "call-without-id": Rule("give the call an id, and its result the same id"),
        "malformed-id": Rule("give it an id of letters, digits, '_' and '-', and its result the same id"),
        "duplicate-call-id": Rule("give each call a different id", "id"),
        "call-without-result": Rule("put its result into the user message directly after it, or leave the call out", "pair"),
        "pending-call": Rule("store the list unchanged; add the result before sending it"),
        "result-without-id": Rule("set 'tool_use_id' to the id of the call it answers"),
        "result-without-call": Rule("put it into the user message directly after the call, or leave it out", "pair"),
        "duplicate-result": Rule("keep one result for each call", "pair"),
        "result-after-text": Rule("put the results first"),
        "server-call-without-result": Rule("put its result into the answer, or leave the call out", "block"),
        "server-result-without-call": Rule("keep it with the call before it, or leave it out", "block"),
        "call-without-caller": Rule("keep the answer with the caller before it, or leave out the call and its result"),
        "too-many-breakpoints": Rule("keep 'cache_control' on four blocks at most"),
        "trailing-space": Rule("cut the blanks at the end"),
    },
    pairing=_PAIRING,
    message=_message_problems,
    accepts_last=_is_empty_answer,
    join=_join_problem,
    joins={
        "misplaced-system": ((), "it is neither first nor between a user message and the answer"),
        "thinking-after-answer": (("content",), "its thinking blocks follow another answer"),
        "trailing-space": (("content",), "the list ends with an answer that ends with blanks"),
    },
    whole=_list_problems,
)


# ------------------------------------------------------------------------ the format

_DETECTED: Final = frozenset(
    {"search_result", "compaction", "fallback", "mcp_tool_listing", "container_upload", "document"}
    | {"text", "tool_use", "tool_result", "redacted_thinking", "tool_addition", "tool_removal"}
)
"""Types of blocks by which the format is detected; types that other formats share are checked more closely."""


class Anthropic(WireFormat):
    """The Messages format; use the shared instance ``anthropic``.

    >>> asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}]}
    >>> answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}]}
    >>> [anthropic.read(raw).role for raw in (asked, answer)]
    ['assistant', 'tool']
    >>> [problem.rule for problem in anthropic.validate([asked, {"role": "user", "content": "well?"}])]
    ['call-without-result']
    """

    name = "anthropic"
    shape = "a message is a mapping with 'role' and 'content'"
    roles = "user, assistant, system"
    book = _BOOK
    writes_as_user = True

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content = self._role(fields, position), fields.get("content")
        if isinstance(content, str):
            return Message(role, (TextPart(content),), raw, self)
        blocks = elements_of(content)
        parts = tuple(map(_read_part, blocks))
        steps = (step for block in blocks for step in _steps(block)) if role == "assistant" else ()
        begins, resumes = hosted_links(steps)
        return Message(
            read_role(role, parts),
            parts,
            raw,
            self,
            continues=bool(resumes),
            begins=begins,
            resumes=resumes,
            holds_history=any(map(holds_history, blocks)),
        )

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        listed = without_new_blanks(message.parts, parts)
        fields["content"] = written_content(fields.get("content"), parts, _write_part, listed=listed)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": text})

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize a message of three roles; with the type ``message`` only an answer of the provider, or blocks."""
        if not says_something(fields) or fields.get("role") in ("tool", "function", "developer"):
            return False
        if fields.get("type") != "message" or "stop_reason" in fields:
            return None
        return False if isinstance(fields.get("content"), str) else None

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        kind = string(fields.get("type"))
        if kind in _DETECTED or _is_server_call(kind) or _is_server_result(kind):
            return True
        return (kind == "thinking" and bool(fields.get("signature"))) or (kind == "image" and fields.get("source") is not None)

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Prefer an answer after the user, and a system message between the user and an answer."""
        if after is None:
            return True
        if after.role == "assistant":
            return before is not None and before.role != "assistant"
        if after.is_system:
            return before is None or not (before.is_system or before.role == "assistant")
        return before is None or not before.is_system

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return one message of the user; after a system message two, because an answer must follow it."""
        if before is None or not before.is_system:
            return (self.new("user", text),)
        return (self.new("assistant", text), self.new("user", GO_ON))

    def completes_summary(self, message: Message) -> bool:
        return message.role == "user" and (fields_of(message.raw) or {}).get("content") == GO_ON

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        return signed_thoughts_problem(before, after, current=current)


anthropic = Anthropic()


def _read_part(block: Any) -> Part:
    """Read one block; a value that is not understood becomes an `OtherPart`."""
    if isinstance(block, str):
        return TextPart(block, raw=block)
    fields = fields_of(block) or {}
    kind = string(fields.get("type"))
    if kind == "text" and isinstance(text := fields.get("text"), str):
        return TextPart(text, raw=block)
    if kind in THINKING:
        return ReasoningPart(string(fields.get("thinking")) if kind == "thinking" else "", raw=block)
    if kind in _MEDIA:
        size, name = data_size((fields_of(fields.get("source")) or {}).get("data")), string(fields.get("title"))
        return MediaPart(_MEDIA[kind], size_bytes=size, name=name, raw=block)
    if kind == "tool_use":
        id, name = string(fields.get("id")), string(fields.get("name"))
        return ToolCallPart(id, name, arguments_text(fields.get("input")), raw=block)
    if kind == "tool_result":
        return _read_result(fields, block)
    return OtherPart(json_text(block), raw=block)


def _read_result(fields: Mapping[str, Any], block: Any) -> ToolResultPart:
    content = fields.get("content")
    call, marked = string(fields.get("tool_use_id")), fields.get("is_error")
    failed = marked if isinstance(marked, bool) else None
    if content is None or isinstance(content, str):
        return ToolResultPart(call, content or "", failed=failed, raw=block)
    return result_part(call, [_read_nested(element) for element in elements_of(content)], failed, block)


def _read_nested(element: Any) -> Part:
    """Read one block of a result; the API has no result within a result."""
    return OtherPart(json_text(element), raw=element) if kind_of(element) == "tool_result" else _read_part(element)


def _write_part(part: Part) -> Any:
    """Write one block; an unchanged part returns its original block."""
    if part.raw is not None and _read_part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw)
    if isinstance(part, TextPart):
        return {**(fields or {"type": "text"}), "text": part.text}
    if isinstance(part, ToolCallPart):
        return {**(fields or {"type": "tool_use"}), "id": part.id, "name": part.name, "input": arguments_object(part.arguments)}
    if isinstance(part, ToolResultPart):
        before = ToolResultPart(part.call_id, "") if fields is None else _read_result(fields, part.raw)
        block = {**(fields or {"type": "tool_result"}), "tool_use_id": part.call_id}
        if part.text != before.text or not same(part.media, before.media):
            block["content"] = changed_result(block.get("content"), before, part, read=_read_part, write=_write_part)
        return block
    raise unwritable(part)
