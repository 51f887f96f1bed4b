"""Pipeline files with mistakes of every kind. Each is a strategy that can be written again, or a typed error says why not."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any, Final, Literal

from compaction import presets
from compaction.config import dumps, loads, to_data
from compaction.errors import CompactionError
from compaction.strategies import Strategy

from .wires import STRATEGIES

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


def fuzzed_file(draw: random.Random) -> tuple[str, Literal["toml", "yaml"]]:
    """Return the text of a pipeline file, perhaps damaged, and its syntax."""
    data = json.loads(json.dumps(draw.choice(SOURCES)))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        _spoil(data, draw)
    syntax = draw.choice(("toml", "yaml", "json"))
    text = _text(data, syntax)
    for _ in range(draw.choice((0, 0, 1, 2, 5))):
        at, length = draw.randrange(len(text) + 1), draw.choice((0, 1, 3, 30))
        text = text[:at] + draw.choice(_TOKENS) * draw.choice((1, 1, 2, 200)) + text[at + length :]
    return text, "toml" if syntax == "toml" else "yaml"


def _text(data: Any, syntax: str) -> str:
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


def _spoil(data: Any, draw: random.Random) -> None:
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
    text, syntax = fuzzed_file(random.Random(seed))
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
