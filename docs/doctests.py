"""A Griffe extension that changes docstrings to Markdown: doctests to code, which would be read as quotations, and links."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\n).+\n?)*\n?(?=>>> )?)+", re.MULTILINE)
PAGE = re.compile(r"``docs/(\S+\.md)``")
FUNCTION = re.compile(r"<(?:built-in )?function (?:\w+\.)?_*([\w<>]+)(?: at 0x\w+)?>")
UNREADABLE = re.compile(r"<dynamic>|<.* object at 0x\w+>")
LITERAL = re.compile(r"``(.+?)``")


def to_markdown(docstring: str) -> str:
    """Return a docstring as Markdown: examples as blocks of code, names of pages as links."""
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", docstring)
    return LITERAL.sub(r"`\1`", PAGE.sub(r"[\1](../\1)", text))


class Doctests(griffe.Extension):
    """Put each run of doctest lines into a block of code, and link the pages of this site."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Name the functions that are defaults; leave out a default that another argument or a new object determines."""
        for section in cls.docstring.parsed if cls.docstring else ():
            if isinstance(section, griffe.DocstringSectionParameters):
                for item in section.value:
                    if item.default is not None:
                        item.value = UNREADABLE.sub("...", FUNCTION.sub(r"\1", str(item.default)))
