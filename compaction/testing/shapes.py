"""The shapes behind `conversations`: what a message may look like, what follows it, and what goes wrong in logs.

This module needs Hypothesis; `compaction.testing` imports it when it is asked for a strategy.
"""

from __future__ import annotations

import copy
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from ..marks import marked

__all__ = ["Message", "conversation", "damaged"]

Message: TypeAlias = dict[str, Any]

_TEXTS: Final = (
    "Fine.",
    "",
    " \n",
    "Which file sets the line length?",
    "a line of output\n" * 30,
    "word " * 60,
    "안녕하세요, 오늘 서울 날씨는 어때요?",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "half of a sign: \ud83d",
    "\u202e\x00e\u0301",
    "<|endoftext|> <|im_start|>system",
    "[compaction 00000000 by Nobody round 1]\nnot ours",
    '{"path": "a.py"}',
)
_texts = st.sampled_from(_TEXTS) | st.text(max_size=12)
_ids = st.sampled_from(("call_1", "call_2", "call_3", "", "호출")).map(lambda id: id or "toolu_01")
_tools = st.sampled_from(("read_file", "search", "browser_click", "f"))

_MEDIA: Final[tuple[Message, ...]] = (
    {"type": "image_url", "image_url": {"url": "https://example.com/plan.png"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "file", "file": {"file_id": "file_1"}},
)
_THOUGHTS: Final[tuple[Message, ...]] = (
    {"reasoning": "First I look. " * 9},
    {"reasoning_content": "그러면 먼저 본다."},
    {
        "reasoning_details": [
            {"type": "reasoning.text", "text": "I look. " * 9},
            {"type": "reasoning.encrypted", "data": "c2VjcmV0"},
        ]
    },
    {"thinking_blocks": [{"type": "thinking", "thinking": "I look.", "signature": "c2ln"}]},
)
_EXTRAS: Final[tuple[Message, ...]] = ({"x_trace": {"id": 7}}, {"name": "Kim"}, {"name": "Kim", "metadata": None})
_NO_FIELDS: Final[Message] = {}
_thoughts = st.sampled_from(_THOUGHTS)
_perhaps_thoughts = st.sampled_from((_NO_FIELDS, *_THOUGHTS))
_perhaps_extras = st.sampled_from((_NO_FIELDS, _NO_FIELDS, *_EXTRAS))


def _part(text: str) -> Message:
    return {"type": "text", "text": text}


_words = _texts | st.lists(_texts.map(_part), min_size=1, max_size=2)
_shown = _texts | st.lists(_texts.map(_part) | st.sampled_from(_MEDIA), min_size=1, max_size=3)
_outputs = st.sampled_from(("18 degrees\n" * 40, "a line of output\n" * 30, "no such file: a.py\n" * 20)) | _shown
_spoken = _texts | st.lists(
    st.one_of(
        _texts.map(_part),
        _texts.map(lambda text: {"type": "refusal", "refusal": text}),
        _texts.map(lambda text: {"type": "thinking", "thinking": text}),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def _said(draw: st.DrawFn, role: st.SearchStrategy[str], content: st.SearchStrategy[Any]) -> list[Message]:
    return [{"role": draw(role), "content": draw(content), **draw(_perhaps_extras)}]


@st.composite
def _answer(draw: st.DrawFn) -> list[Message]:
    """What the assistant says without a call, with or without thoughts, or nothing but thoughts, a refusal or a sound."""
    message: Message = {
        "role": "assistant",
        "content": draw(_spoken),
        **draw(_perhaps_thoughts),
        **draw(_perhaps_extras),
    }
    instead = draw(st.sampled_from((None, None, None, "thoughts", "refusal", "audio")))
    if instead == "thoughts":
        message = {"role": "assistant", "content": "", **draw(_thoughts)}
    elif instead == "refusal":
        message |= {"content": None, "refusal": "I cannot say."}
    elif instead == "audio":
        message |= {"content": None, "audio": {"id": "audio_1"}}
    return [message]


@st.composite
def _call(draw: st.DrawFn) -> Message:
    id, tool, text = draw(_ids), draw(_tools), draw(_texts)
    if draw(st.integers(0, 4)) == 4:
        return {"id": id, "type": "custom", "custom": {"name": tool, "input": text}}
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}


@st.composite
def _tool_calls(draw: st.DrawFn, answered: bool = True) -> list[Message]:
    """Thoughts alone, calls, and their results in any order; all of them if ``answered``."""
    calls = draw(st.lists(_call(), min_size=1, max_size=3, unique_by=lambda call: str(call["id"])))
    content = draw(st.none() | _spoken)
    asked: Message = {"role": "assistant", "content": content, "tool_calls": calls, **draw(_perhaps_thoughts)}
    thinks = draw(st.integers(0, 3)) == 3
    alone: list[Message] = [{"role": "assistant", "content": "", **draw(_thoughts)}] if thinks else []
    order = draw(st.permutations([str(call["id"]) for call in calls]))
    results = [{"role": "tool", "tool_call_id": id, "content": draw(_outputs)} for id in order]
    return [*alone, asked, *(results if answered else results[1:])]


@st.composite
def _function_call(draw: st.DrawFn) -> list[Message]:
    """The legacy call of one function, which the format takes with or without its result."""
    name = draw(_tools)
    asked: Message = {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": draw(_texts)}}
    result: Message = {"role": "function", "name": name, "content": draw(_texts)}
    return [asked, result] if draw(st.integers(0, 3)) else [asked]


@st.composite
def _summary(draw: st.DrawFn) -> list[Message]:
    """What an earlier compaction left."""
    text = marked(draw(_texts), by=draw(st.sampled_from(("Summarization", "ToolResult"))), round=draw(st.integers(1, 3)))
    return [{"role": draw(st.sampled_from(("user", "assistant"))), "content": text}]


_instructions = _said(st.sampled_from(("system", "developer")), _words)
_questions = _said(st.just("user"), _shown)
_exchanges = st.one_of(
    _questions, _answer(), _tool_calls(), _questions, _tool_calls(), _instructions, _function_call(), _summary()
)


@st.composite
def conversation(draw: st.DrawFn, *, pending: bool, max_size: int) -> list[Message]:
    """Exchanges in any order, often after instructions; perhaps one user message twice, perhaps calls at the end that wait."""
    exchanges = draw(st.lists(_instructions, max_size=2)) + draw(st.lists(_exchanges, min_size=1, max_size=max_size))
    messages: list[Message] = copy.deepcopy([message for exchange in exchanges for message in exchange])
    asked = [message for message in messages if message["role"] == "user"]
    if asked and draw(st.integers(0, 7)) == 7:
        messages.append(draw(st.sampled_from(asked)))
    if pending and draw(st.booleans()):
        messages += copy.deepcopy(draw(_tool_calls(answered=False)))
    return messages


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[list[Message]]) -> list[Message]:
    """A conversation to which up to four things happened."""
    messages = draw(whole)
    for harm in draw(st.lists(st.sampled_from(_HARMS), max_size=4)):
        harm(messages, draw(st.integers(0, 63)) % len(messages), draw(st.integers(0, 63)))
    return messages


def _leave_out(messages: list[Message], place: int, _: int) -> None:
    """A call loses its results, or results their call."""
    if len(messages) > 1:
        del messages[place]


def _move(messages: list[Message], place: int, other: int) -> None:
    """A result comes late, or early."""
    message = messages.pop(place)
    messages.insert(other % (len(messages) + 1), message)


def _repeat(messages: list[Message], place: int, other: int) -> None:
    """A call or result comes twice."""
    messages.insert(other % (len(messages) + 1), copy.deepcopy(messages[place]))


def _rename(messages: list[Message], place: int, other: int) -> None:
    """Results and calls get ids that others have, or none."""
    id = ("call_1", "call_2", "gone", None)[other % 4]
    for message in messages[place : place + 2]:
        if message["role"] == "tool":
            message["tool_call_id"] = id
        for call in message.get("tool_calls", ()):
            call["id"] = id


def _hollow(messages: list[Message], place: int, other: int) -> None:
    """A message has no content, or one that is none."""
    if other % 3:
        messages[place]["content"] = (None, [], 5)[other % 3]
    else:
        messages[place].pop("content", None)


def _recast(messages: list[Message], place: int, other: int) -> None:
    """A message has another role, perhaps one nobody knows."""
    messages[place]["role"] = ("assistant", "user", "critic", "tool")[other % 4]


_HARMS: Final = (_move, _leave_out, _repeat, _rename, _hollow, _recast)
