"""``compaction inspect``: what a conversation is made of, and where its tokens are."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

from ..errors import InputError
from ..files import Conversation
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..metrics import Metrics
from ..tokens import TokenCounter
from .exits import ExitCode, naming
from .options import AsJson, CounterName, FormatName, Input, conversations_of, counter_named
from .terminal import bar, console_on, percent, place_in, safe, show_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["GroupLine", "Inspected", "inspect"]

_BAR_WIDTH = 20
_CONTENT_CHARS = 80
_STATES = ("open", "pending", "orphan")


@attrs.frozen
class GroupLine:
    """What there is to say about a group.

    Args:
        id: The ordinal of its first message.
        kind: What it is.
        turn: The turn it belongs to, if any.
        messages: How many messages it has.
        tokens: How many tokens.
        share: Their share of the conversation's.
        tools: The tools it calls.
        states: Which of open, pending and orphan it is.
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
    def of(cls, group: MessageGroup, total: int) -> GroupLine:
        """What there is to say about a group of a conversation of ``total`` tokens."""
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
        """Its state if that is unusual, and the tools it calls, or else its first words."""
        names = [f"{name} x{count}" if count > 1 else name for name, count in Counter(self.tools).items()]
        return " ".join([*(f"[{state}]" for state in self.states), ", ".join(names) or self.content])


@attrs.frozen
class Inspected:
    """A conversation's groups, without its messages.

    Args:
        where: Its file, and its line where the file holds several.
        id: Its id.
        total: Its sizes.
        groups: Its groups, in order.
    """

    where: str
    id: str
    total: Metrics
    groups: list[GroupLine]

    @classmethod
    def of(cls, conversation: Conversation, counter: TokenCounter, format: str | None) -> Inspected:
        """Look at a conversation."""
        with naming(conversation.where):
            index = MessageIndex(conversation.messages, counter=counter, format=format)
            groups = [GroupLine.of(group, index.total.tokens) for group in index.included_groups]
        return cls(conversation.where, conversation.id, index.total, groups)


def _first_words(group: MessageGroup) -> str:
    words = " ".join([message.text[: 4 * _CONTENT_CHARS] for message in group.messages])
    return safe(words if group.made_by is None else f"{group.made_by}: {words.partition(chr(10))[2]}", _CONTENT_CHARS)


def inspect(
    source: Input,
    *,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Which of several conversations: its id, or its number if it has none."),
    ] = None,
    counter: CounterName = "auto",
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """Show what a conversation is made of, and its tokens.

    Of each group its kind, turn, messages, tokens and their share of the whole. Of several conversations, one line each; --id
    chooses one.
    """
    counting, note = counter_named(counter)
    found = [Inspected.of(read, counting, format) for read in conversations_of(source) if id is None or read.id == id]
    if not found:
        raise InputError(f"--id {id}: no conversation of {source} has this id; inspect without --id lists them")
    if as_json:
        head = {"counter": counting.name, "exact": counting.exact, "note": note}
        sys.stdout.write(json.dumps({**head, "conversations": [attrs.asdict(one) for one in found]}) + "\n")
        return ExitCode.DONE
    with console_on(sys.stdout) as console:
        if len(found) == 1:
            _show_one(console, found[0])
        else:
            columns = ["conversation", "id", ">tokens", ">messages", ">groups", ">turns", ">tool calls"]
            show_table(console, columns, [_overview(one, source) for one in found])
        console.print(safe(note or f"tokens counted by {counting.name}"))
    return ExitCode.DONE


def _overview(one: Inspected, source: str) -> Sequence[str]:
    total = one.total
    sizes = (total.tokens, total.messages, total.groups, total.turns, total.tool_calls)
    return place_in(source, one.where), one.id, *(f"{size:,}" for size in sizes)


def _show_one(console: Console, one: Inspected) -> None:
    largest = max((group.tokens for group in one.groups), default=0) or 1
    ascii_only = console.options.ascii_only
    rows = [_row(group, bar(group.tokens / largest, _BAR_WIDTH, ascii_only=ascii_only)) for group in one.groups]
    show_table(console, [">id", "kind", ">turn", ">messages", ">tokens", ">share", "", "^content"], rows)
    show_table(console, ["kind", ">groups", ">messages", ">tokens", ">share", ""], _kind_rows(one, ascii_only))


def _row(group: GroupLine, drawn: str) -> Sequence[str]:
    turn = "" if group.turn is None else f"{group.turn:,}"
    return str(group.id), group.kind, turn, f"{group.messages:,}", f"{group.tokens:,}", percent(group.share), drawn, group.about


def _kind_rows(one: Inspected, ascii_only: bool) -> Iterator[Sequence[str]]:
    """A line for each kind of group that occurs, and one for all."""
    for kind in GroupKind:
        groups = [group for group in one.groups if group.kind == kind.value]
        messages, tokens = sum(group.messages for group in groups), sum(group.tokens for group in groups)
        share = tokens / (one.total.tokens or 1)
        if groups:
            figures = (f"{len(groups):,}", f"{messages:,}", f"{tokens:,}", percent(share))
            yield kind.value, *figures, bar(share, _BAR_WIDTH, ascii_only=ascii_only)
    yield "all", f"{one.total.groups:,}", f"{one.total.messages:,}", f"{one.total.tokens:,}", "", ""
