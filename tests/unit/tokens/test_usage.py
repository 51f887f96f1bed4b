"""Usage reports of providers in one shape."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from compaction.errors import ConfigurationError, InputError
from compaction.tokens import Usage

OPENAI_CHAT = {
    "prompt_tokens": 1_200,
    "completion_tokens": 300,
    "total_tokens": 1_500,
    "prompt_tokens_details": {"cached_tokens": 1_024, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 192},
}
OPENAI_RESPONSES = {
    "input_tokens": 1_200,
    "input_tokens_details": {"cached_tokens": 1_024},
    "output_tokens": 300,
    "output_tokens_details": {"reasoning_tokens": 192},
    "total_tokens": 1_500,
}
ANTHROPIC = {"input_tokens": 50, "output_tokens": 300, "cache_read_input_tokens": 1_024, "cache_creation_input_tokens": 126}
GEMINI = {
    "prompt_token_count": 1_200,
    "candidates_token_count": 108,
    "thoughts_token_count": 192,
    "cached_content_token_count": 1_024,
    "total_token_count": 1_500,
}
GEMINI_JSON = {
    "promptTokenCount": 1_200,
    "candidatesTokenCount": 108,
    "thoughtsTokenCount": 192,
    "cachedContentTokenCount": 1_024,
}
BEDROCK = {
    "inputTokens": 50,
    "outputTokens": 300,
    "cacheReadInputTokens": 1_024,
    "cacheWriteInputTokens": 126,
    "totalTokens": 1_500,
}
REASONED = Usage(1_200, 300, cached_tokens=1_024, reasoning_tokens=192)
CASES = [
    pytest.param(OPENAI_CHAT, REASONED, id="openai chat"),
    pytest.param(OPENAI_RESPONSES, REASONED, id="openai responses"),
    pytest.param(ANTHROPIC, Usage(1_200, 300, cached_tokens=1_024, cache_write_tokens=126), id="anthropic"),
    pytest.param(BEDROCK, Usage(1_200, 300, cached_tokens=1_024, cache_write_tokens=126), id="bedrock"),
    pytest.param({"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}, Usage(7, 2), id="bedrock, plain"),
    pytest.param(GEMINI, REASONED, id="gemini"),
    pytest.param(GEMINI_JSON, REASONED, id="gemini json"),
    pytest.param({"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(7, 2), id="openai, plain"),
    pytest.param({"input_tokens": 7, "output_tokens": 2}, Usage(7, 2), id="anthropic, plain"),
    pytest.param({"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": None}, Usage(7, 2), id="no cache used"),
    pytest.param({"prompt_tokens": 7}, Usage(7, 0), id="embedding"),
    pytest.param({"promptTokenCount": 7}, Usage(7, 0), id="gemini, nothing said"),
]


def as_object(value: Any) -> Any:
    """The same figures as attributes, nested ones too, as a client library returns them."""
    return SimpleNamespace(**{key: as_object(item) for key, item in value.items()}) if isinstance(value, dict) else value


@pytest.mark.parametrize("form", [dict, as_object], ids=["json", "object"])
@pytest.mark.parametrize(("reported", "usage"), CASES)
def test_every_provider_in_one_shape(reported: dict[str, Any], usage: Usage, form: Callable[[Any], Any]) -> None:
    """Reports of all providers, as JSON or a client's object, are read into one shape: all tokens sent, generated, cached."""
    assert Usage.read(form(reported)) == usage


@pytest.mark.parametrize("reported", [None, {}, [], "1200", 1_200, {"usage": OPENAI_CHAT}, {"prompt_tokens": None}])
def test_what_is_no_usage_is_refused(reported: Any) -> None:
    with pytest.raises(InputError, match=r"none of 'prompt_tokens', 'input_tokens', .* not the response"):
        Usage.read(reported)


@pytest.mark.parametrize("value", ["1200", 12.5, True, -1])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_a_figure_that_is_none_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"usage\.{field}: must be a whole number >= 0 \(got {value!r}\)"):
        Usage.read({**OPENAI_CHAT, field: value})


@pytest.mark.parametrize("value", [-1, 1.5, True, None])
def test_usage_checks_its_figures(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'cached_tokens' must be a whole number >= 0"):
        Usage(1, 1, cached_tokens=value)
