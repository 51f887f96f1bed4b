"""The rules that no edit may break, whoever asks for it.

A strategy can be wrong; the conversation must not break. Every edit is judged here before it is applied, and by `joins` for the
neighbours it makes. An edit that is refused is recorded with its rule in words, and the strategy continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..errors import NoProgress, StrategyError
from ..formats import MessageFormat, fields_of
from ..messages import MediaPart, Message, TextPart
from .edits import Drop, Edit, Refusal, Replace, Restore, Rewrite, Together, brief, signature
from .groups import GroupKind, only_reasoning
from .journal import visible_ordinals
from .projection import Projection
from .visibility import Node


def refusal(projection: Projection, format: MessageFormat, edit: Edit, by: str) -> str | None:
    """Return the rule an edit of this strategy would break, or ``None`` if it may happen. O(the groups it names).

    The index judges two things itself, after the edit is applied: that included tokens do not grow, and the joins. A `Together`
    is judged part by part as it is applied, and by its sum.

    Raises:
        StrategyError: If it is not an edit.
    """
    if isinstance(edit, Drop):
        return removal(projection, edit.groups, allow_system=edit.allow_system)
    if isinstance(edit, Replace):
        rule = removal(projection, edit.groups, by=by) or _replacement(format, edit.messages)
        if rule is None and format.judges_joins:
            rule = _within(projection, edit.groups)
        return rule or _parting(projection, edit.groups)
    if isinstance(edit, Rewrite):
        return _rewriting(projection, format, edit)
    if isinstance(edit, Restore):
        return "only the index restores groups, when a late result arrives"
    if not isinstance(edit, Together):
        raise StrategyError(f"{edit!r} is not an edit: apply a Drop, Replace, Rewrite or Together")
    return None if edit.edits else "an edit names at least one group"


def removable(projection: Projection, by: str = "") -> list[int]:
    """Return the groups that the view shows and that may leave it by themselves, in order. O(groups).

    With the name of a strategy, also the summary that it may replace though it stands where the user spoke last.
    """
    grouping = projection.grouping
    kept = {*projection.pinned, grouping.pending, grouping.newest, grouping.last_user, grouping.last_words, grouping.history}
    if grouping.last_marked is not None and not (by and projection.made_by(grouping.last_marked) == by):
        kept.add(grouping.last_marked)
    end = len(projection.source) if grouping.pending is None else grouping.pending
    kinds, system = grouping.kinds, GroupKind.SYSTEM
    return [
        id
        for id in projection.ids()
        if id not in kept and (projection.anchor(id) <= end if id < 0 else id < end and kinds[id] is not system)
    ]


def rewritable(projection: Projection, id: int) -> bool:
    """Whether a group's content may be shortened. O(1)."""
    return _frozen(projection, id) is None


def removal(projection: Projection, ids: Sequence[int], *, allow_system: bool = False, by: str = "") -> str | None:
    """Return why these groups may not all leave the view; ``by`` names the strategy if something replaces them."""
    if not ids:
        return "an edit names at least one group"
    if len(ids) > 1 and len(set(ids)) < len(ids):
        return "an edit names a group once"
    for id in ids:
        if rule := protection(projection, id, allow_system=allow_system, by=by):
            return rule
    if len(ids) >= projection.included.groups:
        return "something is left to send"
    return None


def protection(projection: Projection, id: int, *, allow_system: bool = False, by: str = "") -> str | None:
    """Return why a group may not leave the view by itself; ``None`` if it may; ``by`` as for `removal`. O(1)."""
    if not projection.is_included(id):
        return f"group {id} is not in the view" if projection.exists(id) else f"there is no group {id}"
    grouping = projection.grouping
    if id >= 0 and not allow_system and grouping.kinds[id] is GroupKind.SYSTEM:
        return "system messages stay"
    if id in projection.pinned:
        return "pinned groups stay"
    pending = grouping.pending
    if pending is not None:
        if id == pending:
            return "a call whose result may still come stays"
        if projection.anchor(id) > pending:
            return "what follows a call whose result may still come stays"
    return _newest(projection, id, by)


def _newest(projection: Projection, id: int, by: str) -> str | None:
    """Return why this group may not leave the view though others like it may, before it."""
    grouping = projection.grouping
    if id == grouping.newest:
        return "the newest group stays"
    if id == grouping.history:
        return "the provider's newest summary of what came before stays"
    if id == grouping.last_user or id == grouping.last_words:
        return "the last user message stays"
    if id == grouping.last_marked and not (by and projection.made_by(id) == by):
        return "the last user message stays, though it is marked as a summary"
    return None


def _replacement(format: MessageFormat, messages: Sequence[Message]) -> str | None:
    """Return why these messages cannot stand in place of others."""
    if not 1 <= len(messages) <= 2:
        return "a replacement is one message, or two where roles alternate"
    if any(_structure(message)[1] for message in messages):
        return "a replacement makes no calls and carries no results"
    if any(not isinstance(part, TextPart | MediaPart) for message in messages for part in message.parts):
        return "a replacement holds text and media alone"
    if any(_known_by(message) for message in messages):
        return "a replacement has no id, by which a provider or a host knows other messages"
    return next((problem for message in messages if (problem := format.acceptable(message)) is not None), None)


def _within(projection: Projection, ids: Sequence[int]) -> str | None:
    """Return why no message can stand in place of these groups: it would stand between the messages of one that stays."""
    last, gone = max(ids, key=projection.anchor), set(ids)
    for step in (projection.visibility.before, projection.visibility.after):
        node: Node | None = last
        while node is not None and (node if node < 0 else projection.grouping.group_of[node]) in gone:
            node = step(node)
        if node is None or node < 0:
            continue
        members = projection.ordinals(projection.grouping.group_of[node])
        if members[0] < projection.anchor(last) < members[-1]:
            return "nothing is written between the messages of a group that stays"
    return None


def _parting(projection: Projection, ids: Sequence[int]) -> str | None:
    """Return why no message can stand in place of results that have no call: it would part another call from its results."""
    last = max(ids, key=projection.anchor)
    if last not in projection.grouping.orphans:
        return None
    group_of = projection.grouping.group_of
    call = projection.visibility.before(last)
    while call is not None and _answers(projection, call):
        call = projection.visibility.before(call)
    if call is None or call < 0 or group_of[call] in ids:
        return None
    result: Node | None = last
    while result is not None and _answers(projection, result):
        if group_of[result] == group_of[call]:
            return "a call and the results directly after it stay together"
        result = projection.visibility.after(result)
    return None


def _answers(projection: Projection, node: Node) -> bool:
    """Whether the message at a place carries a result."""
    message = projection.at(node, end=True)
    return message.role == "tool" or message.role == "function" or any(message.tool_results())


def _rewriting(projection: Projection, format: MessageFormat, edit: Rewrite) -> str | None:
    """Return why a group's content may not change like this."""
    id = edit.group
    rule = _frozen(projection, id)
    if rule:
        return rule
    before = [projection.at(ordinal, end=False) for ordinal in visible_ordinals(projection, id)]
    if len(edit.messages) > len(before):
        return "a rewrite gives the messages of its group again, one for one"
    part = before[: len(edit.messages)]
    rule = _same_structure(part, edit.messages, whole=len(edit.messages) == len(before))
    if rule:
        return rule
    for old, new in zip(part, edit.messages, strict=True):
        if new is not None and new is not old and (problem := _worse(format, old, new)) is not None:
            return problem
    current = projection.turn(id) == projection.grouping.turn
    return format.rewrite_problem(part, edit.messages, current=current)


def _worse(format: MessageFormat, old: Message, new: Message) -> str | None:
    """Return the rule of the format that a changed message breaks and the one before did not."""
    if new.format is not format:
        return format.acceptable(new)
    problems = format.message_problems(new.raw)
    if not problems and _says_nothing(new) and not _says_nothing(old):  # some formats take it only as the last of a list
        problems = format.validate([new.raw, format.new("user", "and then?").raw])
    if not problems:
        return None
    known = Counter(problem.rule for problem in format.message_problems(old.raw))
    added = Counter(problem.rule for problem in problems) - known
    return next((f"{problem.message} [{problem.rule}]" for problem in problems if problem.rule in added), None)


def _says_nothing(message: Message) -> bool:
    """Whether there is nothing in a message but blanks."""
    return all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts)


def _frozen(projection: Projection, id: int) -> str | None:
    """Return why this group's content may not change at all."""
    if not projection.exists(id):
        return f"there is no group {id}"
    if projection.excluded(id):
        return f"group {id} is not in the view"
    if projection.kind(id) is GroupKind.SUMMARY and (id < 0 or not projection.is_collapsed(id)):
        return "a summary is replaced, not rewritten"
    if id == projection.grouping.pending:
        return "a call whose result may still come stays as it is"
    if id in projection.pinned:
        return "pinned groups stay as they are"
    return None


def _same_structure(before: Sequence[Message], after: Sequence[Message | None], *, whole: bool) -> str | None:
    """Return why these messages cannot take each other's place."""
    if all(old is new for old, new in zip(before, after, strict=True)):
        return "a rewrite changes something"
    if whole and all(new is None for new in after):
        return "a rewrite leaves something of its group"
    for old, new in zip(before, after, strict=True):
        if new is None and not only_reasoning(old):
            return "only a message that holds nothing but reasoning may be removed by a rewrite"
        if new is not None and (rule := _exchanged(old, new)) is not None:
            return rule
    return None


def _exchanged(old: Message, new: Message) -> str | None:
    """Return why a message cannot take the place of another in its group."""
    if _structure(old) != _structure(new) or (only_reasoning(new) and not only_reasoning(old)):
        return "a rewrite keeps roles, calls and results"
    if _says_nothing(old) and not _says_nothing(new):
        return "a rewrite has nothing to say where nothing was said"
    places = {id(call.raw): place for place, call in enumerate(old.tool_calls()) if call.raw is not None}
    if any(places.get(id(call.raw), place) != place for place, call in enumerate(new.tool_calls())):
        return "a rewrite keeps calls in order"
    if (old.begins, old.resumes) != (new.begins, new.resumes):
        return "a rewrite keeps what the provider runs itself"
    if _known_by(new) not in (None, _known_by(old)):
        return "a rewrite gives a message no other id"
    return None


def _known_by(message: Message) -> object:
    """Return the id in the fields of a message, by which a provider or a host knows it; ``None`` if it has none."""
    return (fields_of(message.raw) or {}).get("id") or None


def _structure(message: Message) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a message's neighbours rely on: its role, and the calls and results in it."""
    links = [("call", call.id + "\n" + call.name) for call in message.tool_calls()]
    links += [("result", result.call_id) for result in message.tool_results()]
    return message.role, tuple(links)


class Refusals:
    """The refusals of a run. Holds state: it grows with each, and is empty when the next run begins.

    Attributes:
        noted: The refusals, in order.
    """

    __slots__ = ("_since_change", "noted")

    def __init__(self) -> None:
        self.noted: list[Refusal] = []
        self._since_change: set[object] = set()

    def note(self, edit: Edit, rule: str, by: str) -> None:
        """Take note that an edit would have broken a rule. O(the groups it names).

        Raises:
            NoProgress: If the same was refused before, nothing changed since, and no other strategy began.
        """
        self.noted.append(Refusal(edit, rule, by))
        asked = signature(edit)
        if asked in self._since_change:
            raise NoProgress(
                f"{by or 'a strategy'} asked again for {brief(edit)}, which was refused: {rule}; skip what apply refuses"
            )
        self._since_change.add(asked)

    def forget(self, edit: Edit) -> None:
        """Take back the refusal of an edit that was applied later."""
        self.noted = [each for each in self.noted if each.edit is not edit]

    def changed(self) -> None:
        """Something changed, or another strategy begins: what was refused may be asked for again."""
        self._since_change.clear()

    def clear(self) -> None:
        """A run begins."""
        self.noted.clear()
        self._since_change.clear()
