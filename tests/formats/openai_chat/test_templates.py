"""Chat templates, with which local servers write prompts, accept the lists that compaction returns.

The templates are written for these tests. They accept and refuse what those of three model families do.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction import compact_sync
from compaction.formats import FORMATS, MessageFormat, openai_chat
from compaction.strategies import Strategy
from tests.support.conversion import convert
from tests.support.wires import (
    STRATEGIES,
    valid_conversation,
)

sandbox = pytest.importorskip("jinja2.sandbox", reason="jinja2 is not installed")

Raw = dict[str, Any]

WORDS = """
{%- macro words(content) -%}
  {%- if content is string -%}{{ content }}
  {%- elif content -%}
    {%- for part in content -%}
      {%- if part is string -%}{{ part }}
      {%- elif part.type == 'text' -%}{{ part.text }}
      {%- else -%}<{{ part.type }}>{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- macro call(each) -%}
  {%- if each.type == 'custom' -%}{{ {'name': each.custom.name, 'arguments': each.custom.input} | tojson }}
  {%- else -%}{{ {'name': each.function.name, 'arguments': each.function.arguments} | tojson }}{%- endif -%}
{%- endmacro -%}
"""

QWEN = (
    WORDS
    + """
{%- for message in messages -%}
  {%- if message.role in ('system', 'developer', 'user') -%}
    <|im_start|>{{ 'user' if message.role == 'user' else 'system' }}\n{{ words(message.content) }}<|im_end|>\n
  {%- elif message.role == 'assistant' -%}
    <|im_start|>assistant\n
    {%- if message.reasoning_content -%}<think>{{ message.reasoning_content }}</think>{%- endif -%}
    {{ words(message.content) }}
    {%- for each in message.tool_calls or [] -%}<tool_call>{{ call(each) }}</tool_call>{%- endfor -%}
    <|im_end|>\n
  {%- elif message.role in ('tool', 'function') -%}
    {%- if loop.first or loop.previtem.role not in ('tool', 'function') -%}<|im_start|>user{%- endif -%}
    <tool_response>{{ words(message.content) }}</tool_response>
    {%- if loop.last or loop.nextitem.role not in ('tool', 'function') -%}<|im_end|>\n{%- endif -%}
  {%- else -%}{{ raise_exception('unexpected role ' ~ message.role) }}{%- endif -%}
{%- endfor -%}
<|im_start|>assistant\n
"""
)

LLAMA = (
    WORDS
    + """
{%- set open = namespace(calls=0) -%}
<|begin_of_text|>
{%- for message in messages -%}
  {%- if message.role in ('tool', 'function') -%}
    {%- if open.calls == 0 -%}{{ raise_exception('a tool answers without having been called') }}{%- endif -%}
    {%- set open.calls = open.calls - 1 -%}
    <|start_header_id|>ipython<|end_header_id|>{{ words(message.content) }}<|eot_id|>
  {%- else -%}
    {%- if open.calls > 0 and strict -%}{{ raise_exception('a call was not answered') }}{%- endif -%}
    {%- set open.calls = 0 -%}
    <|start_header_id|>{{ message.role }}<|end_header_id|>{{ words(message.content) }}
    {%- for each in message.tool_calls or [] -%}{{ call(each) }}{%- set open.calls = open.calls + 1 -%}{%- endfor -%}
    {%- if message.function_call -%}{{ message.function_call | tojson }}{%- set open.calls = 1 -%}{%- endif -%}
    <|eot_id|>
  {%- endif -%}
{%- endfor -%}
"""
)

MISTRAL = (
    WORDS
    + """
{%- set seen = namespace(ids=[]) -%}
<s>
{%- for message in messages -%}
  {%- if message.role in ('system', 'developer') -%}[SYSTEM_PROMPT]{{ words(message.content) }}[/SYSTEM_PROMPT]
  {%- elif message.role == 'user' -%}[INST]{{ words(message.content) }}[/INST]
  {%- elif message.role == 'assistant' -%}
    {{ words(message.content) }}
    {%- set seen.ids = [] -%}
    {%- for each in message.tool_calls or [] -%}
      {%- if not each.id -%}{{ raise_exception('a call needs an id') }}{%- endif -%}
      {%- set seen.ids = seen.ids + [each.id] -%}
      [TOOL_CALLS]{{ call(each) }}[CALL_ID]{{ each.id }}
    {%- endfor -%}</s>
  {%- elif message.role == 'tool' -%}
    {%- if message.tool_call_id not in seen.ids -%}{{ raise_exception('a result answers no call before it') }}{%- endif -%}
    [TOOL_RESULTS]{{ words(message.content) }}[/TOOL_RESULTS]
  {%- elif message.role != 'function' -%}{{ raise_exception('only these roles are supported') }}{%- endif -%}
{%- endfor -%}
"""
)


def refused(text: str) -> NoReturn:
    """Raise the error with which a template refuses a list."""
    raise ValueError(text)


ENVIRONMENT = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.globals["raise_exception"] = refused
ENVIRONMENT.filters["tojson"] = lambda value: json.dumps(value, default=str)
TEMPLATES = {name: ENVIRONMENT.from_string(text) for name, text in [("qwen", QWEN), ("llama", LLAMA), ("mistral", MISTRAL)]}


@pytest.mark.parametrize("format", FORMATS, ids=repr)
@settings(max_examples=max(60, settings.default.max_examples))
@given(data=st.data(), strategy=st.sampled_from(STRATEGIES))
def test_every_template_renders_what_is_left(format: MessageFormat, data: st.DataObject, strategy: Strategy) -> None:
    """Written as chat completions, it makes a prompt in which every result and call that is left is to be seen."""
    messages = data.draw(valid_conversation(format))
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
    """The templates refuse results without calls and unknown roles."""
    with pytest.raises(ValueError, match=r"a tool answers|a result answers|unexpected role"):
        TEMPLATES[name].render(messages=messages, strict=True)
