"""The examples of every format: broken rules, and what is read, written and repaired."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import MessageFormat, anthropic, openai_chat, openai_responses
from compaction.messages import Part, TextPart, ToolResultPart
from tests.formats.anthropic import examples as claude
from tests.formats.openai_chat.examples import USER
from tests.formats.openai_responses import examples as responses
from tests.support.rulebook import Change, Raw, cases, changed


@pytest.mark.parametrize(("format", "messages"), cases("VALID"))
def test_what_an_api_takes_is_no_problem(format: MessageFormat, messages: list[Any]) -> None:
    assert format.validate(messages) == []


@pytest.mark.parametrize(("format", "messages", "expected"), cases("FAULTS"))
def test_every_fault_has_its_place(format: MessageFormat, messages: list[Any], expected: str) -> None:
    found = [f"{problem.where.removeprefix('messages')} {problem.rule}" for problem in format.validate(messages)]
    assert ", ".join(found) == expected


@pytest.mark.parametrize(("format", "raw", "where"), cases("NO_MESSAGES"))
def test_what_is_no_message_is_refused(format: MessageFormat, raw: Any, where: str) -> None:
    """A value that is not a message, or has no role or type, raises ``InvalidMessage``, and the error names its place."""
    with pytest.raises(InvalidMessage) as caught:
        format.read(raw, 3)
    assert caught.value.where == where


@pytest.mark.parametrize(("format", "role", "raw", "parts"), cases("READ"))
def test_what_is_read(format: MessageFormat, role: str, raw: Any, parts: list[Part]) -> None:
    """Each part is read as its kind, what nobody knows is kept whole, and ``raw`` is the caller's object."""
    message = format.read(raw)
    assert (message.role, list(message.parts)) == (role, parts)
    assert message.raw is raw
    assert message.text == "\n".join(part.text for part in parts if isinstance(part, TextPart | ToolResultPart))


@pytest.mark.parametrize(("format", "raw", "change", "written"), cases("CHANGED"))
def test_changed_parts(format: MessageFormat, raw: Raw, change: Change, written: Raw) -> None:
    """Changed and removed parts are written, everything else is kept and shared, and the original message is not changed."""
    before = copy.deepcopy(raw)
    message = changed(format.read(raw), change)
    assert message.raw == written
    assert raw == before
    assert format.read(written).parts == message.parts
    assert all(message.raw[name] is value for name, value in raw.items() if message.raw.get(name) == value)
    for old, new in ((raw.get(name), message.raw.get(name)) for name in ("content", "parts", "tool_calls")):
        if isinstance(old, list) and isinstance(new, list):
            assert all(any(each is other for other in old) for each in new if each in old)


@pytest.mark.parametrize(("format", "raw", "parts"), cases("UNWRITABLE"))
def test_what_cannot_be_written_is_refused(format: MessageFormat, raw: Raw, parts: list[Part]) -> None:
    """A ``ConfigurationError`` is raised for parts that cannot be written: new thoughts, new media, unfit arguments."""
    with pytest.raises(ConfigurationError, match="parts: "):
        format.read(raw).evolve(parts=parts)


@pytest.mark.parametrize(("format", "messages", "repaired"), cases("REPAIRED"))
def test_repair(format: MessageFormat, messages: list[Any], repaired: list[Any]) -> None:
    done = format.repair(messages)
    assert done.messages == repaired
    assert {problem.rule for problem in done.remaining} <= {"pending-call"}
    assert bool(done.changes) == (messages != repaired)


@pytest.mark.parametrize(
    ("format", "messages", "text"),
    [
        (openai_chat, [None], "a message is an object with a role (got null)"),
        (openai_chat, [7], "a message is an object with a role (got int)"),
        (openai_chat, [{"role": "assistant", "content": "", "tool_calls": {}}], "calls are a list (got dict)"),
        (openai_chat, [{"role": "assistant", "content": "", "tool_calls": []}], "the list of calls is empty"),
        (anthropic, [claude.answer(claude.call())], "the call 'a' has no result yet"),
        (anthropic, [claude.answer(claude.call()), USER], "the call 'a' has no result directly after it"),
        (openai_responses, [responses.call()], "the call 'a' has no result yet"),
        (openai_responses, [responses.call(), USER], "the call 'a' has no result"),
    ],
)
def test_a_problem_names_what_it_got(format: MessageFormat, messages: list[Any], text: str) -> None:
    """A problem names the type of a wrong value, and says whether a missing result may still come."""
    assert [problem.message for problem in format.validate(messages)] == [text]


def test_a_problem_says_what_is_wrong_and_what_to_do() -> None:
    [problem] = openai_chat.validate([USER, {"role": "tool", "tool_call_id": "gone", "content": "noon"}])
    assert str(problem) == (
        "messages[1]: no open call 'gone' is directly before it [result-without-call]; "
        "put it directly after the assistant message that makes the call, or leave it out"
    )
