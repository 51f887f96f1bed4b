"""Many conversations, one after the other: what of the time is ours, and what the parser's and the counter's.

Each step is timed by itself on the same conversations: parsing the lines; counting every text that the meter asks about;
reading messages; building indexes; whole calls. Our own work is a whole call less the counting of the conversation's texts. The
counter is the cheapest there is, so that little is subtracted; the parser is not in the call at all.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from compaction import MessageIndex, compact_sync, last, presets
from compaction.formats import openai_chat
from compaction.strategies import Strategy, Truncation
from compaction.tokens import CharsPerToken
from compaction.triggers import tokens_exceed

from .conversation import conversation
from .cpu import fastest
from .peer import our_tokens
from .tables import Claim, Section, table

OWN_WORK = 8.0
ROUNDS = 5

Lines = Sequence[str]


def recorded(corpus: Path) -> list[tuple[str, Lines]]:
    """The files of a folder of recorded conversations, one conversation a line."""
    found: list[tuple[str, Lines]] = []
    for path in sorted(corpus.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found.append((path.name.partition(".")[0], list(lines)))
    return found


def generated() -> list[tuple[str, Lines]]:
    """Conversations made here, short ones and long ones."""
    return [
        (f"generated, {size:,} messages each", [json.dumps({"messages": conversation(size)}) for _ in range(10_000 // size)])
        for size in (20, 200, 2_000)
    ]


@attrs.define
class Texts:
    """A counter that only notes what it is asked. Holds state."""

    texts: list[str] = attrs.field(factory=list)
    name = "texts"
    exact = False

    def count_text(self, text: str) -> int:
        self.texts.append(text)
        return 1


def batch_section(files: Sequence[tuple[str, Lines]], say: Callable[[str], None]) -> Section:
    """Microseconds a message, by step; collector off."""
    heads = [
        "conversations",
        "messages",
        "parse",
        "count",
        "read",
        "index",
        "nothing to do",
        "truncation to half",
        "context window of half",
    ]
    rows: list[list[str]] = []
    sums = [0.0] * (len(heads) - 2)
    total = 0
    for name, lines in [*generated(), *files]:
        say(f"batch, {name}")
        size, took = _steps(lines)
        rows.append([name, f"{size:,}", *(f"{each / size * 1e6:.2f}" for each in took)])
        total += size
        sums = [one + other for one, other in zip(sums, took, strict=True)]
    own = [each / total * 1e6 for each in sums]
    rows.append(["**all**", f"{total:,}", *(f"{each:.2f}" for each in own)])
    claims = [
        Claim(f"a batch, our own work a message: {what}", OWN_WORK, own[place], unit="us", at_most=True)
        for place, what in ((4, "nothing to do"), (5, "truncation to half"))
    ]
    return Section("batch", table(heads, rows), tuple(claims), in_page=False)


def _steps(lines: Lines) -> tuple[int, list[float]]:
    """Messages, and CPU seconds: parsing, counting, reading, and our own work in indexes and whole calls."""
    parsed: list[list[dict[str, Any]]] = [json.loads(line)["messages"] for line in lines]
    noted = Texts()
    for messages in parsed:
        MessageIndex(messages, counter=noted)
    sizes = [our_tokens(messages) for messages in parsed]
    count = CharsPerToken().count_text
    counting = fastest(lambda: [count(text) for text in noted.texts], rounds=ROUNDS)

    def calls(strategy: Callable[[int], Strategy]) -> float:
        pairs = [(messages, strategy(size)) for messages, size in zip(parsed, sizes, strict=True)]
        return (
            fastest(lambda: [compact_sync(messages, each, counter="chars/4") for messages, each in pairs], rounds=ROUNDS)
            - counting
        )

    return sum(map(len, parsed)), [
        fastest(lambda: [json.loads(line) for line in lines], rounds=ROUNDS),
        counting,
        fastest(lambda: [openai_chat.read(message) for messages in parsed for message in messages], rounds=ROUNDS),
        fastest(lambda: [MessageIndex(messages, counter="chars/4") for messages in parsed], rounds=ROUNDS) - counting,
        calls(lambda size: Truncation(trigger=tokens_exceed(size), keep=last(groups=1))),
        calls(lambda size: Truncation(trigger=tokens_exceed(size // 2), keep=last(groups=1))),
        calls(lambda size: presets.context_window(max(2, size // 2))),
    ]
