"""A second implementation of the Gemini rules, in plain loops that share nothing with the package."""

from __future__ import annotations

from typing import Any

SNAKE = {
    "text": "text",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
}


def violations(messages: list[Any]) -> list[str]:
    """Return the violations that Google would refuse, each as its place and its rule."""
    if not messages:
        return ["messages no-messages"]
    found: list[str] = []
    for place, content in enumerate(messages):
        found += [f"messages[{place}] {rule}" for rule in alone(content)]
    return found + pairs(messages) + hosted_pairs(messages) + unsigned(messages)


def field(part: Any, name: str) -> Any:
    """Return a field of a part, in camel case or snake case."""
    if not isinstance(part, dict):
        return None
    return part.get(name) if part.get(name) is not None else part.get(SNAKE[name])


def side(content: Any) -> Any:
    """Return the side of a content, ``user`` or ``model``, or ``None`` if its role is unknown."""
    role = content.get("role") if isinstance(content, dict) else 0
    if role is None or role == "function":
        return "user"
    return role if role in ("user", "model") else None


def parts_of(content: Any) -> list[Any]:
    """Return the parts of a content."""
    parts = content.get("parts") if isinstance(content, dict) else None
    return parts if isinstance(parts, list) else []


def named(content: Any, kind: str) -> list[str]:
    """Return the names of the calls or the responses of a content."""
    bodies = [field(part, kind) for part in parts_of(content)]
    return [str(body.get("name")) for body in bodies if isinstance(body, dict)]


def alone(content: Any) -> list[str]:
    """Return the rules that one content breaks, regardless of its neighbours."""
    if not isinstance(content, dict):
        return ["unreadable-message"]
    broken = ["unknown-role"] if side(content) is None else []
    parts = content.get("parts")
    if parts is None or parts == []:
        return [*broken, "no-parts"]
    if not isinstance(parts, list):
        return [*broken, "malformed-content"]
    for part in parts:
        if not isinstance(part, dict):
            broken.append("malformed-part")
            continue
        held = [name for name in SNAKE if field(part, name) is not None]
        signed = part.get("thoughtSignature") or part.get("thought_signature")
        if len(held) > 1 or ("text" in held and not isinstance(part["text"], str)):
            broken.append("malformed-part")
        elif not held or (held == ["text"] and part["text"] == "" and not signed):
            broken.append("empty-part")
        for name, inside in (("functionCall", "args"), ("functionResponse", "response")):
            body = field(part, name)
            if body is None:
                continue
            if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"]:
                broken.append("malformed-part")
            elif not isinstance(body.get(inside), dict) and (inside == "response" or body.get(inside) is not None):
                broken.append("malformed-part")
            if side(content) == ("user" if name == "functionCall" else "model"):
                broken.append("part-not-allowed")
    return broken


def pairs(contents: list[Any]) -> list[str]:
    """Return calls not after the user, calls without a response in the next content, and responses without a call."""
    found: list[str] = []
    for place, content in enumerate(contents):
        before = contents[place - 1] if place else None
        after = contents[place + 1] if place + 1 < len(contents) else None
        if calls := named(content, "functionCall") if side(content) == "model" else []:
            if before is None or side(before) != "user":
                found.append(f"messages[{place}] misplaced-call")
            missing = list(calls)
            for name in named(after, "functionResponse") if side(after) == "user" else []:
                if name in missing:
                    missing.remove(name)
            only = bool(after) and all(field(part, "functionResponse") is not None for part in parts_of(after))
            ends = after is None or (place + 2 == len(contents) and only)
            found += [f"messages[{place}] {'pending-call' if ends else 'call-without-result'} {name}" for name in missing]
        if side(content) == "user":
            asked = named(before, "functionCall") if side(before) == "model" else []
            for name in named(content, "functionResponse"):
                if name in asked:
                    asked.remove(name)
                else:
                    found.append(f"messages[{place}] result-without-call {name}")
    return found


def hosted_pairs(contents: list[Any]) -> list[str]:
    """Return results of provider tools without an earlier call."""
    found: list[str] = []
    calls, code = list[Any](), 0
    for place, content in enumerate(contents):
        for part in parts_of(content):
            call, response = field(part, "toolCall"), field(part, "toolResponse")
            if isinstance(call, dict):
                calls.append(call.get("id"))
            if field(part, "executableCode") is not None:
                code += 1
            if isinstance(response, dict):
                if response.get("id") not in calls:
                    found.append(f"messages[{place}] server-result-without-call")
            if field(part, "codeExecutionResult") is not None:
                if not code:
                    found.append(f"messages[{place}] server-result-without-call")
                code = max(0, code - 1)
    return found


def unsigned(contents: list[Any]) -> list[str]:
    """Return unsigned first calls of the current turn's contents, if anything in the list is signed."""

    def signature(part: Any) -> bool:
        return isinstance(part, dict) and bool(part.get("thoughtSignature") or part.get("thought_signature"))

    if not any(signature(part) for content in contents for part in parts_of(content)):
        return []
    spoke = -1
    for place, content in enumerate(contents):
        words = [part for part in parts_of(content) if isinstance(part, dict) and field(part, "functionResponse") is None]
        if side(content) == "user" and words:
            spoke = place
    found: list[str] = []
    for place in range(spoke + 1, len(contents)):
        calls = [part for part in parts_of(contents[place]) if field(part, "functionCall") is not None]
        if side(contents[place]) == "model" and calls and not signature(calls[0]):
            found.append(f"messages[{place}] unsigned-call")
    return found
