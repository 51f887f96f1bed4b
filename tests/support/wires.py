"""Generated conversations in every wire format, and every built-in strategy, for the laws."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

import attrs
import pytest
from hypothesis import strategies as st

from compaction import presets
from compaction.formats import FORMATS, MessageFormat, anthropic, bedrock, gemini, openai_responses
from compaction.index.marks import marked
from compaction.messages import Message
from compaction.selectors import first, last
from compaction.stores import SearchResult, StoreDescription, StoredRecord
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Dedupe,
    HeadTail,
    Lossless,
    Offload,
    Pipeline,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import SummaryRequest
from compaction.testing import conversations
from compaction.testing.message_shapes import damaged
from compaction.triggers import always, tokens_below, tokens_exceed

from .limits import examples

_Test = TypeVar("_Test", bound=Callable[..., None])
Raw: TypeAlias = dict[str, Any]


@attrs.frozen
class Shelf:
    """A store that accepts everything and cannot be read."""

    def put(self, session: str, records: Sequence[StoredRecord]) -> None:
        for record in records:
            json.loads(record.data or "null")

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        raise AssertionError("nothing is read here")

    def range(self, session: str, first: int, count: int) -> list[StoredRecord]:
        raise AssertionError("nothing is read here")

    def search(self, session: str, query: str, *, limit: int) -> SearchResult:
        raise AssertionError("nothing is searched here")

    def describe(self, session: str) -> StoreDescription:
        raise AssertionError("nothing is described here")


@attrs.frozen
class Brief:
    """A summarizer that always returns the same few words."""

    def summarize(self, request: SummaryRequest) -> str:
        return "What was said before."


STRATEGIES: Final[tuple[Strategy, ...]] = (
    ToolResult(keep=last(groups=1)),
    ToolResult(Clear(min_chars=10), keep=last(groups=1)),
    ToolResult(Clear(min_chars=10, inputs=["*"]), keep=last(groups=1)),
    ToolResult(HeadTail(chars=60), keep=last(groups=1)),
    ToolResult(Dedupe(min_chars=10), keep=last(groups=1)),
    ClearReasoning(keep=last(groups=1)),
    ClearMedia(keep=last(groups=1)),
    SelectiveToolCall(),
    SlidingWindow(),
    SlidingWindow(keep=last(groups=3)),
    Truncation(keep=last(groups=1)),
    Truncation(keep=last(groups=4)),
    Truncation(trigger=tokens_exceed(300), target=tokens_below(150), keep=last(groups=1)),
    Summarization(keep=last(groups=2), on_failure="drop"),
    Summarization(Brief(), keep=last(groups=2)),
    Summarization(Brief(), keep=first(messages=2) | last(groups=1), system_note="[some of it is a summary]"),
    Pipeline(ClearReasoning(), ToolResult(Clear(min_chars=10)), Truncation(trigger=tokens_exceed(200), keep=last(groups=2))),
    TokenBudgetComposed([ToolResult(), SelectiveToolCall()], budget=200),
    Offload(Shelf(), min_chars=200, keep=last(groups=1)),
    Lossless(Truncation(trigger=tokens_exceed(200), keep=last(groups=1)), Shelf()),
    presets.context_window(600),
    presets.token_budget(200),
    presets.hermes(2_000, Brief(), protect_first_n=1, protect_last_n=1, trigger=always),
    presets.hermes(400, Brief(), protect_last_n=2),
    presets.hermes(4_000, protect_first_n=0, protect_last_n=1, trigger=always, on_failure="drop"),
    presets.langgraph_summary(Brief(), max_tokens_before_summary=100, max_summary_tokens=50, keep_recent_messages=1),
)
"""Every built-in strategy, configured to change a short conversation."""


def each_of(every: Sequence[Strategy]) -> Callable[[_Test], _Test]:
    """Return the marks of a property that runs with all ``strategies``, four at a time, whatever is drawn.

    Four are tried on each list, because most lists take longer to draw than to compact.
    """
    parts = -(-len(every) // 4)
    fours = [every[part::parts] for part in range(parts)]
    mark = pytest.mark.parametrize("strategies", fours, ids=[" ".join(each.name for each in four) for four in fours])
    return lambda test: mark(examples(2, strategies=len(every))(test))


Pin: TypeAlias = Callable[[Message], bool] | None

PINS: Final[tuple[Pin, ...]] = (None, None, lambda message: message.role == "assistant" and message.text == "x")
"""Nothing is pinned, or some answers in the middle are."""

WORDS = st.sampled_from(["hi", "x", "naïve 🌍 ́", "日本語のテキスト", "\u2028line", "a longer sentence about things"])
LONG = st.sampled_from(["ok", "word " * 80 + "end", "ligne é\n" * 60 + "fin", "same output " * 20])
PENDING = st.sampled_from(["whole", "whole", "no results", "one result"])

_FIELDS: Final = (
    *("type", "role", "content", "parts", "text", "id", "call_id", "tool_calls", "tool_call_id", "function_call"),
    *("name", "input", "output", "summary", "functionCall", "functionResponse"),
)

Ids: TypeAlias = Callable[[], str]


def junk(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of any shape, with the fields that formats read and values that those fields may have."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", b"a", (1,), float("nan")]) | inner,
        lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), deeper, max_size=4),
        max_leaves=8,
    )


@st.composite
def wrecked(draw: st.DrawFn, whole: st.SearchStrategy[list[Raw]]) -> list[Any]:
    """Return a damaged conversation: messages missing, moved, repeated or of another format, and any value in any place."""
    messages: list[Any] = copy.deepcopy(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        place, other = draw(st.integers(0, 99)) % len(messages), draw(st.integers(0, 99)) % len(messages)
        harm = draw(st.sampled_from(["leave out", "move", "repeat", "message", "field", "field", "foreign"]))
        if harm == "leave out" and len(messages) > 1:
            del messages[place]
        elif harm == "move":
            messages.insert(other, messages.pop(place))
        elif harm == "repeat":
            messages.insert(other, copy.deepcopy(messages[place]))
        elif harm == "field" and isinstance(messages[place], dict):
            messages[place] = {**messages[place], draw(st.sampled_from(_FIELDS)): draw(junk(st.just(messages[place])))}
        elif harm == "foreign":
            messages.insert(place, draw(st.sampled_from(draw(SOURCES[draw(st.sampled_from(sorted(SOURCES)))]))))
        else:
            messages[place] = draw(junk(st.just(messages[place])))
    return messages


def _marked(draw: st.DrawFn) -> str:
    return marked(draw(LONG), by=draw(st.sampled_from(["Summarization", "ToolResult"])))


@st.composite
def anthropic_conversations(draw: st.DrawFn) -> list[Raw]:
    """Valid Anthropic conversations: parallel calls, thoughts, media, words beside results, summaries, pending calls."""
    numbers = count()
    messages: list[Raw] = [{"role": "system", "content": "be brief"}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 6))):
        said = _blocks(draw) if draw(st.booleans()) else draw(WORDS if messages else st.just(_marked(draw)) | WORDS)
        messages.append({"role": "user", "content": said})
        thinks = draw(st.booleans())
        if draw(st.integers(0, 5)) == 5:
            messages.append({"role": "user", "content": _marked(draw)})
        if draw(st.integers(0, 9)) == 9 and messages[0]["role"] == "user":
            messages.append({"role": "system", "content": "now be kind"})
        for _ in range(draw(st.integers(0, 3))):
            write = _anthropic_program if draw(st.integers(0, 9)) == 9 else _anthropic_calls
            messages += write(draw, thinks, lambda: f"toolu_{next(numbers)}")
        messages.append({"role": "assistant", "content": [*_thoughts(draw, thinks), {"type": "text", "text": draw(WORDS)}]})
    if draw(st.booleans()):
        messages.append({"role": "user", "content": draw(WORDS)})
        left = draw(PENDING)
        calls = _anthropic_calls(draw, False, lambda: f"toolu_{next(numbers)}", words=False)
        messages += calls[: 1 if left == "no results" else 2]
        if left == "one result":
            messages[-1] = {**messages[-1], "content": messages[-1]["content"][:1]}
    return messages


def _blocks(draw: st.DrawFn) -> list[Raw]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * draw(st.integers(1, 9))}}
    document = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
    return [{"type": "text", "text": draw(WORDS)}, *draw(st.sampled_from([[], [image], [document, image]]))]


def _thoughts(draw: st.DrawFn, thinks: bool) -> list[Raw]:
    if not thinks:
        return []
    signed = {"type": "thinking", "thinking": draw(st.sampled_from(["", "hm", "a long thought " * 20])), "signature": "c2ln"}
    return [draw(st.sampled_from([signed, {"type": "redacted_thinking", "data": "b3BhcXVl"}]))]


def _anthropic_calls(draw: st.DrawFn, thinks: bool, ids: Ids, words: bool = True) -> list[Raw]:
    names = [ids() for _ in range(draw(st.integers(1, 3)))]
    said = [{"type": "text", "text": draw(WORDS)}] if draw(st.booleans()) else []
    server = {"type": "server_tool_use", "id": f"srv{names[0]}", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": f"srv{names[0]}", "content": []}
    hosted = [server, found] if draw(st.integers(0, 7)) == 7 else []
    calls = [{"type": "tool_use", "id": name, "name": "look", "input": {"q": draw(WORDS)}} for name in names]
    results: list[Raw] = [_anthropic_result(draw, name) for name in draw(st.permutations(names))]
    if words and draw(st.integers(0, 4)) == 4:
        results.append({"type": "text", "text": draw(WORDS)})
    answer = [*_thoughts(draw, thinks), *hosted, *said, *calls]
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": results}]


def _anthropic_program(draw: st.DrawFn, thinks: bool, ids: Ids) -> list[Raw]:
    """An answer that runs code which calls a tool, and the answer that continues with the code's result."""
    name = ids()
    run = {"type": "server_tool_use", "id": f"srv{name}", "name": "code_execution", "input": {"code": draw(WORDS)}}
    made = {"caller": {"type": "code_execution_20250825", "tool_id": f"srv{name}"}}
    error = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}
    ran = {"type": "code_execution_tool_result", "tool_use_id": f"srv{name}", "content": error}
    names = (name, *[ids()] * draw(st.integers(0, 1)))
    calls: list[Raw] = [{"type": "tool_use", "id": each, "name": "look", "input": {}, **made} for each in names]
    steps = [([*_thoughts(draw, thinks), run, calls[0]], name), *[([call], str(call["id"])) for call in calls[1:]]]
    last = ids()
    steps.append(([ran, {"type": "tool_use", "id": last, "name": "look", "input": {}}], last))
    messages: list[Raw] = []
    for blocks, answered in steps:
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [_anthropic_result(draw, answered)]}]
    return messages


def _anthropic_result(draw: st.DrawFn, name: str) -> Raw:
    text = {"type": "text", "text": draw(LONG)}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    content = draw(st.sampled_from([draw(LONG), "", [text], [text, image], [image]]))
    return {"type": "tool_result", "tool_use_id": name, "content": content}


@st.composite
def responses_conversations(draw: st.DrawFn) -> list[Raw]:
    """Valid Responses conversations: reasoning, parallel calls of both kinds, hosted tools, ids or none, pending calls."""
    numbers = count()
    items: list[Raw] = [{"role": "system", "content": "be brief"}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 6))):
        picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
        words = {"type": "input_text", "text": draw(WORDS)}
        said = draw(st.sampled_from([draw(WORDS), [words], [words, picture]]))
        items.append({"type": "message", "role": "user", "content": said})
        if draw(st.integers(0, 5)) == 5:
            items.append({"type": "message", "role": "user", "content": _marked(draw)})
        if draw(st.integers(0, 9)) == 9:
            items.append({"type": "compaction", "id": f"cmp_{next(numbers)}", "encrypted_content": "b3BhcXVl"})
        answer = _Answer(draw, numbers)
        for _ in range(draw(st.integers(0, 3))):
            items += answer.calls()
        items += [*answer.reasoning(), answer.message()]
    if draw(st.booleans()):
        items.append({"role": "user", "content": draw(WORDS)})
        items += answer.calls(results=draw(PENDING))
    return items


class _Answer:
    """Writes the items of answers, with ids and reasoning or without."""

    def __init__(self, draw: st.DrawFn, numbers: count[int]) -> None:
        self.draw, self.numbers = draw, numbers
        self.known, self.thinks = draw(st.booleans()), draw(st.booleans())

    def id(self, prefix: str) -> Raw:
        return {"id": f"{prefix}_{next(self.numbers)}"} if self.known else {}

    def reasoning(self) -> list[Raw]:
        if not self.thinks:
            return []
        summary = [{"type": "summary_text", "text": self.draw(LONG)}] if self.draw(st.booleans()) else []
        return [{"type": "reasoning", **self.id("rs"), "summary": summary, "encrypted_content": "b3BhcXVl"}]

    def message(self) -> Raw:
        text = {"type": "output_text", "text": self.draw(WORDS), "annotations": []}
        return {"type": "message", "role": "assistant", **self.id("msg"), "content": [text]}

    def calls(self, results: str = "whole") -> list[Raw]:
        draw, ids = self.draw, [f"call_{next(self.numbers)}" for _ in range(self.draw(st.integers(1, 3)))]
        searched = {"type": "web_search_call", **self.id("ws"), "status": "completed"}
        before = draw(st.sampled_from([[], [], [self.message()], [searched]]))
        custom = draw(st.booleans())
        kind, name = ("custom_tool_call", "input") if custom else ("function_call", "arguments")
        calls = [{"type": kind, "call_id": id, "name": "look", name: "{}", **self.id("fc")} for id in ids]
        after = [self.message()] if draw(st.integers(0, 5)) == 5 else []
        order = draw(st.permutations(ids))
        answered = {"whole": order, "no results": [], "one result": order[:1]}[results]
        part = {"type": "input_text", "text": draw(LONG)}
        outputs = [
            {"type": f"{kind}_output", "call_id": id, "output": draw(st.sampled_from([draw(LONG), "", [part]]))}
            for id in answered
        ]
        if results == "whole" and draw(st.integers(0, 7)) == 7:
            return [*self.reasoning(), *before, *self.program(calls, outputs)]
        return [*self.reasoning(), *before, *calls, *after, *outputs]

    def program(self, calls: list[Raw], outputs: list[Raw]) -> list[Raw]:
        """A program that makes these calls one after the other; or, for a tool of a server, an approved call."""
        number = next(self.numbers)
        asked = {"type": "mcp_approval_request", "id": f"ask_{number}", "name": "look", "arguments": "{}", "server_label": "s"}
        if self.draw(st.booleans()):
            fields = {name: asked[name] for name in ("name", "arguments", "server_label")}
            ran = {"type": "mcp_call", "id": f"mcp_{number}", "approval_request_id": asked["id"], **fields, "output": "ok"}
            return [asked, {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}, ran]
        by = {"caller": {"type": "program", "caller_id": f"p_{number}"}}
        id = f"p_{number}"
        begun = {"type": "program", "id": f"prog_{number}", "call_id": id, "code": "await look()", "fingerprint": "x"}
        ended = {"type": "program_output", "id": f"out_{number}", "call_id": id, "result": "ok", "status": "completed"}
        by_id = {output["call_id"]: {**output, **by} for output in outputs}
        return [begun, *[item for call in calls for item in ({**call, **by}, by_id[call["call_id"]])], ended]


@st.composite
def gemini_conversations(draw: st.DrawFn) -> list[Raw]:
    """Valid Gemini conversations: parallel calls of one name, signatures, thoughts, media, summaries, pending calls."""
    contents: list[Raw] = []
    signs = draw(st.booleans())
    for _ in range(draw(st.integers(1, 6))):
        picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA" * draw(st.integers(1, 9))}}
        contents.append({"role": "user", "parts": [{"text": draw(WORDS)}, *draw(st.sampled_from([[], [picture]]))]})
        if draw(st.integers(0, 5)) == 5:
            contents.append({"role": "user", "parts": [{"text": _marked(draw)}]})
        for _ in range(draw(st.integers(0, 3))):
            contents += _gemini_calls(draw, signs)
        contents.append({"role": "model", "parts": [*_gemini_thoughts(draw), {"text": draw(WORDS)}]})
    if draw(st.booleans()):
        contents.append({"role": "user", "parts": [{"text": draw(WORDS)}]})
        left = draw(PENDING)
        contents += _gemini_calls(draw, signs, words=False)[: 1 if left == "no results" else 2]
        if left == "one result":
            contents[-1] = {**contents[-1], "parts": contents[-1]["parts"][:1]}
    return contents


def _gemini_thoughts(draw: st.DrawFn) -> list[Raw]:
    return draw(st.sampled_from([[], [], [{"text": "a long thought " * 9, "thought": True}]]))


def _gemini_calls(draw: st.DrawFn, signs: bool, words: bool = True) -> list[Raw]:
    names = draw(st.lists(st.sampled_from(["look", "now"]), min_size=1, max_size=3))
    calls: list[Raw] = [{"functionCall": {"name": name, "args": {"q": draw(WORDS)}}} for name in names]
    if signs:
        calls[0] = {**calls[0], "thoughtSignature": "c2ln"}
    said = [{"text": draw(WORDS)}] if draw(st.booleans()) else []
    responses: list[Raw] = []
    for name in draw(st.permutations(names)):
        response = draw(st.sampled_from([{"result": draw(LONG)}, {"output": draw(LONG)}, {"rows": [1, 2], "note": draw(LONG)}]))
        responses.append({"functionResponse": {"name": name, "response": response}})
    if words and draw(st.integers(0, 4)) == 4:
        responses.append({"text": draw(WORDS)})
    return [{"role": "model", "parts": [*_gemini_thoughts(draw), *said, *calls]}, {"role": "user", "parts": responses}]


@st.composite
def bedrock_conversations(draw: st.DrawFn) -> list[Raw]:
    """Valid Converse conversations: strict turns, parallel calls, thoughts, media, cache points, summaries, pending calls."""
    numbers = count()
    messages: list[Raw] = []
    points = draw(st.integers(0, 4))
    for _ in range(draw(st.integers(1, 6))):
        said = _converse_words(draw) if draw(st.integers(0, 5)) else [{"text": _marked(draw)}]
        if draw(st.integers(0, 3)) == 3 and points:
            said, points = [*said, {"cachePoint": {"type": "default"}}], points - 1
        messages.append({"role": "user", "content": said})
        if draw(st.integers(0, 9)) == 9:
            messages.append({"role": "system", "content": [{"text": "now be kind"}]})
        thinks = draw(st.booleans())
        for _ in range(draw(st.integers(0, 3))):
            messages += _converse_calls(draw, thinks, numbers)
        answer = draw(st.sampled_from([[{"text": draw(WORDS)}], [CITED]]))
        messages.append({"role": "assistant", "content": [*_converse_thoughts(draw, thinks), *answer]})
    if draw(st.booleans()):
        messages.append({"role": "user", "content": [{"text": draw(WORDS)}]})
        left = draw(PENDING)
        messages += _converse_calls(draw, False, numbers, words=False)[: 1 if left == "no results" else 2]
        if left == "one result":
            messages[-1] = {**messages[-1], "content": messages[-1]["content"][:1]}
    return messages


_SOURCE: Final = {"title": "On grass", "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 14}}}
CITED: Final = {"citationsContent": {"content": [{"text": "Grass is green."}], "citations": [_SOURCE]}}


def _converse_words(draw: st.DrawFn) -> list[Raw]:
    image = {"image": {"format": "png", "source": {"bytes": "AAAA" * draw(st.integers(1, 9))}}}
    document = {"document": {"format": "pdf", "name": "plan", "source": {"s3Location": {"uri": "s3://plans/a.pdf"}}}}
    asked = draw(st.sampled_from([{"text": draw(WORDS)}, {"guardContent": {"text": {"text": draw(WORDS)}}}]))
    text = [{"text": draw(WORDS)}, document]
    return draw(st.sampled_from([[asked], [asked, image], [*text, image], [image]]))


def _converse_thoughts(draw: st.DrawFn, thinks: bool) -> list[Raw]:
    if not thinks:
        return []
    text = draw(st.sampled_from(["hm", "a long thought " * 20]))
    signed = {"reasoningContent": {"reasoningText": {"text": text, "signature": "c2ln"}}}
    return [draw(st.sampled_from([signed, {"reasoningContent": {"redactedContent": "b3BhcXVl"}}]))]


def _converse_calls(draw: st.DrawFn, thinks: bool, numbers: count[int], words: bool = True) -> list[Raw]:
    ids = [f"tooluse_{next(numbers)}" for _ in range(draw(st.integers(1, 3)))]
    said: list[Raw] = [{"text": draw(WORDS)}] if draw(st.booleans()) else []
    found = {"toolUse": {"toolUseId": f"srv_{ids[0]}", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
    result = {"toolResult": {"toolUseId": f"srv_{ids[0]}", "content": [{"text": "a page"}], "type": "nova_grounding_result"}}
    hosted = [found, result] if draw(st.integers(0, 7)) == 7 else []
    calls = [{"toolUse": {"toolUseId": id, "name": "look", "input": {"q": draw(WORDS)}}} for id in ids]
    results: list[Raw] = [_converse_result(draw, id) for id in draw(st.permutations(ids))]
    if words and draw(st.integers(0, 4)) == 4:
        results.append({"text": draw(WORDS)})
    answer = [*_converse_thoughts(draw, thinks), *hosted, *said, *calls]
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": results}]


def _converse_result(draw: st.DrawFn, id: str) -> Raw:
    text, data = {"text": draw(LONG)}, {"json": {"rows": [1, 2], "note": draw(LONG)}}
    image = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
    said = [([text, image], {"status": "success"}), ([text], {"status": "error"})]
    content, status = draw(st.sampled_from([*said, *((content, {}) for content in ([text], [data], [image], list[Raw]()))]))
    return {"toolResult": {"toolUseId": id, "content": content, **status}}


_RICH: Final[dict[str, st.SearchStrategy[list[Any]]]] = {
    openai_responses.name: responses_conversations(),
    anthropic.name: anthropic_conversations(),
    gemini.name: gemini_conversations(),
    bedrock.name: bedrock_conversations(),
}
"""Conversations with what only these formats have, such as thoughts and tools that the provider runs."""


def valid_conversation(format: MessageFormat) -> st.SearchStrategy[list[Any]]:
    """Valid conversations of a format; in some, the last calls wait for results."""
    return _RICH[format.name] if format.name in _RICH else conversations(pending=True, format=format)


def any_conversation(format: MessageFormat) -> st.SearchStrategy[list[Any]]:
    """Conversations of a format, half of them valid and half damaged."""
    whole = valid_conversation(format)
    return whole | damaged(whole.map(copy.deepcopy))


SOURCES: Final = {format.name: any_conversation(format) for format in FORMATS}
"""For each format, its conversations, half of them damaged."""
