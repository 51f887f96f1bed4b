"""The texts planted into a conversation: items that should be kept, and distractors that should not be mistaken for them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from .filler import Event, Filler
from .matching import Group, Passage, normalised
from .wording import CHANGED, ITEMS, PAIRS, Statement, Wordings, fill

_TOLD: Final = 0.75
_ROWS: Final = (12, 30)


@attrs.frozen
class Planted:
    """An item or a distractor.

    Args:
        kind: Its kind, such as ``"rule"``.
        statements: Its statements, the one that holds last.
        places: Places of the messages that hold each statement, when it stands in a conversation.
    """

    kind: str
    statements: tuple[Statement, ...]
    places: tuple[int, ...] = ()

    @property
    def is_item(self) -> bool:
        return self.kind in ITEMS

    @property
    def core(self) -> tuple[Group, ...]:
        """The words that show it; for a value that changed, its last value."""
        return self.statements[-1].core

    @property
    def meaning(self) -> tuple[Group, ...]:
        """The words without which it is not understood, of the last statement that has any."""
        return next((each.meaning for each in reversed(self.statements) if each.meaning), ())

    @property
    def old(self) -> tuple[tuple[Group, ...], ...]:
        """The earlier values that do not hold any longer."""
        if self.kind not in CHANGED:
            return ()
        return tuple(dict.fromkeys(each.core for each in self.statements[:-1] if each.core != self.core))


@attrs.frozen
class Conversation:
    """A conversation with what was planted in it.

    Args:
        id: Its name.
        language: The language of what is planted.
        source: ``"generated"``, or the file it was recorded in.
        messages: The messages, in the OpenAI chat format.
        planted: The items and distractors.
    """

    id: str
    language: str
    source: str
    messages: tuple[dict[str, Any], ...]
    planted: tuple[Planted, ...]

    def without_calls(self) -> Conversation:
        """Return the conversation as a chat, without calls and their results, and without what is planted in these."""
        said = [place for place, each in enumerate(self.messages) if each["role"] != "tool" and each.get("content")]
        moved = {old: new for new, old in enumerate(said)}
        planted = [
            attrs.evolve(each, places=tuple([moved[place] for place in each.places]))
            for each in self.planted
            if moved.keys() >= set(each.places)
        ]
        messages = [{name: value for name, value in self.messages[place].items() if name != "tool_calls"} for place in said]
        return attrs.evolve(self, messages=tuple(messages), planted=tuple(planted))


def message_text(message: Mapping[str, Any]) -> str:
    """Return all text of a message: its content, and names and arguments of its calls."""
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [str(part.get("text") or "") for part in content]
    for call in message.get("tool_calls") or ():
        parts += [call["function"]["name"], call["function"]["arguments"]]
    return "\n".join(filter(None, parts))


def own_passages(messages: Sequence[Mapping[str, Any]]) -> list[Passage]:
    """Return the messages of a conversation, each as one passage; a result together with the call it answers."""
    calls = {call["id"]: call["function"]["arguments"] for each in messages for call in each.get("tool_calls") or ()}
    return [
        Passage(normalised(f"{calls.get(each.get('tool_call_id'), '')}\n{message_text(each)}"), place, place)
        for place, each in enumerate(messages)
    ]


def draw(wordings: Wordings, kind: str, number: int, rng: random.Random) -> list[tuple[Planted, tuple[str, ...]]]:
    """Return so many wordings of a kind, filled, no wording twice, each with its row template if it has one."""
    chosen = rng.sample(list(wordings.kinds[kind]), number)
    found: list[tuple[Planted, tuple[str, ...]]] = []
    for texts in chosen:
        said = fill(texts, wordings.pools, rng)
        if kind in PAIRS:  # one statement: what is judged is the result, together with the call or the question
            said = (said[0], attrs.evolve(said[1], meaning=said[1].meaning or said[0].meaning))
        found.append((Planted(kind, said), texts))
    return found


def events_of(planted: Planted, texts: tuple[str, ...], wordings: Wordings, filler: Filler, rng: random.Random) -> list[Event]:
    """Return the messages that say what is planted, one event for each statement that is said at a time of its own."""
    said = planted.statements
    if planted.kind == "error":
        answer = filler.called("shell", {"command": said[0].text}, said[1].text, rng)
        return [Event((filler.request(rng), *answer, filler.said("failed", rng)), 2)]
    if planted.kind == "id":
        rows = "\n".join(_rows(planted, texts[1], wordings, rng))
        answer = filler.called("list_records", {"page": rng.randrange(1, 9)}, rows, rng)
        return [Event(({"role": "user", "content": said[0].text}, *answer, filler.said("found", rng)), 2)]
    if planted.kind == "retrieved":
        around = [filler.line("answers", rng) for _ in range(2)]
        passages = "\n".join(f"[{n}] {text}" for n, text in enumerate((around[0], said[1].text, around[1]), 1))
        answer = filler.called("search_documents", {"query": said[0].text}, passages, rng)
        return [Event((filler.request(rng), *answer, filler.said("found", rng)), 2)]
    return [_spoken(planted.kind, each, filler, rng) for each in said]


def _spoken(kind: str, said: Statement, filler: Filler, rng: random.Random) -> Event:
    """Return a statement as somebody's message, mostly with other sentences before and behind it."""
    if said.role == "assistant":
        text = f"{filler.line('answers', rng)} {said.text} {filler.line('answers', rng)}"
        return Event(({"role": "assistant", "content": text}, filler.user("nods", rng), filler.said("acks", rng)), 0)
    text = said.text
    if kind != "pasted" and rng.random() < _TOLD:
        remark = filler.line("remarks", rng) if rng.random() < 0.5 else ""
        text = " ".join(filter(None, [remark, filler.story(rng, 4), text, filler.story(rng, 4)]))
    return Event(({"role": "user", "content": text}, filler.said("acks", rng)), 0)


def _rows(planted: Planted, template: str, wordings: Wordings, rng: random.Random) -> list[str]:
    """Return the rows of a result, among which one is the planted one."""
    wanted, key = planted.statements[1], planted.meaning
    rows: list[str] = []
    tried: set[str] = set()
    for _ in range(rng.randrange(*_ROWS)):
        (other,) = fill([template], wordings.pools, rng)
        if other.meaning != key and other.text not in tried:
            tried.add(other.text)
            rows.append(other.text)
    rows.insert(rng.randrange(len(rows) + 1), wanted.text)
    return rows
