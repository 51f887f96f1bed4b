"""A repair by the rules: what moves keeps its order, and what is removed takes nothing else with it."""

from __future__ import annotations

from typing import Any

from compaction.formats import anthropic, bedrock, gemini, openai_chat, openai_responses

Raw = dict[str, Any]


def test_late_results_keep_the_order_of_their_calls() -> None:
    """Gemini pairs by name: the first response that came late answers the first call of that name."""
    calls = [{"functionCall": {"name": "look", "args": {"n": n}}} for n in range(3)]
    responses = [{"functionResponse": {"name": "look", "response": {"result": str(n)}}} for n in range(3)]
    said = {"role": "user", "parts": [{"text": "hi"}]}
    done = gemini.repair([said, {"role": "model", "parts": calls}, said, {"role": "user", "parts": responses}])
    assert done.messages == [said, {"role": "model", "parts": calls}, {"role": "user", "parts": responses}, said]
    assert [change.where for change in done.changes] == [f"messages[3].parts[{n}]" for n in range(3)]


def test_every_call_of_one_id_gets_its_own_result() -> None:
    """The results stand in the order of the calls."""
    calls = [{"type": "tool_use", "id": "a", "name": "now", "input": {"n": n}} for n in range(50)]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": str(n)} for n in range(50)]
    done = anthropic.repair([{"role": "assistant", "content": calls}, {"role": "user", "content": results}])
    ids = {call["id"]: call["input"]["n"] for call in done.messages[0]["content"]}
    assert len(ids) == 50
    assert [ids[result["tool_use_id"]] for result in done.messages[1]["content"]] == list(range(50))
    assert (done.messages[1]["content"][-1]["content"], done.remaining) == ("49", ())


def test_a_late_result_follows_a_call_with_a_new_id() -> None:
    """The id that the API refuses is replaced in both, however far apart they stand."""
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
    """The block after it stays as it is, caller and all."""
    lost = {"type": "mcp_tool_result", "tool_use_id": "gone", "content": [], "caller": {"tool_id": "gone"}}
    words = {"type": "text", "text": "Noon."}
    done = anthropic.repair([{"role": "user", "content": "When?"}, {"role": "assistant", "content": [lost, words]}])
    assert done.messages[1] == {"role": "assistant", "content": [words]}
    assert done.messages[1]["content"][0] is words
    assert [change.rule for change in done.changes] == ["server-result-without-call"]


def test_only_the_last_cache_points_stay() -> None:
    """The oldest go, two of one message too."""
    point = {"cachePoint": {"type": "default"}}
    first = {"role": "user", "content": [{"text": "a"}, point, {"text": "b"}, point, {"text": "c"}, point]}
    rest = [{"role": role, "content": [{"text": "d"}, point]} for role in ("assistant", "user", "assistant")]
    done = bedrock.repair([first, *rest])
    assert done.messages == [{"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}, point]}, *rest]
    assert [change.where for change in done.changes] == ["messages[0].content[1]", "messages[0].content[3]"]


def test_what_cannot_be_joined_stays() -> None:
    """Two messages of one role, of which one has a content that is not understood."""
    said, odd = {"role": "user", "content": [{"text": "hi"}]}, {"role": "user", "content": 5}
    done = bedrock.repair([said, odd])
    assert (done.messages, done.changes) == ([said, odd], ())
    assert [problem.rule for problem in done.remaining] == ["malformed-content", "same-role-twice"]


def test_a_late_result_of_a_legacy_function_goes() -> None:
    """A function call needs no result, so it does not wait for one."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
    late = [call, {"role": "user", "content": "hi"}, {"role": "function", "name": "now", "content": "noon"}]
    assert openai_chat.repair(late).messages == late[:2]


def test_arguments_of_an_item_become_text() -> None:
    """Missing ones are none; others are written as JSON."""
    calls: list[Raw] = [
        {"type": "function_call", "call_id": "a", "name": "now"},
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": {"at": 12}},
    ]
    done = openai_responses.repair([{"role": "user", "content": "hi"}, *calls])
    assert [item["arguments"] for item in done.messages[1:]] == ["{}", '{"at": 12}']
    assert {problem.rule for problem in done.remaining} == {"pending-call"}


def test_what_is_said_of_results_without_a_call() -> None:
    """Where a result may come later, the call need not stand directly before it; an answered call is named as one."""
    output = {"type": "function_call_output", "call_id": "a", "output": "noon"}
    call = {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"}
    assert [problem.message for problem in openai_responses.validate([output])] == ["no open call 'a' stands before it"]
    twice = [problem.message for problem in openai_responses.validate([call, output, output])]
    assert twice == ["the call 'a' is answered already"]
