"""A pipeline file may name only the environment variables and servers that the application allows."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from compaction.config import dumps, from_data, load, loads
from compaction.errors import ConfigurationError
from compaction.strategies import Summarization
from compaction.summarizers import OpenAISummarizer


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
    """Variables and hosts outside the given lists, ambiguous URLs, and keys sent in the clear raise an error."""
    with pytest.raises(ConfigurationError) as caught:
        from_data(pipeline(**options), allow_env=allow_env, allow_hosts=allow_hosts)
    assert says in str(caught.value)
    assert "steps[0].summarizer." in str(caught.value)


def test_files_and_texts_are_restricted_too(tmp_path: Path) -> None:
    """The restrictions apply to files, texts and nested components."""
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
