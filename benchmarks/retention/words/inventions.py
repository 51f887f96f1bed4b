"""Finds what a digest says that its sources do not: each line must be found in them, except for its labels.

Labels, headings, list marks, message numbers, counts and the marks of what was left out are the digest's own. Everything else
must be in the sources word for word: the whole line, or each of its sentences, or an excerpt of one text. A list of tokens
after a label must consist of tokens of the sources, and a note that a value changed must be about one thing.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from compaction import MessageIndex, presets, run_sync
from compaction.replay.facts import strings_in
from compaction.replay.text_search import occurs_in
from compaction.strategies import SummaryText
from compaction.tokens import TokenCounter

from ..matching import normalised
from .judging import squeezed, text_of

BUDGETS: Final = (0.1, 0.2, 0.3)
"""Shares of a recorded conversation's tokens that its digests are written for."""

_HEADING: Final = re.compile(r"\s*(?:#+ .*|\*\*[^*]+\*\*:?|[^:]{1,60}:)\s*")
_MARK: Final = re.compile(r"^[\s>]*(?:[-+*•·]|\d{1,3}[.)])?\s*(?:\[[ x]\]\s*)?")
_HANDED_OVER: Final = "[perhaps the output of a program] "
_LABEL: Final = re.compile(r"^[\[(]?[^\W\d_][\w &/,'’-]{0,40}[\])]?:\s+")
_REFERENCE: Final = re.compile(
    r"[\[(]?(?:,?\s*\b(?:in|from|until|since|at|by)\s+)?\bmessages?\s+\d+(?![\w.])"
    r"(?:\s*(?:-|–|,|and|to)\s*\d+)*[\])]?:?",
    re.IGNORECASE,
)
_EARLIER: Final = re.compile(r" \(earlier, message \d+\)$")
_ANSWERED: Final = re.compile(r"(.*) \(the assistant had said: \"(.*)\"\)(.*)")
_COUNT: Final = re.compile(r"\((?:x\s*\d+|\d+\s*(?:x|times|more\b[^)]*))\)", re.IGNORECASE)
_NOTE: Final = re.compile(r"\((?:was|now|before|earlier|then)\b:?\s*([^()]*?)\s*,?\s*(?:(?:until|since)\b[^()]*)?\)")
_CALL: Final = re.compile(r"^([\w.:-]+)\((.*)\)$", re.DOTALL)
_LEFT_OUT: Final = re.compile(r"\[?(?:\.\.\.|…)\]?|\[\d[^\]]*(?:omitted|left out|cut)[^\]]*\]")
_SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？；])\s*| \| ")
_ITEM: Final = re.compile(r"[\"“]([^\"”]+)[\"”]|([^\s\"“”]+)")
_STATES: Final = frozenset({"ok", "failed", "error", "done", "no output", "timed out", "empty"})
_LISTS: Final = re.compile(r"(?:Names|Names and ids|Numbers|Phrases|Paths and links) seen: ")
_LONG: Final = 8
_RUN: Final = 3
_ALONE: Final = 0.1  # share of the words of an excerpt that may stand alone, such as the `end` of some code
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_SHARED: Final = 0.5


class Sources:
    """The texts that a digest was made from. Holds caches.

    Args:
        texts: The texts of the messages.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [text for text in texts if text]
        self._plain = "\n".join(" ".join(text.casefold().split()) for text in self._texts)
        self._squeezed = "\n".join(map(squeezed, self._texts))
        self._with_prefixes = "\n".join(squeezed(text, prefixes=True) for text in self._texts)

    def says(self, words: str) -> bool:
        """Return whether words are in one of the texts, whatever the white space, the case and the emphasis."""
        key = squeezed(words).strip(".,;:()[]")
        return key in self._squeezed or key in self._with_prefixes

    def excerpt(self, text: str) -> bool:
        """Return whether one of the texts has all words of a text in order: as an excerpt that leaves out passages."""
        words = _LEFT_OUT.sub(" ", text).split()
        return any(_is_excerpt(words, source) for source in self._squeezed.split("\n"))

    def has_item(self, item: str) -> bool:
        """Return whether a token or name is in the texts; a short one only whole."""
        if not any(map(str.isalnum, item)) or (len(item) >= _LONG and squeezed(item) in self._squeezed):
            return True
        word = item.strip(",;.").casefold()
        before = r"(?<!\w)(?<!\d\.)" if word[0].isascii() and word[0].isalnum() else ""
        after = r"(?!\w)(?!\.\d)" if word[-1].isascii() and word[-1].isalnum() else ""
        return re.search(before + re.escape(word) + after, self._plain, re.ASCII) is not None

    def say_of(self, value: str, statement: str) -> bool:
        """Return whether a sentence with a value names what a statement is about: it has half of its longer words."""
        about = set(_WORD.findall(normalised(statement)))
        wanted = normalised(value)
        sentences = (sentence for text in self._texts for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n", text))
        return not about or any(
            occurs_in(wanted, plain) and len(about & set(_WORD.findall(plain))) >= _SHARED * len(about)
            for plain in map(normalised, sentences)
        )


def _is_excerpt(words: Sequence[str], source: str) -> bool:
    """Return whether a source has words in order, most of them in runs of three or more."""
    at = done = alone = 0
    while done < len(words):
        size = min(_RUN, len(words) - done)
        start = source.find(squeezed(" ".join(words[done : done + size])), at)
        if start < 0:
            size, start = 1, source.find(squeezed(words[done]), at)
            alone += 1
        if start < 0 or alone > _ALONE * len(words):
            return False
        while done + size < len(words) and source.startswith(squeezed(" ".join(words[done : done + size + 1])), start):
            size += 1
        at, done = start, done + size
    return True


def inventions(summary: str, sources: Sources) -> list[str]:
    r"""Return the lines of a digest that are not in its sources.

    >>> sources = Sources(["The port is 6543. Never restart it.", "The limit is 43."])
    >>> inventions("## Rules\\n- Never restart it. (message 1)\\n- First: The port ...\\n- Numbers: 6543 43", sources)
    []
    >>> inventions('- The limit is 43. (the assistant had said: "Never restart it.")', sources)
    []
    >>> inventions("- The port is 6544.\\n- The port is 6543. (was 43 until message 2)", sources)
    ['- The port is 6544.', '- The port is 6543. (was 43 until message 2)']
    """
    return [
        line for line in summary.splitlines() if line.strip() and not _HEADING.fullmatch(line) and not _is_in(line, sources)
    ]


def _is_in(line: str, sources: Sources) -> bool:
    """Return whether a line is in the sources, with or without its labels."""
    if found := _ANSWERED.fullmatch(line):
        return _is_in(found[1] + found[3], sources) and _is_in(found[2], sources)
    words = _MARK.sub("", _EARLIER.sub("", line), count=1).removeprefix(_HANDED_OVER)
    notes = [note[1] for note in _NOTE.finditer(words)]
    text = _COUNT.sub("", _REFERENCE.sub("", _NOTE.sub("", words))).strip()
    if not all(sources.say_of(value, text) for value in notes if value):
        return False
    return _is_said(text, words, sources) or (not notes and _is_said(words, words, sources))


def _is_said(text: str, words: str, sources: Sources) -> bool:
    """Return whether a text is in the sources, with or without up to three labels; ``words`` are those of its line."""
    for _ in range(3):
        if _passage(text, sources) or (text != words and _items(text, sources)):
            return True
        label = _LABEL.match(text)
        if label is None:
            return False
        text = text[label.end() :]
        if _items(text, sources, plain=_LISTS.match(label[0]) is not None):
            return True
    return False


def _passage(text: str, sources: Sources) -> bool:
    """Return whether a text is in the sources: whole, or as a call and its result, or as a change, or piece by piece."""
    if not text or sources.says(text):
        return True
    for arrow in re.finditer(" -> ", text):
        first, rest = text[: arrow.start()], text[arrow.end() :]
        if _call(first, sources) and (rest.strip(" .").casefold() in _STATES or _pieces(rest, sources)):
            return True
        if sources.says(first) and _passage(rest, sources):
            return sources.say_of(rest, first)
    return _call(text, sources) or _pieces(text, sources) or sources.excerpt(text)


def _call(text: str, sources: Sources) -> bool:
    found = _CALL.match(text.strip())
    return (
        found is not None
        and sources.has_item(found[1])
        and all(sources.says(argument) for part in _LEFT_OUT.split(found[2]) for argument in _arguments(part, sources))
    )


def _arguments(text: str, sources: Sources) -> list[str]:
    """Return a call's arguments, which may contain commas themselves."""
    return [text] if sources.says(text) else [re.sub(r"^\w+=", "", each.strip()) for each in text.split(", ")]


def _pieces(text: str, sources: Sources) -> bool:
    return all(
        sources.says(piece) or all(sources.says(sentence) for sentence in _SENTENCE.split(piece))
        for part in _LEFT_OUT.split(text)
        for piece in part.split(" / ")  # between two messages of one speaker
        if piece.strip()
    )


def _items(text: str, sources: Sources, *, plain: bool = False) -> bool:
    """Return whether a text is a list of names and numbers of the sources; plain words only where a label says that it is."""
    items = [found[1] or found[2] for found in _ITEM.finditer(_LEFT_OUT.sub(" ", text))]
    quoted = {found[1] for found in _ITEM.finditer(text) if found[1]}
    telling = plain or all(each in quoted or not (each.isalpha() and each.islower()) for each in items)
    return bool(items) and telling and all(map(sources.has_item, items))


# ---------------------------------------------------------------- digests of the recorded sessions


@attrs.frozen
class Digests:
    """A count over digests.

    Args:
        digests: How many.
        lines: Their lines, without headings.
        invented: Lines that are not in the sources.
        examples: Some of these lines.
    """

    digests: int = 0
    lines: int = 0
    invented: int = 0
    examples: tuple[str, ...] = ()

    def __add__(self, other: Digests) -> Digests:
        return Digests(
            self.digests + other.digests,
            self.lines + other.lines,
            self.invented + other.invented,
            self.examples + other.examples,
        )


def checked(view: Iterable[Any], messages: Sequence[Mapping[str, Any]]) -> Digests:
    """Return the count for the digests in a view of a conversation."""
    texts = [text for each in view if (text := text_of(each)).startswith("[compaction ")]
    if not texts:
        return Digests()
    sources, count = Sources(_said(messages)), Digests()
    for text in texts:
        _, _, rest = text.partition("\n\n")
        body = rest.strip().removesuffix(SummaryText().end).strip()
        found = inventions(body, sources)
        lines = sum(bool(line.strip()) and not _HEADING.fullmatch(line) for line in body.splitlines())
        count += Digests(1, lines, len(found), tuple(found))
    return count


def _said(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts of messages, and their calls: names, and arguments as the tool gets them and as JSON."""
    for each in messages:
        yield text_of(each)
        for call in each.get("tool_calls") or ():
            function = call["function"]
            yield function["name"]
            yield function["arguments"]
            yield " ".join(strings_in(function["arguments"]))


def corpus_digests(
    folder: Path, conversations: int, seed: int, counter: TokenCounter, *, files: Sequence[str] = ()
) -> dict[str, Digests]:
    """Return the counts for `token_budget` at shares of recorded conversations, by file."""
    found: dict[str, Digests] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        if files and name not in files:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            recorded = [messages for line in lines if len(messages := json.loads(line).get("messages", [])) > 8]
        for messages in random.Random(f"{seed}/{name}").sample(recorded, min(conversations, len(recorded))):
            for share in BUDGETS:
                index = MessageIndex(list(messages), counter=counter)
                run_sync(index, presets.token_budget(max(1, int(index.tokens * share))))
                found[name] = found.get(name, Digests()) + checked(index.messages(), messages)
    return found
