"""``compaction inspect``: show the groups of a conversation and their tokens."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

from ..errors import InputError
from ..files import FileConversation
from ..index import GroupKind, MessageGroup, MessageIndex, Metrics
from ..tokens import TokenCounter
from .exit_codes import ExitCode, error_context
from .options import AsJson, CounterName, FormatName, Input, find_counter, read_input
from .printing import bar, open_console, percent, print_table, printable, short_location

if TYPE_CHECKING:
    from rich.console import Console

_BAR_WIDTH = 20
_CONTENT_CHARS = 80
_STATES = ("open", "pending", "orphan")


@attrs.frozen
class GroupReport:
    """The report on a group.

    Args:
        id: The ordinal of its first message.
        kind: Its kind.
        turn: The turn it belongs to, if any.
        messages: The number of its messages.
        tokens: The number of its tokens.
        share: Its share of the conversation's tokens.
        tools: The tools it calls.
        states: Those of open, pending and orphan that apply.
        content: Its first words, on one line and safe to print.
    """

    id: int
    kind: str
    turn: int | None
    messages: int
    tokens: int
    share: float
    tools: tuple[str, ...]
    states: tuple[str, ...]
    content: str

    @classmethod
    def of(cls, group: MessageGroup, total: int) -> GroupReport:
        """Return the report on a group of a conversation of ``total`` tokens."""
        return cls(
            id=group.id,
            kind=group.kind.value,
            turn=group.turn,
            messages=len(group.messages),
            tokens=group.tokens,
            share=group.tokens / (total or 1),
            tools=group.tool_names,
            states=tuple([state for state in _STATES if getattr(group, state)]),
            content=_first_words(group),
        )

    @property
    def about(self) -> str:
        """Its states if any, and the tools it calls, or else its first words."""
        names = [f"{name} x{count}" if count > 1 else name for name, count in Counter(self.tools).items()]
        return " ".join([*(f"[{state}]" for state in self.states), ", ".join(names) or self.content])


@attrs.frozen
class InspectedConversation:
    """A conversation's groups, without its messages.

    Args:
        where: Its file, and its line if the file holds several conversations.
        id: Its id.
        total: Its sizes.
        groups: Its groups, in order.
    """

    where: str
    id: str
    total: Metrics
    groups: list[GroupReport]

    @classmethod
    def of(cls, conversation: FileConversation, counter: TokenCounter, format: str | None) -> InspectedConversation:
        """Read a conversation into groups."""
        with error_context(conversation.where):
            index = MessageIndex(conversation.messages, counter=counter, format=format)
            groups = [GroupReport.of(group, index.total.tokens) for group in index.included_groups]
        return cls(conversation.where, conversation.id, index.total, groups)


def _first_words(group: MessageGroup) -> str:
    words = " ".join([message.text[: 4 * _CONTENT_CHARS] for message in group.messages])
    return printable(words if group.made_by is None else f"{group.made_by}: {words.partition(chr(10))[2]}", _CONTENT_CHARS)


def inspect_command(
    source: Input,
    *,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The conversation to show: its id, or its number if it has none."),
    ] = None,
    counter: CounterName = "auto",
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """Show the groups of a conversation and their tokens.

    For each group: its kind, turn, messages, tokens and their share of the whole. Several conversations get a line each; --id
    selects one.
    """
    counting, note = find_counter(counter)
    found = [InspectedConversation.of(read, counting, format) for read in read_input(source) if id is None or read.id == id]
    if not found:
        raise InputError(f"--id {id}: no conversation of {source} has this id; without --id, inspect lists them")
    if as_json:
        head = {"counter": counting.name, "exact": counting.exact, "note": note}
        sys.stdout.write(json.dumps({**head, "conversations": [attrs.asdict(one) for one in found]}) + "\n")
        return ExitCode.DONE
    with open_console(sys.stdout) as console:
        if len(found) == 1:
            _show_one(console, found[0])
        else:
            columns = ["conversation", "id", ">tokens", ">messages", ">groups", ">turns", ">tool calls"]
            print_table(console, columns, [_overview(one, source) for one in found])
        console.print(printable(note or f"tokens counted by {counting.name}"))
    return ExitCode.DONE


def _overview(one: InspectedConversation, source: str) -> Sequence[str]:
    total = one.total
    sizes = (total.tokens, total.messages, total.groups, total.turns, total.tool_calls)
    return short_location(source, one.where), one.id, *(f"{size:,}" for size in sizes)


def _show_one(console: Console, one: InspectedConversation) -> None:
    largest = max((group.tokens for group in one.groups), default=0) or 1
    ascii_only = console.options.ascii_only
    rows = [_row(group, bar(group.tokens / largest, _BAR_WIDTH, ascii_only=ascii_only)) for group in one.groups]
    print_table(console, [">id", "kind", ">turn", ">messages", ">tokens", ">share", "", "^content"], rows)
    print_table(console, ["kind", ">groups", ">messages", ">tokens", ">share", ""], _kind_rows(one, ascii_only))


def _row(group: GroupReport, drawn: str) -> Sequence[str]:
    turn = "" if group.turn is None else f"{group.turn:,}"
    return str(group.id), group.kind, turn, f"{group.messages:,}", f"{group.tokens:,}", percent(group.share), drawn, group.about


def _kind_rows(one: InspectedConversation, ascii_only: bool) -> Iterator[Sequence[str]]:
    """Yield a line for each kind of group that occurs, and one for all."""
    for kind in GroupKind:
        groups = [group for group in one.groups if group.kind == kind.value]
        messages, tokens = sum(group.messages for group in groups), sum(group.tokens for group in groups)
        share = tokens / (one.total.tokens or 1)
        if groups:
            figures = (f"{len(groups):,}", f"{messages:,}", f"{tokens:,}", percent(share))
            yield kind.value, *figures, bar(share, _BAR_WIDTH, ascii_only=ascii_only)
    yield "all", f"{one.total.groups:,}", f"{one.total.messages:,}", f"{one.total.tokens:,}", "", ""
