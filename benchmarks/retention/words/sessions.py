"""Sessions of an agent in which a person states rules and tasks, and then many tool calls follow."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, Final

import attrs

from .forms import FOLDER, LANGUAGES, chat_before, forms, language, padded, written

CALLS: Final = (20, 70, 300)
WINDOWS: Final = (8_000, 20_000, 32_000, 64_000)
RESULTS: Final = ("small", "files", "repeated")
POSITIONS: Final = (1, 2, 10)
TURNS: Final = (1, 2, 4, 8)

_SAID_FIRST: Final = 0.6  # share of sessions whose rules are in the first message
_PADDED: Final = 0.5
_MANY: Final = 300  # calls: such sessions take long, so there are fewer of them
_TURNS_OF_MANY: Final = (2, 8)
_REPEATED: Final = 5
_FILE: Final = (4_000, 12_000)  # characters
_SCRIPT: Final = (1_200, 3_000)
_OUTPUT: Final = (200, 1_600)
_TOKENS: Final = {"small": 250, "files": 2_000, "repeated": 500}  # of a call, at least; sessions must exceed their window

Message = dict[str, Any]


@attrs.frozen(kw_only=True)
class Case:
    """The conditions of one session.

    Args:
        form: The form of the message with the rules.
        code: The language.
        chosen: Number of the set of rules.
        position: Which of the user's messages has the rules, from 1.
        calls: Number of tool calls after it.
        results: The kind of their results, one of `RESULTS`.
        window: Tokens of the context window.
        turns: Number of the user's messages from the rules on.
        padded: Whether the message also tells other things, before and after the form.
    """

    form: str
    code: str
    chosen: int
    position: int
    calls: int
    results: str
    window: int
    turns: int
    padded: bool = False


@attrs.frozen(eq=False)
class Session:
    """A conversation, and what must stay in it.

    Args:
        case: Its conditions.
        messages: All messages; each assistant message answers a request with the messages before it.
        rules: The rules, each with the ordinal of its message.
        tasks: The tasks, likewise.
    """

    case: Case
    messages: tuple[Message, ...]
    rules: tuple[tuple[str, int], ...]
    tasks: tuple[tuple[str, int], ...]

    @property
    def requests(self) -> list[int]:
        """The number of messages of each request from the rules on."""
        said = self.rules[0][1]
        return [at for at, message in enumerate(self.messages) if message["role"] == "assistant" and at > said]


def cases(
    seed: int,
    repeats: int,
    *,
    of_forms: Sequence[str] = (),
    languages: Sequence[str] = LANGUAGES,
    calls: Sequence[int] = CALLS,
    windows: Sequence[int] = WINDOWS,
) -> Iterator[Case]:
    """Yield the sessions to run: each form in each language, with the other conditions in turn.

    Only conditions under which the whole conversation exceeds the window are taken.

    Args:
        seed: Decides the order of the conditions.
        repeats: Sessions of each form in each language.
        of_forms: The forms; by default all.
        languages: The languages.
        calls: The numbers of tool calls.
        windows: The windows.
    """
    rng = random.Random(f"{seed}/cases")
    mixed = [
        (number, window, results, turns)
        for number, window, results, turns in product(calls, windows, RESULTS, TURNS)
        if number * _TOKENS[results] > window and (number < _MANY or turns in _TURNS_OF_MANY)
    ]
    left: list[tuple[int, int, str, int]] = []
    for form in of_forms or forms():
        for code in languages:
            for _ in range(repeats):
                left = left or rng.sample(mixed, len(mixed))
                number, window, results, turns = left.pop()
                position = 1 if rng.random() < _SAID_FIRST else rng.choice(POSITIONS[1:])
                chosen = rng.randrange(len(language(code).sets))
                yield Case(
                    form=form,
                    code=code,
                    chosen=chosen,
                    position=position,
                    calls=number,
                    results=results,
                    window=window,
                    turns=turns,
                    padded=rng.random() < _PADDED,
                )


def build(case: Case, seed: int = 0) -> Session:
    """Return the session of a case."""
    rng = random.Random(f"{seed}/{case}")
    spoken = language(case.code)
    chosen = spoken.sets[case.chosen]
    messages: list[Message] = [{"role": "system", "content": _pieces()["system"].strip()}]
    for text in chat_before(case.code, case.position - 1):
        messages += [_user(text), {"role": "assistant", "content": rng.choice(spoken.words["replies"])}]
    place = len(messages)
    text = written(case.form, case.code, chosen)
    messages.append(_user(padded(text, case.code) if case.padded else text))
    tasks = [(chosen.task, place)]
    said: list[tuple[str, str | None]] = [(text, None) for text in rng.choices(spoken.words["next"], k=max(TURNS))]
    said[0], said[2] = zip(chosen.later, chosen.later_tasks, strict=True)
    tool = _Tools(rng, case.results)
    for turn in range(case.turns):
        if turn:
            text, task = said[turn - 1]
            messages.append(_user(text))
            tasks += [(task, len(messages) - 1)] if task else []
        for _ in range(case.calls * turn // case.turns, case.calls * (turn + 1) // case.turns):
            messages += tool.call()
        messages.append({"role": "assistant", "content": rng.choice(spoken.words["replies"])})
    return Session(case, tuple(messages), tuple([(rule, place) for rule in chosen.rules]), tuple(tasks))


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


# ---------------------------------------------------------------- tool calls


@cache
def _pieces() -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / "results.toml").read_text("utf-8"))


class _Tools:
    """Makes tool calls with results of a kind. Holds state: the number of calls, and the results that repeat."""

    def __init__(self, rng: random.Random, results: str) -> None:
        self._rng = rng
        self._made = 0
        self._repeated = [self._file(_SCRIPT) for _ in range(_REPEATED)] if results == "repeated" else []
        makers: dict[str, Callable[[], tuple[str, str]]] = {
            "small": self._small,
            "files": partial(self._file, _FILE),
            "repeated": lambda: self._rng.choice(self._repeated),
        }
        self._result = makers[results]

    def call(self) -> list[Message]:
        """Return a tool call and its result."""
        self._made += 1
        path, result = self._result()
        name = "read" if result.startswith('"""') else "bash"
        arguments = {"command": f"pytest -q {path}"} if name == "bash" else {"path": path}
        call = {
            "id": f"call_{self._made}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        says = self._rng.choice(_pieces()["says"]).format(path=path)
        return [
            {"role": "assistant", "content": says or None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ]

    def _slots(self) -> dict[str, Any]:
        rng, pieces = self._rng, _pieces()
        b, c, d = rng.sample(pieces["subjects"], 3)
        slots = {"a": rng.choice(pieces["actions"]), "b": b, "c": c, "d": d, "q": rng.choice(pieces["qualities"])}
        numbers = {"i": rng.randrange(2, 400), "j": rng.randrange(2, 400), "k": rng.randrange(3, 9)}
        return {**slots, **numbers, "B": b.capitalize(), "C": c.upper(), "path": f"src/{c}/{b}_{d}.py"}

    def _small(self) -> tuple[str, str]:
        """Return a path and some lines that a command printed."""
        path, length, lines = self._slots()["path"], self._rng.randrange(*_OUTPUT), list[str]()
        while sum(map(len, lines)) < length:
            lines.append(self._rng.choice(_pieces()["small"]).format(**self._slots()))
        return path, "\n".join(lines)

    def _file(self, size: tuple[int, int]) -> tuple[str, str]:
        """Return a path and source code of so many characters."""
        rng, pieces, slots = self._rng, _pieces(), self._slots()
        head = [f'"""The {slots["b"]} {slots["c"]}s of a {slots["d"]}."""', *sorted(rng.sample(pieces["imports"], 5))]
        text = "\n".join([head[0], "", *head[1:], "", "log = logging.getLogger(__name__)", ""])
        length = rng.randrange(*size)
        while len(text) < length:
            text += "\n" + rng.choice(pieces["blocks"]).format(**self._slots())
        return slots["path"], text
