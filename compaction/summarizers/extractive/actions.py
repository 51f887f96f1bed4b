"""The assistant's actions: each call in one line with its outcome, the lines of an error, and the rows asked for.

A line per call costs little and shows what must not be done again. A failed call keeps the lines that name its error; a
repeated call counts with its last outcome.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, cast

import attrs

from ...messages import ToolCallPart, ToolResultPart
from .sentences import both_ends, one_line

_CALL_CHARS: Final = 80
_OUTCOME_CHARS: Final = 60
_ERROR_CHARS: Final = 240
_VALUE_CHARS: Final = 80
_SCANNED: Final = 8_000
_MOST_VALUES: Final = 200
_VALUE_OF_OUTCOME: Final = 40  # characters; longer ones say less of an outcome
_ASIDE: Final = frozenset(  # what coding agents hand over beside a command; with other words the call is the same
    {"description", "explanation", "justification", "timeout", "timeout_ms", "max_output_tokens", "yield_time_ms", "workdir"}
)
_READING: Final = re.compile(  # the name of a tool that reads; "open_ticket" does not
    r"(?:^|[ .])(?:get|read|list|ls|search|find|view|fetch|look ?up|check|query|show|grep|glob|browse)(?=[ .]|$)|^open$",
    re.IGNORECASE,
)
_READING_COMMAND: Final = re.compile(
    r"view\b|(?:cd [^;&|]{1,80}&& ?)?(?:cat|head|tail|less|nl|rg|grep|find|ls|sed -n|git (?:diff|log|show|status))\b"
)
_RUNNING: Final = re.compile(r"(?:exec|run|bash|shell|terminal|i?python|code|computer|think|ask|finish|submit)", re.IGNORECASE)
_ENVELOPE: Final = re.compile(  # what coding agents put before a result: "Wall time: 0.1 seconds", "Process exited with code 0"
    r"\A(?:[A-Z][\w ]{2,30}(?:: | with code )[^\n]{0,60}\n){1,8}Output:\n"
    r"(?:Warning: [^\n]{0,200}\n(?:Total [^\n]{0,60}\n)?\n?)?"
)
_EXIT_CODE: Final = re.compile(r"(?:exited with code|exit code:) (-?\d+)", re.IGNORECASE)
_ROW_CHARS: Final = 200
_MOST_ROWS: Final = 400
_MOST_LOGGED: Final = 2  # errors of a log
_MOST_FOUND: Final = 2  # rows that hold the most of what a request names; more of them say that it names none
_CHANGING: Final = re.compile(  # the name or the command of a call that changes something
    r"\b(?:add|append|apply|book|build|cancel|chmod|commit|copy|cp|create|delete|deploy|edit|insert|install|make|merge|mkdir|"
    r"modify|move|mv|patch|pay|post|push|put|refund|remove|rename|replace|rm|save|send|set|submit|touch|update|upload|write|tee|"
    r"sed -i)\b"
    r"|(?<![0-9&=<>-])>{1,2}\s*[\w./~$]",  # "> out.txt", not "2>&1" or "a -> b"
    re.IGNORECASE,
)
_PATH: Final = re.compile(  # "src/app.py", "a.py", "~/logs/", "/etc"
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}|(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]+/?"
)
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S{1,160})$", re.MULTILINE)
_FAILURE: Final = re.compile(  # a line that names an error
    "|".join(
        [
            (  # "KeyError: 'id'"
                r"^[ \t]*(?:E[ \t]{2,}|\[)?(?:(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Fault|Fehler)\b[ \t]*[:(\]]"
                r"|error\b[ \t]*[:\[(]|ERR!|ERROR\b|Error\b|fatal\b|FATAL\b|FAIL(?:ED)?\b|panic:|npm ERR!"
                r"|Traceback \(most recent|오류|에러|실패|错误|錯誤|失败|失敗|异常|異常|エラー|FEHLER\b|Fehler\b)"
            ),
            r"\b(?:error|failed|fehlgeschlagen)\b[^\n]{0,60}:",  # "main.c:3: error in line 3:"
            r"\bcommand not found\b|\bNo such file\b|\bPermission denied\b|\bFAILED\b|^not ok \d",
            r"\b(?:aborted|abgebrochen|killed|segmentation fault|timed out|undefined (?:reference|symbol))\b",
            r"(?<!\d was )(?<!\d were )\brefused\b",  # not "1 was refused by the client"
            r"중단|정지|中止|停止|(?:Error|Fehler|오류|错误) [1-9]\d*$",  # "make: *** Error 2"
            r"^[ \t]*exit(?:ed with)?[ \t]*(?:code|status)?[ \t]*[:=]?[ \t]*[1-9]|\(execution failed\)",  # "exit code: 1"
            r"\"errors?\"[ \t]*:[ \t]*[\"\[{]",  # '"error": "no disk"'
            r"^[^\n]{0,24}\d:\d\d[^\n]{0,60}\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b",  # a line of a log
        ]
    ),
    re.MULTILINE,
)
_LOGGED: Final = re.compile(r"^[^\n=]{0,60}\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b[: \]](?! ?[=(,)])[^\n]*", re.MULTILINE)
_NO_FAILURE: Final = re.compile(  # it says that there was none: '"error": null', "0 error(s)", "no job was aborted"
    r"(?i)\"(?:errors?|failed|failures?)\"[ \t]*:[ \t]*(?:null|false|0\b|\"\"|\[[ \t]*\]|\{[ \t]*\})"
    r"|\b(?:errors?|failed|failures?|aborted|killed)[ \t]*[:=][ \t]*(?:0|none)[ \t]*(?=$|[,;|)\]}])"  # "failed: 0"
    r"|(?<![\d.,])\b(?:0|no|not|none|no \w{1,30} w(?:as|ere)) (?:errors?\b|failed|aborted|killed|timed out|refused)"
)
_IDLE: Final = re.compile(  # such a line says less than the others
    r"Traceback \(|^\s*File \"|^\s*at |warning|Warnung|경고|警告|npm ERR! code|^\s*\^|={3}|\.{3,}|rsync error:|make: "
)
_RUN: Final = re.compile(r"[^\W_]{2,}")
_PLAN_STATES: Final = {  # in lists of tasks that agents' tools take, with whether the task is still open
    **dict.fromkeys(("pending", "todo", "open", "not_started", "in_progress", "doing", "blocked"), True),
    **dict.fromkeys(("completed", "complete", "done", "finished", "cancelled", "canceled", "skipped", "deleted"), False),
}
_MOST_TASKS: Final = 60


@attrs.frozen
class Action:
    """A call and its outcome."""

    id: str
    tool: str
    call: str  # the call, as ``name(value, value)``
    changes: bool = False  # whether it changes something, judged by its name and command
    paths: tuple[str, ...] = ()  # the files that it names
    reads: bool = False  # whether it reads something, so that an error in its result need not be its own
    plan: tuple[str, ...] | None = None  # the tasks in it, see `plan_in`
    place: float = 0  # the number of its message, and a part for its place there
    outcome: str | None = None  # its result in a few words; ``None`` without a result
    failed: bool = False  # whether the result reports an error; ``outcome`` is then the error's message

    @property
    def line(self) -> str:
        """The action in one line.

        >>> Action("c1", "shell", "shell(make)", outcome="ok").line
        'shell(make) -> ok'
        """
        return f"{self.call} -> {'no result' if self.outcome is None else self.outcome or 'no output'}"


def action_of(call: ToolCallPart, values: list[str], redact: Callable[[str], str]) -> Action:
    """Return a call with these values as an action without an outcome."""
    shown = one_line(", ".join(one_line(value, _VALUE_CHARS) for value in values), _CALL_CHARS)
    name = call.name.replace("_", " ").replace("-", " ")
    reads = _READING.search(name) is not None or _READING_COMMAND.match(shown) is not None
    is_telling = " " in name and not reads and _RUNNING.match(name) is None  # "place order", not "run" or "execute bash"
    changes = is_telling or _CHANGING.search(name if reads else f"{name} {shown}") is not None
    # files and folders: values that are a path, and words of a command's first line
    words = (word.strip("\"'`,;:()[]{}") for value in values for word in value[:400].partition("\n")[0].split()[:40])
    paths = [word for word in words if "://" not in word and len(word) <= 160 and _PATH.fullmatch(word)]
    paths += [path for value in values for path in _PATCHED.findall(value)]
    return Action(call.id, call.name, f"{call.name}({shown})", changes, tuple(paths), reads, plan_in(call.arguments, redact))


def argument_values(arguments: str) -> list[str]:
    """Return the values of a call's arguments, flattened; the whole text if it is not JSON.

    Without what stands beside a command: with another description, the call is the same.

    >>> argument_values('{"city": "Oslo", "days": [1, 2], "units": {"of": "C"}}')
    ['Oslo', '1', '2', 'C']
    >>> argument_values('{"command": "make", "description": "Build it again", "timeout": 60000}')
    ['make']
    """
    given = _loaded(arguments)
    if isinstance(given, dict) and not {"command", "cmd"}.isdisjoint(cast("dict[str, Any]", given)):
        given = {name: value for name, value in cast("dict[str, Any]", given).items() if name not in _ASIDE}
    return _flattened(given, _MOST_VALUES)


def result_text(text: str) -> str:
    r"""Return the text of a result; of JSON, also within JSON, the values. O(characters).

    >>> result_text('[{"type": "text", "text": "{\\"id\\": \\"PAY-446\\", \\"note\\": \\"a\\\\nb\\"}"}]')
    'text\nPAY-446\na\nb'
    """
    return text if text.lstrip()[:1] not in ("{", "[") else "\n".join(_flattened(_loaded(text), None))


def _loaded(text: str) -> Any:
    """Return what a text of JSON says; any other text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _flattened(given: Any, most: int | None) -> list[str]:
    """Return the values in lists and objects, at most so many; with ``None`` all, and those of JSON within texts."""
    left: list[Any] = [given]
    found: list[str] = []
    while left and (most is None or len(found) < most):
        value = left.pop()
        if most is None and isinstance(value, str) and value is not given and value.lstrip()[:1] in ("{", "["):
            value = _loaded(value)  # a text that is not JSON is itself
        if isinstance(value, dict | list):
            left.extend(reversed([*cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)]))
        elif value is not None and value != "":
            found.append(value if isinstance(value, str) else json.dumps(value))
    return found


def plan_in(arguments: str, redact: Callable[[str], str] = str) -> tuple[str, ...] | None:
    """Return the tasks of the agent's own list that a call hands over, each behind its state; ``None`` without a list.

    >>> plan_in('{"todos": [{"content": "Port it", "status": "in_progress"}]}'), plan_in('{"todos": []}'), plan_in("{}")
    (('in_progress: Port it',), (), None)
    """
    try:
        given = json.loads(arguments) if '"status"' in arguments or "[]" in arguments else None
    except (ValueError, RecursionError):
        return None
    values = cast("dict[str, Any]", given).values() if isinstance(given, dict) else ()
    lists: list[list[Any]] = [value for value in values if isinstance(value, list)]
    for value in filter(None, lists):
        tasks = [*map(_task_of, value[:_MOST_TASKS])]
        if all(tasks):
            return tuple([one_line(redact(task), _ERROR_CHARS) for task in tasks])
    return () if [] in lists else None


def _task_of(given: Any) -> str:
    """Return a task of a plan behind its state; empty for anything else."""
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    texts = {key: value for key, value in fields.items() if isinstance(value, str) and key not in ("id", "priority")}
    state = texts.pop("status", "")
    return f"{state}: {next(iter(texts.values()))}" if texts and is_open(state) is not None else ""


def is_open(task: str) -> bool | None:
    """Return whether a task of a plan is open, by the state before it; ``None`` if there is none."""
    return _PLAN_STATES.get(re.sub(r"\W", "_", task.partition(": ")[0].lower()))


def error_in(text: str, *, certain: bool = False) -> str | None:
    r"""Return the lines of a result that name its error, in one line; ``None`` if it reports none.

    Of a short result, all lines are returned: the cause often stands in one that does not look like an error. Only the first
    and last few thousand characters of a long one are searched. A ``certain`` error may be told in whatever words.

    >>> error_in('Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 7')
    'KeyError: 7'
    >>> error_in("label 1 of 40\nmedia jam in tray C7\naborted")
    'label 1 of 40 | media jam in tray C7 | aborted'
    """
    scanned = text if len(text) <= 2 * _SCANNED else f"{text[:_SCANNED]}\n{text[-_SCANNED:]}"
    lines = [line.strip() for line in scanned.split("\n") if line.strip()]
    named = _that_name_errors(lines)
    if not named and not certain:
        return None
    shown = named if named and len(text) > _ERROR_CHARS else lines
    return _joined(_telling(shown) or shown)


def errors_within(text: str) -> str:
    """Return the lines of a text that name an error, in one line; empty if there is none. O(characters)."""
    return _joined(_telling(_that_name_errors(line.strip() for line in text.split("\n"))))


def _that_name_errors(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if _FAILURE.search(line) and _FAILURE.search(_NO_FAILURE.sub("", line))]


def _telling(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not _IDLE.search(line)]


def _joined(lines: Iterable[str]) -> str:
    return one_line(" | ".join(dict.fromkeys(lines)), _ERROR_CHARS)


def logged_errors(text: str) -> list[str]:
    r"""Return the first lines of a log that report an error; code has none. O(characters).

    >>> logged_errors("12:11 handled\n12:12 ERROR: port 5433 is closed\nlevel = ERROR\n")
    ['12:12 ERROR: port 5433 is closed']
    """
    return [one_line(found[0].strip(), _ROW_CHARS) for found in islice(_LOGGED.finditer(text), _MOST_LOGGED)]


def outcome_of(result: ToolResultPart, changes: bool) -> str:
    """Return a result in a few words."""
    text = result.text.strip()
    if not text:
        return " ".join(f"[{media.kind}]" for media in result.media)
    if len(text) > _OUTCOME_CHARS:
        if not changes:
            return "ok"
        values = argument_values(text) if text[0] in "[{" else [text.partition("\n")[0]]
        text = " ".join([each for each in values if len(values) == 1 or len(each) <= _VALUE_OF_OUTCOME]) or "ok"
    return one_line(text, _OUTCOME_CHARS)


def without_envelope(result: ToolResultPart) -> ToolResultPart:
    r"""Return a result without what the agent's program put before it; as a failure, if that says so.

    >>> without_envelope(ToolResultPart("c1", "Wall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno disk"))
    ToolResultPart(call_id='c1', text='no disk', media=(), failed=True)
    """
    envelope = _ENVELOPE.match(result.text)
    if envelope is None:
        return result
    code = _EXIT_CODE.search(envelope[0])
    failed = result.failed if code is None else result.failed or code[1] != "0"
    return attrs.evolve(result, text=result.text[envelope.end() :], failed=failed)


class RowSearch:
    r"""Finds the rows of results that hold what a request names. Holds state: the beginnings of the request's words.

    >>> rows = "id=1 name=Ada Lim\nid=2 name=Ines Vogt\nid=3 name=Bo Ray\nid=4 name=Cy Moe"
    >>> RowSearch("Which one is Ines Vogt's?").rows(rows)
    ['id=2 name=Ines Vogt']
    """

    def __init__(self, request: str) -> None:
        self._request = request
        self._starts = {request[at : at + size] for size in (2, 3) for at in range(len(request))}

    def rows(self, text: str) -> list[str]:
        """Return the rows of a result that hold what the request names, if they are few among many; O(characters)."""
        rows = [row for row in both_ends(text).split("\n", _MOST_ROWS)[:_MOST_ROWS] if row.strip()]
        if len(rows) < 4 or rows[0].strip() in ("{", "["):
            return []
        by_row = [{*filter(self._names, _RUN.findall(row[:_ROW_CHARS]))} for row in rows]
        holders = Counter(run for runs in by_row for run in runs)
        most_holders = max(1, len(rows) // 6)  # of a word that tells rows apart; "name" is in all of them
        weights = [sum(len(run) for run in runs if holders[run] <= most_holders) for runs in by_row]
        heaviest = max(weights)
        if not heaviest or weights.count(heaviest) > _MOST_FOUND:
            return []
        return [one_line(row, _ROW_CHARS) for row, weight in zip(rows, weights, strict=True) if weight == heaviest]

    def _names(self, run: str) -> bool:
        """Return whether a word of a row is one that the request has."""
        if run[:3] not in self._starts or run.isdigit():
            return False
        least = 2 if not run.isascii() else 4 if run.islower() else 3
        return len(run) >= least and run in self._request
