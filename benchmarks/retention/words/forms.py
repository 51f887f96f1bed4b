"""Messages in which a person gives a task and six rules: a form filled with the words of a language."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final

import attrs

FOLDER: Final = Path(__file__).parent
LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "ru", "tr", "ar", "hi", "ja", "ko", "zh")

_SENTENCE_END: Final = re.compile(r"(?<=[.!?؟।])\s+|(?<=[。！？])\s*")


@attrs.frozen
class RuleSet:
    """A task, its six rules, and two tasks that follow later.

    Args:
        task: The first task.
        rules: The rules.
        later: Whole messages, each with one more task.
    """

    task: str
    rules: tuple[str, ...]
    later: tuple[str, ...]

    @property
    def later_tasks(self) -> tuple[str, ...]:
        """The tasks of the later messages: the longest sentence of each."""
        return tuple([max(_SENTENCE_END.split(text), key=len) for text in self.later])


@attrs.frozen
class Language:
    """The words of a language.

    Args:
        code: Its code.
        words: Headings, paragraphs without rules, and short messages.
        sets: Tasks with their rules.
    """

    code: str
    words: Mapping[str, Any]
    sets: tuple[RuleSet, ...]


@cache
def language(code: str) -> Language:
    """Return a language."""
    data = tomllib.loads((FOLDER / "languages" / f"{code}.toml").read_text("utf-8"))
    sets = [RuleSet(each["task"], tuple(each["rules"]), tuple(each["later"])) for each in data["sets"]]
    return Language(code, data["words"], tuple(sets))


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / "forms.toml").read_text("utf-8"))


def forms() -> tuple[str, ...]:
    """Return the names of the forms."""
    return tuple(_data()["forms"])


def written(form: str, code: str, chosen: RuleSet) -> str:
    r"""Return the message of a form.

    >>> written("dashes", "en", language("en").sets[2])[-60:]
    "/specs, I don't want guesses.\n- British spelling throughout."
    """
    shape, marks, words = _data()["forms"][form], _data()["marks"], language(code).words
    common = {**words, "g1": words["groups"][0], "g2": words["groups"][1], "code": code}
    lines = [
        Template(shape.get("rule", "$rule")).substitute(
            common, rule=rule, n=at + 1, emoji=marks["emoji"][at], letter=marks["letters"][at]
        )
        for at, rule in enumerate(chosen.rules)
    ]
    if "wrap" in shape:
        lines = [_wrapped(line, shape["wrap"]) for line in lines]
    numbered = {f"r{at + 1}": rule for at, rule in enumerate(chosen.rules)}
    texts = {name: text.strip() for name, text in _data()["texts"].items()}
    rules = shape.get("join", "\n").join(lines)
    return Template(shape["text"]).substitute(common, **texts, **numbered, rules=rules, task=chosen.task).strip()


def padded(text: str, code: str) -> str:
    """Return a message with paragraphs before and after it that state no rule."""
    words = language(code).words
    return f"{words['about']}\n\n{words['aside']}\n\n{text}\n\n{words['about2']}"


def _wrapped(line: str, width: int) -> str:
    """Return a line broken as an editor breaks it; scripts without blanks stay on one line."""
    return textwrap.fill(line, width, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False)


def chat_before(code: str, messages: int) -> Sequence[str]:
    """Return what the user says before the rules."""
    found: list[str] = language(code).words["chat"][:messages]
    return found
