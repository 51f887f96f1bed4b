"""A Griffe extension that shows the doctests of a docstring as code: Markdown would read ``>>>`` as a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\n).+\n?)*\n?(?=>>> )?)+", re.MULTILINE)
LITERAL = re.compile(r"``(.+?)``")


class Doctests(griffe.Extension):
    """Put each run of doctest lines into a block of code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            text = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", obj.docstring.value)
            obj.docstring.value = LITERAL.sub(r"`\1`", text)
