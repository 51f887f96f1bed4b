"""Makes conversations with planted items, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import attrs

from .filler import Event, Filler, filler_texts
from .matching import Passage
from .planted import Conversation, Planted, draw, events_of, own_passages
from .wording import DISTRACTORS, ITEMS, Wordings, load

Script: TypeAlias = list[tuple[Event, Planted | None]]
"""Events in their order, each with what it says of what is planted."""

EACH: Final = 2  # wordings of each kind in a conversation
TURNS: Final = (18, 30)
_TRIES: Final = 40


def generate(folder: str, language: str, conversations: int, seed: int) -> Iterator[Conversation]:
    """Yield conversations in a language.

    Args:
        folder: The set of wordings, ``"dev"`` or ``"judging"``.
        language: Its code.
        conversations: How many.
        seed: Decides everything that is random.
    """
    wordings = load(folder, language)
    for number in range(conversations):
        rng = random.Random(f"{seed}/{language}/{number}")
        name = f"{language}-{number}"
        made = attempts(partial(_generated, name, wordings, rng))
        if made is None:
            last = "; ".join(found_elsewhere(_generated(name, wordings, rng)))
            raise SystemExit(f"{name}: {_TRIES} conversations in which something was found where it was not planted: {last}")
        yield made


def attempts(make: Callable[[], Conversation]) -> Conversation | None:
    """Return the first conversation in which everything is found where it was planted, and only there."""
    return next((made for made in (make() for _ in range(_TRIES)) if not found_elsewhere(made)), None)


def _generated(name: str, wordings: Wordings, rng: random.Random) -> Conversation:
    filler = Filler(filler_texts(wordings.language))
    system = {"role": "system", "content": filler.line("system", rng)}
    opening = Event((system, filler.request(rng), filler.answer(rng)))
    turns = [filler.turn(rng) for _ in range(rng.randrange(*TURNS))]
    closing = Event((filler.user("requests", rng),))
    order = [(opening, None), *script(wordings, filler, turns, rng), (closing, None)]
    return placed(Conversation(name, wordings.language, "generated", (), ()), order)


def script(wordings: Wordings, filler: Filler, turns: Sequence[Event], rng: random.Random) -> Script:
    """Return turns with everything planted between them at random, statements of one item in their order."""
    keyed: list[tuple[float, Event, Planted | None]] = [((n + 0.5) / len(turns), turn, None) for n, turn in enumerate(turns)]
    for kind in (*ITEMS, *DISTRACTORS):
        for planted, texts in draw(wordings, kind, EACH, rng):
            events = events_of(planted, texts, wordings, filler, rng)
            moments = sorted(rng.random() for _ in events)
            keyed += [(moment, event, planted) for moment, event in zip(moments, events, strict=True)]
    return [(event, planted) for _, event, planted in sorted(keyed, key=lambda each: each[0])]


def placed(start: Conversation, order: Script) -> Conversation:
    """Return the conversation continued by events, and where each statement of what is planted stands."""
    messages = list(start.messages)
    places: dict[Planted, list[int]] = {}
    for event, planted in order:
        if planted is not None:
            places.setdefault(planted, []).append(len(messages) + event.held_by)
        messages += event.messages
    found = tuple(attrs.evolve(planted, places=tuple(at)) for planted, at in places.items())
    return attrs.evolve(start, messages=tuple(messages), planted=found)


def found_elsewhere(conversation: Conversation) -> list[str]:
    """Return the planted texts that are found where they were not planted, or not where they were."""
    passages = own_passages(conversation.messages)
    return [f"{each.kind}: {each.statements[-1].text!r}" for each in conversation.planted if not _is_apart(each, passages)]


def _is_apart(planted: Planted, passages: Sequence[Passage]) -> bool:
    said = list(zip(planted.places, planted.statements[-len(planted.places) :], strict=True))
    for core in (planted.core, *planted.old):
        own = {place for place, each in said if each.core == core}
        if {each.message for each in passages if each.has_all(core)} != own:
            return False
    return True
