"""Errors about requests that are too long, with the messages of each provider and server."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from compaction.gateway.upstream import UpstreamRefusal
from compaction.tokens import LengthRefusal, is_quoted, length_errors


class Answered(Exception):
    """An error with a status, as clients raise it."""

    def __init__(self, message: str, status_code: int = 400, body: object = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body


SAMPLES: list[dict[str, Any]] = tomllib.loads(Path(length_errors.__file__).with_suffix(".toml").read_text())["samples"]
PROVIDERS = {
    *("OpenAI", "Anthropic", "Gemini", "Bedrock", "Azure", "Vertex", "Mistral", "Groq", "OpenRouter", "vLLM", "SGLang"),
    *("llama.cpp", "LM Studio", "Ollama", "TGI", "LiteLLM"),
}
SAID = {sample["provider"]: sample["says"] for sample in reversed(SAMPLES)}


def test_the_table_has_the_providers() -> None:
    assert PROVIDERS - SAID.keys() == set()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["provider"])
def test_each_provider_is_understood(sample: dict[str, Any]) -> None:
    """The error of each provider is read: the tokens of the request, and the window without the reserve for the answer."""
    error = Answered(sample["says"], sample.get("status", 400))
    assert LengthRefusal.read(error) == LengthRefusal(sample.get("tokens"), sample.get("window"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["provider"])
def test_the_gateway_reads_the_same(sample: dict[str, Any]) -> None:
    status = sample.get("status") or 400
    refusal = UpstreamRefusal(status, json.dumps({"error": {"message": sample["says"]}}))
    assert LengthRefusal.read(refusal) is not None


def test_a_wrapped_error_is_read_with_its_cause() -> None:
    outer = RuntimeError("the service failed")
    outer.__cause__ = Answered(SAID["OpenAI"])
    assert LengthRefusal.read(outer) == LengthRefusal(9_000, 8_192)


ANTHROPIC_BODY = {"error": {"message": SAID["Anthropic"]}}
CONTRADICTION = "maximum context length is 200 tokens. However, your messages resulted in 100 tokens"


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        pytest.param(Answered("Error code: 400", body=ANTHROPIC_BODY), LengthRefusal(208_310, 200_000), id="in the body"),
        pytest.param(Answered(CONTRADICTION), LengthRefusal(None, 200), id="figures that contradict each other"),
        pytest.param(Answered("Invalid value: " + "x " * 5_000 + SAID["Anthropic"]), None, id="perhaps a quoted request"),
    ],
)
def test_which_words_are_read(error: Exception, refusal: LengthRefusal | None) -> None:
    assert LengthRefusal.read(error) == refusal


@pytest.mark.parametrize(
    "error",
    [
        *(Answered("Invalid value for messages[3].role"), Answered("You exceeded your current quota", 429)),
        *(Answered("context window of the pane is closed", 404), ValueError("the context window is not known")),
        *(TimeoutError(), None, "something else"),
    ],
    ids=repr,
)
def test_other_errors_are_not(error: object) -> None:
    assert LengthRefusal.read(error) is None


def test_the_words_that_are_read_decide_whether_an_error_is_quoted() -> None:
    """A wrapper's common words may stand in the conversation; the provider's figures below it do not."""
    error = RuntimeError("too many tokens")
    error.__cause__ = ValueError("maximum context length is 3000 tokens. However, your messages resulted in 4000 tokens")
    assert LengthRefusal.read(error) == LengthRefusal(4_000, 3_000)
    assert not is_quoted(error, "Why does my app say too many tokens?")
    assert is_quoted(error, f"It says: {error.__cause__}")
