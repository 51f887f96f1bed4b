"""Fuzzed conversations, the checks that run on each, and the lists that a host may pass after it; and fuzzed pipeline files."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, Literal

from compaction import MessageIndex, compact_sync, presets, repair, run_sync
from compaction.config import dumps, loads, to_data
from compaction.errors import CompactionError, InputError
from compaction.formats import FORMATS, MessageFormat
from compaction.index import Marks, RunContext
from compaction.json_data import data_of, json_of
from compaction.session import CompactionSession
from compaction.strategies import Strategy
from tests.support.conversion import convert
from tests.support.rulebook import is_valid, rules
from tests.support.wires import STRATEGIES

EVERY_STRATEGY: Final[tuple[Strategy, ...]] = (*STRATEGIES, presets.adaptive(600))


def altered(messages: list[Any], random: Random) -> list[Any]:
    """A list that a host may pass next: messages removed, moved, repeated or changed, as the same objects or copies."""
    messages = copy.deepcopy(messages) if random.random() < 0.5 else list(messages)
    for _ in range(random.randint(0, 3)):
        place, other = random.randrange(len(messages)), random.randrange(len(messages))
        what = random.choice(["remove", "move", "repeat", "cut", "field"])
        if what == "remove" and len(messages) > 1:
            del messages[place]
        elif what == "move":
            messages.insert(other, messages.pop(place))
        elif what == "repeat":
            messages.append(messages[place])
        elif what == "cut":
            del messages[place + 1 :]
        elif isinstance(messages[place], dict) and messages[place]:
            messages[place] = {**messages[place], random.choice(list(messages[place])): random.choice([None, "", "new", [], 7])}
    return messages


def check_compacting(format: MessageFormat, messages: list[Any], strategy: Strategy) -> list[Any] | None:
    """Compact and check the size and validity of the result; return ``None`` if the format cannot read the messages."""
    try:
        done = compact_sync(messages, strategy, counter="chars/4", format=format)
    except InputError:
        return None
    assert done.after.tokens <= done.before.tokens
    assert len(done.messages) <= len(messages) + 2 * len(done.edits)
    if is_valid(format, messages):
        assert is_valid(format, done.messages), f"{strategy}: now {rules(format, done.messages)}"
    return done.messages


def check_session(format: MessageFormat, messages: list[Any], strategy: Strategy, random: Random) -> None:
    """Run a session and an index with two lists in turn, store both and load them again; only an `InputError` may be raised."""
    later = altered(messages, random)
    for named in (format, None):
        session = CompactionSession(strategy, counter="chars/4", format=named, clock=None)
        for listed in (messages, later, later):
            _tried(session.view_sync, listed)
        _tried(_resumed, session, strategy, named, altered(later, random))
    index = MessageIndex(counter="chars/4", format=format, marks=Marks.of(strategy.mark_ceilings, RunContext()))
    for listed in (messages, later):
        _tried(_followed, index, strategy, listed)
    for whole in (True, False):
        _tried(_stored, index, strategy, whole)


def _resumed(session: CompactionSession, strategy: Strategy, format: MessageFormat | None, messages: list[Any]) -> None:
    stored = data_of(json_of(session.to_dict(), "a session"), "a session", dict)
    CompactionSession.from_dict(stored, strategy, counter="chars/4", format=format, clock=None).view_sync(messages)


def _followed(index: MessageIndex, strategy: Strategy, messages: list[Any]) -> None:
    index.sync(messages)
    run_sync(index, strategy)


def _stored(index: MessageIndex, strategy: Strategy, whole: bool) -> None:
    """Store an index, load it and sync it with the same messages."""
    stored = data_of(json_of(index.to_dict(messages=whole), "an index"), "an index", dict)
    marks = Marks.of(strategy.mark_ceilings, RunContext())
    again = MessageIndex.from_dict(stored, counter="chars/4", format=index.format, marks=marks)
    again.sync(index.source)
    again.messages()


def check_whole(format: MessageFormat, messages: list[Any]) -> None:
    """Check that a repair without remaining problems gives a valid list, and that conversions and their repairs end."""
    done = format.repair(messages)
    if not {problem.rule for problem in done.remaining} - {"pending-call"}:
        assert is_valid(format, done.messages), f"repaired, but {rules(format, done.messages)}"
    _tried(repair, messages)
    for to in FORMATS:
        for named in (format, None):
            _tried(_converted, messages, to, named)


def _converted(messages: list[Any], to: MessageFormat, format: MessageFormat | None) -> None:
    repair(convert(messages, to=to, format=format), format=to)


def _tried(take: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(InputError):
        take(*arguments)


def check_input(format: MessageFormat, messages: list[Any], random: Random, strategies: Iterable[Strategy]) -> int:
    """Run all checks with one input, and return the number of compactions that gave a result."""
    done = 0
    for strategy in strategies:
        done += check_compacting(format, messages, strategy) is not None
    check_session(format, messages, random.choice(EVERY_STRATEGY), random)
    check_whole(format, messages)
    return done


# ---------------------------------------------------------------- pipeline files


_PRESETS: Final = (presets.adaptive(8_000), presets.hermes("gpt-5"), presets.context_window(8_000), presets.token_budget(4_000))


def _writable(strategy: Strategy) -> dict[str, Any] | None:
    try:
        return to_data(strategy)
    except CompactionError:
        return None


SOURCES: Final = tuple([data for each in (*_PRESETS, *STRATEGIES) if (data := _writable(each)) is not None])
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 10**30, 1.5, float("inf"), float("nan"), "", "x" * 5_000, "\0", "\ud800", [], {}, [[]]),
    *({"use": "Truncation"}, {"use": "Pipeline", "steps": []}, "redact", "hermes", "adaptive", "../x", "$HOME", "2026-01-01"),
    *("first(messages=2) | last(tokens=9)", "tokens_exceed(10) & ~tokens_exceed(2)", "(" * 400, "~" * 3_000 + "pinned"),
    *("a.b.c()", "__import__('os')", "tokens_exceed(1 << 9**9)", "-" * 500 + "1", "first(first(first(1)))"),
)
_TOKENS: Final = (
    *("[", "]", "{", "}", "[[", '"', '"""', "'", "=", ":", ",", ".", "\n", "\t", "#", "&a ", "*a", "<<: ", "- ", "? ", "|"),
    *(">", "!!python/object:os.system ", "%YAML 9\n", "---\n", "\\u0000", "\ufeff", "\r", "e999", "0x", "nan", "use"),
    *("steps", "\U0001f600"),
)


def fuzzed_file(draw: Random) -> tuple[str, Literal["toml", "yaml"]]:
    """Return the text of a pipeline file, perhaps damaged, and its syntax."""
    data = json.loads(json.dumps(draw.choice(SOURCES)))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        _spoil(data, draw)
    syntax = draw.choice(("toml", "yaml", "json"))
    text = _file_text(data, syntax)
    for _ in range(draw.choice((0, 0, 1, 2, 5))):
        at, length = draw.randrange(len(text) + 1), draw.choice((0, 1, 3, 30))
        text = text[:at] + draw.choice(_TOKENS) * draw.choice((1, 1, 2, 200)) + text[at + length :]
    return text, "toml" if syntax == "toml" else "yaml"


def _file_text(data: Any, syntax: str) -> str:
    with contextlib.suppress(Exception):  # what cannot be written in this syntax is written as JSON, which the parser refuses
        if syntax == "toml":
            import tomli_w

            return tomli_w.dumps(data)
        if syntax == "yaml":
            import yaml

            return str(yaml.safe_dump(data))
    try:
        return json.dumps(data)
    except RecursionError:
        return "[" * 5_000


def _spoil(data: Any, draw: Random) -> None:
    """Change one value somewhere in the data."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and draw.random() < 0.7:
            data = data[key]
            continue
        change = draw.randrange(4)
        if change == 0:
            del data[key]
        elif change == 1 and isinstance(data, dict):
            data[draw.choice(("use", "steps", "trigger", "keep", "target", "no such", "", "a" * 300))] = copy.deepcopy(
                draw.choice(_VALUES)
            )
        elif change == 2:
            for _ in range(draw.choice((1, 30, 300))):
                data[key] = [data[key]] if draw.random() < 0.5 else {"use": "Pipeline", "steps": [data[key]]}
        else:
            data[key] = copy.deepcopy(draw.choice(_VALUES))
        return


def check_file(seed: int) -> bool:
    """Read the file of a seed; return whether it describes a strategy, which is then written and read again."""
    text, syntax = fuzzed_file(Random(seed))
    try:
        strategy = loads(text, format=syntax)
    except CompactionError:
        return False
    try:
        written = dumps(strategy, format="yaml")
    except CompactionError:
        return True
    assert loads(written, format="yaml") == strategy
    return True
