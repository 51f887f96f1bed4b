"""Docstrings as Markdown, for the pages of the API reference: doctests become blocks of code, names of pages links."""

from __future__ import annotations

import re

DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\n).+\n?)*\n?(?=>>> )?)+", re.MULTILINE)
PAGE = re.compile(r"``docs/(\S+\.md)``")
LITERAL = re.compile(r"``(.+?)``")
FUNCTION = re.compile(r"<(?:built-in )?function (?:\w+\.)?_*([\w<>]+)(?: at 0x\w+)?>")
UNREADABLE = re.compile(r"<dynamic>|<.* object at 0x\w+>")


def to_markdown(docstring: str) -> str:
    """Return a docstring as Markdown."""
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", docstring)
    return LITERAL.sub(r"`\1`", PAGE.sub(r"[\1](../\1)", text))


def plain_default(default: str) -> str:
    """Return a default for readers: a function by its name, ``...`` for an object that has no short form.

    >>> plain_default("<function redact at 0x7f3>"), plain_default("<dynamic>")
    ('redact', '...')
    """
    return UNREADABLE.sub("...", FUNCTION.sub(r"\1", default))
