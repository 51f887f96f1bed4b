"""What the formats of frameworks share: the rules, which any provider behind the framework may hold them to, and comparing.

A framework's own message may hold several results; it is judged as the chat messages a client makes of it, and a problem is
told at the place of the message it came from. Which provider is behind the framework is not known here, so a view begins as the
strictest of them wants it: with the user, and an answer after somebody else.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import attrs

from ..formats import MessageFormat, Problem, Repair, openai_chat
from ..messages import Message, Part, Text, ToolCall, ToolResult

__all__ = ["FrameworkFormat", "as_chat", "judge", "mend"]

_PLACE: Final = re.compile(r"messages\[(\d+)\]")


class FrameworkFormat(MessageFormat):
    """A framework's messages, whatever provider they go to. Stateless.

    Attributes:
        compared: The fields two messages must have equal to count as the same.
    """

    compared: ClassVar[tuple[str, ...]]

    def key(self, raw: Any) -> Any:
        fields = raw.__dict__
        return tuple([fields.get(field) for field in self.compared])

    def common_prefix(self, known: Sequence[Any], given: Sequence[Any]) -> int:
        """As its base says; copies that share their contents are told without a look at each message."""
        shortest = min(len(known), len(given))
        if all(map(operator.is_, known, given)):
            return shortest
        ours, theirs = ([message.__dict__ for message in messages[:shortest]] for messages in (known, given))
        if all(_column(ours, field) == _column(theirs, field) for field in self.compared):
            return shortest
        return super().common_prefix(known, given)

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        return judge([self.read(raw, place) for place, raw in enumerate(raws)])

    def repair(self, raws: Sequence[Any]) -> Repair:
        return mend(self, raws)

    def valid_seam(self, before: Message | None, after: Message | None) -> bool:
        """An answer follows the user, a result or an instruction that is not the first thing said."""
        if after is None or after.role != "assistant":
            return True
        return before is not None and before.role != "assistant" and not before.is_system

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def stand_in(self, text: str) -> Message:
        return self.new("user", text)


def _column(messages: Sequence[dict[str, Any]], field: str) -> list[Any]:
    """One field of each message; at C speed where every message has it."""
    try:
        return list(map(operator.itemgetter(field), messages))
    except KeyError:
        return [message.get(field) for message in messages]


def as_chat(message: Message) -> list[dict[str, Any]]:
    """The chat messages that stand for one message: a result each, then the rest."""
    results = list(message.tool_results())
    chat = [{"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in results]
    if message.role == "tool" and chat:
        return chat
    words = "\n".join([part.text for part in message.parts if isinstance(part, Text)])
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name or "unnamed", "arguments": call.arguments or "{}"}}
        for call in message.tool_calls()
    ]
    other = any(not isinstance(part, Text | ToolCall | ToolResult) for part in message.parts)
    said: dict[str, Any] = {"role": message.role, "content": words or ("(other content)" if other else "")}
    if calls:
        said["tool_calls"] = calls
    return [said, *chat] if message.role == "assistant" else [*chat, said]


def judge(messages: Iterable[Message]) -> list[Problem]:
    """Every rule that a conversation breaks, in order of place; O(messages)."""
    chat: list[dict[str, Any]] = []
    owners: list[int] = []
    for place, message in enumerate(messages):
        expanded = as_chat(message)
        chat += expanded
        owners += [place] * len(expanded)

    def owner(found: re.Match[str]) -> str:
        at = int(found[1])
        return f"messages[{owners[at] if at < len(owners) else len(owners)}]"

    return [
        attrs.evolve(problem, where=_PLACE.sub(owner, problem.where), message=_PLACE.sub(owner, problem.message))
        for problem in openai_chat.validate(chat)
    ]


def mend(format: MessageFormat, raws: Sequence[Any]) -> Repair:
    """Takes out results without a call and calls without a result, the last message's excepted; O(messages)."""
    messages = [format.read(raw, place) for place, raw in enumerate(raws)]
    answered = _pairs(messages)
    mended: list[Any] = []
    changes: list[Problem] = []
    for place, message in enumerate(messages):
        last = place == len(messages) - 1
        kept = [part for part in message.parts if _is_paired(part, place, answered) or (last and isinstance(part, ToolCall))]
        if len(kept) == len(message.parts):
            mended.append(message.raw)
            continue
        changes.append(_taken_out(place, message.parts, kept))
        if kept:
            mended.append(format.changed(message, kept).raw)
    return Repair(messages=mended, changes=tuple(changes), remaining=tuple(format.validate(mended)))


def _pairs(messages: Sequence[Message]) -> set[tuple[str, int]]:
    """The id and place of each call that is answered, and of each result that answers one."""
    open_calls: dict[str, int] = {}
    paired: set[tuple[str, int]] = set()
    for place, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                open_calls[part.id] = place
            elif isinstance(part, ToolResult) and part.call_id in open_calls:
                paired |= {(part.call_id, open_calls.pop(part.call_id)), (part.call_id, place)}
    return paired


def _is_paired(part: Part, place: int, paired: set[tuple[str, int]]) -> bool:
    if isinstance(part, ToolCall):
        return (part.id, place) in paired
    return not isinstance(part, ToolResult) or (part.call_id, place) in paired


def _taken_out(place: int, parts: Sequence[Part], kept: Sequence[Part]) -> Problem:
    gone = next(part for part in parts if part not in kept)
    rule = "call-without-result" if isinstance(gone, ToolCall) else "result-without-call"
    return Problem(f"messages[{place}]", rule, "a call and its result go together", "what stood alone was taken out")
