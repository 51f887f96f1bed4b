"""Examples of chat completions: what breaks a rule, what is read, written and repaired."""

from __future__ import annotations

from typing import Any, Final, Literal

from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function
from pydantic import BaseModel

from compaction.formats.pairing import NOT_RECORDED
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.rulebook import Change

Raw = dict[str, Any]

USER: Final[Raw] = {"role": "user", "content": "hi"}
CALL: Final[Raw] = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}, "x": 1}
CUSTOM: Final[Raw] = {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
ASKED: Final[Raw] = {"role": "assistant", "content": None, "tool_calls": [CALL, CUSTOM]}
IMAGE: Final[Raw] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
WORDS: Final[Raw] = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
RESULT: Final[Raw] = {"role": "tool", "tool_call_id": "a", "content": "noon", "name": "now"}
LEGACY: Final[Raw] = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}", "x": 1}}
OPAQUE: Final[Raw] = {"type": "reasoning.encrypted", "data": "x"}
BODY: Final = Function(name="now", arguments="{}")
OBJECT: Final = ChatCompletionMessageFunctionToolCall(id="a", type="function", function=BODY)
WHOLE: Final = ChatCompletionMessage(role="assistant", content=None, tool_calls=[OBJECT])


class Question(BaseModel):
    """A caller's message class, with defaults."""

    role: Literal["user"] = "user"
    content: str
    name: str | None = None


class Unserializable:
    """Has ``model_dump`` like a pydantic object, but is not one."""

    role = "user"

    def model_dump(self) -> dict[str, Any]:
        return {"role": self.role}


def user(content: Any) -> Raw:
    return {"role": "user", "content": content}


def part(type: str, **fields: Any) -> Raw:
    """A user message with one part."""
    return user([{"type": type, **fields}])


def assistant(**fields: Any) -> Raw:
    return {"role": "assistant", **fields}


def call(id: Any = "a", name: Any = "now", arguments: Any = "{}") -> Raw:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(*calls: Any, **fields: Any) -> Raw:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def answer(id: Any = "a", content: Any = "noon") -> Raw:
    return {"role": "tool", "tool_call_id": id, "content": content}


def got(content: Any) -> Raw:
    return {**RESULT, "content": content}


def legacy(content: Any = "noon") -> Raw:
    """The result of a legacy function."""
    return {"role": "function", "name": "now", "content": content}


def thinking(thought: Any, **fields: Any) -> Raw:
    return {"type": "thinking", "thinking": thought, **fields}


BRIEF: Final[Raw] = {"role": "system", "content": "be brief"}
NEW: Final[Raw] = {"type": "text", "text": "new"}
BOTH: Final[Raw] = asked(call("a"), call("b"))
NO_RESULT, NO_CALL = "[0].tool_calls[0] call-without-result", "[2] result-without-call"
CALL_ANEW: Final[Raw] = {**CALL, "function": {"name": "now", "arguments": "[]"}}
LEGACY_ANEW: Final[Raw] = {"name": "now", "arguments": "[]", "x": 1}


def holding(value: Any) -> Raw:
    """Return a message with any value in it."""
    return {"role": "assistant", "content": [{"type": "odd", "x": value}]}


SHOWN: Final[Raw | None] = user([IMAGE])
"""A user message that is an image and nothing else; ``None`` if the format has no images."""

VALID: Final[dict[str, list[Any]]] = {
    "assistant alone": [assistant(content="hi")],
    "no alternation": [USER, USER, BRIEF, USER],
    "arguments that are not JSON": [asked(call(arguments="{not json")), answer()],
    "empty arguments": [asked(call(arguments="")), answer()],
    "custom call": [asked({**CUSTOM, "id": "a"}), answer()],
    "call without type": [asked({"id": "a", "function": {"name": "now", "arguments": "{}"}}), answer()],
    "content and calls": [{**asked(call()), "content": "let me see"}, answer()],
    "null fields": [asked(call(), function_call=None, audio=None, refusal=None), answer()],
    "unknown and null fields on a user message": [{**USER, "tool_calls": None, "x_trace": 7}],
    "audio alone": [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
    "thinking part": [{"role": "assistant", "content": [thinking("hm")]}],
    "image in a result": [asked(call()), answer(content=[{"type": "text", "text": "noon"}, IMAGE])],
    "field on a part": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
    "tuples are lists": [{"role": "user", "content": ({"type": "text", "text": "hi"},)}],
    "tuple of calls": [{**asked(), "tool_calls": (call(),)}, answer()],
    "legacy call without a result": [LEGACY, USER],
    "calls that are not the assistant's": [{**USER, "tool_calls": [call(""), call("a"), call("a")]}, USER],
    "both kinds of calls": [{**asked(call()), **LEGACY, "tool_calls": [call()]}, answer()],
    "source for a body": [{"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}],
    "object of the openai package": [ChatCompletionMessage(role="assistant", content="hi")],
    "objects at every level": [WHOLE, answer()],
    "a call that is an object": [asked(OBJECT), answer()],
    "a body that is an object": [asked({"id": "a", "type": "function", "function": BODY}), answer()],
    "a text in place of the calls of a user": [{**USER, "tool_calls": "none of its business"}],
}
"""Unusual lists that break no rule."""

FAULTS: Final[dict[str, tuple[list[Any], str]]] = {
    "null": ([None], "[0] unreadable-message"),
    "empty object": ([{}], "[0].role missing-role"),
    "list as a role": ([{"role": ["user"], "content": "hi"}], "[0].role missing-role"),
    "content missing": ([{"role": "system"}], "[0].content no-content"),
    "null result": ([asked(call()), answer(content=None)], "[1].content no-content"),
    "number": ([{**USER, "content": 5}], "[0].content malformed-content"),
    "object": ([{**USER, "content": {"a": 1}}], "[0].content malformed-content"),
    "parts": (
        [{**USER, "content": [{"type": "text", "text": "hi"}, None, {"text": "hi"}, {"type": "text"}, {"type": "file"}]}],
        (
            "[0].content[1] malformed-part, [0].content[2] malformed-part, [0].content[3] malformed-part, "
            "[0].content[4] malformed-part"
        ),
    ),
    "parts of other roles and formats": (
        [{"role": "system", "content": [IMAGE]}, {**USER, "content": [{"type": "tool_use"}]}],
        "[0].content[0] part-not-allowed, [1].content[0] part-not-allowed",
    ),
    "empty fields stand for nothing": ([assistant(content=None, refusal="", reasoning="")], "[0].content empty-assistant"),
    "no calls and nothing else": (
        [assistant(tool_calls=[])],
        "[0].content empty-assistant, [0].tool_calls malformed-tool-calls",
    ),
    "calls that are not a list": ([assistant(tool_calls=call())], "[0].tool_calls malformed-tool-calls"),
    "calls that are none": (
        [asked("now", {"id": "b"}, call("c", name=""), call("d", arguments={})), answer("b"), answer("c"), answer("d")],
        (
            "[0].tool_calls[0] malformed-tool-calls, [0].tool_calls[1].function malformed-tool-calls, "
            "[0].tool_calls[2].function.name malformed-tool-calls, [0].tool_calls[3].function.arguments malformed-tool-calls"
        ),
    ),
    "custom call without input": (
        [asked({**CUSTOM, "id": "a", "custom": {"name": "sql"}}), answer()],
        "[0].tool_calls[0].custom.input malformed-tool-calls",
    ),
    "legacy call without a name": (
        [assistant(function_call={"arguments": "{}"})],
        "[0].function_call.name malformed-tool-calls",
    ),
    "ids that are none": (
        [asked(call(""), call(None)), USER],
        "[0].tool_calls[0].id call-without-id, [0].tool_calls[1].id call-without-id",
    ),
    "late result": ([BOTH, answer("b"), USER, answer("a")], f"{NO_RESULT}, [3] result-without-call"),
    "system message between": ([asked(call()), BRIEF, answer()], f"{NO_RESULT}, {NO_CALL}"),
    "unreadable message between": ([asked(call()), None, answer()], f"{NO_RESULT}, [1] unreadable-message, {NO_CALL}"),
    "result of another call": ([asked(call()), answer("b")], "[0].tool_calls[0] pending-call, [1] result-without-call"),
    "a function message answers no tool call": (
        [asked(call()), {"role": "function", "name": "a", "content": "noon"}],
        "[0].tool_calls[0] pending-call, [1] function-without-call",
    ),
    "nameless function": ([{"role": "function", "content": "x"}], "[0].name result-without-id"),
    "a call without a result is found late, and told of in its place": (
        [USER, {"role": "host"}, asked(call()), USER],
        "[1].role unknown-role, [2].tool_calls[0] call-without-result",
    ),
    "an object that waits": ([WHOLE], "[0].tool_calls[0] pending-call"),
    "a class, and what only resembles pydantic": (
        [Unserializable(), ChatCompletionMessage],
        "[0] unreadable-message, [1] unreadable-message",
    ),
    "a result without an id": ([USER, {"role": "tool", "content": "r"}], "[1].tool_call_id result-without-id"),
}
"""Lists with faults, and the place and rule of each."""

NO_MESSAGES: Final[dict[str, tuple[Any, str]]] = {
    "a text": ("hi", "messages[3]"),
    "null": (None, "messages[3]"),
    "pairs": ([("role", "user")], "messages[3]"),
    "a class": (Question, "messages[3]"),
    "no role": ({"content": "hi"}, "messages[3].role"),
    "an empty role": ({"role": "", "content": "hi"}, "messages[3].role"),
    "a list as a role": ({"role": ["user"], "content": "hi"}, "messages[3].role"),
}
"""Values that are not messages, and the place that the error names."""

READ: Final[dict[str, dict[str, tuple[Any, list[Part]]]]] = {
    "user": {
        "empty string": (user(""), [TextPart("")]),
        "null": (user(None), []),
        "missing": ({"role": "user"}, []),
        "empty list": (user([]), []),
        "text and image": (user([WORDS, IMAGE]), [TextPart("hi"), MediaPart("image", "low", 26)]),
        "bare strings, in a tuple": (user(("hi", WORDS)), [TextPart("hi"), TextPart("hi")]),
        "a lone part": (user(WORDS), [TextPart("hi")]),
        "number": (user(5), [OtherPart("5")]),
        "object": (user({"a": [1]}), [OtherPart('{"a": [1]}')]),
        "elements that are not parts": (user([None, 5]), [OtherPart("null"), OtherPart("5")]),
        "text without words": (part("text"), [OtherPart('{"type": "text"}')]),
        "unknown type": (user([{"type": "poll", "é": 1}]), [OtherPart('{"type": "poll", "é": 1}')]),
        "type that is a list": (user([{"type": ["text"]}]), [OtherPart('{"type": ["text"]}')]),
        "what JSON cannot say": (user({(1, 2): {3}}), [OtherPart("{(1, 2): {3}}")]),
        "null fields": ({"role": "user", "content": "hi", "tool_calls": None, "name": None}, [TextPart("hi")]),
        "image elsewhere": (part("image_url", image_url={"url": "https://example.org/cat.png"}), [MediaPart("image")]),
        "image in the address": (part("image_url", image_url="data:image/png;base64,AA"), [MediaPart("image", size_bytes=24)]),
        "image without an address": (part("image_url", image_url=None), [MediaPart("image")]),
        "image as a text": (part("image", image="data:image/png;base64,AA"), [MediaPart("image", size_bytes=24)]),
        "image with a source": (part("image", source={"type": "base64", "data": "AAAA"}), [MediaPart("image", size_bytes=4)]),
        "audio": (part("input_audio", input_audio={"data": "AAAAAA", "format": "wav"}), [MediaPart("audio", size_bytes=6)]),
        "video": (part("video_url", video_url={"url": "https://example.org/cat.webm"}), [MediaPart("video")]),
        "file elsewhere": (part("file", file={"file_id": "file-1"}), [MediaPart("file")]),
        "file": (
            part("file", file={"file_data": "data:a/pdf;base64,AA", "filename": "a.pdf"}),
            [MediaPart("file", "", 20, "a.pdf")],
        ),
        "file with an address for data": (part("file", file={"file_data": "https://example.org/a.pdf"}), [MediaPart("file")]),
        "document": (part("document_url", document_url="https://example.org/a.pdf"), [MediaPart("file")]),
    },
    "assistant": {
        "refusal part": (assistant(content=[{"type": "refusal", "refusal": "no"}]), [TextPart("no")]),
        "refusal field": (assistant(content=None, refusal="no"), [TextPart("no")]),
        "empty fields": (assistant(content="hi", refusal="", audio=None), [TextPart("hi")]),
        "fields whose objects say nothing": (
            assistant(content="hi", function_call={"name": "", "arguments": ""}, audio={"id": "", "data": "", "expires_at": 0}),
            [TextPart("hi")],
        ),
        "audio field": (assistant(content=None, audio={"id": "x", "data": "AAAA"}), [MediaPart("audio", "", 4)]),
        "reasoning": (assistant(reasoning="hm"), [ReasoningPart("hm")]),
        "reasoning_content": (assistant(reasoning_content="hm"), [ReasoningPart("hm")]),
        "thinking": (assistant(thinking="hm"), [ReasoningPart("hm")]),
        "reasoning_details": (
            assistant(reasoning_details=[{"text": "hm"}, {"summary": "so"}, {"data": "opaque"}, 5]),
            [ReasoningPart("hm\nso")],
        ),
        "thinking_blocks": (assistant(thinking_blocks=[thinking("hm", signature="x")]), [ReasoningPart("hm")]),
        "reasoning that is not text": (assistant(reasoning={"effort": "low"}), [ReasoningPart('{"effort": "low"}')]),
        "thinking part": (assistant(content=[thinking("hm")]), [ReasoningPart("hm")]),
        "thinking part of parts": (assistant(content=[thinking([{"type": "text", "text": "hm"}])]), [ReasoningPart("hm")]),
        "reasoning part": (assistant(content=[{"type": "reasoning", "text": "hm"}]), [ReasoningPart("hm")]),
        "calls: empty": (assistant(tool_calls=[]), []),
        "calls: tuple": (assistant(tool_calls=(CALL,)), [ToolCallPart("a", "now", "{}")]),
        "calls: no type": (assistant(tool_calls=[{**CALL, "type": None}]), [ToolCallPart("a", "now", "{}")]),
        "calls: neither id nor arguments": (
            assistant(tool_calls=[{"function": {"name": "now"}}]),
            [ToolCallPart("", "now", "")],
        ),
        "calls: arguments object": (
            assistant(tool_calls=[{**CALL, "function": {"arguments": {"a": 1}}}]),
            [ToolCallPart("a", "", '{"a": 1}')],
        ),
        "calls: no body": (assistant(tool_calls=[{"id": "a"}, "now"]), [OtherPart('{"id": "a"}'), OtherPart("now")]),
        "calls: no list": (assistant(tool_calls="now"), [OtherPart("now")]),
        "reasoning, content, other fields, then calls": (
            {**ASKED, "content": "hi", "reasoning": "hm", "refusal": "no", "function_call": LEGACY["function_call"]},
            [
                ReasoningPart("hm"),
                TextPart("hi"),
                TextPart("no"),
                ToolCallPart("a", "now", "{}"),
                ToolCallPart("b", "sql", "select 1"),
                ToolCallPart("function:now", "now", "{}"),
            ],
        ),
    },
    "tool": {
        "result: string": (RESULT, [ToolResultPart("a", "noon")]),
        "result: no id": ({"role": "tool", "content": "noon"}, [ToolResultPart("", "noon")]),
        "result: null": (got(None), [ToolResultPart("a", "")]),
        "result: parts": (got([WORDS, WORDS]), [ToolResultPart("a", "hi\nhi")]),
        "result: image": (got([WORDS, IMAGE]), [ToolResultPart("a", "hi", (MediaPart("image", "low", 26),))]),
        "result: object": (got({"hour": 12}), [ToolResultPart("a", '{"hour": 12}')]),
    },
    "function": {
        "result: legacy": (legacy(), [ToolResultPart("function:now", "noon")]),
        "result: legacy, nameless": ({"role": "function", "content": "noon"}, [ToolResultPart("function:", "noon")]),
    },
}
"""For each role, messages and their parts."""

CHANGED: Final[dict[str, tuple[Raw, Change, Raw]]] = {
    "new words: string": ({**user("hi"), "x": 1}, "new", {**user("new"), "x": 1}),
    "new words: null": (user(None), "new", user("new")),
    "new words: parts: the first words": (user([WORDS, IMAGE, WORDS]), "new", user([{**WORDS, "text": "new"}, IMAGE])),
    "new words: bare string in a list": (user(["hi", IMAGE]), "new", user(["new", IMAGE])),
    "new words: image alone": (user([IMAGE]), "new", user([IMAGE, NEW])),
    "new words: a lone part": (user(WORDS), "new", user("new")),
    "new words: unknown part": (part("poll"), "new", user([{"type": "poll"}, NEW])),
    "new words: calls alone": (ASKED, "new", {**ASKED, "content": "new"}),
    "new words: calls and an empty content": ({**ASKED, "content": ""}, "new", {**ASKED, "content": "new"}),
    "new words: content before refusal": (assistant(content="hi", refusal="no"), "new", assistant(content="new")),
    "new words: refusal alone": (assistant(content=None, refusal="no"), "new", assistant(content=None, refusal="new")),
    "new words: reasoning alone": (assistant(reasoning="hm"), "new", assistant(reasoning="hm", content="new")),
    "new words: result": (RESULT, "new", got("new")),
    "new words: null result": (got(None), "new", got("new")),
    "new words: result of parts": (got([IMAGE, WORDS, WORDS]), "new", got([IMAGE, {**WORDS, "text": "new"}])),
    "new words: result without words": (got((IMAGE,)), "new", got([NEW, IMAGE])),
    "new words: legacy result": (legacy(), "new", legacy("new")),
    "image out of a list": (user([WORDS, IMAGE]), MediaPart, user([WORDS])),
    "nothing left of a list": (user([IMAGE]), MediaPart, user("")),
    "nothing left of a string": (user("hi"), TextPart, user("")),
    "nothing left of an object": (user({"a": 1}), OtherPart, user("")),
    "thoughts out": (assistant(content="hi", reasoning="hm"), ReasoningPart, assistant(content="hi")),
    "shorter thoughts": (assistant(content="hi", reasoning="hm"), {"text": "h"}, assistant(content="hi", reasoning="h")),
    "opaque thoughts": (assistant(content="hi", reasoning_details=[OPAQUE]), ReasoningPart, assistant(content="hi")),
    "shorter thoughts in a part": (
        assistant(content=[thinking("hm", signature="x"), WORDS]),
        {"text": "h"},
        assistant(content=[thinking("h", signature="x"), WORDS]),
    ),
    "audio field out": (assistant(content="hi", audio={"id": "x"}), MediaPart, assistant(content="hi")),
    "other arguments": (
        ASKED,
        (ToolCallPart, {"arguments": "[]"}),
        {**ASKED, "tool_calls": [CALL_ANEW, {**CUSTOM, "custom": {"name": "sql", "input": "[]"}}]},
    ),
    "other id and name": (
        {**ASKED, "tool_calls": [CALL]},
        {"id": "c", "name": "date"},
        {**ASKED, "tool_calls": [{**CALL, "id": "c", "function": {"name": "date", "arguments": "{}"}}]},
    ),
    "calls out": ({**ASKED, "content": "hi"}, ToolCallPart, assistant(content="hi")),
    "legacy call out": ({**LEGACY, "content": "hi"}, ToolCallPart, assistant(content="hi")),
    "other legacy arguments": (LEGACY, {"arguments": "[]"}, {**LEGACY, "function_call": LEGACY_ANEW}),
    "other arguments, the same legacy call": (
        {**LEGACY, "tool_calls": [CALL]},
        {"arguments": "[]"},
        {**LEGACY, "tool_calls": [CALL_ANEW]},
    ),
    "other legacy arguments beside calls that are not a list": (
        {**LEGACY, "tool_calls": "later"},
        (ToolCallPart, {"arguments": "[]"}),
        {**LEGACY, "tool_calls": "later", "function_call": LEGACY_ANEW},
    ),
    "a malformed call stays": (
        {**ASKED, "tool_calls": ["now", CALL]},
        (ToolCallPart, {"arguments": "[]"}),
        {**ASKED, "tool_calls": ["now", CALL_ANEW]},
    ),
    "a malformed call out": ({**ASKED, "tool_calls": ["now", CALL]}, OtherPart, {**ASKED, "tool_calls": [CALL]}),
    "calls that are not a list, out": (assistant(content="hi", tool_calls="now"), OtherPart, assistant(content="hi")),
    "other call": (RESULT, {"call_id": "b"}, {**RESULT, "tool_call_id": "b"}),
    "image out of a result": (got([WORDS, IMAGE, WORDS]), {"media": ()}, got([WORDS, WORDS])),
    "words out of a result": (got([WORDS, IMAGE]), {"text": ""}, got([IMAGE])),
    "words to a lone image": (got(IMAGE), {"text": "hi"}, got([{"type": "text", "text": "hi"}, IMAGE])),
    "new call": (assistant(content=None), [ToolCallPart("c", "date", "{}")], asked(call("c", "date"))),
    "new call beside others": (
        ASKED,
        lambda parts: [*parts, ToolCallPart("c", "date", "{}")],
        {**ASKED, "tool_calls": [CALL, CUSTOM, call("c", "date")]},
    ),
}
"""A message, a change of its parts, and the changed message."""

UNWRITABLE: Final[dict[str, tuple[Raw, list[Part]]]] = {
    "result dropped": (RESULT, []),
    "words for a result": (RESULT, [TextPart("hi")]),
    "new image in a result": (RESULT, [ToolResultPart("a", "noon", (MediaPart("image"),))]),
    "new image": (user("hi"), [MediaPart("image")]),
    "new thoughts": (assistant(content="hi"), [ReasoningPart("hm")]),
    "new unknown part": (user("hi"), [OtherPart("{}")]),
}
"""Messages, and parts that cannot be written into them."""

REPAIRED: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "a stub after the other results": ([BOTH, answer("b"), USER], [BOTH, answer("b"), answer(content=NOT_RECORDED), USER]),
    "a late result": (
        [BOTH, answer("b"), USER, asked(call("c")), answer("c"), answer("a")],
        [BOTH, answer("b"), answer("a"), USER, asked(call("c")), answer("c")],
    ),
    "a late result of a reused id belongs to the latest open call": (
        [asked(call("a")), USER, asked(call("a")), USER, answer()],
        [asked(call("a")), answer(content=NOT_RECORDED), USER, asked(call("a")), answer(), USER],
    ),
    "a second result is not late": (
        [asked(call("a")), USER, asked(call("a")), answer(), answer(content="again")],
        [asked(call("a")), answer(content=NOT_RECORDED), USER, asked(call("a")), answer()],
    ),
    "a result before its call": ([answer(), asked(call("a"))], [asked(call("a"))]),
    "a call that repeats another": (
        [asked(call("a"), call("a")), answer(), answer(), USER],
        [asked(call("a")), answer(), USER],
    ),
    "a late result of a legacy function": ([LEGACY, USER, legacy()], [LEGACY, USER]),
    "calls at the end may be answered": ([USER, BOTH, answer("b")], [USER, BOTH, answer("b")]),
    "an empty answer": ([USER, assistant(reasoning="hm")], [USER, assistant(reasoning="hm", content="")]),
}
"""Lists with faults, and what a repair makes of them."""
