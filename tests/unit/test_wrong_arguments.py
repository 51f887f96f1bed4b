"""Wrong arguments: each error names the fix, and each warning is shown at the caller's line."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from compaction import CompactionSession, MessageIndex, Pipeline, SessionPool, compact_sync, last, presets, tools
from compaction.config import from_data
from compaction.errors import ConfigurationError
from compaction.stores import SessionStore, SQLiteStore
from compaction.strategies import (
    Clear,
    Clip,
    Collapse,
    Dedupe,
    Failed,
    GrowingSummary,
    HeadTail,
    LastResort,
    Lossless,
    Offload,
    Summarization,
    SummaryText,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import OpenAISummarizer, SummaryBudget, SummaryTemplate
from compaction.tokens import CharsPerToken, EstimateWarning, Memoized, counter, resolve
from compaction.triggers import tokens_exceed, worth_it
from tests.support.chats import tool_turns
from tests.support.wires import Shelf

CHAT = tool_turns(4)
HOSTILE = "\x1b[2J\ud800" + "x" * 100_000
SIZES = {"tokens": 9, "initial_tokens": 9, "added_tokens": 9, "max_tokens": 9}


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
        (lambda: ToolResult("Clear"), "'style' must be a style (got 'Clear')"),  # type: ignore[arg-type]
        (lambda: ToolResult(None), "'style' must be a style (got None)"),  # type: ignore[arg-type]
        (lambda: Lossless(Truncation(), None), "'store' must be a store (got None)"),  # type: ignore[arg-type]
        (lambda: Offload("x.db"), "'store' must be a store (got 'x.db')"),  # type: ignore[arg-type]
        (lambda: Summarization(text="x"), "'text' must be a SummaryText (got 'x')"),  # type: ignore[arg-type]
        (lambda: Summarization(text=SummaryText), "SummaryText(...)"),  # type: ignore[arg-type]
        (lambda: Summarization(budget=500), "'budget' must be a SummaryBudget (got 500)"),  # type: ignore[arg-type]
        (lambda: SummaryText(preface=5), "'preface' must be one paragraph, not empty (got 5)"),  # type: ignore[arg-type]
        (lambda: TokenBudgetComposed(Truncation(), budget=5), "a strategy, not a list of them; write [Truncation("),  # type: ignore[arg-type]
        (lambda: CompactionSession(Truncation(), id=5), "CompactionSession: 'id' must be a text (got 5)"),  # type: ignore[arg-type]
        (lambda: SQLiteStore("x", timeout_seconds=0), "SQLiteStore: 'timeout_seconds' must be a number above 0 (got 0)"),
        (lambda: SessionStore("x", timeout_seconds=-1), "SessionStore: 'timeout_seconds' must be a number above 0 (got -1)"),
        (lambda: presets.adaptive(8_000, cached=2), "adaptive(cached=2, cache_seconds=300.0): 0 < cached <= 1"),
        (
            lambda: presets.adaptive(8_000, cache_seconds=0),
            "adaptive(cached=0.1, cache_seconds=0): 0 < cached <= 1, and cache_seconds > 0",
        ),
        (lambda: Summarization(on_failure="digset"), "'on_failure' must be one of keep, digest, drop, raise"),  # type: ignore[arg-type]
        (lambda: tokens_exceed("3k"), "tokens_exceed: the limit must be"),  # type: ignore[arg-type]
        (lambda: Summarization(OpenAISummarizer), "OpenAISummarizer(...)"),  # type: ignore[arg-type]
        (lambda: Offload(SQLiteStore), "SQLiteStore(...)"),  # type: ignore[arg-type]
        (lambda: Lossless(Truncation(), SQLiteStore), "SQLiteStore(...)"),  # type: ignore[arg-type]
        (lambda: CompactionSession(presets.hermes), "hermes(...)"),  # type: ignore[arg-type]
        (lambda: CompactionSession(Truncation(), pin="x"), "'pin' must be a function of a message (got 'x')"),  # type: ignore[arg-type]
        (lambda: from_data([Truncation()]), "pipeline: it must be a table of options"),  # type: ignore[arg-type]
        (lambda: pickle.dumps(CompactionSession(Truncation())), "save to_dict()"),
        (lambda: SessionPool(Truncation(), store="x.db"), "store='x.db': must be a store; write store=SessionStore('x.db')"),  # type: ignore[arg-type]
        (lambda: SessionPool(Truncation(), id="mine"), "SessionPool(id='mine'): each session has its own id; pass id= to call"),
        (lambda: tools(["read_file"]), "tools(['read_file']): a name is a text; pass the names one by one"),  # type: ignore[arg-type]
        (lambda: tokens_exceed("8k"), "write 8_000"),  # type: ignore[arg-type]
        (lambda: last(tokens="2m"), "write 2_000_000"),  # type: ignore[arg-type]
        (lambda: compact_sync(CHAT, Truncation(), budget="500"), "write 500"),  # type: ignore[arg-type]
        (lambda: presets.adaptive("32k"), "write 32_000"),
        (lambda: presets.token_budget("8k"), "write 8_000"),  # type: ignore[arg-type]
        *((partial(Clip, tokens=wrong), "Clip: 'tokens' must be a whole") for wrong in (0, -1, 1.5, True, "9", None)),
        *((partial(GrowingSummary, **{**SIZES, name: 0}), f"GrowingSummary: '{name}' must be") for name in SIZES),
        (lambda: TokenBudgetComposed([], budget=0), "TokenBudgetComposed: 'budget' must be a whole number >= 1"),
        (lambda: ToolResult(at_least=-1), "ToolResult: 'at_least' must be a whole number >= 0"),
        (lambda: Clear(min_chars=0), "Clear: 'min_chars' must be a whole number >= 1"),
        (lambda: Clear(inputs="write_file"), "names of tools must be a list"),  # type: ignore[arg-type]
        (lambda: Dedupe(reads="read_file"), "names of tools must be a list"),  # type: ignore[arg-type]
        (lambda: HeadTail(chars=0), "HeadTail: 'chars' must be a whole number >= 1"),
        (lambda: Collapse(outcome_chars=0), "Collapse: 'outcome_chars' must be a whole number >= 1"),
        (lambda: Collapse(argument_chars=0), "Collapse: 'argument_chars' must be a whole number >= 1"),
        (lambda: Offload(Shelf(), min_chars=0), "Offload: 'min_chars' must be a whole number >= 1"),
        *((partial(Summarization, least_share=wrong), "'least_share' must be a share from 0 to 1") for wrong in (-1, 2.0, "x")),
        (lambda: LastResort(tokens=9, clips=5), "'clips' must be a list of shares (got 5)"),  # type: ignore[arg-type]
        (lambda: SummaryTemplate.plain(5), "an instruction says what to summarize (got 5)"),  # type: ignore[arg-type]
        (lambda: Lossless(3, Shelf()), "a strategy must be a callable"),  # type: ignore[arg-type]
        (lambda: SummaryBudget(ratio=1.5), "ratio"),
        (lambda: presets.context_window(32_000, threshold="0.8"), "threshold='0.8'"),  # type: ignore[arg-type]
        (lambda: presets.adaptive(32_000, threshold="0.9"), "threshold='0.9'"),  # type: ignore[arg-type]
        (lambda: presets.langgraph_summary(max_summary_tokens="512"), "max_summary_tokens='512'"),  # type: ignore[arg-type]
        (lambda: presets.hermes(1), "hermes(1, threshold=0.5): the threshold must be at least one token"),
        (lambda: SummaryText(preface="two\n\nparagraphs"), "'preface' must be one paragraph"),
        (lambda: Offload(Shelf(), on_failure="ignore"), "'on_failure' must be one of keep, raise"),  # type: ignore[arg-type]
        (lambda: worth_it(Truncation(), calls=0), "'calls' must be a whole number >= 1"),
        *((partial(worth_it, Truncation(), cached=wrong), "worth_it: 'cached' must be a share") for wrong in (0, 1.1)),
        (lambda: worth_it(Truncation(), ttl_seconds=0), "worth_it: 'ttl_seconds' must be a number above 0"),
        (lambda: Memoized(CharsPerToken(), max_bytes=0), "Memoized: 'max_bytes' must be a whole number >= 1"),
    ],
)
def test_an_error_names_the_fix(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert says in str(caught.value)


def test_a_function_without_a_module_is_a_strategy() -> None:
    """Code that `exec` runs without a `__name__` may define strategies too."""
    names: dict[str, Any] = {}
    exec("def nothing(index):\n    yield from ()", names)
    names["nothing"].__module__ = None
    assert compact_sync(CHAT, names["nothing"], counter="chars/4").outcome == "unchanged"


def test_an_estimate_is_told_at_the_callers_line(monkeypatch: pytest.MonkeyPatch) -> None:
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
