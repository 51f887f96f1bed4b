"""The `ToolResult` strategy, which shortens old tool results: they are most of an agent's conversation."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, Final

import attrs

from .. import summarizers
from ..checks import count, made
from ..index import GroupKind, MessageGroup, MessageIndex, Replace, Rewrite
from ..messages import Part, ToolResultPart
from ..selectors import Selector, as_selector, last
from ..triggers import always, never
from .base import CompactionStrategy, Steps, gain
from .tool_styles import Collapse, ToolStyle

_DENIED_CHARS: Final = 160  # fewer than the styles of the presets leave of any result


@attrs.frozen
class ToolResult(CompactionStrategy):
    """Shortens tool-call groups, oldest first, until ``target`` holds; other messages stay.

    Of a result that tells why the user denied the call, the style gets only that, in at most 160 characters.

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

    style: ToolStyle = attrs.field(factory=Collapse, validator=made("a style"))
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
            if group.asks_user:
                continue  # what a person answers is not shortened
            told = _with_denials(group)
            edit = shorten(told) or (None if told is group else Rewrite(group, told.messages, "an old tool result"))
            if edit is None:
                continue
            freed = gain(index, [group], edit.messages)
            if freed <= 0:
                continue
            held.append(edit)
            saved += freed
            if saved >= self.at_least:
                yield from (ready for ready in held)
                held.clear()


def _with_denials(group: MessageGroup) -> MessageGroup:
    """Return the group with the results that tell why the user denied the call cut to that; itself without any."""
    messages = tuple([message.with_parts(_cut_to_denial) for message in group.messages])
    return group if all(map(is_, messages, group.messages)) else attrs.evolve(group, messages=messages)


def _cut_to_denial(part: Part) -> Part:
    if not isinstance(part, ToolResultPart) or not (told := summarizers.denial_in(part.text)):
        return part
    text = summarizers.one_line(f"{summarizers.DENIAL}: {told}", _DENIED_CHARS)
    return part if len(text) >= len(part.text) else attrs.evolve(part, text=text)
