"""Every regular expression of the package, and redaction as a whole, takes time in proportion to its text.

The texts repeat strings that parts of the expression match, so that a match can begin at many places but ends at the last
place or at none. A test compares the CPU time of a text with that of one four times as long: the ratio is about 4 if the
expression is linear and 16 if it is quadratic. It never judges the time itself.
"""

from __future__ import annotations

import gc
import importlib
import math
import pkgutil
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

import compaction
from compaction.summarizers import redact
from compaction.summarizers.redaction.searches import Searches

FIRST_CHARS = 2_000
CHARS = 8_000
TIMES_LONGER = 4
MOST_GROWTH = 8.0
SHORTEST_SECONDS = 3e-3
ROUNDS = 8

REDACTED = [
    "a", "password", "password=", 'password="', "password='\"", "token: ", "sk-", "eyJ", "eyJaaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n", "-----END ",
    "://", "://:", "://a:b@", "cookie: a=", "bearer a", "Authorization: ", " -u a:b", "--a-a-a-", "--password ",
    "-", "_", "\\n", '\\"', "\\", "=", " ", "SG.aaaaaaaaaaaaaaaaa", "비밀번호", "secret_access_", "passwordpasswd=x",
    "12345678:AA", "aA", "password=aA", "password=a_", "password=a.", "|password|\n|---|\n",
    "|password|a1b2c3\n", "---\n", "|--",
    "mysql ", "mysql -p", "sshpass -", "echo a", "login a ", "kind: Secret\ndata:\n a: b\n",
    "password for a ", "key|", "<key>",
    "auth=(", "Private-Lines: 3\n",
    "user,password\n", "user,password\na,b2c3d4\n", "password  x\n", "passwords:\n- ", "passwords:\n  - a1b2c3d4\n",
    'user,password\n"a, b",c2d3e4\n', ',"a', ',"""', ',\\"', "|a\\", 'password="\\"a', "password='a\\'",
    "passwords=[", "passwords=['a', ", "recovery codes ", "recovery code 1234-5678 ", "seed phrase ", "seed phrase abandon ",
    "abandon ability ", "4111 ", "4111 1111 1111 1111 ", "DE89 ", "DE893704", "A_KEY=", "A_KEY=a1", "$6$", "$6$a$", "{SSHA}",
    "private key ", "private key 0a", "wallet(", "<input type=password ", "WIFI:S:a;",
    "pin is ", "cvv ", "密码是", "пароль ", "le mot de passe du ", "app password ", "https://a1b2c3d4e5f6a7b8c9d0",
]  # fmt: skip
"""Texts on which redaction was slow, or might be."""


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
    elif isinstance(value, Searches):
        yield from _patterns_in(place, [each.shape for each in value.searches])
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
    kinds = {op.LITERAL: chr, op.RANGE: lambda value: chr(value[0]), op.CATEGORY: _OF_CATEGORY.__getitem__}
    members = [kinds[code](value) for code, value in items if code is not op.NEGATE]
    if items[0][0] is not op.NEGATE:
        return members[0]
    text = "".join(members)
    return next(each for each in "xa1- .~é" if each not in text and (each == "é" or not each.isspace() or " " not in text))


def seconds(run: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    run(text)
    return time.process_time() - start


def growth(run: Callable[[str], object], text_of: Callable[[int], str], chars: int = CHARS) -> float:
    """The ratio of the CPU times of a text and one four times as long; 0 if they are too short to be measured.

    A text of `FIRST_CHARS` is long enough to show growth that is not linear. In a text of `CHARS`, an expression with a bound
    has reached its bound.
    """
    first = text_of(FIRST_CHARS)
    if min(seconds(run, first) for _ in range(2)) < SHORTEST_SECONDS:
        return 0.0
    texts = text_of(chars), text_of(TIMES_LONGER * chars)
    short = long = math.inf
    for _ in range(ROUNDS):  # noise only adds to a time, so the smallest counts
        short, long = (min(least, seconds(run, text)) for least, text in zip((short, long), texts, strict=True))
        if long <= MOST_GROWTH * short:
            break
    return long / max(short, 1e-6)


def repeated(unit: str) -> Callable[[int], str]:
    """A function that returns the unit repeated to a number of characters."""
    return lambda chars: (unit * (chars // len(unit) + 1))[:chars]


@pytest.fixture(autouse=True)
def no_collector() -> object:
    """Measure without the garbage collector."""
    gc.disable()
    yield
    gc.enable()


def test_the_expressions_are_found() -> None:
    """`used_patterns` finds the package's expressions, also in tuples, and the methods that use them."""
    found = {each.name: each for each in used_patterns()}
    assert len(found) > 100
    assert found["compaction.summarizers.redaction.names._NAMED"].methods == {"match"}
    assert any(name.startswith("compaction.summarizers.redaction.secrets._PLACES[") for name in found)


@pytest.mark.parametrize("used", used_patterns(), ids=lambda used: used.name.removeprefix("compaction."))
def test_expressions_are_linear(used: UsedPattern) -> None:
    """Each expression takes time in proportion to the text, for every repeated unit that could make it backtrack."""
    slow = (unit for unit in hostile_units(used.pattern) if growth(used.run, repeated(unit)) > MOST_GROWTH)
    assert next(slow, None) is None


@pytest.mark.parametrize("unit", REDACTED)
def test_redaction_is_linear(unit: str) -> None:
    assert growth(redact, repeated(unit)) <= MOST_GROWTH


@pytest.mark.parametrize(
    "head", ["bearer ", "sk-", 'password="', "password=", "-----BEGIN PRIVATE KEY-----\n", "cookie: a=", "sig="]
)
def test_redaction_is_linear_in_one_long_word(head: str) -> None:
    assert growth(redact, lambda chars: head + "a" * chars) <= MOST_GROWTH
