"""The turns between what is planted: requests, answers, and tool results of the kinds that agents get."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import attrs

from .wording import FOLDER, fill

_PASTED: Final = 0.4


@attrs.frozen
class Event:
    """Messages that stand together.

    Args:
        messages: The messages.
        held_by: The message among them that holds the statement, if there is one.
    """

    messages: tuple[dict[str, Any], ...]
    held_by: int = 0


@cache
def filler_texts(language: str) -> Mapping[str, Sequence[str]]:
    """Return the filler of a language."""
    texts: dict[str, list[str]] = tomllib.loads((FOLDER / "filler" / f"{language}.toml").read_text("utf-8"))
    return texts


@attrs.frozen
class Filler:
    """The turns between: sentences of a language, and tool results.

    Args:
        texts: The sentences by what they are for.
        left: The sentences of each use that were not said yet; changes.
    """

    texts: Mapping[str, Sequence[str]]
    left: dict[str, list[str]] = attrs.field(factory=dict)

    def line(self, use: str, rng: random.Random) -> str:
        """Return a sentence; none is said twice before all were."""
        if not self.left.get(use):
            self.left[use] = rng.sample(list(self.texts[use]), len(self.texts[use]))
        return fill([self.left[use].pop()], {}, rng)[0].text

    def answer(self, rng: random.Random) -> dict[str, Any]:
        """Return some sentences as the assistant's."""
        return {"role": "assistant", "content": " ".join(self.line("answers", rng) for _ in range(rng.randrange(3, 7)))}

    def said(self, use: str, rng: random.Random) -> dict[str, Any]:
        """Return a sentence as the assistant's."""
        return {"role": "assistant", "content": self.line(use, rng)}

    def user(self, use: str, rng: random.Random) -> dict[str, Any]:
        """Return a sentence as the user's."""
        return {"role": "user", "content": self.line(use, rng)}

    def called(self, tool: str, arguments: Mapping[str, object], result: str, rng: random.Random) -> list[dict[str, Any]]:
        """Return a call with its result."""
        id = f"call_{rng.randrange(16**11, 16**12):012x}"
        function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
        return [
            {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": id, "content": result},
        ]

    def story(self, rng: random.Random, most: int = 5) -> str:
        """Return some sentences in which the user tells what happened, perhaps none."""
        return " ".join(self.line("stories", rng) for _ in range(rng.randrange(most + 1)))

    def request(self, rng: random.Random) -> dict[str, Any]:
        """Return a request of the user, with what led to it, and often with something pasted."""
        parts = [" ".join(filter(None, [self.story(rng), self.line("requests", rng)]))]
        if rng.random() < _PASTED:
            parts += [self.line("shows", rng), tool_result(rng)[2]]
        return {"role": "user", "content": "\n\n".join(parts)}

    def turn(self, rng: random.Random) -> Event:
        """Return a turn of filler: a request with calls and an answer, or a question with an answer."""
        if rng.random() < 0.3:
            said = " ".join(filter(None, [self.story(rng), self.line("questions", rng)]))
            return Event(({"role": "user", "content": said}, self.answer(rng)))
        messages = [self.request(rng)]
        for _ in range(rng.randrange(1, 4)):
            tool, arguments, result = tool_result(rng)
            messages += self.called(tool, arguments, result, rng)
        return Event((*messages, self.answer(rng)))


def tool_result(rng: random.Random) -> tuple[str, dict[str, object], str]:
    """Return a call of a tool and its result, of the kinds that agents get: lists, records, logs, code."""
    return rng.choice((_listing, _log, _record, _code, _table))(rng)


_DIRS: Final = ["src", "lib", "conf", "assets", "jobs", "web", "tools", "data"]
_STEMS: Final = [
    "loader",
    "render",
    "session",
    "worker",
    "intake",
    "router",
    "schema",
    "export",
    "parser",
    "queue",
    "views",
    "mail",
]
_ENDS: Final = [".py", ".ts", ".yaml", ".json", ".go", ".sql"]
_STAGES: Final = ["fetch", "decode", "merge", "index", "flush", "upload", "verify", "notify"]


def _path(rng: random.Random) -> str:
    return f"{rng.choice(_DIRS)}/{rng.choice(_STEMS)}_{rng.choice(_STEMS)}{rng.choice(_ENDS)}"


def _listing(rng: random.Random) -> tuple[str, dict[str, object], str]:
    lines = [f"-rw-r--r-- 1 app app {rng.randrange(200, 90_000):>6} {_path(rng)}" for _ in range(rng.randrange(5, 16))]
    return "shell", {"command": f"ls -l {rng.choice(_DIRS)}"}, "\n".join(lines)


def _log(rng: random.Random) -> tuple[str, dict[str, object], str]:
    lines = [
        f"{rng.randrange(0, 24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03} INFO "
        f"{rng.choice(_STAGES)} done in {rng.randrange(3, 900)} ms, {rng.randrange(1, 400)} rows"
        for _ in range(rng.randrange(5, 14))
    ]
    return "shell", {"command": f"tail -n {len(lines)} {rng.choice(_STEMS)}.log"}, "\n".join(lines)


def _record(rng: random.Random) -> tuple[str, dict[str, object], str]:
    record = {
        "id": f"{rng.randrange(16**7, 16**8):08x}",
        "stage": rng.choice(_STAGES),
        "rows": rng.randrange(10, 9_000),
        "seconds": round(rng.uniform(0.2, 80), 2),
        "files": [_path(rng) for _ in range(rng.randrange(1, 5))],
        "retries": rng.randrange(0, 5),
    }
    return "get_run", {"id": record["id"]}, json.dumps(record, indent=1)


def _code(rng: random.Random) -> tuple[str, dict[str, object], str]:
    one, two = rng.sample(_STEMS, 2)
    lines = [f"def {one}_{two}(rows, size={rng.randrange(8, 4_096)}):", f'    """Return the rows of {two} that are left."""']
    lines += [
        f"    {stage} = {rng.choice(_STEMS)}.{stage}(rows[:{rng.randrange(2, 99)}], step={rng.randrange(2, 64)})"
        for stage in rng.sample(_STAGES, rng.randrange(3, 7))
    ]
    return "read_file", {"path": _path(rng)}, "\n".join([*lines, f"    return {rng.choice(_STAGES)}(rows)"])


def _table(rng: random.Random) -> tuple[str, dict[str, object], str]:
    lines = ["stage,rows,seconds,state"]
    lines += [
        f"{rng.choice(_STAGES)},{rng.randrange(10, 9_000)},{rng.uniform(0.2, 80):.2f},{rng.choice(('ok', 'late', 'empty'))}"
        for _ in range(rng.randrange(6, 18))
    ]
    return "query", {"sql": f"select * from {rng.choice(_STEMS)} limit {len(lines) - 1}"}, "\n".join(lines)
