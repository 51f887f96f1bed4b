"""A pipeline file is refused before anything is built from it if it is too large, too deep, or has aliases."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from compaction.config import from_data, load, loads
from compaction.errors import ConfigurationError
from tests.support.fuzzed import check_file


@pytest.mark.parametrize(
    "text",
    ["steps:\n  - &first {use: Truncation}\n  - *first\n", "a: &first {use: Truncation}\n<<: *first", "a: &first [*first]"],
)
def test_aliases_are_refused(text: str) -> None:
    """Nothing is built of a text that names a value twice: a few lines could stand for millions of values."""
    with pytest.raises(ConfigurationError, match=r"write the value of \*first again, line \d"):
        loads(text, format="yaml")


@pytest.mark.parametrize("format", ["toml", "yaml"])
def test_deep_nesting_is_refused(format: Any) -> None:
    """Lists in lists in lists raise an error that names the limit or the syntax."""
    text = ("steps = " if format == "toml" else "steps: ") + "[" * 200 + "]" * 200
    with pytest.raises(ConfigurationError, match="levels deep"):
        loads(text, format=format)


def test_data_that_contains_itself_is_refused() -> None:
    """Plain data is checked like a file."""
    data: dict[str, Any] = {"steps": []}
    data["steps"].append(data)
    with pytest.raises(ConfigurationError, match="contains itself"):
        from_data(data)


@pytest.mark.parametrize("name", ["a.toml", "a.yaml"])
def test_a_large_file_is_not_read(tmp_path: Path, name: str) -> None:
    """A file of another kind that is named by mistake is not parsed."""
    file = tmp_path / name
    file.write_text("# " + "x" * 1_000_000, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="more than 262,144 characters"):
        load(file)


def test_a_key_of_many_parts_is_refused_before_it_is_parsed() -> None:
    """Parsing many parts took 10 s and 3 GB, the search for repeated keys 7 s: the limit of the tests would stop either."""
    with pytest.raises(ConfigurationError, match="more than 256 parts"):
        loads(".".join(["a"] * 50_000) + " = 1")
    with pytest.raises(ConfigurationError):
        loads("\n".join(f"k{number}: 1" for number in range(25_000)), format="yaml")


@pytest.mark.parametrize(
    "data",
    [
        {"use": "hermes", "context_length": 10**400},
        {"use": "Truncation", "trigger": "tokens_exceed(0x" + "f" * 4_000 + ")"},
        {"use": "Truncation", "trigger": "tokens_exceed(0x" + "f" * 4_000 + ") | context_exceeds(0.5)"},
    ],
)
def test_whole_numbers_without_end_are_refused(data: dict[str, Any]) -> None:
    """A number that no float and no text can hold is a mistake in the file, not an error of arithmetic."""
    with pytest.raises(ConfigurationError, match="beyond 1,000,000,000,000,000"):
        from_data(data)


@pytest.mark.parametrize("trigger", ["~" * 5_000 + "always", "(" * 5_000, "always" + " | always" * 2_000, "a." * 5_000 + "b"])
def test_long_expressions_are_refused(trigger: str) -> None:
    with pytest.raises(ConfigurationError, match=r"more than (4,096|256 parts)"):
        loads(f'use = "Truncation"\ntrigger = "{trigger}"')


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
