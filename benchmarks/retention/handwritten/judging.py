"""Judges which items a request has, by the words of their marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ..matching import Passage, normalised, text_passages
from .conversations import Conversation, Item, Words

NEAR: Final = 600
"""Characters before the words of others in which their source must be."""
LINES: Final = 4
"""Lines between an answer and what it answers, in one message."""
BEFORE: Final = 3
"""Messages before an answer in which what it answers may be."""
SHORT: Final = 6
"""Characters of an answer that counts only where a line begins with it: "2" is not the number of an option."""

_LABEL: Final = re.compile(r"perhaps|pasted|output|seen:")
_START: Final = r"^\W*(?:[^:]{1,20}: )?"
_END: Final = r"(?![\w)]|\.\s*\w)"


@attrs.frozen
class Present:
    """The parts of a conversation that a request has.

    Args:
        items: Places of the items that it has.
        stale: Places of the items that it has although they were revoked, without what revoked them.
        claimed: Places of the words of others that it has, in a text that was rewritten, without their source.
    """

    items: frozenset[int]
    stale: frozenset[int]
    claimed: frozenset[int]


class Judge:
    """Judges the requests of a conversation. Holds state: what each text has, since most texts are in many requests.

    Args:
        conversation: The conversation.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._originals = {id(each) for each in conversation.messages}
        self._known: dict[tuple[str, bool], _Found] = {}

    def present(self, view: Sequence[Any], count: int) -> Present:
        """Return what a request has, of what was said in the first `count` messages."""
        found = [self._found_in(shown(each), id(each) in self._originals) for each in view]
        words = frozenset[int]().union(*(each.whole for each in found))
        for at, each in enumerate(found):
            before = frozenset[int]().union(*(one.about for one in found[max(0, at - BEFORE) : at]))
            words |= each.answers & before
        stale = {
            place
            for place, item in enumerate(self._conversation.items)
            if item.revoked_by and item.revoked_by.at < count and place in words and not has(view, item.revoked_by.words)
        }
        claimed = frozenset[int]().union(*(each.claimed for each in found))
        return Present(words, frozenset(stale), claimed)

    def _found_in(self, text: str, original: bool) -> _Found:
        found = self._known.get((text, original))
        if found is None:
            found = self._known[text, original] = self._read(text, original)
        return found

    def _read(self, text: str, original: bool) -> _Found:
        lines, whole, alone, asked = _lines(text), set[int](), set[int](), set[int]()
        for place, item in enumerate(self._conversation.items):
            if not item.about:
                whole |= {place} if _lines_with(lines, item.words) else set()
                continue
            answers, questions = _answers(lines, item.words), _lines_with(lines, item.about)
            near = any(abs(one - other) <= LINES for one in answers for other in questions)
            whole |= {place} if near else set()
            alone |= {place} if answers and not near else set()
            asked |= {place} if questions else set()
        foreign = enumerate(() if original else self._conversation.foreign)
        claimed = {place for place, item in foreign if _lines_with(lines, item.words) and not has_source(text, item)}
        return _Found(frozenset(whole), frozenset(alone), frozenset(asked), frozenset(claimed))


@attrs.frozen
class _Found:
    """The parts that one text has: whole items, answers alone, words that are answered, and words of others without source."""

    whole: frozenset[int]
    answers: frozenset[int]
    about: frozenset[int]
    claimed: frozenset[int]


def shown(message: Any) -> str:
    """Return the text of a message as a reader sees it: after the name of its writer, and with the arguments of its calls."""
    content: Any = message.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)
    calls = (f"{each['function']['name']} {each['function']['arguments']}" for each in message.get("tool_calls") or ())
    return "\n".join([f"{message['name']}: {text}" if message.get("name") else text, *calls])


def marked_tokens(said: Conversation) -> int:
    """Return the tokens, at four characters each, of the lines with the items that must be there at the end."""
    lines = {
        (item.at, line)
        for item in said.items
        if item.until is None
        for line in text_passages(shown(said.messages[item.at]))
        if _lines_with(_lines(line), item.words)
    }
    return sum(len(line) for _, line in lines) // 4


def has(view: Iterable[Any], words: Words) -> bool:
    """Return whether a line of a message has all words of an alternative."""
    return any(_lines_with(_lines(shown(each)), words) for each in view)


def _lines(text: str) -> list[Passage]:
    return [Passage(normalised(line), 0) for line in text_passages(text)]


def _lines_with(lines: Sequence[Passage], words: Words) -> list[int]:
    """Return the places of the lines that have all words of an alternative."""
    return [at for at, line in enumerate(lines) if any(line.has_all((each,) for each in alternative) for alternative in words)]


def _answers(lines: Sequence[Passage], words: Words) -> list[int]:
    """Return the places of the lines with an answer, whose own words come last in each alternative."""
    return [at for one in words for at in _lines_with(lines, (one,)) if _is_answer(lines[at].text, normalised(one[-1]))]


def _is_answer(line: str, words: str) -> bool:
    """Return whether a line has an answer, which it begins with if it is short.

    >>> _is_answer("- mara: 2 (message 5)", "2"), _is_answer("2. oak", "2"), _is_answer("the lower one, with 2", "2")
    (True, False, False)
    """
    return len(words) > SHORT or re.match(_START + re.escape(words) + _END, line) is not None


def has_source(text: str, item: Item) -> bool:
    """Return whether a text names the source of somebody else's words before them, or says that they were pasted or printed."""
    plain = normalised(text)
    sources = [normalised(word) for words in item.about for word in words]
    places = [found.start() for words in item.words for found in re.finditer(re.escape(normalised(words[0])), plain)]
    before = [plain[max(0, place - NEAR) : place] for place in places]
    return all(_LABEL.search(each) or any(source in each for source in sources) for each in before)
