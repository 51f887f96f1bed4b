"""Sample conversations that need no Hypothesis: a few small ones of every shape, and agent sessions of any length.

They are equal on every call, but new objects each time, so a test may change them.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from ..checks import checked_count
from ..formats import MessageFormat, openai_chat, resolve
from ..index import marked
from .written import write_chat

_LINE: Final = "def handler(request): return respond(request.path, 200)  # line {}\n"
_PICTURE: Final = {"type": "image_url", "image_url": {"url": "https://example.com/plan.png", "detail": "low"}}
_SOUND: Final = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
_FILE: Final = {"type": "file", "file": {"file_id": "file_1"}}


def agent_session(messages: int, *, lines: int = 12, format: MessageFormat | str = openai_chat) -> list[dict[str, Any]]:
    """Return a coding agent's session: a system message, then turns of a question, four tool calls with results, and an answer.

    Args:
        messages: Number of messages, >= 0; the session is cut there, so it may end with a call without a result.
        lines: Lines of each tool result, >= 0, about 17 tokens each; every fifth result repeats an earlier one.
        format: The wire format it is written in. In a format of your own it is the texts alone, which are fewer messages.

    Raises:
        ConfigurationError: If a number is below 0.
        UnknownFormat: If no format has that name.

    >>> [message["role"] for message in agent_session(5)]
    ['system', 'user', 'assistant', 'tool', 'assistant']
    """
    checked_count("messages", messages)
    checked_count("lines", lines)
    session: list[dict[str, Any]] = [_says("system", "You fix bugs. Read before you write.")]
    while len(session) < messages:
        session += _turn(len(session), lines)
    return write_chat(session[:messages], resolve(format))


def _turn(place: int, lines: int) -> list[dict[str, Any]]:
    """Return one turn of a session; its ids and texts contain the place where it starts."""
    turn = [_says("user", f"Request {place} fails with a timeout. Find out why.")]
    for step in range(4):
        call = f"call_{place}_{step}"
        start = 0 if step == 3 else place + step
        output = "".join(_LINE.format(line) for line in range(start, start + lines))
        turn += [_calls((call, "read_file", f'{{"path": "src/handler_{start}.py"}}')), _result(call, output)]
    return [*turn, _says("assistant", f"The handler of request {place} retries without a limit; I gave it one.")]


def sample_conversations(format: MessageFormat | str = openai_chat) -> list[list[dict[str, Any]]]:
    """Return conversations of every shape a strategy may meet: valid ones, then invalid ones as in real logs.

    Args:
        format: The wire format they are written in. In another than chat completions they are words, calls and results; in a
            format without `compose`, texts alone.

    Raises:
        UnknownFormat: If no format has that name.

    >>> from compaction import validate
    >>> [len(validate(conversation)) for conversation in sample_conversations()]
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 3]
    """
    target = resolve(format)
    valid = [_chat(), agent_session(120), _tools(), _mixed(), _thinking(), _compacted(), _empty_texts(), _unicode(), _waiting()]
    if target is openai_chat:
        return copy.deepcopy([*valid, *_broken()])
    written = [write_chat(sample, target) for sample in valid]
    return [*filter(None, written), *_damaged(agent_session(24, format=target))]


def _damaged(session: list[Any]) -> list[list[Any]]:
    """Return a session in which the first call or its result is missing, comes twice, or comes late."""
    missing = [session[:place] + session[place + 1 :] for place in (2, 3)]
    twice = [[*session[: place + 1], copy.deepcopy(session[place]), *session[place + 1 :]] for place in (2, 3)]
    late = [[*session[:place], session[place + 1], session[place], *session[place + 2 :]] for place in (2, 3)]
    return [*missing, *twice, *late]


def _says(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def _calls(*calls: tuple[str, str, str], **fields: Any) -> dict[str, Any]:
    """Return an assistant message with calls, each given as id, tool and arguments."""
    entries = [{"id": id, "type": "function", "function": {"name": name, "arguments": text}} for id, name, text in calls]
    return {"role": "assistant", "content": None, "tool_calls": entries, **fields}


def _result(call: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


def _chat() -> list[dict[str, Any]]:
    """Return a chat of twelve turns with several instructions, one in the middle, and one object that is in the list twice."""
    chat = [_says("developer", "Answer briefly."), _says("system", "The user is called Kim.", name="setup")]
    for turn in range(12):
        chat += [
            _says("user", f"Question {turn}? " * 8, name="Kim"),
            _says("assistant", f"Answer {turn}. " * 12, x_trace={"n": turn}),
        ]
    nudge = _says("user", "Go on.")
    return [*chat[:12], _says("system", "Be formal from here on."), nudge, *chat[12:], nudge]


def _tools() -> list[dict[str, Any]]:
    """Return parallel, custom and legacy calls, reused ids, and results in another order."""
    custom = {"id": "call_2", "type": "custom", "custom": {"name": "shell", "input": "ls -la"}}
    parallel = _calls(("call_1", "search", '{"q": "tea"}'))
    parallel["tool_calls"].append(custom)
    legacy = _says("assistant", None, function_call={"name": "clock", "arguments": "{}"})
    turn = [parallel, _result("call_2", "total 0\n" * 60), _result("call_1", "a leaf in hot water " * 30)]
    again = [_calls(("call_1", "search", "no JSON"), content="Once more."), _result("call_1", "a leaf in hot water " * 30)]
    time = [legacy, {"role": "function", "name": "clock", "content": "noon"}]
    tea, end = [_says("system", "s"), _says("user", "What is tea?")], [_says("assistant", "A leaf."), _says("user", "!")]
    return [*tea, *turn, *again, *time, *end]


def _mixed() -> list[dict[str, Any]]:
    """Return lists of parts with images, audio, files and refusals, and several messages of one role in a row."""
    photo = _result("call_1", [{"type": "text", "text": "A screenshot"}, _PICTURE])
    return [
        _says("assistant", "Welcome."),
        _says("user", [{"type": "text", "text": "What is this?"}, _PICTURE, _SOUND, _FILE]),
        _says("user", "Quick."),
        _calls(("call_1", "screenshot", "{}"), content=[{"type": "text", "text": "I look."}]),
        photo,
        _says("assistant", [{"type": "text", "text": "A plan."}, {"type": "refusal", "refusal": "No more than that."}]),
        _says("assistant", None, refusal="I cannot say."),
        _says("assistant", None, audio={"id": "audio_1"}),
        _says("user", [_PICTURE]),
        _says("user", "And now?"),
    ]


def _thinking() -> list[dict[str, Any]]:
    """Return messages with reasoning in every possible field, also on its own."""
    alone = _says("assistant", "", reasoning="It might rain. " * 20)
    calling = _calls(("call_1", "weather", "{}"), reasoning_details=[{"type": "reasoning.text", "text": "I look it up. " * 20}])
    said = _says("assistant", [{"type": "thinking", "thinking": "Rain. " * 20}, {"type": "text", "text": "Take a coat."}])
    turn = [_says("user", "A coat?"), alone, calling, _result("call_1", "rain"), _says("assistant", "", thinking="So."), said]
    return [*turn, *_empty_texts(), _says("assistant", "Yes.", reasoning_content="The newest. " * 9), _says("user", "Fine.")]


def _compacted() -> list[dict[str, Any]]:
    """Return the result of an earlier run: a summary at the start, a collapsed tool group later."""
    summary = _says("user", marked("Kim plans a trip. " * 40, by="Summarization", round=2))
    collapsed = _says("assistant", marked("[Tool results]\nsearch(trains) -> three", by="ToolResult"))
    return [_says("system", "s"), summary, collapsed, *agent_session(40)[1:]]


def _empty_texts() -> list[dict[str, Any]]:
    return [_says("user", ""), _says("assistant", ""), _says("user", [{"type": "text", "text": ""}])]


def _unicode() -> list[dict[str, Any]]:
    """Return texts in several scripts, with characters of several code points, and with lone surrogates."""
    texts = [
        "안녕하세요, 오늘 서울 날씨는 어때요?",
        "👩‍👩‍👧‍👦" * 20,
        "half a sign: \ud83d",
        "\u202eright to left\x00",
        "é" * 90,
    ]
    return [_says("user" if place % 2 == 0 else "assistant", text) for place, text in enumerate(texts)]


def _waiting() -> list[dict[str, Any]]:
    """Return a session that ends while one of two calls is still running."""
    return [*agent_session(24), _says("user", "Both."), _calls(("a", "f", "{}"), ("b", "g", "{}")), _result("b", "done " * 50)]


def _broken() -> list[list[dict[str, Any]]]:
    """Return conversations with late, missing, orphan and repeated results, duplicate ids, or messages without content."""
    ask, end = _says("user", "Go on. " * 20), [_says("assistant", "Done."), _says("user", "Good.")]
    call, answer = _calls(("call_1", "f", "{}")), _result("call_1", "18 degrees " * 40)
    late = [ask, call, _says("user", "Are you there?"), answer, *end]
    lone = [_result("gone", "nobody asked " * 40), ask, call, _says("assistant", "No answer came."), *end]
    twice = [ask, call, answer, _result("call_1", "18 degrees " * 40), _says("user", "Again."), _result("call_1", "19"), *end]
    same = [ask, _calls(("call_1", "f", "{}"), ("call_1", "g", "{}")), answer, answer.copy(), *end]
    hollow = [ask, _says("assistant", None, reasoning="Hm. " * 40), {"role": "assistant"}, _says("critic", "Bad."), *end]
    return [late, lone, twice, same, hollow]
