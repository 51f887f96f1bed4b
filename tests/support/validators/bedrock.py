"""A second implementation of the Amazon Bedrock Converse rules, in plain loops that share nothing with the package."""

from __future__ import annotations

import re
from typing import Any

OF_ANSWERS = ("toolUse", "reasoningContent", "citationsContent")
OF_USERS = ("image", "document", "video", "audio", "guardContent", "searchResult")
OF_SYSTEM = ("text", "toolAddition", "toolRemoval", "guardContent", "cachePoint")
IN_RESULTS = ("text", "json", "image", "document", "video", "searchResult")


def violations(messages: list[Any]) -> list[str]:
    """Return the violations that Amazon would refuse, each as its place and its rule."""
    if not messages:
        return ["messages no-messages"]
    found: list[str] = []
    points = 0
    for place, message in enumerate(messages):
        found += [f"messages[{place}] {rule}" for rule in alone(message)]
        points += sum("cachePoint" in block for block in blocks_of(message))
        role, before = role_at(messages, place), role_at(messages, place - 1)
        if role == "system":
            last = place == len(messages) - 1
            if before != "user" or not (last or role_at(messages, place + 1) == "assistant"):
                found.append(f"messages[{place}] misplaced-system")
        elif role == "assistant" and all(role_at(messages, each) == "system" for each in range(place)):
            found.append(f"messages[{place}] starts-with-answer")
        elif role in ("user", "assistant") and before == role:
            found.append(f"messages[{place}] same-role-twice")
    if points > 4:
        found.append("messages too-many-cache-points")
    return found + pairs(messages)


def role_at(messages: list[Any], place: int) -> Any:
    """Return the role of the message at this position, or ``None`` if there is no message."""
    return messages[place].get("role") if 0 <= place < len(messages) and isinstance(messages[place], dict) else None


def blocks_of(message: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message."""
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def bodies(message: Any, kind: str) -> list[dict[str, Any]]:
    """Return the bodies of the blocks of one kind, without calls and results of provider tools, which have a type."""
    held = [block[kind] for block in blocks_of(message) if kind in block]
    return [body for body in held if isinstance(body, dict) and not body.get("type")]


def alone(message: Any) -> list[str]:
    """Return the rules that one message breaks, regardless of its neighbours."""
    if not isinstance(message, dict):
        return ["unreadable-message"]
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        return ["unknown-role"]
    if not isinstance(content, list):
        return ["empty-content"] if content is None else ["malformed-content"]
    if not content:
        return ["empty-content"]
    broken: list[str] = []
    kinds: list[str] = []
    for block in content:
        broken += block_alone(block, role)
        what = next(iter(block), "") if isinstance(block, dict) else ""
        body = block.get(what) if isinstance(block, dict) else None
        ours = isinstance(body, dict) and not body.get("type")
        if what == "cachePoint" and (not kinds or kinds[-1] == "reasoningContent"):
            broken.append("misplaced-cache-point")
        if what in ("text", "citationsContent") and role == "assistant" and "call" in kinds:
            broken.append("text-after-call")
        if what == "reasoningContent" and role == "assistant" and "call" in kinds:
            broken.append("thinking-after-call")
        if what == "toolResult" and role == "user" and ours and any(kind != "result" for kind in kinds):
            broken.append("result-after-text")
        kinds.append({"toolUse": "call", "toolResult": "result"}.get(what, what) if ours else what)
    if "document" in kinds and not ("text" in kinds or "guardContent" in kinds):
        broken.append("document-without-text")
    if role == "assistant" and all(kind in ("reasoningContent", "cachePoint") for kind in kinds):
        broken.append("thinking-alone")
    return broken + ids_alone(message)


def ids_alone(message: Any) -> list[str]:
    """Return the rules about ids that one message breaks."""
    broken: list[str] = []
    for kind, missing, twice in (
        ("toolUse", "call-without-id", "duplicate-call-id"),
        ("toolResult", "result-without-id", "duplicate-result"),
    ):
        ids: list[Any] = []
        for body in bodies(message, kind):
            id = body.get("toolUseId")
            if not id:
                broken.append(missing)
            elif kind == "toolUse" and not (isinstance(id, str) and re.fullmatch("[a-zA-Z0-9_.:-]{1,64}", id)):
                broken.append("malformed-id")
            elif id in ids:
                broken.append(twice)
            ids.append(id)
    return broken


def block_alone(block: Any, role: str) -> list[str]:
    """Return the rules that one block breaks in a message of this role."""
    if not isinstance(block, dict) or len(block) != 1:
        return ["malformed-block"]
    ((what, body),) = block.items()
    if what == "text":
        if not isinstance(body, str):
            return ["malformed-block"]
        return [] if body.strip() else ["empty-text"]
    if not isinstance(body, dict):
        return ["malformed-block"]
    if what == "toolUse" and not (isinstance(body.get("name"), str) and isinstance(body.get("input"), dict)):
        return ["malformed-block"]
    if what in ("image", "document", "video", "audio") and not isinstance(body.get("source"), dict):
        return ["malformed-block"]
    hosted = what == "toolResult" and body.get("type")  # a provider's tool: its result is in the assistant's message
    if (what in OF_ANSWERS and role != "assistant") or (what in OF_USERS and role != "user"):
        return ["block-not-allowed"]
    if (what == "toolResult" and not hosted and role != "user") or (role == "system" and what not in OF_SYSTEM):
        return ["block-not-allowed"]
    return result_alone(body) if what == "toolResult" and not hosted else []


def result_alone(body: dict[str, Any]) -> list[str]:
    """Return the rules that a tool result breaks."""
    content = body.get("content")
    if not isinstance(content, list):
        return ["malformed-block"]
    if not content and body.get("status") == "error":
        return ["empty-error"]
    broken: list[str] = []
    for each in content:
        if not isinstance(each, dict) or len(each) != 1:
            broken.append("malformed-block")
        elif next(iter(each)) not in IN_RESULTS:
            broken.append("block-not-allowed")
        elif "text" in each and not isinstance(each["text"], str):
            broken.append("malformed-block")
        elif "text" in each and not each["text"].strip():
            broken.append("empty-text")
        elif "json" in each and not isinstance(each["json"], dict):
            broken.append("malformed-block")
    return broken


def pairs(messages: list[Any]) -> list[str]:
    """Return calls without a result in the next message, and results without a call in the previous message."""
    found: list[str] = []
    for place, message in enumerate(messages):
        before = messages[place - 1] if role_at(messages, place - 1) == "assistant" else None
        after = messages[place + 1] if role_at(messages, place + 1) == "user" else None
        answers = [body.get("toolUseId") for body in bodies(after, "toolResult")]
        asked = [body.get("toolUseId") for body in bodies(before, "toolUse")]
        only = after is not None and len(blocks_of(after)) == len(answers) > 0
        ends = place + 1 == len(messages) or (place + 2 == len(messages) and only)
        for body in bodies(message, "toolUse") if role_at(messages, place) == "assistant" else []:
            if body.get("toolUseId") and body["toolUseId"] not in answers:
                found.append(f"messages[{place}] {'pending-call' if ends else 'call-without-result'} {body['toolUseId']}")
        for body in bodies(message, "toolResult") if role_at(messages, place) == "user" else []:
            if body.get("toolUseId") and body["toolUseId"] not in asked:
                found.append(f"messages[{place}] result-without-call {body['toolUseId']}")
    return found
