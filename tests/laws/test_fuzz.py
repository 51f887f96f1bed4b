"""Any input in any format gives a result or a typed error, never a crash or an endless loop.

The inputs and most checks are in ``tests/support/fuzzed.py``; ``make soak`` tries more inputs with any seed, each under every
strategy. Reading, validating and repairing are in ``tests/formats/test_repairing.py``.
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from compaction import compact_sync, repair, validate
from compaction.cli.app import app
from compaction.errors import InputError
from compaction.formats import FORMATS, MessageFormat, detect
from tests.support.conversion import convert
from tests.support.fuzzed import EVERY_STRATEGY, check_input
from tests.support.limits import examples
from tests.support.wires import SOURCES, STRATEGIES, junk, wrecked

every_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])

JUNK = st.lists(junk(st.just({"role": "user", "content": "hi"})), max_size=5)


@every_format
@examples(20)
@given(data=st.data(), random=st.randoms(use_true_random=True))
def test_all_that_is_tried_with_an_input(format: MessageFormat, data: st.DataObject, random: Random) -> None:
    """Compacted by two strategies, in a session and an index that follow another list, stored, repaired and converted."""
    strategies = data.draw(st.lists(st.sampled_from(EVERY_STRATEGY), min_size=2, max_size=2))
    check_input(format, data.draw(wrecked(SOURCES[format.name])), random, strategies)


@given(messages=JUNK, to=st.sampled_from(FORMATS))
def test_detecting_and_converting(messages: list[Any], to: MessageFormat) -> None:
    """A format and a conversion, or an `InputError`."""
    for take in (detect, validate, repair, partial(convert, to=to)):
        with contextlib.suppress(InputError):
            take(messages)


LINES = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode).filter(bool),
    (JUNK | st.sampled_from(sorted(SOURCES)).flatmap(SOURCES.__getitem__)).map(
        lambda value: json.dumps(value, default=repr).encode()
    ),
)


@given(lines=st.lists(LINES, max_size=3), command=st.sampled_from(["validate", "repair", "compact", "inspect"]))
def test_the_command_line(lines: list[bytes], command: str) -> None:
    """Done, a problem found, or input that cannot be used: never a defect of the program."""
    options = ["--budget", "200", "--counter", "chars/4"] if command == "compact" else []
    options += ["--counter", "chars/4"] if command == "inspect" else []
    done = CliRunner().invoke(app, [command, "-", *options], input=b"\n".join(lines))
    assert done.exit_code in (0, 1, 2), done.output


ASK = {"role": "user", "content": "q"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}
CALLS = [{"id": str(n), "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(10_000)]
TEXT = {"type": "text", "text": "x"}

BAD: list[tuple[str, str, list[Any], set[str]]] = [
    ("ids used again in a later turn", "anthropic", [ASK, CALL, RESULT, ASK, CALL, RESULT], {"duplicate-call-id"}),
    ("a result before its call", "anthropic", [ASK, RESULT, CALL], {"pending-call", "result-without-call"}),
    ("10,000 parts", "anthropic", [{"role": "user", "content": [TEXT] * 10_000}], set()),
    ("10,000 parts", "gemini", [{"role": "user", "parts": [{"text": "x"}] * 10_000}], set()),
    ("10,000 parts", "openai-responses", [{"role": "user", "content": [{**TEXT, "type": "input_text"}] * 10_000}], set()),
    ("10,000 parts", "bedrock", [{"role": "user", "content": [{"text": "x"}] * 10_000}], set()),
    ("10,000 calls", "openai-chat", [{"role": "assistant", "content": None, "tool_calls": CALLS}], {"pending-call"}),
    ("messages of another format", "gemini", [ASK, CALL, RESULT], {"unknown-role", "no-parts"}),
    ("messages of another format", "bedrock", [ASK, CALL, RESULT], {"malformed-content", "malformed-block"}),
    ("messages of another format", "openai-chat", [ASK, CALL, RESULT], {"part-not-allowed"}),
]


@pytest.mark.parametrize(
    ("format", "messages", "rules"), [each[1:] for each in BAD], ids=[f"{name}, {format}" for name, format, *_ in BAD]
)
def test_bad_input_by_name(format: str, messages: list[Any], rules: set[str]) -> None:
    """`validate` finds exactly the expected broken rules in each bad list, and compaction adds none and raises nothing."""
    assert {problem.rule for problem in validate(messages, format=format)} == rules
    for strategy in STRATEGIES[::4]:
        done = compact_sync(messages, strategy, counter="chars/4", format=format)
        assert {problem.rule for problem in validate(done.messages, format=format)} <= rules
    assert repair(messages, format=format).messages is not messages
