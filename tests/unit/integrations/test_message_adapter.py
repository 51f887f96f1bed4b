"""The base of the frameworks' formats, with LangChain's, which reads any objects with the fields of its messages."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from compaction import Message, MessageIndex
from compaction.formats import media_kind
from compaction.integrations.agent_framework import agent_framework
from compaction.integrations.langchain import langchain
from compaction.integrations.pydantic_ai import pydantic_ai


class Said(SimpleNamespace):
    """A message of LangChain."""

    def model_copy(self, update: dict[str, Any]) -> Said:
        return Said(**{**self.__dict__, **update})


def user(text: str = "and?", **fields: Any) -> Said:
    return Said(type="human", content=text, **fields)


def answer(text: str = "", *calls: str) -> Said:
    return Said(type="ai", content=text, tool_calls=[{"name": "look_up", "args": {}, "id": id} for id in calls])


def result(id: str) -> Said:
    return Said(type="tool", content="18", tool_call_id=id)


def test_a_format_is_one_object() -> None:
    """Unpickling returns the same object, and its ``repr`` is its name."""
    for format, name in ((langchain, "langchain"), (agent_framework, "agent_framework"), (pydantic_ai, "pydantic_ai")):
        assert repr(format) == name
        assert pickle.loads(pickle.dumps(format)) is format


def test_the_same_messages() -> None:
    """Messages that a framework made again are the same if the compared fields are; other fields do not count."""
    known = [user("hi", id="1"), answer("", "c1"), result("c1")]
    again = [user("hi", id="1", response_metadata={}), answer("", "c1"), result("c1")]
    assert [langchain.key(raw) for raw in known] == [langchain.key(raw) for raw in again]
    assert langchain.key(known[0]) != langchain.key(user("hi", id="2"))
    for given, prefix in (
        (known, 3),
        (again, 3),
        ([*again, user()], 3),
        (again[:2], 2),
        ([], 0),
        ([*again[:2], user()], 2),
        ([again[0], answer("", "c2"), again[2]], 1),
        ([user("hi", id="2"), *again[1:]], 0),
        ([user("ho", id="1"), *again[1:]], 0),
        ([Said(type="ai", content="ho", id="2", tool_calls=[{}])], 0),
        ([Said(type="system", content="hi", id="1"), *again[1:]], 0),
    ):
        assert langchain.common_prefix(known, given) == langchain.common_prefix(given, known) == prefix


def test_problems_are_at_the_frameworks_messages() -> None:
    """A message with several results is validated as several chat messages, and a problem names its own place."""
    both = SimpleNamespace(
        role="tool", contents=[function_result("c1"), function_result("gone")], additional_properties={}, author_name=None
    )
    call = SimpleNamespace(role="assistant", contents=[function_call("c1")])
    said = SimpleNamespace(role="user", contents=[SimpleNamespace(type="text", text="hi")])
    [problem] = agent_framework.validate([said, call, both])
    assert (problem.where, problem.rule) == ("messages[2]", "result-without-call")
    assert agent_framework.validate([said, call, SimpleNamespace(role="tool", contents=[function_result("c1")])]) == []
    [waits] = langchain.validate([user(), answer("", "c1", "messages[9]"), result("c1")])
    assert (waits.where, "'messages[9]'" in waits.message) == ("messages[1].tool_calls[1]", True)


def function_call(id: str, **fields: Any) -> Any:
    return content("function_call", id, **fields)


def function_result(id: str) -> Any:
    return content("function_result", id)


def content(kind: str, id: str, **fields: Any) -> Any:
    return SimpleNamespace(
        **{"type": kind, "call_id": id, "items": None, "result": "18", "hosted": False, "informational_only": False}
        | {"arguments": None, "name": "", "tool_name": None}
        | fields
    )


def test_repair() -> None:
    """Calls and results without a counterpart leave; a message of which nothing is left leaves too, any other one stays."""
    asked, waits = user(), answer("", "c9")
    given = [asked, answer("yes", "c1", "c2"), result("c1"), result("gone"), answer("", "c3"), user("", id="5"), waits]
    done = langchain.repair(given)
    assert [message.type for message in done.messages] == ["human", "ai", "tool", "human", "ai"]
    assert [call["id"] for call in done.messages[1].tool_calls] == ["c1"]
    assert [done.messages[0] is asked, done.messages[3] is given[5], done.messages[4] is waits] == [True] * 3
    assert [(change.where, change.rule, change.remedy) for change in done.changes] == [
        ("messages[1]", "call-without-result", "the call was removed"),
        ("messages[3]", "result-without-call", "the result was removed"),
        ("messages[4]", "call-without-result", "the call was removed"),
    ]
    assert [problem.rule for problem in done.remaining] == [problem.rule for problem in langchain.validate(done.messages)]
    twice = langchain.repair([user(), answer("", "c1"), result("c1"), result("c1")])
    assert ([change.rule for change in twice.changes], len(twice.messages)) == (["duplicate-result"], 3)
    both = [user(), answer("", "c1", "c1"), result("c1"), result("c1")]
    late = [user(), answer("", "c1"), user(), result("c1")]
    assert [langchain.repair(each).messages for each in (both, late)] == [both, late]


def test_what_may_follow_what() -> None:
    """A call follows a user or a result, never nothing or an answer; an answer does so only if it must."""
    asked, said, called, rules = (langchain.read(raw) for raw in (user(), answer("a"), answer("", "c"), rule()))
    found = [langchain.join_problem(before, called) for before in (None, said, asked, rules)]
    assert found == [("misplaced-call", "after")] * 2 + [None] * 2
    assert [langchain.join_problem(None, after) for after in (None, asked, said)] == [None] * 3
    assert [langchain.prefers(before, said) for before in (None, said, rules, asked)] == [False, False, False, True]
    assert [langchain.prefers(None, after) for after in (None, asked)] == [True, True]
    assert langchain.summary_role(said, asked) == "user"


def rule() -> Said:
    return Said(type="system", content="be brief")


def test_a_placeholder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(langchain), "new", lambda self, role, text: Message(role, (), text, self))
    [made] = langchain.placeholder("earlier messages")
    assert (made.role, made.raw) == ("user", "earlier messages")


def test_what_a_client_would_send() -> None:
    """Nameless calls, missing arguments and contents without words are valid chat messages."""
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    asked = Said(type="human", content=[picture])
    calls = Said(type="ai", content="", tool_calls=[{"name": None, "args": None, "id": "c1"}])
    assert langchain.validate([asked, calls, result("c1"), answer("yes")]) == []
    beside = SimpleNamespace(
        role="user", contents=[SimpleNamespace(type="text", text="and?"), function_result("c1")], additional_properties={}
    )
    call = SimpleNamespace(role="assistant", contents=[function_call("c1")])
    said = SimpleNamespace(role="user", contents=[SimpleNamespace(type="text", text="hi")])
    assert agent_framework.validate([said, call, beside]) == []
    assert len(MessageIndex([said, call, beside], format=agent_framework, counter="chars/4").included_groups) == 2


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("image/png", "image"),
        ("audio/mpeg", "audio"),
        ("video/mp4", "video"),
        ("text/plain", "file"),
        ("", "file"),
        (None, "file"),
    ],
)
def test_kinds_of_media(type: str | None, kind: str) -> None:
    """A media type gives the kind that decides how it counts."""
    assert media_kind(type) == kind
