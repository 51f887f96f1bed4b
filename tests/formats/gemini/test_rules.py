"""Gemini rules: each finds its faults and no others."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import gemini
from tests.support.rulebook import places

Raw = dict[str, Any]


USER: Raw = {"role": "user", "parts": [{"text": "hi"}]}
SIGNED: Raw = {"thoughtSignature": "c2ln"}


def call(name: Any = "now", **fields: Any) -> Raw:
    """Return a part that calls a function."""
    return {"functionCall": {"name": name, "args": {}}, **fields}


def response(name: Any = "now", text: str = "noon") -> Raw:
    """Return a part with a function's response."""
    return {"functionResponse": {"name": name, "response": {"result": text}}}


def model(*parts: Any) -> Raw:
    """Return a content of the model."""
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> Raw:
    """Return a content of the user."""
    return {"role": "user", "parts": list(parts)}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER, USER, model({"text": "hi"}), model({"text": "you"})], id="roles that do not alternate"),
        pytest.param([USER, model(call(), call()), user(response(text="b"), response())], id="two calls of one function"),
        pytest.param([USER, model(call()), user(response(), {"text": "and now?"})], id="words beside a response"),
        pytest.param(
            [USER, model(call()), {"role": "function", "parts": [response()]}, model(call()), user(response())], id="older role"
        ),
        pytest.param(
            [
                USER,
                {"role": "model", "parts": [{"function_call": {"name": "now"}, "thought_signature": b"x"}]},
                {"role": "user", "parts": [{"function_response": {"name": "now", "response": {}}}]},
            ],
            id="snake case",
        ),
        pytest.param([USER, model(call()), user({"text": "here"}, response())], id="words before a response"),
        pytest.param([USER, model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {}})], id="code"),
        pytest.param(
            [USER, model(call()), user(response()), USER, model(call(**SIGNED)), user(response())],
            id="an earlier turn is not signed",
        ),
        pytest.param(
            [USER, model(call()), user(response()), USER, model(call(**SIGNED)), user(response()), model({"text": "so"})],
            id="an earlier turn is not signed, and this one is answered",
        ),
        pytest.param(
            [USER, model(call()), user(response()), model(call(**SIGNED)), user(response()), USER], id="the turn is over"
        ),
    ],
)
def test_what_the_api_takes_is_no_problem(messages: list[Any]) -> None:
    """Unusual contents that the provider accepts break no rule."""
    assert places(gemini, messages) == []


def test_an_empty_text_beside_a_call_is_two_things() -> None:
    """A part with a call and an empty text is malformed: the API allows one kind of data in a part."""
    found = places(gemini, [USER, model({**call(), "text": ""}), user(response())])
    assert found == [("messages[1].parts[0]", "malformed-part")]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [USER, model(call(), call("date")), user(response("date"), response("date"))],
            [("messages[1].parts[0]", "pending-call"), ("messages[2].parts[1]", "result-without-call")],
            id="the wrong number of each",
        ),
        pytest.param(
            [USER, model(call()), user(response()), model(call()), model(call()), user(response())],
            [("messages[3].parts[0]", "call-without-result"), ("messages[4].parts[0]", "misplaced-call")],
            id="calls in two contents",
        ),
        pytest.param(
            [USER, model(call(**SIGNED), call()), user(response(), response()), model({"text": "a"}, call(), call(**SIGNED))],
            [
                ("messages[3].parts[1]", "unsigned-call"),
                ("messages[3].parts[1]", "pending-call"),
                ("messages[3].parts[2]", "pending-call"),
            ],
            id="the signature on the second call",
        ),
        pytest.param(
            [USER, model(call()), user(response()), model(call(**SIGNED)), user(response())],
            [("messages[1].parts[0]", "unsigned-call")],
            id="the first call of the turn",
        ),
        pytest.param(
            [model(call()), user(response()), model(call(**SIGNED)), user(response())],
            [("messages[0].parts[0]", "misplaced-call"), ("messages[0].parts[0]", "unsigned-call")],
            id="a turn that nobody began",
        ),
        pytest.param(
            [USER, model(call()), USER, model(call(**SIGNED)), user(response())],
            [("messages[1].parts[0]", "call-without-result")],
            id="the last call of an earlier turn",
        ),
        pytest.param(
            [user({"text": ""}, {"text": 5}, {"inlineData": None}, {"functionResponse": {"response": {}}}), USER],
            [
                ("messages[0].parts[0]", "empty-part"),
                ("messages[0].parts[1].text", "malformed-part"),
                ("messages[0].parts[2]", "empty-part"),
                ("messages[0].parts[3].functionResponse", "malformed-part"),
                ("messages[0].parts[3]", "result-without-call"),
            ],
            id="parts without what they hold",
        ),
        pytest.param(
            [USER, model(call(), call("date")), user(response("date"), {"text": "and now?"})],
            [("messages[1].parts[0]", "call-without-result")],
            id="the user went on",
        ),
        pytest.param(
            [model({"text": "hi"}), user(call()), USER], [("messages[1].parts[0]", "part-not-allowed")], id="a call of the user"
        ),
    ],
)
def test_every_fault_has_its_place(messages: list[Any], expected: list[tuple[str, str]]) -> None:
    """All faults of a list are found in one pass, each at its place."""
    assert places(gemini, messages) == expected


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"text": "see", "inlineData": {"mimeType": "image/png", "data": "AAAA"}}, ""),
        ({"functionCall": {"name": "now", "args": "{}"}}, ".functionCall.args"),
    ],
    ids=["two things", "arguments that are no object"],
)
def test_a_part_holds_one_thing_and_objects(part: dict[str, Any], place: str) -> None:
    """A part with two kinds of data, or with arguments that are not an object, is malformed."""
    hi = {"role": "user", "parts": [{"text": "hi"}]}
    problems = gemini.validate([hi, {"role": "model", "parts": [part]}])
    assert [(each.where, each.rule) for each in problems if each.rule != "pending-call"] == [
        (f"messages[1].parts[0]{place}", "malformed-part")
    ]
