"""The regular expressions of the package, and texts on which a careless expression would be slow.

Such a text repeats what a part of the expression matches, so that a match can begin at many places but ends at the last place
or at none.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

import compaction

_REPEATS: Final = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_OF_CATEGORY: Final = {
    op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a",
    op.CATEGORY_NOT_DIGIT: "x", op.CATEGORY_NOT_SPACE: "x", op.CATEGORY_NOT_WORD: "-",
}  # fmt: skip
_CALL: Final = re.compile(r"\b(_?[A-Z][A-Z_]*)\.(match|fullmatch|search|subn?|finditer|findall|split)\b")
_UNIT_CHARS: Final = 60


@attrs.frozen
class UsedPattern:
    """A compiled expression and the methods it is called by.

    Args:
        name: The module and the name of the expression in it.
        pattern: The expression.
        methods: The methods that the package calls on that name; all methods that search, if it calls none.
    """

    name: str
    pattern: re.Pattern[Any] = attrs.field(repr=False)
    methods: frozenset[str]

    def run(self, text: str) -> None:
        """Apply the expression as the package does: search the whole text, or match at its start."""
        given: Any = text.encode("latin-1", "replace") if isinstance(self.pattern.pattern, bytes) else text
        if self.methods <= {"match", "fullmatch"}:
            self.pattern.match(given)
            self.pattern.fullmatch(given)
        else:
            self.pattern.subn(given[:0], given)


@cache
def used_patterns() -> tuple[UsedPattern, ...]:
    """Return every compiled expression in a module of the package, also within its dictionaries and tuples."""
    calls = {str(path): _CALL.findall(path.read_text("utf-8")) for path in Path(compaction.__path__[0]).rglob("*.py")}
    found: dict[tuple[object, int], UsedPattern] = {}
    for module in pkgutil.walk_packages(compaction.__path__, "compaction."):
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # a framework that is not installed
            continue
        own = calls.get(str(loaded.__file__), [])
        for name, value in sorted(vars(loaded).items()):
            listed = own if name.startswith("_") else [call for each in calls.values() for call in each]
            methods = frozenset(method for called, method in listed if called == name) or frozenset({"search"})
            for place, pattern in _patterns_in(f"{module.name}.{name}", value):
                found.setdefault((pattern.pattern, pattern.flags), UsedPattern(place, pattern, methods))
    return tuple(found.values())


def _patterns_in(place: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _patterns_in(f"{place}[{key!r:.20}]", each)
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _patterns_in(f"{place}[{number}]", each)


def hostile_units(pattern: re.Pattern[Any]) -> list[str]:
    """Return short texts to repeat: one for each part and each beginning of the expression, and near misses."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    units = {"a", " ", "\n", *(unit for part in _parts(parser.parse(text, pattern.flags)) for unit in part)}
    return sorted({unit[:_UNIT_CHARS] for unit in units if unit})


def _parts(parsed: Any) -> Iterator[tuple[str, ...]]:
    """Yield texts for a parsed sequence and for everything within it."""
    items = list(parsed)
    whole = _example(items)
    yield whole, whole[:-1], whole + "\n", whole + " "
    for number, (code, value) in enumerate(items):
        yield _example(items[: number + 1]), _example(items[number:])
        for inner in _inner(code, value):
            yield from _parts(inner)


def _inner(code: object, value: Any) -> list[Any]:
    if code in _REPEATS:
        return [value[2]]
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.BRANCH:
        return list(value[1])
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    return [value] if code is op.ATOMIC_GROUP else []


def _example(items: Any) -> str:
    """Return a text that a parsed sequence matches; lookahead and lookbehind are ignored."""
    return "".join(_example_of(code, value) for code, value in items)


def _example_of(code: object, value: Any) -> str:
    if code is op.LITERAL:
        return chr(value)
    if code in (op.ANY, op.NOT_LITERAL):
        return "x" if value != ord("x") else "y"
    if code is op.IN:
        return _member(value)
    if code in _REPEATS:
        return _example(value[2]) * max(value[0], min(value[1], 1))
    if code in (op.ASSERT, op.ASSERT_NOT):
        return ""
    return _example(_inner(code, value)[0]) if _inner(code, value) else ""


def _member(items: Any) -> str:
    """Return a character of a set, or one outside a set that is negated."""
    members = [
        chr(value) if code is op.LITERAL else chr(value[0]) if code is op.RANGE else _OF_CATEGORY[value]
        for code, value in items
        if code is not op.NEGATE
    ]
    if items[0][0] is not op.NEGATE:
        return members[0]
    text = "".join(members)
    return next(each for each in "xa1- .~é" if each not in text and (each == "é" or not each.isspace() or " " not in text))
