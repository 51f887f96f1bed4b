"""The reading of one message: everything in it that a summary may need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from ...messages import Message, TextPart, ToolCallPart, ToolResultPart
from .actions import Action, action_of, argument_values, result_text, unwrapped
from .facts import FactSource, facts_in, is_telling
from .kinds import Statement
from .passages import Passage, passages
from .sentences import READ_CHARS, both_ends
from .statements import SYSTEM, assistant_statements, speaker_of, user_statements
from .voices import Voice, is_output

Redact: TypeAlias = Callable[[str], str]  # removes from a text what must not be shown; `str` if nothing is removed

_VALUE_CHARS: Final = 80
_REQUEST_CHARS: Final = 2_000
_DEMONSTRATION_CHARS: Final = 2_000  # of a message that may show work
_PRINTED_SHARE: Final = 0.25  # of such a message
# the end of the name of a message that multi-agent frameworks send for a program: "ComputerTerminal", "code_executor_agent"
_MACHINE: Final = re.compile(
    r"(?i:(?:terminal|executor|observation|environment|tool|function|computer)s?"
    r"[\W_\d]{0,4}(?:agents?|outputs?|results?|responses?)?[\W_\d]{0,8}\Z)"
)


@attrs.frozen
class Reading:
    """The parts of a message that the digest uses."""

    source: FactSource  # who said it; what a program put into a user message counts as a result
    text: str  # the beginning of the words
    statements: tuple[Statement, ...]  # the statements of the user or of an instruction, or the decisions of the assistant
    # each fact of its texts, with the bits of its `FactSource`s: the garbage collector does not track a dict of ints
    facts: dict[str, int]
    calls: tuple[Action, ...]
    results: tuple[ToolResultPart, ...]
    found_by: dict[str, str]  # the id of the call whose result has a fact, for the facts of results
    unread: int = 0  # how many of its texts were so long that only both ends were read
    shows_work: bool = False  # whether it is a user message that `shows_work`


def read_message(message: Message, redact: Redact = str) -> Reading:
    """Return the reading of a message; O(characters)."""
    text = _text(message)
    unread = sum(len(each) > READ_CHARS for each in (text, *(result.text for result in message.tool_results())))
    text = redact(both_ends(text))
    source = _source(message, text)
    facts = dict.fromkeys(facts_in(text), source.value)
    calls, results, found_by = _exchanges(message, facts, redact)
    spoken = [*passages(text)] if source is FactSource.USER or message.is_system else []
    is_assistant = source is FactSource.ASSISTANT
    statements = tuple(assistant_statements(text) if is_assistant else user_statements(spoken, of_system=message.is_system))
    if spoken and (speaker := SYSTEM if message.is_system else speaker_of(message)):
        statements = tuple([attrs.evolve(each, by=each.by or speaker) for each in statements])
    is_work = not message.is_system and _shows_work(text, spoken)
    return Reading(source, text[:_REQUEST_CHARS], statements, facts, tuple(calls), tuple(results), found_by, unread, is_work)


def shows_work(text: str) -> bool:
    r"""Return whether a text is long and in good part what programs printed, as a demonstration is; O(characters).

    >>> shows_work("Never touch prod.db.\n" * 200), shows_work("Look:\n" + "2026-01-03 10:11:12 ERROR no disk\n" * 200)
    (False, True)
    """
    return len(text) >= _DEMONSTRATION_CHARS and _shows_work(text, [*passages(both_ends(text))])


def _shows_work(text: str, spoken: Sequence[Passage]) -> bool:
    printed = sum(len(each.text) for each in spoken if each.voice is Voice.PROGRAM)
    return len(text) >= _DEMONSTRATION_CHARS and printed > _PRINTED_SHARE * len(text)


def read_facts(message: Message, redact: Redact = str) -> dict[str, int]:
    """Return the facts of a message, those of its `read_message`; O(characters), but a fraction of the time."""
    text = redact(both_ends(_text(message)))
    facts = dict.fromkeys(facts_in(text), _source(message, text).value)
    _exchanges(message, facts, redact)
    return facts


def _text(message: Message) -> str:
    return "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])


def _exchanges(
    message: Message, facts: dict[str, int], redact: Redact
) -> tuple[list[Action], list[ToolResultPart], dict[str, str]]:
    """Return the calls and the results of a message, with the call of each fact in a result; add all facts to ``facts``."""
    calls: list[Action] = []
    results: list[ToolResultPart] = []
    found_by: dict[str, str] = {}
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            values = [redact(both_ends(value)) for value in argument_values(part.arguments)]
            calls.append(action_of(part, values, redact))
            _add(facts, facts_in("\n".join(values)), FactSource.ASSISTANT)
            _add(facts, filter(_is_short, values), FactSource.ASSISTANT)
        elif isinstance(part, ToolResultPart):
            result = redact(both_ends(part.text))
            results.append(unwrapped(part if result is part.text else attrs.evolve(part, text=result)))
            found = facts_in(result_text(results[-1].text))
            found_by.update(dict.fromkeys(found, part.call_id))
            _add(facts, found, FactSource.RESULT)
    return calls, results, found_by


def _source(message: Message, text: str) -> FactSource:
    if message.role == "assistant":
        return FactSource.ASSISTANT
    machine = _MACHINE.search(message.name or "") or is_output(text)
    return FactSource.RESULT if machine or message.role != "user" else FactSource.USER


def _add(facts: dict[str, int], more: Iterable[str], source: FactSource) -> None:
    bits = source.value
    for fact in more:
        facts[fact] = facts.get(fact, 0) | bits


def _is_short(value: str) -> bool:
    return 1 < len(value) <= _VALUE_CHARS and "\n" not in value and '"' not in value and is_telling(value)
