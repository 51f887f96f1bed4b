"""`FirstOf`, several summarizers in order."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from compaction.batch.rate_limits import LimitedSummarizer, Limits, RateLimiter, find_summarizers, replace_summarizers
from compaction.errors import ConfigurationError, SummaryFailed
from compaction.strategies import Summarization
from compaction.summarizers import CachedSummarizer, DigestSummarizer, FactSummarizer, FirstOf, SummaryRequest, asks_model
from tests.support.scripted import Awaited, Scripted, request_for


def asked(summarizer: Any) -> SummaryRequest:
    return request_for(summarizer, [], budget=10)


def test_it_is_a_value() -> None:
    one = FirstOf(FactSummarizer(), DigestSummarizer())
    assert one == FirstOf(FactSummarizer(), DigestSummarizer())
    assert one != FirstOf(DigestSummarizer(), FactSummarizer())
    assert repr(one) == f"FirstOf({FactSummarizer()!r}, {DigestSummarizer()!r})"
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("summarizers", "says"), [((), "one or more summarizers"), ((DigestSummarizer(), "digest"), "'digest'")]
)
def test_it_is_made_of_summarizers(summarizers: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        FirstOf(*summarizers)


@pytest.mark.parametrize("first", [Scripted, Awaited])
@pytest.mark.parametrize("second", [Scripted, Awaited])
async def test_sync_and_async_ones_may_be_mixed(first: Any, second: Any) -> None:
    one, two, three = first(SummaryFailed("down")), second("Well."), Scripted("Never.")
    request = asked(FirstOf(one, two, three))
    answer = request.call()
    text = answer if isinstance(answer, str) else await request.wait(answer)
    assert (text, [str(error) for error in request.failures]) == ("Well.", ["down"])
    assert [len(each.requests) for each in (one, two, three)] == [1, 1, 0]


@pytest.mark.parametrize(("tokens", "is_used"), [(40, True), (41, False)])
def test_an_answer_may_be_four_times_too_long(tokens: int, is_used: bool) -> None:
    """An answer of up to four times the budget is used; for a longer one the next summarizer is called."""
    answer = "word" * tokens
    assert (asked(FirstOf(Scripted(answer), Scripted("Short."))).call() == answer) is is_used


@pytest.mark.parametrize("kind", [Scripted, Awaited])
async def test_a_mistake_is_not_hidden(kind: Any) -> None:
    request = asked(FirstOf(kind(ConfigurationError("no key")), Scripted("Well.")))
    with pytest.raises(ConfigurationError, match="no key"):
        await request.wait(request.call())


def test_it_asks_a_model_if_one_of_them_does() -> None:
    assert asks_model(FirstOf(Scripted("x"), DigestSummarizer()))
    assert not asks_model(FirstOf(FactSummarizer(), FirstOf(DigestSummarizer())))


def test_a_batch_limits_each_of_them(tmp_path: Any) -> None:
    scripted, digest = Scripted("x"), DigestSummarizer()
    strategy = Summarization(FirstOf(scripted, digest))
    limiter = RateLimiter(Limits())
    limited = replace_summarizers(strategy, lambda inner: LimitedSummarizer(inner, limiter))
    assert isinstance(limited, Summarization)
    assert isinstance(limited.summarizer, FirstOf)
    assert [type(each) for each in limited.summarizer.summarizers] == [LimitedSummarizer, DigestSummarizer]
    assert find_summarizers(strategy) == [scripted]
    cached = CachedSummarizer(FirstOf(digest), tmp_path / "answers.db")
    assert cached.timeout_seconds is None
