"""`LengthError`: reads from a provider's error that a request was too long, and the token counts that the error states.

Each provider words this error differently, some with figures. The patterns are those of OpenAI (chat, Responses, and the
servers that copy it: vLLM, DeepSeek, Groq), Anthropic, Gemini, Bedrock, Mistral, xAI, llama.cpp, and LiteLLM, which wraps the
others. If an exception was raised from another, its causes are read too.

An error may quote the request, which is untrusted text. So only the first 2,000 characters are read, only errors with certain
HTTP statuses count, and figures that contradict each other are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import attrs

_READ_CHARS: Final = 2_000
_MOST_CAUSES: Final = 5
_MAY_BE_TOO_LONG: Final = frozenset({0, 400, 413, 422, 500})
_TOO_LONG: Final = re.compile(
    r"(?i)context[ _-]?(?:length|window|size)|maximum (?:context|prompt|input)|(?:prompt|input|request) is too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|exceeds? the (?:maximum|available|model|limit)|reduce the length|exceed_context"
    r"|exceed context limit|longer than the maximum (?:model|context) length|too large for model with"
    r"|exceed the configured limit"
)
_TOO_LARGE: Final = "request too large"
_NAMED: Final = re.compile(r"(?i)context_length_exceeded|contextwindowexceeded|exceed_context|is too long")
_N: Final = r"(\d[\d,]{0,11})"
_TOKENS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\({_N} (?:tokens )?in (?:the|your) (?:messages|prompt)",
        rf"resulted in {_N} tokens",
        rf"prompt is too long: {_N} tokens",
        rf"exceed context limit: {_N} \+",
        rf"token count \({_N}\) exceeds",
        rf"request \({_N} tokens\) exceeds",
        rf"prompt contains {_N} tokens",
        rf"(?:request|prompt) (?:contains|has) {_N} (?:input )?tokens",
        rf"prompt \(length {_N}\)",
        rf"['\"]?n_prompt_tokens['\"]?\s*:\s*{_N}",
        rf"requested {_N} tokens",
        rf"Requested {_N}",
        rf"Given: {_N} ",
    )
)
_WINDOW: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"tokens > {_N} maximum",
        rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_N}",
        rf"maximum (?:context|prompt|input) length (?:is|of) {_N}",
        rf"maximum model length of {_N}",
        rf"number of tokens allowed \({_N}\)",
        rf"available context size \({_N}",
        rf"model with {_N} maximum context",
        rf"configured limit of {_N}",
        rf"['\"]?n_ctx['\"]?\s*:\s*{_N}",
        rf"Limit {_N}",
        rf"must be <= {_N}",
    )
)
_REPLY: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (rf"{_N} in the completion", rf"exceed context limit: [\d,]+ \+ {_N} >", rf"and {_N} `max_new_tokens`")
)


@attrs.frozen
class LengthError:
    """A provider's refusal of a request that is too long.

    Args:
        tokens: Tokens of the messages and tools, by the provider's count; ``None`` if the error does not say.
        window: Tokens they may have: the model's window less the tokens that the request reserved for the reply; ``None`` if
            the error does not say.

    >>> LengthError.read(ValueError("prompt is too long: 208310 tokens > 200000 maximum"))
    LengthError(tokens=208310, window=200000)
    """

    tokens: int | None = None
    window: int | None = None

    @classmethod
    def read(cls, error: object) -> LengthError | None:
        """Read an error; O(1), because at most 2,000 characters are read.

        Args:
            error: An exception of a client, a framework or a server, or the body of an answer.

        Returns:
            The error; ``None`` if it does not say that the request was too long.
        """
        for each in _with_causes(error):
            status, words = _status(each), _words(each)[:_READ_CHARS]
            if not is_too_long(status, words):
                continue
            found = cls._of(words)
            if status or found != cls() or _NAMED.search(words):  # without a status, a phrase alone is not enough
                return found
        return None

    @classmethod
    def _of(cls, words: str) -> LengthError:
        tokens, window, reply = (_first(patterns, words) for patterns in (_TOKENS, _WINDOW, _REPLY))
        if window is not None and reply is not None and reply < window:
            window -= reply
        if tokens is not None and window is not None and tokens <= window:
            return cls(None, window)  # the two figures are not of the same thing
        return cls(tokens, window)


def is_too_long(status: int, says: str) -> bool:
    """Return whether an error means that a shorter request may succeed, as does a rate limit smaller than the request.

    Args:
        status: The HTTP status; 0 if there is none.
        says: The server's message.
    """
    if status == 429:
        return _TOO_LARGE in says.lower()
    return status == 413 or (status in _MAY_BE_TOO_LONG and _TOO_LONG.search(says) is not None)


def _first(patterns: tuple[re.Pattern[str], ...], words: str) -> int | None:
    """Return the first figure above 0 that a pattern finds."""
    return next((int(found[1].replace(",", "")) or None for each in patterns if (found := each.search(words))), None)


def _with_causes(error: object) -> Iterator[object]:
    """Yield an error and its causes, up to five in all."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = getattr(error, "__cause__", None) or getattr(error, "__context__", None)


def _status(error: object) -> int:
    """Return the HTTP status that an error carries; 0 if there is none."""
    response = _member(error, "response")
    places = (
        _member(error, "status_code"),
        _member(error, "code"),
        _member(response, "status_code"),
        _member(_member(response, "ResponseMetadata"), "HTTPStatusCode"),
    )
    return next((each for each in places if type(each) is int), 0)


def _words(error: object) -> str:
    """Return an error's message, and the body of the answer if the error carries it."""
    body = _member(error, "body")
    said = str(cast(object, error)) if isinstance(error, BaseException | Mapping | str) else ""
    return said if body is None else f"{said[: _READ_CHARS // 2]} {str(cast(object, body))[:_READ_CHARS]}"


def _member(source: object, name: str) -> Any:
    return cast("Mapping[str, Any]", source).get(name) if isinstance(source, Mapping) else getattr(source, name, None)
