"""The styles of `ToolResult`: ways of shortening a tool-call group.

A style is called with the index, and returns a function that is called with each group that may change. The function returns an
edit, or ``None`` if it cannot shorten the group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol, TypeAlias, cast

import attrs

from ..checks import count
from ..errors import ConfigurationError
from ..index import COLLAPSED_BY, NO_CALL, MessageGroup, MessageIndex, Replace, Rewrite, collapsed_text, marked, rewritten_parts
from ..messages import Part, TextPart, ToolCallPart, ToolResultPart
from .cut_middle import cut_middle

Shorten: TypeAlias = Callable[[MessageGroup], Replace | Rewrite | None]
"""A function that returns the edit that shortens a tool-call group; ``None`` if it cannot be shortened."""


class ToolStyle(Protocol):
    """A way of shortening old tool results."""

    def __call__(self, index: MessageIndex) -> Shorten:
        """Read the whole view, O(messages), and return a function that shortens one group, O(its texts)."""
        ...


def _rewritten(group: MessageGroup, change: Callable[[ToolResultPart], ToolResultPart], reason: str) -> Rewrite | None:
    """Return the edit that changes the results of a group; ``None`` if no result changes."""
    return rewritten_parts(group, lambda part: change(part) if isinstance(part, ToolResultPart) else part, reason)


def _tool_patterns(value: object) -> tuple[str, ...]:
    """Return names of tools, or patterns of names, as a tuple, whatever list they are in."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigurationError(f"names of tools must be a list, such as ['read_file'] (got {value!r})")
    return tuple(map(str, cast("Iterable[object]", value)))


def _calls_one_of(call: ToolCallPart, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(call.name, pattern) for pattern in patterns)


_CLEARED_INPUT: Final = "[Old tool input cleared]"


@attrs.frozen(kw_only=True)
class Clear:
    """Replaces the text of results with a placeholder; the calls and the messages stay.

    With ``inputs``, the calls stay too, but long texts in their arguments are replaced. The arguments keep their form: a JSON
    object has the same keys, and values of the same types.

    Args:
        placeholder: The text in place of a result; by default that of Hermes Agent's documentation.
        min_chars: Results, and texts in arguments, of at most this many characters stay.
        inputs: The tools of whose calls the arguments are shortened too, by name or pattern: ``["write_file"]``, or ``["*"]``
            for all. Tools that the provider runs itself are never among them.

    >>> from compaction import compact_sync, nothing
    >>> from compaction.strategies import ToolResult
    >>> written = json.dumps({"path": "a.py", "content": "x = 1 " * 99})
    >>> call = {"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": written}}
    >>> chat = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    >>> clear = ToolResult(Clear(inputs=["write_*"]), keep=nothing)
    >>> compact_sync(chat, clear, counter="chars/4").messages[0]["tool_calls"][0]["function"]["arguments"]
    '{"path": "a.py", "content": "[Old tool input cleared]"}'
    """

    placeholder: str = "[Old tool output cleared to save context space]"
    min_chars: int = attrs.field(default=200, validator=count(1))
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_tool_patterns)

    def __call__(self, index: MessageIndex) -> Shorten:
        return self._shortened

    def _shortened(self, group: MessageGroup) -> Rewrite | None:
        of_provider = {id(part) for each in group.messages if each.begins or each.resumes for part in each.tool_calls()}
        reason = "an old tool call" if self.inputs else "an old tool result"
        return rewritten_parts(group, lambda part: part if id(part) in of_provider else self._cleared(part), reason)

    def _cleared(self, part: Part) -> Part:
        if isinstance(part, ToolResultPart) and part.text != self.placeholder:
            is_short = len(part.text) <= self.min_chars and not part.media
            return part if is_short else attrs.evolve(part, text=self.placeholder, media=())
        if isinstance(part, ToolCallPart) and _calls_one_of(part, self.inputs):
            arguments = self._cleared_arguments(part.arguments)
            return part if arguments == part.arguments else attrs.evolve(part, arguments=arguments)
        return part

    def _cleared_arguments(self, arguments: str) -> str:
        """Return arguments without long texts; arguments that are not JSON are one text."""
        try:
            values: Any = json.loads(arguments)
            cleared = self._cleared_value(values) if isinstance(values, dict) else values
        except ValueError:
            return str(self._cleared_value(arguments))
        except RecursionError:
            return arguments
        return arguments if cleared == values else json.dumps(cleared, ensure_ascii=False)

    def _cleared_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._cleared_value(each) for name, each in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return list(map(self._cleared_value, cast("list[object]", value)))
        is_long = isinstance(value, str) and len(value) > max(self.min_chars, len(_CLEARED_INPUT))
        return _CLEARED_INPUT if is_long else value


@attrs.frozen(kw_only=True)
class HeadTail:
    r"""Cuts the middle out of long results, and notes how much was cut.

    Args:
        chars: Characters that stay, two thirds at the start, one third at the end; whole lines where possible.
        values: Characters that the note may have for exact values of the middle, such as paths, identifiers and numbers, that
            do not stand in what stays; 0 for none. O(characters of the middle).

    >>> from compaction import compact_sync, nothing
    >>> from compaction.strategies import ToolResult
    >>> lines = "\n".join(["first line", *["nothing here"] * 9, "moved to src/app.py", *["nothing here"] * 9, "last line"])
    >>> call = {"id": "c1", "type": "function", "function": {"name": "log", "arguments": "{}"}}
    >>> chat = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": lines}]
    >>> shorten = ToolResult(HeadTail(chars=40, values=60), keep=nothing)
    >>> print(compact_sync(chat, shorten, counter="chars/4").messages[1]["content"])
    first line
    nothing here
    [... 242 characters cut; values in them: src/app.py ...]
    last line
    """

    chars: int = attrs.field(default=2_000, validator=count(1))
    values: int = attrs.field(default=0, validator=count())

    def __call__(self, index: MessageIndex) -> Shorten:
        return lambda group: _rewritten(group, self._cut, "a long tool result")

    def _cut(self, result: ToolResultPart) -> ToolResultPart:
        cut = cut_middle(result.text, self.chars, values=self.values)
        return result if cut is result.text else attrs.evolve(result, text=cut)


_SAME: Final = "[Same output as the later {}]"
_OLDER: Final = "[Older than the output of the later {}]"


@attrs.frozen(kw_only=True)
class Dedupe:
    """Replaces a result that a later call repeats exactly with a note that names that call.

    With ``reads``, an older reading of the same thing is replaced too, even if the newer result differs.

    Args:
        min_chars: Results of fewer characters stay.
        reads: The tools that read something, by name or pattern: ``["read_file"]``. Of their calls with equal arguments, the
            newest result stays. A call for the same file with other arguments, such as other lines, is another one. A failed
            call replaces no result.

    >>> Dedupe(reads=["read_*"])
    Dedupe(min_chars=200, reads=('read_*',))
    """

    min_chars: int = attrs.field(default=200, validator=count(1))
    reads: tuple[str, ...] = attrs.field(default=(), converter=_tool_patterns)

    def __call__(self, index: MessageIndex) -> Shorten:
        notes = self._notes(index)

        def noted(result: ToolResultPart) -> ToolResultPart:
            known, note = notes.get(id(result), (None, ""))
            return attrs.evolve(result, text=note, media=()) if known is result else result

        return lambda group: _rewritten(group, noted, "a later call has the same result, or a newer one")

    def _notes(self, index: MessageIndex) -> dict[int, tuple[ToolResultPart, str]]:
        """Return each result that is repeated or older, and the note in its place, by the identity of the result.

        The results are read from the newest on, so that all that is known of others is later.
        """
        notes: dict[int, tuple[ToolResultPart, str]] = {}
        calls_with: dict[str, str] = {}  # a text: the last call with this result
        readings: dict[str, str] = {}  # what is read: the last call that read it
        possible: set[str] = set()  # the notes so far: a result with this text is a note already
        for result, call in reversed([pair for group in index.included_groups for pair in _results(group)]):
            name = "tool result" if call is None else brief_call(call)
            read = None if call is None or not _calls_one_of(call, self.reads) else _identity(call)
            if len(result.text) >= self.min_chars and not result.media and result.text not in possible:
                if result.text in calls_with:
                    notes[id(result)] = result, _SAME.format(calls_with[result.text])
                elif read in readings:
                    notes[id(result)] = result, _OLDER.format(readings[read])
                calls_with.setdefault(result.text, name)
            if read is not None and not result.failed:
                readings.setdefault(read, name)
            possible |= {_SAME.format(name), _OLDER.format(name)}
        return notes


def _results(group: MessageGroup) -> Iterator[tuple[ToolResultPart, ToolCallPart | None]]:
    """Yield the results of a group, each with the call that it answers."""
    calls = calls_by_id(group)
    for message in group.messages:
        for result in message.tool_results():
            yield result, calls.get(result.call_id)


def calls_by_id(group: MessageGroup) -> dict[str, ToolCallPart]:
    """Return the calls of a group by their ids."""
    return {call.id: call for message in group.messages for call in message.tool_calls()}


def _identity(call: ToolCallPart) -> str:
    """Return the name and the arguments of a call, the same for arguments in another order."""
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return f"{call.name} {call.arguments}"
    return f"{call.name} {json.dumps(arguments, sort_keys=True)}"


@attrs.frozen(kw_only=True)
class Collapse:
    """Replaces a group with one message: the assistant's texts, then a line for each call with its outcome.

    A group in which the user says something beside the results keeps its messages; only the results are shortened.

    Args:
        outcome_chars: Characters of each result that stay; the middle is cut out.
        argument_chars: Characters of each call's arguments that stay.
    """

    outcome_chars: int = attrs.field(default=160, validator=count(1))
    argument_chars: int = attrs.field(default=80, validator=count(1))

    def __call__(self, index: MessageIndex) -> Shorten:
        apart = index.interleaved()

        def collapsed(group: MessageGroup) -> Replace | Rewrite | None:
            if any(message.said for message in group.messages):
                return _rewritten(group, self._cut, "an old tool result")
            if group.id in apart or not index.is_removable(group):
                return None
            messages = index.format.placeholder(marked(self.describe(group), by=COLLAPSED_BY))
            return Replace(group, messages, "an old tool call", read=())

        return collapsed

    def _cut(self, result: ToolResultPart) -> ToolResultPart:
        outcome = self._outcome(result)
        return result if len(outcome) >= len(result.text) and not result.media else attrs.evolve(result, text=outcome, media=())

    def describe(self, group: MessageGroup) -> str:
        """Return the assistant's texts in the group, and one line for each call: name, short arguments, outcome."""
        said = [part.text for message in group.messages for part in message.parts if isinstance(part, TextPart) and part.text]
        results: dict[str, list[ToolResultPart]] = {}
        for message in group.messages:
            for result in message.tool_results():
                results.setdefault(result.call_id, []).append(result)
        lines = [self._line(call, results) for message in group.messages for call in message.tool_calls()]
        lines += [f"{NO_CALL} -> {self._outcome(result)}" for left in results.values() for result in left]
        return collapsed_text(said, lines)

    def _line(self, call: ToolCallPart, results: dict[str, list[ToolResultPart]]) -> str:
        waiting = results.get(call.id)
        outcome = self._outcome(waiting.pop(0)) if waiting else "no result"
        return f"{brief_call(call, self.argument_chars)} -> {outcome}"

    def _outcome(self, result: ToolResultPart) -> str:
        media = [f"[{media.kind}]" for media in result.media]
        text = result.text if result.text.strip() else "(empty)"
        return _shortened(" ".join([text, *media]), self.outcome_chars)  # together, so that a second time shortens nothing


def brief_call(call: ToolCallPart, chars: int = 80) -> str:
    """Return a call as ``name(key=value, ...)``, with the arguments shortened to ``chars`` characters.

    >>> brief_call(ToolCallPart("call_1", "read_file", '{"path": "a.py", "lines": 20}'))
    'read_file(path=a.py, lines=20)'
    """
    return f"{call.name}({_shortened(_arguments(call.arguments), chars)})"


def _arguments(text: str) -> str:
    """Return JSON arguments as ``key=value, ...``, any other text unchanged."""
    try:
        arguments: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(arguments, dict):
        return text
    pairs = cast("dict[str, Any]", arguments).items()
    shown = [(key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for key, value in pairs]
    return ", ".join([f"{key}={value}" for key, value in shown])


def _shortened(text: str, chars: int) -> str:
    """Return the text on one line, without its middle if it is too long."""
    if len(text) > 8 * chars:
        text = text[: 4 * chars] + " ... " + text[-4 * chars :]
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    head = chars * 2 // 3
    return f"{line[:head].rstrip()} ... {line[len(line) - (chars - head) :].lstrip()}"
