"""A pipeline file is refused before anything is built from it if it is too large, too deep, or has aliases."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from compaction.config import from_data, load, loads
from compaction.errors import ConfigurationError
from tests.support.fuzzed import check_file

ALIAS = r"write the value of \*first again, line \d"
EXPRESSION = 'use = "Truncation"\ntrigger = "{}"'
TEXTS = {
    "an alias": ("yaml", "steps:\n  - &first {use: Truncation}\n  - *first\n", ALIAS),
    "a merged alias": ("yaml", "a: &first {use: Truncation}\n<<: *first", ALIAS),
    "an alias of itself": ("yaml", "a: &first [*first]", ALIAS),
    "deep TOML": ("toml", "steps = " + "[" * 200 + "]" * 200, "levels deep"),
    "deep YAML": ("yaml", "steps: " + "[" * 200 + "]" * 200, "levels deep"),
    "a key of many parts": ("toml", ".".join(["a"] * 50_000) + " = 1", "more than 256 parts"),
    "many keys": ("yaml", "\n".join(f"k{number}: 1" for number in range(25_000)), "unknown key 'k24999'"),
    "signs": ("toml", EXPRESSION.format("~" * 5_000 + "always"), "more than 4,096"),
    "parentheses": ("toml", EXPRESSION.format("(" * 5_000), "more than 4,096"),
    "alternatives": ("toml", EXPRESSION.format("always" + " | always" * 2_000), "more than 4,096"),
    "a name of many parts": ("toml", EXPRESSION.format("a." * 5_000 + "b"), "more than (4,096|256 parts)"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_without_end_is_refused_at_once(name: str) -> None:
    """A few lines could stand for millions of values. Parsing many parts took 10 s and 3 GB, finding repeated keys 7 s."""
    format, text, rule = TEXTS[name]
    with pytest.raises(ConfigurationError, match=rule):
        loads(text, format=format)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.toml", "a.yaml"])
def test_a_large_file_is_not_read(tmp_path: Path, name: str) -> None:
    """A file of another kind that is named by mistake is not parsed."""
    file = tmp_path / name
    file.write_text("# " + "x" * 1_000_000, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="more than 262,144 characters"):
        load(file)


ENDLESS: dict[str, Any] = {"steps": []}
ENDLESS["steps"].append(ENDLESS)
HUGE = "tokens_exceed(0x" + "f" * 4_000 + ")"


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (ENDLESS, "contains itself"),
        ({"use": "hermes", "context_length": 10**400}, "beyond 1,000,000,000,000,000"),
        ({"use": "Truncation", "trigger": HUGE}, "beyond 1,000,000,000,000,000"),
        ({"use": "Truncation", "trigger": f"{HUGE} | context_exceeds(0.5)"}, "beyond 1,000,000,000,000,000"),
    ],
    ids=["itself", "number", "number in a text", "joined"],
)
def test_data_without_end_are_refused(data: dict[str, Any], rule: str) -> None:
    """A number that no float and no text can hold is a mistake in the file, not an error of arithmetic."""
    with pytest.raises(ConfigurationError, match=rule):
        from_data(data)


def test_random_texts_raise_typed_errors_only() -> None:
    dice = random.Random(36)
    pieces = [
        "steps:", "steps = ", "- ", "use: ", "Truncation", "use = ", "&a ", "*a", "<<: ", "[", "]", "{", "}", ": ", "\n", "  ",
        "tokens_exceed(9)", "~", "|", "!!python/object ", "? ", "---\n", "%YAML 1.1\n", "\x00", "0x1", "1e999", "2001-01-01",
        '"', "é", "trigger: ", "[[steps]]\n", "'''", "=", ".nan", "null", "!!binary ", "!!set {a}", "!!omap [a: 1]",
    ]  # fmt: skip
    for _ in range(1_500):
        text = "".join(dice.choices(pieces, k=dice.randint(1, 24)))
        for format in ("toml", "yaml"):
            try:
                loads(text, format=format)  # type: ignore[arg-type]
            except ConfigurationError:
                continue


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_files_with_mistakes_are_strategies_or_typed_errors(first: int) -> None:
    """Whatever stands in a file, it is read and written again, or an error of this package says what is wrong."""
    for seed in range(first, first + 50):
        check_file(seed)
