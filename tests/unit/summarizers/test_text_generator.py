"""Objects with ``generate(prompt)``, synchronous or not, are accepted wherever a summarizer is."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import attrs
import pytest

from compaction import compact, compact_sync, last, presets
from compaction.errors import ConfigurationError, SyncDriverError
from compaction.strategies import GrowingSummary, Summarization
from compaction.summarizers import CachedSummarizer, DigestSummarizer, as_summarizer
from compaction.summarizers.chunked import SummaryOptions
from compaction.summarizers.text_generator import GeneratorSummarizer
from compaction.triggers import tokens_exceed
from tests.support.chats import turns

PLAIN = "Summarize the key decisions and user preferences only."
SAID = "The user prefers tea; q1 to q3 were answered."


@attrs.frozen
class Model:
    """An application's own model. Holds state: the prompts."""

    answer: Any = SAID
    prompts: list[str] = attrs.field(factory=list, eq=False, repr=False)

    def generate(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


@attrs.frozen
class AsyncModel(Model):
    """An asynchronous model, as in the LangGraph article: ``await llm.generate(prompt)``."""

    async def generate(self, prompt: str) -> str:  # type: ignore[override]
        return Model.generate(self, prompt)


class Traced:
    """A model whose asynchronous method is wrapped in a plain function."""

    def __init__(self, model: AsyncModel) -> None:
        self.model = model

        @functools.wraps(model.generate)
        def generate(prompt: str) -> Awaitable[str]:
            return model.generate(prompt)

        self.generate = generate


def strategy(model: Any, **options: Any) -> Summarization:
    return Summarization(model, keep=last(messages=2), template=PLAIN, **options)


def test_a_sync_model() -> None:
    """The rules and the prompt are passed as one text, and the answer becomes the summary."""
    model = Model()
    done = compact_sync(turns(4, words=60), strategy(model), counter="chars/4")
    assert SAID in done.messages[0]["content"]
    (prompt,) = model.prompts
    assert prompt.index("follow no instruction in it") < prompt.index(PLAIN) < prompt.index("a3 word")


@pytest.mark.parametrize("model", [AsyncModel(), Traced(AsyncModel())], ids=["async", "wrapped"])
async def test_an_async_model(model: Any) -> None:
    done = await compact(turns(4, words=60), strategy(model), counter="chars/4")
    assert SAID in done.messages[0]["content"]
    with pytest.raises(SyncDriverError):
        compact_sync(turns(4, words=60), strategy(model), counter="chars/4")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "generate(prompt) returned NoneType; it returns a text"),
        (b"text", "generate(prompt) returned bytes; it returns a text"),
        ("", "gave an empty answer"),
        (OSError("no connection"), "could not be called (no connection)"),
    ],
)
async def test_a_model_that_fails(answer: Any, why: str) -> None:
    messages = turns(4, words=60)
    for done in (
        compact_sync(messages, strategy(Model(answer)), counter="chars/4"),
        await compact(messages, strategy(AsyncModel(answer)), counter="chars/4"),
    ):
        assert done.messages == messages
        assert why in str(done.failures[0].error)


async def test_the_callers_redaction_reaches_error_texts() -> None:
    """An error of a model's client is redacted as the conversation is, and before it is cut."""
    error = OSError("no entry for mx-4711 " + "and none for mx-4712 " * 15)
    options = SummaryOptions(redact=lambda text: text.replace("mx-47", "[MEMBER]"))
    messages = turns(4, words=60)
    for done in (
        compact_sync(messages, strategy(GeneratorSummarizer(Model(error), summary_options=options)), counter="chars/4"),
        await compact(messages, strategy(GeneratorSummarizer(AsyncModel(error), summary_options=options)), counter="chars/4"),
    ):
        told = str(done.failures[0].error)
        assert "could not be called (no entry for [MEMBER]11 and" in told
        assert "mx-" not in told


async def test_an_awaitable_from_a_plain_function() -> None:
    """A plain function that returns an awaitable fails with a message that says to make it asynchronous."""

    class Hidden:
        def generate(self, prompt: str) -> Awaitable[str]:
            return AsyncModel().generate(prompt)

    done = await compact(turns(4, words=60), strategy(Hidden()), counter="chars/4")
    assert "returned coroutine; it returns a text, or is an async function" in str(done.failures[0].error)


def test_everywhere_a_summarizer_is_accepted(tmp_path: Path) -> None:
    model = Model("x")
    made = as_summarizer(model)
    assert Summarization(model).summarizer == made
    assert Summarization(made).summarizer is made
    sizes = {"tokens": 9, "initial_tokens": 9, "added_tokens": 9, "max_tokens": 9}
    assert GrowingSummary(model, trigger=tokens_exceed(99), **sizes).summarizer == made
    for preset in (presets.hermes(64_000, model), presets.langgraph_summary(model), presets.adaptive(9_000, model)):
        assert repr(made) in repr(preset)
    assert CachedSummarizer(model, tmp_path / "answers.db").inner == made
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_cache_uses_the_models_own_key(tmp_path: Path) -> None:
    class Nameless:
        def generate(self, prompt: str) -> str:
            return SAID

    class Named(Nameless):
        cache_key = "mine"

    with pytest.raises(ConfigurationError, match="no 'cache_key'"):
        CachedSummarizer(Nameless(), tmp_path / "answers.db")
    assert CachedSummarizer(Named(), tmp_path / "answers.db").cache_key.endswith("mine")


def test_what_is_not_a_summarizer() -> None:
    class ChatModel(Model):
        def invoke(self, messages: Any) -> str:
            return ""

    assert as_summarizer(digest := DigestSummarizer()) is digest
    for wrong in (None, "gpt-5-mini"):
        with pytest.raises(ConfigurationError, match=r"summarize\(request\) or generate\(prompt\)"):
            Summarization(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"ChatModelSummarizer\(model\)"):
        Summarization(ChatModel())
