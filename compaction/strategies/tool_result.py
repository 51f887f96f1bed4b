"""The `ToolResult` strategy, which shortens old tool results: they are most of an agent's conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from .. import summarizers
from ..checks import count, made
from ..index import GroupKind, MessageGroup, MessageIndex, Replace, Rewrite
from ..messages import Message, Part, TextPart, ToolResultPart
from ..selectors import Selector, as_selector, last
from ..triggers import always, never
from .base import CompactionStrategy, Steps, gain
from .tool_styles import Collapse, Shorten, ToolStyle

_DENIED_CHARS: Final = 160  # fewer than the styles of the presets leave of any result
_REASON: Final = "the oldest go first; why the user denied a call stays"


@attrs.frozen
class ToolResult(CompactionStrategy):
    """Shortens tool-call groups, oldest first, until ``target`` holds; other messages stay.

    Where a style would lose why the user denied a call, at most 160 characters of the result stay, with that reason.

    Cost: O(messages), plus O(texts that are shortened).

    Args:
        style: The way of shortening: `Collapse`, `Clear`, `HeadTail`, `Dedupe`, or any `ToolStyle`.
        trigger: When to run.
        target: When to stop; evaluated before each group.
        keep: The groups that do not change; by default the last 2, as in Agent Framework's documentation.
        at_least: Tokens, >= 0. A run that would free fewer changes nothing, because every change breaks the provider's prompt
            cache.

    Raises:
        ConfigurationError: If ``at_least`` is below 0, or ``style`` is a class.

    >>> from compaction.strategies import Clear
    >>> ToolResult(Clear(min_chars=500), keep=last(turns=1)).style
    Clear(placeholder='[Old tool output cleared to save context space]', min_chars=500, inputs=())
    """

    style: ToolStyle = attrs.field(factory=Collapse, validator=made("a style", Callable))
    keep: Selector = attrs.field(default=last(groups=2), converter=as_selector, kw_only=True)
    at_least: int = attrs.field(default=0, validator=count(), kw_only=True)

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "target": never, "at_least": 0}

    def edits(self, index: MessageIndex) -> Steps:
        held: list[Replace | Rewrite] = []
        saved = 0
        shorten = self.style(index)
        for group in self.rewritable(index, GroupKind.TOOL_CALL):
            if not held and self.target(index):
                return
            edit = None if group.asks_user else shorten(group)  # what a person answers is not shortened
            if edit is None:
                continue
            edit = _with_reasons(group, edit, shorten)
            freed = gain(index, [group], edit.messages)
            if freed <= 0:
                continue
            held.append(edit)
            saved += freed
            if saved >= self.at_least:
                yield from (ready for ready in held)
                held.clear()


def denials_of(index: MessageIndex) -> dict[int, Rewrite | None]:
    """Return the edits that cut the results of calls to why the user denied them, by the id of the group; O(groups).

    ``None`` if that is not shorter, and for a call that is collapsed already.
    """
    found: dict[int, Rewrite | None] = {}
    for group in index.included_groups:
        if group.is_collapsed and any(map(summarizers.extractive.denial_in, _outcomes(group.messages[0].text))):
            found[group.id] = None
        elif group.kind is GroupKind.TOOL_CALL and _reasons(group):
            cut = _cut_to_reasons(group)
            is_shorter = index.is_rewritable(group) and gain(index, [group], cut) > 0
            found[group.id] = Rewrite(group, cut, _REASON) if is_shorter else None
    return found


def _outcomes(collapsed: str) -> list[str]:
    """Return the outcomes in the lines of a collapsed call, ``name(arguments) -> outcome``."""
    return [part for line in collapsed.split("\n") for part in line.split(" -> ")[1:]]


def _with_reasons(group: MessageGroup, edit: Replace | Rewrite, shorten: Shorten) -> Replace | Rewrite:
    """Return an edit that keeps why the user denied a call, if the given edit would lose that."""
    told = _reasons(group)
    parts = [part for message in filter(None, edit.messages if told else ()) for part in message.parts]
    left = " ".join([part.text for part in parts if isinstance(part, TextPart | ToolResultPart)])
    if all(reason.rstrip(" .…") in " ".join(left.split()) for reason in told):
        return edit
    # the style gets results such as "The result says why the call was denied: not on main", and shortens them if it can
    cut = attrs.evolve(group, messages=_cut_to_reasons(group))
    return shorten(cut) or Rewrite(group, cut.messages, edit.reason)


def _reasons(group: MessageGroup) -> set[str]:
    """Return the reasons that the results of a group tell, without the empty ones."""
    return {reason for message in group.messages for result in message.tool_results() if (reason := _reason(result))}


def _cut_to_reasons(group: MessageGroup) -> tuple[Message, ...]:
    return tuple([message.with_parts(_cut_to_reason) for message in group.messages])


def _reason(result: ToolResultPart) -> str:
    """Return the beginning of what a result tells as the reason why the call was denied; empty if it tells none."""
    told = summarizers.extractive.denial_in(result.text)
    return told and summarizers.extractive.one_line(told, _DENIED_CHARS - len(summarizers.extractive.DENIAL) - 2)


def _cut_to_reason(part: Part) -> Part:
    if not isinstance(part, ToolResultPart) or not (reason := _reason(part)):
        return part
    return attrs.evolve(part, text=f"{summarizers.extractive.DENIAL}: {reason}")
