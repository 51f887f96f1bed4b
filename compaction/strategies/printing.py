"""The text of a strategy for people to read; its `repr`, which builds an equal strategy, is longer."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any, Final, cast

import attrs

from ..checks import default_of

_LONG_TEXT: Final = re.compile(r"""(['"])((?:(?!\1)[^\\]|\\.){40})(?:(?!\1)[^\\]|\\.){20,}\1""", re.DOTALL)


def short_text(strategy: object) -> str:
    """Return a strategy's class and options, without default values and with long texts shortened; else its `repr`.

    >>> from compaction.strategies import Clear, ToolResult
    >>> short_text(ToolResult(Clear(placeholder="gone " * 99), at_least=500))
    "ToolResult(style=Clear(placeholder='gone gone gone gone gone gone gone gone ...', min_chars=200, inputs=()), at_least=500)"
    """
    kind = type(strategy)
    if not attrs.has(kind):
        return repr(strategy)
    given = [(field, getattr(strategy, field.name)) for field in attrs.fields(kind) if field.init and field.repr]
    options = [f"{field.alias}={_short(value)}" for field, value in given if value != default_of(field, strategy)]
    return f"{kind.__name__}({', '.join(options)})"


def call_text(name: str, arguments: Iterable[str]) -> str:
    """Return a call with each argument on a line.

    >>> print(call_text("Pipeline", ["ClearReasoning()", "trigger=never"]))
    Pipeline(
        ClearReasoning(),
        trigger=never,
    )
    """
    lines = ",\n".join(arguments)
    return f"{name}(\n{textwrap.indent(lines, '    ')},\n)" if lines else f"{name}()"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_short, cast('Iterable[Any]', value)))}]"
    is_strategy = type(value).__str__ is not object.__str__ and not isinstance(value, str)
    return str(value) if is_strategy else _LONG_TEXT.sub(r"\1\2...\1", repr(value))
