"""The base of the frameworks' message formats: their rules, repair and comparison.

A framework's message may hold several results. It is therefore validated as the chat messages that a client would make of it,
and a problem is reported at the place of the framework's message. The provider behind the framework is unknown, so the rules
are those of the strictest provider: a view starts with the user, and an answer never follows an answer.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Sequence
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
        chat: list[dict[str, Any]] = []
        owners: list[int] = []
        for place, raw in enumerate(raws):
            expanded = _as_chat(self.read(raw, place))
            chat += expanded
            owners += [place] * len(expanded)

        def owner(found: re.Match[str]) -> str:
            at = int(found[1])
            return f"messages[{owners[at] if at < len(owners) else len(owners)}]"

        return [
            attrs.evolve(problem, where=_PLACE.sub(owner, problem.where), message=_PLACE.sub(owner, problem.message))
            for problem in openai_chat.validate(chat)
        ]

    def repair(self, raws: Sequence[Any]) -> Repair:
        """Remove results without a call and calls without a result, except calls of the last message; O(messages)."""
        messages = [self.read(raw, place) for place, raw in enumerate(raws)]
        paired = _pairs(messages)
        repaired: list[Any] = []
        changes: list[Problem] = []
        for place, message in enumerate(messages):
            last = place == len(messages) - 1
            removed = [part for part in message.parts if _is_alone(part, place, paired, may_be_pending=last)]
            if not removed:
                repaired.append(message.raw)
                continue
            rule = "call-without-result" if isinstance(removed[0], ToolCallPart) else "result-without-call"
            what, done = "a call and its result go together", "the one without the other was removed"
            changes.append(Problem(f"messages[{place}]", rule, what, done))
            if kept := [part for part in message.parts if part not in removed]:
                repaired.append(self.changed(message, kept).raw)
        return Repair(messages=repaired, changes=tuple(changes), remaining=tuple(self.validate(repaired)))

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        """Return the rule that is broken if a call follows nothing or an answer, as the strictest provider requires."""
        if after is None or after.role != "assistant" or not any(after.tool_calls()):
            return None
        return ("misplaced-call", "after") if before is None or before.role == "assistant" else None

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Return whether an answer follows the user, a result, or an instruction that is not the first message."""
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


def as_json_text(value: Any) -> str:
    """Return a value as JSON text, for counting."""
    return json.dumps(value, ensure_ascii=False, default=str)


def media_kind(media_type: str | None) -> str:
    """Return the kind of a `MediaPart` for a media type such as ``"image/png"``."""
    kind = (media_type or "").split("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


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


def _is_alone(part: Part, place: int, paired: set[tuple[str, int]], *, may_be_pending: bool) -> bool:
    if isinstance(part, ToolCallPart):
        return not may_be_pending and (part.id, place) not in paired
    return isinstance(part, ToolResultPart) and (part.call_id, place) not in paired
