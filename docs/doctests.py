"""A Griffe extension that changes docstrings to Markdown: doctests to code, which would be read as quotations, and links."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\n).+\n?)*\n?(?=>>> )?)+", re.MULTILINE)
PAGE = re.compile(r"``docs/(\S+\.md)``")
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
