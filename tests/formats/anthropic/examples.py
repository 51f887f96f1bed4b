"""Examples of the Anthropic format: what breaks a rule, what is read, written and repaired."""

from __future__ import annotations

import json
from typing import Any, Final

from openai.types.chat.chat_completion_message_function_tool_call import Function

from compaction.formats.pairing import NOT_RECORDED
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.rulebook import Change

Raw = dict[str, Any]


TEXT: Final[Raw] = {"type": "text", "text": "hi"}
USER: Final[Raw] = {"role": "user", "content": "hi"}
WORDS: Final[Raw] = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": []}
IMAGE: Final[Raw] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PAPER: Final[Raw] = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
THOUGHT: Final[Raw] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
OPAQUE: Final[Raw] = {"type": "redacted_thinking", "data": "b3BhcXVl"}
CALL: Final[Raw] = {"type": "tool_use", "id": "a", "name": "now", "input": {"é": 1}, "x": 1}
RESULT: Final[Raw] = {"type": "tool_result", "tool_use_id": "a", "content": "noon", "is_error": True}
SEARCH: Final[Raw] = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
RUN: Final[Raw] = {"type": "server_tool_use", "id": "run", "name": "code_execution", "input": {}}
RAN: Final[Raw] = {"type": "code_execution_tool_result", "tool_use_id": "run", "content": []}
BY_RUN: Final[Raw] = {"caller": {"type": "code_execution_20250825", "tool_id": "run"}}
FOUND: Final[Raw] = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def call(id: Any = "a", **fields: Any) -> Raw:
    return {"type": "tool_use", "id": id, "name": "now", "input": {}, **fields}


def result(id: Any = "a", content: Any = "noon") -> Raw:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def user(*blocks: Any) -> Raw:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> Raw:
    return {"role": "assistant", "content": list(blocks)}


def told(text: Any = "be kind") -> Raw:
    return {"role": "system", "content": text}


def got(*content: Any) -> Raw:
    """Return a message with the result of these blocks."""
    return user({**RESULT, "content": list(content)})


UNTYPED: Final = ({"text": "no type"}, {"type": ""}, {"type": 5}, "bare", None)
MALFORMED: Final = ", ".join(f"[0].content[{n}] malformed-block" for n in range(5))
CALLED: Final = ToolCallPart("a", "now", '{"é": 1}')
PARTED: Final = "[0].content[0] call-without-result, [2].content[0] result-without-call"


def holding(value: Any) -> Raw:
    """Return a message with any value in it."""
    return {"role": "user", "content": [{"type": "odd", "x": value}]}


SHOWN: Final[Raw | None] = user(IMAGE)
"""A user message that is an image and nothing else; ``None`` if the format has no images."""

VALID: Final[dict[str, list[Any]]] = {
    "answer first": [answer(TEXT), USER],
    "roles that do not alternate": [USER, USER, answer(TEXT), answer(TEXT)],
    "an answer without thoughts after one with": [USER, answer(THOUGHT, TEXT), answer(call()), user(result())],
    "nested": [answer(call()), user(result(content=[TEXT, {"type": "image", "source": {"type": "file", "file_id": "f"}}]))],
    "result without content": [answer(call()), user(result(content=None))],
    "empty result": [answer(call()), user(result(content=""))],
    "compaction block": [answer({"type": "compaction", "content": "so far"}), USER],
    "unknown block after a call": [USER, answer(call(), {"type": "unheard_of"}), user(result())],
    "thoughts first, an answer last": [answer(THOUGHT, TEXT), USER, answer(TEXT)],
    "an answer to be written": [USER, {"role": "assistant", "content": ""}],
    "system at the end, unknown field": [{**USER, "x_trace": 7}, told()],
    "any order": [answer(*[call(str(n)) for n in range(9)]), user(*[result(str(n)) for n in reversed(range(9))])],
    "instructions before an answer": [USER, told(), answer(TEXT)],
    "an error of a search": [USER, answer(SEARCH, {**FOUND, "content": {"type": "web_search_tool_result_error"}}, TEXT)],
    "a call of the provider waits at the end": [answer(SEARCH)],
    "a call of the provider waits beside results": [answer(SEARCH, call()), user(result())],
    "a call of the provider with its result": [USER, answer(RUN, RAN, TEXT), USER],
    "a call of the provider over results": [USER, answer(RUN, call(**BY_RUN)), user(result()), answer(RAN)],
    "an id of the provider's call again": [USER, answer(RUN, RAN), answer(RUN, call()), user(result()), answer(RAN)],
}
"""Unusual lists that break no rule."""

FAULTS: Final[dict[str, tuple[list[Any], str]]] = {
    "results in two messages": ([answer(call("a"), call("b")), user(result("b")), user(result("a"))], PARTED),
    "an answer between": ([answer(call()), answer(TEXT), user(result())], PARTED),
    "one waits": ([answer(call("a"), call("b")), user(result("a"))], "[0].content[1] pending-call"),
    "the user went on": ([answer(call("a"), call("b")), user(result("a"), TEXT)], "[0].content[1] call-without-result"),
    "result in a result": (
        [user({"type": "tool_result", "tool_use_id": "a", "content": [result()]}), USER],
        "[0].content[0].content[0] block-not-allowed, [0].content[0] result-without-call",
    ),
    "a block of a result without its field": (
        [answer(call()), user(result(content=[TEXT, {"type": "image"}]))],
        "[1].content[0].content[1].source malformed-block",
    ),
    "blocks without their fields": (
        [user({"type": "text"}, None, {"type": "image"})],
        "[0].content[0].text malformed-block, [0].content[1] malformed-block, [0].content[2].source malformed-block",
    ),
    "image in instructions": ([told([{"type": "image", "source": {}}]), USER], "[0].content[0] block-not-allowed"),
    "nothing readable between": (
        [answer(call()), None, user(result())],
        "[0].content[0] call-without-result, [1] unreadable-message, [2].content[0] result-without-call",
    ),
    "contents that are numbers": (
        [answer(call()), {"role": "user", "content": 5}, {"role": "assistant", "content": 5}],
        "[0].content[0] call-without-result, [1].content malformed-content, [2].content malformed-content",
    ),
    "nothing is said, but in the last answer": (
        [{"role": "assistant", "content": ""}, {"role": "user", "content": ""}],
        "[0].content empty-content, [1].content empty-content",
    ),
    "blanks alone": ([{"role": "user", "content": " "}], "[0].content empty-text"),
    "a thought at the end": ([answer(TEXT, THOUGHT)], "[0].content[1] ends-with-thinking"),
    "in order of place, whenever it is found": (
        [user(), {"role": "host", "content": "x"}, answer(call()), told()],
        "[0].content empty-content, [1].role unknown-role, [2].content[0] call-without-result, [3] misplaced-system",
    ),
    "user: tool_use": ([user(call())], "[0].content[0] block-not-allowed"),
    "user: thinking": ([user(THOUGHT)], "[0].content[0] block-not-allowed"),
    "user: redacted_thinking": ([user(OPAQUE)], "[0].content[0] block-not-allowed"),
    "user: server_tool_use": ([user(SEARCH)], "[0].content[0] block-not-allowed"),
    "user: web_search_tool_result": ([user(FOUND)], "[0].content[0] block-not-allowed"),
    "assistant: tool_result": ([answer(result())], "[0].content[0] block-not-allowed"),
    "assistant: image": ([answer({"type": "image", "source": {}})], "[0].content[0] block-not-allowed"),
    "assistant: document": ([answer({"type": "document", "source": {}})], "[0].content[0] block-not-allowed"),
    "system: tool_use": ([told([call()])], "[0].content[0] block-not-allowed"),
    "an object for the input": ([answer(call(input=Function(name="x", arguments="")))], "[0].content[0] pending-call"),
    "an object for a text": ([user({"type": "text", "text": {}})], "[0].content[0].text malformed-block"),
    "blocks without a type": ([user(*UNTYPED)], MALFORMED),
    "blocks of an answer without a type": ([answer(*UNTYPED)], MALFORMED),
    "instructions after an answer": ([USER, answer(TEXT), told(), answer(TEXT)], "[2] misplaced-system"),
    "instructions before the user": ([USER, told(), USER], "[1] misplaced-system"),
    "a result that is a number": ([USER, answer(call()), user(result(content=5))], "[2].content[0].content malformed-content"),
    "a result in a called result": (
        [USER, answer(call()), user(result(content=[result()]))],
        "[2].content[0].content[0] block-not-allowed",
    ),
    "a call of the provider, and the user went on": ([answer(SEARCH), USER], "[0].content[0] server-call-without-result"),
    "its own call does not close it": (
        [USER, answer(RUN, call(**BY_RUN)), user(result()), USER],
        "[1].content[0] server-call-without-result",
    ),
    "it is told once": ([USER, answer(RUN), USER, USER], "[1].content[0] server-call-without-result"),
    "a result of the provider without a call": ([USER, answer(TEXT, RAN)], "[1].content[1] server-result-without-call"),
    "a result of the provider that comes too late": (
        [USER, answer(RUN), USER, answer(RAN)],
        "[1].content[0] server-call-without-result, [3].content[0] server-result-without-call",
    ),
    "one of two such calls of an id": ([USER, answer(RUN, RUN, RAN), USER], "[1].content[0] server-call-without-result"),
    "a second result of the provider": ([USER, answer(RUN, RAN), answer(RAN)], "[2].content[0] server-result-without-call"),
    "a second result in the same answer": ([USER, answer(RUN, RAN, RAN)], "[1].content[2] server-result-without-call"),
    "a later call of an id that still waits": (
        [USER, answer(RUN), answer(RUN), answer(RAN), answer(RAN)],
        "[1].content[0] server-call-without-result, [4].content[0] server-result-without-call",
    ),
    "a call that an ended one made": (
        [USER, answer(RUN, RAN), answer(call(**BY_RUN)), user(result())],
        "[2].content[0] call-without-caller",
    ),
    "a call that none made": ([USER, answer(TEXT, call(**BY_RUN)), user(result())], "[1].content[1] call-without-caller"),
    "the last answer has a content": ([USER, {"role": "assistant", "content": None}], "[1].content empty-content"),
}
"""Lists with faults, and the place and rule of each."""

NO_MESSAGES: Final[dict[str, tuple[Any, str]]] = {
    "a text": ("hi", "messages[3]"),
    "null": (None, "messages[3]"),
    "no role": ({"content": "hi"}, "messages[3].role"),
    "a list as a role": ({"role": []}, "messages[3].role"),
}
"""Values that are not messages, and the place that the error names."""

READ: Final[dict[str, dict[str, tuple[Any, list[Part]]]]] = {
    "user": {
        "string": ({"role": "user", "content": "hi", "x": 1}, [TextPart("hi")]),
        "no content": ({"role": "user"}, []),
        "empty list": (user(), []),
        "a lone block": ({"role": "user", "content": WORDS}, [TextPart("hi")]),
        "bare string in a list": (user("hi"), [TextPart("hi")]),
        "media": (user(WORDS, IMAGE, PAPER), [TextPart("hi"), MediaPart("image", "", 4), MediaPart("file")]),
        "results and words": (user(RESULT, WORDS), [ToolResultPart("a", "noon", failed=True), TextPart("hi")]),
        "no blocks": (user(None, 5, {"x": 1}), [OtherPart("null"), OtherPart("5"), OtherPart('{"x": 1}')]),
    },
    "system": {"system": ({"role": "system", "content": [WORDS]}, [TextPart("hi")])},
    "assistant": {
        "answer": (answer(THOUGHT, OPAQUE, WORDS, CALL), [ReasoningPart("hm"), ReasoningPart(""), TextPart("hi"), CALLED]),
        "hosted tool": (answer(SEARCH, FOUND), [OtherPart(json.dumps(SEARCH)), OtherPart(json.dumps(FOUND))]),
        "compaction block": (
            answer({"type": "compaction", "content": None}),
            [OtherPart('{"type": "compaction", "content": null}')],
        ),
        "a call that says nothing": (answer({"type": "tool_use"}), [ToolCallPart("", "", "")]),
    },
    "tool": {
        "results alone": (user(RESULT), [ToolResultPart("a", "noon", failed=True)]),
        "nested content": (
            user({**RESULT, "content": [WORDS, IMAGE, {"type": "search_result", "title": "t"}]}),
            [ToolResultPart("a", 'hi\n{"type": "search_result", "title": "t"}', (MediaPart("image", "", 4),), failed=True)],
        ),
        "a result that says nothing": (user({"type": "tool_result"}), [ToolResultPart("", "")]),
    },
}
"""For each role, messages and their parts."""

CHANGED: Final[dict[str, tuple[Raw, Change, Raw]]] = {
    "string": ({"role": "user", "content": "hi", "x": 1}, {"text": "new"}, {"role": "user", "content": "new", "x": 1}),
    "text block": (user(WORDS, IMAGE), {"text": "new"}, user({**WORDS, "text": "new"}, IMAGE)),
    "words that would be empty": (user(WORDS, IMAGE), {"text": " "}, user(IMAGE)),
    "image out": (user(WORDS, IMAGE), MediaPart, user(WORDS)),
    "thoughts out": (answer(THOUGHT, WORDS, CALL), ReasoningPart, answer(WORDS, CALL)),
    "arguments": (answer(CALL), {"arguments": "{}"}, answer({**CALL, "input": {}})),
    "id and name": (answer(CALL), {"id": "b", "name": "date"}, answer({**CALL, "id": "b", "name": "date"})),
    "result": (user(RESULT, WORDS), {"text": "new"}, user({**RESULT, "content": "new"}, WORDS)),
    "null result": (user({**RESULT, "content": None}), {"text": "new"}, user({**RESULT, "content": "new"})),
    "nested result: the first words": (got(IMAGE, WORDS, WORDS), {"text": "new"}, got(IMAGE, {**WORDS, "text": "new"})),
    "nested result: image out": (got(WORDS, IMAGE), {"text": "new", "media": ()}, got({**WORDS, "text": "new"})),
    "nested result without words": (got(IMAGE), {"text": "new"}, got({"type": "text", "text": "new"}, IMAGE)),
    "only the image out": (got(WORDS, IMAGE), {"media": ()}, got(WORDS)),
    "other call": (user(RESULT), {"call_id": "b"}, user({**RESULT, "tool_use_id": "b"})),
}
"""A message, a change of its parts, and the changed message."""

UNWRITABLE: Final[dict[str, tuple[Raw, list[Part]]]] = {
    "other thoughts": (answer(THOUGHT), [ReasoningPart("other", raw=THOUGHT)]),
    "new image": (answer(WORDS), [MediaPart("image")]),
    "arguments that are not an object": (answer(CALL), [ToolCallPart("a", "now", "[1]", raw=CALL)]),
    "new image in a result": (user(RESULT), [ToolResultPart("a", "noon", (MediaPart("image"),), raw=RESULT)]),
}
"""Messages, and parts that cannot be written into them."""

REPAIRED: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "a stub among the results": (
        [answer(call("a"), call("b")), user(result("b"), TEXT)],
        [answer(call("a"), call("b")), user(result("b"), result("a", NOT_RECORDED), TEXT)],
    ),
    "a stub before the user": ([answer(call("a")), USER], [answer(call("a")), user(result("a", NOT_RECORDED)), USER]),
    "a late result, and what came with it": (
        [answer(call("a"), call("b")), user(result("b")), user(result("a"), TEXT)],
        [answer(call("a"), call("b")), user(result("b"), result("a")), user(TEXT)],
    ),
    "an id that a later call uses again": (
        [answer(call("a")), user(result("a"))] * 2,
        [answer(call("a")), user(result("a")), answer(call("toolu_2_0")), user(result("toolu_2_0"))],
    ),
    "an empty message": ([USER, answer(), USER], [USER, USER]),
    "a call of the provider without its result": ([answer(SEARCH, TEXT), USER], [answer(TEXT), USER]),
}
"""Lists with faults, and what a repair makes of them."""
