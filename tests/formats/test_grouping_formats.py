"""Groups in every wire format: messages that a provider accepts only together are one group."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import Drop, GroupKind, MessageIndex, Rewrite
from compaction.formats import MessageFormat, anthropic, gemini, openai_responses
from compaction.selectors import last
from compaction.strategies import Clear, ClearReasoning, ToolResult
from compaction.strategies.base import Steps
from compaction.testing import check_strategy
from tests.formats.anthropic.examples import BY_RUN, FOUND, RAN, RUN, TEXT, THOUGHT, answer, result, user
from tests.formats.anthropic.examples import USER as ASKED
from tests.formats.anthropic.examples import call as use
from tests.formats.gemini import examples as google
from tests.formats.openai_responses import examples as responses
from tests.support.chats import indexed
from tests.support.wires import STRATEGIES, responses_conversations

Raw = dict[str, Any]

SAID: Raw = {"role": "assistant", "content": "hello"}


def call(*ids: str, thinks: bool = False) -> Raw:
    return answer(*[THOUGHT] * thinks, *map(use, ids))


def results(*ids: str, words: str = "", text: str = "found") -> Raw:
    """Return a user message with results, and with text beside them if given."""
    return user(*[result(id, text) for id in ids], *[{"type": "text", "text": words}] * bool(words))


def shapes(index: MessageIndex) -> list[tuple[GroupKind, int, int | None]]:
    """Return the kind, number of messages and turn of every group in the view."""
    return [(group.kind, len(group.messages), group.turn) for group in index.included_groups]


def edits(steps: Steps) -> list[Any]:
    """Return the edits of a strategy without applying them."""
    return [item for item in steps if isinstance(item, Drop | Rewrite)]


U, A, T = USER, ASSISTANT, TOOL_CALL = GroupKind.USER, GroupKind.ASSISTANT, GroupKind.TOOL_CALL


def test_a_group_after_words_beside_results() -> None:
    """A call without a result is open, but no longer pending, once the user wrote text beside other results.

    A message of text and a result without a call is an orphan group that starts a turn.
    """
    [_, group] = indexed([ASKED, call("a", "b"), results("a", words="never mind")], format=anthropic).included_groups
    assert (group.open, group.pending) == (True, False)
    [_, _, group] = indexed([ASKED, SAID, results("gone", words="hm")], format=anthropic).included_groups
    assert (group.kind, group.orphan, group.turn) == (TOOL_CALL, True, 2)


def test_the_last_words_are_protected_wherever_they_stand() -> None:
    """The last user message, and later text beside results, cannot be dropped; earlier text beside results can."""
    messages = [ASKED, call("a"), results("a", words="one"), call("b"), results("b", words="two"), SAID, call("c")]
    index = indexed(messages, format=anthropic)
    groups = index.included_groups
    assert [index.is_removable(group) for group in groups] == [False, True, False, True, False]
    assert index.apply(Drop(groups[2], "no")) is False
    assert index.refused[-1].rule == "the last user message must be kept"
    index = indexed([*messages[:3], SAID, ASKED, SAID], format=anthropic)  # a new user message ends that protection
    assert [index.is_removable(group) for group in index.included_groups] == [True, True, True, False, False]


def test_results_beside_words_can_be_cleared() -> None:
    """A rewrite shortens a result and keeps the user's text beside it, also in the last user message."""
    long = results("a", words="and now?", text="word " * 100)
    index = indexed([ASKED, call("a"), long, SAID], format=anthropic)
    [edit] = edits(ToolResult(Clear(), keep=last(groups=1))(index))
    assert index.apply(edit) is True
    [cleared, words] = index.messages()[2]["content"]
    assert cleared["content"] == Clear().placeholder
    assert words is long["content"][1]


def test_a_late_result_beside_words_brings_its_group_back() -> None:
    """A dropped call whose result comes late, beside user text, is shown again in the new turn; a rollback is exact."""
    index = indexed([ASKED, call("a"), ASKED, SAID], format=anthropic)
    assert index.apply(Drop([1], "old")) is True
    before = index.total
    index.append([results("a", words="at last")])
    assert index.group(1).turn == 3
    assert (index.included.turns, index.total.turns) == (3, before.turns + 1)
    index.rollback(0)
    assert index.included == index.total == indexed(list(index.source), format=anthropic).included


def test_thoughts_of_the_current_turn_stay() -> None:
    """Signed thinking of the current tool loop cannot be removed or changed; that of earlier turns can."""
    a, b, c = (call(id, thinks=True) for id in "abc")
    index = indexed([ASKED, a, results("a"), SAID, ASKED, b, results("b"), c], format=anthropic)
    tried = {edit.group: index.apply(edit) for edit in edits(ClearReasoning(keep=last(groups=1))(index))}
    assert tried == {1: True, 5: False}
    assert index.refused[-1].rule == "thoughts of the current turn stay as the provider signed them"


CALLED: Raw = responses.CALL
OTHER: Raw = {**CALLED, "id": "fc_2", "call_id": "b"}
OUTPUT, REASONING, ANSWER = responses.OUTPUT, responses.THOUGHT, {**responses.ANSWER, "id": "msg_1"}


SECOND = {**OUTPUT, "call_id": "b"}
ANSWERS: dict[str, tuple[list[Raw], list[int]]] = {
    "parallel calls": ([ASKED, REASONING, CALLED, OTHER, OUTPUT, SECOND, ANSWER], [1, 5, 1]),
    "reasoning and message": ([ASKED, REASONING, ANSWER, ASKED], [1, 2, 1]),
    "two steps": ([ASKED, REASONING, ANSWER, CALLED, OUTPUT, REASONING, OTHER, SECOND], [1, 4, 3]),
    "words after the call": ([ASKED, CALLED, ANSWER, OUTPUT, ANSWER], [1, 3, 1]),
    "calls that wait": ([ASKED, CALLED, OTHER], [1, 2]),
    "after a compaction item": ([{"type": "compaction", "encrypted_content": "x"}, REASONING, CALLED, OUTPUT], [1, 3]),
}


@pytest.mark.parametrize(("items", "sizes"), ANSWERS.values(), ids=ANSWERS)
def test_one_answer_is_one_group(items: list[Raw], sizes: list[int]) -> None:
    """In Responses, all items of one answer and the outputs of its calls are one group, and the next answer another."""
    index = indexed(items, format=openai_responses)
    assert [len(group.messages) for group in index.included_groups] == sizes
    assert index.included.tool_calls == sum(item.get("type") == "function_call" for item in items)
    for group in index.included_groups[1:]:
        assert (group.kind is TOOL_CALL) == (group.tool_calls > 0)


def test_parallel_calls_wait_together() -> None:
    """A group of calls that are separate items is pending until all of its calls are answered."""
    index = indexed([ASKED, CALLED, OTHER], format=openai_responses)
    for more, pending in ((None, True), (OUTPUT, True), (SECOND, False)):
        index.append([] if more is None else [more])
        assert [(group.pending, group.tool_calls) for group in index.included_groups] == [(False, 0), (pending, 2)]


def test_responses_pair_by_name_in_gemini() -> None:
    """Gemini calls and responses are paired by name and order, whatever ids they have, and are one group."""
    called = google.model(*[{"functionCall": {"name": "now", "id": str(n)}} for n in range(2)])
    answered = google.user(*[google.response(text=str(n)) for n in range(2)])
    index = indexed([google.USER, called, answered, called, answered], format=gemini)
    assert [(len(group.messages), group.open) for group in index.included_groups] == [(1, False), (2, False), (2, False)]


@given(responses_conversations(), st.data())
def test_reasoning_is_never_parted_from_its_items(items: list[Raw], data: st.DataObject) -> None:
    """Whatever groups are dropped, the items of one answer that carry ids stay with all of its reasoning, or go with it."""
    answers = answers_of(items)
    index = indexed(items, format=openai_responses)
    for group in index.included_groups:
        if index.is_removable(group) and data.draw(st.booleans()):
            index.apply(Drop(group, "drawn"))
    shown = {id(item) for item in index.messages()}
    assert [answer for answer in answers if 0 < len([item for item in answer if id(item) in shown]) < len(answer)] == []


def answers_of(items: list[Raw]) -> list[list[Raw]]:
    """Return the items of each answer with reasoning, up to the next output or message of another role."""
    answers: list[list[Raw]] = []
    going = False
    for item in items:
        kind = str(item.get("type", "message"))
        mine = kind == "reasoning" or kind.endswith("_call") or (kind == "message" and item["role"] == "assistant")
        if kind == "reasoning" and not going:
            answers.append([])
            going = True
        if going and mine:
            answers[-1].append(item)
        going = going and mine
    return answers


def test_results_of_two_groups_in_one_message_belong_to_the_first_of_them() -> None:
    """A message with results of two groups belongs to one of them; the other group's calls count as answered."""
    messages = [ASKED, call("a"), call("b"), results("b", "a"), SAID, ASKED, SAID]
    index = indexed(messages[:3], format=anthropic)
    assert [group.open for group in index.included_groups] == [False, True, True]
    index.append(messages[3:])
    for each in (index, indexed(messages, format=anthropic)):
        groups = [(group.id, group.open, len(group.messages)) for group in each.included_groups[:3]]
        assert groups == [(0, False, 1), (1, False, 1), (2, False, 2)]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=anthropic)


BY_PROGRAM: Raw = {"caller": {"type": "program", "caller_id": "p"}}


def item(kind: str, **fields: Any) -> Raw:
    return {"type": kind, **fields}


def called(id: str, **fields: Any) -> list[Raw]:
    made = item("function_call", call_id=id, name="look", arguments="{}", **fields)
    return [made, item("function_call_output", call_id=id, output="found", **fields)]


PROGRAM = [item("program", id="1", call_id="p"), *called("a", **BY_PROGRAM), *called("b", **BY_PROGRAM)]
APPROVAL = [item("mcp_approval_request", id="q"), item("mcp_approval_response", approval_request_id="q")]
LOOKUP = item("custom_tool_call", call_id="c", name="look", input="")


@pytest.mark.parametrize(
    "answer",
    [
        [*PROGRAM, item("program_output", call_id="p")],
        [*APPROVAL, item("mcp_call", approval_request_id="q")],
        [item("tool_search_call", call_id=None), item("tool_search_output", call_id=None), *called("a")],
        [item("local_shell_call", id="1", call_id="c"), item("local_shell_call_output", id="c")],
        [item("local_shell_call", id="1", call_id="c"), item("local_shell_call_output", id="2", call_id="c")],
        [item("shell_call", call_id="c"), item("shell_call_output", call_id="c")],
        [item("apply_patch_call", call_id="c"), item("apply_patch_call_output", call_id="c")],
        [item("computer_call", call_id="c"), item("computer_call_output", call_id="c")],
        [LOOKUP, item("custom_tool_call_output", call_id="c", output="")],
    ],
    ids=lambda answer: answer[0]["type"],
)
def test_every_kind_of_call_is_one_group_with_its_output(answer: list[Raw]) -> None:
    """Each kind of Responses call is one group with its output, also where a program continues after its calls' outputs."""
    index = indexed([ASKED, *answer, ASKED], format=openai_responses)
    assert openai_responses.validate([ASKED, *answer, ASKED]) == []
    assert shapes(index) == [(USER, 1, 1), (TOOL_CALL, len(answer), 1), (USER, 1, 2)]


def test_what_the_provider_searched_needs_no_call_id() -> None:
    """A tool search that the provider ran needs no ``call_id``: it is part of the answer and may follow reasoning."""
    thought = item("reasoning", id="rs", summary=[])
    assert openai_responses.validate([ASKED, thought, item("tool_search_output", tools=[], execution="server")]) == []
    assert openai_responses.repair([ASKED, item("tool_search_output", tools=[])]).changes == ()


SEARCH: Raw = {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}
SEARCHED: Raw = {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}
CODE: Raw = {"executableCode": {"language": "PYTHON", "code": "1"}}
OUTCOME: Raw = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
BY_CODE = [answer(RUN, use("a", **BY_RUN)), results("a"), answer(use("b", **BY_RUN))]
SEARCHING = [google.model(SEARCH, google.call()), google.user(google.response())]

ONE_GROUP: dict[str, tuple[MessageFormat, list[Raw], GroupKind]] = {
    "deferred": (anthropic, [answer(RUN, use("a")), results("a"), answer(RAN, TEXT)], TOOL_CALL),
    "deferred, thoughts first": (anthropic, [answer(RUN, use("a")), results("a"), answer(THOUGHT, RAN, TEXT)], TOOL_CALL),
    "called by code": (anthropic, [*BY_CODE, results("b"), answer(RAN, use("c")), results("c")], TOOL_CALL),
    "code of Gemini": (gemini, [google.model(CODE), google.model(OUTCOME, {"text": "one"})], ASSISTANT),
    "a search of Gemini": (gemini, [*SEARCHING, google.model(SEARCHED, {"text": "one"})], TOOL_CALL),
}


@pytest.mark.parametrize(("format", "resumed", "kind"), ONE_GROUP.values(), ids=ONE_GROUP)
def test_an_interrupted_answer_is_one_group_with_its_continuation(
    format: MessageFormat, resumed: list[Raw], kind: GroupKind
) -> None:
    """Also with the results of what the provider runs, and with the calls that its code made."""
    asked = google.USER if format is gemini else ASKED
    index = indexed([asked, *resumed, asked], format=format)
    assert format.validate([asked, *resumed, asked]) == []
    assert shapes(index) == [(USER, 1, 1), (kind, len(resumed), 1), (USER, 1, 2)]


REUSED: dict[str, tuple[MessageFormat, list[Raw]]] = {
    "a second result": (anthropic, [answer(RUN, RAN), ASKED, answer(RAN, TEXT)]),
    "a third result": (anthropic, [answer(RUN, use("a")), results("a"), answer(RAN), SAID, answer(RAN, RAN)]),
    "the id of a call that waits": (anthropic, [answer(RUN), answer(RUN), answer(RAN), SAID, answer(RAN)]),
    "two calls and one result": (anthropic, [answer(RUN, RUN, RAN, use("a")), results("a"), answer(RAN, TEXT)]),
    "the call of a call that ended": (anthropic, [answer(RUN, RAN), ASKED, answer(use("a", **BY_RUN)), results("a")]),
    "code of Gemini": (gemini, [google.model(CODE, OUTCOME), google.USER, google.model(OUTCOME, {"text": "one"})]),
}


@pytest.mark.parametrize(("format", "messages"), REUSED.values(), ids=REUSED)
def test_a_call_of_the_provider_that_ended_has_no_further_results(format: MessageFormat, messages: list[Raw]) -> None:
    """Dropping any group leaves no result or call without what it needs, except those that the list has already."""
    asked = google.USER if format is gemini else ASKED
    index = indexed([asked, *messages, asked], format=format)
    known = Counter(problem.rule for problem in format.validate(index.source))
    for group in index.included_groups[1:-1]:
        assert index.apply(Drop((group.id,)))
        assert Counter(problem.rule for problem in format.validate(index.messages())) - known == Counter()
        index.rollback()


WORDS = results("a", words="and now?")
REFERENCE = item("item_reference", id="fc_1")
UNKNOWN = [item("function_call_output", call_id=id, output="found") for id in ("a", "b")]
WORDED = [ASKED, call("a"), WORDS]
RESUMED = [ASKED, answer(RUN, use("a")), results("a"), SAID, answer(RAN), ASKED]
REFERRED = [ASKED, REFERENCE, ASKED, *called("a", **BY_PROGRAM), ASKED]
SHAPES: dict[str, tuple[MessageFormat, list[Raw], list[tuple[GroupKind, int, int]]]] = {
    "results join their call": (anthropic, [ASKED, call("a", "b"), results("b", "a"), SAID], [(U, 1, 1), (T, 2, 1), (A, 1, 1)]),
    "words beside results start a turn": (anthropic, [ASKED, call("a"), WORDS, SAID], [(U, 1, 1), (T, 2, 2), (A, 1, 2)]),
    "a turn is left once": (anthropic, [ASKED, call("a", "b"), WORDS, results("b")], [(U, 1, 1), (T, 3, 2)]),
    "nobody else speaks within an answer": (anthropic, [*WORDED, answer(FOUND, TEXT)], [(U, 1, 1), (T, 2, 2), (A, 1, 2)]),
    "thoughts and the answer that continues them are one group": (
        anthropic,
        [ASKED, answer(THOUGHT), answer(FOUND, TEXT), call("a"), results("a")],
        [(U, 1, 1), (A, 2, 1), (T, 2, 1)],
    ),
    "resumed whatever stands in between": (anthropic, RESUMED, [(U, 1, 1), (T, 3, 1), (A, 1, 1), (U, 1, 2)]),
    "outputs of what only the provider knows": (
        openai_responses,
        [ASKED, REFERENCE, *UNKNOWN, *called("c"), SAID, ASKED],
        [(U, 1, 1), (T, 3, 1), (T, 2, 1), (A, 1, 1), (U, 1, 2)],
    ),
    "perhaps a program's call": (openai_responses, REFERRED, [(U, 1, 1), (T, 3, 1), (U, 1, 2), (U, 1, 3)]),
}


@pytest.mark.parametrize(("format", "messages", "expected"), SHAPES.values(), ids=SHAPES)
def test_shapes(format: MessageFormat, messages: list[Raw], expected: list[tuple[GroupKind, int, int]]) -> None:
    """The groups and their turns, of valid and broken lists; in Responses all of them are valid."""
    index = indexed(messages, format=format)
    assert shapes(index) == expected
    assert index.included.turns == index.total.turns == expected[-1][2]
    assert format is anthropic or format.validate(messages) == []
