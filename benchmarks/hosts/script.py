"""The model's script: five tool calls a turn, three of them parallel, then an answer; and the texts.

Nothing is remembered: the reply follows from the request. A user's message holds a marker, ``[[conversation:turn]]``, and each
call an item, ``conversation/turn/round/number``, so that the model knows where it is however the request was shortened.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs

MARKER: Final = re.compile(r"\[\[([\w.-]+):(\d+)\]\]")
ROUNDS: Final = (3, 1, 1)
LONG_ROUNDS: Final = ROUNDS * 5
SPECIALIST: Final = ".s"
"""A part of the names of sub-agents' conversations; they have one turn with more rounds."""
LONG: Final = "long"
"""The beginning of the names of conversations whose turns have more rounds."""
BRIEF: Final = "brief"
"""The beginning of the names of conversations whose turns have one request, and longer messages of the user."""
PINNED: Final = "/0/1/0: "
"""The beginning of a tool result of the first turn, after the conversation's name: the one that cases pin."""
OUTPUT_TOOLS: Final = ("final_result", "Answer")
"""Tools through which frameworks ask for structured output where the format has no option for it."""
WORDS: Final = (
    *("amber", "basket", "carton", "delivery", "east", "fabric", "garden", "harbour", "invoice", "jacket", "kettle"),
    *("ladder", "market", "northern", "order", "paper", "quarter", "rail", "stock", "timber", "unit", "vendor"),
    *("warehouse", "yellow", "zinc", "bottle", "copper", "drawer", "engine", "frame", "glass", "hinge", "iron"),
)

Kind: TypeAlias = Literal["user", "assistant", "calls", "results", "system"]


@attrs.frozen
class Step:
    """One message of a request, whatever its format.

    Args:
        kind: What it is.
        text: Its text.
        items: The ``item`` arguments of its calls.
    """

    kind: Kind
    text: str = ""
    items: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Asked:
    """A request, read.

    Args:
        model: The model's name.
        messages: The messages in their own format, leading system messages aside.
        steps: The same, read.
        tools: The names of the tools.
        characters: Characters of everything that counts.
        schema: The JSON schema of the answer, if one is asked for.
        stream: Whether the reply is streamed.
        include_usage: Whether a stream reports usage.
    """

    model: str
    messages: Sequence[Any]
    steps: Sequence[Step]
    tools: Sequence[str]
    characters: int
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    include_usage: bool = True


@attrs.frozen
class Call:
    """A tool call of the model: its id, its tool and its arguments."""

    id: str
    name: str
    arguments: dict[str, Any]


@attrs.frozen(kw_only=True)
class Reply:
    """An answer of the model: a text or calls, and the tokens that are billed for it.

    Args:
        id: A name for this reply that no other has.
        text: The text.
        calls: The calls.
        signature: The signature or encrypted form of the thought before the calls, where the format has one.
        native: The contents of the provider's own compaction before the text, where the format has one.
        prompt_tokens: Tokens of the request, by the server's count.
        cached_tokens: Those of them that the last request of the conversation began with.
        completion_tokens: Tokens of the reply.
    """

    id: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    signature: str = ""
    native: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


def thought_of(signature: str) -> str:
    """Return the thought that a signature signs."""
    return f"This is what {signature} stands for: {words(signature, 140)}."


def words(about: str, characters: int) -> str:
    """Return a text of about this many characters, always the same for the same subject."""
    source = random.Random(about)
    return " ".join(source.choice(WORDS) for _ in range(characters // 7))


def user_text(conversation: str, turn: int, seed: int = 0) -> str:
    """Return the user's message of a turn."""
    size = 1_000 if conversation.startswith(BRIEF) else 140
    return f"[[{conversation}:{turn}]] What does it cost now? {words(f'{seed} {conversation} {turn}', size)}"


def result_text(item: str, seed: int = 0) -> str:
    """Return the result of a tool for an item: 700 to 1,300 characters."""
    size = random.Random(f"{seed} {item}").randint(700, 1_300)
    return f"{item}: {words(f'{seed} {item}', size)}"


def markers(steps: Sequence[Step]) -> list[tuple[str, int]]:
    """Return the markers in the user's messages, newest first."""
    return [(name, int(turn)) for step in reversed(steps) if step.kind == "user" for name, turn in MARKER.findall(step.text)]


def conversation_of(asked: Asked) -> str:
    """Return the name of the conversation that a request belongs to; empty if it has none."""
    found = markers(asked.steps)
    return found[0][0] if found else ""


def script(asked: Asked, id: str) -> Reply:
    """Return the model's reply to a request: calls until the turn's rounds are done, then an answer.

    Args:
        asked: The request.
        id: A name that no other reply has; the calls' ids begin with it.
    """
    found = markers(asked.steps)
    conversation, turn = found[0] if found else ("", 0)
    rounds = LONG_ROUNDS if SPECIALIST in conversation or conversation.startswith(LONG) else ROUNDS
    if conversation.startswith(BRIEF):
        rounds = ()
    now = _round(asked.steps)
    output = next((name for name in asked.tools if name in OUTPUT_TOOLS), None)
    usual = [name for name in asked.tools if name != output]
    if usual and now < len(rounds):
        items = [f"{conversation}/{turn}/{now}/{number}" for number in range(rounds[now])]
        calls = [Call(f"call_{id}_{n}", _tool(usual, turn, now, n), {"item": item}) for n, item in enumerate(items)]
        return Reply(id=id, calls=tuple(calls))
    answer = f"Turn {turn}: {words(f'{conversation} {turn} answer', 300)}"
    if output is not None:
        return Reply(id=id, calls=(Call(f"call_{id}_0", output, {"text": answer, "euros": turn}),))
    if asked.schema is not None:
        return Reply(id=id, text=json.dumps({"text": answer, "euros": turn}))
    return Reply(id=id, text=answer)


def _tool(names: Sequence[str], turn: int, now: int, number: int) -> str:
    """Return the tool of a call: a specialist in some turns, a tool with approval for some calls, else the price list."""
    if "transfer_to_specialist" in names and now == number == 0 and turn % 5 == 2:
        return "transfer_to_specialist"
    if "ask_specialist" in names and now == 0 and turn % 5 == 2:
        return "ask_specialist"
    if "place_order" in names and (now == 1 or number == 2):
        return "place_order"
    return next((name for name in names if name == "look_up_price"), names[0])


def _round(steps: Sequence[Step]) -> int:
    """Return the number of rounds of calls in this turn: none if the user spoke last, else the number in the newest call."""
    if not steps or steps[-1].kind != "results":
        return 0
    newest = next((step for step in reversed(steps) if step.kind == "calls" and step.items), None)
    numbers = [int(item.split("/")[2]) for item in newest.items if item.count("/") == 3] if newest else []
    return max(numbers, default=-1) + 1
