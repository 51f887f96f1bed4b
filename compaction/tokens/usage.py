"""`Usage`, the token usage that a provider reported, in one form for all providers.

The same word means different things: OpenAI's ``input_tokens`` includes the tokens read from and written to the cache,
Anthropic's and Bedrock's (``inputTokens``) do not; Gemini's ``candidates_token_count`` does not include the thoughts. Here
``prompt_tokens`` is everything that was sent, and ``completion_tokens`` everything that was generated.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..checks import count, is_count
from ..errors import InputError
from ..json_data import member_of

_MOST_RATIO: Final = 5  # of a provider's count to ours, and of ours to a provider's; chosen, not measured
_MOST_BESIDE: Final = 50_000  # tokens of tools and instructions, which we may not count; chosen, not measured


@attrs.frozen
class Usage:
    """The tokens of one request, as its provider counted them.

    Args:
        prompt_tokens: The messages, the tools and what the provider adds, whether read from a cache or not.
        completion_tokens: The reply, including hidden reasoning.
        cached_tokens: Prompt tokens that were read from the provider's cache.
        cache_write_tokens: Prompt tokens that were written to the cache, if the provider reports them.
        reasoning_tokens: Completion tokens that were hidden reasoning, if the provider reports them.
    """

    prompt_tokens: int = attrs.field(validator=count())
    completion_tokens: int = attrs.field(validator=count())
    cached_tokens: int = attrs.field(default=0, kw_only=True, validator=count())
    cache_write_tokens: int = attrs.field(default=0, kw_only=True, validator=count())
    reasoning_tokens: int = attrs.field(default=0, kw_only=True, validator=count())

    def is_plausible(self, counted: int, *, beside: int = _MOST_BESIDE) -> bool:
        """Return whether a request may have these prompt tokens.

        Some servers report nothing, only what was not cached, or another unit. A report is believed if it is at least a fifth
        of our count of the messages, and at most five times that count, plus tokens for tools and instructions.

        Args:
            counted: Tokens of the request's messages by our count.
            beside: Tokens that may stand beside them and are not in that count.

        >>> Usage(9, 5).is_plausible(4_000), Usage(8_400, 5).is_plausible(4_000)
        (False, True)
        """
        return counted <= _MOST_RATIO * self.prompt_tokens and self.prompt_tokens <= _MOST_RATIO * counted + beside

    @classmethod
    def read(cls, usage: Any) -> Usage:
        """Read the usage of a response.

        Args:
            usage: The ``usage`` (Gemini: ``usage_metadata``) of an OpenAI chat, OpenAI Responses, Anthropic, Gemini or Bedrock
                response, as the client library's object or as parsed JSON. A `Usage` is returned as it is.

        Raises:
            InputError: If it is the usage of none of these, or a figure is not a whole number >= 0.

        >>> Usage.read({"input_tokens": 50, "output_tokens": 9, "cache_read_input_tokens": 4_000}).prompt_tokens
        4050
        """
        if isinstance(usage, Usage):
            return usage
        for names, read in _DIALECTS:
            if any(member_of(usage, name) is not None for name in names):
                return read(usage)
        raise InputError(
            f"usage {usage!r:.200}: has none of 'prompt_tokens', 'input_tokens', 'prompt_token_count' and 'inputTokens'; "
            "pass the 'usage' of a response ('usage_metadata' for Gemini), not the response"
        )

    @classmethod
    def read_or_none(cls, usage: object) -> Usage | None:
        """Return usage as `read` does; ``None`` if it cannot be read, and for zeros, which frameworks show for no report.

        >>> Usage.read_or_none({"prompt_tokens": 0, "completion_tokens": 0}), Usage.read_or_none(None)
        (None, None)
        """
        try:
            read = cls.read(usage)
        except InputError:
            return None
        return read if read.prompt_tokens else None


def _read_openai_chat(usage: Any) -> Usage:
    prompt, completion = member_of(usage, "prompt_tokens_details"), member_of(usage, "completion_tokens_details")
    return Usage(
        _tokens(usage, "prompt_tokens"),
        _tokens(usage, "completion_tokens"),
        cached_tokens=_tokens(prompt, "cached_tokens"),
        reasoning_tokens=_tokens(completion, "reasoning_tokens"),
    )


def _read_openai_responses_or_anthropic(usage: Any) -> Usage:
    cached, written = _tokens(usage, "cache_read_input_tokens"), _tokens(usage, "cache_creation_input_tokens")
    prompt, completion = member_of(usage, "input_tokens_details"), member_of(usage, "output_tokens_details")
    return Usage(
        _tokens(usage, "input_tokens") + cached + written,
        _tokens(usage, "output_tokens"),
        cached_tokens=cached + _tokens(prompt, "cached_tokens"),
        cache_write_tokens=written,
        reasoning_tokens=_tokens(completion, "reasoning_tokens"),
    )


def _read_gemini(usage: Any) -> Usage:
    thoughts = _tokens(usage, "thoughts_token_count", "thoughtsTokenCount")
    return Usage(
        _tokens(usage, "prompt_token_count", "promptTokenCount"),
        _tokens(usage, "candidates_token_count", "candidatesTokenCount") + thoughts,
        cached_tokens=_tokens(usage, "cached_content_token_count", "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


def _read_bedrock(usage: Any) -> Usage:
    cached, written = _tokens(usage, "cacheReadInputTokens"), _tokens(usage, "cacheWriteInputTokens")
    return Usage(
        _tokens(usage, "inputTokens") + cached + written,
        _tokens(usage, "outputTokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
    )


_DIALECTS = (
    (("prompt_tokens",), _read_openai_chat),
    (("prompt_token_count", "promptTokenCount"), _read_gemini),
    (("input_tokens",), _read_openai_responses_or_anthropic),
    (("inputTokens",), _read_bedrock),
)


def _tokens(source: Any, *names: str) -> int:
    """Return the first of the named figures that is present; 0 if all are missing or null."""
    for name in names:
        value = member_of(source, name)
        if value is None:
            continue
        if not is_count(value):
            raise InputError(
                f"usage.{name}: must be a whole number >= 0 (got {value!r}); pass the usage as the provider sent it"
            )
        return value
    return 0
