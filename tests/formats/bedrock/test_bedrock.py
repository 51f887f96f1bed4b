"""The Converse format: what its examples do not show, and the laws with strict turns and summaries of two messages."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from compaction import MessageIndex, Rewrite, compact_sync
from compaction.errors import InvalidMessage
from compaction.formats import bedrock
from compaction.messages import OtherPart, TextPart
from compaction.selectors import nothing
from compaction.strategies import ClearMedia
from tests.formats.bedrock.examples import ASKED, PNG, POINT, REDACTED, SAID, THOUGHT, Raw, answer, call, result, results, user
from tests.support.chats import indexed

DOCUMENT: Raw = {"document": {"name": "plan", "format": "pdf", "source": {"bytes": b"%PDF"}}}


def test_roles() -> None:
    """A message of results and cache points is a tool's; with any text it is the user's. A missing role is an error."""
    assert [bedrock.read(raw).role for raw in (user(result()), user(result(), POINT))] == ["tool"] * 2
    assert [bedrock.read(raw).role for raw in (user(result(), {"text": "hi"}), user(POINT), user())] == ["user"] * 3
    with pytest.raises(InvalidMessage, match=r"messages\[2\].role"):
        bedrock.read({"content": []}, 2)


def test_what_the_provider_runs_is_no_call_of_the_callers() -> None:
    run = call("s", name="nova_grounding", type="server_tool_use")
    found = result("s", {"text": "a page"}, type="nova_grounding_result")
    read = bedrock.read(answer(run, found, {"text": "so"}))
    assert [type(part) for part in read.parts] == [OtherPart, OtherPart, TextPart]
    assert bedrock.message_problems(read.raw) == []


class TestBytes:
    """Binary data, which boto3 takes as bytes and JSON cannot hold."""

    def test_they_are_stored_as_text_and_read_back(self) -> None:
        text: Raw = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}
        for raw in (user(PNG), user(DOCUMENT), user(REDACTED), user(text), results(PNG)):
            assert bedrock.from_wire(json.loads(json.dumps(bedrock.to_wire(raw)))) == raw
        odd = {"bytes": {"$base64": "not base64!"}}
        assert bedrock.from_wire(odd) == odd

    def test_a_message_without_bytes_is_its_own_wire_form(self) -> None:
        assert bedrock.to_wire(ASKED) is ASKED

    def test_an_index_with_bytes_is_saved(self) -> None:
        messages = [user({"text": "see"}, PNG, DOCUMENT), SAID, ASKED]
        saved = json.loads(json.dumps(indexed(messages).to_dict()))
        assert MessageIndex.from_dict(saved, counter="chars/4").messages() == messages
        done = compact_sync(messages, ClearMedia(keep=nothing), counter="chars/4")
        assert done.messages[0] == user({"text": "see"}, {"text": "[image removed]"}, {"text": "[file removed]"})


@pytest.mark.parametrize(
    ("before", "after", "roles"),
    [
        (None, None, ["user"]),
        (None, "assistant", ["user"]),
        (None, "user", ["user", "assistant"]),
        ("user", None, ["assistant"]),
        ("user", "user", ["assistant"]),
        ("user", "assistant", ["assistant", "user"]),
        ("assistant", "user", ["user", "assistant"]),
        ("assistant", "assistant", ["user"]),
        ("system", "user", ["assistant"]),
        ("system", "assistant", ["assistant", "user"]),
        ("user", "system", ["assistant", "user"]),
    ],
)
def test_a_summary_keeps_the_turns(before: str | None, after: str | None, roles: list[str]) -> None:
    """A summary is one message where turns alternate with it, else two, the second of which completes the first."""
    first, last = (None if role is None else bedrock.new(role, "x") for role in (before, after))
    made = bedrock.summary("so far", first, last)
    assert [each.role for each in made] == roles
    line = [first, *made, last]
    assert all(bedrock.follows(*pair) for pair in pairwise(line))
    assert [each for each in line if each is not None and each.text == "so far"] == [made[0]]
    assert [bedrock.completes_summary(each) for each in made] == [False, True][: len(made)]


def test_a_note_in_place_of_calls_keeps_the_turns() -> None:
    note, word = bedrock.placeholder("look() -> noon")
    assert (note.role, note.text, word.role, bedrock.completes_summary(word)) == ("assistant", "look() -> noon", "user", True)


@pytest.mark.parametrize(
    ("blocks", "rule"),
    [
        ([{"text": "I look."}, call(), THOUGHT], "an answer has no thoughts after its calls [thinking-after-call]"),
        ([{"text": "I look."}, THOUGHT, call()], "an answer that began with thoughts still begins with them, or has none"),
    ],
    ids=["behind a call", "behind words"],
)
def test_an_edit_that_moves_a_thought_is_refused(blocks: list[Raw], rule: str) -> None:
    """A rewrite keeps the order in which the model thought, spoke and called; another order is refused with its rule."""
    messages = [ASKED, answer(THOUGHT, {"text": "I look."}, call()), user(result()), SAID, ASKED, SAID]
    index = indexed(messages)
    index.apply(Rewrite(1, [bedrock.read(answer(*blocks))], reason="shorter"))
    assert index.messages() == messages
    assert [refusal.rule for refusal in index.refused] == [rule]
