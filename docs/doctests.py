"""A Griffe extension: docstrings become Markdown, in which doctests would be read as quotations; defaults become names."""

from __future__ import annotations

from typing import Any

import griffe
from docstrings import plain_default, to_markdown


class Doctests(griffe.Extension):
    """Put each run of doctest lines into a block of code, link the pages of this site, and shorten defaults."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Change the defaults of a class's parameters."""
        for section in cls.docstring.parsed if cls.docstring else ():
            if isinstance(section, griffe.DocstringSectionParameters):
                for item in section.value:
                    if item.default is not None:
                        item.value = plain_default(str(item.default))
