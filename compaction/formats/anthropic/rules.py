"""The rules of the Anthropic Messages API, each with a name.

``docs/validity.md`` shows every rule with an example and its source. Roles need not alternate and the first message need not be
the user's: the API gave both rules up. What depends on the model or on other parameters of the request, such as whether the
list may end with an answer, is not a rule here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..base import Problem, Rule, Side
from ..wire import fields_of, items_of, kind_of, string, type_name
from .fields import MEDIA_BLOCKS, THINKING, blocks_of, call_id, has_thinking, is_id, is_server_call, is_server_result, result_id
from .hosted import unpaired

__all__ = ["BREAKPOINTS", "RULES", "block_problems", "join_problem", "message_problems", "validate"]

BREAKPOINTS: Final = 4
"""How many blocks of a request may carry ``cache_control``."""

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "send at least one message"),
    "unreadable-message": Rule("message", "pass dictionaries, or the anthropic package's objects"),
    "unknown-role": Rule("message", "use one of user, assistant, system"),
    "misplaced-system": Rule("join", "put it first, or between a user message and the answer to it"),
    "malformed-content": Rule("message", "make it a string, or a list of blocks"),
    "empty-content": Rule("message", "give it a content, or leave the message out"),
    "empty-text": Rule("message", "leave the block out"),
    "malformed-block": Rule("message", "make it an object with a 'type' and the fields of that type"),
    "block-not-allowed": Rule("message", "leave the block out, or move it to a message of the other role"),
    "unsigned-thinking": Rule("message", "leave the block out"),
    "text-after-call": Rule("message", "put the text before the calls"),
    "ends-with-thinking": Rule("message", "leave the thoughts out, or the whole message"),
    "thinking-after-answer": Rule("join", "leave the thoughts out, or put the user's words between the two answers"),
    "call-without-id": Rule("message", "give the call an id, and its result the same"),
    "malformed-id": Rule("message", "give it an id of letters, digits, '_' and '-', and its result the same"),
    "duplicate-call-id": Rule("reach", "give each call an id of its own"),
    "call-without-result": Rule("reach", "put its result into the user message directly after it, or leave the call out"),
    "pending-call": Rule("reach", "store it as it is; add the result before sending"),
    "result-without-id": Rule("message", "set 'tool_use_id' to the id of the call it answers"),
    "result-without-call": Rule("reach", "put it into the user message directly after the call, or leave it out"),
    "duplicate-result": Rule("reach", "keep one result for each call"),
    "result-after-text": Rule("message", "put the results first"),
    "server-call-without-result": Rule("reach", "put its result into the answer, or leave the call out"),
    "server-result-without-call": Rule("reach", "keep it with the call before it, or leave it out"),
    "call-without-caller": Rule(
        "reach", "keep the answer that holds the caller before it, or leave the call and its result out"
    ),
    "too-many-breakpoints": Rule("reach", "keep 'cache_control' on four blocks at most"),
    "trailing-space": Rule("join", "cut the blanks at the end"),
}
"""Every rule: how far it looks, and what to do where it is broken."""

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


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Return every rule the list breaks, in order of place; O(blocks), without an exception, whatever the list holds.

    Args:
        raws: Messages as dictionaries or objects of the ``anthropic`` package; anything else is a problem itself.

    >>> print(validate([{"role": "user", "content": [{"type": "text", "text": ""}]}])[0])
    messages[0].content[0]: a text block says something [empty-text]; leave the block out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    contents = [fields_of(raw) for raw in raws]
    found: list[_Found] = []
    for index, (raw, fields) in enumerate(zip(raws, contents, strict=True)):
        where, last = f"messages[{index}]", index + 1 == len(raws)
        found.extend((index, *each) for each in _message_problems(raw, fields, where, last=last))
    found.extend(_joins(contents))
    found.extend(_Pairs(contents).run())
    return [problem for *_, problem in sorted(found, key=_place)]


_Found: TypeAlias = tuple[int, int, int, Problem]
"""A problem and what it is sorted by: the place of its message, a step of the judgement, a place in the message."""
_SHAPE, _PAIRS, _JOINS, _END, _LAST, _OPEN = range(6)
"""The steps: blocks by themselves, calls and results, neighbours, the end of an answer and of the list, open calls."""
_JOIN_TEXTS: Final[Mapping[str, tuple[int, str, str]]] = {
    "misplaced-system": (_JOINS, "", "it stands neither first nor between the user and the answer"),
    "thinking-after-answer": (_JOINS, ".content", "its thoughts follow an answer that they do not belong to"),
    "trailing-space": (_LAST, ".content", "the list ends with an answer that ends with blanks"),
}
"""The step, the place in the message and the text of the problem of a join."""


# ------------------------------------------------------------------------ one message


def message_problems(raw: Any) -> Iterator[Problem]:
    """Yield the rules that a message breaks by itself, as the last of a list."""
    found = sorted(_message_problems(raw, fields_of(raw), "messages[0]", last=True), key=_step)
    return (problem for *_, problem in found)


def _message_problems(
    raw: Any, fields: Mapping[str, Any] | None, where: str, *, last: bool
) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that a message breaks by itself, each with its step and its place in the message.

    An answer may be empty where the list ends with it: it is what the model goes on from.
    """
    role = _role(fields)
    if fields is None:
        text = f"a message is an object with a role (got {type_name(raw)})"
        yield _SHAPE, 0, _problem(where, "unreadable-message", text)
    elif role not in _ROLES:
        yield _SHAPE, 0, _problem(f"{where}.role", "unknown-role", f"no such role: {fields.get('role')!r}")
    elif _is_malformed(content := fields.get("content")):
        text = f"a content is a string or a list (got {type_name(content)})"
        yield _SHAPE, 0, _problem(f"{where}.content", "malformed-content", text)
    elif not content:
        if role != "assistant" or not last or content is None:
            yield _SHAPE, 0, _problem(f"{where}.content", "empty-content", "it says nothing")
    else:
        blocks = blocks_of(fields)
        for position, block in enumerate(blocks):
            place = f"{where}.content" + ("" if isinstance(content, str) else f"[{position}]")
            yield from ((_SHAPE, position, problem) for problem in block_problems(place, role, block))
        if role == "user":
            yield from _result_problems(where, blocks)
        elif role == "assistant":
            yield from _answer_problems(where, blocks)


def _role(fields: Mapping[str, Any] | None) -> str:
    return "" if fields is None else string(fields.get("role"))


def _is_malformed(content: Any) -> bool:
    return content is not None and not isinstance(content, str) and items_of(content) is None


def _blocks(fields: Mapping[str, Any] | None) -> Sequence[Any]:
    """Return the blocks of a message with a known role and a content; none of any other."""
    if fields is None or _role(fields) not in _ROLES or not fields.get("content"):
        return ()
    return blocks_of(fields)


def _answer_problems(where: str, blocks: Sequence[Any]) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that an answer breaks in its calls, their order and its end."""
    called = False
    for position, block in enumerate(blocks):
        place, kind = f"{where}.content[{position}]", kind_of(block)
        if (identifier := call_id(block)) is not None:
            called = called or bool(identifier)
            if not identifier:
                yield _PAIRS, position, _problem(f"{place}.id", "call-without-id", "the call has no id")
            elif not is_id(identifier):
                text = f"the id {identifier!r} has other characters"
                yield _PAIRS, position, _problem(f"{place}.id", "malformed-id", text)
        elif kind == "text" and called:
            yield _PAIRS, position, _problem(place, "text-after-call", "nothing is said after the calls of an answer")
    if kind_of(blocks[-1]) in THINKING:
        place = f"{where}.content[{len(blocks) - 1}]"
        yield _END, 0, _problem(place, "ends-with-thinking", "an answer does not end with thoughts")


def _result_problems(where: str, blocks: Sequence[Any]) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that a user message breaks in the order of its results and the ids they name."""
    said = False
    for position, block in enumerate(blocks):
        identifier, place = result_id(block), f"{where}.content[{position}]"
        if identifier is None:
            said = True
            continue
        if said:
            text = "results come before anything else in their message"
            yield _PAIRS, position, _problem(place, "result-after-text", text)
        if not identifier:
            yield _PAIRS, position, _problem(f"{place}.tool_use_id", "result-without-id", "a result needs 'tool_use_id'")


# ------------------------------------------------------------------------ two neighbours


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if before is None:
        return None
    if after is None:
        return ("trailing-space", "before") if _ends_with_space(before) else None
    first, second = _role(before), _role(after)
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
    if not blocks or _role(fields) != "assistant" or kind_of(blocks[-1]) != "text":
        return False
    text = string((fields_of(blocks[-1]) or {}).get("text"))
    return bool(text.strip()) and text != text.rstrip()


def _joins(contents: Sequence[Mapping[str, Any] | None]) -> set[_Found]:
    """Return the problems of all neighbours; what follows the leading system messages is at the start."""
    leading = next((place for place, fields in enumerate(contents) if _role(fields) != "system"), len(contents))
    found: set[_Found] = set()
    for place in range(leading + 1, len(contents) + 1):
        after = (contents[place] or {}) if place < len(contents) else None
        if (broken := join_problem(contents[place - 1] or {}, after)) is None:
            continue
        rule, side = broken
        step, within, text = _JOIN_TEXTS[rule]
        for index, at in ((place - 1, "before"), (place, "after")):
            if side in (at, "both"):
                found.add((index, step, 0, _problem(f"messages[{index}]{within}", rule, text)))
    return found


# ------------------------------------------------------------------------ the whole list


class _Pairs:
    """Judges what takes more than two neighbours. Holds state: every id so far, and the calls of the message before."""

    def __init__(self, contents: Sequence[Mapping[str, Any] | None]) -> None:
        self.contents = contents
        self.found: list[_Found] = []
        self.open: dict[str, str] = {}
        self.owner = 0
        self.calls: set[str] = set()
        self.breakpoints = 0

    def run(self) -> list[_Found]:
        for index, fields in enumerate(self.contents):
            role, blocks = _role(fields), _blocks(fields)
            for position, block in enumerate(blocks):
                self.breakpoint(index, position, block)
            if role == "user" and blocks:
                self.results(index, blocks)
                continue
            self.end_run()
            if role == "assistant":
                self.answer(index, blocks)
        self.end_run("pending-call")
        for each in unpaired(self.contents):
            self.add((each.index, _OPEN, 0), f".content[{each.position}]", each.rule, each.message)
        return self.found

    def add(self, at: tuple[int, int, int], place: str, rule: str, text: str) -> None:
        self.found.append((*at, _problem(f"messages[{at[0]}]{place}", rule, text)))

    def breakpoint(self, index: int, position: int, block: Any) -> None:
        if (fields_of(block) or {}).get("cache_control") is None:
            return
        self.breakpoints += 1
        if self.breakpoints > BREAKPOINTS:
            place = f".content[{position}].cache_control"
            self.add((index, _SHAPE, position), place, "too-many-breakpoints", "four blocks before it carry one")

    def answer(self, index: int, blocks: Sequence[Any]) -> None:
        """Note the calls of an answer, and judge whether their ids are their own."""
        self.owner = index
        for position, block in enumerate(blocks):
            if not (identifier := call_id(block)):
                continue
            if is_id(identifier) and identifier in self.calls:
                text = f"the id {identifier!r} is that of an earlier call"
                self.add((index, _PAIRS, position), f".content[{position}].id", "duplicate-call-id", text)
            self.calls.add(identifier)
            self.open[identifier] = f"messages[{index}].content[{position}]"

    def results(self, index: int, blocks: Sequence[Any]) -> None:
        answered: set[str] = set()
        for position, block in enumerate(blocks):
            identifier, place = result_id(block), f".content[{position}]"
            if not identifier:
                continue
            if identifier in self.open:
                del self.open[identifier]
                answered.add(identifier)
            elif identifier in answered:
                self.add((index, _PAIRS, position), place, "duplicate-result", f"the call {identifier!r} is answered already")
            else:
                text = f"the message before it does not make the call {identifier!r}"
                self.add((index, _PAIRS, position), place, "result-without-call", text)
        waiting = index + 1 == len(self.contents) and all(result_id(block) is not None for block in blocks)
        self.end_run("pending-call" if waiting else "call-without-result")

    def end_run(self, rule: str = "call-without-result") -> None:
        """Report the calls of the message before that have no result here."""
        text = "has no result yet" if rule == "pending-call" else "has no result in the message after it"
        for identifier, where in self.open.items():
            self.found.append((self.owner, _OPEN, 0, _problem(where, rule, f"the call {identifier!r} {text}")))
        self.open = {}


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule].remedy)


def _place(found: _Found) -> tuple[int, int, int]:
    return found[:3]


def _step(found: tuple[int, int, Problem]) -> tuple[int, int]:
    return found[:2]


def block_problems(where: str, role: str, block: Any) -> Iterator[Problem]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    fields, kind = fields_of(block), kind_of(block)
    if fields is None or not kind:
        yield _problem(where, "malformed-block", f"a block is an object with a type (got {type_name(block)})")
        return
    if not _allowed(role, kind):
        yield _problem(where, "block-not-allowed", f"a {role} message takes no block of type {kind!r}")
        return
    for name, wanted in _REQUIRED.get(kind, {}).items():
        value = fields.get(name)
        if not isinstance(value, wanted) and (wanted is str or fields_of(value) is None):
            yield _problem(f"{where}.{name}", "malformed-block", f"a {kind} block needs {name!r} (got {type_name(value)})")
    if kind == "text" and isinstance(text := fields.get("text"), str) and not text.strip():
        yield _problem(where, "empty-text", "a text block says something")
    if kind == "thinking" and not string(fields.get("signature")):
        yield _problem(f"{where}.signature", "unsigned-thinking", "thoughts come with the provider's signature")
    if kind == "tool_result":
        yield from _nested_problems(f"{where}.content", fields.get("content"))


def _allowed(role: str, kind: str) -> bool:
    if role == "system":
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind != "tool_result" and kind not in MEDIA_BLOCKS.keys() - {"container_upload"}
    return kind != "tool_use" and kind not in THINKING and not is_server_call(kind) and not is_server_result(kind)


def _nested_problems(where: str, content: Any) -> Iterator[Problem]:
    if content is None or isinstance(content, str):
        return
    elements = items_of(content)
    if elements is None:
        yield _problem(where, "malformed-content", f"a result's content is a string or a list (got {type_name(content)})")
    for position, element in enumerate(elements or ()):
        if kind_of(element) == "tool_result":
            yield _problem(f"{where}[{position}]", "block-not-allowed", "a result holds no further result")
        else:
            yield from block_problems(f"{where}[{position}]", "user", element)
