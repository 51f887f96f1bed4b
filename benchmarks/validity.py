"""Share of compacted conversations that a provider would accept: ours in every format, other packages on chats.

``make bench-validity`` runs it and writes a line and a short table into ``docs/validity.md``. Conversations are those of the
property tests (`tests/support/wires.py`), plain chats made here for the others, and the recorded ones, converted to
each format. An output counts as valid if it breaks no rule that its input did not break; in the table of
others mistral_common's V13 judges beside our rules.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import platform
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compaction import MessageIndex, compact_sync, presets
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.strategies import SlidingWindow, Strategy, Truncation
from compaction.triggers import tokens_exceed
from tests.support.conversion import convert

from .rivals import RIVALS
from .tables import Section, table, written

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validity.md"
FORMATS: tuple[MessageFormat, ...] = (openai_chat, openai_responses, anthropic, gemini, bedrock)
SHARES = (0.5, 0.25)
SECTION = "validity"

Raw = dict[str, Any]
Chats = Sequence[list[Raw]]


# ------------------------------------------------------------------------ conversations


def generated(cases: int) -> dict[MessageFormat, list[list[Raw]]]:
    """Return conversations of each format, drawn as in the property tests."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis.strategies import SearchStrategy

    from compaction.testing import conversations
    from tests.support.wires import (
        anthropic_conversations,
        bedrock_conversations,
        gemini_conversations,
        responses_conversations,
    )

    sources = (
        conversations(pending=True),
        responses_conversations(),
        anthropic_conversations(),
        gemini_conversations(),
        bedrock_conversations(),
    )
    drawing = settings(
        max_examples=cases, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )

    def drawn(source: SearchStrategy[list[Raw]]) -> list[list[Raw]]:
        found: list[list[Raw]] = []

        @drawing
        @given(source)
        def keep(conversation: list[Raw]) -> None:
            found.append(conversation)

        keep()
        return found

    return {format: drawn(source) for format, source in zip(FORMATS, sources, strict=True)}


def recorded(folder: Path, each: int) -> list[list[Raw]]:
    """Return the first conversations of every recorded file."""
    found: list[list[Raw]] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["messages"] for _, line in zip(range(each), lines, strict=False)]
    return found


def chats(cases: int) -> list[list[Raw]]:
    """Return valid plain chats that every package can read: texts, parallel function calls, results in any order."""
    return [_chat(random.Random(seed)) for seed in range(cases)]


def _chat(dice: random.Random) -> list[Raw]:
    chat: list[Raw] = [{"role": "system", "content": "Answer briefly."}] if dice.random() < 0.7 else []
    for turn in range(dice.randint(3, 12)):
        chat.append({"role": "user", "content": f"Question {turn}? " * dice.randint(1, 20)})
        for step in range(dice.choice((0, 1, 1, 2, 4))):
            ids = [f"call_{turn}_{step}_{number}" for number in range(dice.randint(1, 4))]
            calls = [{"id": id, "type": "function", "function": {"name": "look", "arguments": '{"at": "a.py"}'}} for id in ids]
            said = "Let me look." if dice.random() < 0.3 else ""
            chat.append({"role": "assistant", "content": said, "tool_calls": calls})
            results = [
                {"role": "tool", "tool_call_id": id, "content": "a line of output\n" * dice.randint(1, 60)} for id in ids
            ]
            chat += dice.sample(results, len(results))
        if turn % 5 or dice.random() < 0.8:
            chat.append({"role": "assistant", "content": f"Answer {turn}. " * dice.randint(1, 20)})
    return [*chat, {"role": "user", "content": "And now?"}]


# ------------------------------------------------------------------------ verdicts


def stays_valid(before: list[Raw], after: list[Raw], format: MessageFormat) -> bool:
    """Whether the output breaks only rules that the input already broke."""
    return {problem.rule for problem in format.validate(after)} <= {problem.rule for problem in format.validate(before)}


def mistral_takes(messages: Sequence[Raw]) -> bool:
    """Whether mistral_common's V13 rules accept the order and the pairs, without the last answer, which they refuse."""
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
    from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
    from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode

    def read(message: Raw) -> Any:
        if message["role"] == "tool":
            return ToolMessage(content="x", tool_call_id=str(message.get("tool_call_id")))
        if message["role"] in ("system", "developer"):
            return SystemMessage(content="x")
        if message["role"] == "user":
            return UserMessage(content="x")
        calls = [ToolCall(id=str(call["id"]), function=FunctionCall(name="f", arguments="{}")) for call in _calls(message)]
        return AssistantMessage(content="x", tool_calls=calls or None)

    kept = list(messages)
    while kept and kept[-1]["role"] == "assistant" and not _calls(kept[-1]):
        kept.pop()
    try:
        MistralRequestValidatorV13(mode=ValidationMode.serving).validate_messages([read(message) for message in kept])
    except MistralCommonException:
        return False
    return True


def _calls(message: Raw) -> Sequence[Any]:
    return message.get("tool_calls") or ()


def _percent(part: int, whole: int) -> str:
    if not whole:
        return "-"
    return "100 %" if part == whole else f"{min(99.9, 100 * part / whole):.1f} %"


# ------------------------------------------------------------------------ tables


def our_line(groups: Sequence[dict[MessageFormat, Chats]], strategies: Sequence[Strategy]) -> str:
    """Return a line with the number of valid outputs of all strategies in all formats, and of changed ones."""
    fine = changed = whole = 0
    for strategy in strategies:
        for format, messages in [(of, each) for group in groups for of in FORMATS for each in group[of]]:
            left = compact_sync(messages, strategy, counter="chars/4", format=format).messages
            valid = stays_valid(messages, left, format)
            if not valid:
                _say(f"broken by {strategy!r}, {format.name}: {json.dumps(messages)}")
            fine, changed, whole = fine + valid, changed + (left != messages), whole + 1
        _say(repr(strategy))
    return (
        f"{len(strategies)} strategies and presets, {len(FORMATS)} formats: {fine:,} of {whole:,} outputs are valid; "
        f"{changed:,} differ from their input."
    )


def fitted(name: str, fit: Callable[[list[Raw], int], list[Raw]], groups: Sequence[Chats]) -> list[str]:
    """Return the row of one package: valid by our rules and by V13 in each group; too large, and raised, in all."""
    cells = [name]
    over = failed = 0
    for group in groups:
        ours = theirs = 0
        for messages in group:
            tokens = MessageIndex(messages, counter="chars/4", format=openai_chat).tokens
            for share in SHARES:
                try:
                    left = fit([dict(message) for message in messages], int(tokens * share))
                except Exception:
                    failed += 1
                    continue
                ours += bool(left) and stays_valid(messages, left, openai_chat)
                theirs += bool(left) and mistral_takes(left)
                over += MessageIndex(left, counter="chars/4", format=openai_chat).tokens > 1.1 * tokens * share
        whole = len(SHARES) * len(group)
        cells.append(f"{_percent(ours, whole)} / {_percent(theirs, whole)}")
    _say(name)
    return [*cells, f"{over:,}", f"{failed:,}"]


def _ours(make: Callable[[int], Strategy]) -> Callable[[list[Raw], int], list[Raw]]:
    return lambda messages, budget: compact_sync(messages, make(budget), counter="chars/4").messages


OURS: dict[str, Callable[[int], Strategy]] = {
    "**compaction**, `presets.token_budget`": presets.token_budget,
    "**compaction**, `presets.context_window`": presets.context_window,
    "**compaction**, `Truncation`": lambda budget: Truncation(trigger=tokens_exceed(budget), keep=SlidingWindow().keep),
}


def their_rows(groups: Sequence[Chats]) -> Iterator[list[str]]:
    """Yield the rows of our strategies, then those of the other installed packages."""
    for name, make in OURS.items():
        yield fitted(name, _ours(make), groups)
    for rival in RIVALS:
        if rival.version is None:
            why = f"not run: it asks for {rival.wants}" if rival.wants else "not installed"
            yield [f"{rival.package}, {rival.name}: {why}", *["-"] * (len(groups) + 2)]
        else:
            yield fitted(f"{rival.package} {rival.version}, {rival.name}", rival.fit, groups)


def _say(what: str) -> None:
    print(what, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="generated conversations of each kind")
    parser.add_argument("--each", type=int, default=5, help="recorded conversations of each file")
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "dev")
    arguments = parser.parse_args()
    sys.path.append(str(ROOT))
    logging.disable(logging.WARNING)
    from tests.support.wires import STRATEGIES

    logs = recorded(arguments.corpus, arguments.each)
    of_logs = {format: [convert(chat, to=format, format=openai_chat) for chat in logs] for format in FORMATS}
    ours = our_line([generated(arguments.cases), of_logs], STRATEGIES)
    valid_logs = [chat for chat in logs if not openai_chat.validate(chat)]
    head = ["package, strategy", "generated", "recorded", "over budget", "raised"]
    theirs = table(head, their_rows([chats(arguments.cases), valid_logs]))
    made = f"Made by `make bench-validity` on {datetime.now(UTC).date()}, with Python {platform.python_version()}."
    PAGE.write_text(
        written(PAGE.read_text(encoding="utf-8"), [Section(SECTION, ("", ours, "", *theirs, "", made, ""))]), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
