"""Tool results report whether the tool failed, where their format marks failure."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses


def block(**fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "noon", **fields}]}


def response(**fields: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": "now", "response": fields}}]}


def converse(**fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "noon"}], **fields}}]}


def shell(*outcomes: Any) -> dict[str, Any]:
    """Return the output of a shell, with one chunk for each outcome."""
    chunks = [{"stdout": "noon", "stderr": "", "outcome": outcome} for outcome in outcomes]
    return {"type": "shell_call_output", "call_id": "a", "output": chunks}


def exited(code: int) -> dict[str, Any]:
    return {"type": "exit", "exit_code": code}


def patch(status: Any) -> dict[str, Any]:
    return {"type": "apply_patch_call_output", "call_id": "a", "status": status, "output": "noon"}


@pytest.mark.parametrize(
    ("format", "raw", "failed"),
    [
        (openai_chat, {"role": "tool", "tool_call_id": "a", "content": "Error: no clock"}, None),
        (anthropic, block(), None),
        (anthropic, block(is_error=True), True),
        (anthropic, block(is_error=False), False),
        (anthropic, block(is_error="yes"), None),
        (anthropic, block(is_error=True, content=[{"type": "text", "text": "no clock"}]), True),
        (bedrock, converse(), None),
        (bedrock, converse(status="error"), True),
        (bedrock, converse(status="success"), False),
        (bedrock, converse(status="odd"), None),
        (gemini, response(output="noon"), None),
        (gemini, response(error="no clock"), True),
        (gemini, response(error={"code": 5}, hint="buy one"), True),
        (gemini, response(error=None, result="noon"), None),
        (openai_responses, {"type": "function_call_output", "call_id": "a", "output": "", "status": "incomplete"}, None),
        (openai_responses, patch("failed"), True),
        (openai_responses, patch("completed"), False),
        (openai_responses, patch(["failed"]), None),
        (openai_responses, shell(exited(0), exited(0)), False),
        (openai_responses, shell(exited(0), exited(2)), True),
        (openai_responses, shell({"type": "timeout"}), True),
        (openai_responses, shell(exited(0), None), None),
        (openai_responses, shell(), None),
        (openai_responses, {"type": "shell_call_output", "call_id": "a", "output": "noon"}, None),
    ],
    ids=str,
)
def test_a_result_says_whether_the_tool_failed(format: MessageFormat, raw: dict[str, Any], failed: bool | None) -> None:
    """``failed`` is read from the format's own field, and is ``None`` without one; the text is not searched for errors.

    It is not written: changing it in a part keeps the field on the wire.
    """
    message = format.read(raw)
    [result] = message.tool_results()
    assert result.failed is failed
    if failed and format is not gemini and raw.get("type") != "shell_call_output":  # there the text itself says so
        changed = message.evolve(parts=[attrs.evolve(result, text="later", failed=False)])
        assert ([each.failed for each in changed.tool_results()], changed.text) == ([True], "later")
