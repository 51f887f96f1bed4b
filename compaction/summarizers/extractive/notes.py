"""The notes for a digest: everything that it may hold, collected from an earlier summary and the messages, in order.

What the earlier summary held is kept apart from what is new, because a digest keeps it before it adds anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from ...index import Grouping, read_mark
from ...messages import Message, Part, TextPart, ToolCallPart, ToolResultPart
from ..sections import Section, read_sections
from .actions import Action, Effect, actions_of, argument_values
from .constraints import stated_constraints
from .facts import FactSource, FactTable, facts_in
from .named_values import NamedValues
from .sentences import CUT, READ_CHARS, both_ends, clipped, prose, sentences
from .statements import decisions_in, finishes, last_sentence, next_steps_in

_REQUEST_CHARS: Final = 2_000
_REQUEST_START: Final = 60
_LINE_CHARS: Final = 400
_WORD: Final = re.compile(r"[^\W_]{2,}")
_VALUE_CHARS: Final = 80
_MACHINE: Final = re.compile(r"terminal|executor|observation|environment|tool|function|computer", re.IGNORECASE)
_OUTPUT: Final = re.compile(
    r"\s*(?:exit ?code:|[\[{]\s*\"(?:observation|tool\w*|function\w*|results?|output|stdout|stderr|exit_?code|status)\")",
    re.IGNORECASE,
)
_LABELLED: Final = re.compile(r"(Paths and links|Names|Numbers|Phrases|Settings|Changed|Read): (.*)", re.DOTALL)
_LISTED: Final = re.compile(r"\"([^\"\n]*)\"|(\S+)")
_BLANK: Final = re.compile(r"\s")
_REQUEST: Final = re.compile(r"(?:First|Then|Latest): (.*)", re.DOTALL)
_TEMPORARY: Final = re.compile(r"(?:Now|Waiting|Announced): |\(\d+ (?:more|texts) ")
_OPEN: Final = (Section.IN_PROGRESS, Section.BLOCKED, Section.NEXT)


def listed(values: Iterable[str]) -> str:
    """Return values in one line that can be read back; blanks between them cost a quarter less than commas.

    >>> listed(["a.py", "John Smith", "1,200"])
    'a.py "John Smith" 1,200'
    """
    return " ".join(f'"{value}"' if _BLANK.search(value) else value for value in values)


def source_and_text(message: Message) -> tuple[FactSource, str]:
    """Return the source and the text of a message; what a program put into a user message counts as a result."""
    mark = read_mark(message)
    if mark is not None:
        return FactSource.ASSISTANT, mark.body
    text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    if message.role == "assistant":
        return FactSource.ASSISTANT, text
    machine = _MACHINE.search(message.name or "") or _OUTPUT.match(text)
    return (FactSource.RESULT if machine or message.role != "user" else FactSource.USER), text


def begins(text: str, cut: str) -> bool:
    r"""Return whether a text begins with another one, possibly clipped; differences in blanks do not count.

    >>> begins("Fix the build\nand the docs", "Fix the build and ...")
    True
    """
    start = " ".join(cut.removesuffix(" ...").removesuffix(CUT).split())
    return bool(start) and " ".join(text[: 2 * len(cut) + _REQUEST_START].split()).startswith(start)


def texts_of(message: Message) -> list[tuple[FactSource, str, Iterable[str]]]:
    """Return each text of a message: its source, the text, and the short arguments of calls, which count as facts."""
    texts: list[tuple[FactSource, str, Iterable[str]]] = [(*source_and_text(message), ())]
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            texts.append((FactSource.RESULT, part.text, ()))
        elif isinstance(part, ToolCallPart):
            values = [value for _, value in argument_values(part.arguments)]
            short = [value for value in values if 1 < len(value) <= _VALUE_CHARS and "\n" not in value and '"' not in value]
            texts.append((FactSource.ASSISTANT, "\n".join(values), short))
    return texts


class ConversationNotes:
    """The contents of an earlier summary and of the messages after it. Holds state: it grows as they are read.

    Args:
        redact: Removes from every text what must not be shown; by default nothing.
        focus: A topic to give most room to, in words.

    Attributes:
        facts: The facts of the messages, and where each was seen.
        requests: The user's messages, in order.
        constraints: The user's constraints, in order.
        actions: The last action of each call, by the call, in the order last made.
        decisions: Sentences that state a decision, in order.
        next_steps: The next steps that the assistant stated last.
        last_words: The assistant's last sentence.
        values: The latest value of each name.
        lines: Lines of the earlier summary that stay as they are, by section.
        files: Files that were read or changed, in the order last used.
        earlier_facts: Facts of the earlier summary.
        earlier_decisions: The number of decisions in the earlier summary.
        unread: The number of texts so long that only both ends were read.
        focused: Facts of messages that mention the focus.
    """

    def __init__(self, redact: Callable[[str], str] | None = None, focus: str | None = None) -> None:
        self.facts = FactTable()
        self.requests: list[str] = []
        self.constraints: list[str] = []
        self.actions: dict[str, Action] = {}
        self.decisions: dict[str, None] = {}
        self.next_steps: list[str] = []
        self.last_words = ""
        self.values = NamedValues()
        self.lines: dict[Section, list[str]] = {}
        self.files: dict[str, Effect] = {}
        self.earlier_facts: dict[str, None] = {}
        self.earlier_decisions = 0
        self.unread = 0
        self.focused: set[str] = set()
        self._earlier_requests = 0
        self._redact = redact
        self._focus = tuple(dict.fromkeys(_WORD.findall((focus or "").casefold())))

    def is_focused(self, text: str) -> bool:
        """Return whether a text mentions the focus."""
        return bool(self._focus) and any(word in text.casefold() for word in self._focus)

    # ---------------------------------------------------------------- an earlier summary

    def read_summary(self, text: str) -> None:
        """Read an earlier summary, ours or a model's; O(characters)."""
        for section, items in read_sections(text if self._redact is None else self._redact(text)).items():
            for item in items:
                self._hold(section, item)

    def _hold(self, section: Section, item: str) -> None:
        labelled = _LABELLED.fullmatch(item)
        if labelled and section in (Section.CONTEXT, Section.FILES):
            self._hold_list(labelled[1], labelled[2])
            return
        self.earlier_facts.update(facts_in(item))
        self.values.note(item, -1)
        request = _REQUEST.fullmatch(item) if section is Section.GOAL else None
        if _TEMPORARY.match(item):
            return
        if request:
            self.requests.append(request[1])
            self._earlier_requests = len(self.requests)
        elif section is Section.CONSTRAINTS:
            self.constraints.append(item)
        elif section is Section.DECISIONS:
            self.decisions[item] = None
            self.earlier_decisions = len(self.decisions)
        elif " -> " in item and section in (Section.DONE, Section.BLOCKED):
            self._note_action(_action_of(item, failed=section is Section.BLOCKED))
        else:
            self.lines.setdefault(section, []).append(clipped(item, _LINE_CHARS))

    def _hold_list(self, label: str, text: str) -> None:
        values = [value for match in _LISTED.finditer(text) if (value := match[1] or match[2])]
        if label == "Settings":
            for name, _, value in (value.partition("=") for value in values):
                self.values.hold(name, value)
            self.earlier_facts.update(facts_in(text))
            return
        self.earlier_facts.update(dict.fromkeys(values))
        if label in ("Changed", "Read"):
            self.files.update(dict.fromkeys(values, Effect.CHANGES if label == "Changed" else Effect.READS))

    # ---------------------------------------------------------------- messages

    def read_messages(self, messages: Sequence[Message]) -> None:
        """Read messages that are not grouped yet, in order."""
        grouping = Grouping()
        for message in messages:
            grouping.add(message)
        for group in grouping.ids:
            self.read_group([messages[ordinal] for ordinal in grouping.ordinals(group)])

    def read_group(self, messages: Iterable[Message]) -> None:
        """Read one group of messages; O(characters)."""
        cleaned = [self._cleaned(message) for message in messages]
        for message in cleaned:
            self._read(message)
        for action in actions_of(cleaned):
            self._note_action(action)

    def _cleaned(self, message: Message) -> Message:
        """Return the message with both ends of long texts only, and redacted; its ``raw`` is not used again."""
        return attrs.evolve(message, parts=tuple([self._cleaned_part(part) for part in message.parts]))

    def _cleaned_part(self, part: Part) -> Part:
        if isinstance(part, ToolCallPart):
            return attrs.evolve(part, arguments=self._cleaned_text(part.arguments))
        if isinstance(part, TextPart | ToolResultPart):
            return attrs.evolve(part, text=self._cleaned_text(part.text))
        return part

    def _cleaned_text(self, text: str) -> str:
        self.unread += len(text) > READ_CHARS
        return both_ends(text) if self._redact is None else self._redact(both_ends(text))

    def _read(self, message: Message) -> None:
        source, text = source_and_text(message)
        texts = texts_of(message)
        facts = self.facts.add(texts)
        if self._focus and any(self.is_focused(each) for _, each, _ in texts):
            self.focused.update(facts)
        if source is FactSource.ASSISTANT and message.name and self.facts.messages == 1 and not self.requests:
            source = FactSource.USER  # in a conversation of agents, the first speaker sets the task
        if read_mark(message) is not None:
            self._read_lines(text)
        elif text.strip() and source is not FactSource.RESULT:
            self._hear(source, text)

    def _read_lines(self, text: str) -> None:
        """Read what a strategy wrote in place of tool calls: a line for each."""
        for line in text.splitlines():
            if " -> " in line:
                self._note_action(_action_of(line, failed=False))

    def _hear(self, source: FactSource, text: str) -> None:
        self.values.note(prose(text), self.facts.messages - 1)
        self.decisions.update(dict.fromkeys(decisions_in(text)))
        if any(self.lines.get(section) for section in _OPEN):
            self._finish(text)
        if source is FactSource.USER:
            self._note_request(clipped(text.strip(), _REQUEST_CHARS))
            self.constraints.extend(stated_constraints(text))
            return
        self.last_words = last_sentence(text)
        self.next_steps = list(next_steps_in(text)) or self.next_steps

    def _finish(self, text: str) -> None:
        """Move what a text says is finished from the open sections of the earlier summary to Done."""
        said = list(sentences(text))
        for section in _OPEN:
            for line in self.lines.get(section, []).copy():
                if any(finishes(sentence, line) for sentence in said):
                    self.lines[section].remove(line)
                    self.lines.setdefault(Section.DONE, []).append(line)

    def _note_request(self, text: str) -> None:
        """Add what the user said; what an earlier digest held of it goes."""
        held = self.requests[: self._earlier_requests]
        for place, request in enumerate(held):
            if begins(text, request):
                del self.requests[place]
                self._earlier_requests -= 1
                break
        self.requests.append(text)

    def _note_action(self, action: Action) -> None:
        self.actions.pop(action.call, None)
        self.actions[action.call] = action
        if action.failed:
            return
        for path in action.paths:
            before = self.files.pop(path, None)
            self.files[path] = Effect.CHANGES if Effect.CHANGES in (before, action.effect) else Effect.READS


def _action_of(line: str, *, failed: bool) -> Action:
    call, _, outcome = line.partition(" -> ")
    return Action(call, outcome, failed, Effect.RUNS, ())
