"""Chat templates, with which local servers write prompts, accept the lists that compaction returns.

The templates, in ``templates``, are written for these tests. They accept and refuse what those of three model families do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import compact_sync
from compaction.formats import FORMATS, MessageFormat, openai_chat
from compaction.strategies import Strategy
from tests.support.conversion import convert
from tests.support.wires import STRATEGIES, each_of, valid_conversation

sandbox = pytest.importorskip("jinja2.sandbox", reason="jinja2 is not installed")

Raw = dict[str, Any]


def refused(text: str) -> NoReturn:
    raise ValueError(text)


ENVIRONMENT = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.globals["raise_exception"] = refused
ENVIRONMENT.filters["tojson"] = lambda value: json.dumps(value, default=str)
FOLDER = Path(__file__).with_name("templates")
WORDS = (FOLDER / "words.jinja").read_text("utf-8")
NAMES = ("qwen", "llama", "mistral")
TEMPLATES = {name: ENVIRONMENT.from_string(WORDS + (FOLDER / f"{name}.jinja").read_text("utf-8")) for name in NAMES}


@pytest.mark.parametrize("format", FORMATS, ids=repr)
@each_of(STRATEGIES)
@given(data=st.data())
def test_every_template_renders_what_is_left(
    format: MessageFormat, strategies: Sequence[Strategy], data: st.DataObject
) -> None:
    """Written as chat completions, it makes a prompt in which every result and call that is left is to be seen."""
    messages = data.draw(valid_conversation(format))
    for strategy in strategies:
        left = compact_sync(messages, strategy, counter="chars/4", format=format).messages
        chat = convert(left, to=openai_chat, format=format)
        calls = sum(len(message.get("tool_calls") or ()) for message in chat)
        results = sum(message["role"] == "tool" for message in chat)
        strict = not format.validate(left) and not any("function_call" in message for message in chat)
        shown = {name: template.render(messages=chat, strict=strict) for name, template in TEMPLATES.items()}
        assert shown["qwen"].count("<tool_call>") == calls
        assert shown["mistral"].count("[TOOL_RESULTS]") == results


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("llama", [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "1", "content": "r"}]),
        ("mistral", [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "1", "content": "r"}]),
        ("qwen", [{"role": "critic", "content": "q"}]),
    ],
)
def test_the_templates_do_refuse(name: str, messages: list[Raw]) -> None:
    with pytest.raises(ValueError, match=r"a tool answers|a result answers|unexpected role"):
        TEMPLATES[name].render(messages=messages, strict=True)
