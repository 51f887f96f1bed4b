"""Examples of the Responses format: what breaks a rule, what is read, written and repaired."""

from __future__ import annotations

from typing import Any, Final

from compaction.formats.pairing import NOT_RECORDED
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.rulebook import Change

Raw = dict[str, Any]


USER: Final[Raw] = {"role": "user", "content": "hi"}
WORDS: Final[Raw] = {"type": "input_text", "text": "hi", "x": 1}
SAID: Final[Raw] = {"type": "output_text", "text": "hi", "annotations": []}
PICTURE: Final[Raw] = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
PAPER: Final[Raw] = {"type": "input_file", "filename": "a.pdf", "file_data": "AAAA"}
CALL: Final[Raw] = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "now", "arguments": "{}", "status": "x"}
REFUSED: Final[Raw] = {"type": "refusal", "refusal": "no"}
CUSTOM: Final[Raw] = {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "select 1"}
OUTPUT: Final[Raw] = {"type": "function_call_output", "call_id": "a", "output": "noon", "x": 1}
SUMMARY: Final[Raw] = {"type": "summary_text", "text": "hm"}
THOUGHT: Final[Raw] = {"type": "reasoning", "id": "rs_1", "summary": [SUMMARY], "encrypted_content": "x"}
ANSWER: Final[Raw] = {"type": "message", "role": "assistant", "content": [SAID]}
SCREEN: Final[Raw] = {"type": "computer_call_output", "call_id": "c", "output": {}}
SHELL: Final[Raw] = {"type": "local_shell_call", "id": "l", "call_id": "a", "action": {}}
SHELL_OUTPUT: Final[Raw] = {"type": "local_shell_call_output", "id": "a", "output": ""}


def call(id: Any = "a", **fields: Any) -> Raw:
    return {"type": "function_call", "call_id": id, "name": "now", "arguments": "{}", **fields}


def output(id: Any = "a", **fields: Any) -> Raw:
    return {"type": "function_call_output", "call_id": id, "output": "noon", **fields}


def got(*parts: Any) -> Raw:
    """Return an output of these parts."""
    return {**OUTPUT, "output": list(parts)}


def message(role: str, content: Any, **fields: Any) -> Raw:
    return {"type": "message", "role": role, "content": content, **fields}


def holding(value: Any) -> Raw:
    """Return a message with any value in it."""
    return {"type": "function_call", "call_id": "a", "name": "now", "arguments": {"x": value}}


SHOWN: Final[Raw | None] = message("user", [PICTURE])
"""A user message that is an image and nothing else; ``None`` if the format has no images."""

VALID: Final[dict[str, list[Any]]] = {
    "output after the user": [call(), USER, output()],
    "words after the call": [THOUGHT, call(), ANSWER, output()],
    "two thoughts, any order": [THOUGHT, {**THOUGHT, "id": "rs_2"}, call("a"), call("b"), output("b"), output("a")],
    "no JSON; output of parts": [call(arguments="{not json"), output(output=[{"type": "input_text", "text": "x"}])],
    "types nobody knows": [{"type": "tomorrow", "x": 1}, {"type": "compaction", "encrypted_content": "x"}, USER],
    "approval not given": [{"type": "mcp_approval_request", "id": "m", "name": "x", "arguments": "{}"}, USER],
    "an output that names its call by id": [SHELL, SHELL_OUTPUT],
    "an id that names a call is not the output's own": [SHELL, SHELL_OUTPUT, {**SHELL, "id": "k"}, SHELL_OUTPUT],
    "a tuple for a list": [{**THOUGHT, "summary": ()}, ANSWER],
    "hosted tool": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, ANSWER],
}
"""Unusual lists that break no rule."""

FAULTS: Final[dict[str, tuple[list[Any], str]]] = {
    "output first": ([output(), call()], "[0] result-without-call, [1] pending-call"),
    "reasoning before an output": ([THOUGHT, output()], "[0] reasoning-without-item, [1] result-without-call"),
    "reasoning last": ([USER, THOUGHT], "[1] reasoning-without-item"),
    "no item at the end": ([call("a"), call("b"), output("b"), None], "[0] call-without-result, [3] unreadable-message"),
    "an output where an item was due": ([call(), THOUGHT, output(), ANSWER], "[1] reasoning-without-item"),
    "the user speaks where its item was due": ([THOUGHT, USER, ANSWER], "[0] reasoning-without-item"),
    "no item where one was due": (
        [THOUGHT, None, ANSWER, output("gone")],
        "[0] reasoning-without-item, [1] unreadable-message, [3] result-without-call",
    ),
    "an output has an id of its own": ([{**call("a"), "id": "one"}, {**output("a"), "id": "one"}], "[1].id duplicate-item-id"),
    "an output that is a number": (
        [call("a"), output("a", output=5), {"type": "custom_tool_call_output", "call_id": "b", "output": 5}],
        "[1].output malformed-content, [2].output malformed-content, [2] result-without-call",
    ),
    "a text for a list, a list for a text": (
        [{**THOUGHT, "summary": "thought"}, call(arguments=[]), USER],
        "[0].summary malformed-item, [1].arguments malformed-item, [1] call-without-result",
    ),
    "one output for two calls of one id": (
        [call(), call(), output(), USER],
        "[0] call-without-result, [1].call_id duplicate-call-id",
    ),
    "two outputs for two calls of one id": ([call(), call(), output(), output()], "[1].call_id duplicate-call-id"),
    "a call of the last answer waits": ([call("a"), call("b"), output("b")], "[0] pending-call"),
    "a call waits behind words": ([call("a"), ANSWER], "[0] pending-call"),
    "a new answer has all outputs before it": ([call("a"), call("b"), output("b"), ANSWER], "[0] call-without-result"),
    "only calls of the last answer wait": (
        [call("a"), call("b"), output("b"), call("c"), ANSWER],
        "[0] call-without-result, [3] pending-call",
    ),
    "parts without a type or a text": (
        [message("user", [{"text": "no type"}, {"type": "input_text", "text": 5}, {"type": "input_text"}, "bare", None])],
        ", ".join(f"[0].content[{n}] malformed-part" for n in range(5)),
    ),
    "parts of chat completions": (
        [*({"role": role, "content": [{"type": "text", "text": "hi"}]} for role in ("user", "assistant"))],
        "[0].content[0] part-not-allowed, [1].content[0] part-not-allowed",
    ),
}
"""Lists with faults, and the place and rule of each."""

NO_MESSAGES: Final[dict[str, tuple[Any, str]]] = {
    "a text": ("hi", "messages[3]"),
    "no type": ({"content": "hi"}, "messages[3].type"),
    "a number as a type": ({"type": 5}, "messages[3].type"),
    "an empty role": (message("", "x"), "messages[3].role"),
}
"""Values that are not messages, and the place that the error names."""

READ: Final[dict[str, dict[str, tuple[Any, list[Part]]]]] = {
    "user": {
        "no type": ({"role": "user", "content": "hi", "x": 1}, [TextPart("hi")]),
        "null": (message("user", None), []),
        "no parts": (message("user", [None, {"x": 1}]), [OtherPart("null"), OtherPart('{"x": 1}')]),
        "parts": (
            message("user", [WORDS, PICTURE, PAPER, "hi", {"type": "poll"}]),
            [
                TextPart("hi"),
                MediaPart("image", "low", 26),
                MediaPart("file", "", 4, "a.pdf"),
                TextPart("hi"),
                OtherPart('{"type": "poll"}'),
            ],
        ),
    },
    "developer": {"developer": (message("developer", [WORDS]), [TextPart("hi")])},
    "assistant": {
        "answer": (message("assistant", [SAID, REFUSED]), [TextPart("hi"), TextPart("no")]),
        "call": (CALL, [ToolCallPart("a", "now", "{}")]),
        "custom call": (CUSTOM, [ToolCallPart("b", "sql", "select 1")]),
        "shell call": (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            [ToolCallPart("c", "shell", '{"commands": ["ls"]}')],
        ),
        "reasoning": (THOUGHT, [ReasoningPart("hm")]),
        "hosted": ({"type": "web_search_call", "id": "ws_1"}, [OtherPart('{"type": "web_search_call", "id": "ws_1"}')]),
        "reference": ({"type": "item_reference", "id": "x"}, [OtherPart('{"type": "item_reference", "id": "x"}')]),
    },
    "tool": {
        "output": (OUTPUT, [ToolResultPart("a", "noon")]),
        "output of parts": (got(WORDS, PICTURE), [ToolResultPart("a", "hi", (MediaPart("image", "low", 26),))]),
        "screenshot": (
            {**SCREEN, "output": {"image_url": "data:AAAA"}, "x": 1},
            [ToolResultPart("c", ""), OtherPart('{"x": 1}')],
        ),
        "named by id": ({"type": "local_shell_call_output", "id": "c", "output": "done"}, [ToolResultPart("c", "done")]),
    },
    "compaction": {"compaction": ({"type": "compaction", "encrypted_content": "x"}, [OtherPart('{"type": "compaction"}')])},
}
"""For each role, messages and their parts."""

CHANGED: Final[dict[str, tuple[Raw, Change, Raw]]] = {
    "string": (message("user", "hi", x=1), {"text": "new"}, message("user", "new", x=1)),
    "part": (message("user", [WORDS, PICTURE]), {"text": "new"}, message("user", [{**WORDS, "text": "new"}, PICTURE])),
    "refusal": (message("assistant", [REFUSED]), {"text": "new"}, message("assistant", [{**REFUSED, "refusal": "new"}])),
    "arguments": (CALL, {"arguments": '{"a": 1}'}, {**CALL, "arguments": '{"a": 1}'}),
    "custom": (
        CUSTOM,
        {"arguments": "select 2", "id": "c", "name": "db"},
        {**CUSTOM, "input": "select 2", "call_id": "c", "name": "db"},
    ),
    "output": (OUTPUT, {"text": "new"}, {**OUTPUT, "output": "new"}),
    "other call": (OUTPUT, {"call_id": "b"}, {**OUTPUT, "call_id": "b"}),
    "parts": (got(PICTURE, WORDS, WORDS), {"text": "new", "media": ()}, got({**WORDS, "text": "new"})),
    "picture": (got(PICTURE), {"text": "new"}, got({"type": "input_text", "text": "new"}, PICTURE)),
}
"""A message, a change of its parts, and the changed message."""

UNWRITABLE: Final[dict[str, tuple[Raw, list[Part]]]] = {
    "other thoughts": (THOUGHT, [ReasoningPart("other")]),
    "no thoughts": (THOUGHT, []),
    "new image": (message("user", "hi"), [MediaPart("image")]),
    "words for an output": (OUTPUT, [TextPart("noon")]),
    "an output that is not text": (SCREEN, [ToolResultPart("c", "new")]),
    "an action": ({"type": "shell_call", "call_id": "c", "action": {}}, [ToolCallPart("c", "shell", "x")]),
}
"""Messages, and parts that cannot be written into them."""

REPAIRED: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "a stub after the answer": (
        [call(), call("b"), output("b"), USER],
        [call(), call("b"), output(output=NOT_RECORDED), output("b"), USER],
    ),
    "a call whose output cannot be invented": (
        [THOUGHT, {"type": "computer_call", "call_id": "a", "action": {}}, USER],
        [USER],
    ),
    "the same answer twice": ([{**call(), "id": "fc_1"}, output()] * 2, [{**call(), "id": "fc_1"}, output()]),
    "the id of another item": (
        [{**call(), "id": "x"}, output(), {"type": "item_reference", "id": "x"}, message("user", "hi", id="x")],
        [{**call(), "id": "x"}, output(), message("user", "hi")],
    ),
}
"""Lists with faults, and what a repair makes of them."""
