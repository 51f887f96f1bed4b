"""`DropIrrelevant`: a model names what is no longer needed, and only that leaves."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from compaction import compact, compact_sync, last
from compaction.errors import ConfigurationError
from compaction.session import CompactionSession
from compaction.strategies import DropIrrelevant
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, user


class Judge:
    """A judge with scripted answers, the last of which repeats. Holds state: its prompts."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    def generate(self, prompt: str) -> str:
        self.prompts.append(prompt)
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


class AwaitedJudge:
    async def _later(self) -> str:
        return "[1]"

    def generate(self, prompt: str) -> Awaitable[str]:
        return self._later()


def chat(calls: int) -> Chat:
    """Return a question, some calls with long results, an answer, and another question."""
    messages = [user("Find the red box. The password is hunter2x.")]
    for n in range(1, calls + 1):
        messages += [call(f"c{n}", arguments=f'{{"shelf": {n}}}'), result(f"c{n}", f"shelf {n}: dust\n" * 60)]
    return [*messages, assistant("Not yet."), user("Look on.")]


def judged(judge: Any, **options: Any) -> DropIrrelevant:
    """Return the strategy, which keeps only the newest group."""
    return DropIrrelevant(judge, keep=last(groups=1), **options)


def test_only_what_is_named_leaves() -> None:
    """The calls that the judge names leave with their results; the model saw the wish and the parts, but no secrets."""
    judge, messages = Judge("Parts 1 and 3 are dust: [1, 3]"), chat(4)
    result = compact_sync(messages, judged(judge), counter="chars/4")
    assert result.messages == [messages[0], *messages[3:5], *messages[7:]]
    [prompt] = judge.prompts
    assert all(word in prompt for word in ("Find the red box.", "Look on.", "part 5]\nassistant: Not yet.", '"shelf": 4'))
    assert "hunter2x" not in prompt
    assert len(prompt) < 6_000
    for answer in ("[2] is needed, so: [1, 3].", "[1, 3]. The list was [1, 3], as asked"):
        assert compact_sync(messages, judged(Judge(answer)), counter="chars/4").messages == result.messages


async def test_awaited() -> None:
    messages = chat(3)
    assert (await compact(messages, judged(AwaitedJudge()), counter="chars/4")).messages == [messages[0], *messages[3:]]


def test_until_the_target() -> None:
    judge, messages = Judge("[1, 2, 3, 4]"), chat(4)
    result = compact_sync(messages, judged(judge, target=tokens_below(700)), counter="chars/4")
    assert result.messages == [messages[0], *messages[5:]]
    compact_sync(messages, judged(judge, target=tokens_below(9_000)), counter="chars/4")
    assert len(judge.prompts) == 1


@pytest.mark.parametrize(
    "answer", ["No idea.", "", "[9]", "[0]", "[1, , 2]", "[1]. Part [2] is still needed", OSError("no route")]
)
def test_no_usable_answer(answer: str | Exception) -> None:
    messages = chat(3)
    result = compact_sync(messages, judged(Judge(answer)), counter="chars/4")
    assert (result.messages, result.outcome) == (messages, "degraded")
    assert result.failures[0].policy == "nothing was judged; the conversation is unchanged"


def test_a_forced_run() -> None:
    strategy = judged(Judge("[1, 2]"), trigger=tokens_exceed(10**6))
    messages = chat(3)
    assert compact_sync(messages, strategy, counter="chars/4").outcome == "unchanged"
    assert compact_sync(messages, strategy.forced(), counter="chars/4").messages == [messages[0], *messages[5:]]


def test_asked_again_only_for_something_new() -> None:
    """Groups judged to be needed are judged again only when a tenth of the view is new; after a failure the judge rests."""
    judge, messages = Judge("[]"), chat(6)
    session = CompactionSession(judged(judge, trigger=tokens_exceed(500)), counter="chars/4")
    for _ in range(3):
        session.view_sync(messages)
        messages = [*messages, assistant("Yes."), user("And?")]
    assert len(judge.prompts) == 1
    session.view_sync([*messages, *chat(4)[1:]])
    assert len(judge.prompts) == 2

    failing = Judge(OSError("no route"))
    session = CompactionSession(judged(failing, trigger=tokens_exceed(500)), counter="chars/4", clock=lambda: 0.0)
    for _ in range(3):
        session.view_sync(messages)
    assert len(failing.prompts) == 1


@pytest.mark.parametrize("judge", [None, Judge, "gpt"])
def test_not_a_judge(judge: Any) -> None:
    with pytest.raises(ConfigurationError, match="'judge' must have generate"):
        DropIrrelevant(judge)
