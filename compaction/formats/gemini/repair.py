"""Repair a list of contents for the Gemini API, and report every change.

First each content is repaired by itself, where that adds nothing it did not say. Then calls and responses are paired: one that
answers nothing is removed, a late one moves to its call, and a call without a response gets a stub that says so. Calls at the
very end stay open, because they may still be answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ..base import Repair
from ..wire import NOT_RECORDED, Changes, fields_of, items_of, same
from .fields import call_body, content_role, name_of, pairing_key, parts_of, result_body
from .rules import is_empty_part, validate

__all__ = ["repair"]

_REMOVED: Final = "the response was removed"


def repair(raws: Sequence[Any]) -> Repair:
    """Return a list without problems, except for those that only invented content could fix; O(parts).

    Args:
        raws: Contents as dictionaries or objects of the ``google-genai`` package; not changed.

    Returns:
        The new list, in which what needed nothing is the same object. A change names its place in ``raws`` and the rule that
        was broken, and its remedy is what was done; ``remaining`` is what `validate` finds in the new list, with places in it.

    >>> lost = {"functionResponse": {"name": "now", "response": {"result": "noon"}}}
    >>> result = repair([{"role": "user", "parts": [lost, {"text": "hi"}]}])
    >>> result.messages
    [{'role': 'user', 'parts': [{'text': 'hi'}]}]
    >>> [(change.where, change.rule, change.remedy) for change in result.changes]
    [('messages[0].parts[0]', 'result-without-call', 'the response was removed')]
    """
    changes = Changes()
    contents = [(index, each) for index, raw in enumerate(raws) for each in _repaired(index, raw, changes)]
    messages = [raw for _, raw in _joined(_Pairing(changes).run(contents), changes)]
    return Repair(messages, changes.in_order(), tuple(validate(messages)))


# ------------------------------------------------------------------------ one content


def _repaired(index: int, raw: Any, changes: Changes) -> list[Any]:
    """Return the content, repaired if possible; none if nothing is left of it."""
    fields = fields_of(raw)
    if fields is None:
        return [raw]
    given = fields.get("parts")
    parts = () if given is None else items_of(given)
    if parts is None and (isinstance(given, str) or fields_of(given) is not None):
        changes.add(index, ".parts", "malformed-content", "it is one part, not a list", "it was put into a list")
        parts, raw = (given,), {**fields, "parts": [given]}
    if parts is None:
        return [raw]
    kept = [each for position, part in enumerate(parts) for each in _repaired_part(index, position, part, changes)]
    if not kept:
        changes.add(index, "", "no-parts", "it says nothing", "the content was removed")
        return []
    if not same(kept, parts):
        raw = {**(fields_of(raw) or fields), "parts": kept}
    if fields.get("role") == "assistant":
        changes.add(index, ".role", "unknown-role", "the model's role is 'model' here", "it was renamed")
        raw = {**(fields_of(raw) or fields), "role": "model"}
    return [raw]


def _repaired_part(index: int, position: int, part: Any, changes: Changes) -> list[Any]:
    """Return the part, repaired if possible; none for one that says nothing."""
    place = f".parts[{position}]"
    if isinstance(part, str) and part:
        changes.add(index, place, "malformed-part", "it is a bare string", "it was made a text part")
        return [{"text": part}]
    fields = fields_of(part)
    if part is None or part == "" or (fields is not None and is_empty_part(fields)):
        changes.add(index, place, "empty-part", "it says nothing", "the part was removed")
        return []
    return [part]


def _calls(raw: Any) -> list[Mapping[str, Any]]:
    fields = fields_of(raw) or {}
    parts = parts_of(fields) if content_role(fields) == "model" else ()
    return [body for part in parts if (body := call_body(part)) is not None]


def _joined(contents: Sequence[tuple[int, Any]], changes: Changes) -> list[tuple[int, Any]]:
    """Return the contents, with calls joined to the words of the model before them."""
    joined: list[tuple[int, Any]] = []
    for index, raw in contents:
        joined.append((index, raw))
        if not _calls(raw) or not _are_words(joined[-2:-1]):
            continue
        changes.add(index, "", "misplaced-call", "it follows the model's words", "it was put into one content with these")
        while _are_words(joined[-2:-1]):
            (first, before), (_, after) = joined[-2:]
            said = fields_of(before) or {}
            joined[-2:] = [(first, {**said, "parts": [*parts_of(said), *parts_of(fields_of(after) or {})]})]
    return joined


def _are_words(contents: Sequence[tuple[int, Any]]) -> bool:
    """Whether these are contents of the model, one at least, that make no calls."""
    return bool(contents) and all(content_role(fields_of(raw) or {}) == "model" and not _calls(raw) for _, raw in contents)


# ------------------------------------------------------------------------ pairs


@attrs.define(eq=False)
class _Slot:
    """A call that a response may answer."""

    call: Mapping[str, Any]
    answered: bool = False

    @property
    def stub(self) -> dict[str, Any]:
        """Return a response that says it was not recorded."""
        body = {"name": name_of(self.call), "response": {"error": NOT_RECORDED}}
        return {"functionResponse": {"id": self.call["id"], **body} if self.call.get("id") else body}


@attrs.define(eq=False)
class _Turn:
    """A content with calls, and the responses that are put into the content after it."""

    index: int
    slots: list[_Slot]
    late: list[Any] = attrs.field(factory=list[Any])
    pending: bool = False

    def answers(self, changes: Changes) -> list[Any]:
        """Return the late responses, and a stub for every call without one."""
        left = [] if self.pending else [slot for slot in self.slots if not slot.answered]
        for slot in left:
            text = f"the call of {name_of(slot.call)!r} has no response"
            done = "a response was added that says it was not recorded"
            changes.add(self.index, "", "call-without-result", text, done)
        return [*self.late, *[slot.stub for slot in left]]


@attrs.define(eq=False)
class _Placed:
    """A content that stays, its responses, and the turn directly before it that they answer."""

    index: int
    raw: Any
    results: list[Any]
    others: list[Any]
    answers: _Turn | None = None


class _Pairing:
    """Puts every response into the content after its call. Holds state: the calls a later response may still answer."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.open: dict[str, list[tuple[_Turn, _Slot]]] = {}

    def run(self, contents: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        placed: list[_Placed | _Turn] = []
        turn: _Turn | None = None
        for place, (index, raw) in enumerate(contents):
            fields = fields_of(raw) or {}
            parts = parts_of(fields)
            if content_role(fields) != "model" and any(result_body(part) is not None for part in parts):
                item = self.responses(index, raw, parts, turn)
                self.leave(turn, pending=place + 1 == len(contents) and not item.others)
                placed.append(item)
                turn = None
                continue
            if turn is not None:
                placed.append(turn)
            self.leave(turn, pending=False)
            turn = _Turn(index, [_Slot(body) for body in calls]) if (calls := _calls(raw)) else None
            placed.append(_Placed(index, raw, [], [raw]))
        if turn is not None:
            turn.pending = True
        return [each for item in placed for each in self.written(item)]

    def responses(self, index: int, raw: Any, parts: Sequence[Any], turn: _Turn | None) -> _Placed:
        """Sort the parts of a content: its responses go to their calls, the rest stays."""
        waiting: dict[str, deque[_Slot]] = {}
        for slot in [] if turn is None else turn.slots:
            waiting.setdefault(pairing_key(slot.call), deque()).append(slot)
        item = _Placed(index, raw, [], [], turn)
        for position, part in enumerate(parts):
            body = result_body(part)
            if body is None:
                item.others.append(part)
            elif waiting.get(pairing_key(body)):
                waiting[pairing_key(body)].popleft().answered = True
                item.results.append(part)
            else:
                self.move_or_remove(index, position, part, body)
        return item

    def move_or_remove(self, index: int, position: int, part: Any, body: Mapping[str, Any]) -> None:
        """Move a late response to its call; remove one that has no call."""
        place, calls = f".parts[{position}]", self.open.get(pairing_key(body))
        if not calls:
            text = f"no call of {name_of(body)!r} waits for it"
            self.changes.add(index, place, "result-without-call", text, _REMOVED)
            return
        turn, slot = calls.pop()
        slot.answered = True
        turn.late.append(part)
        text = f"it stands apart from the call of {name_of(body)!r}"
        self.changes.add(index, place, "result-without-call", text, "the response was moved to its call")

    def leave(self, turn: _Turn | None, *, pending: bool) -> None:
        """End a turn; a later response may still answer its open calls."""
        if turn is None:
            return
        turn.pending = pending
        for slot in reversed(turn.slots):
            if not slot.answered:
                self.open.setdefault(pairing_key(slot.call), []).append((turn, slot))

    def written(self, item: _Placed | _Turn) -> list[tuple[int, Any]]:
        """Return the contents that an item has become; none if all its parts were moved."""
        if isinstance(item, _Turn):
            answers = item.answers(self.changes)
            return [(item.index, {"role": "user", "parts": answers})] if answers else []
        if item.others and item.others[0] is item.raw:
            return [(item.index, item.raw)]
        fields = fields_of(item.raw) or {}
        late = [] if item.answers is None else item.answers.answers(self.changes)
        parts = [*item.results, *late, *item.others]
        if same(parts, parts_of(fields)) or (not late and len(parts) == len(parts_of(fields))):
            return [(item.index, item.raw)]
        return [(item.index, {**fields, "parts": parts})] if parts else []
