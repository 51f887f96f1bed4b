"""Named values: names and the latest value that somebody gave each, so that a new value replaces the old one.

An agent that finds two ports in its summary has to guess. A named value is a stated name and value, such as ``timeout = 30``,
``--depth=2``, "the port is now 9090", "change the region to eu-west-1", "포트는 9090" or "端口改为9090".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_VALUE: Final = r"(\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|`[^`\n]{1,60}`|[^\s,;，。；\"'`(){}\[\]<>]{1,60})"
_ASSIGNED: Final = re.compile(
    rf"(?:(?<![\w.=-])(-{{0,2}}[A-Za-z_][\w.-]{{1,40}})\s?=\s?|^[ \t]*([a-z][\w.-]{{1,40}}):[ \t]){_VALUE}", re.MULTILINE
)
_STATED: Final = re.compile(
    rf"\b((?:\w+ ){{0,3}}\w+) (?:is|are|(?:should|must|will)(?: now)? be|becomes)(?: now| set to)? {_VALUE}", re.IGNORECASE
)
_CHANGED: Final = re.compile(
    r"\b(?:set|change|switch|update|bump|raise|lower|increase|decrease|reduce|rename|move|make)(?:d|ed|s)? "
    rf"((?:\w+ ){{0,3}}\w+) (?:from \S{{1,60}} )?(?:to|be) {_VALUE}",
    re.IGNORECASE,
)
_KOREAN: Final = re.compile(r"([가-힣A-Za-z_]{1,20})(?:은|는|을|를)\s(?:이제\s)?([A-Za-z0-9][\w.:/@-]{0,60})")
_CHINESE: Final = re.compile(
    r"([\u4e00-\u9fff]{1,6}?)(?:现在|現在)?(?:改为|改為|改成|设为|設為|设置为|是|为|為)\s?([A-Za-z0-9][\w.:/@-]{0,60})",
    re.ASCII,
)
_PLAIN: Final = re.compile(r"\d|\w[_./@-]\w|[a-z][A-Z]")
_IDLE: Final = re.compile(
    r"^(?:(?:the|a|an|my|our|your|its|this|that|and|but|so|then|now|new|current|please|of|to|use) )+", re.IGNORECASE
)
_NO_NAME: Final = re.compile(
    r"i|it|he|she|they|we|you|this|that|there|which|what|who|here|all|one|https?|file|ftp|.*\b(?:ids?|name|number|email|phone|code)"
)


def named_values_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values that a text states, in order; O(characters).

    An id or a name of something does not count, because two of them may both be valid.

    >>> list(named_values_in("The port is now 9090; set retry_limit to 5, and TZ=UTC"))
    [('port', '9090'), ('retry_limit', '5'), ('tz', 'UTC')]
    """
    found: list[tuple[int, str, str]] = []
    for pattern in (_ASSIGNED, _STATED, _CHANGED, _KOREAN, _CHINESE):
        for match in pattern.finditer(text):
            *names, value = [group for group in match.groups() if group]
            name = _IDLE.sub("", names[0]).strip().casefold()
            value = value.strip("\"'`").rstrip(".:!?")
            told = pattern is _ASSIGNED and "=" in match[0]
            if name and value and _NO_NAME.fullmatch(name) is None and value[:2] != "//" and (told or _PLAIN.search(value)):
                found.append((match.start(), name, value))
    found.sort()
    yield from ((name, value) for _, name, value in found)


class NamedValues:
    """The latest value of each name. Holds state: it changes with each statement."""

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}
        self._changed: dict[str, None] = {}
        self._superseded: dict[str, int] = {}

    def note(self, text: str, message: int) -> None:
        """Record the values that a text of that message states."""
        for name, value in named_values_in(text):
            old = self._latest.get(name, value)
            self._latest[name] = value
            if old != value:
                self._superseded[old] = message
                self._changed.pop(name, None)
                self._changed[name] = None
            self._superseded.pop(value, None)

    def hold(self, name: str, value: str) -> None:
        """Record a changed value that an earlier digest lists."""
        self._latest[name] = value
        self._changed[name] = None

    def is_superseded(self, value: str, last_seen: int) -> bool:
        """Return whether another value replaced this one and it was not seen since that message."""
        return value in self._superseded and last_seen <= self._superseded[value]

    def overrides(self, sentence: str) -> bool:
        """Return whether every value that a sentence states has been replaced."""
        stated = dict(named_values_in(sentence))
        return bool(stated) and all(self._latest.get(name, value) != value for name, value in stated.items())

    def changed(self) -> list[tuple[str, str]]:
        """Return the names that had more than one value, each with its latest, the last changed at the end."""
        return [(name, self._latest[name]) for name in self._changed]
