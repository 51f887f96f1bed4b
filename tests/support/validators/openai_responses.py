"""A second implementation of the Responses rules, in plain loops that share nothing with the package."""

from __future__ import annotations

from typing import Any

STRINGS = {"function_call": ("name", "arguments"), "custom_tool_call": ("name", "input"), "compaction": ("encrypted_content",)}
ANSWERED = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "program": "program_output",
}
OF_OTHERS = ("text", "image_url", "file", "tool_use", "tool_result", "thinking", "redacted_thinking")  # parts of other formats
OF_THE_MODEL = ("program", "mcp_approval_request", "mcp_list_tools", "item_reference")

AFTER_CALLS = ("reasoning", "mcp_approval_response", *ANSWERED.values())  # items after which an output may still come


def violations(messages: list[Any]) -> list[str]:
    """Return the violations that OpenAI would refuse, each as its place and its rule."""
    if not messages:
        return ["messages no-messages"]
    found: list[str] = []
    seen: list[Any] = []
    for place, item in enumerate(messages):
        found += [f"messages[{place}] {rule}" for rule in alone(item)]
        if isinstance(item, dict) and item.get("id") and item.get("type") != "item_reference":
            if item["id"] in seen:
                found.append(f"messages[{place}] duplicate-item-id")
            seen.append(item["id"])
        if kind(item) == "reasoning" and not led_to_something(messages, place):
            found.append(f"messages[{place}] reasoning-without-item")
    return found + pairs(messages)


def kind(item: Any) -> Any:
    """Return the type of an item; an item with a role and no type is a message."""
    if not isinstance(item, dict):
        return None
    if item.get("type") is None and item.get("role") is not None:
        return "message"
    return item.get("type") or None


def alone(item: Any) -> list[str]:
    """Return the rules that one item breaks, regardless of its neighbours."""
    if not isinstance(item, dict):
        return ["unreadable-message"]
    what = kind(item)
    if not isinstance(what, str):
        return ["missing-type"]
    if what == "message":
        if item.get("role") not in ("user", "assistant", "system", "developer"):
            return ["unknown-role"]
        return words_alone(item.get("content"), assistant=item["role"] == "assistant")
    if what in ("function_call_output", "custom_tool_call_output"):
        return (["result-without-id"] if not item.get("call_id") else []) + words_alone(item.get("output"), assistant=False)
    broken: list[str] = []
    if any(not isinstance(item.get(name), str) for name in STRINGS.get(what, ())):
        broken.append("malformed-item")
    if what == "reasoning" and not isinstance(item.get("summary"), list):
        broken.append("malformed-item")
    if what in ANSWERED and not item.get("call_id"):
        broken.append("call-without-id")
    if what in ANSWERED.values() and not item.get("call_id"):
        broken.append("result-without-id")
    return broken


def words_alone(content: Any, *, assistant: bool) -> list[str]:
    """Return the rules that a content breaks, which is a text or a list of parts."""
    if isinstance(content, str):
        return []
    if not isinstance(content, list):
        return ["malformed-content"]
    broken: list[str] = []
    for part in content:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            broken.append("malformed-part")
        elif part["type"] in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            broken.append("malformed-part")
        elif part["type"] in OF_OTHERS or (assistant and part["type"].startswith("input_")):
            broken.append("part-not-allowed")
        elif not assistant and part["type"] in ("output_text", "refusal"):
            broken.append("part-not-allowed")
    return broken


def led_to_something(items: list[Any], place: int) -> bool:
    """Return whether an item of the same answer follows this reasoning, possibly after more reasoning."""
    after = place + 1
    while after < len(items) and kind(items[after]) == "reasoning":
        after += 1
    return after < len(items) and of_the_model(items[after])


def of_the_model(item: Any) -> bool:
    """Return whether an item is a message or a call of the model."""
    what = kind(item)
    if what == "message":
        return bool(item.get("role") == "assistant")
    return isinstance(what, str) and (what.endswith("_call") or what in OF_THE_MODEL)


def pairs(items: list[Any]) -> list[str]:
    """Return calls without an output, outputs without a call, and calls of programs that are not running."""
    found: list[str] = []
    waiting: list[tuple[str, int]] = []
    ended: set[str] = set()
    asked: list[Any] = []
    references = False
    for place, item in enumerate(items):
        what, id = kind(item), repr(item.get("call_id")) if isinstance(item, dict) else ""
        if what == "item_reference":
            references = True
        if not isinstance(what, str) or not isinstance(item, dict):
            continue
        if what == "mcp_approval_request":
            asked.append(item.get("id"))
        elif what == "mcp_approval_response":
            if item.get("approval_request_id") in asked:
                asked.remove(item.get("approval_request_id"))
            elif not references:
                found.append(f"messages[{place}] result-without-call")
        caller = item.get("caller")
        if what in ANSWERED and isinstance(caller, dict) and caller.get("type") == "program":
            running = [each for each, at in waiting if kind(items[at]) == "program"]
            if repr(caller.get("caller_id")) not in running and not references:
                found.append(f"messages[{place}] call-without-program")
        if what in ANSWERED and item.get("call_id"):
            if id in dict(waiting):
                found.append(f"messages[{place}] duplicate-call-id")
            waiting.append((id, place))
        elif what in ANSWERED.values() and item.get("call_id"):
            if id in dict(waiting):
                waiting.remove((id, dict(waiting)[id]))
                ended.add(id)
            elif id in ended:
                found.append(f"messages[{place}] duplicate-result")
            elif not references:
                found.append(f"messages[{place}] result-without-call")
    for id, place in waiting:
        rest = items[place + 1 :]
        only = all(of_the_model(item) or kind(item) in AFTER_CALLS for item in rest)
        found.append(f"messages[{place}] {'pending-call' if only else 'call-without-result'} {id}")
    return found
