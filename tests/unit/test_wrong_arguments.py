"""Wrong arguments: each error names the fix, and each warning is shown at the caller's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import CompactionSession, MessageIndex, Pipeline, Replace, Rewrite, compact_sync, last, presets
from compaction.errors import ConfigurationError, StrategyError
from compaction.stores import SQLiteStore
from compaction.strategies import Clear, Failed, Lossless, Offload, Summarization, ToolResult, Truncation
from compaction.summarizers import OpenAISummarizer
from compaction.tokens import EstimateWarning, counter, resolve
from compaction.triggers import tokens_exceed
from tests.support.chats import tool_turns

CHAT = tool_turns(4)
HOSTILE = "\x1b[2J\ud800" + "x" * 100_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: Replace([0], CHAT[:1]),  # type: ignore[arg-type]
        lambda: Replace([0], CHAT[0]),  # type: ignore[arg-type]
        lambda: Rewrite(0, CHAT[:1]),  # type: ignore[arg-type]
        lambda: Rewrite(0, 7),  # type: ignore[arg-type]
    ],
)
def test_an_edit_needs_messages(make: Callable[[], Any]) -> None:
    """A plain dict instead of a `Message`, or anything but a list, is an error that says how to read one."""
    with pytest.raises(StrategyError, match=r"a list of messages that were read, such as \[index.format.read\(data\)\]"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Truncation(trigger=8000), "tokens_exceed(8000)"),  # type: ignore[arg-type]
        (lambda: Truncation(keep=4), "last(groups=4)"),  # type: ignore[arg-type]
        (lambda: compact_sync(CHAT, [Truncation()]), "Pipeline("),  # type: ignore[arg-type]
        (lambda: compact_sync(CHAT, presets.adaptive), "adaptive(...)"),  # type: ignore[arg-type]
        (lambda: compact_sync(CHAT, Truncation), "Truncation(...)"),  # type: ignore[arg-type]
        (lambda: Pipeline(Clear), "Clear(...)"),  # type: ignore[arg-type]
        (lambda: Truncation(trigger=tokens_exceed), "tokens_exceed(...)"),  # type: ignore[arg-type]
        (lambda: Truncation(keep=last), "last(...)"),  # type: ignore[arg-type]
        (lambda: ToolResult(Clear), "Clear(...)"),  # type: ignore[arg-type]
        (lambda: Summarization(OpenAISummarizer), "OpenAISummarizer(...)"),  # type: ignore[arg-type]
        (lambda: Offload(SQLiteStore), "SQLiteStore(...)"),  # type: ignore[arg-type]
        (lambda: Lossless(Truncation(), SQLiteStore), "SQLiteStore(...)"),  # type: ignore[arg-type]
        (lambda: CompactionSession(presets.hermes), "hermes(...)"),  # type: ignore[arg-type]
        (lambda: tokens_exceed("8k"), "write 8_000"),  # type: ignore[arg-type]
        (lambda: last(tokens="2m"), "write 2_000_000"),  # type: ignore[arg-type]
        (lambda: compact_sync(CHAT, Truncation(), budget="500"), "write 500"),  # type: ignore[arg-type]
        (lambda: presets.adaptive("32k"), "write 32_000"),
        (lambda: presets.token_budget("8k"), "write 8_000"),  # type: ignore[arg-type]
    ],
)
def test_an_error_names_the_fix(make: Callable[[], Any], says: str) -> None:
    """A frequent mistake is an error whose text contains what to write instead."""
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert says in str(caught.value)


def test_an_estimate_is_told_at_the_callers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning about an estimate has two sentences and the place of the line that made the session."""
    monkeypatch.setattr(resolve, "_resolved", {})
    monkeypatch.setattr(resolve, "_exact", lambda encoding: None)
    with pytest.warns(EstimateWarning) as caught:
        CompactionSession(Truncation())
    counter("auto")  # the second time, there is no warning: it would be an error here
    [warning] = caught
    assert (warning.filename, str(warning.message).count(". ")) == (__file__, 1)


def test_texts_of_values_are_short() -> None:
    """The ``repr`` and the text of a result, an index and a session contain sizes and no text of the messages."""
    chat = [{"role": "user", "content": HOSTILE}, *CHAT, {"role": "user", "content": HOSTILE}]
    failed = Failed(strategy=HOSTILE, error=ValueError(HOSTILE), policy=HOSTILE)
    session = CompactionSession(Truncation(trigger=tokens_exceed(100)), counter="chars/4", id=HOSTILE)
    session.view_sync(chat)
    index = MessageIndex(chat, counter="chars/4")
    result = compact_sync(chat, Truncation(), counter="chars/4").with_failures(failed)
    for value in (session, index, result, MessageIndex(), CompactionSession(Truncation())):
        assert str(value) == repr(value)
        assert len(repr(value)) < 400
        assert repr(value).isprintable()
    assert repr(result).startswith("<CompactionResult degraded: tokens ")
    assert repr(index).startswith("<MessageIndex openai-chat: messages 18 of 18, tokens ")
