"""Examples of the Converse format: what breaks a rule, what is read, written and repaired."""

from __future__ import annotations

from typing import Any, Final

from compaction.formats.pairing import NOT_RECORDED
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.rulebook import Change

Raw = dict[str, Any]


ASKED: Final[Raw] = {"role": "user", "content": [{"text": "hi"}]}
SAID: Final[Raw] = {"role": "assistant", "content": [{"text": "Hello!"}]}
POINT: Final[Raw] = {"cachePoint": {"type": "default"}}
THOUGHT: Final[Raw] = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
REDACTED: Final[Raw] = {"reasoningContent": {"redactedContent": b"x"}}
PNG: Final[Raw] = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n"}}}
GRASS: Final = [{"text": "Grass"}, {"text": "is green."}]
CITED: Final[Raw] = {"citationsContent": {"content": GRASS, "citations": [{"title": "On grass"}]}}
TWO_KINDS: Final = '{"text": "hi", "image": {"image": {"format": "png", "source": {"bytes": "b\'\\\\x89PNG\\\\r\\\\n\'"}}}}'
GUARDED_ANEW: Final[Raw] = {"guardContent": {"text": {"text": "how?", "qualifiers": ["query"]}}}
GUARDED: Final[Raw] = {"guardContent": {"text": {"text": "why?", "qualifiers": ["query"]}}}
HOSTED: Final[Raw] = {"toolUse": {"toolUseId": "h", "name": "search", "input": {}, "type": "server_tool_use"}}


def user(*blocks: Any) -> Raw:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> Raw:
    return {"role": "assistant", "content": list(blocks)}


def call(id: str = "a", **fields: Any) -> Raw:
    return {"toolUse": {"toolUseId": id, "name": "look", "input": {}, **fields}}


def result(id: str = "a", *content: Any, **fields: Any) -> Raw:
    return {"toolResult": {"toolUseId": id, "content": list(content) or [{"text": "found"}], **fields}}


def results(*content: Any, **fields: Any) -> Raw:
    """Return a message with a result of this content."""
    return user({"toolResult": {"toolUseId": "a", "content": list(content), **fields}})


def media(kind: str, **fields: Any) -> Raw:
    return user({kind: fields})


SO: Final[Raw] = {"text": "so"}
MORE: Final[Raw] = {"text": "and"}
KIND: Final[Raw] = {"role": "system", "content": [{"text": "be kind"}]}
STUB: Final[Raw] = result("a", {"text": NOT_RECORDED}, status="error")
IN_RESULT: Final = "[0].content[0].toolResult.content[0]"
ORPHAN: Final = "[0].content[0] result-without-call"
EIGHT: Final = MediaPart("image", size_bytes=8)
BETWEEN: Final = user(result("a"), result("b"))
TOOLS: Final[Raw] = {"role": "system", "content": [{"toolAddition": {"tool": {"name": "f"}}}]}


def holding(value: Any) -> Raw:
    """Return a message with any value in it."""
    return {"role": "user", "content": [{"odd": value}]}


SHOWN: Final[Raw | None] = user(PNG)
"""A user message that is an image and nothing else; ``None`` if the format has no images."""

VALID: Final[dict[str, list[Any]]] = {
    "a cache point behind a result": [ASKED, answer(call()), user(result(), POINT)],
    "words behind a cache point": [ASKED, answer(call()), user(result(), POINT, {"text": "so?"})],
    "an id that is used again": [ASKED, answer(call()), user(result()), answer(call()), user(result())],
    "a thought at the end": [ASKED, answer({"text": "x"}, POINT, THOUGHT)],
    "instructions at the end": [ASKED, {"role": "system", "content": [{"text": "x"}]}],
    "an unknown block": [user({"hologram": 1})],
    "an empty guarded content": [user({"guardContent": {}})],
    "a search result": [user({"searchResult": {"source": "a", "title": "b", "content": []}})],
    "a thought behind a tool of the provider": [ASKED, answer(THOUGHT, HOSTED, THOUGHT, call()), user(result())],
    "a redacted thought behind a tool of the provider": [ASKED, answer(REDACTED, HOSTED, REDACTED, call()), user(result())],
}
"""Unusual lists that break no rule."""

FAULTS: Final[dict[str, tuple[list[Any], str]]] = {
    "one waits": ([ASKED, answer(call("a"), call("b")), user(result("b"))], "[1].content[0] pending-call"),
    "the model went on": ([ASKED, answer(call("a"), call("b")), user(result("b")), SAID], "[1].content[0] call-without-result"),
    "a cache point behind a thought": ([ASKED, answer(THOUGHT, POINT, {"text": "x"})], "[1].content[1] misplaced-cache-point"),
    "an answer first": ([answer(call())], "[0] starts-with-answer, [0].content[0] pending-call"),
    "tools that are added, not at the end": ([ASKED, SAID, TOOLS, ASKED], "[2] misplaced-system"),
    "an empty block": ([user({"text": "hi"}, {})], "[0].content[1] malformed-block"),
    "a block of two kinds": ([user({"text": "hi"}, {"text": "a", "image": {}})], "[0].content[1] malformed-block"),
    "a number as a text": ([user({"text": "hi"}, {"text": 5})], "[0].content[1].text malformed-block"),
    "a text as an image": ([user({"text": "hi"}, {"image": "x"})], "[0].content[1].image malformed-block"),
    "an image without a source": ([media("image", format="png")], "[0].content[0].image.source malformed-block"),
    "a video without a format": ([media("video", format="", source={})], "[0].content[0].video.format malformed-block"),
    "a result that is a text": (
        [user({"toolResult": {"toolUseId": "a", "content": "x"}})],
        f"[0].content[0].toolResult.content malformed-block, {ORPHAN}",
    ),
    "a list as JSON": ([user(result("a", {"json": [1]}))], f"{IN_RESULT}.json malformed-block, {ORPHAN}"),
    "an empty text in a result": ([user(result("a", {"text": " "}))], f"{IN_RESULT} empty-text, {ORPHAN}"),
    "a call in a result": ([user(result("a", call()))], f"{IN_RESULT} block-not-allowed, {ORPHAN}"),
    "a call of the user": ([user({"text": "hi"}, call())], "[0].content[1] block-not-allowed"),
    "a thought of the user": ([user({"text": "hi"}, THOUGHT)], "[0].content[1] block-not-allowed"),
    "cited words behind a call": ([ASKED, answer(call(), CITED), user(result())], "[1].content[1] text-after-call"),
    "a thought between calls": ([ASKED, answer(call("a"), THOUGHT, call("b")), BETWEEN], "[1].content[1] thinking-after-call"),
    "a redacted thought between calls": (
        [ASKED, answer(call("a"), REDACTED, call("b")), BETWEEN],
        "[1].content[1] thinking-after-call",
    ),
}
"""Lists with faults, and the place and rule of each."""

NO_MESSAGES: Final[dict[str, tuple[Any, str]]] = {"no role": ({"content": []}, "messages[3].role")}
"""Values that are not messages, and the place that the error names."""

READ: Final[dict[str, dict[str, tuple[Any, list[Part]]]]] = {
    "user": {
        "text": (user({"text": "hi"}), [TextPart("hi")]),
        "guarded text": (user(GUARDED), [TextPart("why?")]),
        "guarded image": (user({"guardContent": {"image": PNG["image"]}}), [EIGHT]),
        "empty guarded content": (user({"guardContent": {}}), [OtherPart('{"guardContent": {}}')]),
        "image": (user(PNG), [EIGHT]),
        "image in base64": (media("image", format="png", source={"bytes": "iVBO"}), [MediaPart("image", size_bytes=4)]),
        "video elsewhere": (media("video", format="mp4", source={"s3Location": {"uri": "s3://a"}}), [MediaPart("video")]),
        "audio": (media("audio", format="mp3", source={"bytes": b"abc"}), [MediaPart("audio", size_bytes=4)]),
        "document of a text": (
            media("document", name="a", source={"text": "words"}),
            [MediaPart("file", size_bytes=5, name="a")],
        ),
        "document of parts": (
            media("document", name="a", source={"content": [{"text": "ab"}]}),
            [MediaPart("file", size_bytes=2, name="a")],
        ),
        "cache point": (user(POINT), [OtherPart("")]),
        "search result": (user({"searchResult": {"source": "a"}}), [OtherPart('{"searchResult": {"source": "a"}}')]),
        "unknown": (user({"hologram": {"beam": 1}}), [OtherPart('{"hologram": {"beam": 1}}')]),
        "number as a text": (user({"text": 5}), [OtherPart('{"text": 5}')]),
        "two kinds": (user({"text": "hi", "image": PNG}), [OtherPart(TWO_KINDS)]),
        "bare string": (user("bare"), [TextPart("bare")]),
        "null": (user(None), [OtherPart("null")]),
    },
    "assistant": {
        "call": (answer({"toolUse": {"toolUseId": "a", "name": "f", "input": {"q": 1}}}), [ToolCallPart("a", "f", '{"q": 1}')]),
        "call without id and input": (answer({"toolUse": {"name": "f"}}), [ToolCallPart("", "f", "")]),
        "thought": (answer(THOUGHT), [ReasoningPart("hm")]),
        "redacted thought": (answer(REDACTED), [ReasoningPart("")]),
        "cited text": (answer(CITED), [TextPart("Grass\nis green.")]),
        "empty citations": (answer({"citationsContent": {}}), [OtherPart('{"citationsContent": {}}')]),
    },
    "tool": {
        "result: texts": (results({"text": "a"}, {"text": "b"}), [ToolResultPart("a", "a\nb")]),
        "result: data": (results({"json": {"rows": [1]}}), [ToolResultPart("a", '{"rows": [1]}')]),
        "result: text and image": (results({"text": "a"}, PNG), [ToolResultPart("a", "a", (EIGHT,))]),
        "result: search result": (
            results({"searchResult": {"title": "t"}}),
            [ToolResultPart("a", '{"searchResult": {"title": "t"}}')],
        ),
        "result: nothing": (results(), [ToolResultPart("a", "")]),
    },
}
"""For each role, messages and their parts."""

CHANGED: Final[dict[str, tuple[Raw, Change, Raw]]] = {
    "text": ({**user({"text": "long"}, PNG, POINT), "x": 7}, "short", {**user({"text": "short"}, PNG, POINT), "x": 7}),
    "what a guardrail checks is checked again": (user(GUARDED), "how?", user(GUARDED_ANEW)),
    "changed words lose their citations": (answer(CITED), "green", answer({"text": "green"})),
    "arguments": (answer(call(x=1)), {"arguments": '{"q": 2}'}, answer(call(x=1, input={"q": 2}))),
    "result": (results({"text": "long"}, PNG, status="success"), "short", results({"text": "short"}, PNG, status="success")),
    "result of data": (results({"json": {"rows": []}}), "none", results({"text": "none"})),
    "result without words": (results(PNG), "a picture", results({"text": "a picture"}, PNG)),
    "result whose words would be empty": (results({"text": "long"}), " ", results()),
    "picture out of a result": (results({"text": "a"}, PNG), {"media": ()}, results({"text": "a"})),
    "blank words and a new call": (answer({"text": "hi"}), [TextPart(" "), ToolCallPart("b", "look", "")], answer(call("b"))),
    "new result": (user({"text": "hi"}), [ToolResultPart("b", "found")], user(result("b"))),
    "a cache point keeps its place": (answer(THOUGHT, SO, POINT, MORE), ReasoningPart, answer(SO, POINT, MORE)),
    "a cache point that could follow nothing": (
        answer(THOUGHT, SO, POINT, MORE),
        lambda parts: [parts[0], *parts[2:]],
        answer(THOUGHT, MORE),
    ),
    "a cache point that would be first": (answer(THOUGHT, SO, POINT, MORE), lambda parts: parts[2:], answer(MORE)),
}
"""A message, a change of its parts, and the changed message."""

UNWRITABLE: Final[dict[str, tuple[Raw, list[Part]]]] = {
    "arguments that are not an object": (answer(call()), [ToolCallPart("a", "look", "[]", raw=call())]),
    "new media in a result": (results(), [ToolResultPart("a", "b", (MediaPart("image", raw=PNG),))]),
    "new media": (user({"text": "hi"}), [MediaPart("image")]),
    "new thoughts": (user({"text": "hi"}), [ReasoningPart("hm")]),
    "new unknown part": (user({"text": "hi"}), [OtherPart("x")]),
}
"""Messages, and parts that cannot be written into them."""

REPAIRED: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "an answer that nobody asked for": ([SAID, ASKED, SAID], [ASKED, SAID]),
    "results of one answer in two messages": (
        [ASKED, answer(call(), call("b")), user(result()), user(result("b"))],
        [ASKED, answer(call(), call("b")), user(result(), result("b"))],
    ),
    "a late result in a list that alternates": (
        [ASKED, answer(call()), ASKED, SAID, user(result(), {"text": "late"})],
        [ASKED, answer(call()), user(result(), {"text": "hi"}), SAID, user({"text": "late"})],
    ),
    "nothing but a result without a call": (
        [ASKED, SAID, user(result("gone")), answer(SO)],
        [ASKED, answer({"text": "Hello!"}, SO)],
    ),
    "the thoughts of a second answer, whose signatures do not fit the first": (
        [ASKED, SAID, answer(THOUGHT, {"text": "again"}, call())],
        [ASKED, answer({"text": "Hello!"}, {"text": "again"}, call())],
    ),
    "two calls of one id": (
        [ASKED, answer(call(), call(name="f")), user(result(), result("a", {"text": "2"}))],
        [ASKED, answer(call(), call("tooluse_1_1", name="f")), user(result(), result("tooluse_1_1", {"text": "2"}))],
    ),
    "a stub says that the tool failed": ([ASKED, answer(call()), ASKED], [ASKED, answer(call()), user(STUB, {"text": "hi"})]),
    "a stub before a system message": ([ASKED, answer(call()), KIND, SAID], [ASKED, answer(call()), user(STUB), KIND, SAID]),
}
"""Lists with faults, and what a repair makes of them."""
