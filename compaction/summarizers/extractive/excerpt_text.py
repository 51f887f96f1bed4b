r"""The text of an excerpt: how the user's messages are quoted in a summary, and read again in a later round.

Each message is an entry. Behind its words stand two notes at most: the question that they answer, and the message's number::

    The user's messages, word for word:
    - Rules:
      - no tabs
    - yes, the first (the assistant had said: "Shall I use (1) ruff or (2) black?")
    - The port is 8080. (message 12)
    - Redo what you did in \(message 12)

In the last entry, the user wrote what looks like a note: a backslash, which is removed when it is read, keeps them apart.
Behind a fence or a row of a table, the notes stand in a line of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .lines import FENCE, ROW

EXCERPT_HEADING: Final = "The user's messages, word for word:"

_QUESTION: Final = '(the assistant had said: "'
_QUESTION_END: Final = '")'
_NUMBER: Final = "(message "
_NUMBER_AT_END: Final = re.compile(r"[ \n]\(message \d{1,9}\)\Z")
_NOTE: Final = rf"(?:{re.escape(_QUESTION)}|{re.escape(_NUMBER)})"
_PLAIN_NOTE: Final = re.compile(rf"(?<=[ \n])(?=\\*{_NOTE})")
_ESCAPED_NOTE: Final = re.compile(rf"(?<=[ \n])\\(?=\\*{_NOTE})")


def quotation(words: str, question: str = "", number: int | None = None) -> str:
    """Return the words of a message as they are quoted, with the question that they answer and the message's number."""
    if _QUESTION in words or _NUMBER in words:
        words = _PLAIN_NOTE.sub(r"\\", words)
    notes = [f"{_QUESTION}{question}{_QUESTION_END}"] if question else []
    notes += [f"{_NUMBER}{number})"] if number else []
    last = words[words.rfind("\n") + 1 :]
    before = "\n" if FENCE.match(last) or ROW.fullmatch(last) else " "
    return f"{words}{before}{' '.join(notes)}" if notes else words


def read_quotation(entry: str) -> tuple[str, str]:
    r"""Return the words of an entry without a number, and the question behind them, which is empty if there is none.

    >>> read_quotation(quotation("yes (message 3)", question="Go?"))
    ('yes (message 3)', 'Go?')
    """
    words, _, question = entry.rpartition(_QUESTION)
    if not words.endswith((" ", "\n")) or not question.endswith(_QUESTION_END):
        return _ESCAPED_NOTE.sub("", entry), ""
    return _ESCAPED_NOTE.sub("", words[:-1]), question.removesuffix(_QUESTION_END)


def write_excerpt(entries: Iterable[str]) -> str:
    """Return the excerpt with these entries; further lines of an entry are indented."""
    lines = [EXCERPT_HEADING]
    for entry in entries:
        first, *others = entry.rstrip().split("\n")
        lines += [f"- {first}", *[f"  {line}" if line.strip() else "" for line in others]]
    return "\n".join(lines)


def split_excerpt(text: str) -> tuple[tuple[str, ...], str]:
    r"""Return the entries of the excerpts in a summary, without the numbers of messages, and the rest of the summary.

    A blank line stands inside an entry or ends the excerpt: a list behind it is not the user's.

    >>> split_excerpt("The user's messages, word for word:\n- Fix X.\n  Not Y.\n\n## Done\n- X")
    (('Fix X.\nNot Y.',), '## Done\n- X')
    """
    entries: list[list[str]] = []
    rest: list[str] = []
    inside = blank = False
    for line in text.split("\n"):
        if line == EXCERPT_HEADING:
            inside, blank = True, False
        elif inside and line.startswith("- ") and not blank:
            entries.append([line[2:]])
        elif inside and entries and (line.startswith("  ") or not line):
            entries[-1].append(line[2:])
            blank = not line
        else:
            inside = False
            rest.append(line)
    return tuple([_NUMBER_AT_END.sub("", "\n".join(lines).rstrip()) for lines in entries]), "\n".join(rest).strip()


def quoted_words(text: str, *, answers_only: bool = False) -> tuple[str, ...]:
    """Return the user's words in the excerpts of a summary, a text for each message, or for each with its question."""
    read = [read_quotation(entry) for entry in split_excerpt(text)[0]]
    return tuple([words for words, question in read if question or not answers_only])


def without_excerpts(text: str) -> str:
    r"""Return a text in which no line begins an excerpt: what a model writes is never read back as the user's words.

    >>> without_excerpts("Done.\n\nThe user's messages, word for word:\n- Delete it.").splitlines()[2]
    "> The user's messages, word for word:"
    """
    return "\n".join([f"> {line}" if line == EXCERPT_HEADING else line for line in text.split("\n")])
