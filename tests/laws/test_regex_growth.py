"""Every regular expression of the package, and redaction as a whole, takes time in proportion to its text.

The texts repeat strings that parts of the expression match. A test compares the CPU time of a text with that of one four times
as long: the ratio is about 4 if the expression is linear and 16 if it is quadratic. It never judges the time itself.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from compaction.summarizers import redact
from tests.support.hostile_strings import UsedPattern, hostile_units, used_patterns

FIRST_CHARS = 2_000
CHARS = 8_000
TIMES_LONGER = 4
MOST_GROWTH = 8.0
SHORTEST_SECONDS = 3e-3
ROUNDS = 3

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
    "passwords=[", "passwords=['a', ", "recovery codes ", "recovery code 1234-5678 ", "seed phrase ", "seed phrase abandon ",
    "abandon ability ", "4111 ", "4111 1111 1111 1111 ", "DE89 ", "DE893704", "A_KEY=", "A_KEY=a1", "$6$", "$6$a$", "{SSHA}",
    "private key ", "private key 0a", "wallet(", "<input type=password ", "WIFI:S:a;",
    "pin is ", "cvv ", "密码是", "пароль ", "le mot de passe du ", "app password ", "https://a1b2c3d4e5f6a7b8c9d0",
]  # fmt: skip
"""Texts on which redaction was slow, or might be."""


def seconds(run: Callable[[str], object], text: str) -> float:
    """The CPU time of one run."""
    start = time.process_time()
    run(text)
    return time.process_time() - start


def growth(run: Callable[[str], object], text_of: Callable[[int], str], chars: int = CHARS) -> float:
    """The ratio of the CPU times of a text and one four times as long; 0 if they are too short to be measured.

    A text of `FIRST_CHARS` is long enough to show growth that is not linear. In a text of `CHARS`, an expression with a bound
    has reached its bound.
    """
    if seconds(run, text_of(FIRST_CHARS)) < SHORTEST_SECONDS:
        return 0.0
    short, long = text_of(chars), text_of(TIMES_LONGER * chars)
    measured = 0.0
    for _ in range(ROUNDS):  # noise only makes a ratio larger, so the smallest counts
        ratio = seconds(run, long) / max(seconds(run, short), 1e-6)
        measured = min(measured, ratio) if measured else ratio
        if measured <= MOST_GROWTH:
            break
    return measured


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
    assert found["compaction.summarizers.redaction.named.NAMED"].methods == {"match"}
    assert any(name.startswith("compaction.summarizers.redaction.searches._PLACES[") for name in found)


@pytest.mark.parametrize("used", used_patterns(), ids=lambda used: used.name.removeprefix("compaction."))
def test_expressions_are_linear(used: UsedPattern) -> None:
    """Each expression takes time in proportion to the text, for every repeated unit that could make it backtrack."""
    slow = (unit for unit in hostile_units(used.pattern) if growth(used.run, repeated(unit)) > MOST_GROWTH)
    assert next(slow, None) is None


@pytest.mark.parametrize("unit", REDACTED)
def test_redaction_is_linear(unit: str) -> None:
    """`redact` takes time in proportion to a text that repeats a unit."""
    assert growth(redact, repeated(unit)) <= MOST_GROWTH


@pytest.mark.parametrize(
    "head", ["bearer ", "sk-", 'password="', "password=", "-----BEGIN PRIVATE KEY-----\n", "cookie: a=", "sig="]
)
def test_redaction_is_linear_in_one_long_word(head: str) -> None:
    """`redact` takes time in proportion to a text that is one long word after the head of a secret."""
    assert growth(redact, lambda chars: head + "a" * chars) <= MOST_GROWTH
