"""`CachedSummarizer` sends no request twice, in any process, and refuses files of other programs."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compaction import MessageIndex
from compaction.errors import ConfigurationError, StateError, SummaryFailed
from compaction.formats import openai_chat
from compaction.messages import Message, ToolResultPart
from compaction.summarizers import (
    CachedSummarizer,
    DigestSummarizer,
    FirstOf,
    Summarizer,
    SummaryRequest,
    SummaryTemplate,
    asks_model,
)
from compaction.tokens import counter
from tests.support.chats import assistant, call, result, user
from tests.support.scripted import Awaited, Scripted, request_for

ROOT = Path(__file__).resolve().parents[3]
TALK = [{"role": "user", "content": "Move the blog. " * 40}, {"role": "assistant", "content": "Done with the files. " * 40}]


class Counting:
    """Answers with the number of requests so far."""

    def __init__(self, cache_key: str = "counting") -> None:
        self.cache_key = cache_key
        self.asked = 0

    def summarize(self, request: SummaryRequest) -> str:
        self.asked += 1
        return f"answer {self.asked} of {self.cache_key}"


class Unshown(Counting):
    """A summarizer whose `repr` hides what its answers depend on."""

    def __repr__(self) -> str:
        return "Unshown()"


class CountingLater(Counting):
    async def summarize(self, request: SummaryRequest) -> str:  # type: ignore[override]
        return super().summarize(request)


def asked(summarizer: Summarizer, messages: Sequence[Any] = TALK, **options: Any) -> SummaryRequest:
    return request_for(summarizer, messages, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "summaries.sqlite"


def test_the_same_request_is_asked_once(path: Path) -> None:
    inner = Counting()
    cached = CachedSummarizer(inner, path)
    assert cached.summarize(asked(cached)) == "answer 1 of counting"
    assert cached.summarize(asked(cached)) == "answer 1 of counting"
    assert CachedSummarizer(inner, path).summarize(asked(inner)) == "answer 1 of counting"
    assert inner.asked == 1


async def test_an_inner_summarizer_that_is_awaited(path: Path) -> None:
    inner = CountingLater()
    cached = CachedSummarizer(inner, path)
    assert await cached.summarize(asked(cached)) == "answer 1 of counting"  # type: ignore[misc]
    assert cached.summarize(asked(cached)) == "answer 1 of counting"


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 300},
        {"previous": "## Goal\nTea."},
        {"said": "The user's messages, word for word:\n- Tea, please."},
        {"focus": "the database"},
        {"language": "Korean"},
        {"template": SummaryTemplate("{max_summary_tokens}{existing_summary_section}{messages_text}")},
        {"template": SummaryTemplate(sections="## Goal\n[x]")},
        {"counter": counter("bytes/4")},
        {"groups": MessageIndex(TALK[:1], counter="chars/4").included_groups},
        {"kept": MessageIndex(TALK[:1], counter="chars/4").included_groups},
        {"originals": MessageIndex(TALK[:1], counter="chars/4").included_groups[0].messages},
    ],
    ids="".join,
)
def test_whatever_may_change_the_answer_is_asked_anew(path: Path, change: dict[str, Any]) -> None:
    cached = CachedSummarizer(Counting(), path)
    assert cached.summarize(asked(cached)) == "answer 1 of counting"
    assert cached.summarize(asked(cached, **change)) == "answer 2 of counting"


def test_parts_of_messages_count(path: Path) -> None:
    calls = [call("c", text="x"), call("c", name="rm", text="x")]
    single = [user("x"), assistant("x"), {**user("x"), "name": "Ada"}, *calls]
    talks = [*([each] for each in single), [call("c"), result("c", "x")]]
    inner = Counting()
    cached = CachedSummarizer(inner, path)
    for talk in talks:
        cached.summarize(asked(cached, talk))
    assert inner.asked == len(talks)


def test_the_name_of_a_file_counts(path: Path) -> None:
    inner = Counting()
    cached = CachedSummarizer(inner, path)
    for name in ("a.pdf", "b.pdf"):
        file = {"type": "file", "file": {"filename": name, "file_data": "data:application/pdf;base64,QUJD"}}
        cached.summarize(asked(cached, [{"role": "user", "content": [file]}]))
    assert inner.asked == 2


def test_whether_a_call_failed_counts(path: Path) -> None:
    inner = Counting()
    cached = CachedSummarizer(inner, path)
    for failed in (None, False, True):
        original = Message("tool", (ToolResultPart("c", "x", failed=failed),), raw=None, format=openai_chat)
        cached.summarize(asked(cached, originals=(original,)))
    assert inner.asked == 3


def test_who_is_asked_counts(path: Path) -> None:
    first, second = CachedSummarizer(Counting("first"), path), CachedSummarizer(Counting("second"), path)
    assert first.summarize(asked(first)) == "answer 1 of first"
    assert second.summarize(asked(second)) == "answer 1 of second"
    assert CachedSummarizer(DigestSummarizer(), path).cache_key == repr(DigestSummarizer())
    one, two = (CachedSummarizer(FirstOf(Unshown(key), DigestSummarizer()), path) for key in ("first", "second"))
    assert one.cache_key != two.cache_key


def keyed(kind: type[Scripted], *answers: Any) -> Scripted:
    """A summarizer with scripted answers that may be cached."""
    inner: Any = kind(*answers)
    inner.cache_key = "scripted"
    return inner


def test_failures_are_not_remembered(path: Path) -> None:
    cached = CachedSummarizer(keyed(Scripted, SummaryFailed("not yet"), "Well."), path)
    with pytest.raises(SummaryFailed):
        cached.summarize(asked(cached))
    assert cached.summarize(asked(cached)) == "Well."


@pytest.mark.parametrize("kind", [Scripted, Awaited])
@pytest.mark.parametrize("answer", [None, " ", ["text"]])
async def test_an_answer_that_is_not_a_text_is_a_failure(path: Path, kind: Any, answer: Any) -> None:
    cached = CachedSummarizer(keyed(kind, lambda request: answer), path)
    request = asked(cached)
    with pytest.raises(SummaryFailed, match="a summary is a text"):
        await request.wait(request.call())


def test_it_asks_a_model_if_the_inner_one_does(path: Path) -> None:
    assert asks_model(CachedSummarizer(Counting(), path))
    assert not asks_model(CachedSummarizer(DigestSummarizer(), path))


def test_any_text_comes_back(path: Path) -> None:
    text = "'); DROP TABLE answers; -- \0 \ud83d 가🙂"
    inner = keyed(Scripted, text)
    cached = CachedSummarizer(inner, path)
    assert [cached.summarize(asked(cached, focus=text)) for _ in range(2)] == [text, text]
    assert len(inner.requests) == 1


def test_written_as_it_arrives(path: Path) -> None:
    """An answer is in the file at once, even if the process is killed directly afterwards."""
    program = f"""
import os
from tests.unit.summarizers.test_cached import Counting, CachedSummarizer, asked
cached = CachedSummarizer(Counting(), {str(path)!r})
cached.summarize(asked(cached))
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == -9
    inner = Counting()
    assert CachedSummarizer(inner, path).summarize(asked(inner)) == "answer 1 of counting"
    assert inner.asked == 0


@pytest.mark.parametrize("name", ["", ":memory:", "file:x?mode=memory", None, 5, b"x.db"])
def test_paths_that_are_none(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="'path' must"):
        CachedSummarizer(Counting(), name)


def test_summarizers_that_cannot_be_told_apart(path: Path) -> None:

    class Nameless:
        def summarize(self, request: SummaryRequest) -> str:
            return "x"

    with pytest.raises(ConfigurationError, match="has no 'cache_key'"):
        CachedSummarizer(Nameless(), path)
    with pytest.raises(ConfigurationError, match="its repr holds an address"):
        CachedSummarizer(DigestSummarizer(redact=lambda text: text), path)
    with pytest.raises(ConfigurationError, match="a summarizer has summarize"):
        CachedSummarizer("digest", path)  # type: ignore[arg-type]


def test_it_is_a_value(path: Path) -> None:
    cached = CachedSummarizer(DigestSummarizer(), path)
    assert pickle.loads(pickle.dumps(cached)) == cached


def fill(path: str, worker: int) -> list[str]:
    """Send 20 requests that every process sends, and 20 that only this one sends."""
    cached = CachedSummarizer(Counting(), path)
    shared = [str(cached.summarize(asked(cached, focus=f"shared {number}"))) for number in range(20)]
    return shared + [str(cached.summarize(asked(cached, focus=f"{worker} {number}"))) for number in range(20)]


def newer(path: Path) -> None:
    CachedSummarizer(Counting(), path)
    file = sqlite3.connect(path)
    file.execute("PRAGMA user_version = 2")
    file.close()


def somebody_elses(path: Path) -> None:
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE recipes (name TEXT)")
    file.close()


def test_processes_share_a_file(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        answers = pool.starmap(fill, [(str(path), worker) for worker in range(3)])
    assert [len(answer) for answer in answers] == [40, 40, 40]
    inner = Counting()
    cached = CachedSummarizer(inner, path)
    for worker in range(3):
        for number in range(20):
            cached.summarize(asked(cached, focus=f"{worker} {number}"))
            cached.summarize(asked(cached, focus=f"shared {number}"))
    assert inner.asked == 0


@pytest.mark.parametrize(("spoil", "says"), [(newer, "is newer than"), (somebody_elses, "not a store of this package")])
def test_files_that_are_not_its_own(path: Path, spoil: Any, says: str) -> None:
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StateError, match=says):
        CachedSummarizer(Counting(), path)
    assert path.read_bytes() == before
