"""The base of the frameworks' message formats: their rules, repair and comparison.

A framework's message may hold several results. It is therefore validated as the chat messages that a client would make of it,
and a problem is reported at the place of the framework's message. The provider behind the framework is unknown, so the rules
are those of the strictest provider: a view starts with the user, and an answer never follows an answer.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, ClassVar, Final

import attrs

from ..formats import MessageFormat, Problem, Repair, Side, openai_chat
from ..messages import Message, Part, TextPart

_PLACE: Final = re.compile(r"messages\[(\d+)\]")
_PAIRING: Final = attrs.evolve(openai_chat.book.pairing, anywhere=True, counted=True)  # a late result stays with its call
_REPAIRED: Final = {
    "call-without-result": "the call was removed",
    "result-without-call": "the result was removed",
    "duplicate-result": "the result was removed",
}
"""The rules that are repaired, and how."""


class MessageAdapter(MessageFormat):
    """The base of a framework's message format, for any provider. Stateless.

    Attributes:
        compared: The fields that must be equal for two messages to count as the same.
    """

    compared: ClassVar[tuple[str, ...]]
    writes_as_user = True

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
        chat = _as_chat([self.read(raw, place) for place, raw in enumerate(raws)])

        def owner(found: re.Match[str]) -> str:
            return f"messages[{chat[int(found[1])].place}]"

        problems = openai_chat.validate([each.fields for each in chat])
        return [attrs.evolve(problem, where=_PLACE.sub(owner, problem.where)) for problem in problems]

    def repair(self, raws: Sequence[Any]) -> Repair:
        """Remove results without a call, and calls without a result unless it may still come; O(messages)."""
        messages = [self.read(raw, place) for place, raw in enumerate(raws)]
        chat = _as_chat(messages)
        removed: list[list[Part]] = [[] for _ in messages]
        changes: list[tuple[int, Problem]] = []
        for at, (path, rule, fault) in _PAIRING.problems([each.fields for each in chat]):
            if rule in _REPAIRED:
                place, part = chat[at].place, next((step for step in path if isinstance(step, int)), 0)
                removed[place].append(chat[at].parts[part])
                changes.append((place, Problem(f"messages[{place}]", rule, fault, _REPAIRED[rule])))
        repaired: list[Any] = []
        for message, gone in zip(messages, removed, strict=True):
            kept = [part for part in message.parts if not any(part is each for each in gone)]
            if kept or not gone:
                repaired.append(self.changed(message, kept).raw if gone else message.raw)
        ordered = tuple([change for _, change in sorted(changes, key=itemgetter(0))])
        return Repair(messages=repaired, changes=ordered, remaining=tuple(self.validate(repaired)))

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


def _column(messages: Sequence[dict[str, Any]], field: str) -> list[Any]:
    """Return one field of each message, at C speed if every message has it."""
    try:
        return list(map(itemgetter(field), messages))
    except KeyError:
        return [message.get(field) for message in messages]


@attrs.frozen
class _ChatMessage:
    """A chat message that a client would make of a message, or of one result in it."""

    place: int  # of the message
    fields: dict[str, Any]
    parts: Sequence[Part]  # the calls in it, which the path of a problem numbers, or the result that it is


def _as_chat(messages: Sequence[Message]) -> list[_ChatMessage]:
    return [each for place, message in enumerate(messages) for each in _chat_messages(place, message)]


def _chat_messages(place: int, message: Message) -> list[_ChatMessage]:
    """Return one chat message for each result, and one for the rest."""
    chat = [
        _ChatMessage(place, {"role": "tool", "tool_call_id": result.call_id, "content": result.text}, [result])
        for result in message.tool_results()
    ]
    if message.role == "tool" and chat:
        return chat
    words = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    calls = list(message.tool_calls())
    fields: dict[str, Any] = {"role": message.role, "content": words}
    if calls:
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name or "unnamed", "arguments": call.arguments}}
            for call in calls
        ]
    return [*chat, _ChatMessage(place, fields, calls)]
