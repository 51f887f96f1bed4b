"""Examples of the Gemini format: what breaks a rule, what is read, written and repaired."""

from __future__ import annotations

from typing import Any, Final

from compaction.formats.pairing import NOT_RECORDED
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.rulebook import Change

Raw = dict[str, Any]


USER: Final[Raw] = {"role": "user", "parts": [{"text": "hi"}]}
SIGNED: Final[Raw] = {"thoughtSignature": "c2ln"}
CALL: Final[Raw] = {"functionCall": {"id": "x", "name": "now", "args": {"é": 1}}, "thoughtSignature": "c2ln"}
RESPONSE: Final[Raw] = {"functionResponse": {"id": "x", "name": "now", "response": {"result": "noon"}}, "x": 1}
PICTURE: Final[Raw] = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
FILM: Final[Raw] = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a.mp4"}}


def call(name: Any = "now", **fields: Any) -> Raw:
    return {"functionCall": {"name": name, "args": {}}, **fields}


def response(name: Any = "now", text: str = "noon") -> Raw:
    return {"functionResponse": {"name": name, "response": {"result": text}}}


def model(*parts: Any) -> Raw:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> Raw:
    return {"role": "user", "parts": list(parts)}


CALLED: Final[Raw] = model(call())
CALLED_SIGNED: Final[Raw] = model(call(**SIGNED))
ANSWERED: Final[Raw] = user(response())
STUB: Final[Raw] = user({"functionResponse": {"name": "now", "response": {"error": NOT_RECORDED}}})
CALL_ANEW: Final[Raw] = {**CALL, "functionCall": {"id": "x", "name": "now", "args": {}}}
RESPONSE_ANEW: Final[Raw] = {"functionResponse": {"id": "x", "name": "now", "response": {"result": "new"}}, "x": 1}
SNAKE_CALL: Final[Raw] = {"function_call": {"name": "now", "args": {}}, "thought_signature": b"x"}
BOTH: Final[Raw] = model(call(), call("date"))


def holding(value: Any) -> Raw:
    """Return a message with any value in it."""
    return {"role": "model", "parts": [{"functionCall": {"name": "now", "args": {"x": value}}}]}


SHOWN: Final[Raw | None] = user(PICTURE)
"""A user message that is an image and nothing else; ``None`` if the format has no images."""

VALID: Final[dict[str, list[Any]]] = {
    "roles that do not alternate": [USER, USER, model({"text": "hi"}), model({"text": "you"})],
    "two calls of one function": [USER, model(call(), call()), user(response(text="b"), response())],
    "words beside a response": [USER, CALLED, user(response(), {"text": "and now?"})],
    "older role": [USER, CALLED, {"role": "function", "parts": [response()]}, CALLED, ANSWERED],
    "snake case": [USER, model(SNAKE_CALL), user({"function_response": {"name": "now", "response": {}}})],
    "words before a response": [USER, CALLED, user({"text": "here"}, response())],
    "code": [USER, model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {}})],
    "an earlier turn is not signed": [USER, CALLED, ANSWERED, USER, CALLED_SIGNED, ANSWERED],
    "an earlier turn is not signed, and this one is answered": [
        USER,
        CALLED,
        ANSWERED,
        USER,
        CALLED_SIGNED,
        ANSWERED,
        model({"text": "so"}),
    ],
    "the turn is over": [USER, CALLED, ANSWERED, CALLED_SIGNED, ANSWERED, USER],
}
"""Unusual lists that break no rule."""

FAULTS: Final[dict[str, tuple[list[Any], str]]] = {
    "the wrong number of each": (
        [USER, BOTH, user(response("date"), response("date"))],
        "[1].parts[0] pending-call, [2].parts[1] result-without-call",
    ),
    "calls in two contents": (
        [USER, CALLED, ANSWERED, CALLED, CALLED, ANSWERED],
        "[3].parts[0] call-without-result, [4].parts[0] misplaced-call",
    ),
    "the signature on the second call": (
        [USER, model(call(**SIGNED), call()), user(response(), response()), model({"text": "a"}, call(), call(**SIGNED))],
        "[3].parts[1] unsigned-call, [3].parts[1] pending-call, [3].parts[2] pending-call",
    ),
    "the first call of the turn": ([USER, CALLED, ANSWERED, CALLED_SIGNED, ANSWERED], "[1].parts[0] unsigned-call"),
    "a turn that nobody began": (
        [CALLED, ANSWERED, CALLED_SIGNED, ANSWERED],
        "[0].parts[0] misplaced-call, [0].parts[0] unsigned-call",
    ),
    "the last call of an earlier turn": ([USER, CALLED, USER, CALLED_SIGNED, ANSWERED], "[1].parts[0] call-without-result"),
    "parts without what they hold": (
        [user({"text": ""}, {"text": 5}, {"inlineData": None}, {"functionResponse": {"response": {}}}), USER],
        (
            "[0].parts[0] empty-part, [0].parts[1].text malformed-part, [0].parts[2] empty-part, "
            "[0].parts[3].functionResponse malformed-part, [0].parts[3] result-without-call"
        ),
    ),
    "the user went on": ([USER, BOTH, user(response("date"), {"text": "and now?"})], "[1].parts[0] call-without-result"),
    "a second result of code": (
        [USER, model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {}}), model({"codeExecutionResult": {}})],
        "[2].parts[0] server-result-without-call",
    ),
    "a call of the user": ([model({"text": "hi"}), user(call()), USER], "[1].parts[0] part-not-allowed"),
    "an empty text beside a call": ([USER, model({**call(), "text": ""}), ANSWERED], "[1].parts[0] malformed-part"),
    "a text and a picture in one part": ([USER, model({"text": "see", **PICTURE})], "[1].parts[0] malformed-part"),
    "arguments that are not an object": (
        [USER, model({"functionCall": {"name": "now", "args": "{}"}})],
        "[1].parts[0].functionCall.args malformed-part, [1].parts[0] pending-call",
    ),
}
"""Lists with faults, and the place and rule of each."""

NO_MESSAGES: Final[dict[str, tuple[Any, str]]] = {
    "a text": ("hi", "messages[3]"),
    "a number as a role": ({"role": 5, "parts": []}, "messages[3].role"),
}
"""Values that are not messages, and the place that the error names."""

READ: Final[dict[str, dict[str, tuple[Any, list[Part]]]]] = {
    "user": {
        "no role": ({"parts": [{"text": "hi"}]}, [TextPart("hi")]),
        "responses and words": (user(RESPONSE, {"text": "hi"}), [ToolResultPart("function:now", "noon"), TextPart("hi")]),
        "media": (user(PICTURE, FILM), [MediaPart("image", "", 4), MediaPart("video")]),
        "snake case, bytes": (user({"inline_data": {"mime_type": "audio/wav", "data": b"abcd"}}), [MediaPart("audio", "", 8)]),
        "no parts": (user("hi", None), [TextPart("hi"), OtherPart("null")]),
        "nothing": ({"role": "user"}, []),
    },
    "assistant": {
        "thoughts": (model({"text": "hm", "thought": True}, {"text": "hi"}), [ReasoningPart("hm"), TextPart("hi")]),
        "call": (model(CALL), [ToolCallPart("function:now", "now", '{"é": 1}')]),
        "snake case, call": (model(SNAKE_CALL), [ToolCallPart("function:now", "now", "{}")]),
        "code": (model({"executableCode": {"code": "1"}}), [OtherPart('{"executableCode": {"code": "1"}}')]),
    },
    "tool": {
        "responses alone": (user(RESPONSE), [ToolResultPart("function:now", "noon")]),
        "older role": ({"role": "function", "parts": [RESPONSE]}, [ToolResultPart("function:now", "noon")]),
        "a response of fields and a picture": (
            user({"functionResponse": {"name": "now", "response": {"hour": 12, "zone": "é"}, "parts": [PICTURE]}}),
            [ToolResultPart("function:now", '{"hour": 12, "zone": "é"}', (MediaPart("image", "", 4),))],
        ),
    },
}
"""For each role, messages and their parts."""

CHANGED: Final[dict[str, tuple[Raw, Change, Raw]]] = {
    "text": (user({"text": "hi", "x": 1}), {"text": "new"}, user({"text": "new", "x": 1})),
    "arguments, still signed": (model(CALL), {"arguments": "{}"}, model(CALL_ANEW)),
    "response": (user(RESPONSE), {"text": "new"}, user(RESPONSE_ANEW)),
    "a response of fields": (
        user({"functionResponse": {"name": "now", "response": {"hour": 12}}}),
        {"text": "new"},
        user({"functionResponse": {"name": "now", "response": {"result": "new"}}}),
    ),
    "snake case": (
        user({"function_response": {"name": "now", "response": {"output": "a"}}}),
        {"text": "new"},
        user({"function_response": {"name": "now", "response": {"output": "new"}}}),
    ),
    "picture out": (
        user({"functionResponse": {"name": "now", "response": {"result": "a"}, "parts": [PICTURE]}}),
        {"media": ()},
        user({"functionResponse": {"name": "now", "response": {"result": "a"}, "parts": []}}),
    ),
}
"""A message, a change of its parts, and the changed message."""

UNWRITABLE: Final[dict[str, tuple[Raw, list[Part]]]] = {
    "new thoughts": (model({"text": "hm", "thought": True}), [ReasoningPart("other")]),
    "new picture": (user({"text": "hi"}), [MediaPart("image")]),
    "arguments that are not an object": (model(CALL), [ToolCallPart("function:now", "now", "x", raw=CALL)]),
    "other call": (user(RESPONSE), [ToolResultPart("function:date", "noon", raw=RESPONSE)]),
    "new picture in a response": (
        user(RESPONSE),
        [ToolResultPart("function:now", "noon", (MediaPart("image"),), raw=RESPONSE)],
    ),
}
"""Messages, and parts that cannot be written into them."""

REPAIRED: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "a stub among the responses": ([USER, CALLED, USER], [USER, CALLED, STUB, USER]),
    "a late response": ([USER, CALLED, USER, ANSWERED], [USER, CALLED, ANSWERED, USER]),
    "responses in two contents": (
        [USER, model(call(), call()), ANSWERED, ANSWERED],
        [USER, model(call(), call()), user(response(), response())],
    ),
    "a call after several words of the model": (
        [USER, model({"text": "0"}), model({"text": "1"}), CALLED],
        [USER, model({"text": "0"}, {"text": "1"}, call())],
    ),
    "a call that nothing precedes": ([CALLED, ANSWERED, USER], [USER]),
    "an empty part": ([USER, model({"text": ""}), USER], [USER, USER]),
}
"""Lists with faults, and what a repair makes of them."""
