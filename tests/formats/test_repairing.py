"""Repair by the rules: moved results keep their order, and removing one block does not affect others."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses

Raw = dict[str, Any]


def test_late_results_keep_the_order_of_their_calls() -> None:
    """Late Gemini responses are moved in their order, so that the first answers the first call of that name."""
    calls = [{"functionCall": {"name": "look", "args": {"n": n}}} for n in range(3)]
    responses = [{"functionResponse": {"name": "look", "response": {"result": str(n)}}} for n in range(3)]
    said = {"role": "user", "parts": [{"text": "hi"}]}
    done = gemini.repair([said, {"role": "model", "parts": calls}, said, {"role": "user", "parts": responses}])
    assert done.messages == [said, {"role": "model", "parts": calls}, {"role": "user", "parts": responses}, said]
    assert [change.where for change in done.changes] == [f"messages[3].parts[{n}]" for n in range(3)]


def test_every_call_of_one_id_gets_its_own_result() -> None:
    """When 50 calls share one id, a repair gives each a unique id and pairs the results with them in order."""
    calls = [{"type": "tool_use", "id": "a", "name": "now", "input": {"n": n}} for n in range(50)]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": str(n)} for n in range(50)]
    done = anthropic.repair([{"role": "assistant", "content": calls}, {"role": "user", "content": results}])
    ids = {call["id"]: call["input"]["n"] for call in done.messages[0]["content"]}
    assert len(ids) == 50
    assert [ids[result["tool_use_id"]] for result in done.messages[1]["content"]] == list(range(50))
    assert (done.messages[1]["content"][-1]["content"], done.remaining) == ("49", ())


def test_a_late_result_follows_a_call_with_a_new_id() -> None:
    """A call id that the API refuses is replaced in the call and in its late result, which is moved after the call."""
    call = {"type": "tool_use", "id": "a b", "name": "now", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a b", "content": "noon"}
    said = {"role": "user", "content": "hi"}
    done = anthropic.repair([{"role": "assistant", "content": [call]}, said, {"role": "user", "content": [result]}])
    assert done.messages == [
        {"role": "assistant", "content": [{**call, "id": "toolu_0_0"}]},
        {"role": "user", "content": [{**result, "tool_use_id": "toolu_0_0"}]},
        said,
    ]


def test_a_block_that_breaks_two_rules_goes_once() -> None:
    """A block that breaks two rules is removed and reported once, and the block after it is unchanged."""
    lost = {"type": "mcp_tool_result", "tool_use_id": "gone", "content": [], "caller": {"tool_id": "gone"}}
    words = {"type": "text", "text": "Noon."}
    done = anthropic.repair([{"role": "user", "content": "When?"}, {"role": "assistant", "content": [lost, words]}])
    assert done.messages[1] == {"role": "assistant", "content": [words]}
    assert done.messages[1]["content"][0] is words
    assert [change.rule for change in done.changes] == ["server-result-without-call"]


def test_only_the_last_cache_points_stay() -> None:
    """A repair removes the oldest cache points until four are left, several from one message if needed."""
    point = {"cachePoint": {"type": "default"}}
    first = {"role": "user", "content": [{"text": "a"}, point, {"text": "b"}, point, {"text": "c"}, point]}
    rest = [{"role": role, "content": [{"text": "d"}, point]} for role in ("assistant", "user", "assistant")]
    done = bedrock.repair([first, *rest])
    assert done.messages == [{"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}, point]}, *rest]
    assert [change.where for change in done.changes] == ["messages[0].content[1]", "messages[0].content[3]"]


def test_what_cannot_be_joined_stays() -> None:
    """Two messages of one role are not joined if the content of one cannot be understood; both problems remain."""
    said, odd = {"role": "user", "content": [{"text": "hi"}]}, {"role": "user", "content": 5}
    done = bedrock.repair([said, odd])
    assert (done.messages, done.changes) == ([said, odd], ())
    assert [problem.rule for problem in done.remaining] == ["malformed-content", "same-role-twice"]


def test_a_late_result_of_a_legacy_function_goes() -> None:
    """A late result of a legacy function call is removed, as such a call needs no result."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
    late = [call, {"role": "user", "content": "hi"}, {"role": "function", "name": "now", "content": "noon"}]
    assert openai_chat.repair(late).messages == late[:2]


def test_arguments_of_an_item_become_text() -> None:
    """The arguments of a function-call item become text: missing ones ``{}``, others their JSON."""
    calls: list[Raw] = [
        {"type": "function_call", "call_id": "a", "name": "now"},
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": {"at": 12}},
    ]
    done = openai_responses.repair([{"role": "user", "content": "hi"}, *calls])
    assert [item["arguments"] for item in done.messages[1:]] == ["{}", '{"at": 12}']
    assert {problem.rule for problem in done.remaining} == {"pending-call"}


def test_what_is_said_of_results_without_a_call() -> None:
    """A result before its call is reported as without a call; a second result is reported as already answered."""
    output = {"type": "function_call_output", "call_id": "a", "output": "noon"}
    call = {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"}
    assert [problem.message for problem in openai_responses.validate([output])] == ["no open call 'a' is before it"]
    twice = [problem.message for problem in openai_responses.validate([call, output, output])]
    assert twice == ["the call 'a' is answered already"]


USER = {"role": "user", "content": "hi"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
ASKED = {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"}


@pytest.mark.parametrize(
    ("format", "messages", "left", "done"),
    [
        (openai_chat, [USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], [USER], ["the message was removed"]),
        (
            anthropic,
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}, {"type": "text", "text": "hi"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            ["the result was removed"],
        ),
        (openai_responses, [{"type": "computer_call", "call_id": "c1"}, USER], [USER], ["the call was removed"]),
        (
            openai_responses,
            [ASKED, OUTPUT, ASKED, {"type": "function_call_output", "output": "one"}],
            [ASKED, OUTPUT, ASKED, {"type": "function_call_output", "output": "one", "call_id": "c1"}],
            ["it was given the id 'c1'"],
        ),
    ],
    ids=["a message", "a block", "a call that gets no stub", "an id that is used again"],
)
def test_the_report_says_what_was_done(
    format: MessageFormat, messages: list[dict[str, Any]], left: list[dict[str, Any]], done: list[str]
) -> None:
    """Each change of a repair reports what was done, such as a removed message or a new id."""
    repaired = format.repair(messages)
    assert (repaired.messages, [change.remedy for change in repaired.changes]) == (left, done)
