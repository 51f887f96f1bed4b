"""`Excerpt` and `LastResort`: what the user said stays, word for word, and goes last."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compaction import MessageIndex, compact_sync, last
from compaction.errors import ConfigurationError
from compaction.run import run_sync
from compaction.strategies import Excerpt, LastResort, Summarization, SummaryText
from compaction.testing.laws import lost_words
from compaction.triggers import tokens_below
from tests.support.chats import assistant, call, indexed, result, system, tool_turns, user
from tests.support.scripted import Scripted

RULES = "Rules:\n- Never push.\n- Dates in UTC."


def test_the_excerpt_keeps_the_form_of_what_was_said() -> None:
    asked, goes_on = user(RULES + "\n" * 400), user("Go on with the parser. " * 3)
    said = [asked, assistant("Yes. " * 90), goes_on, assistant("Done. " * 90), user("Fine.")]
    result = compact_sync(said, Excerpt(tokens=200, target=tokens_below(indexed(said).tokens)), counter="chars/4")
    assert [message["role"] for message in result.messages] == ["assistant", "user", "assistant", "user"]
    text = result.messages[1]["content"]
    assert "- Rules:\n  - Never push.\n  - Dates in UTC.\n- Go on" in text


def test_a_message_with_only_an_image_is_part_of_the_excerpt() -> None:
    """If it stayed, it would stand before older words, and be taken for the image that these speak of."""
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}
    said = [user("Look at it. " * 60), assistant("Yes."), image, assistant("Nice."), user("Blue. " * 60), user("Fine.")]
    done = compact_sync(said, Excerpt(tokens=100, target=tokens_below(indexed(said).tokens)), counter="chars/4")
    assert image not in done.messages
    assert "[image]" in done.messages[2]["content"]


def test_an_excerpt_that_saves_nothing_is_not_written() -> None:
    said = [user("Fix A."), assistant("Done."), user("Fix B."), assistant("Done."), user("Fine.")]
    assert compact_sync(said, Excerpt(tokens=200), counter="chars/4").outcome == "unchanged"


def test_a_question_leaves_with_its_short_answer() -> None:
    """A message of which only a question is left leaves with the answer to it, and the excerpt quotes both."""
    asked = "[...]\nA. Wait for the long report of the engineer.\nB. Go.\nWhich one?"
    said = [user("Help. " * 60), assistant(asked), user("B"), user("Help. " * 60), assistant("Done. " * 40), user("Fine.")]
    result = compact_sync(said, Excerpt(tokens=220, target=tokens_below(indexed(said).tokens)), counter="chars/4")
    assert [message["role"] for message in result.messages] == ["user", "assistant", "user"]
    assert "- B (the assistant had said: " in result.messages[0]["content"]


def test_an_excerpt_is_updated_from_a_list_that_was_compacted_before() -> None:
    said = [user(f"Box {number} is on shelf {number}. " + "ok " * 60) for number in range(6)]
    once = compact_sync(said, Excerpt(tokens=60, target=tokens_below(300)), counter="chars/4").messages
    more = [*once, user("More. " * 40), user("Now.")]
    twice = compact_sync(more, Excerpt(tokens=90, target=tokens_below(150)), counter="chars/4").messages
    assert len(twice) == 2
    assert "- Box 0 is on shelf 0." in twice[0]["content"]
    assert twice[0]["content"].count("word for word:") == 1


def test_the_last_resort_drops_what_the_agent_said_first() -> None:
    said = [system("s"), user(RULES), *tool_turns(12), user("Fine.")]
    index = indexed(said)
    result = compact_sync(said, LastResort(tokens=index.tokens // 4), counter="chars/4")
    assert result.outcome == "compacted"
    assert said[1] in result.messages
    assert result.after.tokens <= index.tokens // 4


def test_the_last_resort_says_which_words_it_dropped() -> None:
    said = [user("a b c d e f. " * 9), user("g h i j. " * 9), user("Now.")]
    index = indexed(said)
    result = compact_sync(said, LastResort(tokens=8), counter="chars/4")
    assert result.outcome == "degraded"
    policies = [f"what the user said in the messages {place} was dropped without a summary" for place in (0, 1)]
    assert [failure.policy for failure in result.failures] == policies
    assert index.total.messages == 3


def test_the_last_resort_quotes_what_a_summary_stands_for() -> None:
    said = [user(RULES), assistant("Yes. " * 400), user("Fine.")]
    index = indexed(said)
    compacted = Summarization(Scripted("Long. " * 150), keep=last(groups=1), user_tokens=0)
    pipeline = compacted >> LastResort(tokens=120)
    result = compact_sync(said, pipeline, counter="chars/4")
    assert index.tokens > 120 >= result.after.tokens
    assert "- Never push." in result.messages[0]["content"]


def test_the_target_may_be_below_the_trigger() -> None:
    """``tokens`` is where it starts; a target of one's own says where it stops."""
    said = [user("Fix A."), *[assistant("word " * 40)] * 9, user("Fine.")]
    result = compact_sync(said, LastResort(tokens=300, target=tokens_below(150)), counter="chars/4")
    assert result.after.tokens < 150
    assert lost_words(indexed(result.messages)) == []


@pytest.mark.parametrize("clips", [(0.0,), (1.1,), (0.5, -1)])
def test_shares_are_checked(clips: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match="a share above 0 and at most 1"):
        LastResort(tokens=100, clips=clips)


@pytest.mark.parametrize("redact", [True, False])
def test_a_stored_session_has_no_secret_of_messages_that_left(redact: bool) -> None:
    chat = [user("Log in with password: hunter2x. " + "Then wait. " * 90), assistant("Done. " * 40), user("Go on.")]
    text = SummaryText() if redact else SummaryText(redact=None)
    index = MessageIndex(chat, counter="chars/4")
    run_sync(index, Excerpt(tokens=80, text=text))
    assert index.edits
    assert ("hunter2x" in json.dumps(index.to_dict(messages=False))) is not redact


def test_the_last_resort_names_the_answers_that_it_drops() -> None:
    """A person also speaks through a tool that asks."""
    chat = [user("Fix A."), *[each for n in range(3) for each in (ask(n), result(f"a{n}", f"{n} " * 750))]]
    done = compact_sync([*chat, assistant("ok"), user("Go on.")], LastResort(tokens=60), counter="chars/4")
    assert done.after.tokens <= 60
    assert done.outcome == "degraded"
    dropped = {int(place) for failure in done.failures for place in re.findall(r"\d+", failure.policy)}
    assert dropped == {0, 2, 4, 6}


def ask(number: int) -> dict[str, Any]:
    return call(f"a{number}", name="ask_user", arguments='{"question": "Which?"}')
