"""Reading Gemini contents into parts, and writing changed contents."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import gemini
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

Raw = dict[str, Any]

CALL: Raw = {"functionCall": {"id": "x", "name": "now", "args": {"é": 1}}, "thoughtSignature": "c2ln"}
RESPONSE: Raw = {"functionResponse": {"id": "x", "name": "now", "response": {"result": "noon"}}, "x": 1}
PICTURE: Raw = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
FILM: Raw = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a.mp4"}}


def user(*parts: Any) -> Raw:
    """Return a content of the user."""
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> Raw:
    """Return a content of the model."""
    return {"role": "model", "parts": list(parts)}


@pytest.mark.parametrize(
    ("raw", "role", "parts"),
    [
        pytest.param({"parts": [{"text": "hi"}]}, "user", [TextPart("hi")], id="no role"),
        pytest.param(
            model({"text": "hm", "thought": True}, {"text": "hi"}),
            "assistant",
            [ReasoningPart("hm"), TextPart("hi")],
            id="thoughts",
        ),
        pytest.param(model(CALL), "assistant", [ToolCallPart("function:now", "now", '{"é": 1}')], id="call"),
        pytest.param(user(RESPONSE), "tool", [ToolResultPart("function:now", "noon")], id="responses alone"),
        pytest.param(
            user(RESPONSE, {"text": "hi"}),
            "user",
            [ToolResultPart("function:now", "noon"), TextPart("hi")],
            id="responses and words",
        ),
        pytest.param(
            {"role": "function", "parts": [RESPONSE]}, "tool", [ToolResultPart("function:now", "noon")], id="older role"
        ),
        pytest.param(
            user({"functionResponse": {"name": "now", "response": {"hour": 12, "zone": "é"}, "parts": [PICTURE]}}),
            "tool",
            [ToolResultPart("function:now", '{"hour": 12, "zone": "é"}', (MediaPart("image", "", 4),))],
            id="a response of fields and a picture",
        ),
        pytest.param(user(PICTURE, FILM), "user", [MediaPart("image", "", 4), MediaPart("video")], id="media"),
        pytest.param(
            user({"inline_data": {"mime_type": "audio/wav", "data": b"abcd"}}),
            "user",
            [MediaPart("audio", "", 8)],
            id="snake case, bytes",
        ),
        pytest.param(
            {"role": "model", "parts": [{"function_call": {"name": "now", "args": {}}, "thought_signature": b"x"}]},
            "assistant",
            [ToolCallPart("function:now", "now", "{}")],
            id="snake case, call",
        ),
        pytest.param(
            model({"executableCode": {"code": "1"}}), "assistant", [OtherPart('{"executableCode": {"code": "1"}}')], id="code"
        ),
        pytest.param(user("hi", None), "user", [TextPart("hi"), OtherPart("null")], id="no parts"),
        pytest.param({"role": "user"}, "user", [], id="nothing"),
    ],
)
def test_what_is_read(raw: Raw, role: str, parts: list[Part]) -> None:
    """Each part is read as its kind, unknown parts are kept whole, and ``raw`` is the caller's object."""
    message = gemini.read(raw)
    assert (message.role, list(message.parts)) == (role, parts)
    assert message.raw is raw


@pytest.mark.parametrize(("raw", "where"), [("hi", "messages[3]"), ({"role": 5, "parts": []}, "messages[3].role")])
def test_what_is_no_content_is_refused(raw: Any, where: str) -> None:
    """A value that is not a content, or has an invalid role, raises ``InvalidMessage``, and the error names its place."""
    with pytest.raises(InvalidMessage) as caught:
        gemini.read(raw, 3)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("raw", "changes", "changed"),
    [
        pytest.param(user({"text": "hi", "x": 1}), {"text": "new"}, user({"text": "new", "x": 1}), id="text"),
        pytest.param(
            model(CALL),
            {"arguments": "{}"},
            model({**CALL, "functionCall": {"id": "x", "name": "now", "args": {}}}),
            id="arguments, still signed",
        ),
        pytest.param(
            user(RESPONSE),
            {"text": "new"},
            user({"functionResponse": {"id": "x", "name": "now", "response": {"result": "new"}}, "x": 1}),
            id="response",
        ),
        pytest.param(
            user({"functionResponse": {"name": "now", "response": {"hour": 12}}}),
            {"text": "new"},
            user({"functionResponse": {"name": "now", "response": {"result": "new"}}}),
            id="a response of fields",
        ),
        pytest.param(
            user({"function_response": {"name": "now", "response": {"output": "a"}}}),
            {"text": "new"},
            user({"function_response": {"name": "now", "response": {"output": "new"}}}),
            id="snake case",
        ),
        pytest.param(
            user({"functionResponse": {"name": "now", "response": {"result": "a"}, "parts": [PICTURE]}}),
            {"media": ()},
            user({"functionResponse": {"name": "now", "response": {"result": "a"}, "parts": []}}),
            id="picture out",
        ),
    ],
)
def test_changed_parts(raw: Raw, changes: Raw, changed: Raw) -> None:
    """Changes are written, every other field is kept, and the original content is not changed."""
    before = copy.deepcopy(raw)
    message = gemini.read(raw)
    assert message.evolve(parts=[attrs.evolve(message.parts[0], **changes)]).raw == changed
    assert raw == before


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        pytest.param(model({"text": "hm", "thought": True}), [ReasoningPart("other")], id="new thoughts"),
        pytest.param(user({"text": "hi"}), [MediaPart("image")], id="new picture"),
        pytest.param(model(CALL), [ToolCallPart("function:now", "now", "x", raw=CALL)], id="arguments that are no object"),
        pytest.param(user(RESPONSE), [ToolResultPart("function:date", "noon", raw=RESPONSE)], id="other call"),
        pytest.param(
            user(RESPONSE),
            [ToolResultPart("function:now", "noon", (MediaPart("image"),), raw=RESPONSE)],
            id="new picture in a response",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(raw: Raw, parts: list[Part]) -> None:
    """A ``ConfigurationError`` is raised for parts that cannot be written, such as new thoughts and new media."""
    with pytest.raises(ConfigurationError, match="parts: "):
        gemini.read(raw).evolve(parts=parts)


def test_new_contents() -> None:
    """A new content has Gemini's role: an assistant's is ``model``; placeholders and summaries are ``user``."""
    assert gemini.new("assistant", "hi").raw == model({"text": "hi"})
    assert gemini.new("user", "hi").raw == user({"text": "hi"})
    assert gemini.placeholder("hi")[0].raw == user({"text": "hi"})
    assert [each.role for each in gemini.summary("s", gemini.new("user", "x"), gemini.new("assistant", "x"))] == ["user"]


def test_joins() -> None:
    """A call may follow only the user or a response; other model contents may follow anything, but prefer the same places."""
    words = gemini.new("assistant", "x")
    asked, said, answered = gemini.new("user", "x"), gemini.read(model(CALL)), gemini.read(user(RESPONSE))
    before = (asked, answered, said, None)
    assert [gemini.follows(each, said) for each in before] == [True, True, False, False]
    assert [gemini.follows(each, words) for each in before] == [True, True, True, True]
    assert [gemini.prefers(each, words) for each in before] == [True, True, False, False]
    assert [gemini.prefers(each, asked) and gemini.follows(each, asked) for each in before] == [True, True, True, True]


def test_signed_thoughts_stay_in_the_current_turn() -> None:
    """Signed thoughts may not be removed in the current turn, but may in an earlier one; unsigned thoughts may in both."""
    signed = [gemini.read(model({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, CALL))]
    plain = [gemini.read(model({"text": "hm", "thought": True}, CALL))]
    bare = [message.evolve(parts=message.parts[1:]) for message in (*signed, *plain)]
    assert gemini.rewrite_problem(signed, bare[:1], current=True) is not None
    assert gemini.rewrite_problem(signed, bare[:1], current=False) is None
    assert gemini.rewrite_problem(plain, bare[1:], current=True) is None


def test_the_first_call_of_the_current_turn_stays_signed() -> None:
    """A signed call may not be exchanged for an unsigned one in the current turn, but may in an earlier one."""
    before = [gemini.read(model({**CALL, "thoughtSignature": "c2ln"}))]
    after = [gemini.read(model({"text": "so"}, {"functionCall": CALL["functionCall"]}))]
    assert gemini.rewrite_problem(before, after, current=True) is not None
    assert gemini.rewrite_problem(before, after, current=False) is None
    shorter = [gemini.read(model({"functionCall": CALL["functionCall"]}))]
    assert gemini.rewrite_problem(after, shorter, current=True) is None  # it was not signed before
