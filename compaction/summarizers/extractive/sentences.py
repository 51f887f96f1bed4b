"""Sentences of a text, word for word, for the quotations in a digest; and texts cut to a length."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from .lines import MARK, fenced_blocks

_TABLE: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
WORDS: Final[dict[str, frozenset[str]]] = {name: frozenset(listed.split()) for name, listed in _TABLE.items()}
ASKING: Final = ("?", "？", "؟")  # the marks at the end of a question
STATING: Final = (".", "!", "。", "！", "।")  # the marks at the end of any other sentence
_WIDE_ENDS: Final = ("。", "！", "？")  # no blank follows
ENDS: Final = (*ASKING, *STATING, "…")
LONGEST_SENTENCE: Final = 400  # characters of a sentence that are read and quoted; no line of a summary has more
WORD: Final = re.compile(r"[^\W_]+")  # a run of letters and digits
CUT: Final = "…"  # the end of a word that was cut; a whole word before a cut is followed by a blank and three dots
READ_CHARS: Final = 200_000  # of a longer text only both ends are read: it is data, and its middle is rarely mentioned

_MARK: Final = re.compile(rf"{MARK.pattern}|\s*[>#]+\s+")  # of an item, a quotation or a heading
_CLOSERS: Final = "\"'”’“»«)]*」』）】"  # behind an end mark they belong to the sentence
_CLOSING: Final = f"[{re.escape(_CLOSERS)}]"
_END: Final = re.compile(rf"[。！？।؟]{_CLOSING}*\s*|[.!?…](?:{_CLOSING}+|\s»)?\s+")
_WORD_BEFORE: Final = re.compile(r"[^\s(\[\"'„“]{1,24}\Z")
_TWO_PARTS: Final = re.compile(r"(?<!\w)[^\W\d_]\. [^\W\d_]\.")  # "z. B.", "d. h."
_NUMBERED: Final = re.compile(r"\d{1,2}\Z")
_CODE: Final = re.compile(r"[A-Z-]{1,8}+\d")
_LONGEST_ABBREVIATION: Final = 24


_COMPLETE: Final = ".!?:;。！？：；"  # the marks after which no sentence continues in the next line


def both_ends(text: str) -> str:
    """Return the text, or `READ_CHARS` characters of it: two thirds from its beginning, one third from its end."""
    if len(text) <= READ_CHARS:
        return text
    return f"{text[: READ_CHARS * 2 // 3]}\n{text[-(READ_CHARS // 3) :]}"


_Part = TypeVar("_Part")


def first_and_last(parts: list[_Part], most: int) -> list[_Part]:
    """Return the parts of a text, or of more than ``most`` two thirds from its beginning, and one third from its end."""
    return parts if len(parts) <= most else [*parts[: most * 2 // 3], *parts[-(most // 3) :]]


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of a text, without list marks and fenced code; O(characters).

    A line that starts in lower case after a line without an end mark continues the sentence.

    >>> list(sentences("Use tabs. Please never\ntouch the cache!\n- 파일은 지우지 마세요"))
    ['Use tabs.', 'Please never touch the cache!', '파일은 지우지 마세요']
    """
    pending, lines = list[str](), text.splitlines()
    for span in reversed([*fenced_blocks(lines)]):
        del lines[span.start : span.stop]
    for line in lines:
        mark = _MARK.match(line)
        if mark or not pending or not continues(pending[-1], line):
            yield from sentences_in(" ".join(pending))
            pending.clear()
        pending.append((line[mark.end() :] if mark else line).strip())
    yield from sentences_in(" ".join(pending))


def sentences_in(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    start = 0
    for end in _END.finditer(paragraph):
        if end[0][0] == "." and _is_abbreviated(paragraph, end):
            continue
        if sentence := paragraph[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := paragraph[start:].strip():
        yield sentence


def ends_in(sentence: str, marks: tuple[str, ...]) -> bool:
    """Return whether a sentence ends in one of these marks; what closes behind the mark does not count."""
    return sentence.rstrip(_CLOSERS).endswith(marks)


def joint(sentence: str) -> str:
    """Return what stands between a sentence and the next one: nothing behind a mark of Chinese or Japanese, or else a blank."""
    return "" if ends_in(sentence, _WIDE_ENDS) else " "


def _is_abbreviated(text: str, end: re.Match[str]) -> bool:
    """Return whether a dot belongs to an abbreviation, an ordinal, or a quotation that the sentence continues behind."""
    before = _WORD_BEFORE.search(text, max(0, end.start() - _LONGEST_ABBREVIATION), end.start())
    word = before[0].lower() if before else ""
    after = text[end.end() : end.end() + 1]
    if after.islower() and end[0].strip() != ".":  # 'Keep "Never again." in it.'
        return True
    if word in WORDS["abbreviations"]:  # "ca. 3"
        return True
    if len(word) == 1 and _TWO_PARTS.search(text, max(0, end.start() - 4), end.start() + 4):  # "z. B."
        return True
    if after.islower() and (len(word) == 1 or word in WORDS["abbreviations_before_small_letters"]):  # "Kim, H. is", "5 min. on"
        return True
    if after.isupper() and word in WORDS["abbreviations_before_numbers"] and _CODE.match(text, end.end()):  # "no. QX7-44"
        return True
    if after.isdigit():
        return word in WORDS["abbreviations_before_numbers"] or word.endswith("str")  # "no. 7", "Hauptstr. 7"
    if after.isupper() and word in WORDS["abbreviations_before_names"]:  # "Dr. Vogt", "M. Vogt"; not "100 m. The"
        return len(word) > 1 or before is None or before[0].isupper()
    follows = WORD.match(text, end.end()) if _NUMBERED.fullmatch(word) else None
    return follows is not None and follows[0].lower() in WORDS["ordinals"]  # "3. Oktober"


def continues(before: str, line: str) -> bool:
    """Return whether a line continues the sentence of the line before it."""
    return line[:1].islower() and before[-1:] not in _COMPLETE


def one_line(text: str, chars: int) -> str:
    r"""Return the text on one line of at most ``chars`` characters.

    >>> one_line("8 passed,\n2 failed", 15)
    '8 passed, ...'
    """
    line = clipped(" ".join(text[: 8 * chars].split()), chars)
    return line if len(text) <= 8 * chars or line.endswith((CUT, " ...")) else f"{line[: chars - 4]} ..."


def clipped(text: str, chars: int) -> str:
    """Return at most ``chars`` characters of the text, cut after a word if possible; a word that is cut ends in ``…``."""
    if len(text) <= chars:
        return text
    room = max(0, chars - 4)
    blank = max(text.rfind(" ", room // 2, room + 1), text.rfind("\n", room // 2, room + 1))
    return f"{text[:room].rstrip()}{CUT}" if blank < 0 else f"{text[:blank].rstrip()} ..."


def chars_within(chars: int, tokens: float, count: Callable[[int], int], *, least: int) -> int:
    """Return how many of the characters of a text have about so many tokens, ``least`` or more.

    ``count`` returns the tokens of the text cut to so many characters.
    """
    while chars > least and (found := count(chars)) > tokens:
        chars = max(least, min(chars - 1, int(chars * tokens / found)))
    return chars
