"""Errors about requests that are too long, with the messages of each provider and server."""

from __future__ import annotations

import pytest

from compaction.tokens import LengthError


class Answered(Exception):
    """An error with a status, as clients raise it."""

    def __init__(self, message: str, status_code: int = 400, body: object = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body


SAID = {
    "openai": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        (9_000, 8_192),
    ),
    "openai, with a reply": (
        "maximum context length is 4097 tokens. However, you requested 5000 (4500 in the messages, 500 in the completion)",
        (4_500, 3_597),
    ),
    "openai responses": ("Your input exceeds the context window of this model.", (None, None)),
    "openai, configured": (
        "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,000 tokens.",
        (300_000, 272_000),
    ),
    "anthropic": ("prompt is too long: 208310 tokens > 200000 maximum", (208_310, 200_000)),
    "anthropic, with a reply": (
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length",
        (199_000, 191_808),
    ),
    "gemini": (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        (1_200_000, 1_048_576),
    ),
    "bedrock": ("Input is too long for requested model.", (None, None)),
    "llama.cpp": ("request (1234 tokens) exceeds the available context size (512 tokens), try increasing it", (1_234, 512)),
    "llama.cpp, fields": (
        "{'message': 'the request exceeds the available context size', 'n_prompt_tokens': 1234, 'n_ctx': 512}",
        (1_234, 512),
    ),
    "vllm": ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", (5_000, 4_096)),
    "vllm, newer": (
        "This model's maximum context length is 2048 tokens. However, your request has 3000 input tokens.",
        (3_000, 2_048),
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        (40_000, 32_768),
    ),
    "xai": ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", (140_000, 131_072)),
}


@pytest.mark.parametrize("name", SAID)
def test_each_provider_is_understood(name: str) -> None:
    """The error of each provider is read: the tokens of the request, and the window without the reserve for the answer."""
    said, figures = SAID[name]
    assert LengthError.read(Answered(said)) == LengthError(*figures)


def test_the_body_is_read() -> None:
    """The figures are read from the body of the error if its message does not have them."""
    error = Answered("Error code: 400", body={"error": {"message": SAID["anthropic"][0]}})
    assert LengthError.read(error) == LengthError(208_310, 200_000)


def test_a_wrapped_error_is_read_with_its_cause() -> None:
    """If a framework wraps the error of the client, the cause is read."""
    outer = RuntimeError("the service failed")
    outer.__cause__ = Answered(SAID["openai"][0])
    assert LengthError.read(outer) == LengthError(9_000, 8_192)


@pytest.mark.parametrize(
    "error",
    [
        Answered("Invalid value for messages[3].role"),
        Answered("You exceeded your current quota", 429),
        Answered("context window of the pane is closed", 404),
        ValueError("the context window is not known"),
        TimeoutError(),
        None,
        "something else",
    ],
    ids=repr,
)
def test_other_errors_are_not(error: object) -> None:
    """Errors with another status or message are not read as length errors."""
    assert LengthError.read(error) is None


def test_figures_that_contradict_each_other_are_not_believed() -> None:
    """If the tokens of the request would fit the window, they are discarded as wrong."""
    said = "maximum context length is 200 tokens. However, your messages resulted in 100 tokens"
    assert LengthError.read(Answered(said)) == LengthError(None, 200)


def test_only_the_first_words_are_read() -> None:
    """Only the start of the message is read, because an error may quote the request."""
    assert LengthError.read(Answered("Invalid value: " + "x " * 5_000 + SAID["anthropic"][0])) is None
