"""A second implementation of the chat-completions rules, in plain loops that share nothing with the package."""

from __future__ import annotations

from typing import Any

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
SPOKEN = ("text", "refusal", "reasoning", "thinking", "redacted_thinking")
SHOWN = ("text", "image_url", "input_audio", "file", "video_url", "document_url", "audio_url", "image", "audio", "video")


def violations(messages: list[Any]) -> list[str]:
    """Return the violations that OpenAI would refuse, each as its place and its rule."""
    if not messages:
        return ["messages no-messages"]
    found: list[str] = []
    for place, message in enumerate(messages):
        found += [f"messages[{place}] {rule}" for rule in alone(message)]
    found += unanswered(messages)
    found += answering_nothing(messages)
    return found


def alone(message: Any) -> list[str]:
    """Return the rules that one message breaks, regardless of its neighbours."""
    if not isinstance(message, dict):
        return ["unreadable-message"]
    role, content = message.get("role"), message.get("content")
    if role is None:
        return ["missing-role"]
    if role not in ROLES:
        return ["unknown-role"]
    broken: list[str] = []
    if role == "assistant":
        calls = message.get("tool_calls")
        if calls is not None:
            broken += calls_alone(calls)
        if message.get("function_call") is not None and not callable_body(message["function_call"], "arguments"):
            broken.append("malformed-tool-calls")
        if all(message.get(name) is None for name in ("content", "tool_calls", "function_call", "refusal", "audio")):
            broken.append("empty-assistant")
    elif content is None and role != "function":
        broken.append("no-content")
    if role == "tool" and not message.get("tool_call_id"):
        broken.append("result-without-id")
    if role == "function" and not message.get("name"):
        broken.append("result-without-id")
    if content is None or isinstance(content, str):
        return broken
    if not isinstance(content, list) or not content:
        return [*broken, "malformed-content"]
    for part in content:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            broken.append("malformed-part")
        elif part["type"] in ("text", "refusal", "image_url", "input_audio", "file") and part.get(part["type"]) is None:
            broken.append("malformed-part")
        elif part["type"] == "text" and not isinstance(part["text"], str):
            broken.append("malformed-part")
        elif not allowed(role, part["type"]):
            broken.append("part-not-allowed")
    return broken


def allowed(role: str, kind: str) -> bool:
    """Return whether a message of this role may contain a part of this kind."""
    if role == "assistant":
        return kind in SPOKEN
    return kind in SHOWN if role in ("user", "tool") else kind == "text"


def calls_alone(calls: Any) -> list[str]:
    """Return the rules that the calls of one message break."""
    if not isinstance(calls, list) or not calls:
        return ["malformed-tool-calls"]
    broken: list[str] = []
    ids: list[Any] = []
    for call in calls:
        if not isinstance(call, dict):
            broken.append("malformed-tool-calls")
            continue
        if not (callable_body(call.get("function"), "arguments") or callable_body(call.get("custom"), "input")):
            broken.append("malformed-tool-calls")
        if not call.get("id"):
            broken.append("call-without-id")
        elif call["id"] in ids:
            broken.append("duplicate-call-id")
        ids.append(call.get("id"))
    return broken


def callable_body(body: Any, arguments: str) -> bool:
    """Return whether the body has a name and arguments, both strings."""
    return isinstance(body, dict) and isinstance(body.get("name"), str) and isinstance(body.get(arguments), str)


def role_at(messages: list[Any], place: int) -> Any:
    """Return the role of the message at this position, or ``None`` if there is no message."""
    return messages[place].get("role") if 0 <= place < len(messages) and isinstance(messages[place], dict) else None


def ids_called(message: Any) -> list[Any]:
    """Return the ids of the calls of a message, in order."""
    calls = message.get("tool_calls") if isinstance(message, dict) and message.get("role") == "assistant" else None
    return [call["id"] for call in calls if isinstance(call, dict) and call.get("id")] if isinstance(calls, list) else []


def unanswered(messages: list[Any]) -> list[str]:
    """Return calls without a result in the tool messages directly after them."""
    found: list[str] = []
    for place, message in enumerate(messages):
        end, answers = place + 1, list[Any]()
        while role_at(messages, end) == "tool":
            answers.append(messages[end].get("tool_call_id"))
            end += 1
        rule = "pending-call" if end == len(messages) else "call-without-result"
        for id in dict.fromkeys(map(repr, ids_called(message))):
            if id not in map(repr, answers):
                found.append(f"messages[{place}] {rule} {id}")
    return found


def answering_nothing(messages: list[Any]) -> list[str]:
    """Return results without a call directly before them, and second results of one call."""
    found: list[str] = []
    for place, message in enumerate(messages):
        if role_at(messages, place) == "tool" and message.get("tool_call_id"):
            start, earlier = place - 1, list[Any]()
            while role_at(messages, start) == "tool":
                earlier.append(messages[start].get("tool_call_id"))
                start -= 1
            if start < 0 or message["tool_call_id"] not in ids_called(messages[start]):
                found.append(f"messages[{place}] result-without-call")
            elif message["tool_call_id"] in earlier:
                found.append(f"messages[{place}] duplicate-result")
        elif role_at(messages, place) == "function" and message.get("name"):
            asked = messages[place - 1].get("function_call") if role_at(messages, place - 1) == "assistant" else None
            if not isinstance(asked, dict) or asked.get("name") != message["name"]:
                found.append(f"messages[{place}] function-without-call")
    return found
