"""An edit is refused if the provider would not accept its messages, or the neighbours that it creates."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from compaction import Drop, MessageIndex, Replace, Rewrite, Together, validate
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.index.joins import opening
from compaction.index.replacements import neighbours
from compaction.messages import OtherPart, ToolResultPart
from tests.support.letters import Letters

Raw: TypeAlias = dict[str, Any]
Chat: TypeAlias = list[Raw]

FORMATS = (openai_chat, openai_responses, anthropic, gemini, bedrock)
each_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])

LONG = "word " * 40 + "."


def said(format: MessageFormat, role: str, text: str = LONG) -> Raw:
    raw: Raw = format.new(role, text).raw
    return raw


USED: Chat = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]},
]
"""A call and its result, as Anthropic writes them."""


def thought(text: str = "so") -> Raw:
    signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    return {"role": "assistant", "content": [signed, {"type": "text", "text": text}]}


def index_of(messages: Chat, format: MessageFormat) -> MessageIndex:
    assert validate(messages, format=format) == []
    return MessageIndex(messages, counter="chars/4", format=format)


class TestBroughtIn:
    """A replacement must be a valid message of the format with content, and without calls, results or ids."""

    @each_format
    @pytest.mark.parametrize("text", ["", " ", "\n"])
    def test_nothing_said(self, format: MessageFormat, text: str) -> None:
        index = index_of([said(format, "user"), said(format, "assistant"), said(format, "user")], format)
        assert not index.apply(Replace([0, 1], [format.new("user", text)]))
        assert [refusal.rule for refusal in index.refused] == ["the message is empty"]

    @each_format
    def test_a_message_of_another_format(self, format: MessageFormat) -> None:
        messages = [said(format, "user"), said(format, "assistant"), said(format, "user")]
        for other in FORMATS:
            index = index_of(messages, format)
            assert index.apply(Replace(1, [other.new("assistant", "so far")])) == (other is format)
            rule = f"a message of the format {other.name} is not allowed in a conversation of {format.name}"
            assert [refusal.rule for refusal in index.refused] == ([] if other is format else [rule])
            rewritten = index_of(messages, format)
            assert rewritten.apply(Rewrite(1, [other.new("assistant", "short")])) == (other is format)

    @pytest.mark.parametrize(
        ("format", "raw"),
        [
            (openai_responses, {"type": "reasoning", "summary": []}),
            (openai_responses, {"type": "web_search_call", "status": "completed"}),
            (
                anthropic,
                {"role": "assistant", "content": [{"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}]},
            ),
            (anthropic, thought()),
        ],
        ids=["reasoning", "a search", "what a search found", "thoughts"],
    )
    def test_what_belongs_to_other_messages(self, format: MessageFormat, raw: Raw) -> None:
        index = index_of([said(format, "user"), said(format, "assistant"), said(format, "user")], format)
        assert not index.apply(Replace([0, 1], [format.read(raw)]))
        assert [refusal.rule for refusal in index.refused] == ["a replacement must contain only text and media"]

    def test_an_item_with_an_id(self) -> None:
        """Its id would be there twice, if the item itself still is."""
        known = {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "so"}]}
        asked, answer = said(openai_responses, "user"), said(openai_responses, "assistant")
        index = index_of([asked, answer, dict(asked), known, dict(asked)], openai_responses)
        assert not index.apply(Replace(0, [openai_responses.read(dict(known))]))
        assert not index.apply(Rewrite(1, [openai_responses.read(dict(known))]))
        assert [refusal.rule for refusal in index.refused] == [
            "a replacement must not have an id, which would name a message of the host or the provider",
            "a rewrite must keep the ids of messages",
        ]
        assert index.apply(Rewrite(3, [index.group(3).messages[0].evolve(text="s")]))


class TestRewritten:
    """A rewrite breaks no rule that the message did not break before."""

    @pytest.mark.parametrize(("text", "rule"), [("", "empty-content"), (" ", "empty-text")])
    @pytest.mark.parametrize("id", [0, 1])
    def test_to_nothing(self, id: int, text: str, rule: str) -> None:
        index = index_of([said(anthropic, role) for role in ("user", "assistant", "user")], anthropic)
        assert not index.apply(Rewrite(id, [index.group(id).messages[0].evolve(text=text)]))
        assert [refusal.rule[-len(rule) - 1 : -1] for refusal in index.refused] == [rule]

    def test_a_result_may_become_empty(self) -> None:
        index = index_of([said(anthropic, "user"), *USED, said(anthropic, "user")], anthropic)
        call, result = index.group(1).messages
        assert index.apply(Rewrite(1, [call, result.evolve(parts=[ToolResultPart("t", "")])]))
        assert validate(index.messages(), format=anthropic) == []

    def test_what_was_wrong_may_stay_wrong(self) -> None:
        messages = [{"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": LONG}]}]
        index = MessageIndex([*messages, said(anthropic, "user")], counter="chars/4", format=anthropic)
        blank, words = index.group(0).messages[0].parts
        assert index.apply(Rewrite(0, [index.group(0).messages[0].evolve(parts=[blank, words.__class__("short")])]))  # type: ignore[call-arg]
        assert [problem.rule for problem in validate(index.messages(), format=anthropic)] == ["empty-text"]

    def test_the_calls_of_a_program_keep_their_program(self) -> None:
        """The call that a server's tool makes needs that tool before it."""
        run = {"type": "server_tool_use", "id": "srv", "name": "code_execution", "input": {}}
        made = {"type": "code_execution_20250825", "tool_id": "srv"}
        ran = {"type": "code_execution_tool_result", "tool_use_id": "srv", "content": {"type": "code_execution_result"}}
        use = {"type": "tool_use", "id": "t", "name": "look", "input": {}, "caller": made}
        first, second = {"content": [run, use]}, {"content": [ran, {"type": "text", "text": "so"}]}
        answers: Chat = [{"role": "assistant", **first}, USED[1], {"role": "assistant", **second}]
        index = index_of([said(anthropic, "user"), *answers, said(anthropic, "user")], anthropic)
        call, *rest = index.group(1).messages
        without = call.evolve(parts=[part for part in call.parts if not isinstance(part, OtherPart)])
        assert not index.apply(Rewrite(1, [without, *rest]))
        assert [refusal.rule for refusal in index.refused] == ["a rewrite must keep the calls that the provider runs itself"]

    def test_the_signed_call_stays_first(self) -> None:
        """Gemini tells calls of one name by their order alone."""
        calls = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(2)]
        results = [{"functionResponse": {"name": "f", "response": {"n": n}}} for n in range(2)]
        asked: Raw = {"role": "model", "parts": [{**calls[0], "thoughtSignature": "c2ln"}, calls[1]]}
        found: Raw = {"role": "user", "parts": results}
        index = index_of([said(gemini, "user"), asked, found, said(gemini, "assistant")], gemini)
        call, result = index.group(1).messages
        assert not index.apply(Rewrite(1, [call.evolve(parts=call.parts[::-1]), result]))
        assert [refusal.rule for refusal in index.refused] == ["a rewrite must keep the order of calls"]

    def test_an_empty_message_stays_empty(self) -> None:
        """An empty message given text might end an answer that the provider continues after it."""
        messages: Chat = [said(anthropic, "user"), {"role": "user", "content": None}, said(anthropic, "user")]
        index = MessageIndex(messages, counter="chars/4", format=anthropic)
        assert not index.apply(Together(Drop(0), Rewrite(1, [anthropic.new("user", "short")])))
        assert [refusal.rule for refusal in index.refused] == ["a rewrite must not add text to an empty message"]


class TestNeighbours:
    """Judged when the whole edit is applied; the two messages of a summary with its content."""

    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_an_instruction_behind_words_does_not_lead(self, role: str) -> None:
        """The instruction comes after a summary at the start of the list, so an answer has to follow it."""
        index = index_of([said(anthropic, "user")] * 4, anthropic)
        assert not index.apply(Replace([0, 1], [anthropic.new(role, "so far"), anthropic.new("system", "be brief")]))
        [refusal] = index.refused
        assert "[misplaced-system]" in refusal.rule
        assert index.edits == ()

    def test_what_stands_behind_a_summary_of_two(self) -> None:
        """An answer of the view follows the instruction, not the start of the list."""
        roles = ("user", "assistant", "user", "assistant", "user")
        index = index_of([said(anthropic, role) for role in roles], anthropic)
        assert index.apply(Replace([0], [anthropic.new("user", "so far"), anthropic.new("system", "be brief")]))
        assert list(index.steps([1, 2])) == [[1, 2]]
        before, after = neighbours(index.columns, {1})
        assert (before and before.role, after and after.role) == ("system", "user")


OPENED_BY_THE_USER = Letters({("", "a"): ("not-opened", "after"), ("s", "u"): ("not-answered", "before")})
ASKED, INSTRUCTION, ANSWER = ({"role": role, "text": role} for role in ("user", "system", "assistant"))


class TestInstructionsThatComeToLead:
    """The message after the leading instructions opens the list, also if a message before them leaves or comes back."""

    @pytest.mark.parametrize("instructions", [1, 2])
    def test_the_message_after_them_is_judged_as_the_first(self, instructions: int) -> None:
        index = index_of([ASKED, *[INSTRUCTION] * instructions, ANSWER, ASKED], OPENED_BY_THE_USER)
        assert not index.apply(Drop(0))
        groups = f"group {instructions} or group {instructions + 1}"
        rule = f"the provider would reject the rest of the view [not-opened]: {groups} would have to be dropped, too"
        assert [refusal.rule for refusal in index.refused] == [rule]
        assert index.apply(Together(Drop(0), Drop(instructions + 1)))


@pytest.mark.parametrize(("roles", "first"), [("u", "u"), ("ua", "u"), ("ss", "a")])
def test_the_message_that_opens_a_view(roles: str, first: str) -> None:
    index = MessageIndex([said(openai_chat, "user"), said(openai_chat, "assistant", "a"), said(openai_chat, "user", "z")])
    names = {"s": "system", "u": "user", "a": "assistant"}
    assert index.apply(Replace(0, [openai_chat.new(names[role], role) for role in roles]))
    place = opening(index.columns)
    assert place is not None
    assert index.columns.at(place, end=False).text == first


def test_a_group_that_a_rewound_list_brings_back_has_its_joins_judged() -> None:
    """After a rewind a late result restores its call; an edit that leaves the call first in the view is undone."""
    call = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t0", "name": "look", "input": {}}}]}
    asked = [{"role": "user", "content": [{"text": text}]} for text in ("look", "and now?")]
    answer = {"role": "assistant", "content": [{"text": "a moment"}]}
    result = {"role": "user", "content": [{"toolResult": {"toolUseId": "t0", "content": [{"text": "ok"}]}}]}
    index = MessageIndex([asked[0], call, asked[1], answer], counter="chars/4", format="bedrock")
    assert index.apply(Drop([0, 1], "old"))
    index.sync([asked[1], result])
    assert not {each.rule for each in bedrock.validate(index.messages())} & {"starts-with-answer"}
