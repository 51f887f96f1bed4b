"""The user's messages, word for word: an excerpt, word for word, that stands in every summary before what the summarizer wrote.

What people say is a few per cent of an agent's conversation, and the part that nobody can recreate. So a strategy that
replaces messages quotes what the user said in them: the task whole, then the newest messages whole while they fit, and of
longer ones the lines that are the user's rather than pasted. The lines keep their order and form: a list stays a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

import attrs

from ...messages import Message
from ..redaction import redact as redact_secrets
from .scoring import Kind, score
from .sentences import chars_within, values_of
from .speech import is_handed_over, is_printed

_HEADING: Final = "The user's messages, word for word:"
_LEFT_OUT: Final = "[...]"
_HANDED_OVER: Final = "[perhaps the output of a program]"
_OPENING: Final = 4  # user messages before the first answer: examples, and then the task
_MOST_OPENING: Final = 32  # messages that are looked at for it
_TASK_SHARE: Final = 0.7
_LEAST: Final = 24  # tokens below which a shortened message says too little
_FRAME: Final = 8
_NOTE: Final = re.compile(r" \(message \d{1,9}\)\Z")
_ENTRY: Final = 4

Count = Callable[[str], int]


def excerpt(
    messages: Iterable[Message],
    tokens: int,
    count: Count,
    *,
    task: object = None,
    earlier: Sequence[str] = (),
    redact: Callable[[str], str] | None = redact_secrets,
    numbers: Mapping[int, int] | None = None,
) -> str:
    r"""Return what the user said in these messages, word for word, in at most so many tokens; empty if nothing fits.

    A message that a framework seems to have handed over for a program is labelled. Secrets are replaced, since an excerpt is
    stored and stays in every later request.

    The task may have seven tenths, and more if the newest message needs less. The newest message follows, what the user said
    before the task, and then the other messages from the newest back, each whole or, where it is too long, without the lines
    that look pasted or printed by a program.

    Cost: O(characters of the user's messages).

    Args:
        messages: Messages of all roles, oldest first.
        tokens: Most tokens of the text, >= 0.
        count: Counts the tokens of a text.
        task: The caller's object of the message with the task; by default the first message, see `task_of`.
        earlier: Entries of an earlier excerpt, see `split_excerpt`, whose messages are not available.
        redact: Removes secrets from each message; ``None`` keeps them.
        numbers: The number of each message, by the identity of the caller's object. It is added where a message has a value,
            so that of two values the later can be told.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Rules:\n- no tabs\n- no mocks"}], counter="chars/4")
    >>> print(excerpt(index.included_groups[0].messages, 100, len))
    The user's messages, word for word:
    - Rules:
      - no tabs
      - no mocks
    """
    spoken = [(message.raw, text) for message in messages if (text := message.said)]
    said = [*earlier, *[text for _, text in spoken]]
    room = tokens - count(_HEADING) - _FRAME
    if not said or room <= 0:
        return ""
    first = next((at for at, (raw, _) in enumerate(spoken) if task is not None and raw is task), -len(earlier)) + len(earlier)
    order = dict.fromkeys([first, len(said) - 1, *range(first), *reversed(range(len(said)))])
    chosen: dict[int, str] = {}
    newest = min(count(said[-1]) + 2 * _ENTRY, int((1 - _TASK_SHARE) * tokens)) if first < len(said) - 1 else 0
    for place in order:
        most = max(room - newest, min(room, int(_TASK_SHARE * tokens))) if place == first else room
        label = f"{_HANDED_OVER} " if place != first and _lacks_label(said[place]) else ""
        number = (numbers or {}).get(id(spoken[place - len(earlier)][0])) if place >= len(earlier) else None
        note = f" (message {number})" if number and values_of(said[place][:_LONG_LINE]) else ""
        entry = shortened(redact(said[place]) if redact else said[place], most - _ENTRY - count(label) - count(note), count)
        if entry:
            entry = chosen[place] = label + entry + note
            room -= count(entry) + _ENTRY
        if room < _ENTRY + 1:
            break
    if not chosen:
        return ""
    return "\n".join([_HEADING, *[_as_entry(chosen[place]) for place in sorted(chosen)]])


def split_excerpt(text: str) -> tuple[tuple[str, ...], str]:
    r"""Return the entries of the excerpts in a summary, and the rest of the summary.

    >>> split_excerpt("The user's messages, word for word:\n- Fix X.\n  Not Y.\n\n## Done\n- X")
    (('Fix X.\nNot Y.',), '## Done\n- X')
    """
    entries: list[list[str]] = []
    rest: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line == _HEADING:
            inside = True
        elif inside and line.startswith("- "):
            entries.append([line[2:]])
        elif inside and entries and (line.startswith("  ") or not line):
            entries[-1].append(line[2:])
        else:
            inside = False
            rest.append(line)
    return tuple([_NOTE.sub("", "\n".join(lines).rstrip()) for lines in entries]), "\n".join(rest).strip()


def _lacks_label(text: str) -> bool:
    return is_handed_over(text) and not text.startswith(_HANDED_OVER)


def _as_entry(text: str) -> str:
    first, *others = text.split("\n")
    return "\n".join([f"- {first}", *[f"  {line}" if line.strip() else "" for line in others]])


def task_of(messages: Iterable[Message]) -> object:
    """Return the caller's object of the message with the task: the last user message before the first answer.

    The messages before it are examples or background. Of more than four, which is no opening but a conversation without
    answers, the first is the task. ``None`` if the user says nothing. O(messages before the first answer).
    """
    said = [message.raw for message in islice(takewhile(_is_opening, messages), _MOST_OPENING) if message.said]
    return None if not said else said[-1] if len(said) <= _OPENING else said[0]


def _is_opening(message: Message) -> bool:
    return message.role in ("system", "developer", "user")


# ------------------------------------------------------------------------ of a long message, the user's own lines


@attrs.frozen
class _Line:
    """A line, or a sentence of a long one."""

    text: str
    is_own: bool  # whether the user probably wrote it
    number: int  # the line of the text that it is, or is a part of


def shortened(text: str, tokens: int, count: Count) -> str:
    r"""Return a text in at most so many tokens: whole if it fits, or else its own lines before those that look pasted.

    Lines that are left out are marked with ``[...]``. Of too many own lines the first and the last are kept.

    >>> shortened("Fix this:\n```\n" + "0xff " * 99 + "\n```\nNever touch Y.", 30, len)
    'Fix this:\n[...]\nNever touch Y.'
    """
    if count(text) <= tokens:
        return text
    if tokens < _LEAST:
        return ""
    lines = _lines(text)
    sizes = [count(line.text) + 1 for line in lines]
    gap = count(_LEFT_OUT) + 1
    chosen = {-1, len(lines)}
    room = tokens + 1 - gap
    for place in _by_importance(lines):
        gaps = (place - 1 not in chosen) + (place + 1 not in chosen) - 1
        if sizes[place] + gaps * gap <= room:
            chosen.add(place)
            room -= sizes[place] + gaps * gap
    chosen -= {-1, len(lines)}
    return _joined(lines, chosen) if chosen else _both_ends(text, room, count)


def _both_ends(text: str, tokens: int, count: Count) -> str:
    """Return the beginning and the end of a text whose every line is too long."""
    chars = chars_within(len(text), tokens, lambda chars: count(text[:chars]), least=_LEAST)
    head, tail = text[: 2 * chars // 3], text[len(text) - chars // 3 :]
    head = head[: head.rfind(" ")] if " " in head else head
    tail = tail[tail.find(" ") :] if " " in tail else tail
    return f"{head.rstrip()} {_LEFT_OUT} {tail.lstrip()}"


def _by_importance(lines: Sequence[_Line]) -> list[int]:
    """Return the places of the lines: the user's own, those that matter most first, and then the others.

    The first line says what the message is about. Rules, preferences, decisions and open tasks follow, and then the lines from
    both ends inwards.
    """
    own = [place for place, line in enumerate(lines) if line.is_own and line.text.strip()]
    others = [place for place, line in enumerate(lines) if not line.is_own and not _FENCE.match(line.text)]
    heavy = [place for place in own if score(lines[place].text).kind >= Kind.TASK]
    return list(dict.fromkeys([*own[:1], *heavy, *_from_both_ends(own), *others]))


def _from_both_ends(places: Sequence[int]) -> list[int]:
    """Return the places with those near an end first."""
    last = len(places) - 1
    return [places[n] for n in sorted(range(len(places)), key=lambda n: (min(n, last - n), n))]


def _joined(lines: Sequence[_Line], chosen: set[int]) -> str:
    parts: list[str] = []
    before: _Line | None = None
    for place, line in enumerate(lines):
        text = line.text if place in chosen else _LEFT_OUT
        if text == _LEFT_OUT and (not line.text.strip() or (parts and parts[-1] == _LEFT_OUT)):
            continue
        parts += [" " if before and before.number == line.number else "\n", text]
        before = line
    return "".join(parts[1:])


_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_LONG_LINE: Final = 300
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।؟])\s*")


def _lines(text: str) -> list[_Line]:
    """Return the lines of a text, long ones by sentences, each with whether the user probably wrote it."""
    found: list[_Line] = []
    fenced = False
    for number, line in enumerate(text.split("\n")):
        if _FENCE.match(line):
            fenced = not fenced
            found.append(_Line(line, False, number))
        elif fenced or len(line) <= _LONG_LINE:
            found.append(_Line(line, not fenced and not is_printed(line), number))
        else:
            found += [_Line(each, not is_printed(each), number) for each in _SENTENCE_END.split(line)]
    return found
