"""Made-up secrets in the shapes in which people write them, and texts without a secret, in five sets: ``secrets.txt``.

A line of that file is a text; ``⏎`` and ``⇥`` stand for a line break and a tab, and what stands between « and » is the secret.
``{alnum:32}`` stands for 32 random letters and digits, so that no scanner reports the file. ``==`` begins a set, ``=`` a
family.

- ``planted``: the table of `compaction.summarizers.redaction` was written with these in sight.
- ``further``: the shapes that reached a summary model when redaction was attacked, and their neighbours; the table was
  extended with these in sight.
- ``unseen``, ``blind``, ``newest``: written without sight of the table, in this order. They are frozen: what fails is a reason
  to repair the table's general rules, never to change the set.
"""

from __future__ import annotations

import base64
import random
import re
import string
from functools import cache
from pathlib import Path
from typing import Final

import attrs

SETS: Final = ("planted", "further", "unseen", "blind", "newest")
_LETTERS: Final = string.ascii_letters + string.digits
_ALPHABETS: Final = {
    "alnum": _LETTERS,
    "hex": "0123456789abcdef",
    "upper": string.ascii_uppercase + string.digits,
    "caps": string.ascii_uppercase,
    "lower": string.ascii_lowercase + string.digits,
    "digits": string.digits,
    "b32": string.ascii_uppercase + "234567",
    "b32lower": string.ascii_lowercase + "234567",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "salt": f"{_LETTERS}./",
    "signs": string.ascii_lowercase + "!@#%^&*(-_=+)",
    "word": string.ascii_lowercase,
}
_BLANK: Final = re.compile(r"\{(\w+):(\d+)\}")


@attrs.frozen
class Planted:
    """A text with a secret in it.

    Args:
        family: The kind of text, such as ``"yaml"``.
        shape: The text, with ``§`` in the place of the secret.
        secret: The secret.
    """

    family: str
    shape: str
    secret: str

    @property
    def text(self) -> str:
        return self.shape.replace("§", self.secret)

    def kept_in(self, redacted: str) -> bool:
        """Whether the secret, or a line of it, is still in the text."""
        return any(line in redacted for line in self.secret.splitlines() if len(line) > 3)


@cache
def secrets(*names: str) -> tuple[Planted, ...]:
    """Return the secrets of these sets, each in its shape."""
    found: list[Planted] = []
    for name in names:
        source = random.Random(20261126)
        for family, template in _lines(name):
            if family != "harmless":
                before, secret, after = re.split("[«»]", _filled(template, source))
                found.append(Planted(family, f"{before}§{after}", secret))
    return tuple(found)


@cache
def harmless(*names: str) -> tuple[str, ...]:
    """Return the texts of these sets that hold no secret, though some look so."""
    found: list[str] = []
    for name in names:
        source = random.Random(6261120)
        found += [_filled(template, source) for family, template in _lines(name) if family == "harmless"]
    return tuple(found)


def _lines(name: str) -> list[tuple[str, str]]:
    """Return the family and the text of each line of a set."""
    text = Path(__file__).with_name("secrets.txt").read_text("utf-8").replace("⇥", "\t")
    families = text.partition(f"== {name}\n")[2].partition("\n== ")[0].removeprefix("= ").split("\n= ")
    each = [family.partition("\n") for family in families]
    return [(family, line.replace("⏎", "\n")) for family, _, lines in each for line in lines.splitlines() if line]


def _filled(template: str, source: random.Random) -> str:
    """Return the text with random characters in its blanks."""

    def some(found: re.Match[str]) -> str:
        kind, length = found[1], int(found[2])
        if kind == "b64":
            return base64.b64encode(source.randbytes(length)).decode()[:length]
        if kind == "pass":
            body = "".join(source.choices(_LETTERS, k=length - 3))
            return f"{body[:4]}{source.choice('!#_-')}{body[4:]}{source.randrange(10)}{source.choice('!#_')}"
        if kind == "ssn":
            return f"{source.randrange(100, 600)}-{source.randrange(10, 99)}-{source.randrange(1000, 9999)}"
        return "".join(source.choices(_ALPHABETS[kind], k=length))

    return _BLANK.sub(some, template)
