"""A small wire format with arbitrary join rules, and random conversations in it.

A message is a role and a text; the rules read only the first letter of the text. Each instance of the format forbids other
neighbours, so that seeds reach cases that no provider's rules reach.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias

import attrs

from compaction import Message, MessageIndex
from compaction.formats import MessageFormat, Problem, Repair, Side
from compaction.messages import Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.index_model import Place

Raw: TypeAlias = dict[str, Any]

_ROLES: Final = {"s": "system", "u": "user", "v": "user", "w": "user", "r": "tool"}
LETTERS: Final = "suvwabctr"
"""Instructions; words of the user, two kinds, and with a result; of the assistant, two kinds; a call, a thought, a result."""


class Letters(MessageFormat):
    """A format that forbids some pairs of neighbours and prefers to avoid others.

    A pair consists of two letters; an empty letter means the start or end of the list.

    Args:
        forbidden: The rule that a pair breaks, and which side of the pair is refused.
        disliked: Pairs that the format avoids but allows.
        instructs: Whether instructions may be anywhere in a conversation.
    """

    name = "letters"

    def __init__(
        self,
        forbidden: Mapping[tuple[str, str], tuple[str, Side]] | None = None,
        disliked: Collection[tuple[str, str]] = (),
        *,
        instructs: bool = True,
    ) -> None:
        self.forbidden = dict(forbidden or {})
        self.disliked = frozenset(disliked)
        self.instructs = instructs

    @classmethod
    def chosen(cls, random: Random, share: float) -> Letters:
        """Return a format that forbids this share of all pairs, and avoids the same share of pairs.

        Either instructions may be anywhere in a conversation and any message may come first, or neither.
        """
        instructs = random.random() < 0.5
        sides: Sequence[Side] = ("before", "after", "both")
        forbidden: dict[tuple[str, str], tuple[str, Side]] = {}
        pairs = [(before, after) for before in ("", *LETTERS) for after in ("", *LETTERS)]
        for before, after in pairs:
            if not instructs and after == "s":
                wrong = before not in ("", "s")
            elif before in ("", "s") and after in ("", "s"):
                wrong = False
            else:
                wrong = random.random() < share and bool(before or not instructs)
            if wrong:
                side: Side = "before" if not after else "after" if not before else random.choice(sides)
                forbidden[before, after] = (random.choice(("one-rule", "other-rule")), side)
        return cls(forbidden, [pair for pair in pairs if random.random() < share], instructs=instructs)

    def read(self, raw: Any, position: int = 0) -> Message:
        parts: list[Part] = [TextPart(raw["text"])]
        if raw["role"] == "tool":
            parts = [ToolResultPart(raw["answers"], raw["text"])]
        elif "answers" in raw:
            parts = [ToolResultPart(raw["answers"], "found"), *parts]
        elif raw["text"].startswith("t"):
            parts = [ReasoningPart(raw["text"])]
        parts += [ToolCallPart(call, "look", "{}") for call in raw.get("calls", ())]
        joins: dict[str, Any] = {name: tuple(raw.get(name, ())) for name in ("begins", "resumes")}
        return Message(raw["role"], tuple(parts), raw, self, continues=raw.get("continues", False), **joins)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        text = "".join(part.text for part in parts if isinstance(part, TextPart | ToolResultPart | ReasoningPart))
        return self.read({**message.raw, "text": text})

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "text": text})

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        return self.forbidden.get((_letter(before), _letter(after)))

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        return (_letter(before), _letter(after)) not in self.disliked

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        places = [(place, self.read(raw)) for place, raw in enumerate(raws)]
        return [Problem(f"messages[{min(fault.blamed)}]", fault.rule, "", "") for fault in faults(self, places)]

    def repair(self, raws: Sequence[Any]) -> Repair:
        raise NotImplementedError

    # ---------------------------------------------------------------- conversations

    def conversation(self, random: Random, length: int, *, valid: bool = True, known: Sequence[Raw] = ()) -> list[Raw]:
        """Return a random conversation that continues ``known``; in a valid one each message may follow the one before it."""
        raws = list(known)
        waiting = [call for raw in raws for call in raw.get("calls", ())]
        waiting = [call for call in waiting if not any(raw.get("answers") == call for raw in raws)]
        for _ in range(4 * length):
            if len(raws) >= length:
                break
            raw = self._any(random, len(raws), waiting)
            if not valid or not faults(self, list(enumerate(map(self.read, [*raws, raw]))), open_end=True):
                raws.append(raw)
                waiting += raw.get("calls", ())
                if "answers" in raw and raw["answers"] in waiting:
                    waiting.remove(raw["answers"])
        while valid and len(raws) > len(known) and self.validate(raws):
            del raws[-1]
        return raws

    def _any(self, random: Random, place: int, waiting: Sequence[str]) -> Raw:
        letters = "uvuvabt" * 2 + "c" * 4 + ("r" * 8 + "w" if waiting else "r") + "ss" * (self.instructs or place < 2)
        letter = random.choice(letters)
        text = letter + str(place) + " word" * random.randint(0, 6)
        raw: Raw = {"role": _ROLES.get(letter, "assistant"), "text": text}
        if letter in "rw":
            raw["answers"] = random.choice(waiting) if waiting else "nothing"
        if letter == "c":
            raw["calls"] = [f"{place}.{number}" for number in range(random.randint(1, 2))]
        return raw

    def shorter(self, random: Random, message: Message) -> Message:
        """The message with its text cut to the first letter; the letter of a user message or an answer may change too."""
        letter = _letter(message)
        other = {"u": "v", "v": "u", "a": "b", "b": "a"}.get(letter, letter) if random.random() < 0.5 else letter
        return self.read({**message.raw, "text": other})


def _letter(message: Message | None) -> str:
    return "" if message is None else str(message.raw["text"][:1])


@attrs.frozen
class Fault:
    """Two neighbours that the format forbids: its rule, the blamed places, and both places; ``None`` for an end."""

    rule: str
    blamed: frozenset[int]
    before: int | None
    after: int | None


def faults(format: MessageFormat, view: Sequence[Place], *, open_end: bool = False) -> list[Fault]:
    """Return every pair of neighbours in a view that the format refuses, in order; ``open_end`` ignores the end of the list."""
    found: list[Fault] = []
    leading = next((at for at, (_, message) in enumerate(view) if not message.is_system), len(view))
    for at in range(len(view) + (not open_end)):
        before = view[at - 1] if at else None
        after = view[at] if at < len(view) else None
        problem = format.join_problem(None if before is None or at <= leading else before[1], after and after[1])
        if problem is not None:
            sides = {"before": [before], "after": [after], "both": [before, after]}[problem[1]]
            blamed = frozenset(side[0] for side in sides if side is not None)
            found.append(Fault(problem[0], blamed, before and before[0], after and after[0]))
    return found


def disallowed(format: MessageFormat, before: Sequence[Place], after: Sequence[Place]) -> list[Fault]:
    """Return the faults of a view that the earlier view did not have."""
    known = {(fault.rule, place) for fault in faults(format, before) for place in fault.blamed}
    found = faults(format, after)
    return [fault for fault in found if not fault.blamed or any((fault.rule, place) not in known for place in fault.blamed)]


def lettered(letters: str, forbidden: str = "", disliked: str = "", *, side: Side = "after") -> MessageIndex:
    """Return the index of a message of eleven words for each letter.

    Args:
        letters: The letters. A call ``c`` is answered by the next ``r``; without one, its id is ``k``.
        forbidden: Pairs of letters that may not be neighbours; ``-`` is the start or the end.
        disliked: Pairs that the format avoids.
        side: The side of a forbidden pair that is refused.
    """
    pairs = [[(pair[0].strip("-"), pair[1].strip("-")) for pair in each.split()] for each in (forbidden, disliked)]
    words = " word" * 10
    messages: list[Raw] = [{"role": _ROLES.get(a, "assistant"), "text": f"{a}{at}{words}"} for at, a in enumerate(letters)]
    for at, letter in enumerate(letters):
        if letter == "c":
            answer = letters.find("r", at)
            messages[at]["calls"] = [str(at) if answer >= 0 else "k"]
            if answer >= 0:
                messages[answer]["answers"] = str(at)
    return MessageIndex(messages, counter="chars/4", format=Letters(dict.fromkeys(pairs[0], ("rule", side)), pairs[1]))


def letters_of(index: MessageIndex) -> str:
    """The first letter of each message of the view."""
    return "".join(raw["text"][0] for raw in index.messages())
