"""Columns of secrets in tables: Markdown, and the output of database clients."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final

from .secret_shapes import NAME_ALONE
from .secret_values import is_strong, secret_kind

__all__ = ["without_secret_columns"]

_RULE: Final = re.compile(r"^[ \t]{0,8}[|+]?[ \t]{0,2}:?-{2}[-|+: \t]{0,4096}$", re.MULTILINE)
_HEAD_CHARS: Final = 4_096
_NAME_CHARS: Final = 64


def without_secret_columns(text: str, mark: str) -> str:
    r"""Return the text with a mark in place of each word that looks like a secret under a head such as ``password``.

    A table has a head, a line of dashes, and rows; ``|`` stands between the cells. Cost: linear in the text.

    >>> print(without_secret_columns("| user | password |\n|---|---|\n| dan | hunter22 |", "[REDACTED]"))
    | user | password |
    |---|---|
    | dan | [REDACTED] |
    """
    if "|" not in text or "--" not in text:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in _secret_cells(text):
        if start >= done:
            pieces += [text[done:start], mark]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _secret_cells(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each such word starts and ends."""
    read = 0
    for rule in _RULE.finditer(text):
        if rule.start() < read:
            continue
        end_of_head = rule.start() - 1
        head = text[text.rfind("\n", max(0, end_of_head - _HEAD_CHARS), max(0, end_of_head)) + 1 : max(0, end_of_head)]
        columns = {number for number, cell in enumerate(head.split("|")) if "|" in head and _is_for_secrets(cell)}
        if columns:
            read = yield from _cells_under(text, rule.end() + 1, columns)


def _is_for_secrets(head: str) -> bool:
    """Return whether a head names secrets."""
    found = NAME_ALONE.fullmatch(head) if len(head) <= _NAME_CHARS else None
    return found is not None and secret_kind(found, head[: found.start("name")]) is not None


def _cells_under(text: str, start: int, columns: set[int]) -> Generator[tuple[int, int], None, int]:
    """Yield the words that look like a secret in these columns of the rows from ``start``; return where the rows end."""
    while start < len(text):
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else len(text)]
        if "|" not in row:
            break
        place = start
        for number, cell in enumerate(row.split("|")):
            word = cell.strip(" \t`*")
            if number in columns and is_strong(word) and " " not in word:
                begins = place + cell.index(word)
                yield begins, begins + len(word)
            place += len(cell) + 1
        start += len(row) + 1
    return start
