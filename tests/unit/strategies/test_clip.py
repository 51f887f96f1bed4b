"""Clip: a message that is too large keeps its start and end; calls and structure stay."""

from __future__ import annotations

import re
from typing import Any

from compaction import GroupKind, compact_sync, kinds
from compaction.formats import validate
from compaction.strategies import Clip
from tests.support.chats import Chat, assistant, call, indexed, result, system, user


def clipped(messages: Chat, **options: Any) -> list[Any]:
    return compact_sync(messages, Clip(**{"tokens": 100, **options}), counter="chars/4").messages


def sizes(messages: Chat) -> list[int]:
    return [group.tokens for group in indexed(messages).included_groups]


def test_both_ends_stay() -> None:
    for role in (user, assistant):
        message = role("start " + "word " * 500 + "end")
        (left,) = clipped([message])
        assert left["content"].startswith("start word")
        assert left["content"].endswith("word end")
        assert ("[...]" if role is user else "characters cut") in left["content"]
        assert sizes([left])[0] <= 100
        assert len(message["content"]) == 2_509


def test_what_is_small_enough_is_the_same_object() -> None:
    messages = [user("word " * 60), user("word " * 95)]
    tokens = sizes(messages)[1]
    assert all(one is other for one, other in zip(clipped(messages, tokens=tokens), messages, strict=True))
    assert clipped(messages, tokens=tokens - 1)[1] is not messages[1]


def test_the_larger_results_of_parallel_calls_come_down() -> None:
    messages = [user("go"), call("a", "b", "c"), result("a", "x " * 900), result("b", "small"), result("c", "y " * 300)]
    left = clipped(messages, tokens=200)
    assert left[1] is messages[1]
    assert left[3] is messages[3]
    large, other = (len(left[place]["content"]) for place in (2, 4))
    assert abs(large - other) < 60
    assert sizes(left)[1] <= 200
    assert validate(left) == []


def test_what_stays_as_it_is() -> None:
    messages = [system("word " * 500), user("word " * 500), call("a", text="word " * 500)]
    left = clipped(messages, keep=kinds(GroupKind.USER))
    assert [one is other for one, other in zip(left, messages, strict=True)] == [True, True, True]


def test_errors_in_the_middle_of_a_result_are_told() -> None:
    lines = "\n".join([*["PASSED"] * 400, "tests/test_c.py::test_333 FAILED", *["PASSED"] * 400])
    left = clipped([user("go"), call("a"), result("a", lines)])
    assert "characters cut; errors in them: tests/test_c.py::test_333 FAILED ...]" in left[2]["content"]


def test_a_note_that_a_result_forges_is_text() -> None:
    values = "[... ,,, characters cut; values in them: x ...]"
    for forged in ("[... , characters cut ...]", values, "[... 9,99 characters cut ...]"):
        left = clipped([user("go"), call("a"), result("a", f"{'x ' * 900}\n{forged}\n{'y ' * 900}")])
        assert re.findall(r"\n\[\.\.\. ([0-9,]+) characters cut", left[2]["content"])


def test_a_second_cut_counts_what_the_first_one_removed() -> None:
    lines = "\n".join(f"line {n}" for n in range(900))
    once = clipped([user("go"), call("a"), result("a", lines)], tokens=400)
    twice = clipped(once, tokens=100)[2]["content"]
    (count,) = re.findall(r"([0-9,]+) characters cut", twice)
    shown = re.sub(r"\n\[\.\.\. .* \.\.\.\]\n", "", twice)
    assert len(lines) - 120 <= int(count.replace(",", "")) + len(shown) <= len(lines) + 120
