"""Access to the fields of Anthropic messages, and the rules of the API, by name.

``docs/rules/anthropic.md`` shows every rule with an example and its source. Roles need not alternate and the first message need
not be the user's: the API no longer has these rules. A rule that depends on the model or on other parameters of the request is
not included, such as whether the list may end with an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import JoinProblem
from ..blocks import Blocks, misplaced_system, too_many
from ..pairing import NOT_RECORDED, Fields, Finding, HostedLedger, HostedStep, Path, hosted_links, repeated
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_of, kind_of, lacking, string, type_name

# ------------------------------------------------------------------------ access to fields

MEDIA_BLOCKS: Final[Mapping[str, str]] = {"image": "image", "document": "file", "container_upload": "file"}
"""Types of blocks with media, and the kind of media."""
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")  # ids of calls that the API accepts

THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def _blocks_of(fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return the blocks of a message's content: a string counts as one text block, an invalid content as none."""
    content = fields.get("content")
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return items_of(content) or ()


def _call_id(block: Any) -> str | None:
    """Return the id of a ``tool_use`` block, empty if it has none; ``None`` if the block is another."""
    return string((fields_of(block) or {}).get("id")) if kind_of(block) == "tool_use" else None


def _result_id(block: Any) -> str | None:
    """Return the id that a ``tool_result`` block answers, empty if it has none; ``None`` if the block is another."""
    return string((fields_of(block) or {}).get("tool_use_id")) if kind_of(block) == "tool_result" else None


def is_server_call(kind: str) -> bool:
    """Whether a block of this type is a call that the provider runs itself."""
    return kind in ("server_tool_use", "mcp_tool_use")


def is_server_result(kind: str) -> bool:
    """Whether a block of this type is the result of such a call."""
    return kind.endswith("_tool_result") and kind != "tool_result"


_BLOCKS: Final = Blocks(
    blocks_of=_blocks_of,
    kind_of=kind_of,
    call_id_of=_call_id,
    result_id_of=_result_id,
    call_id_path=("id",),
    result_id_path=("tool_use_id",),
    id_pattern=_ID,
    after_calls={"text": ("text-after-call", "an answer has no text after its calls")},
)

# ------------------------------------------------------------------------ one message, and two neighbours

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


def message_problems(fields: Fields) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself, independent of its neighbours."""
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
    content = fields.get("content")
    return fields.get("role") == "assistant" and (isinstance(content, str) or items_of(content) is not None) and not content


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
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind != "tool_result" and kind not in MEDIA_BLOCKS.keys() - {"container_upload"}
    return kind != "tool_use" and kind not in THINKING and not is_server_call(kind) and not is_server_result(kind)


def _nested_problems(where: Path, content: Any) -> Iterator[Finding]:
    if content is None or isinstance(content, str):
        return
    elements = items_of(content)
    if elements is None:
        yield (where, "malformed-content", f"a result's content is a string or a list (got {type_name(content)})")
    for position, element in enumerate(elements or ()):
        if kind_of(element) == "tool_result":
            yield ((*where, position), "block-not-allowed", "a result contains another result")
        else:
            yield from _block_problems((*where, position), "user", element)


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> JoinProblem | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if before is None:
        return None
    if after is None:
        return ("trailing-space", "before") if _ends_with_space(before) else None
    first, second = string(before.get("role")), string(after.get("role"))
    blocks = _judged_blocks(after)
    if first == "assistant" and second == "assistant" and any(kind_of(block) in THINKING for block in blocks):
        return "thinking-after-answer", "after"
    return misplaced_system(first, second, judged=(bool(_judged_blocks(before)), bool(blocks)))


def _ends_with_space(fields: Mapping[str, Any]) -> bool:
    """Whether a message is an answer that ends with blanks."""
    blocks = _judged_blocks(fields)
    if not blocks or string(fields.get("role")) != "assistant" or kind_of(blocks[-1]) != "text":
        return False
    text = string((fields_of(blocks[-1]) or {}).get("text"))
    return bool(text.strip()) and text != text.rstrip()


def _judged_blocks(fields: Fields) -> Sequence[Any]:
    """Return the blocks of a message with a known role and a content; none of any other."""
    return _blocks_of(fields) if string(fields.get("role")) in _ROLES and fields.get("content") else ()


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
        for position, block in enumerate(_blocks_of(fields) if string(fields.get("role")) in _ROLES else ())
        if (fields_of(block) or {}).get("cache_control") is not None
    ]
    yield from too_many(breakpoints, "too-many-breakpoints")
    yield from _unpaired(contents)


# ------------------------------------------------------------------------ tools of the provider

# A call and its result are usually in one answer. If the answer also called the caller's tools, or was paused, the result
# begins the next answer. The user's own words in between end the turn: a call without a result then never gets one.


def block_links(blocks: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the provider's calls an answer leaves open, and of the earlier calls it continues; O(blocks)."""
    return hosted_links(step for block in blocks for step in _steps(block))


def _steps(block: Any) -> Iterator[HostedStep]:
    """Yield the call that made this block, and the call of the provider that it is or answers."""
    kind, fields = kind_of(block), fields_of(block) or {}
    if kind == "text" or kind in THINKING:
        return
    if caller := string((fields_of(fields.get("caller")) or {}).get("tool_id")):
        yield "caller", caller
    if is_server_call(kind):
        yield "call", string(fields.get("id"))
    elif is_server_result(kind):
        yield "result", string(fields.get("tool_use_id"))


def _unpaired(contents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Finding]]:
    """Yield every block whose call, result or caller is missing, with the place of its message; O(blocks)."""
    ledger: HostedLedger[Path] = HostedLedger()
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
                    text = f"no open call {identifier!r} is before it"
                    yield index, (where, "server-result-without-call", text)


RULES: Final[Mapping[str, Rule]] = {
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
}

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    accepts_last=_is_empty_answer,
    join=join_problem,
    joins={
        "misplaced-system": ((), "it is neither first nor between a user message and the answer"),
        "thinking-after-answer": (("content",), "its thinking blocks follow another answer"),
        "trailing-space": (("content",), "the list ends with an answer that ends with blanks"),
    },
    whole=_list_problems,
)
