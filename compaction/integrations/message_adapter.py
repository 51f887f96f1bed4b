"""The message adapter: the base of the frameworks' message formats, with their rules, repair and comparison.

A framework's message may hold several results, so it is validated as the chat messages that a client makes of it, and a problem
is reported at the place of the framework's message. The provider behind the framework is not known here, so the rules are those
of the strictest one: a view starts with the user, and an answer never follows an answer.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import attrs

from ..formats import MessageFormat, Problem, Repair, Side, openai_chat
from ..messages import Message, Part, TextPart, ToolCallPart, ToolResultPart

_PLACE: Final = re.compile(r"messages\[(\d+)\]")


class MessageAdapter(MessageFormat):
    """The base of a framework's message format, for any provider. Stateless.

    Attributes:
        compared: The fields that must be equal for two messages to count as the same.
    """

    compared: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        return self.name.replace("-", "_")

    def __reduce__(self) -> str:
        return repr(self)

    def key(self, raw: Any) -> Any:
        fields = raw.__dict__
        return tuple([fields.get(field) for field in self.compared])

    def common_prefix(self, known: Sequence[Any], given: Sequence[Any]) -> int:
        """As in the base class; copies that share their contents are compared field by field at C speed."""
        shortest = min(len(known), len(given))
        if all(map(operator.is_, known, given)):
            return shortest
        ours, theirs = ([message.__dict__ for message in messages[:shortest]] for messages in (known, given))
        if all(_column(ours, field) == _column(theirs, field) for field in self.compared):
            return shortest
        return super().common_prefix(known, given)

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        return _problems([self.read(raw, place) for place, raw in enumerate(raws)])

    def repair(self, raws: Sequence[Any]) -> Repair:
        return _repair(self, raws)

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        """A call follows the user or a result, as the strictest provider asks."""
        if after is None or after.role != "assistant" or not any(after.tool_calls()):
            return None
        return ("misplaced-call", "after") if before is None or before.role == "assistant" else None

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """An answer follows the user, a result or an instruction that is not the first thing said."""
        if after is None or after.role != "assistant":
            return True
        return before is not None and before.role != "assistant" and not before.is_system

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def placeholder(self, text: str) -> tuple[Message, ...]:
        return (self.new("user", text),)


def _column(messages: Sequence[dict[str, Any]], field: str) -> list[Any]:
    """Return one field of each message, at C speed if every message has it."""
    try:
        return list(map(operator.itemgetter(field), messages))
    except KeyError:
        return [message.get(field) for message in messages]


def _as_chat(message: Message) -> list[dict[str, Any]]:
    """Return the chat messages that stand for one message: one for each result, and one for the rest."""
    results = list(message.tool_results())
    chat = [{"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in results]
    if message.role == "tool" and chat:
        return chat
    words = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name or "unnamed", "arguments": call.arguments or "{}"}}
        for call in message.tool_calls()
    ]
    other = any(not isinstance(part, TextPart | ToolCallPart | ToolResultPart) for part in message.parts)
    said: dict[str, Any] = {"role": message.role, "content": words or ("(other content)" if other else "")}
    if calls:
        said["tool_calls"] = calls
    return [said, *chat] if message.role == "assistant" else [*chat, said]


def _problems(messages: Iterable[Message]) -> list[Problem]:
    """Return every rule that a conversation breaks, in order of place; O(messages)."""
    chat: list[dict[str, Any]] = []
    owners: list[int] = []
    for place, message in enumerate(messages):
        expanded = _as_chat(message)
        chat += expanded
        owners += [place] * len(expanded)

    def owner(found: re.Match[str]) -> str:
        at = int(found[1])
        return f"messages[{owners[at] if at < len(owners) else len(owners)}]"

    return [
        attrs.evolve(problem, where=_PLACE.sub(owner, problem.where), message=_PLACE.sub(owner, problem.message))
        for problem in openai_chat.validate(chat)
    ]


def _repair(format: MessageFormat, raws: Sequence[Any]) -> Repair:
    """Remove results without a call and calls without a result, except those of the last message; O(messages)."""
    messages = [format.read(raw, place) for place, raw in enumerate(raws)]
    answered = _pairs(messages)
    repaired: list[Any] = []
    changes: list[Problem] = []
    for place, message in enumerate(messages):
        last = place == len(messages) - 1
        kept = [
            part for part in message.parts if _is_paired(part, place, answered) or (last and isinstance(part, ToolCallPart))
        ]
        if len(kept) == len(message.parts):
            repaired.append(message.raw)
            continue
        changes.append(_taken_out(place, message.parts, kept))
        if kept:
            repaired.append(format.changed(message, kept).raw)
    return Repair(messages=repaired, changes=tuple(changes), remaining=tuple(format.validate(repaired)))


def _pairs(messages: Sequence[Message]) -> set[tuple[str, int]]:
    """Return the id and place of each call that has a result, and of each result that has a call."""
    open_calls: dict[str, int] = {}
    paired: set[tuple[str, int]] = set()
    for place, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                open_calls[part.id] = place
            elif isinstance(part, ToolResultPart) and part.call_id in open_calls:
                paired |= {(part.call_id, open_calls.pop(part.call_id)), (part.call_id, place)}
    return paired


def _is_paired(part: Part, place: int, paired: set[tuple[str, int]]) -> bool:
    if isinstance(part, ToolCallPart):
        return (part.id, place) in paired
    return not isinstance(part, ToolResultPart) or (part.call_id, place) in paired


def _taken_out(place: int, parts: Sequence[Part], kept: Sequence[Part]) -> Problem:
    gone = next(part for part in parts if part not in kept)
    rule = "call-without-result" if isinstance(gone, ToolCallPart) else "result-without-call"
    return Problem(f"messages[{place}]", rule, "a call and its result go together", "what stood alone was taken out")
