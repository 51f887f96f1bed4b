"""Conversations that agents really had, with items planted into them; read where the recordings are, and never copied."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from .filler import Event, Filler, filler_texts
from .generator import attempts, placed, script
from .planted import Conversation
from .wording import Wordings, load

CORPUS: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "dev"
FILES: Final = ("tau_airline", "sweagent_demos", "openhands", "whowhen_multiagent")
_MOST: Final = 80
_LEAST: Final = 12


def plant_into_recorded(folder: str, conversations: int, seed: int, corpus: Path = CORPUS) -> Iterator[Conversation]:
    """Yield recorded conversations with English items at random places.

    Args:
        folder: The set of wordings, ``"dev"`` or ``"judging"``.
        conversations: How many, taken from the files in turn.
        seed: Decides everything that is random.
        corpus: The folder of the recordings.
    """
    rng = random.Random(f"{seed}/recorded")
    wordings = load(folder, "en")
    piles = [rng.sample(each, len(each)) for each in (_read(corpus / f"{name}.jsonl.gz") for name in FILES)]
    left = conversations
    while left and any(piles):
        for name, pile in zip(FILES, piles, strict=True):
            made = None
            while pile and left and made is None:
                chunks = _chunks(pile.pop())
                made = attempts(partial(_planted, name, wordings, chunks, rng)) if chunks else None
            if made is not None:
                left -= 1
                yield made


def _read(path: Path) -> list[list[dict[str, Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [messages for messages in (json.loads(line)["messages"] for line in lines) if len(messages) >= _LEAST]


def _chunks(messages: Sequence[dict[str, Any]]) -> list[Event]:
    """Return the first messages, each call together with its results; nothing if a call is not answered at once."""
    chunks: list[list[dict[str, Any]]] = []
    for message in messages[:_MOST]:
        if message["role"] == "tool" and chunks:
            chunks[-1].append(message)
        else:
            chunks.append([message])
    if chunks and _open_calls(chunks[-1]):
        chunks.pop()
    return [] if any(map(_open_calls, chunks)) else [Event(tuple(each)) for each in chunks]


def _open_calls(chunk: Sequence[dict[str, Any]]) -> bool:
    """Return whether calls and results of a chunk differ."""
    calls = {call["id"] for call in chunk[0].get("tool_calls") or ()}
    return calls != {each.get("tool_call_id") for each in chunk[1:]}


def _planted(name: str, wordings: Wordings, chunks: Sequence[Event], rng: random.Random) -> Conversation:
    filler = Filler(filler_texts("en"))
    head = 2 if chunks[0].messages[0]["role"] == "system" else 1
    order = [*((each, None) for each in chunks[:head]), *script(wordings, filler, chunks[head:-1], rng), (chunks[-1], None)]
    return placed(Conversation(f"{name}-{rng.randrange(10**6)}", "en", name, (), ()), order)
