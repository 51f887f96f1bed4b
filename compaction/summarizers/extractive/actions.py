"""The assistant's actions: each call with its outcome in one line, and the files it named.

A line per call costs little and shows what must not be done again. A failed call keeps the message of its error; a repeated
call counts with its last outcome.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from ...messages import Message, ToolCallPart, ToolResultPart
from .sentences import one_line

_CALL_CHARS: Final = 100
_OUTCOME_CHARS: Final = 60
_ERROR_CHARS: Final = 160
_BARE: Final = 12
_VALUE_CHARS: Final = 80
_SCANNED: Final = 8_000
_MOST_VALUES: Final = 200
_CHANGING: Final = re.compile(
    r"add|append|apply|book|build|cancel|chmod|commit|copy|cp|create|delete|deploy|edit|insert|install|make|merge|mkdir|modify|"
    r"move|mv|patch|pay|post|push|put|refund|remove|rename|replace|rm|save|send|set|submit|touch|update|upload|write"
)
_READING: Final = re.compile(
    r"browse|calculate|cat|check|compute|count|describe|dir|fetch|find|get|goto|grep|head|list|load|locate|look|ls|open|print|"
    r"query|read|recall|retrieve|scroll|search|show|stat|status|tail|think|view"
)
_VERB: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_COMMANDS: Final = ("command", "cmd", "action", "code", "script")
_REDIRECT: Final = re.compile(r"(?<![0-9&=<>-])>{1,2}\s*[\w./~$]|\bsed\s+-i|\btee\s")
_PREFIX: Final = re.compile(r"(?<!\s)(?:\s*(?:cd\s+[^\s;&]+\s*(?:&&|;)|sudo\s|(?<![A-Z_])[A-Z_]+=\S{0,500}\s))+\s*")
_PATH: Final = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}|(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]+/?"
)
_ERROR: Final = re.compile(
    r"^[ \t]*(?:E[ \t]{2,}|\[)?(?:(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Fault)\b[ \t]*[:(\]]|error\b[ \t]*[:\[(]|"
    r"ERROR\b|Error\b|fatal\b:|FATAL\b|FAILED\b|panic:|npm ERR!|Traceback \(most recent|오류|에러|실패|错误|錯誤|失败|失敗|"
    r"异常|異常|エラー)|command not found\b|No such file or directory\b|Permission denied\b"
    r"|^[ \t]*exit(?:ed with)?[ \t]*(?:code|status)?[ \t]*[:=]?[ \t]*[1-9]"
    r"|\(execution failed\)|\"errors?\"[ \t]*:[ \t]*[\"\[{]",
    re.MULTILINE,
)
_RAISED: Final = re.compile(r"^(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|Interrupt|Fault)\b.*$", re.MULTILINE)
_TELLING: Final = re.compile(
    r"^.*\b(?:passed|failed|succeeded|successfully|completed?|created|updated|written|saved|deleted|installed|matches|"
    r"exit code)\b.*$",
    re.MULTILINE | re.IGNORECASE,
)
_CLEARED: Final = re.compile(r"\[[A-Z][a-z][^\]\n\"{}]{8,120}\]")


class Effect(enum.Enum):
    """The effect of a call, judged by its name and command."""

    CHANGES = "changed"
    READS = "read"
    RUNS = "ran"


@attrs.frozen
class Action:
    """A call and its outcome.

    Args:
        call: The call, as ``name(value, value)``.
        outcome: Its result in a few words, empty if the result is empty; ``None`` without a result.
        failed: Whether the result reports an error; ``outcome`` is then the error's message.
        effect: Its effect.
        paths: Files and folders that its arguments name.
    """

    call: str
    outcome: str | None
    failed: bool
    effect: Effect
    paths: tuple[str, ...]

    @property
    def line(self) -> str:
        """The action in one line."""
        return f"{self.call} -> {'no result' if self.outcome is None else self.outcome or 'no output'}"


def actions_of(messages: Sequence[Message]) -> Iterator[Action]:
    """Yield the actions of one group's messages: its calls in order, each with its result.

    >>> from compaction.formats import openai_chat
    >>> call = {"id": "1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "rm build/app.o"}'}}
    >>> raws = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    >>> raws.append({"role": "tool", "tool_call_id": "1", "content": "rm: build/app.o: Permission denied"})
    >>> [action] = actions_of([openai_chat.read(raw) for raw in raws])
    >>> action.line, action.failed, action.effect, action.paths
    ('shell(rm build/app.o) -> rm: build/app.o: Permission denied', True, <Effect.CHANGES: 'changed'>, ('build/app.o',))
    """
    results: dict[str, list[ToolResultPart]] = {}
    for message in messages:
        for result in message.tool_results():
            results.setdefault(result.call_id, []).append(result)
    for message in messages:
        for call in message.tool_calls():
            waiting = results.get(call.id)
            yield _action(call, waiting.pop(0) if waiting else None)


def _action(call: ToolCallPart, result: ToolResultPart | None) -> Action:
    values = list(argument_values(call.arguments))
    brief = f"{call.name}({one_line(', '.join(one_line(value, _VALUE_CHARS) for _, value in values), _CALL_CHARS)})"
    error = None if result is None else error_in(result.text)
    command = next((value for key, value in values if key in _COMMANDS), "")
    effect = _effect(call.name, command)
    outcome = None if result is None else error or _outcome(result, effect)
    return Action(brief, outcome, error is not None, effect, tuple(_paths(values)))


def argument_values(arguments: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a call's arguments, flattened, each with its key; the whole text if it is not JSON.

    >>> list(argument_values('{"city": "Oslo", "days": [1, 2], "units": {"of": "C"}}'))
    [('city', 'Oslo'), ('days', '1'), ('days', '2'), ('of', 'C')]
    """
    try:
        loaded: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        loaded = arguments
    left: list[tuple[str, Any]] = [("", loaded)]
    given = 0
    while left and given < _MOST_VALUES:
        key, value = left.pop()
        if isinstance(value, dict):
            pairs: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            left.extend(reversed([(str(name), each) for name, each in pairs.items()]))
        elif isinstance(value, list):
            several: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            left.extend(reversed([(key, each) for each in several]))
        elif value is not None and value != "":
            given += 1
            yield key, value if isinstance(value, str) else json.dumps(value)


def error_in(text: str) -> str | None:
    r"""Return the message of the error that a result reports, in one line; ``None`` if it reports none.

    Only the first and last few thousand characters are searched, and only lines that start like an error: source code that
    raises an error is not one.

    >>> error_in("Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'id'")
    "KeyError: 'id'"
    """
    scanned = text if len(text) <= 2 * _SCANNED else f"{text[:_SCANNED]}\n{text[-_SCANNED:]}"
    match = _ERROR.search(scanned)
    if match is None:
        return None
    if "Traceback" in match[0]:
        raised = list(_RAISED.finditer(scanned, match.end()))
        match = raised[-1] if raised else match
    start = max(scanned.rfind("\n", 0, match.start() + 1) + 1, match.start() - _ERROR_CHARS)
    end = scanned.find("\n", match.end())
    line = scanned[start:] if end < 0 else scanned[start:end]
    if len(line.strip()) < _BARE and end >= 0:
        line = f"{line} {scanned[end:].strip()}"
    return one_line(line, _ERROR_CHARS)


def _outcome(result: ToolResultPart, effect: Effect) -> str:
    text = result.text.strip()
    if not text:
        return " ".join(f"[{media.kind}]" for media in result.media)
    if _CLEARED.fullmatch(text):
        return "(output not kept)"
    if len(text) > _OUTCOME_CHARS:
        if text[0] in "[{" or effect is Effect.READS:
            return "ok"
        match = _TELLING.search(text[:_SCANNED])
        text = match[0] if match and len(match[0]) <= 2 * _OUTCOME_CHARS else text.partition("\n")[0]
    return one_line(text, _OUTCOME_CHARS)


def _effect(name: str, command: str) -> Effect:
    """Return the effect that the command's first word suggests, or else the tool's name."""
    if _REDIRECT.search(command[:_SCANNED]):
        return Effect.CHANGES
    for word in [*_VERB.findall(_PREFIX.sub("", command[:_ERROR_CHARS], 1)[:40])[:1], *_VERB.findall(name)]:
        if _CHANGING.fullmatch(word.lower()):
            return Effect.CHANGES
        if _READING.fullmatch(word.lower()):
            return Effect.READS
    return Effect.RUNS


def _paths(values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the files and folders among the arguments: values that are a path, and words of a command's first line."""
    for key, value in values:
        line = value.strip()[: 4 * _CALL_CHARS].partition("\n")[0]
        words = line.split()
        for word in words if key in _COMMANDS or len(words) == 1 else ():
            bare = word.strip("\"'`,;:()[]{}")
            if "://" not in bare and len(bare) <= _ERROR_CHARS and _PATH.fullmatch(bare):
                yield bare
