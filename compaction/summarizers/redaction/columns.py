"""Secrets under a name: in columns of tables and CSV files, and in lists."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final

from .names import name_kind
from .searches import SecretSpan, expression
from .values import is_strong, looks_random

# ---------------------------------------------------------------- columns

# the head of a column of secrets; if it ends in ``key``, `name_kind` decides
_NAME_ALONE: Final = re.compile(expression(r"""(?i)[*`"' ]{0,4}[\w. -]{0,40}?(?P<name><name>)<ending>[*`"' ]{0,4}"""))
# the cells of a line, by what stands between them: | a \| b |, and "Doe, Ann",b; the first that occurs decides
_CELLS: Final = {
    **{bar: re.compile(rf"(?:^|[{bar}])((?:\\{{1,3}}[{bar}]|[^{bar}])*)") for bar in "|│║┃"},
    **{sign: re.compile(rf"""(?:^|{sign})(\\{{0,3}}"(?:[^"]|"")*+"[ ]{{0,2}}(?={sign}|$)|[^{sign}]*)""") for sign in "\t;,"},
    "  ": re.compile(r"([^ \t]+(?:[ \t][^ \t]+)*)"),
}
# |---|---|, +--------+, ─────┼─────
_RULE: Final = re.compile(r"[ \t]{0,8}[|+│├╟]?[ \t]{0,2}:?[-─═]{2}[-|+: \t─═┼┤╢│║╫]{0,4096}")
_HEAD_CHARS: Final = 4_096
_NAME_CHARS: Final = 64


def secrets_in_columns(text: str, places: list[int]) -> Iterator[SecretSpan]:
    """Yield each word that looks like a secret under a head such as ``password``.

    A table is a head, perhaps a line of dashes, and rows with as many cells. Between the cells stand ``|``, tabs, semicolons,
    commas, or two spaces and more. Cost: linear in the text.
    """
    read = 0  # where the last head or table ends: a name in it begins no other one
    for place in places:
        start = text.rfind("\n", max(0, place - _HEAD_CHARS), place) + 1  # 0 in a line that is too long for a head
        end = text.find("\n", place, place + _HEAD_CHARS)
        if place < read or start < read or end < 0:
            continue
        read = end
        head = text[start:end]
        separator = next((each for each in _CELLS if each in head), "  ")
        if separator == "," and ", " in head.rstrip():  # a sentence, or arguments
            continue
        cells = _CELLS[separator].findall(head)
        columns = [number for number, cell in enumerate(cells) if _is_for_secrets(cell)]
        if columns and sum(bool(cell.strip()) for cell in cells) > 1:  # not a list with a comma at the end of each line
            read = yield from _cells_under(text, end + 1, _CELLS[separator], len(cells), columns)


def _is_for_secrets(head: str) -> bool:
    """Return whether a head names secrets."""
    found = _NAME_ALONE.fullmatch(head.strip(" \t\\\"'")) if len(head) <= _NAME_CHARS else None
    return found is not None and name_kind(found, found.start("name")) is not None


def _cells_under(
    text: str, start: int, cell: re.Pattern[str], width: int, columns: list[int]
) -> Generator[SecretSpan, None, int]:
    """Yield the words that look like a secret in these columns of the rows from ``start``; return where the rows end."""
    while start < len(text):
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else len(text)]
        cells = list(cell.finditer(row))
        is_row = len(cells) == width and row.strip()
        if not is_row and not _RULE.fullmatch(row):
            break
        for found in [cells[number] for number in columns] if is_row else ():
            word = found[1].strip(" \t\\`*\"'")
            if is_strong(word) and " " not in word:
                begins = start + found.start(1) + found[1].index(word)
                yield begins, begins + len(word), "column"
        start += len(row) + 1
    return start


# ---------------------------------------------------------------- lists

# a name for secrets at the head of a list: ``passwords: [``, ``"tokens" = (``, ``passwords:`` and a line break
_LISTED: Final = re.compile(expression(r"(?i)<name>(?:e?s)?(?:<quote>)?[ \t]{0,4}[:=][ \t]{0,4}(?:(?P<bracket>[\[(])|(?=\n))"))
# the lines of a YAML list: ``  - hunter22``, or a field of an item, ``    value: hunter22``
_LIST_LINES: Final = re.compile(r"(?:\n[ \t]{0,32}(?:-[ \t]|[ \t][\w-]{1,64}:)[^\n]{0,4096}){1,256}")
# a line of a YAML list with one word: ``  - hunter22``, ``  - value: "hunter22"``, ``  value: hunter22``
_LIST_ITEM: Final = re.compile(
    r"""\n[ \t]{0,32}(?:-[ \t]{1,4})?(?:value:[ \t]{1,4})?\\{0,3}["']?(?P<line>[^\s"':\\]{6,512})\\{0,3}["']?[ \t]*(?=\n|\Z)"""
)
# a word in brackets: ``["hunter22"``, ``(hunter22,``, or ``["hunter22`` at the end of the text
_BRACKET_ITEM: Final = re.compile(
    r"""["'`](?P<quoted>[^"'`\s\\]{6,512})\\{0,3}(?:["'`]|\Z)|(?<=[\s,\[(])(?P<plain>[^\s,"'`\[\](){}]{6,512})"""
)
_LIST_CHARS: Final = 8_192


def secrets_in_lists(text: str, places: list[int]) -> Iterator[SecretSpan]:
    """Yield the items that look like secrets in a list under a name such as ``passwords``."""
    read = 0
    for place in places:
        found = _LISTED.match(text, place) if place >= read else None
        if found is None or found["short"]:
            continue
        kind = name_kind(found, place)
        lines = None if found["bracket"] else _LIST_LINES.match(text, found.end())
        if kind is None or (lines is None and not found["bracket"]):
            continue
        if lines is not None:
            start, read, item = found.end(), lines.end(), _LIST_ITEM
        else:
            start, read, item = found.end() - 1, _end_of_list(text, found), _BRACKET_ITEM
        for each in item.finditer(text, start, read):
            word = each[each.lastgroup or 0]
            if is_strong(word) if kind == "password" else looks_random(word):
                yield *each.span(each.lastgroup or 0), kind


def _end_of_list(text: str, opening: re.Match[str]) -> int:
    """Return where the list in these brackets ends; if it was cut off, where the next list begins, or after `_LIST_CHARS`."""
    start, end = opening.end(), opening.end() + _LIST_CHARS
    close = text.find("]" if opening["bracket"] == "[" else ")", start, end)
    if close >= 0:
        return close
    following = _LISTED.search(text, start, end)
    return following.start() if following else min(end, len(text))
