"""Transcripts of a conversation for a model: who said what, fenced as data, secrets redacted, in parts if it is long.

Each line that names a speaker holds a key, and so do the two lines around the whole. The key is a digest of the texts and
occurs in none of them, so no text can end the record, start another, or pass for somebody else's words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from ..index import MessageGroup
from ..messages import MediaPart, Message, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

_ENCODED_LEAST: Final = 1_024
_ENCODED_LETTERS: Final = 12
_ENCODED: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_ENCODED_LEAST},}}={{0,2}}")
_NAME_CHARS: Final = 80
_HEADER_TOKENS: Final = 24
_CONTINUED: Final = ", continued"


@attrs.frozen
class Entry:
    """One entry of a transcript: what one speaker said, a call, or a result."""

    speaker: str  # or the source, such as ``"result of read_file"``; one line
    text: str


def entries_of(groups: Iterable[MessageGroup], *, redact: Callable[[str], str]) -> list[Entry]:
    """Return a conversation as entries, in order; O(its text).

    A note takes the place of media, of encoded data of 1,024 characters or more, and of the assistant's reasoning. Everything
    else is complete. ``redact`` removes the secrets from a text.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Is it raining?"}], counter="chars/4")
    >>> entries_of(index.included_groups, redact=str)
    [Entry(speaker='user', text='Is it raining?')]
    """
    shown = (entry for group in groups for entry in _group_entries(group))
    return [Entry(redact(sendable(entry.speaker)), _without_encoded(redact(sendable(entry.text)))) for entry in shown]


def sendable(text: str) -> str:
    """Return the text without lone surrogates, which cannot be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _without_encoded(text: str) -> str:
    def noted(run: re.Match[str]) -> str:
        start = run[0][:_ENCODED_LEAST]
        varied = len(set(start)) >= _ENCODED_LETTERS and any(character.isdigit() for character in start)
        return f"[{len(run[0]):,} characters of encoded data]" if varied else run[0]

    return _ENCODED.sub(noted, text)


def _group_entries(group: MessageGroup) -> Iterator[Entry]:
    """Yield a group's entries; if it has several calls, they are numbered so that each result can be matched."""
    calls = [call for message in group.messages for call in message.tool_calls()]
    titles = {
        call.id: f"{_line(call.name)} (call {number})" if len(calls) > 1 else _line(call.name)
        for number, call in enumerate(calls, start=1)
    }
    mark = group.mark
    if mark is not None:
        yield Entry("results of earlier calls" if group.is_collapsed else "earlier note", mark.body)
    for message in group.messages if mark is None else group.messages[1:]:
        yield from _message_entries(message, titles)


def _message_entries(message: Message, titles: dict[str, str]) -> Iterator[Entry]:
    speaker = f"{_line(message.role)} {_line(message.name)}" if message.name and message.role != "tool" else _line(message.role)
    spoken: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart | ToolResultPart):
            if spoken:
                yield Entry(speaker, "\n".join(spoken))
                spoken = []
            yield _call_entry(part, titles)
        elif described := _described(part):
            spoken.append(described)
    if spoken:
        yield Entry(speaker, "\n".join(spoken))


def _call_entry(part: ToolCallPart | ToolResultPart, titles: dict[str, str]) -> Entry:
    if isinstance(part, ToolCallPart):
        return Entry(f"assistant calls {titles.get(part.id, _line(part.name))}", part.arguments)
    media = [_described(medium) for medium in part.media]
    return Entry(f"result of {titles.get(part.call_id, 'a call')}", "\n".join(filter(None, [part.text, *media])))


def _described(part: TextPart | ReasoningPart | MediaPart | OtherPart) -> str:
    if isinstance(part, ReasoningPart):
        return f"[thoughts left out: {len(part.text):,} characters]" if part.text else ""
    if isinstance(part, MediaPart):
        size = f", {part.size_bytes:,} bytes" if part.size_bytes else ""
        return f"[{_line(part.kind)}{size}, not shown]"
    return part.text


def _line(name: str) -> str:
    """Return a name on one short line."""
    return " ".join(name.split())[:_NAME_CHARS] or "unnamed"


def record_key(texts: Iterable[str]) -> str:
    """Return eight hexadecimal digits that occur in none of the texts; the same for the same texts. O(their characters).

    >>> record_key(["hello"]) == record_key(["hello"]) != record_key(["hello "])
    True
    """
    known = list(texts)
    digest = hashlib.blake2s(digest_size=16)
    for text in known:
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    while True:
        key = digest.hexdigest()[:8]
        if not any(key in text for text in known):
            return key
        digest.update(key.encode())


def rendered(entries: Iterable[Entry], key: str) -> str:
    """Return entries as a text, each under a line that holds the key."""
    return "\n\n".join([f"[{key} {entry.speaker}]\n{entry.text}" for entry in entries])


def fenced(text: str, key: str, *, tag: str) -> str:
    """Return a text between two lines that cannot occur in it.

    >>> print(fenced("a word", "5f1c09ab", tag="record"))
    <record 5f1c09ab>
    a word
    </record 5f1c09ab>
    """
    return f"<{tag} {key}>\n{text}\n</{tag} {key}>"


def tokens_of(entries: Iterable[Entry], count: Callable[[str], int]) -> int:
    """Return the tokens of the entries, with the lines above them."""
    return sum(count(entry.text) + _HEADER_TOKENS for entry in entries)


def split_entries(entries: Sequence[Entry], tokens: int, count: Callable[[str], int]) -> list[tuple[Entry, ...]]:
    """Split entries, in order, into parts of at most that many tokens; a long entry is split at the end of a line.

    Cost: O(their text), each counted about twice. ``tokens`` must be more than the line above an entry takes.

    >>> parts = split_entries([Entry("user", "one two " * 100)], 60, lambda text: len(text) // 4)
    >>> len(parts), parts[-1][0].speaker
    (6, 'user, continued')
    """
    parts: list[tuple[Entry, ...]] = []
    part: list[Entry] = []
    room = tokens
    for entry in entries:
        for piece, cost in _pieces(entry, tokens, room, count):
            if cost > room and part:
                parts.append(tuple(part))
                part, room = [], tokens
            part.append(piece)
            room -= cost
    return [*parts, tuple(part)] if part else parts


def _pieces(entry: Entry, tokens: int, room: int, count: Callable[[str], int]) -> Iterator[tuple[Entry, int]]:
    """Yield the entry, or its pieces, each with its tokens; the first piece fills ``room`` if that is large enough."""
    text, total = entry.text, count(entry.text)
    if total + _HEADER_TOKENS <= tokens:
        yield entry, total + _HEADER_TOKENS
        return
    start, least = 0, max(_HEADER_TOKENS + 1, tokens // 4)
    while start < len(text):
        most = (room if start == 0 and room >= least else tokens) - _HEADER_TOKENS
        end = min(len(text), start + max(1, len(text) * most // total))
        while (cost := count(text[start:end])) > most and end > start + 1:
            end = start + max(1, (end - start) * 3 // 4)
        if end < len(text):
            end = _line_end(text, start, end)
        speaker = entry.speaker.removesuffix(_CONTINUED) + _CONTINUED if start else entry.speaker
        yield Entry(speaker, text[start:end]), cost + _HEADER_TOKENS
        start = end


def _line_end(text: str, start: int, end: int) -> int:
    """Return a place in the last quarter before ``end`` where a paragraph, a line, a sentence or a word ends."""
    least = end - (end - start) // 4
    for separator in ("\n\n", "\n", ". ", " "):
        place = text.rfind(separator, least, end)
        if place >= 0:
            return place + len(separator)
    return end
