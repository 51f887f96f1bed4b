"""Reads the conversations: text files with a speaker in front of each message, and marks on what must survive.

A file begins with fields such as ``title: A week in Lisbon``, up to the first empty line: ``title``, ``kind`` and ``language``,
and optionally ``system`` and ``names``. Then come the messages:

    User: Fix the rounding. Never touch tests/golden.
    @rule: never touch tests/golden
    Assistant: I look at the invoice first. {+6}
    Call: read(path="invoice.py")
    Result: {code 60}
    Mara: I do not eat fish.
    @fact: Mara + not eat fish

- ``User``, ``Assistant``, ``System``, ``Call`` and ``Result`` are roles. Any other speaker is a person, passed on as a user:
  the name stands before the words or, after ``names: field``, in the message's field ``name``.
- Lines that are indented by two spaces continue a message.
- ``{+6}`` stands for six sentences of an assistant in the conversation's language, ``{code 60}``, ``{log 60}``, ``{rows 60}``
  and ``{page 6}`` for as many lines or paragraphs that a tool returned.

A mark belongs to the message before it. ``|`` separates alternatives, and all words joined by ``+`` must be in one line:

- ``@KIND: words``: an item, with one of the kinds in `KINDS`.
- ``@KIND NAME: words``: the same with a name. A later item of this name replaces it.
- ``@answer: words << question``: an answer that nobody understands without what it answers, and words of that.
- ``@drop NAME: words``: the item was revoked with these words. ``@done NAME``: it was needed until here.
- ``@foreign: words << source``: words of somebody else, which may be quoted only with one of the words of their source nearby.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from .filler import filled

FOLDER: Final = Path(__file__).parent / "conversations"
KINDS: Final = ("rule", "task", "fact", "value", "decision", "answer")
ROLES: Final = {"User": "user", "Assistant": "assistant", "System": "system"}

_HEAD: Final = re.compile(r"(\w+): (.*)")
_MESSAGE: Final = re.compile(r"([^\s:@][^:]*):(?: (.*))?")
_MARK: Final = re.compile(r"@(\w+)(?: ([\w-]+))?(?:: (.*))?")
_SYSTEM: Final = "You are a helpful assistant. Answer in the language of the user."

Message: TypeAlias = dict[str, Any]
Words: TypeAlias = tuple[tuple[str, ...], ...]
"""Alternatives, of each the words that must be in one line."""


@attrs.frozen(eq=False, kw_only=True)
class Item:
    """Words that must survive, or that may survive under a condition.

    Args:
        kind: One of `KINDS`, ``"drop"`` or ``"foreign"``.
        words: Its words.
        about: The words of what it answers, or of its source.
        at: Place of its message.
        until: Place of the message from which on it need not be there; ``None`` for one that must be there to the end.
        revoked_by: The item that replaced or revoked it.
    """

    kind: str
    words: Words
    about: Words = ()
    at: int
    until: int | None = None
    revoked_by: Item | None = None

    @property
    def text(self) -> str:
        """The words as they are written in the file."""
        return " | ".join(" + ".join(words) for words in self.words)

    def is_due(self, count: int) -> bool:
        """Return whether a request with the first `count` messages must have it."""
        return self.at < count and (self.until is None or count <= self.until)


@attrs.frozen(eq=False)
class Conversation:
    """One conversation.

    Args:
        name: The name of its file.
        title: What it is about.
        kind: The kind of conversation.
        language: The language's code.
        messages: Its messages, in the format of the Chat Completions API.
        items: What must survive.
        foreign: Words of others.
    """

    name: str
    title: str
    kind: str
    language: str
    messages: tuple[Message, ...]
    items: tuple[Item, ...]
    foreign: tuple[Item, ...] = ()

    @property
    def requests(self) -> list[int]:
        """The number of messages of each request: before each answer of the assistant, and all."""
        answered = [at for at, each in enumerate(self.messages) if each["role"] == "assistant" and at > 1]
        return [*answered, len(self.messages)]

    def said_by(self, item: Item) -> str:
        """Return the role of the message that an item is in."""
        return str(self.messages[item.at]["role"])


@cache
def names() -> tuple[str, ...]:
    """Return the names of all conversations."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


@cache
def conversation(name: str) -> Conversation:
    """Return a conversation of the folder."""
    return parsed((FOLDER / f"{name}.txt").read_text("utf-8"), name)


def parsed(text: str, name: str) -> Conversation:
    """Return the conversation of a text.

    Raises:
        ValueError: A line is none of the format, or a mark refers to a name that no earlier item has.
    """
    head, _, body = text.partition("\n\n")
    fields = {found[1]: found[2] for line in head.splitlines() if (found := _HEAD.fullmatch(line))}
    messages: list[Message] = [{"role": "system", "content": fields.get("system", _SYSTEM)}]
    marks: list[tuple[int, str]] = []
    for block in _blocks(body):
        if block.startswith("@"):
            marks.append((len(messages) - 1, block))
            continue
        found = _MESSAGE.match(block)
        if found is None:
            raise ValueError(f"{name}: 'Speaker: words' expected (got {block!r})")
        said = block[len(found[1]) + 1 :].strip()
        words = filled(said, fields["language"], f"{name}/{len(messages)}")
        _add(messages, found[1], words, named=fields.get("names") == "field")
    items, foreign = _items(marks, name)
    return Conversation(name, fields["title"], fields["kind"], fields["language"], tuple(messages), items, foreign)


def _blocks(body: str) -> Iterator[str]:
    """Yield each message with its lines, and each mark."""
    lines: list[str] = []
    for line in body.splitlines():
        if lines and (not line or line.startswith("  ")):
            lines.append(line[2:])
            continue
        if lines:
            yield "\n".join(lines).rstrip()
        lines = [line] if line else []
    if lines:
        yield "\n".join(lines).rstrip()


def _add(messages: list[Message], speaker: str, words: str, *, named: bool) -> None:
    """Append what a speaker says; calls that follow words of the assistant, or another call, belong to the same message."""
    if speaker == "Call":
        if messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": None})
        calls: list[Any] = messages[-1].setdefault("tool_calls", [])
        calls.append({"id": f"call_{len(messages)}_{len(calls)}", "type": "function", "function": _function(words)})
    elif speaker == "Result":
        calls = next(each["tool_calls"] for each in reversed(messages) if "tool_calls" in each)
        answered = {each.get("tool_call_id") for each in messages}
        messages.append(
            {"role": "tool", "tool_call_id": next(c["id"] for c in calls if c["id"] not in answered), "content": words}
        )
    elif speaker in ROLES:
        messages.append({"role": ROLES[speaker], "content": words})
    elif named:
        messages.append({"role": "user", "name": speaker, "content": words})
    else:
        messages.append({"role": "user", "content": f"{speaker}: {words}"})


def _function(call: str) -> Mapping[str, str]:
    """Return a call such as ``read(path="a.py")`` in the format of the API."""
    parsed_call = ast.parse(call, mode="eval").body
    assert isinstance(parsed_call, ast.Call)
    assert isinstance(parsed_call.func, ast.Name)
    arguments = {str(each.arg): ast.literal_eval(each.value) for each in parsed_call.keywords}
    return {"name": parsed_call.func.id, "arguments": json.dumps(arguments, ensure_ascii=False)}


def _items(marks: list[tuple[int, str]], name: str) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return what must survive, and the words of others."""
    found: list[Item] = []
    foreign: list[Item] = []
    latest: dict[str, int] = {}
    for at, mark in marks:
        read = _MARK.fullmatch(mark)
        if read is None or read[1] not in (*KINDS, "drop", "done", "foreign"):
            raise ValueError(f"{name}: unknown mark {mark!r}")
        kind, label, (words, _, about) = read[1], read[2], (read[3] or "").partition(" << ")
        item = Item(kind=kind, words=_words(words), about=_words(about), at=at)
        if kind in ("drop", "done") and label not in latest:
            raise ValueError(f"{name}: no item {label!r} before {mark!r}")
        if label in latest:
            place = latest.pop(label)
            found[place] = attrs.evolve(found[place], until=at, revoked_by=None if kind == "done" else item)
        if kind == "foreign":
            foreign.append(item)
        elif kind in KINDS:
            latest |= {label: len(found)} if label else {}
            found.append(item)
    return tuple(found), tuple(foreign)


def _words(text: str) -> Words:
    return tuple(tuple(part.strip() for part in each.split(" + ")) for each in text.split(" | ") if each.strip())
