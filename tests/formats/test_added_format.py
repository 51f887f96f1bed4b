"""A wire format added by the steps in CONTRIBUTING: the code of one folder and one entry in the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

from compaction import MessageIndex, Rewrite
from compaction.formats import FORMATS, MessageFormat, Problem, Repair, detect, repair, resolve, validate
from compaction.formats.pairing import NOT_RECORDED, Fields, Finding, Pairing, Slot
from compaction.formats.rulebook import Rule, RuleBook, WireFormat
from compaction.messages import Message, Part, TextPart, ToolCallPart, ToolResultPart
from compaction.strategies import Strategy
from compaction.testing import agent_session, check_strategy
from tests.support.wires import STRATEGIES

ROLES = {"human": "user", "bot": "assistant", "boss": "system", "tool": "tool"}


def calls_of(fields: Fields) -> Iterator[Slot]:
    for place, call in enumerate(fields.get("calls", ())):
        yield Slot(("calls", place), call["id"], ("calls", place, "id"))


def results_of(fields: Fields) -> Iterator[Slot]:
    if fields.get("who") == "tool":
        yield Slot((), fields.get("for", ""), ("for",))


def message_problems(fields: Fields) -> Iterator[Finding]:
    if not fields.get("say") and not fields.get("calls"):
        yield ("say",), "silent", "it has neither words nor calls"


class Acme(WireFormat):
    """Messages such as ``{"who": "bot", "say": "", "calls": [{"id": "c1", "do": "read"}]}``."""

    name = "acme"
    shape = "a message is a mapping with 'who' and 'say'"
    book = RuleBook(
        rules={
            "no-messages": Rule("send at least one message"),
            "unreadable-message": Rule("pass dictionaries"),
            "silent": Rule("leave it out"),
            "call-without-id": Rule("give the call an id"),
            "call-without-result": Rule("add its result", "pair"),
            "pending-call": Rule("add the result before sending it"),
            "result-without-id": Rule("set 'for' to the id of the call"),
            "result-without-call": Rule("leave it out", "pair"),
            "duplicate-result": Rule("keep one result for each call", "pair"),
        },
        pairing=Pairing(
            calls=calls_of,
            results=results_of,
            continues=lambda before, after: after.get("who") == "tool",
            only_results=lambda fields: fields.get("who") == "tool",
            answers=lambda fields: fields.get("who") == "tool",
            stub=lambda call, id: {"who": "tool", "for": id, "say": NOT_RECORDED},
        ),
        message=message_problems,
    )

    def read(self, raw: Any, position: int = 0) -> Message:
        fields = self._fields(raw, position)
        if fields["who"] == "tool":
            return Message("tool", (ToolResultPart(fields.get("for", ""), fields["say"]),), raw, self)
        calls = [ToolCallPart(call["id"], call["do"], "", raw=call) for call in fields.get("calls", ())]
        return Message(ROLES[fields["who"]], (TextPart(fields["say"]), *calls), raw, self)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        fields["say"] = "\n".join(part.text for part in parts if isinstance(part, TextPart | ToolResultPart))
        for result in [part for part in parts if isinstance(part, ToolResultPart)]:
            fields["for"] = result.call_id
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        if calls or "calls" in fields:
            fields["calls"] = [call.raw or {"id": call.id, "do": call.name} for call in calls]

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        results = [part for part in parts if isinstance(part, ToolResultPart)]
        said = [part for part in parts if not isinstance(part, ToolResultPart)]
        made = [self.changed(self.new("tool", ""), [result]) for result in results]
        return [*made, self.changed(self.new(role, ""), said)] if said else made

    def new(self, role: str, text: str) -> Message:
        return self.read({"who": next(who for who, known in ROLES.items() if known == role), "say": text})

    def recognizes(self, fields: Fields) -> bool:
        return "who" in fields and "say" in fields


ACME = Acme()
CALL = {"who": "bot", "say": "", "calls": [{"id": "c1", "do": "read", "trace": 7}]}
TURN = [
    {"who": "human", "say": "Which line fails?"},
    CALL,
    {"who": "tool", "for": "c1", "say": "a line of output\n" * 40},
    {"who": "bot", "say": "The first one. " * 20},
]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the format to the registry that every part of the package reads."""
    monkeypatch.setattr(import_module("compaction.formats.detect"), "FORMATS", (*FORMATS, ACME))


def test_it_is_found() -> None:
    assert (detect(TURN), resolve("acme")) == (ACME, ACME)


def test_its_rules_are_checked_and_repaired() -> None:
    broken = [TURN[0], CALL, TURN[3]]
    [problem] = validate(broken)
    assert (problem.where, problem.rule) == ("messages[1].calls[0]", "call-without-result")
    stub = {"who": "tool", "for": "c1", "say": NOT_RECORDED}
    done = Problem(problem.where, problem.rule, problem.message, "a result was added that says it was not recorded")
    assert repair(broken) == Repair([TURN[0], CALL, stub, TURN[3]], (done,))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=range(len(STRATEGIES)))
def test_every_strategy_keeps_the_laws_in_it(strategy: Strategy) -> None:
    check_strategy(strategy, format=ACME, messages=TURN * 9)
    session = agent_session(40, format="acme")
    assert sum("calls" in raw for raw in session) == sum(raw["who"] == "tool" for raw in session) > 12
    check_strategy(strategy, format="acme", messages=session)


class Minutes(MessageFormat):
    """Minutes of a meeting, ``{"by": ..., "said": ...}``: a format of one's own, as far as a rewrite needs it."""

    name = "minutes"

    def read(self, raw: Any, position: int = 0) -> Message:
        return Message(raw["by"], (TextPart(raw["said"]),), raw, self)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        return self.read({**message.raw, "said": message_text(parts)})

    def new(self, role: str, text: str) -> Message:
        return self.read({"by": role, "said": text})

    def message_problems(self, raw: Any) -> list[Problem]:
        return [] if raw["said"] else [Problem("messages[0]", "empty", "nothing was said", "leave the line out")]

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        return [problem for raw in raws for problem in self.message_problems(raw)]

    def repair(self, raws: Sequence[Any]) -> Repair:
        return Repair([raw for raw in raws if raw["said"]], tuple(self.validate(raws)))


def message_text(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


@pytest.mark.parametrize(("text", "accepted"), [(" ", True), ("", False)])
def test_a_rewrite_is_judged_by_the_documented_contract(text: str, accepted: bool) -> None:
    """A format that defines ``message_problems(self, raw)`` judges any rewrite, one to blanks too, without a ``TypeError``."""
    lines = [{"by": "user", "said": "Shall we start?"}, {"by": "assistant", "said": "Yes."}, {"by": "user", "said": "Then go."}]
    index = MessageIndex(lines, counter="chars/4", format=Minutes())
    group = index.included_groups[1]
    assert index.apply(Rewrite(group, [group.messages[0].evolve(text=text)])) is accepted
