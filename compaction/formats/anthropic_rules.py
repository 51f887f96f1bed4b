"""Which lists of messages the Anthropic Messages API takes, as rules that each have a name.

``docs/validity.md`` shows every rule with an example of each kind and where it is known from. Roles need not alternate and
the first message need not be the user's: the API gave both rules up. What depends on the model or on other parameters of the
request, such as whether the list may end with an answer, is no rule here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .anthropic_fields import (
    MEDIA_BLOCKS,
    THINKING,
    blocks_of,
    call_id,
    has_thinking,
    is_id,
    is_server_call,
    is_server_result,
    result_id,
)
from .anthropic_hosted import unpaired
from .base import Problem
from .wire import fields_of, items_of, kind_of, string, type_name

__all__ = ["BREAKPOINTS", "RULES", "block_problems", "validate"]

BREAKPOINTS: Final = 4
"""How many blocks of a request may carry ``cache_control``."""

RULES: Final[Mapping[str, str]] = {
    "no-messages": "send at least one message",
    "unreadable-message": "pass dictionaries, or the anthropic package's objects",
    "unknown-role": "use one of user, assistant, system",
    "misplaced-system": "put it first, or between a user message and the answer to it",
    "malformed-content": "make it a string, or a list of blocks",
    "empty-content": "give it a content, or leave the message out",
    "empty-text": "leave the block out",
    "malformed-block": "make it an object with a 'type' and the fields of that type",
    "block-not-allowed": "leave the block out, or move it to a message of the other role",
    "unsigned-thinking": "leave the block out",
    "text-after-call": "put the text before the calls",
    "ends-with-thinking": "leave the thoughts out, or the whole message",
    "thinking-after-answer": "leave the thoughts out, or put the user's words between the two answers",
    "call-without-id": "give the call an id, and its result the same",
    "malformed-id": "give it an id of letters, digits, '_' and '-', and its result the same",
    "duplicate-call-id": "give each call an id of its own",
    "call-without-result": "put its result into the user message directly after it, or leave the call out",
    "pending-call": "store it as it is; add the result before sending",
    "result-without-id": "set 'tool_use_id' to the id of the call it answers",
    "result-without-call": "put it into the user message directly after the call, or leave it out",
    "duplicate-result": "keep one result for each call",
    "result-after-text": "put the results first",
    "server-call-without-result": "put its result into the answer, or leave the call out",
    "server-result-without-call": "keep it with the call before it, or leave it out",
    "call-without-caller": "keep the answer that holds the caller before it, or leave the call and its result out",
    "too-many-breakpoints": "keep 'cache_control' on four blocks at most",
    "trailing-space": "cut the blanks at the end",
}
"""Every rule, and what to do where it is broken."""

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
    """Every rule the list breaks, in order of place; O(blocks), and never an exception, whatever the list holds.

    Args:
        raws: Messages as dictionaries or objects of the ``anthropic`` package; anything else is a problem itself.

    >>> print(validate([{"role": "user", "content": [{"type": "text", "text": ""}]}])[0])
    messages[0].content[0]: a text block says something [empty-text]; leave the block out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    walk = _Walk(raws)
    for index in range(len(raws)):
        walk.message(index)
    walk.end()
    return [problem for _, problem in sorted(walk.found, key=_place)]


class _Walk:
    """Walks the messages; holds what a later one is judged by: the calls of the message before, and every id so far."""

    def __init__(self, raws: Sequence[Any]) -> None:
        self.found: list[tuple[int, Problem]] = []
        self.fields = [fields_of(raw) for raw in raws]
        self.roles = [string((fields or {}).get("role")) for fields in self.fields]
        self.raws = raws
        self.leading = next((place for place, role in enumerate(self.roles) if role != "system"), len(raws))
        self.open: dict[str, str] = {}
        self.owner = 0
        self.calls: set[str] = set()
        self.breakpoints = 0

    def add(self, index: int, place: str, rule: str, text: str) -> None:
        self.found.append((index, _problem(f"messages[{index}]{place}", rule, text)))

    def message(self, index: int) -> None:
        fields, role = self.fields[index], self.roles[index]
        if fields is None:
            self.add(index, "", "unreadable-message", f"a message is an object with a role (got {type_name(self.raws[index])})")
        elif role not in _ROLES:
            self.add(index, ".role", "unknown-role", f"no such role: {fields.get('role')!r}")
        elif self.content(index, fields, role):
            self.blocks(index, fields, role)
            if role == "user":
                self.results(index, blocks_of(fields))
                return
            self.end_run()
            self.around(index, fields, role)
            return
        self.end_run()

    def content(self, index: int, fields: Mapping[str, Any], role: str) -> bool:
        """Judge the content as a whole; whether there are blocks to look at."""
        content = fields.get("content")
        if content is not None and not isinstance(content, str) and items_of(content) is None:
            self.add(index, ".content", "malformed-content", f"a content is a string or a list (got {type_name(content)})")
            return False
        if not content:
            if role != "assistant" or index + 1 < len(self.raws):
                self.add(index, ".content", "empty-content", "it says nothing")
            return False
        return True

    def blocks(self, index: int, fields: Mapping[str, Any], role: str) -> None:
        whole = isinstance(fields.get("content"), str)
        for position, block in enumerate(blocks_of(fields)):
            where = f"messages[{index}].content" + ("" if whole else f"[{position}]")
            self.found.extend((index, problem) for problem in block_problems(where, role, block))
            self.breakpoint(index, position, block)

    def breakpoint(self, index: int, position: int, block: Any) -> None:
        marked = fields_of(block) or {}
        if marked.get("cache_control") is None:
            return
        self.breakpoints += 1
        if self.breakpoints > BREAKPOINTS:
            self.add(index, f".content[{position}].cache_control", "too-many-breakpoints", "four blocks before it carry one")

    def around(self, index: int, fields: Mapping[str, Any], role: str) -> None:
        """What an answer or a system message must be like because of its neighbours."""
        if role == "system":
            self.system(index)
            return
        blocks = blocks_of(fields)
        self.answer(index, blocks)
        before = self.roles[index - 1] if index else ""
        if before == "assistant" and has_thinking(fields):
            self.add(index, ".content", "thinking-after-answer", "its thoughts follow an answer that they do not belong to")
        if kind_of(blocks[-1]) in THINKING:
            self.add(index, f".content[{len(blocks) - 1}]", "ends-with-thinking", "an answer does not end with thoughts")
        if index + 1 == len(self.raws) and kind_of(blocks[-1]) == "text":
            text = string((fields_of(blocks[-1]) or {}).get("text"))
            if text.strip() and text != text.rstrip():
                self.add(index, ".content", "trailing-space", "the list ends with an answer that ends with blanks")

    def system(self, index: int) -> None:
        if index < self.leading:
            return
        after = self.roles[index + 1] if index + 1 < len(self.roles) else "assistant"
        if self.roles[index - 1] != "user" or after != "assistant":
            self.add(index, "", "misplaced-system", "it stands neither first nor between the user and the answer")

    def answer(self, index: int, blocks: Sequence[Any]) -> None:
        """Note the calls of an answer, and judge their ids and their order."""
        self.owner = index
        for position, block in enumerate(blocks):
            place, kind = f".content[{position}]", kind_of(block)
            if (identifier := call_id(block)) is not None:
                self.call(index, place, identifier)
            elif kind == "text" and self.open:
                self.add(index, place, "text-after-call", "nothing is said after the calls of an answer")

    def call(self, index: int, place: str, identifier: str) -> None:
        if not identifier:
            self.add(index, f"{place}.id", "call-without-id", "the call has no id")
        elif not is_id(identifier):
            self.add(index, f"{place}.id", "malformed-id", f"the id {identifier!r} has other characters")
        elif identifier in self.calls:
            self.add(index, f"{place}.id", "duplicate-call-id", f"the id {identifier!r} is that of an earlier call")
        self.calls.add(identifier)
        if identifier:
            self.open[identifier] = f"messages[{index}]{place}"

    def results(self, index: int, blocks: Sequence[Any]) -> None:
        answered: set[str] = set()
        said = False
        for position, block in enumerate(blocks):
            identifier, place = result_id(block), f".content[{position}]"
            if identifier is None:
                said = True
                continue
            if said:
                self.add(index, place, "result-after-text", "results come before anything else in their message")
            if not identifier:
                self.add(index, f"{place}.tool_use_id", "result-without-id", "a result needs 'tool_use_id'")
            elif identifier in self.open:
                del self.open[identifier]
                answered.add(identifier)
            elif identifier in answered:
                self.add(index, place, "duplicate-result", f"the call {identifier!r} is answered already")
            else:
                text = f"the message before it does not make the call {identifier!r}"
                self.add(index, place, "result-without-call", text)
        waiting = index + 1 == len(self.raws) and not said
        self.end_run("pending-call" if waiting else "call-without-result")

    def end_run(self, rule: str = "call-without-result") -> None:
        """Report the calls of the message before that nothing here answers."""
        text = "has no result yet" if rule == "pending-call" else "has no result in the message after it"
        for identifier, where in self.open.items():
            self.found.append((self.owner, _problem(where, rule, f"the call {identifier!r} {text}")))
        self.open = {}

    def end(self) -> None:
        self.end_run("pending-call")
        for each in unpaired(self.fields):
            self.add(each.index, f".content[{each.position}]", each.rule, each.message)


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule])


def _place(found: tuple[int, Problem]) -> int:
    return found[0]


def block_problems(where: str, role: str, block: Any) -> Iterator[Problem]:
    """What is wrong with one block by itself, in a message of a known role."""
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
