"""The rules of Amazon Bedrock's Converse API, each with a name.

``docs/validity.md`` shows every rule with an example and its source. What depends on the model is not a rule here: whether it
takes images, words beside calls, thoughts without a signature, or a list that ends with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..base import Problem, Rule, Side
from ..wire import fields_of, items_of, string, type_name
from .fields import (
    IN_RESULTS,
    KINDS,
    WORDS,
    block_kind,
    is_cache_point,
    is_hosted,
    is_tool_use_id,
    message_blocks,
    tool_result_id,
    tool_use_id,
    unplaced_cache_points,
)

__all__ = ["CACHE_POINTS", "ROLES", "RULES", "join_problem", "message_problems", "thinks_alone", "validate"]

CACHE_POINTS: Final = 4
"""How many cache points a request may have."""

ROLES: Final = frozenset({"user", "assistant", "system"})

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "send at least one message"),
    "unreadable-message": Rule("message", "pass dictionaries, as boto3 takes them"),
    "unknown-role": Rule("message", "use one of user, assistant"),
    "starts-with-answer": Rule("join", "put what the user said before it, or leave it out"),
    "same-role-twice": Rule("join", "make it one message with the one before it"),
    "misplaced-system": Rule("join", "pass it as the 'system' parameter, or put it between the user and the answer"),
    "malformed-content": Rule("message", "make it a list of blocks"),
    "empty-content": Rule("message", "give it a block, or leave the message out"),
    "malformed-block": Rule("message", "make it an object with one field, and in it what that kind of block needs"),
    "block-not-allowed": Rule("message", "leave the block out, or move it to a message of the other role"),
    "empty-text": Rule("message", "leave the block out"),
    "document-without-text": Rule("message", "say in a text block what the document is for"),
    "thinking-alone": Rule("message", "leave the message out"),
    "misplaced-cache-point": Rule("message", "put it after something to cache that is not a thought, or leave it out"),
    "text-after-call": Rule("message", "put the text before the calls"),
    "result-after-text": Rule("message", "put the results first"),
    "call-without-id": Rule("message", "give the call an id, and its result the same"),
    "malformed-id": Rule(
        "message", "give it an id of at most 64 letters, digits, '_', '.', ':' and '-', and its result the same"
    ),
    "duplicate-call-id": Rule("message", "give each call of a message an id of its own"),
    "result-without-id": Rule("message", "set 'toolUseId' to the id of the call it answers"),
    "duplicate-result": Rule("message", "keep one result for each call"),
    "empty-error": Rule("message", "say in its content what went wrong"),
    "call-without-result": Rule("reach", "put its result into the message directly after it, or leave the call out"),
    "pending-call": Rule("reach", "store it as it is; add the result before sending"),
    "result-without-call": Rule("reach", "put it into the message directly after the call, or leave it out"),
    "too-many-cache-points": Rule("reach", "keep four cache points at most"),
}
"""Every rule: how far it looks, and what to do where it is broken."""

_OF_SYSTEM: Final = frozenset({"text", "cachePoint", "toolAddition", "toolRemoval"})
_OF_USER: Final = frozenset({"toolUse", "reasoningContent"})
"""What only an answer holds."""
_OF_ASSISTANT: Final = frozenset({"image", "document"})
"""What only the user sends, besides results."""
_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "image": {"format": str, "source": Mapping},
    "video": {"format": str, "source": Mapping},
    "audio": {"format": str, "source": Mapping},
    "document": {"name": str, "source": Mapping},
    "toolUse": {"name": str, "input": Mapping},
    "toolResult": {"content": list},
    "cachePoint": {"type": str},
    "searchResult": {"source": str, "title": str, "content": list},
}
_SHAPE, _PAIRS, _JOINS, _OPEN = range(4)
"""The steps of the judgement, in the order in which a message's problems are told."""

_Found: TypeAlias = tuple[int, int, int, Problem]
"""A problem and what it is sorted by: the place of its message, a step of the judgement, a place in the message."""


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Return every rule the list breaks, in order of place; O(blocks), without an exception, whatever the list holds.

    Args:
        raws: Messages as dictionaries; anything else is a problem itself.

    >>> print(validate([{"role": "user", "content": [{"text": ""}]}])[0])
    messages[0].content[0]: a text block says something [empty-text]; leave the block out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    found: list[_Found] = []
    for index, raw in enumerate(raws):
        found.extend((index, *each) for each in _message_problems(raw, f"messages[{index}]"))
    contents = [fields_of(raw) or {} for raw in raws]
    found.extend(_joins([string(fields.get("role")) for fields in contents]))
    found.extend(_Pairs(contents).run())
    return [problem for *_, problem in sorted(found, key=_place)]


# ------------------------------------------------------------------------ one message


def message_problems(raw: Any) -> Iterator[Problem]:
    """Yield the rules that a message breaks by itself, whatever stands around it."""
    return (problem for *_, problem in sorted(_message_problems(raw, "messages[0]"), key=_step))


def _message_problems(raw: Any, where: str) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that a message breaks by itself, each with its step and its place in the message."""
    fields = fields_of(raw)
    if fields is None:
        yield _SHAPE, 0, _problem(where, "unreadable-message", f"a message is an object with a role (got {type_name(raw)})")
        return
    role, content = string(fields.get("role")), fields.get("content")
    if role not in ROLES:
        yield _SHAPE, 0, _problem(f"{where}.role", "unknown-role", f"no such role: {fields.get('role')!r}")
    elif content is not None and items_of(content) is None:
        text = f"a content is a list of blocks (got {type_name(content)})"
        yield _SHAPE, 0, _problem(f"{where}.content", "malformed-content", text)
    elif not content:
        yield _SHAPE, 0, _problem(f"{where}.content", "empty-content", "it says nothing")
    else:
        blocks = message_blocks(fields)
        for position, block in enumerate(blocks):
            yield from ((_SHAPE, position, each) for each in _block_problems(f"{where}.content[{position}]", role, block))
        for position in unplaced_cache_points(blocks):
            place = f"{where}.content[{position}]"
            yield _SHAPE, position, _problem(place, "misplaced-cache-point", "there is nothing before it that can be cached")
        if role == "user":
            yield from _user_problems(where, blocks)
        elif role == "assistant":
            yield from _answer_problems(where, blocks)


def _answer_problems(where: str, blocks: Sequence[Any]) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that an answer breaks in its calls and their order."""
    ids: set[str] = set()
    for position, block in enumerate(blocks):
        place = f"{where}.content[{position}]"
        if (identifier := tool_use_id(block)) is None:
            if ids and block_kind(block) in WORDS:
                yield _PAIRS, position, _problem(place, "text-after-call", "nothing is said after the calls of an answer")
            continue
        place += ".toolUse.toolUseId"
        if not identifier:
            yield _PAIRS, position, _problem(place, "call-without-id", "the call has no id")
        elif not is_tool_use_id(identifier):
            text = f"the id {identifier[:80]!r} is too long, or has other characters"
            yield _PAIRS, position, _problem(place, "malformed-id", text)
        elif identifier in ids:
            yield _PAIRS, position, _problem(place, "duplicate-call-id", f"the id {identifier!r} is that of another call")
        ids.add(identifier)
    if thinks_alone(blocks):
        yield _SHAPE, 0, _problem(f"{where}.content", "thinking-alone", "an answer is more than thoughts")


def thinks_alone(blocks: Sequence[Any]) -> bool:
    """Whether an answer holds thoughts, and nothing else but cache points."""
    kinds = {block_kind(block) for block in blocks} - {"cachePoint"}
    return kinds == {"reasoningContent"}


def _user_problems(where: str, blocks: Sequence[Any]) -> Iterator[tuple[int, int, Problem]]:
    """Yield the rules that a user message breaks in its results, their order and its documents."""
    said = False
    ids: set[str] = set()
    for position, block in enumerate(blocks):
        identifier, place = tool_result_id(block), f"{where}.content[{position}]"
        if identifier is None:
            said = said or not is_cache_point(block)
            continue
        if said:
            yield _PAIRS, position, _problem(place, "result-after-text", "results come before anything else in their message")
        if not identifier:
            text = "a result needs 'toolUseId'"
            yield _PAIRS, position, _problem(f"{place}.toolResult.toolUseId", "result-without-id", text)
        elif identifier in ids:
            yield _PAIRS, position, _problem(place, "duplicate-result", f"the call {identifier!r} is answered already")
        ids.add(identifier)
    documents = [position for position, block in enumerate(blocks) if block_kind(block) == "document"]
    if documents and not any(string((fields_of(block) or {}).get("text")).strip() for block in blocks):
        place = f"{where}.content[{documents[0]}]"
        yield _SHAPE, documents[0], _problem(place, "document-without-text", "a document comes with a text block")


def _block_problems(where: str, role: str, block: Any) -> Iterator[Problem]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    kind = block_kind(block)
    if not kind:
        fields = fields_of(block)
        got = type_name(block) if fields is None else " and ".join(map(repr, fields)) or "none"
        yield _problem(where, "malformed-block", f"a block is an object with one field (got {got})")
        return
    value = (fields_of(block) or {})[kind]
    body = fields_of(value)
    if not _allowed(role, kind, body or {}):
        yield _problem(where, "block-not-allowed", f"a {role} message takes no block of kind {kind!r}")
        return
    if kind == "text":
        if not isinstance(value, str):
            yield _problem(f"{where}.text", "malformed-block", f"a text is a string (got {type_name(value)})")
        elif not value.strip():
            yield _problem(where, "empty-text", "a text block says something")
    elif kind in KINDS:
        yield from _body_problems(f"{where}.{kind}", kind, value)


def _body_problems(where: str, kind: str, value: Any) -> Iterator[Problem]:
    """Yield what is missing in a block, or of the wrong kind."""
    body = fields_of(value)
    if body is None:
        yield _problem(where, "malformed-block", f"it is an object (got {type_name(value)})")
        return
    for name, wanted in _REQUIRED.get(kind, {}).items():
        given = body.get(name)
        fits = fields_of(given) if wanted is Mapping else items_of(given) if wanted is list else given
        if fits is None or (wanted is str and not (isinstance(given, str) and given)):
            yield _problem(f"{where}.{name}", "malformed-block", f"{kind} needs {name!r} (got {type_name(given)})")
    if kind == "toolResult" and (content := items_of(body.get("content"))) is not None:
        if not content and body.get("status") == "error":
            yield _problem(f"{where}.content", "empty-error", "a result that failed says why")
        for position, element in enumerate(content):
            yield from _nested_problems(f"{where}.content[{position}]", element)


def _nested_problems(where: str, element: Any) -> Iterator[Problem]:
    """Yield the rules that a block of a result breaks."""
    kind = block_kind(element)
    if kind in KINDS and kind not in IN_RESULTS:
        yield _problem(where, "block-not-allowed", f"a result holds no block of kind {kind!r}")
    elif kind == "json":
        if fields_of(value := (fields_of(element) or {})[kind]) is None:
            yield _problem(f"{where}.json", "malformed-block", f"its data is an object (got {type_name(value)})")
    else:
        yield from _block_problems(where, "user", element)


def _allowed(role: str, kind: str, body: Mapping[str, Any]) -> bool:
    if role == "system":
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind not in _OF_ASSISTANT and (kind != "toolResult" or is_hosted(body))
    return kind not in _OF_USER


# ------------------------------------------------------------------------ two neighbours


def join_problem(before: str, after: str) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, by their roles; an empty one is the start of the list, others say nothing."""
    if after not in ROLES or (before and before not in ROLES):
        return None
    ends = before == "system" and after != "assistant"
    begins = after == "system" and before != "user"
    if ends or begins:
        return "misplaced-system", "both" if ends and begins else "before" if ends else "after"
    if not before:
        return ("starts-with-answer", "after") if after == "assistant" else None
    return ("same-role-twice", "after") if before == after else None


_JOIN_TEXTS: Final[Mapping[str, str]] = {
    "starts-with-answer": "nobody said anything before it",
    "same-role-twice": "the one before it has the same role",
    "misplaced-system": "it does not stand between the user and the answer",
}


def _joins(roles: Sequence[str]) -> set[_Found]:
    """Return the problems of all neighbours; what follows the leading system messages is at the start."""
    leading = next((place for place, role in enumerate(roles) if role != "system"), len(roles))
    found: set[_Found] = set()
    for place, role in enumerate(roles):
        before = "" if place <= leading else roles[place - 1] or "unreadable"
        if (broken := join_problem(before, role)) is None:
            continue
        rule, side = broken
        for index, at in ((place - 1, "before"), (place, "after")):
            if side in (at, "both"):
                found.add((index, _JOINS, 0, _problem(f"messages[{index}]", rule, _JOIN_TEXTS[rule])))
    return found


# ------------------------------------------------------------------------ the whole list


class _Pairs:
    """Judges what takes more than two neighbours. Holds state: the calls of the message before, and cache points so far."""

    def __init__(self, contents: Sequence[Mapping[str, Any]]) -> None:
        self.contents = contents
        self.found: list[_Found] = []
        self.open: dict[str, str] = {}
        self.owner = 0
        self.cache_points = 0

    def run(self) -> list[_Found]:
        for index, fields in enumerate(self.contents):
            role, blocks = string(fields.get("role")), message_blocks(fields)
            for position, block in enumerate(blocks if role in ROLES else ()):
                self.cache_point(index, position, block)
            if role == "user":
                self.results(index, blocks)
                continue
            self.end_run()
            if role == "assistant":
                self.owner = index
                ids = [(tool_use_id(block), position) for position, block in enumerate(blocks)]
                self.open = {id: f"messages[{index}].content[{position}]" for id, position in ids if id}
        self.end_run("pending-call")
        return self.found

    def cache_point(self, index: int, position: int, block: Any) -> None:
        self.cache_points += is_cache_point(block)
        if is_cache_point(block) and self.cache_points > CACHE_POINTS:
            problem = _problem(f"messages[{index}].content[{position}]", "too-many-cache-points", "four stand before it")
            self.found.append((index, _SHAPE, position, problem))

    def results(self, index: int, blocks: Sequence[Any]) -> None:
        """Take the calls that have a result here as answered, and judge whether each result has a call."""
        answered = {id for block in blocks if (id := tool_result_id(block))}
        for position, block in enumerate(blocks):
            if (identifier := tool_result_id(block)) and identifier not in self.open:
                text = f"the message before it does not make the call {identifier!r}"
                problem = _problem(f"messages[{index}].content[{position}]", "result-without-call", text)
                self.found.append((index, _PAIRS, position, problem))
        self.open = {id: where for id, where in self.open.items() if id not in answered}
        alone = all(tool_result_id(block) is not None or is_cache_point(block) for block in blocks)
        self.end_run("pending-call" if alone and index + 1 == len(self.contents) else "call-without-result")

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
