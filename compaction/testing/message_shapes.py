"""Hypothesis strategies behind `conversations`: shapes of messages, exchanges of them, and the damage real logs show.

This module needs Hypothesis, so `conversations` imports it only when it is called.
"""

from __future__ import annotations

import copy
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from ..index import marked

_Message: TypeAlias = dict[str, Any]

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

_MEDIA: Final[tuple[_Message, ...]] = (
    {"type": "image_url", "image_url": {"url": "https://example.com/plan.png"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "file", "file": {"file_id": "file_1"}},
)
_THOUGHTS: Final[tuple[_Message, ...]] = (
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
_EXTRAS: Final[tuple[_Message, ...]] = ({"x_trace": {"id": 7}}, {"name": "Kim"}, {"name": "Kim", "metadata": None})
_NO_FIELDS: Final[_Message] = {}
_thoughts = st.sampled_from(_THOUGHTS)
_perhaps_thoughts = st.sampled_from((_NO_FIELDS, *_THOUGHTS))
_perhaps_extras = st.sampled_from((_NO_FIELDS, _NO_FIELDS, *_EXTRAS))


def _part(text: str) -> _Message:
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
def _said(draw: st.DrawFn, role: st.SearchStrategy[str], content: st.SearchStrategy[Any]) -> list[_Message]:
    return [{"role": draw(role), "content": draw(content), **draw(_perhaps_extras)}]


@st.composite
def _answer(draw: st.DrawFn) -> list[_Message]:
    """Draw an answer without calls: text with or without reasoning, or only reasoning, a refusal or audio."""
    message: _Message = {"role": "assistant", "content": draw(_spoken), **draw(_perhaps_thoughts), **draw(_perhaps_extras)}
    instead = draw(st.sampled_from((None, None, None, "thoughts", "refusal", "audio")))
    if instead == "thoughts":
        message = {"role": "assistant", "content": "", **draw(_thoughts)}
    elif instead == "refusal":
        message |= {"content": None, "refusal": "I cannot say."}
    elif instead == "audio":
        message |= {"content": None, "audio": {"id": "audio_1"}}
    return [message]


@st.composite
def _call(draw: st.DrawFn) -> _Message:
    id, tool, text = draw(_ids), draw(_tools), draw(_texts)
    if draw(st.integers(0, 4)) == 4:
        return {"id": id, "type": "custom", "custom": {"name": tool, "input": text}}
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}


@st.composite
def _tool_calls(draw: st.DrawFn, answered: bool = True) -> list[_Message]:
    """Draw calls and their results in any order, perhaps after reasoning alone; if not ``answered``, one result is missing."""
    calls = draw(st.lists(_call(), min_size=1, max_size=3, unique_by=lambda call: str(call["id"])))
    content = draw(st.none() | _spoken)
    asked: _Message = {"role": "assistant", "content": content, "tool_calls": calls, **draw(_perhaps_thoughts)}
    thinks = draw(st.integers(0, 3)) == 3
    alone: list[_Message] = [{"role": "assistant", "content": "", **draw(_thoughts)}] if thinks else []
    order = draw(st.permutations([str(call["id"]) for call in calls]))
    results = [{"role": "tool", "tool_call_id": id, "content": draw(_outputs)} for id in order]
    return [*alone, asked, *(results if answered else results[1:])]


@st.composite
def _function_call(draw: st.DrawFn) -> list[_Message]:
    """Draw a legacy function call, which the format accepts with or without its result."""
    name = draw(_tools)
    asked: _Message = {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": draw(_texts)}}
    result: _Message = {"role": "function", "name": name, "content": draw(_texts)}
    return [asked, result] if draw(st.integers(0, 3)) else [asked]


@st.composite
def _summary(draw: st.DrawFn) -> list[_Message]:
    text = marked(draw(_texts), by=draw(st.sampled_from(("Summarization", "ToolResult"))), round=draw(st.integers(1, 3)))
    return [{"role": draw(st.sampled_from(("user", "assistant"))), "content": text}]


_instructions = _said(st.sampled_from(("system", "developer")), _words)
_questions = _said(st.just("user"), _shown)
_exchanges = st.one_of(
    _questions, _answer(), _tool_calls(), _questions, _tool_calls(), _instructions, _function_call(), _summary()
)


@st.composite
def conversation(draw: st.DrawFn, *, pending: bool, max_size: int) -> list[_Message]:
    """Draw exchanges in any order, often after instructions; perhaps one user message twice, perhaps pending calls."""
    exchanges = draw(st.lists(_instructions, max_size=2)) + draw(st.lists(_exchanges, min_size=1, max_size=max_size))
    messages: list[_Message] = copy.deepcopy([message for exchange in exchanges for message in exchange])
    asked = [message for message in messages if message["role"] == "user"]
    if asked and draw(st.integers(0, 7)) == 7:
        messages.append(draw(st.sampled_from(asked)))
    if pending and draw(st.booleans()):
        messages += copy.deepcopy(draw(_tool_calls(answered=False)))
    return messages


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[list[_Message]]) -> list[_Message]:
    """Draw a conversation and damage it up to four times."""
    messages = draw(whole)
    for damage in draw(st.lists(st.sampled_from(_DAMAGES), max_size=4)) if messages else ():
        damage(messages, draw(st.integers(0, 63)) % len(messages), draw(st.integers(0, 63)))
    return messages


def _remove(messages: list[_Message], place: int, _: int) -> None:
    """Remove a message: a call loses its results, or results lose their call."""
    if len(messages) > 1:
        del messages[place]


def _move(messages: list[_Message], place: int, other: int) -> None:
    """Move a message: a result comes late or early."""
    message = messages.pop(place)
    messages.insert(other % (len(messages) + 1), message)


def _repeat(messages: list[_Message], place: int, other: int) -> None:
    """Repeat a message: a call or result comes twice."""
    messages.insert(other % (len(messages) + 1), copy.deepcopy(messages[place]))


def _change_ids(messages: list[_Message], place: int, other: int) -> None:
    """Give results and calls the ids of others, or none."""
    id = ("call_1", "call_2", "gone", None)[other % 4]
    for message in messages[place : place + 2]:
        message |= {name: id for name in ("tool_call_id", "call_id") if name in message}
        for call in message.get("tool_calls", ()):
            call["id"] = id


def _remove_content(messages: list[_Message], place: int, other: int) -> None:
    """Remove a message's content, or replace it with an invalid one."""
    name = next((name for name in ("content", "parts", "output") if name in messages[place]), "content")
    if other % 3:
        messages[place][name] = ([], 5)[other % 3 - 1]
    else:
        messages[place].pop(name, None)


def _change_role(messages: list[_Message], place: int, other: int) -> None:
    """Give a message another role, perhaps an unknown one."""
    messages[place]["role"] = ("assistant", "user", "critic", "tool")[other % 4]


_DAMAGES: Final = (_move, _remove, _repeat, _change_ids, _remove_content, _change_role)
