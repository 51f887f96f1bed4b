"""Pipeline files are not trusted: their size and depth, and the variables and servers that they may name, are limited."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from compaction.config import dumps, from_data, load, loads
from compaction.errors import ConfigurationError
from compaction.strategies import Summarization
from compaction.summarizers import OpenAISummarizer
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
    "many keys": ("yaml", "\n".join(f"k{number}: 1" for number in range(25_000)), "and 24,951 more mistakes$"),
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


# ------------------------------------------------------------------------ variables and servers


def pipeline(**options: Any) -> dict[str, Any]:
    """A pipeline with one step whose summarizer calls a model with these options."""
    return {"steps": [{"use": "Summarization", "summarizer": {"use": "OpenAISummarizer", "model": "m", **options}}]}


@pytest.mark.parametrize("name", ["HOME", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "GITHUB_TOKEN", "_API_KEY2"])
def test_by_default_only_api_keys_are_sent(name: str) -> None:
    """By default, only variables that end in ``_API_KEY`` are accepted; the error has place, rule and remedy."""
    with pytest.raises(ConfigurationError) as caught:
        from_data(pipeline(api_key_env=name, base_url="https://h.example/v1"), where="a.toml")
    assert str(caught.value) == (
        f"a.toml: steps[0].summarizer.api_key_env: {name!r} does not end in '_API_KEY'; "
        f"rename the variable, or pass allow_env={{{name!r}}}"
    )


@pytest.mark.parametrize(
    ("options", "allow_env", "allow_hosts"),
    [
        ({"api_key_env": "MY_API_KEY", "base_url": "https://h.example/v1"}, None, None),
        ({"api_key_env": "HF_TOKEN"}, {"HF_TOKEN"}, None),
        ({"api_key_env": "MY_API_KEY", "base_url": "https://H.example:8443/v1"}, {"MY_API_KEY"}, {"h.example"}),
        ({}, {"OPENAI_API_KEY"}, set()),
        ({"api_key": "none", "base_url": "http://127.0.0.1:8080/v1"}, set(), {"127.0.0.1"}),
        ({"api_key": "none", "base_url": "http://[::1]:8080/v1"}, set(), {"::1"}),
        ({"base_url": "http://localhost:8080/v1"}, None, {"localhost"}),
        ({"base_url": "http://api.example/v1"}, None, {"http://api.example"}),
    ],
)
def test_what_is_allowed(
    options: dict[str, Any], allow_env: Collection[str] | None, allow_hosts: Collection[str] | None
) -> None:
    strategy = from_data(pipeline(**options), allow_env=allow_env, allow_hosts=allow_hosts)
    assert "OpenAISummarizer" in repr(strategy)


@pytest.mark.parametrize(
    ("options", "allow_env", "allow_hosts", "says"),
    [
        ({"api_key_env": "A_API_KEY"}, {"B_API_KEY"}, None, "'A_API_KEY' is not in allow_env; name one of B_API_KEY"),
        ({"api_key_env": "A_API_KEY"}, set(), None, "name one of none, or allow it in code"),
        ({"base_url": "https://h.example"}, {"B_API_KEY"}, None, "'OPENAI_API_KEY' is not in allow_env"),
        ({"base_url": "https://evil.example"}, None, {"h.example"}, "base_url: 'evil.example' is not in allow_hosts"),
        ({"base_url": "https://h.example.evil.example"}, None, {"h.example"}, "is not in allow_hosts"),
        ({"base_url": "https://h.example@evil.example"}, None, {"h.example"}, "is not a plain http or https URL"),
        ({"base_url": "https://evil.example\\@h.example"}, None, {"h.example"}, "is not a plain http or https URL"),
        ({"base_url": "https://evil.example#@h.example"}, None, {"h.example"}, "is not a plain http or https URL"),
        ({"base_url": "file:///etc/passwd"}, None, {""}, "is not a plain http or https URL"),
        ({"base_url": "http://api.example/v1"}, None, {"api.example"}, "over http can be read on the way"),
        ({"base_url": "http://127.0.0.1.evil.example"}, None, {"127.0.0.1.evil.example"}, "over http can be read on the way"),
        ({"base_url": "https://api.example/v1"}, None, {"http://api.example"}, "is not in allow_hosts"),
    ],
)
def test_what_is_not_allowed(
    options: dict[str, Any], allow_env: Collection[str] | None, allow_hosts: Collection[str] | None, says: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_data(pipeline(**options), allow_env=allow_env, allow_hosts=allow_hosts)
    assert says in str(caught.value)
    assert "steps[0].summarizer." in str(caught.value)


def test_files_and_texts_are_restricted_too(tmp_path: Path) -> None:
    text = dumps(Summarization(OpenAISummarizer("m", api_key_env="A_API_KEY", base_url="https://h.example/v1")))
    file = tmp_path / "a.toml"
    file.write_text(text, encoding="utf-8")
    assert load(file, allow_env={"A_API_KEY"}, allow_hosts={"h.example"}) == loads(text)
    with pytest.raises(ConfigurationError, match=r"a\.toml: summarizer\.api_key_env: .*; summarizer\.base_url: "):
        load(file, allow_env={"B_API_KEY"}, allow_hosts={"b.example"})
    cached = {"use": "Summarization", "summarizer": {"use": "CachedSummarizer", "summarizer": {"api_key_env": "HOME"}}}
    with pytest.raises(ConfigurationError, match=r"summarizer\.summarizer\.api_key_env: 'HOME'"):
        from_data(cached)


def test_a_strategy_that_sends_the_default_key() -> None:
    """`ProviderCompaction` sends ``OPENAI_API_KEY``, which must be allowed too."""
    native = {"use": "ProviderCompaction", "model": "gpt-5.5"}
    from_data(native, allow_env={"OPENAI_API_KEY"})
    with pytest.raises(ConfigurationError, match="'OPENAI_API_KEY' is not in allow_env"):
        from_data({"steps": [native]}, allow_env={"B_API_KEY"})
