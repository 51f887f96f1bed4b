"""A second implementation of the Anthropic Messages rules, in plain loops that share nothing with the package."""

from __future__ import annotations

import re
from typing import Any

THOUGHTS = ("thinking", "redacted_thinking")
OF_ANSWERS = (*THOUGHTS, "tool_use", "server_tool_use", "mcp_tool_use")
OF_USERS = ("tool_result", "image", "document", "search_result", "container_upload")
IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference")
NEEDED: dict[str, list[tuple[str, type]]] = {
    "text": [("text", str)],
    "thinking": [("thinking", str)],
    "redacted_thinking": [("data", str)],
    "tool_use": [("name", str), ("input", dict)],
    "image": [("source", dict)],
    "document": [("source", dict)],
}


def violations(messages: list[Any]) -> list[str]:
    """Return the violations that Anthropic would refuse, each as its place and its rule."""
    if not messages:
        return ["messages no-messages"]
    found: list[str] = []
    points = 0
    for place, message in enumerate(messages):
        last = place == len(messages) - 1
        found += [f"messages[{place}] {rule}" for rule in alone(message, last=last)]
        before = role_at(messages, place - 1)
        if role_at(messages, place) == "system" and any(role_at(messages, each) != "system" for each in range(place)):
            if before != "user" or not (last or role_at(messages, place + 1) == "assistant"):
                found.append(f"messages[{place}] misplaced-system")
        blocks = blocks_of(message)
        points += sum(block.get("cache_control") is not None for block in blocks)
        if role_at(messages, place) == "assistant":
            if before == "assistant" and any(block.get("type") in THOUGHTS for block in blocks):
                found.append(f"messages[{place}] thinking-after-answer")
            said = message.get("content")
            if isinstance(said, list) and blocks and blocks[-1].get("type") == "text":
                said = blocks[-1].get("text")
            if last and isinstance(said, str) and said.strip() and said != said.rstrip():
                found.append(f"messages[{place}] trailing-space")
    if points > 4:
        found.append("messages too-many-breakpoints")
    return found + pairs(messages) + hosted_pairs(messages)


def role_at(messages: list[Any], place: int) -> Any:
    """Return the role of the message at this position, or ``None`` if there is no message."""
    return messages[place].get("role") if 0 <= place < len(messages) and isinstance(messages[place], dict) else None


def blocks_of(message: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message; a string content has none."""
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def alone(message: Any, *, last: bool) -> list[str]:
    """Return the rules that one message breaks, regardless of its neighbours."""
    if not isinstance(message, dict):
        return ["unreadable-message"]
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        return ["unknown-role"]
    if isinstance(content, str):
        return ["empty-content"] if not content.strip() and not (last and role == "assistant") else []
    if content is None:
        return ["empty-content"]
    if not isinstance(content, list):
        return ["malformed-content"]
    if not content:
        return [] if last and role == "assistant" else ["empty-content"]
    broken: list[str] = []
    ids, words, calls = list[Any](), False, False
    for block in content:
        broken += block_alone(block, role)
        if not isinstance(block, dict):
            continue
        what = block.get("type")
        if what == "tool_use":
            calls = True
            if not block.get("id"):
                broken.append("call-without-id")
            elif not isinstance(block["id"], str) or not re.fullmatch("[a-zA-Z0-9_-]+", block["id"]):
                broken.append("malformed-id")
        elif what == "text" and calls and role == "assistant":
            broken.append("text-after-call")
        if what == "tool_result":
            if words:
                broken.append("result-after-text")
            if not block.get("tool_use_id"):
                broken.append("result-without-id")
            elif block["tool_use_id"] in ids:
                broken.append("duplicate-result")
            ids.append(block.get("tool_use_id"))
        else:
            words = True
    if role == "assistant" and isinstance(content[-1], dict) and content[-1].get("type") in THOUGHTS:
        broken.append("ends-with-thinking")
    return broken


def block_alone(block: Any, role: str) -> list[str]:
    """Return the rules that one block breaks in a message of this role."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return ["malformed-block"]
    what = block["type"]
    if any(not isinstance(block.get(name), kind) for name, kind in NEEDED.get(what, [])):
        return ["malformed-block"]
    if (what in OF_ANSWERS and role != "assistant") or (what in OF_USERS and role != "user"):
        return ["block-not-allowed"]
    if role == "system" and what != "text":
        return ["block-not-allowed"]
    if what == "text" and not block["text"].strip():
        return ["empty-text"]
    if what == "thinking" and not block.get("signature"):
        return ["unsigned-thinking"]
    inner = block.get("content") if what == "tool_result" else None
    if inner is None or isinstance(inner, str):
        return []
    if not isinstance(inner, list):
        return ["malformed-block"]
    if any(not isinstance(each, dict) or not isinstance(each.get("type"), str) for each in inner):
        return ["malformed-block"]
    return ["block-not-allowed" for each in inner if each["type"] not in IN_RESULTS]


def pairs(messages: list[Any]) -> list[str]:
    """Return calls without a result in the next message, results without a call in the previous one, and reused ids."""
    found: list[str] = []
    known: set[str] = set()
    for place, message in enumerate(messages):
        after = messages[place + 1] if role_at(messages, place + 1) == "user" else None
        answers = [repr(block.get("tool_use_id")) for block in blocks_of(after) if block.get("type") == "tool_result"]
        ends = place + 1 == len(messages) or (place + 2 == len(messages) and only_results(after))
        for block in blocks_of(message) if role_at(messages, place) == "assistant" else []:
            if block.get("type") == "tool_use" and block.get("id"):
                if repr(block["id"]) in known:
                    found.append(f"messages[{place}] duplicate-call-id")
                if repr(block["id"]) not in answers:
                    found.append(f"messages[{place}] {'pending-call' if ends else 'call-without-result'} {block['id']}")
                known.add(repr(block["id"]))
        before = messages[place - 1] if role_at(messages, place - 1) == "assistant" else None
        calls = [block.get("id") for block in blocks_of(before) if block.get("type") == "tool_use"]
        for block in blocks_of(message) if role_at(messages, place) == "user" else []:
            if block.get("type") == "tool_result" and block.get("tool_use_id") and block["tool_use_id"] not in calls:
                found.append(f"messages[{place}] result-without-call {block['tool_use_id']}")
    return found


def only_results(message: Any) -> bool:
    """Return whether a message contains only tool results."""
    blocks = blocks_of(message)
    return bool(blocks) and all(block.get("type") == "tool_result" for block in blocks)


def hosted_pairs(messages: list[Any]) -> list[str]:
    """Return provider calls without a result before the next user text, and provider results without an earlier call."""
    found: list[str] = []
    waiting: dict[str, int] = {}
    known: set[str] = set()
    for place, message in enumerate(messages):
        if role_at(messages, place) == "user" and not only_results(message):
            found += [f"messages[{at}] server-call-without-result {id}" for id, at in waiting.items()]
            waiting = {}
        for block in blocks_of(message) if role_at(messages, place) == "assistant" else []:
            what, id = str(block.get("type")), repr(block.get("tool_use_id"))
            if what in ("server_tool_use", "mcp_tool_use"):
                waiting[repr(block.get("id"))] = place
                known.add(repr(block.get("id")))
            elif what.endswith("_tool_result"):
                if id not in known:
                    found.append(f"messages[{place}] server-result-without-call")
                waiting.pop(id, None)
            caller = block.get("caller")
            if what == "tool_use" and isinstance(caller, dict) and caller.get("tool_id"):
                if repr(caller["tool_id"]) not in known:
                    found.append(f"messages[{place}] call-without-caller")
    return found
