"""The text that only takes room: sentences of an assistant, and results of tools, the same each time."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

_PLACE: Final = re.compile(r"\{(\+|code |log |rows |page )(\d+)\}")
_PARAGRAPH: Final = 4


def filled(text: str, language: str, seed: str) -> str:
    """Return a text with its places filled."""
    rng = random.Random(seed)
    return _PLACE.sub(lambda found: _filler(found[1].strip(), int(found[2]), language, rng), text)


def _filler(kind: str, size: int, language: str, rng: random.Random) -> str:
    if kind == "+":
        return _sentences(size, language, rng)
    if kind == "page":
        return "\n\n".join(_sentences(_PARAGRAPH, language, rng) for _ in range(size))
    pieces = _pieces()[kind]
    lines = [line for _ in range(size) for line in rng.choice(pieces).splitlines()]
    return "\n".join(line.format(**_slots(rng)) for line in lines[:size])


def _sentences(count: int, language: str, rng: random.Random) -> str:
    """Return sentences of which none is said twice before all were."""
    pool: list[str] = _pieces()["sentences"][language]
    chosen = [each for _ in range(count // len(pool) + 1) for each in rng.sample(pool, len(pool))][:count]
    joint = "" if language in ("ja", "zh") else " "
    return joint.join(chosen)


def _slots(rng: random.Random) -> dict[str, Any]:
    words = _pieces()["words"]
    one, two, three = rng.sample(words, 3)
    numbers = {"i": rng.randrange(2, 400), "j": rng.randrange(2, 400), "m": rng.randrange(10, 60), "h": rng.randrange(10, 24)}
    return {"a": one, "b": two, "c": three, **numbers}


@cache
def _pieces() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "filler.toml").read_text("utf-8"))
